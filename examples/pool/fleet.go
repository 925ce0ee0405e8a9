package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/pool/groupdriver"
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/workload"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// fleet is everything besides the manager: a store for each kind of object, the cluster that
// machines join, what runs on them, and the provider.
type fleet struct {
	place
	home.Objects

	cluster  *heartbeat.Cluster
	workload *workload.Workload
	host     *groupdriver.Host
	provider *groupdriver.Driver
}

// These are the names of the one pool, of what its machines are made from, and of their cluster.
const (
	namespace   = "default"
	clusterName = "pools"
	app         = "front"
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

// newFleet makes cluster, workload and provider. It passes the workload's reports to tell.
func newFleet(h place, o home.Objects, token string, tell func(text string)) (*fleet, error) {
	f := &fleet{place: h, Objects: o}
	var err error
	f.cluster, err = heartbeat.Listen(heartbeat.Options{Socket: h.Socket(), Token: token, Silence: silence, Nodes: f.Nodes})
	if err != nil {
		return nil, err
	}
	f.workload, err = workload.New(workload.Options{
		Desks: h.desks(), Volumes: h.In("volumes"), Ledger: h.tasks(), Nodes: f.Nodes, Tell: tell,
	})
	if err != nil {
		return nil, err
	}
	options := groupdriver.HostOptions{
		Dir: h.groups(), Program: h.Program(), Supervisors: h.supervisors(), Agents: h.agents(), Tasks: h.desks(), Alone: alone,
	}
	if h.Lasts {
		options.Alone = 0 // as long as agents go on alone
	}
	f.host, err = groupdriver.NewHost(options)
	if err != nil {
		return nil, err
	}
	f.provider = groupdriver.New(f.host)
	return f, nil
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
func (f *fleet) deploy(ctx context.Context, token string, replicas int32) error {
	join := heartbeat.Join{Socket: f.Socket(), Token: token, Node: "any"}
	_, err := store.CreateOrEdit(ctx, f.Store.Secrets, &machine.Secret{
		Meta: object.Meta{Key: secretKey}, Data: map[string][]byte{machine.UserData: join.UserData()},
	}, nil)
	if err != nil {
		return err
	}
	for _, version := range []string{"v1", "v2"} {
		spec := procdriver.Spec{Cluster: clusterName, Version: version, BootDelay: bootDelay.String()}
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

// taskCount is how many tasks there are. Their budget lets all of them move at a time, because a
// refused eviction would wait for 20 s.
const taskCount = 6

// setTasks asks for so many tasks.
func (f *fleet) setTasks(n int) error {
	return f.workload.Apply(workload.App{
		Name: app, Replicas: n, MaxUnavailable: n,
		Boot: 50 * time.Millisecond, Linger: 100 * time.Millisecond, Grace: 1500 * time.Millisecond,
	})
}
