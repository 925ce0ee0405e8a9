package sim

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// poolRecord is what the checks remember of a pool.
type poolRecord struct {
	last     *machinepool.Pool
	sizes    []poolSize // that orders may be under way for, oldest first
	owned    time.Time  // since when the provider owns the size, or zero
	released time.Time  // when that ended last
}

// poolSize is how many instances were wanted from a time on.
type poolSize struct {
	n  int32
	at time.Time
}

// wanted returns the fewest and the most instances that orders may be under way for.
func (w *World) wanted(r *poolRecord) (least, most int32) {
	for len(r.sizes) > 1 && w.longAgo(r.sizes[1].at) {
		r.sizes = r.sizes[1:]
	}
	least, most = r.sizes[0].n, r.sizes[0].n
	for _, s := range r.sizes {
		least, most = min(least, s.n), max(most, s.n)
	}
	return least, most
}

// autoscaled reports whether the provider owns the size of a pool.
func (w *World) autoscaled(p *machinepool.Pool) bool {
	policy := w.poolPolicy()
	return policy.Autoscaled || policy.Keys.Autoscaled != "" && p.Annotations[policy.Keys.Autoscaled] == "true"
}

func (w *World) poolPolicy() *machinepool.Policy {
	if p := w.o.Manager.PoolPolicy; p != nil {
		return p
	}
	return machinepool.DefaultPolicy()
}

// sawPool records a change of a pool.
func (w *World) sawPool(p *machinepool.Pool) {
	now := w.clock.now
	r := w.ledger.pools[p.UID]
	if r == nil {
		r = &poolRecord{sizes: []poolSize{{p.Spec.Wanted(), now}}}
		w.ledger.pools[p.UID] = r
	} else {
		w.checkPoolChange(r, p)
	}
	if last := r.sizes[len(r.sizes)-1].n; last != p.Spec.Wanted() {
		r.sizes = append(r.sizes, poolSize{p.Spec.Wanted(), now})
	}
	if !r.owned.IsZero() && !w.autoscaled(p) {
		r.released = now
	}
	since(&r.owned, now, w.autoscaled(p))
	r.last = p
	if g := w.groups.all[p.Key]; g != nil && g.id == p.Status.GroupID && !p.Deleted() && !w.ledger.forgotten[p.UID] {
		delete(w.ledger.lateGroups, p.Key) // it was adopted
	}
}

// checkPoolChange: phases change along the table (P32), and the manager does not change the size
// that a user wants (P31).
func (w *World) checkPoolChange(r *poolRecord, p *machinepool.Pool) {
	from, to := string(r.last.Status.Phase), string(p.Status.Phase)
	if from != to && !slices.ContainsFunc(machinepool.PhaseTable().Edges, func(e machine.Edge) bool { return e.From == from && e.To == to }) {
		w.violate("P32", "pool %s went from phase %q to %q", p.Name, from, to)
	}
	switch {
	case !w.ledger.acting || w.ledger.belated:
	case r.last.Spec.Wanted() != p.Spec.Wanted() && r.owned.IsZero():
		w.violate("P31", "pool %s is to have %d instances, not %d, and no user has said so", p.Name, p.Spec.Wanted(), r.last.Spec.Wanted())
	case p.Deleted() && !r.last.Deleted():
		w.violate("P35", "pool %s was deleted, and no user has done it", p.Name)
	}
}

// lostPool runs when a pool's record is gone: what was made for the pool is deleted before.
func (w *World) lostPool(k object.Key) {
	if w.groups.all[k] != nil && !w.ledger.lateGroups[k] {
		w.violate("P35", "pool %s is gone, and its group is there", k.Name)
	}
	if w.ledger.acting && w.bootstraps[k] != nil && w.bootstraps[k].made {
		w.violate("P35", "pool %s is gone, and its bootstrap data are there", k.Name)
	}
	delete(w.bootstraps, k)
	w.remake(k)
}

// checkDataGo: a pool's bootstrap data are deleted after its group (P35).
func (w *World) checkDataGo(k object.Key) {
	if w.groups.all[k] != nil && !w.ledger.lateGroups[k] && !w.ledger.belated {
		w.violate("P35", "the bootstrap data of pool %s go, and its group is there", k.Name)
	}
}

// pool returns a pool as it is stored, or nil if it is gone.
func (w *World) pool(k object.Key) *machinepool.Pool {
	p, err := w.pools.Get(context.Background(), k)
	if err != nil {
		return nil
	}
	return p
}

// goingPool reports whether a pool is gone or being deleted.
func (w *World) goingPool(k object.Key) bool {
	p := w.pool(k)
	return p == nil || p.Deleted()
}

// ordered returns what is known of the pool that an order is about. It returns nil for an order of
// a dead process, from which nothing is expected.
func (w *World) ordered(p *machinepool.Pool) *poolRecord {
	if w.ledger.belated {
		return nil
	}
	return w.ledger.pools[p.UID]
}

// checkOwned: while the provider owns a size, the manager orders none (P31).
func (w *World) checkOwned(p *machinepool.Pool, call machinepool.Call) {
	if r := w.ordered(p); r != nil && w.longAgo(r.owned) {
		w.violate("P31", "%s was called for pool %s, whose size is the provider's", call, p.Name)
	}
}

