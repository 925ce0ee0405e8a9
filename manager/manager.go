package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/fleet"
	"github.com/millwright-go/millwright/manager/internal/machines"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/manager/internal/pools"
	"github.com/millwright-go/millwright/object"
)

// Manager holds the reconcilers of one fleet.
type Manager struct {
	options     Options
	reconcilers []Reconciler
	hints       hints
	engine      *engine.Engine
	watched     watched
	missing     missing
	calls       *calls
	activities  activities
}

// New returns a manager, and starts nothing. The error of invalid options is an ErrOptions.
func New(options Options) (*Manager, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	e := engine.New(engine.Options{
		Now: options.Runtime.Now, Jitter: options.Runtime.Jitter, Each: options.Runtime.Each,
		Resync: options.Tuning.Resync, DryRun: options.DryRun, Log: options.Log, Hooks: engineHooks(&options.Hooks),
	})
	options.Hooks, options.Runtime.Each = contain(e.Guard, options.Hooks), e.Each
	calls := newCalls(&options, e)
	options.decorate(e.Guard, calls.Calls)
	options.defaultBootstrap()
	if driver.ProviderIDsMatch(options.Driver) {
		policy := *options.Policies.Machine
		policy.ProviderIDsMatch = true
		options.Policies.Machine = &policy
	}
	options.alignPolicies()
	if options.DryRun {
		options.guard(readOnly())
	}
	if options.Term != nil {
		options.guard(during(options.Term))
	}
	objects, err := newObjects(e, &options)
	if err != nil {
		return nil, err
	}
	m := &Manager{options: options, engine: e, calls: calls}
	s := &deps{
		Options: &m.options, engine: e, objects: objects, hints: &m.hints,
		reach:   fleet.NewReach(options.Policies.Safety, options.Runtime.Now),
		backoff: machines.NewBackoff(options.Runtime.Now, options.Hooks.ClassBackoff),
		permits: newPermits(&m.options), watched: &m.watched, missing: &m.missing,
	}
	if options.Policies.Safety != nil {
		s.paces = new(pace.Paces)
	}
	s.specs = newSpecs(options.Driver)
	if options.Term != nil {
		s.led = options.Runtime.Now()
	}
	m.reconcilers = s.reconcilers()
	return m, nil
}

// reconcilers returns one reconciler for each kind that is reconciled.
func (s *deps) reconcilers() []Reconciler {
	all := []Reconciler{newMachineReconciler(s)}
	if s.Store.Sets != nil {
		all = append(all, newSetReconciler(s))
	}
	if s.Store.Deployments != nil {
		all = append(all, newDeploymentReconciler(s))
	}
	if s.managesPools() {
		all = append(all, newPoolReconciler(s))
	}
	if s.managesClasses() {
		all = append(all, newClassReconciler(s))
	}
	if s.keepsSecrets() {
		all = append(all, newSecretReconciler(s))
	}
	if s.Policies.Safety == nil {
		return all
	}
	c := s.fleet()
	all = append(all, reconciler{fleet.NewReachability(s.engine, c)}, reconciler{fleet.NewOrphans(s.engine, c)})
	if s.Cluster != nil {
		all = append(all, reconciler{fleet.NewUnmanaged(s.engine, c)})
	}
	if s.Store.Sets != nil {
		all = append(all, reconciler{fleet.NewOwnerless(s.engine, c)})
	}
	return all
}

