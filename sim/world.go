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
	// Where there are no nodes, no agent updates one in place: deployments of a Scenario that ask for
	// it roll instead.
	NoCluster bool
	// Driver makes the driver of each life of the manager from the world. Its calls to the provider
	// fail, as Faults say, if they go through World.Provider, a Transport or World.Request. It waits
	// with World.Sleep, or see DriverNow. Nil: the simulated provider's own driver, whose answers fail.
	Driver func(*World) driver.Driver
	// DriverNow is a clock by which that driver waits, such as time.Now in a bubble of
	// testing/synctest: as long as a call takes by it, it takes in the world. Nil: what the driver does
	// takes no time but that of its requests and of World.Sleep.
	DriverNow func() time.Time
	// Class makes the classes of the world for a driver whose VMs are not in World.Provider: with its
	// Provider and ProviderSpec. It gets "small" and the names that Scenario.Classes has; equal names
	// need equal classes, others differ. Key, and a SecretRef where it is empty, are the world's.
	// Such VMs join no cluster, so NoCluster has to be set. Steps and faults at the VMs of the world's
	// provider do nothing, Left does not count those of the driver's, and the invariants about VMs (P13 to P15) have
	// none to look at: a Property tells what has to be true of them. Nil: classes of World.Provider.
	Class func(name string) *machine.Class
	// Manager holds policies and sizes. Its ports, clock and hooks are the world's, except for
	// Hooks that are set: these are called too.
	Manager manager.Options
	// Drain says how nodes are drained. Nil: drain.DefaultPolicy. DrainLimit bounds how many are
	// drained at a time.
	Drain      *drain.Policy
	DrainLimit drains.Limit
	// UpdatableTags makes the simulated provider's driver declare that it can change the tags of
	// VMs; see TagClass. If it is false, the driver declares nothing. A driver of Driver declares for
	// itself: the world expects VMs with other tags only of one that says so.
	UpdatableTags bool
	// NeedsInitialization makes VMs of the simulated provider UNINITIALIZED at first.
	NeedsInitialization bool
	// Pools makes the manager reconcile pools too. Nil: it knows of none. PoolDriver makes its
	// driver as Driver does. Nil: the simulated provider's own driver.
	Pools      *PoolOptions
	PoolDriver func(*World) pooldriver.Driver
	// Properties must hold at any time, beside those that every world is held to.
	Properties []Property
	// Tell, unless nil, gets a line for each event, in order: faults, transitions and failures that
	// the manager reports, and calls to the provider.
	Tell func(at time.Time, what string)

	model func(*World) driver.Driver // makes the driver of a preview, in place of Driver; nil if this is no preview
}

// Property is something that must hold in a world. Only the error is kept of the state, so it should
// say what was seen.
type Property struct {
	// Name tells properties apart where one is broken.
	Name string
	// Check returns an error if the property does not hold. It must not change the world. The world
	// calls it after every effect on an object or a VM, from any source, and checks what happens to
	// pods alone with the next of these effects. Nil: nothing must hold at any time.
	Check func(*World) error
	// Finally returns an error if something is left or missing once a scenario has deleted all that it
	// had. Play waits for it to return nil as it waits for convergence. Nil: nothing must hold then.
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

	kubelets *kubelets
	agents   *agents
	hookers  *hookOwners
	apps     *cluster.Cluster
	groups   *groups.Provider
	front    *Provider // of region's, as a user's driver sees it
	managers *managers

	end     time.Time           // when a run is over; zero: never
	actions map[Action]int      // of users that took effect
	orphans int                 // VMs that users made
	remade  map[object.Key]bool // pools that are to be made again when they are gone
}

// newWorld makes a world in which nothing happens yet.
func newWorld(o Options) *World {
	w := &World{o: o, actions: map[Action]int{}, remade: map[object.Key]bool{}}
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
	w.front = newProvider(w.userDriverCalls, w.machineCalls)
	w.poolCalls = newPoolCalls(w.base, w.stores, w.groups, o.Manager.Policies.Safety != nil && !o.Manager.DryRun && o.PoolDriver == nil)
	w.counters = &counters{}
	w.managers = w.newManagers()
	w.follow()
	return w
}

// follow makes the parts see what happens.
func (w *World) follow() {
	orders := &pendingOrders{apis: w.apis}
	w.fleetHistory = newFleetHistory(w.base, w.stores, orders, &forcePolicy{w.managerClock, w.policies, w.nodes})
	w.subscribe(followNodes(w.apps))
	w.agents = newAgents(w.kubelets, w.o.Update, w.machinePolicy().Keys.UpdateResult)
	w.subscribe(w.agents.see)
	w.hookers = &hookOwners{w.base, w.machines, map[string]pendingHook{}}
	w.subscribe(w.hookers.see)
	w.subscribe(w.poolCalls.see)
	w.subscribe(orders.see)
	w.subscribe(w.fleetHistory.see)
	w.subscribe((&retrier{w.base, w.edit, map[string]bool{}}).see)
}

