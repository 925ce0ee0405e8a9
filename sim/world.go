package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim/internal/cluster"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// Options configure a World. The zero value is a world without faults.
type Options struct {
	Seed uint64
	// Boot is how long a VM takes from its creation until it joins. Zero: 1 min.
	Boot time.Duration
	// Update is how long the agent on a node takes to update it in place. Zero: 2 min.
	Update time.Duration
	Faults Faults
	// NoCluster leaves the target cluster out: machines end at phase Available, pools at Provisioned.
	// Without nodes there are no updates in place: deployments of a Scenario that ask for them roll
	// instead.
	NoCluster bool
	// Driver makes a driver for each process of the manager. The driver's requests fail, as Faults say,
	// if they go through World.Provider, a Transport or World.Request. It waits with World.Sleep, or
	// by DriverNow. Nil: the simulated provider's own driver, whose answers fail.
	Driver func(*World) driver.Driver
	// DriverNow is a clock by which that driver waits, such as time.Now in a bubble of
	// testing/synctest: a call takes as much virtual time as it takes by this clock. Nil: a call takes
	// only the time of its requests and of World.Sleep.
	DriverNow func() time.Time
	// Class makes the classes, with Provider and ProviderSpec, for a driver whose VMs are not in
	// World.Provider. It is called with "small" and the names in Scenario.Classes. Equal names must
	// give equal classes, and other names different ones. The world sets Key, and SecretRef if it is
	// empty. Such VMs join no cluster, so NoCluster has to be set. The world does not see them: steps
	// and faults about VMs do nothing, Left does not count them, and the invariants about VMs (P13 to
	// P15) check nothing. A Property says what has to be true of them. Nil: classes of World.Provider.
	Class func(name string) *machine.Class
	// Manager holds policies and sizes. The world sets its store, driver, cluster and clock, and adds
	// hooks of its own to Hooks.
	Manager manager.Options
	// Drain says how nodes are drained. Nil: drain.DefaultPolicy. DrainLimit bounds how many are
	// drained at a time.
	Drain      *drain.Policy
	DrainLimit drains.Limit
	// UpdatableTags makes the simulated provider's driver declare that it can change the tags of VMs;
	// see TagClass. With Options.Driver, both that driver and UpdatableTags have to say so before the
	// world expects that tags change.
	UpdatableTags bool
	// NeedsInitialization makes VMs of the simulated provider UNINITIALIZED at first.
	NeedsInitialization bool
	// Pools makes the manager reconcile pools, too. Nil: it has none. PoolDriver makes the driver of
	// pools, as Driver does that of machines. Nil: the simulated provider's own driver.
	Pools      *PoolOptions
	PoolDriver func(*World) pooldriver.Driver
	// Properties must hold at any time, in addition to the invariants.
	Properties []Property
	// Tell, unless nil, is called with a line for each fault, each call to the provider, and each
	// transition and failure that the manager reports, in order.
	Tell func(at time.Time, what string)

	model func(*World) driver.Driver // makes the driver of a preview, in place of Driver; nil if this is no preview
}

// Property is something that must hold in a world. A violation contains the error and no state, so the
// error should say what was seen.
type Property struct {
	// Name identifies the property in violations.
	Name string
	// Check returns an error if the property does not hold. It must not change the world. The world
	// calls it after every change of an object or a VM, by anybody. It does not call it after a change
	// of pods alone. Nil: nothing is checked.
	Check func(*World) error
	// Finally returns an error if something is left or missing after a scenario has deleted all its
	// objects. Play waits for it to return nil, for at most Scenario.Limit. Nil: nothing is checked.
	Finally func(*World) error
}

// World is a manager and everything around it. New makes it. It is not safe for concurrent use.
type World struct {
	*base
	*stores
	*apis
	*managerClock
	*policies
	*fleetHistory
	o Options

	*cloud
	*classCatalog
	*vms
	*intermittentFaults
	*machineCalls
	*userDriverCalls
	*poolCalls
	*bootstrapMaker
	*counters

	kubelets     *kubelets
	agents       *agents
	hookOwners   *hookOwners
	apps         *cluster.Cluster
	groups       *groups.Provider
	userProvider *Provider // the simulated provider, as a driver of Options.Driver sees it
	managers     *managers

	end      time.Time           // when the run is over; zero: never
	actions  map[Action]int      // steps that took effect, see Stats.Actions
	orphans  int                 // number of VMs that users created without a machine
	toRemake map[object.Key]bool // pools that are to be made again when they are gone
}