// alignPolicies replaces the policies by copies that agree where one depends on another. Without a
// cluster there are no nodes to mark.
func (o *Options) alignPolicies() {
	sets, deployments := *o.Policies.Set, *o.Policies.Deployment
	if o.Cluster == nil {
		deployments.RolloutMarks = machine.RolloutMarks{}
	}
	sets.StrictQuota = sets.StrictQuota || deployments.StrictQuota && o.Store.Deployments != nil
	sets.IgnoreMinReady = sets.IgnoreMinReady || deployments.IgnoreMinReady && o.Store.Deployments != nil
	deployments.Names = min(deployments.Names, sets.Burst) // a set creates no more at a time: names beyond that would be used after others
	deployments.Keys.Replace, deployments.Keys.ScaleUpDisabled = sets.Keys.Replace, sets.Keys.ScaleUpDisabled
	machines := *o.Policies.Machine
	machines.Keys.Replace = sets.Keys.Replace
	paused := machines.Keys.Paused
	sets.Keys.Paused, deployments.Keys.Paused = paused, paused
	if o.Policies.Safety != nil && o.Policies.Safety.Keys.Paused != paused {
		safe := *o.Policies.Safety
		safe.Keys.Paused = paused
		o.Policies.Safety = &safe
	}
	o.Policies.Set, o.Policies.Deployment, o.Policies.Machine = &sets, &deployments, &machines
}

// Driver returns Options.Driver as the manager calls it: with deadlines, checks and hooks, and without
// waiting for overdue calls. It is for programs that make calls of their own, such as GetVolumeIDs for a
// drain.
func (m *Manager) Driver() driver.Driver { return m.options.Driver }

// Reconcilers returns one reconciler for each kind.
func (m *Manager) Reconcilers() []Reconciler { return m.reconcilers }

// Kind names a kind of object, or a source of changes.
type Kind string

// The kinds that a manager reads or reconciles.
const (
	KindMachine    Kind = "machine"
	KindSet        Kind = "set"
	KindDeployment Kind = "deployment"
	KindPool       Kind = "pool"
	KindClass      Kind = "class"
	KindSecret     Kind = "secret"
	KindNode       Kind = "node"
	// KindWorkload is what runs on nodes. Its changes are names of nodes.
	KindWorkload Kind = "workload"
)

// Kinds for the whole fleet, see Kind.Fleet.
const (
	// KindReachability is whether the API servers answer.
	KindReachability Kind = "reachability"
	// KindOrphans are VMs that no machine owns.
	KindOrphans Kind = "orphans"
	// KindUnmanaged are nodes that no machine owns.
	KindUnmanaged Kind = "unmanaged"
	// KindOwnerless are machines and sets whose owner is gone.
	KindOwnerless Kind = "ownerless"
)

// Fleet is the one key of the kinds that concern the whole fleet.
var Fleet = object.Key{Name: "fleet"}

// Fleet reports whether a kind is reconciled on the key Fleet alone. A program that
// drives the reconcilers queues it once at the start, KindReachability
// first: until then nothing is decided about machines, sets and pools.
func (k Kind) Fleet() bool {
	return k == KindReachability || k == KindOrphans || k == KindUnmanaged || k == KindOwnerless
}

// Result is how a pass ended.
type Result = engine.Result

// Reconciler brings one object of one kind closer to what its owner wants. It
// is safe for concurrent use with different keys; calls for one key must not
// overlap.
type Reconciler interface {
	Kind() Kind
	// Reconcile makes one pass. An error means that the pass could not be
	// finished (a store or a cluster did not answer): call again after a
	// pause, the Result then says nothing. An object that is gone is no error. A
	// panic is an ErrPanicked. A call of runtime.Goexit is reported as one, and
	// ends the goroutine that called Reconcile; Manager.Run starts it again.
	Reconcile(ctx context.Context, key object.Key) (Result, error)
}

// Wake says that a change of an object of kind From is a reason to reconcile
// objects of kind To.
type Wake struct {
	From, To Kind
	// Keys names them. old is nil for an object seen first, new for one that
	// is gone; both are of From's type.
	Keys func(ctx context.Context, old, new any) []object.Key
	// Settle is how long the wake-up may wait for others to join it.
	Settle time.Duration
	// Urgent says that the objects are reconciled before others that wait for a worker.
	Urgent bool
}

