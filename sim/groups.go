package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// PoolOptions say how the provider provides the groups of a world's pools. The zero value is a
// provider without optional calls that does everything at once.
type PoolOptions struct {
	// Features are what the simulated driver of groups declares.
	Features machinepool.Features
	// Lag is the longest time until the next instance is added or removed, and until a new group
	// works.
	Lag time.Duration
	// Asks is the probability, from 0 to 1, that the provider requests a drain before it removes an
	// instance. It then waits for an hour to be told that the drain is done.
	Asks float64
}

// newGroups returns the provider of groups of a world.
func newGroups(o *PoolOptions, c *catalog, b *bootstrapMaker, a *apis, k *kubelets) *groups.Provider {
	if o == nil {
		o = &PoolOptions{}
	}
	return groups.New(groupWorld{chances{b.ground}, b.stores, b.bootstraps, a, k.region, k}, account{c}, groups.Options(*o))
}

// groupWorld is the world as the provider of groups sees it.
type groupWorld struct {
	chances
	stores     *stores
	bootstraps bootstraps
	apis       *apis
	region     *region
	kubelets   *kubelets
}

// Faults implements groups.World.
func (w groupWorld) Faults() groups.Faults {
	f := w.hazards
	return groups.Faults{LostVM: f.LostVM, DeadBoot: f.DeadBoot, SlowBoot: f.SlowBoot, Capacity: f.Capacity}
}

// Count implements groups.World.
func (w groupWorld) Count(f groups.Fault) {
	w.count([...]Fault{groups.CapacityOut: CapacityOut, groups.VMLost: VMLost, groups.DeadBoot: DeadBoot}[f])
}

// Changed implements groups.World.
func (w groupWorld) Changed() {
	w.changed()
	w.check()
}

// Back implements groups.World.
func (w groupWorld) Back(zone string) time.Time { return w.region.dark[zone] }

// Boots implements groups.World.
func (w groupWorld) Boots(pool object.Key) bool { return w.bootstraps.good(pool, w.Now()) }

// Placed implements groups.World.
func (w groupWorld) Placed(id, zone string) { w.region.zoneOf[id] = zone }

// Removed implements groups.World.
func (w groupWorld) Removed(name, id string) {
	w.region.removed[id] = true
	w.kubelets.apps.Lost(name)
}

// Boot implements groups.World.
func (w groupWorld) Boot() time.Duration { return w.kubelets.boots }

// NoCluster implements groups.World.
func (w groupWorld) NoCluster() bool { return w.kubelets.none }

// Join implements groups.World.
func (w groupWorld) Join(name, id string) {
	w.kubelets.join(&machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}, ProviderID: id})
}

// Ready implements groups.World. Without a cluster no node says otherwise.
func (w groupWorld) Ready(name, id string) bool { return w.kubelets.none || w.stores.isReady(name, id) }

// Seen implements groups.World.
func (w groupWorld) Seen() bool { return !w.apis.down(targetAPI) }

// Silent implements groups.World.
func (w groupWorld) Silent(name, id string) { w.kubelets.ready(name, id, object.Unknown) }

// Recover implements groups.World.
func (w groupWorld) Recover(name, id string) { w.kubelets.recover(name, id) }

// Delete implements groups.World.
func (w groupWorld) Delete(name string) {
	if n, err := w.stores.nodes.Get(context.Background(), object.Key{Name: name}); err == nil {
		_ = w.stores.nodes.Delete(context.Background(), n.Key, n.UID) // read in the same instant: it is there
		w.check()
	}
}