// resizable reports whether something other than users of the pool sets the size of a group, or may
// just have done so.
func (w *World) resizable(r *poolRecord, g *group) bool {
	lately := func(t time.Time) bool { return !t.IsZero() && !w.longAgo(t) }
	return !r.owned.IsZero() || lately(r.released) || g != nil && lately(g.resized)
}

// checkSize: an ordered size is a wanted size (P30). A shrinking group may be told to keep its
// size, because its instances are then removed by name.
func (w *World) checkSize(p *machinepool.Pool, call machinepool.Call, to int32) {
	r, g := w.ordered(p), w.groups.all[p.Key]
	if r == nil || w.resizable(r, g) {
		return
	}
	least, most := w.wanted(r)
	shrinks := call == machinepool.ScalePool && (g == nil || to <= g.target) // one that is lost has no size
	switch {
	case to < least:
		w.violate("P30", "pool %s was ordered %d instances, and %d are wanted", p.Name, to, least)
	case to > most && !shrinks:
		w.violate("P30", "pool %s was ordered %d instances, and only %d are wanted", p.Name, to, most)
	}
}

// checkSurplus: only surplus instances are removed (P30).
func (w *World) checkSurplus(p *machinepool.Pool, ids []string) {
	r, g := w.ordered(p), w.groups.all[p.Key]
	if r == nil || g == nil || w.resizable(r, g) {
		return
	}
	left := g.target
	for _, id := range ids {
		if i := g.find(id); i != nil && !i.Going {
			left--
		}
	}
	if least, _ := w.wanted(r); left < least && left < g.target {
		w.violate("P30", "pool %s is told to go down to %d instances, and %d are wanted", p.Name, left, least)
	}
}

// checkEmptied: an instance that the manager removes was chosen before, for that reason, and the
// choice was stored. Nothing runs on its node, unless its drain's time is up (P34).
func (w *World) checkEmptied(p *machinepool.Pool, ids []string, exit machinepool.Exit) {
	stored := w.pool(p.Key)
	if stored == nil || w.ordered(p) == nil {
		return
	}
	for _, id := range ids {
		at := slices.IndexFunc(stored.Status.Leaving, func(l machinepool.Leaving) bool { return l.ProviderID == id && l.Exit == exit })
		if at < 0 {
			w.violate("P34", "instance %s of pool %s goes (%s), and was never chosen", id, p.Name, exit)
			return
		}
		_, i := w.groups.instance(id)
		if i == nil || w.drainIsOver(&stored.Status.Leaving[at]) {
			continue
		}
		n, err := w.nodes.Get(context.Background(), object.Key{Name: i.name})
		if running := w.apps.staying(i.name); err == nil && running > 0 && w.longAgo(n.CreatedAt) {
			w.violate("P34", "instance %s of pool %s goes with %d pods on it", id, p.Name, running)
		}
	}
}

// drainIsOver reports whether the drain of an instance may have used up its time.
func (w *World) drainIsOver(l *machinepool.Leaving) bool {
	return w.faults[ClockJump] > 0 || w.clock.now.Sub(l.Since) >= w.poolPolicy().DrainTimeout-inFlight
}

// checkGroupGoes: the manager does not delete the group of a pool that stays (P35). A group whose
// pool was gone may still be being deleted when another pool of that name is made.
func (w *World) checkGroupGoes(p *machinepool.Pool) {
	stored := w.pool(p.Key)
	if stored == nil || stored.Deleted() || w.ledger.belated {
		return
	}
	if orphan := p.UID == ""; !orphan || w.longAgo(stored.CreatedAt) || stored.Status.GroupID == p.Status.GroupID {
		w.violate("P35", "the group of pool %s was deleted, and the pool was not", p.Name)
	}
}

// checkPools checks pools and groups against what must be true at every moment: an instance belongs
// to one pool and is named once (P33), and no group outlives its pool (P35).
func (w *World) checkPools() {
	if w.o.Pools == nil {
		return
	}
	named := map[string]string{}
	for _, p := range w.pools.all() {
		for _, id := range p.Spec.ProviderIDs {
			if other, twice := named[id]; twice || id == "" {
				w.violate("P33", "pools %s and %s name instance %q", other, p.Name, id)
			}
			named[id] = p.Name
		}
		refs := map[machinepool.NodeRef]bool{}
		for _, ref := range p.Status.NodeRefs {
			if refs[ref] {
				w.violate("P33", "pool %s names node %s twice", p.Name, ref.Name)
			}
			refs[ref] = true
		}
	}
	for _, g := range w.groups.sorted() {
		if w.pool(g.pool) == nil && !w.ledger.lateGroups[g.pool] {
			w.violate("P35", "a group of pool %s is there, and the pool is gone", g.pool.Name)
		}
	}
}

// poolDrainEnds reports whether the drain of a pool's node may have used up its time now, or may no
// longer be one of ours.
func (w *World) poolDrainEnds(n *machine.Node) bool {
	for _, p := range w.pools.all() {
		for i := range p.Status.Leaving {
			if l := &p.Status.Leaving[i]; l.ProviderID == n.ProviderID {
				return p.Deleted() || w.drainIsOver(l)
			}
		}
	}
	return true
}