// deps has what all reconcilers share.
type deps struct {
	*Options
	engine  *engine.Engine
	objects objects
	reach   *fleet.Reach
	hints   *hints
	backoff *machines.Backoff
	paces   *pace.Paces // nil: nothing is paced
	permits *permits
	specs   *specs
	led     time.Time // when the term began; zero: there is none
	// watched and missing are shared with Manager.Run.
	watched *watched
	missing *missing
}

// objects are the objects of all kinds as reconcilers see them.
type objects struct {
	machines    *engine.Objects[*machine.Machine]
	classes     *engine.Objects[*machine.Class]
	sets        *engine.Objects[*machineset.Set]
	deployments *engine.Objects[*deployment.Deployment]
	pools       *engine.Objects[*machinepool.Pool]
}

// newObjects returns the objects of all kinds. Machines and pools have a state machine (package fsm).
func newObjects(e *engine.Engine, o *Options) (objects, error) {
	machines, err := fsm.New(fsm.Machines(o.Policies.Machine)...)
	if err != nil {
		return objects{}, err
	}
	pools, err := fsm.New(fsm.Pools()...)
	if err != nil {
		return objects{}, err
	}
	return objects{
		machines:    engine.NewObjects(e, string(KindMachine), o.Store.Machines, machines),
		classes:     engine.NewObjects(e, string(KindClass), o.Store.Classes, nil),
		sets:        engine.NewObjects(e, string(KindSet), o.Store.Sets, nil),
		deployments: engine.NewObjects(e, string(KindDeployment), o.Store.Deployments, nil),
		pools:       engine.NewObjects(e, string(KindPool), o.Store.Pools, pools),
	}, nil
}

// decorate wraps both drivers. A call goes, in this order, through
//   - the hook, which sees what the caller gets;
//   - the set of calls, which sets the deadline, and returns to the caller if the call is overdue;
//   - the guard against panics;
//   - the check of requests and answers.
func (o *Options) decorate(g *engine.Guard, c *driver.Calls) {
	guard := driver.Recover(func(p driver.Panic) { driverPanicked(g, p) })
	var counted []driver.Interceptor
	if tell := o.Hooks.Call; tell != nil {
		counted = append(counted, driver.Hook(o.Runtime.Now, func(_ context.Context, c driver.Call) { tell(c.Method.String(), c.Code, c.Took) }))
	}
	checked := driver.Validate(o.Driver, driver.ValidateOptions{NodeNames: o.Cluster != nil, Cut: o.cut})
	o.Driver = driver.Intercept(driver.Track(driver.Intercept(checked, guard), c), counted...)
	if !o.managesPools() {
		return
	}
	pools := pooldriver.Validate(o.Pools.Driver, o.cut)
	o.Pools.Driver = pooldriver.Intercept(pooldriver.Track(pooldriver.Intercept(pools, guard), c), counted...)
}

// driverPanicked reports a panic of a driver. The call has the code INTERNAL.
func driverPanicked(g *engine.Guard, p driver.Panic) {
	at := place(inDriver, Kind(p.Kind), p.Object)
	if p.Object == (object.Key{}) {
		at = place(inDriver, KindClass, p.Class)
	}
	g.Report(context.Background(), at, engine.NewCaught(p.Method.String(), p.Value, p.Stack))
}

// defaultBootstrap takes the bootstrap data of pools from their secrets, if there is no Pools.Bootstrap.
func (o *Options) defaultBootstrap() {
	if o.managesPools() && o.Pools.Bootstrap == nil {
		o.Pools.Bootstrap = pools.FromSecrets(o.Store.Secrets)
	}
}

// cut logs the whole of an answer or a message that is passed on shortened.
func (o *Options) cut(ctx context.Context, call driver.CallInfo, whole string) {
	o.Log.LogAttrs(ctx, slog.LevelDebug, "the driver's answer was cut", slog.String("call", call.Method.String()),
		slog.String(call.Kind, call.Object.String()), slog.String("class", call.Class.String()), slog.String("whole", whole))
}