// newManagers says what each life of the manager is made from.
func (w *World) newManagers() *managers {
	p := managerConfig{options: w.o.Manager, noCluster: w.o.NoCluster, drain: w.o.Drain, limit: w.o.DrainLimit, driver: w.driver, own: w.o.Driver != nil}
	if w.o.Pools != nil {
		p.poolDriver = w.groupDriver
	}
	return &managers{
		base: w.base, stores: w.stores, counters: w.counters, managerConfig: p, apis: w.apis, shown: w.managerClock,
		machines: w.machineCalls, calls: w.userDriverCalls, groups: w.poolCalls, apps: w.apps, bootstraps: w.bootstrapMaker,
	}
}

// driver returns the driver of the machines for the next life of the manager.
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
func (w *World) Provider() *Provider { return w.front }

// groupDriver returns the driver of groups for the next life of the manager.
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

// Healthy is how many pods of an app are healthy.
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

// Watch adds a function that is called after each effect.
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

// Made returns how many machines there have ever been.
func (w *World) Made() int { return len(w.lives) }

// StopFaults stops all faults that are not under way yet.
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

// errOver ends a run whose end does not matter.
var errOver = errors.New("sim: the run is over")

// over reports whether anything that still happens is of no interest.
func (w *World) over() bool { return !w.end.IsZero() && w.Now().After(w.end) }

// Until lets time pass until a goal is reached, for at most limit. It returns ErrLimit, or the
// first violation of what must hold at any time.
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

// Run lets time pass.
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

// New makes a world with a class "small" and its secret in the namespace
// Namespace, and starts a manager in it. The error is the manager's, or an *object.FieldError for
// Options that don't go together.
func New(o Options) (*World, error) {
	if o.Class != nil {
		switch {
		case o.Driver == nil:
			return nil, object.Invalid("Options.Class", "needs a Driver: the simulated provider makes its classes itself")
		case !o.NoCluster:
			return nil, object.Invalid("Options.Class", "needs NoCluster: VMs that are not in World.Provider join no cluster")
		}
		o.UpdatableTags, o.NeedsInitialization = false, false // these are of the simulated provider
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
	provider *drivertest.Memory
	zones    []string             // by name of their class, in the order of its making
	dark     map[string]time.Time // until when a zone is out
	zoneOf   map[string]string    // of a VM
	removed  map[string]bool      // VMs that no longer exist
}

func newCloud(g *base, o drivertest.MemoryOptions) *cloud {
	return &cloud{
		base: g, provider: drivertest.NewMemory(o), dark: map[string]time.Time{}, zoneOf: map[string]string{}, removed: map[string]bool{},
	}
}

// isDark reports whether a zone is out.
func (r *cloud) isDark(zone string) bool { return r.Now().Before(r.dark[zone]) }

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

// policies are those of the manager's options, or the defaults.
type policies struct {
	options *manager.Options
	drains  *drain.Policy
}

// machinePolicy returns how machines are treated.
func (p *policies) machinePolicy() *machine.Policy { return p.options.Policies.Machine.WithDefaults() }

// setPolicy returns how sets are treated.
func (p *policies) setPolicy() *machineset.Policy { return p.options.Policies.Set.WithDefaults() }

func (p *policies) deploymentPolicy() *deployment.Policy {
	return p.options.Policies.Deployment.WithDefaults()
}

// drainPolicy returns how nodes are drained.
func (p *policies) drainPolicy() *drain.Policy { return p.drains.WithDefaults() }

func (p *policies) poolPolicy() *machinepool.Policy { return p.options.Policies.Pool.WithDefaults() }

// SafetyPolicy returns the policy of a world whose Options.Manager has none: safety.DefaultPolicy,
// for a fleet that may be deleted as a whole. It trusts an empty store too, so VMs that come late then
// are collected.
func SafetyPolicy() *safety.Policy {
	p := safety.DefaultPolicy()
	p.OrphansOfEmptyStore = true
	return p
}

// tagged reports whether all VMs of machines have the tags that their classes say. It skips VMs
// that a call of a dead process may have changed since.
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

// untagged returns a machine whose VM should have other tags, or nothing.
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
		if m == nil || m.Deleted() || !m.Ready() || w.keptAsItIs(m) || w.excuses.lateTags[m.Name] || w.excuses.late[m.Name] {
			continue
		}
		if spec, found := w.specOf(m.Spec.Class.Name); found && !maps.Equal(spec.Tags, vm.Tags) {
			return m.Name
		}
	}
	return ""
}

// keptAsItIs reports whether the driver said that a VM can't be changed, and its machine will not
// be replaced.
func (w *World) keptAsItIs(m *machine.Machine) bool {
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

// Pool returns a pool, in Namespace, of machines of class "small" that need nothing
// to boot from.
func Pool(name string, replicas int32) *machinepool.Pool {
	nothing := ""
	return &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: Namespace, Name: name}}, Spec: machinepool.Spec{
		ClusterName: clusterName, Replicas: &replicas,
		Template: machinepool.Template{Class: machine.ClassRef{Name: "small"}, Bootstrap: machinepool.Bootstrap{DataSecret: &nothing}},
	}}
}
