package sim

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// p30 checks P30 to P35: the size that is ordered is the size that is wanted, instances that are removed
// were chosen and are drained, and nothing outlives its pool.
type p30 struct {
	*World
	poolRecords   map[string]*poolRecord // by UID, also of deleted pools
	deletionCalls map[object.Key]string  // UID of the pool for which DeletePool was last begun
}

func newP30(w *World) *p30 { return &p30{w, map[string]*poolRecord{}, map[object.Key]string{}} }

func (w *p30) see(e event) {
	switch e := e.(type) {
	case stored[*machinepool.Pool]:
		if e.now != nil {
			w.recordPool(e.now)
		} else {
			w.checkPoolGone(e.key)
		}
	case callBegun:
		if p := w.pool(e.call.Object); e.call.Method == machinepool.DeletePool && p != nil {
			w.deletionCalls[p.Key] = p.UID
		}
	case poolCalled:
		w.checkCall(e)
	case dataDeleted:
		w.checkDataDeleted(e.pool)
	case effect:
		w.checkPools()
	}
}

// checkCall checks what a call orders. It ignores late calls of dead processes, but notes those that set
// the size, because they may come between a read and an order of the running process.
func (w *p30) checkCall(e poolCalled) {
	if w.belated {
		if r := w.poolRecords[e.pool.UID]; r != nil && (e.call == machinepool.ScalePool || e.call == machinepool.DeleteInstances) {
			r.sizedLate = w.Now()
		}
		return
	}
	switch e.call {
	case machinepool.CreatePool:
		w.checkSize(e.pool, e.call, e.to)
	case machinepool.ScalePool:
		w.checkOwned(e.pool, e.call)
		w.checkSize(e.pool, e.call, e.to)
	case machinepool.DeletePool:
		w.checkGroupDeleted(e.pool)
	case machinepool.DeleteInstances:
		w.checkOwned(e.pool, e.call)
		w.checkSurplus(e.pool, e.ids)
		w.checkEmptied(e.pool, e.ids, machinepool.ExitScaleDown)
	case machinepool.ReplaceInstance:
		w.checkEmptied(e.pool, e.ids, machinepool.ExitReplace)
	case machinepool.InstancesDrained:
		w.checkEmptied(e.pool, e.ids, machinepool.ExitProvider)
	}
}

// poolRecord is what the checks remember of a pool.
type poolRecord struct {
	last      *machinepool.Pool
	sizes     []poolSize // the sizes that orders under way may be for, oldest first
	owned     time.Time  // when the provider began to own the size; zero: it does not
	released  time.Time  // when the provider last stopped owning the size
	sizedLate time.Time  // when a late call of a dead process last set the size of the group
}

// poolSize is the number of instances that were wanted from a time on.
type poolSize struct {
	n  int32
	at time.Time
}

// wanted returns the lowest and the highest size that orders under way may be for.
func (w *p30) wanted(r *poolRecord) (least, most int32) {
	hung := time.Duration(0) // how much longer a call may be under way because it hangs
	if w.faults[CallHung] > 0 {
		hung = w.o.Faults.HangFor
	}
	for len(r.sizes) > 1 && w.longAgo(r.sizes[1].at.Add(hung)) {
		r.sizes = r.sizes[1:]
	}
	least, most = r.sizes[0].n, r.sizes[0].n
	for _, s := range r.sizes {
		least, most = min(least, s.n), max(most, s.n)
	}
	return least, most
}

// recordPool records a change of a pool.
func (w *p30) recordPool(p *machinepool.Pool) {
	now := w.Now()
	r := w.poolRecords[p.UID]
	if r == nil {
		r = &poolRecord{sizes: []poolSize{{p.Spec.Wanted(), now}}}
		w.poolRecords[p.UID] = r
	} else {
		w.checkPoolChange(r, p)
	}
	if last := r.sizes[len(r.sizes)-1].n; last != p.Spec.Wanted() {
		r.sizes = append(r.sizes, poolSize{p.Spec.Wanted(), now})
	}
	if !r.owned.IsZero() && !w.autoscaled(p) {
		r.released = now
	}
	trackSince(&r.owned, now, w.autoscaled(p))
	r.last = p
	if g := w.groups.Of(p.Key); g != nil && g.ID == p.Status.GroupID && !p.Deleted() && !w.excuses.forgotten[p.UID] {
		delete(w.excuses.lateGroups, p.Key) // it was adopted
	}
}

// checkPoolChange checks that phases change along the table (P32), and that the manager does not change
// the size that a user wants (P31).
func (w *p30) checkPoolChange(r *poolRecord, p *machinepool.Pool) {
	from, to := string(r.last.Status.Phase), string(p.Status.Phase)
	if from != to && !slices.ContainsFunc(machinepool.PhaseTable().Edges, func(e machine.Edge) bool { return e.From == from && e.To == to }) {
		w.violate("P32", "pool %s went from phase %q to %q", p.Name, from, to)
	}
	switch {
	case !w.acting || w.belated:
	case r.last.Spec.Wanted() != p.Spec.Wanted() && r.owned.IsZero():
		w.violate("P31", "pool %s wants %d instances instead of %d, but no user changed its size", p.Name, p.Spec.Wanted(), r.last.Spec.Wanted())
	case p.Deleted() && !r.last.Deleted():
		w.violate("P35", "pool %s was deleted, but not by a user", p.Name)
	}
}