// newWorld makes a world in which nothing happens yet.
func newWorld(o Options) *World {
	w := &World{o: o, actions: map[Action]int{}, toRemake: map[object.Key]bool{}}
	w.policies = &policies{&w.o.Manager, o.Drain}
	w.base = newBase(o.Seed, &w.o.Faults, o.Tell)
	w.stores = newStores(w.base, &w.machinePolicy().Keys)
	w.apis = newAPIs(w.base, o.NoCluster)
	w.managerClock = &managerClock{apis: w.apis, skew: o.Faults.Skew}
	w.cloud = newCloud(w.base, drivertest.MemoryOptions{NeedsInitialization: o.NeedsInitialization})
	w.classCatalog = &classCatalog{w.cloud, w.stores, o.Class}
	w.apps = cluster.New(clusterWorld{random{w.base}, w.nodes})
	w.kubelets = newKubelets(w.cloud, w.nodes, w.apps, o.Boot, o.NoCluster)
	w.vms = newVMs(w.kubelets)
	w.intermittentFaults = &intermittentFaults{w.managerClock, w.cloud, w.kubelets}
	w.bootstrapMaker = &bootstrapMaker{base: w.base, stores: w.stores, bootstraps: bootstraps{}}
	w.groups = newGroups(o.Pools, w.classCatalog, w.bootstrapMaker, w.apis, w.kubelets)
	w.machineCalls = newMachineCalls(w.vms, w.classCatalog)
	w.userDriverCalls = &userDriverCalls{now: o.DriverNow}
	w.userProvider = newProvider(w.userDriverCalls, w.machineCalls)
	w.poolCalls = newPoolCalls(w.base, w.stores, w.groups, o.Manager.Policies.Safety != nil && !o.Manager.DryRun && o.PoolDriver == nil)
	w.counters = &counters{}
	w.managers = w.newManagers()
	w.subscribeParts()
	return w
}

// subscribeParts subscribes the parts of the world to its events.
func (w *World) subscribeParts() {
	orders := &pendingOrders{apis: w.apis}
	w.fleetHistory = newFleetHistory(w.base, w.stores, orders, &forcePolicy{w.managerClock, w.policies, w.nodes})
	w.subscribe(followNodes(w.apps))
	w.agents = newAgents(w.kubelets, w.o.Update, w.machinePolicy().Keys.UpdateResult)
	w.subscribe(w.agents.see)
	w.hookOwners = &hookOwners{w.base, w.machines, map[string]pendingHook{}}
	w.subscribe(w.hookOwners.see)
	w.subscribe(w.poolCalls.see)
	w.subscribe(orders.see)
	w.subscribe(w.fleetHistory.see)
	w.subscribe((&retrier{w.base, w.edit, map[string]bool{}}).see)
}

// newManagers returns what starts the processes of the manager.
func (w *World) newManagers() *managers {
	p := managerConfig{options: w.o.Manager, noCluster: w.o.NoCluster, drain: w.o.Drain, limit: w.o.DrainLimit, driver: w.driver, userDriver: w.o.Driver != nil}
	if w.o.Pools != nil {
		p.poolDriver = w.groupDriver
	}
	return &managers{
		base: w.base, stores: w.stores, counters: w.counters, managerConfig: p, apis: w.apis, skewedClock: w.managerClock,
		machines: w.machineCalls, calls: w.userDriverCalls, groups: w.poolCalls, apps: w.apps, bootstraps: w.bootstrapMaker,
	}
}

// driver returns the machine driver for the next process of the manager.
func (w *World) driver() driver.Driver {
	switch {
	case w.o.Driver != nil:
		d := w.o.Driver(w)
		w.o.UpdatableTags = w.o.UpdatableTags && updatesTags(d)
		return d
	case w.o.model != nil:
		return w.o.model(w)
	case w.o.UpdatableTags:
		return w.provider
	}
	return withoutUpdates{w.provider}
}

// updatesTags reports whether a driver declares that it can change the tags of VMs.
func updatesTags(d driver.Driver) bool {
	fields, ok := driver.As[driver.FieldUpdater](d)
	return ok && slices.Contains(fields.UpdatableFields(), "tags")
}

// Provider returns the simulated provider.
func (w *World) Provider() *Provider { return w.userProvider }

// groupDriver returns the driver of groups for the next process of the manager.
func (w *World) groupDriver() pooldriver.Driver {
	if w.o.PoolDriver != nil {
		return w.o.PoolDriver(w)
	}
	return w.groups
}

// Close ends all passes that are under way. Nothing happens in the world after it.
func (w *World) Close() {
	if w.process != nil {
		w.process.dead = true
	}
	w.o.Faults = Faults{}
	w.clock.Close()
}

