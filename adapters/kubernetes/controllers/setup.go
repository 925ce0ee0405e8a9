package controllers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/millwright-go/millwright/adapters/kubernetes/cluster"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// defaultSettle is the default of Options.Settle.
const defaultSettle = 20 * time.Millisecond

// SetupWithManager adds the controllers to a manager of controller-runtime, which starts and stops
// them. It makes no call to a server. The error is an ErrOptions, or one about the access to a
// server or about mgr.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	o.complete(mgr)
	f := &fleet{Options: o}
	if err := f.connect(mgr); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("millwright-caches", f.ready); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("millwright-calls", func(*http.Request) error { return f.manager.Health() }); err != nil {
		return err
	}
	return mgr.Add(f)
}

func (o *Options) complete(mgr ctrl.Manager) {
	o.MachinePolicy = o.MachinePolicy.WithDefaults()
	o.SafetyPolicy = o.SafetyPolicy.WithDefaults()
	o.DrainPolicy = o.DrainPolicy.WithDefaults()
	if o.SetPolicy == nil {
		o.SetPolicy = DefaultSetPolicy()
	}
	if o.DeploymentPolicy == nil {
		o.DeploymentPolicy = DefaultDeploymentPolicy()
	}
	if o.Log == nil {
		o.Log = slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("millwright")))
	}
	if o.OtherManagers == nil {
		o.OtherManagers = DefaultOtherManagers(o.Namespace)
	}
	if o.DryRun {
		o.OtherManagers = nil
	}
}

// fleet runs the reconcilers. It implements ctrlmanager.Runnable and
// ctrlmanager.LeaderElectionRunnable of controller-runtime.
type fleet struct {
	Options
	stores  *stores
	cluster *cluster.Cluster // nil if machines join no cluster
	manager *manager.Manager
	others  *otherManagers
	keeper  *leaseKeeper // nil if the lease needs no finalizer
	events  *events
	started atomic.Bool
}

func (f *fleet) connect(mgr ctrl.Manager) (err error) {
	control := unlimited(mgr.GetConfig())
	events, err := newEvents(mgr, f.DryRun)
	if err != nil {
		return err
	}
	f.events = events
	report := events.report(f.Log)
	if f.stores, err = newStores(control, &f.Options, report); err != nil {
		return err
	}
	events.stores = f.stores
	if f.others, err = newOtherManagers(control, f.OtherManagers); err != nil {
		return err
	}
	if f.keepsLease() {
		f.keeper = &leaseKeeper{lease: f.Lease, client: f.others.client, stores: f.stores, log: f.Log}
	}
	metrics, err := newMetrics(f.Metrics, f.stores)
	if err != nil {
		return err
	}
	options := manager.Options{
		Store: manager.Store{
			Machines: f.stores.machines, Sets: f.stores.sets, Deployments: f.stores.deployments,
			Classes: f.stores.classes, Secrets: f.stores.secrets, Namespace: f.Namespace,
		},
		Classes:  manager.ClassOptions{Keep: true},
		Driver:   f.Driver,
		Policies: manager.Policies{Machine: f.MachinePolicy, Set: f.SetPolicy, Deployment: f.DeploymentPolicy, Safety: f.SafetyPolicy},
		Hooks:    chain(metrics.hooks(), events.hooks(), f.Hooks), Log: f.Log, Only: f.only, DryRun: f.DryRun,
		Tuning: manager.Tuning{Workers: f.Workers, Resync: f.Resync, CallTimeout: f.CallTimeout, CallGrace: f.CallGrace, Settle: cmp.Or(f.Settle, defaultSettle)},
	}
	f.managePools(&options)
	if err := f.join(control, report, &options); err != nil {
		return err
	}
	f.manager, err = manager.New(options)
	return err
}

// only reports whether an object is reconciled here. The loops for the whole fleet run with the
// machines of the first shard.
func (f *fleet) only(kind manager.Kind, key object.Key) bool {
	if kind.Fleet() {
		return f.reconciles(manager.KindMachine) && f.Shard.Index == 0
	}
	return f.reconciles(kind) && f.Shard.Holds(key)
}

func (f *fleet) reconciles(kind manager.Kind) bool {
	return f.Kinds == nil || slices.Contains(f.Kinds, kind)
}

// NeedLeaderElection implements ctrlmanager.LeaderElectionRunnable.
func (f *fleet) NeedLeaderElection() bool { return !f.DryRun }

// Start implements ctrlmanager.Runnable.
func (f *fleet) Start(ctx context.Context) error {
	f.started.Store(true)
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	defer f.events.start(ctx)()
	failed := make(chan error, 16)
	caches := f.stores.runners()
	if f.cluster != nil {
		caches = append(caches, f.cluster.Run)
	}
	for _, runCache := range caches {
		running.Go(func() {
			if err := runCache(ctx); err != nil && ctx.Err() == nil {
				failed <- err
				stop()
			}
		})
	}
	if f.keeper != nil {
		running.Go(func() { f.keeper.run(ctx) })
	}
	err := f.others.runAlone(ctx, f.Log, f.manager.Run)
	select {
	case err = <-failed:
	default:
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// ready returns an error while caches are being filled. A process that is not the leader has no
// caches, and counts as ready.
func (f *fleet) ready(*http.Request) error {
	if f.started.Load() && (!f.stores.synced() || f.cluster != nil && !f.cluster.Synced()) {
		return errors.New("the caches are not filled yet")
	}
	return nil
}