// checkPoolGone checks that a pool's group and bootstrap data are deleted before its record (P35).
func (w *p30) checkPoolGone(k object.Key) {
	if w.groups.Of(k) != nil && !w.excuses.lateGroups[k] {
		w.violate("P35", "pool %s is gone, but its group still exists", k.Name)
	}
	if w.acting && w.bootstraps[k] != nil && w.bootstraps[k].made {
		w.violate("P35", "pool %s is gone, but its bootstrap data still exist", k.Name)
	}
}

// checkDataDeleted checks that a pool's bootstrap data are deleted after its group (P35).
func (w *p30) checkDataDeleted(k object.Key) {
	if w.groups.Of(k) != nil && !w.excuses.lateGroups[k] && !w.belated {
		w.violate("P35", "the bootstrap data of pool %s were deleted, but its group still exists", k.Name)
	}
}

// checkOwned checks that the manager orders no size while the provider owns it (P31).
func (w *p30) checkOwned(p *machinepool.Pool, call machinepool.Call) {
	if r := w.poolRecords[p.UID]; r != nil && !r.owned.IsZero() && !w.lately(r.owned) {
		w.violate("P31", "%s was called for pool %s, whose size is the provider's", call, p.Name)
	}
}

// resizable reports whether something other than users of the pool sets the size of a group, or may
// just have done so.
func (w *p30) resizable(r *poolRecord, g *groups.Group) bool {
	return !r.owned.IsZero() || w.lately(r.released) || w.lately(r.sizedLate) || g != nil && w.lately(g.Resized)
}

// lately reports whether an order from before the time then can still take effect, even by a call that hangs.
func (w *p30) lately(then time.Time) bool {
	return !then.IsZero() && !w.longAgo(then.Add(w.o.Faults.HangFor))
}

// checkSize checks that an ordered size is a wanted size (P30). A group that has to shrink may be ordered
// to keep its size, because its instances are then removed by name.
func (w *p30) checkSize(p *machinepool.Pool, call machinepool.Call, to int32) {
	r, g := w.poolRecords[p.UID], w.groups.Of(p.Key)
	if r == nil || w.resizable(r, g) {
		return
	}
	least, most := w.wanted(r)
	shrinks := call == machinepool.ScalePool && (g == nil || to <= g.Target) // a lost group has no size
	switch {
	case to < least:
		w.violate("P30", "pool %s was ordered %d instances, and %d are wanted", p.Name, to, least)
	case to > most && !shrinks:
		w.violate("P30", "pool %s was ordered %d instances, and only %d are wanted", p.Name, to, most)
	}
}

// checkSurplus checks that only surplus instances are removed (P30).
func (w *p30) checkSurplus(p *machinepool.Pool, ids []string) {
	r, g := w.poolRecords[p.UID], w.groups.Of(p.Key)
	if r == nil || g == nil || w.resizable(r, g) {
		return
	}
	left := g.Target
	for _, id := range ids {
		if i := g.Find(id); i != nil && !i.Terminating {
			left--
		}
	}
	if least, _ := w.wanted(r); left < least && left < g.Target {
		w.violate("P30", "pool %s is told to go down to %d instances, and %d are wanted", p.Name, left, least)
	}
}

// checkEmptied checks that an instance that the manager removes was chosen for that before, that the
// choice was stored, and that no pods are on its node, unless its drain has reached its timeout (P34).
func (w *p30) checkEmptied(p *machinepool.Pool, ids []string, exit machinepool.Exit) {
	stored := w.pool(p.Key)
	if stored == nil || w.poolRecords[p.UID] == nil {
		return
	}
	for _, id := range ids {
		at := slices.IndexFunc(stored.Status.Leaving, func(l machinepool.Leaving) bool { return l.ProviderID == id && l.Exit == exit })
		if at < 0 {
			w.violate("P34", "instance %s of pool %s is removed (%s), but was never chosen", id, p.Name, exit)
			return
		}
		_, i := w.groups.Instance(id)
		if i == nil || w.drainIsOver(&stored.Status.Leaving[at]) {
			continue
		}
		n, err := w.nodes.Get(context.Background(), object.Key{Name: i.Name})
		if running := w.podsStaying(i.Name); err == nil && running > 0 && w.longAgo(n.CreatedAt) {
			w.violate("P34", "instance %s of pool %s is removed with %d pods on it", id, p.Name, running)
		}
	}
}

// checkGroupDeleted checks that the manager does not delete the group of a pool that is not being deleted
// (P35). There are two exceptions. An orphaned group may still be being deleted when another pool of its
// name is created. And a late call of a dead process may have removed the record of the pool meanwhile;
// then there is no group that this call could delete.
func (w *p30) checkGroupDeleted(p *machinepool.Pool) {
	stored := w.pool(p.Key)
	if stored == nil || stored.Deleted() {
		return
	}
	if stored.UID != p.UID && w.deletionCalls[p.Key] == p.UID && w.groups.Of(p.Key) == nil {
		return
	}
	if orphan := p.UID == ""; !orphan || w.longAgo(stored.CreatedAt) || stored.Status.GroupID == p.Status.GroupID {
		w.violate("P35", "the group of pool %s was deleted, but the pool was not", p.Name)
	}
}

// checkPools checks that each instance belongs to one pool and is named once (P33), and that no group
// outlives its pool (P35).
func (w *p30) checkPools() {
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
	for _, g := range w.groups.All() {
		if w.pool(g.Pool) == nil && !w.excuses.lateGroups[g.Pool] {
			w.violate("P35", "the pool %s is gone, but a group of it exists", g.Pool.Name)
		}
	}
}