// AddApp starts a workload.
func (w *World) AddApp(a App) { w.apps.Start(cluster.App(a)) }

// Healthy returns how many pods of an app are healthy.
func (w *World) Healthy(app string) int { return w.apps.Healthy(app) }

// PodsOn returns how many pods on a node have not finished.
func (w *World) PodsOn(node string) (n int) {
	for _, p := range w.apps.On(node) {
		if !p.Finished {
			n++
		}
	}
	return n
}

// Watch adds a function that is called after each change of an object or a VM.
func (w *World) Watch(do func()) {
	w.subscribe(func(e event) {
		if _, ok := e.(effect); ok {
			do()
		}
	})
}

// Complete reports whether the deployment of that name, in Namespace, has converged.
func (w *World) Complete(name string) bool {
	d := w.deployment(name)
	return d != nil && saysComplete(d) && isComplete(d, w.fleetOf(d))
}

// Made returns how many machines have ever existed.
func (w *World) Made() int { return len(w.lives) }

// StopFaults prevents all further faults, and ends outages. Skew, CacheLag, Latency, PodEnd and HangFor
// stay.
func (w *World) StopFaults() {
	w.faultsStopped = true
	w.intermittentFaults.end()
	w.apps.StopFaults()
	w.kubelets.stopFaults()
	if w.o.Pools != nil {
		w.poolCalls.silent = time.Time{}
		w.groups.StopFaults()
	}
	w.o.Faults = Faults{Skew: w.o.Faults.Skew, CacheLag: w.o.Faults.CacheLag, Latency: w.o.Faults.Latency, PodEnd: w.o.Faults.PodEnd, HangFor: w.o.Faults.HangFor}
	if w.process != nil {
		w.process.killAt = 0
	}
}

// ErrLimit is what Until returns when its goal was not reached.
var ErrLimit = errors.New("sim: the goal was not reached")

// errOver ends a run of PlayUntil at its given end.
var errOver = errors.New("sim: the run is over")

// over reports whether the given end of the run is past.
func (w *World) over() bool { return !w.end.IsZero() && w.Now().After(w.end) }

// Until lets time pass until a goal is reached, for at most limit. It returns ErrLimit, or the first
// violation of an invariant or property.
func (w *World) Until(goal func() bool, limit time.Duration) error {
	end := w.Now().Add(limit)
	for !goal() {
		if err := w.violated(); err != nil {
			return err
		}
		if w.over() {
			return errOver
		}
		if !w.clock.Step(end) {
			return fmt.Errorf("%w within %s", ErrLimit, limit)
		}
	}
	return w.violated()
}

// Run lets so much time pass. It returns the first violation.
func (w *World) Run(d time.Duration) error {
	end := w.Now().Add(d)
	for w.clock.Step(end) && len(w.violations) == 0 {
		if w.over() {
			return errOver
		}
	}
	if err := w.violated(); err != nil {
		return err
	}
	w.clock.Set(end)
	return nil
}

// New makes a world with a class "small" and its secret in the namespace Namespace, and starts a
// manager in it. The error is the manager's, or an *object.FieldError for Options that contradict each
// other.
func New(o Options) (*World, error) {
	if o.Class != nil {
		switch {
		case o.Driver == nil:
			return nil, object.Invalid("Options.Class", "needs a Driver: the simulated provider makes its classes itself")
		case !o.NoCluster:
			return nil, object.Invalid("Options.Class", "needs NoCluster: VMs that are not in World.Provider join no cluster")
		}
		o.UpdatableTags, o.NeedsInitialization = false, false // these are options of the simulated provider
	}
	if o.Boot == 0 {
		o.Boot = time.Minute
	}
	switch p := o.Manager.Policies.Safety; {
	case p == nil:
		o.Manager.Policies.Safety = SafetyPolicy()
	case p.Off:
		o.Manager.Policies.Safety = nil // in this package, nil is off
	default:
		o.Manager.Policies.Safety = p.WithDefaults()
	}
	w := newWorld(o)
	addInvariants(w)
	checkProperties(w)
	w.subscribe(w.bootstrapMaker.see)
	w.subscribe(w.poolGone)
	if err := errors.Join(w.AddClass("small"), w.managers.start()); err != nil {
		return nil, err
	}
	w.intermittentFaults.begin()
	return w, nil
}

// clusterName is the cluster that all VMs of the fleet are in.
const clusterName = "blue"

// cloud is the simulated provider, with a zone for each class.
type cloud struct {
	*base
	provider     *drivertest.Memory
	zones        []string             // named after their classes, in the order of creation
	zoneOutUntil map[string]time.Time // time until which a zone is out
	zoneOf       map[string]string    // zone of a VM
	removed      map[string]bool      // VMs that no longer exist
}

