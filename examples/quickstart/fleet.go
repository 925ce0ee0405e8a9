package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/examples/quickstart/workload"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// These are the names of the one deployment, of what its machines are made from, and of their
// cluster.
const (
	namespace   = "default"
	clusterName = "quickstart"
)

var (
	deploymentKey = object.Key{Namespace: namespace, Name: "web"}
	secretKey     = object.Key{Namespace: namespace, Name: "join"}
)

// Act 1 asks for 6 machines, rollouts may have 2 more. Of the tasks on them, at most 4 may be
// missing at a time.
const (
	replicas       = 6
	surge          = 2
	tasks          = 12
	maxUnavailable = 4
)

// bootDelay is how long a machine takes from its start to its first heartbeat. silence is how long
// a node may send none before its state is Unknown.
const (
	bootDelay = 1500 * time.Millisecond
	silence   = 1200 * time.Millisecond
)

// fleet is what stays when managers are replaced: the stores of objects, the processes, the cluster
// that machines join, and what runs on it.
type fleet struct {
	*stage.Stage
	driver    *procdriver.Driver
	processes *roster.Roster // of machines
	tasks     *roster.Roster
	cluster   *heartbeat.Cluster
	workload  *workload.Workload

	// Policies of the managers.
	health *machine.Policy
	safety *safety.Policy
	drains drains.Options
}

func newFleet(s *stage.Stage) (*fleet, error) {
	f := &fleet{Stage: s, tasks: roster.Open(s.In(taskRoster)), health: machinePolicy(), safety: safetyPolicy()}
	f.driver = procdriver.New(procdriver.Options{Dir: s.In("."), Lock: s.Lock(), Outlives: s.Outlives()})
	f.processes = f.driver.Roster(clusterName)
	f.cluster = heartbeat.New(f.processes, s.Nodes, silence)
	var err error
	f.workload, err = workload.New(workload.Options{
		Machines: f.processes, Tasks: f.tasks, Nodes: s.Nodes, App: "front", MaxUnavailable: maxUnavailable,
	})
	// One node at a time is drained, so that its tasks can start elsewhere before the next one is.
	f.drains = drains.Options{
		Nodes: f.cluster.Nodes(), Workload: drains.Workload{Pods: f.workload, Budgets: f.workload},
		Policy: drain.DefaultPolicy(), Limit: drains.Limit{Max: 1}, Now: clock,
	}
	return f, err
}

// machinePolicy has short timeouts: a silent machine is replaced within seconds, once the machines
// of a program that was killed have had time to be heard. Everything else has its default.
func machinePolicy() *machine.Policy {
	p := machine.DefaultPolicy()
	p.CreationTimeout = 30 * time.Second
	p.HealthTimeout = 2 * time.Second
	p.Grace = 10 * time.Second
	return p
}

// safetyPolicy checks every second whether the cluster answers, and looks for orphan processes soon
// after a machine is gone. Everything else has its default, so one machine at a time is replaced
// for its health.
func safetyPolicy() *safety.Policy {
	p := safety.DefaultPolicy()
	p.CheckPeriod, p.CheckDown, p.DownTimeout = time.Second, time.Second, time.Second
	p.SettleTime = time.Second
	p.OrphanPeriod, p.OrphanSoon, p.OrphanGap = time.Minute, object.Off, time.Second
	return p
}

// newManager makes a manager without any state of an earlier one.
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
	options.Log = slog.New(slog.DiscardHandler) // the screen tells
	return manager.New(options)
}

// deploy stores a deployment of the first version, and what it refers to. Existing objects stay as
// they are. The library fills in the placeholder of the secret, which tells a machine its node's
// name.
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
			Strategy: deployment.Rolling(rollout.IntOrPercent{Value: surge}, rollout.IntOrPercent{}), // none unavailable
		},
	}, nil)
	return err
}

// newClass returns what machines of a version are made from.
func newClass(version string) *machine.Class {
	spec := procdriver.Spec{Cluster: clusterName, Version: version, BootDelay: bootDelay}
	return &machine.Class{
		Meta:     object.Meta{Key: object.Key{Namespace: namespace, Name: version}},
		Provider: procdriver.Provider, ProviderSpec: spec.Encode(), SecretRef: &secretKey,
	}
}
