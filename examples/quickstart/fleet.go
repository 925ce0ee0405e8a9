package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/workload"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// fleet is what stays when managers are replaced: a store for each kind of object, the cluster that
// machines join, and the host of their processes.
type fleet struct {
	place
	home.Objects
	care

	cluster  *heartbeat.Cluster
	workload *workload.Workload // what runs on the cluster's nodes
	host     *procdriver.Host
	drainer  func() (manager.Drainer, error) // of each new manager
	report   time.Duration                   // how long finished tasks are still there
}

// care holds the policies of a fleet.
type care struct {
	health *machine.Policy
	safety *safety.Policy
	grace  time.Duration // of a process that is told to end; zero means the driver's
}

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

// replicas, surge: act 1 asks for 6 machines, rollouts may have 2 more.
const (
	replicas = 6
	surge    = 2
)

// bootDelay is how long a machine takes from its start to its first heartbeat. silence is how long
// a node may send none before its state is Unknown.
const (
	bootDelay = 1500 * time.Millisecond
	silence   = 1200 * time.Millisecond
)

// newFleet makes the cluster, its workload and the host. It passes the workload's reports to tell.
func newFleet(h place, o home.Objects, token string, tell func(text string)) (*fleet, error) {
	f := &fleet{place: h, Objects: o, care: care{health: machinePolicy(), safety: safetyPolicy()}}
	var err error
	f.cluster, err = heartbeat.Listen(heartbeat.Options{
		Socket: h.Socket(), Token: token, Silence: silence, Nodes: f.Nodes,
	})
	if err != nil {
		return nil, err
	}
	f.workload, err = workload.New(workload.Options{
		Desks: h.desks(), Volumes: h.volumes(), Ledger: h.taskLedger(), Nodes: f.Nodes, Tell: tell,
	})
	if err != nil {
		return nil, err
	}
	f.drainer, f.report = f.newDrainer, taskReport
	f.host, err = procdriver.NewHost(procdriver.HostOptions{
		Program: h.Program(), Ledger: h.ledger(), Tasks: h.desks(), Outlived: h.Lasts,
	})
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

// drainPolicy waits a shorter time than usual for tasks and volumes of nodes that no longer answer.
// Everything else has its default.
func drainPolicy() *drain.Policy {
	p := drain.DefaultPolicy()
	p.TerminationBuffer = 500 * time.Millisecond
	p.DetachTimeout = 5 * time.Second
	return p
}

// newDrainer makes a drainer that empties one node at a time, so that evicted tasks can start
// elsewhere before the next node is emptied.
func (f *fleet) newDrainer() (manager.Drainer, error) {
	return drains.New(drains.Options{
		Nodes:    f.cluster.Nodes(),
		Workload: drains.Workload{Pods: f.workload, Budgets: f.workload, Volumes: f.workload},
		Policy:   drainPolicy(),
		Limit:    drains.Limit{Max: 1},
		Now:      clock,
	})
}

// newManager makes a manager without any state of an earlier one.
func (f *fleet) newManager(hooks manager.Hooks) (*manager.Manager, error) {
	processes, err := procdriver.New(procdriver.Options{Dir: f.records(), Host: f.host, Grace: f.grace})
	if err != nil {
		return nil, err
	}
	drainer, err := f.drainer()
	if err != nil {
		return nil, err
	}
	options := f.Options
	options.Driver = driver.Intercept(processes, driver.Deadline(driver.Timeouts{Default: 20 * time.Second}))
	options.Cluster = f.cluster
	options.Drainer = drainer
	options.Policies.Machine = f.health
	options.Policies.Safety = f.safety
	options.Hooks = hooks
	options.Log = slog.New(slog.DiscardHandler) // the screen tells
	return manager.New(options)
}

// deploy stores a deployment of the first version, and what it refers to. Existing objects stay as
// they are.
func (f *fleet) deploy(ctx context.Context, token string, strategy deployment.Strategy) error {
	join := heartbeat.Join{Socket: f.Socket(), Token: token, Node: "<<MACHINE_NAME>>"}
	_, err := store.CreateOrEdit(ctx, f.Store.Secrets, &machine.Secret{
		Meta: object.Meta{Key: secretKey}, Data: map[string][]byte{machine.UserData: join.UserData()},
	}, nil)
	if err != nil {
		return err
	}
	for _, version := range []string{"v1", "v2", "v3"} {
		if _, err := store.CreateOrEdit(ctx, f.Store.Classes, newClass(clusterName, version), nil); err != nil {
			return err
		}
	}
	labels := map[string]string{"app": "web"}
	_, err = store.CreateOrEdit(ctx, f.Store.Deployments, &deployment.Deployment{
		Meta: object.Meta{Key: deploymentKey},
		Spec: deployment.Spec{
			Replicas: replicas,
			Selector: object.Selector{Labels: labels},
			Template: machineset.Template{
				Labels: labels,
				Spec:   machine.Spec{Class: machine.ClassRef{Name: "v1"}},
			},
			Strategy: strategy,
		},
	}, nil)
	return err
}

// newClass returns what machines of a version are made from. The cluster is the tag by which the
// driver tells its fleet's processes from others.
func newClass(cluster, version string) *machine.Class {
	spec := procdriver.Spec{Cluster: cluster, Version: version, BootDelay: bootDelay.String()}
	return &machine.Class{
		Meta:     object.Meta{Key: object.Key{Namespace: namespace, Name: version}},
		Provider: procdriver.Provider, ProviderSpec: spec.Encode(), SecretRef: &secretKey,
	}
}

// edit changes the deployment, as its owner would.
func (f *fleet) edit(ctx context.Context, change func(*deployment.Spec)) error {
	_, err := store.Edit(ctx, f.Store.Deployments, deploymentKey, func(d *deployment.Deployment) error {
		change(&d.Spec)
		return nil
	})
	return err
}