func newCloud(g *base, o drivertest.MemoryOptions) *cloud {
	return &cloud{
		base: g, provider: drivertest.NewMemory(o), zoneOutUntil: map[string]time.Time{}, zoneOf: map[string]string{}, removed: map[string]bool{},
	}
}

// zoneIsOut reports whether a zone is out.
func (r *cloud) zoneIsOut(zone string) bool { return r.Now().Before(r.zoneOutUntil[zone]) }

// eachIn calls do for each VM of a zone.
func (r *cloud) eachIn(zone string, do func(name, id string)) {
	for _, vm := range r.provider.VMs() {
		if vm.Size == zone {
			do(vm.Name, vm.ID)
		}
	}
}

// otherSpelling returns another spelling of an identity.
func otherSpelling(identity string) string { return strings.ToUpper(identity) + "/" }

// policies returns the policies in the manager's options, with defaults for what is not set.
type policies struct {
	options *manager.Options
	drains  *drain.Policy
}

func (p *policies) machinePolicy() *machine.Policy { return p.options.Policies.Machine.WithDefaults() }

func (p *policies) setPolicy() *machineset.Policy { return p.options.Policies.Set.WithDefaults() }

func (p *policies) deploymentPolicy() *deployment.Policy {
	return p.options.Policies.Deployment.WithDefaults()
}

func (p *policies) drainPolicy() *drain.Policy { return p.drains.WithDefaults() }

func (p *policies) poolPolicy() *machinepool.Policy { return p.options.Policies.Pool.WithDefaults() }

// SafetyPolicy returns the policy of a world whose Options.Manager has none: safety.DefaultPolicy with
// OrphansOfEmptyStore, because scenarios delete the whole fleet: VMs that are created late are collected
// after that as well.
func SafetyPolicy() *safety.Policy {
	p := safety.DefaultPolicy()
	p.OrphansOfEmptyStore = true
	return p
}

// tagged reports whether all VMs of machines have the tags of their classes. It skips VMs that a late
// call of a dead process may have changed.
func (w *World) tagged() bool {
	if !w.o.UpdatableTags {
		return true
	}
	for _, d := range w.deployments.all() {
		if d.Status.Outdated > 0 {
			return false
		}
	}
	return w.untagged() == ""
}

// untagged returns the name of a machine whose VM has other tags than its class, or "".
func (w *World) untagged() string {
	if !w.o.UpdatableTags {
		return ""
	}
	machines := map[string]*machine.Machine{}
	for _, m := range w.machines.all() {
		machines[m.Spec.ProviderID] = m
	}
	for _, vm := range w.provider.VMs() {
		m := machines[vm.ID]
		if m == nil || m.Deleted() || !m.Ready() || w.cannotBeUpdated(m) || w.excuses.lateTags[m.Name] || w.excuses.lateVMs[m.Name] {
			continue
		}
		if spec, found := w.specOf(m.Spec.Class.Name); found && !maps.Equal(spec.Tags, vm.Tags) {
			return m.Name
		}
	}
	return ""
}

// cannotBeUpdated reports whether the driver said that a VM can't be changed, and its machine has no
// owner that would replace it.
func (w *World) cannotBeUpdated(m *machine.Machine) bool {
	op := &m.Status.LastOperation
	class, err := w.classes.Get(context.Background(), object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name})
	return err == nil && m.Owner == nil && op.Kind == machine.OperationUpdate && op.State == machine.StateFailed &&
		op.Code == codes.Unimplemented && op.Against.Machine == m.Generation && op.Against.Class == class.Generation
}

// Fleet returns a deployment, in Namespace, of machines of class "small".
func Fleet(name string, replicas int32, strategy deployment.Strategy) *deployment.Deployment {
	labels := map[string]string{"fleet": name}
	return &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: Namespace, Name: name}}, Spec: deployment.Spec{
		Replicas: replicas, Selector: object.Selector{Labels: labels}, Strategy: strategy,
		Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}},
	}}
}

// Pool returns a pool, in Namespace, of machines of class "small" that need no bootstrap data.
func Pool(name string, replicas int32) *machinepool.Pool {
	nothing := ""
	return &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: Namespace, Name: name}}, Spec: machinepool.Spec{
		ClusterName: clusterName, Replicas: &replicas,
		Template: machinepool.Template{Class: machine.ClassRef{Name: "small"}, Bootstrap: machinepool.Bootstrap{DataSecret: &nothing}},
	}}
}
