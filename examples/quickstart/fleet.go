package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/workload"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// These are the names of the objects and of the cluster that the machines join.
const (
	namespace   = "default"
	clusterName = "quickstart"
)

var (
	deploymentKey = object.Key{Namespace: namespace, Name: "web"}
	secretKey     = object.Key{Namespace: namespace, Name: "join"}
)

// The deployment has 6 machines, and up to 2 more during a rollout. At most 4 of their tasks may be
// down at a time.
const (
	replicas       = 6
	surge          = 2
	tasks          = 12
	maxUnavailable = 4
)

// bootDelay is the time from a machine's start to its first heartbeat. silence is the time without a
// heartbeat after which a node's state is Unknown.
const (
	bootDelay = 1500 * time.Millisecond
	silence   = 1200 * time.Millisecond
)

// fleet is everything that outlives a manager: the stores of objects, the processes, the cluster that
// machines join, and what runs on it.
type fleet struct {
	*demo.Demo
	driver    *procdriver.Driver
	processes *roster.Roster // of machines
	tasks     *roster.Roster
	cluster   *heartbeat.Cluster
	workload  *workload.Workload

	// These are options of each manager.
	health *machine.Policy
	safety *safety.Policy
	drains drains.Options
}

// newFleet returns a fleet in the directory of a demo.
func newFleet(d *demo.Demo) (*fleet, error) {
	f := &fleet{Demo: d, tasks: roster.Open(d.In(taskRoster)), health: machinePolicy(), safety: safetyPolicy()}
	f.driver = procdriver.New(procdriver.Options{Dir: d.In("."), Lock: d.Lock(), Outlives: d.Outlives()})
	f.processes = f.driver.Roster(clusterName)
	f.cluster = heartbeat.New(f.processes, d.Nodes, silence)
	var err error
	f.workload, err = workload.New(workload.Options{
		Machines: f.processes, Tasks: f.tasks, Nodes: d.Nodes, App: "front", MaxUnavailable: maxUnavailable,
	})
	// One node is drained at a time. Its tasks start elsewhere before the next node is drained.
	f.drains = drains.Options{
		Nodes: f.cluster.Nodes(), Workload: drains.Workload{Pods: f.workload, Budgets: f.workload},
		Policy: drain.DefaultPolicy(), Limit: drains.Limit{Max: 1}, Now: clock,
	}
	return f, err
}

// machinePolicy returns a policy with short timeouts: a silent machine is replaced within seconds.
// A new manager takes a bit longer (Grace), so that machines of an earlier one can send heartbeats
// first. Everything else has its default.
func machinePolicy() *machine.Policy {
	p := machine.DefaultPolicy()
	p.CreationTimeout = 30 * time.Second
	p.HealthTimeout = 2 * time.Second
	p.Grace = 10 * time.Second
	return p
}

// safetyPolicy returns a policy that checks every second whether the cluster answers, and looks for
// orphan processes soon after a machine is gone. Everything else has its default, so one unhealthy
// machine at a time is replaced.
func safetyPolicy() *safety.Policy {
	p := safety.DefaultPolicy()
	p.CheckPeriod, p.CheckDown, p.DownTimeout = time.Second, time.Second, time.Second
	p.SettleTime = time.Second
	p.OrphanPeriod, p.OrphanSoon, p.OrphanGap = time.Minute, object.Off, time.Second
	return p
}

// newManager returns a manager. It has no state of an earlier one.
func (f *fleet) newManager(hooks manager.Hooks) (*manager.Manager, error) {
	drainer, err := drains.New(f.drains)
	if err != nil {
		return nil, err
	}
	options := f.Options
	options.Driver = driver.Intercept(f.driver, driver.Deadline(driver.Timeouts{Default: 20 * time.Second}))
	options.Cluster = f.cluster
	options.Drainer = drainer
	options.Policies.Machine = f.health
	options.Policies.Safety = f.safety
	options.Hooks = hooks
	options.Log = slog.New(slog.DiscardHandler) // the hooks print what happens
	return manager.New(options)
}

// deploy creates a deployment of version v1, and the objects it refers to. Objects that exist stay as
// they are. The secret has a placeholder, where the library puts the machine's name: that of its node.
func (f *fleet) deploy(ctx context.Context, surge int32) error {
	_, err := store.CreateOrEdit(ctx, f.Store.Secrets, &machine.Secret{
		Meta: object.Meta{Key: secretKey}, Data: map[string][]byte{machine.UserData: []byte("<<MACHINE_NAME>>")},
	}, nil)
	if err != nil {
		return err
	}
	for _, version := range []string{"v1", "v2", "v3"} {
		if _, err := store.CreateOrEdit(ctx, f.Store.Classes, newClass(version), nil); err != nil {
			return err
		}
	}
	labels := map[string]string{"app": "web"}
	_, err = store.CreateOrEdit(ctx, f.Store.Deployments, &deployment.Deployment{
		Meta: object.Meta{Key: deploymentKey},
		Spec: deployment.Spec{
			Replicas: replicas,
			Selector: object.Selector{Labels: labels},
			Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "v1"}}},
			Strategy: deployment.Rolling(rollout.IntOrPercent{Value: surge}, rollout.IntOrPercent{}), // no machine may be unavailable
		},
	}, nil)
	return err
}

// newClass returns the class of a version.
func newClass(version string) *machine.Class {
	spec := procdriver.Spec{Cluster: clusterName, Version: version, BootDelay: bootDelay}
	return &machine.Class{
		Meta:     object.Meta{Key: object.Key{Namespace: namespace, Name: version}},
		Provider: procdriver.Provider, ProviderSpec: spec.Encode(), SecretRef: &secretKey,
	}
}
