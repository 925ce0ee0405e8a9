package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/pool/groupdriver"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/workload"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// fleet is everything besides the manager: the stores of objects, the processes, the cluster that
// machines join, what runs on them, and the provider.
type fleet struct {
	*demo.Demo
	supervisors, agents, tasks *roster.Roster

	cluster  *heartbeat.Cluster
	workload *workload.Workload
	provider *groupdriver.Driver
}

// These are the names of the objects and of the cluster, and the number of tasks.
const (
	namespace   = "default"
	clusterName = "pools"
	taskCount   = 6
)

var (
	poolKey    = object.Key{Namespace: namespace, Name: "web"}
	secretName = "join"
	secretKey  = object.Key{Namespace: namespace, Name: secretName}
)

// bootDelay is the time from a machine's start to its first heartbeat. silence is the time without a
// heartbeat after which a node's state is Unknown. alone is how long processes outlive this program if
// it has no -state directory.
const (
	bootDelay = 400 * time.Millisecond
	silence   = 1200 * time.Millisecond
	alone     = time.Second
)

// newFleet returns a fleet in the directory of a demo.
func newFleet(d *demo.Demo) (*fleet, error) {
	options := groupdriver.HostOptions{Dir: d.In(groupsDir), Lock: d.Lock(), Alone: alone}
	if lasts := d.Outlives(); lasts > 0 {
		options.Program, options.Alone = d.In("program"), lasts
		if err := groupdriver.Install(options.Program); err != nil {
			return nil, err
		}
	}
	f := &fleet{
		Demo: d, provider: groupdriver.New(groupdriver.NewHost(options)),
		supervisors: roster.Open(supervisor.Supervisors(options.Dir)),
		agents:      roster.Open(filepath.Join(supervisor.Agents(options.Dir), clusterName)),
		tasks:       roster.Open(d.In(taskRoster)),
	}
	f.cluster = heartbeat.New(f.agents, d.Nodes, silence)
	var err error
	// The budget lets all tasks move at the same time: a refused eviction would be retried after 20 s.
	f.workload, err = workload.New(workload.Options{
		Machines: f.agents, Tasks: f.tasks, Nodes: d.Nodes, App: "front", MaxUnavailable: taskCount,
	})
	return f, err
}

// poolPolicy returns a policy that reads the provider's status every second. Everything else has its
// default.
func poolPolicy() *machinepool.Policy {
	p := machinepool.DefaultPolicy()
	p.Period, p.Poll = time.Second, time.Second
	return p
}

// drainPolicy returns a policy that waits less than usual for pods that don't end in time. Everything
// else has its default.
func drainPolicy() *drain.Policy {
	p := drain.DefaultPolicy()
	p.TerminationBuffer = 500 * time.Millisecond
	return p
}

// newManager returns a manager. Its machine driver has nothing to do, because there are only pools.
func (f *fleet) newManager(hooks manager.Hooks) (*manager.Manager, error) {
	drainer, err := drains.New(drains.Options{
		Nodes:    f.cluster.Nodes(),
		Workload: drains.Workload{Pods: f.workload, Budgets: f.workload},
		Policy:   drainPolicy(),
	})
	if err != nil {
		return nil, err
	}
	options := f.Options
	options.Driver = driver.Unimplemented{}
	options.Pools.Driver = pooldriver.Intercept(f.provider, driver.Deadline(driver.Timeouts{Default: 20 * time.Second}))
	options.Policies.Pool = poolPolicy()
	options.Cluster = f.cluster
	options.Drainer = drainer
	options.Hooks = hooks
	options.Log = slog.New(slog.DiscardHandler) // the narrator prints what happens
	return manager.New(options)
}

// deploy creates a pool of version v1, and the objects it refers to. Objects that exist stay as they
// are. All machines share the bootstrap data; the supervisor gives each its node's name instead.
func (f *fleet) deploy(ctx context.Context, replicas int32) error {
	_, err := store.CreateOrEdit(ctx, f.Store.Secrets, &machine.Secret{
		Meta: object.Meta{Key: secretKey}, Data: map[string][]byte{machine.UserData: []byte("any")},
	}, nil)
	if err != nil {
		return err
	}
	for _, version := range []string{"v1", "v2"} {
		spec := procdriver.Spec{Cluster: clusterName, Version: version, BootDelay: bootDelay}
		_, err := store.CreateOrEdit(ctx, f.Store.Classes, &machine.Class{
			Meta:     object.Meta{Key: object.Key{Namespace: namespace, Name: version}},
			Provider: procdriver.Provider, ProviderSpec: spec.Encode(),
		}, nil)
		if err != nil {
			return err
		}
	}
	_, err = store.CreateOrEdit(ctx, f.Store.Pools, &machinepool.Pool{
		Meta: object.Meta{Key: poolKey},
		Spec: machinepool.Spec{
			ClusterName: clusterName, Replicas: &replicas,
			Template: machinepool.Template{
				Class: machine.ClassRef{Name: "v1"}, Bootstrap: machinepool.Bootstrap{DataSecret: &secretName},
			},
		},
	}, nil)
	return err
}

// edit changes the pool, as a user would.
func (f *fleet) edit(ctx context.Context, change func(*machinepool.Spec)) error {
	_, err := store.Edit(ctx, f.Store.Pools, poolKey, func(p *machinepool.Pool) error {
		change(&p.Spec)
		return nil
	})
	return err
}
