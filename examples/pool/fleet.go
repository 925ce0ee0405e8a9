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
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
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
	*stage.Stage
	supervisors, agents, tasks *roster.Roster

	cluster  *heartbeat.Cluster
	workload *workload.Workload
	provider *groupdriver.Driver
}

// These are the names of the one pool, of what its machines are made from, and of their cluster.
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

// bootDelay is how long a machine takes from its start to its first heartbeat. silence is how long
// a node may send none before its state is Unknown. alone is how long processes outlive this
// program if they are not meant to.
const (
	bootDelay = 400 * time.Millisecond
	silence   = 1200 * time.Millisecond
	alone     = time.Second
)

// newFleet makes cluster, workload and provider.
func newFleet(s *stage.Stage) (*fleet, error) {
	options := groupdriver.HostOptions{Dir: s.In(groupsDir), Lock: s.Lock(), Alone: alone}
	if lasts := s.Outlives(); lasts > 0 {
		options.Program, options.Alone = s.In("program"), lasts
		if err := groupdriver.Install(options.Program); err != nil {
			return nil, err
		}
	}
	f := &fleet{
		Stage: s, provider: groupdriver.New(groupdriver.NewHost(options)),
		supervisors: roster.Open(supervisor.Supervisors(options.Dir)),
		agents:      roster.Open(filepath.Join(supervisor.Agents(options.Dir), clusterName)),
		tasks:       roster.Open(s.In(taskRoster)),
	}
	f.cluster = heartbeat.New(f.agents, s.Nodes, silence)
	var err error
	// The budget lets all tasks move at a time, because a refused eviction would wait for 20 s.
	f.workload, err = workload.New(workload.Options{
		Machines: f.agents, Tasks: f.tasks, Nodes: s.Nodes, App: "front", MaxUnavailable: taskCount,
	})
	return f, err
}

// poolPolicy reads the provider every second. Everything else has its default.
func poolPolicy() *machinepool.Policy {
	p := machinepool.DefaultPolicy()
	p.Period, p.Poll = time.Second, time.Second
	return p
}

// drainPolicy waits a shorter time than usual for nodes that no longer answer. Everything else has
// its default.
func drainPolicy() *drain.Policy {
	p := drain.DefaultPolicy()
	p.TerminationBuffer = 500 * time.Millisecond
	return p
}

// newManager makes a manager. This fleet has only pools, so a driver of machines has nothing to do.
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
	options.Log = slog.New(slog.DiscardHandler) // the screen tells
	return manager.New(options)
}

// deploy stores a pool of the first version, and what it refers to. Existing objects stay as they
// are. The provider fills the node's name into the bootstrap data, which all machines share.
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

// edit changes the pool, as its owner would.
func (f *fleet) edit(ctx context.Context, change func(*machinepool.Spec)) error {
	_, err := store.Edit(ctx, f.Store.Pools, poolKey, func(p *machinepool.Pool) error {
		change(&p.Spec)
		return nil
	})
	return err
}
