package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Options configure a World. The zero value is a world without faults.
type Options struct {
	Seed uint64
	// Boot is how long a VM takes from its creation until it joins. Zero: 1 min.
	Boot time.Duration
	// Update is how long the agent on a node takes to update it in place. Zero: 2 min.
	Update time.Duration
	Faults Faults
	// NoCluster leaves the target cluster out: machines end at phase Available.
	NoCluster bool
	// Driver makes the driver of each life of the manager from the world. Nil: the simulated
	// provider's own driver.
	Driver func(*World) driver.Driver
	// Manager holds policies and sizes. Its ports, clock and hooks are the world's, except for
	// Hooks that are set: these are called too.
	Manager manager.Options
	// Drain says how nodes are drained. Nil: drain.DefaultPolicy. DrainLimit bounds how many are
	// drained at a time.
	Drain      *drain.Policy
	DrainLimit drains.Limit
	// UpdatableTags makes the simulated provider's driver declare that it can change the tags of
	// VMs; see TagClass. If it is false, the driver declares nothing.
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
}

func (o *Options) resync() time.Duration {
	if o.Manager.Resync > 0 {
		return o.Manager.Resync
	}
	return 10 * time.Minute
}

// Property is something that must hold in a world at any time. The world checks it after every
// effect on an object or a VM, from any source. It checks what happens to pods alone with the next
// of these effects. Only the error is kept of the state, so it should say what was seen.
type Property struct {
	// Name tells properties apart where one is broken.
	Name string
	// Check returns an error if the property does not hold. It must not change the world.
	Check func(*World) error
}

// World is a manager and everything around it. New makes it. It is not safe for concurrent use.
type World struct {
	*ground
	*stores
	*apis
	*managerClock
	*policies
	*past
	o Options

	provider   *drivertest.Memory
	apps       *apps
	volumes    *volumes
	groups     *groups
	bootstraps bootstraps
	remade     map[object.Key]bool // pools that are to be made again when they are gone

	end   time.Time            // when a run is over; zero: never
	zones []string             // by name of their class, in the order of its making
	dark  map[string]time.Time // until when a zone is out

	vms  map[string]string    // every VM that ever was, with its machine's name
	gone map[string]bool      // VMs that no longer exist
	born map[string]time.Time // when a machine's VM was made
	// zoneOf is the zone of a VM. lostNodes are the VMs whose nodes are never ready again.
	made      map[string]time.Time // when a VM was
	zoneOf    map[string]string
	lostNodes map[string]bool

	actions map[Action]int // of users that took effect

	kills, passes, steps, collected, orphans, writes int
	renewals                                         int // of bootstrap tokens of pools
	driverCalls                                      map[codes.Call]int
	poolCalls                                        map[machinepool.Call]int
	poolRefusals                                     map[PoolRefusal]int
	refusals                                         map[Refusal]int
}

// clusterName is the cluster that all VMs of the fleet are in.
const clusterName = "blue"

// AddClass stores a class of the simulated provider, and its secret.
func (w *World) AddClass(name string) error {
	ctx := context.Background()
	class := w.provider.Class(object.Key{Namespace: Namespace, Name: name}, drivertest.MemorySpec{Cluster: clusterName, Size: name})
	class.SecretRef = &object.Key{Name: "boot"}
	class.NodeTemplate = &machine.NodeShape{Zone: "zone-" + name}
	w.zones = append(w.zones, name)
	_, err := w.classes.Create(ctx, class)
	_, exists := w.secrets.Create(ctx, w.provider.Secret(object.Key{Namespace: Namespace, Name: "boot"}))
	if errors.Is(exists, store.ErrAlreadyExists) {
		exists = nil
	}
	return errors.Join(err, exists)
}

// Close ends all passes that are under way. Nothing happens in the world after it.
func (w *World) Close() {
	if w.process != nil {
		w.process.dead = true
	}
	w.o.Faults = Faults{}
	w.clock.end()
}

// Provider returns the simulated provider.
func (w *World) Provider() *drivertest.Memory { return w.provider }

// AddApp starts a workload.
func (w *World) AddApp(a App) { w.apps.start(a) }

// Healthy is how many pods of an app are healthy.
func (w *World) Healthy(app string) int { return w.apps.healthy(app) }

// PodsOn returns how many pods on a node have not finished.
func (w *World) PodsOn(node string) (n int) {
	for _, p := range w.apps.on(node) {
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
	return d != nil && complete(d, w.fleetOf(d))
}

// Made returns how many machines there have ever been.
func (w *World) Made() int { return len(w.lives) }

// StopFaults stops all faults that are not under way yet.
func (w *World) StopFaults() {
	w.faultsStopped = true
	w.setClock(0)
	w.outages, w.dark = [apiCount]outage{}, map[string]time.Time{}
	w.volumes.stopFaults()
	for _, vm := range w.provider.VMs() {
		w.recover(vm.Name, vm.ID)
	}
	if w.o.Pools != nil {
		w.groups.stopFaults()
	}
	w.o.Faults = Faults{CacheLag: w.o.Faults.CacheLag, Latency: w.o.Faults.Latency, PodEnd: w.o.Faults.PodEnd}
	if w.process != nil {
		w.process.killAt = 0
	}
}

// ErrLimit is what Until returns when its goal was not reached.
var ErrLimit = errors.New("sim: the goal was not reached")

// errOver ends a run whose end does not matter.
var errOver = errors.New("sim: the run is over")

// over reports whether anything that still happens is of no interest.
func (w *World) over() bool { return !w.end.IsZero() && w.clock.now.After(w.end) }

// Until lets time pass until a goal is reached, for at most limit. It returns ErrLimit, or the
// first violation of what must hold at any time.
func (w *World) Until(goal func() bool, limit time.Duration) error {
	end := w.clock.now.Add(limit)
	for !goal() {
		if err := w.violated(); err != nil {
			return err
		}
		if w.over() {
			return errOver
		}
		if !w.clock.step(end) {
			return fmt.Errorf("%w within %s", ErrLimit, limit)
		}
	}
	return w.violated()
}

// Run lets time pass.
func (w *World) Run(d time.Duration) error {
	end := w.clock.now.Add(d)
	for w.clock.step(end) && len(w.violations) == 0 {
		if w.over() {
			return errOver
		}
	}
	if err := w.violated(); err != nil {
		return err
	}
	w.clock.now = end
	return nil
}
