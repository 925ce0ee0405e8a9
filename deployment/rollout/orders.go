package rollout

import "slices"

// orders returns the differences between the working copy and the fleet. The new set comes last: its raise may
// need the room that lowering an old set makes.
func (d *decision) orders(f Fleet, out []Scale) []Scale {
	oldPresent := int64(0)
	d.postpone(f)
	for i := range d.old {
		m := &d.old[i]
		oldPresent += m.present()
		set := &f.Sets[m.index]
		if from := set.ordered(); int64(from) != m.spec {
			var order *Scale
			out, order = d.order(out, set.Name, from, m)
			d.whyOld(&order.Why, m)
		}
	}
	if !d.hasNew {
		return out
	}
	m := &d.current
	set := &f.Sets[m.index]
	if from := set.ordered(); int64(from) != m.spec {
		var order *Scale
		out, order = d.order(out, set.Name, from, m)
		d.whyNew(&order.Why, m, int64(from), oldPresent)
	}
	return out
}

// postpone takes back orders for a size above the ceiling. A scale-down that must wait for removals could
// otherwise order such a size.
func (d *decision) postpone(f Fleet) {
	for i := 0; i <= len(d.old); i++ {
		if m := d.at(i); m.spec > d.ceiling {
			m.spec = int64(f.Sets[m.index].ordered())
		}
	}
}

// order appends an order, with the numbers of a set that is lowered. It is filled in where it is, because it is
// large; the caller completes its reason.
func (d *decision) order(out []Scale, name string, from int32, m *member) ([]Scale, *Scale) {
	if len(out) == cap(out) {
		out = slices.Grow(out, len(d.old)+1)
	}
	out = out[:len(out)+1]
	order := &out[len(out)-1]
	order.Name, order.From, order.To = name, from, int32(m.spec)

	why := &order.Why
	lost := min(m.available, int64(from)) - m.usable()
	why.Reason, why.Set, why.Kept = "", "", 0
	why.Count = int64(from) - m.spec
	why.Share = min(m.shared, max(0, why.Count))
	why.Unavailable = why.Count - lost
	if m.marked > 0 && why.Count > 0 {
		why.Share = min(m.marked, why.Count)
	}
	why.Total, why.Available, why.Floor, why.Ceiling = d.ordered, d.usable, d.floor, d.ceiling
	return out, order
}

// whyOld completes the reason for resizing an old set.
func (d *decision) whyOld(why *Why, m *member) {
	switch {
	case why.Count < 0:
		*why = Why{
			Reason: ReasonRestored, Count: -why.Count,
			Total: d.ordered, Available: d.usable, Floor: d.floor, Ceiling: d.ceiling,
		}
	case m.marked > 0:
		why.Reason = ReasonMarked
	case m.shared > 0:
		why.Reason = ReasonScaleDown
	case d.inPlace:
		why.Reason = d.inPlaceReason(m)
	case why.Unavailable == why.Count:
		why.Reason = ReasonOldUnavailable
	default:
		why.Reason = ReasonOldAvailable
	}
}

// whyNew completes the reason for resizing the new set. oldPresent is how many machines the old sets may have
// after this decision.
func (d *decision) whyNew(why *Why, m *member, from, oldPresent int64) {
	switch {
	case m.spec > from:
		*why = Why{
			Reason: ReasonNewGrows, Count: m.spec - from, Kept: max(0, min(m.actual, m.spec)-from),
			Total: from + oldPresent, Ceiling: d.ceiling,
		}
	case m.marked > 0:
		why.Reason = ReasonMarked
	case m.shared > 0:
		why.Reason = ReasonScaleDown
	default:
		why.Reason, why.Total, why.Ceiling = ReasonNewAboveReplicas, from, d.replicas
	}
}

// terminatingOld returns how many terminating machines of old sets count toward R + S.
func (d *decision) terminatingOld() (n int64) {
	for i := range d.old {
		n += d.old[i].counted
	}
	return n
}

// awaitRemoval returns a wait for the oldest set that has yet to remove machines, or else for the oldest set
// that may be removing some because it has not observed that it was raised. ok: there is one.
func (d *decision) awaitRemoval(f Fleet) (why Why, ok bool) {
	for i := len(d.old); i >= 0; i-- {
		if m := d.at(i); m.surplus() > 0 {
			why = Why{Reason: ReasonRemoval, Set: f.Sets[m.index].Name, Count: m.surplus()}
		}
	}
	for i := 0; i <= len(d.old) && why == (Why{}); i++ {
		if m := d.at(i); m.unseen > 0 {
			why = Why{Reason: ReasonUnseen, Set: f.Sets[m.index].Name, Count: m.unseen}
		}
	}
	return why, why != (Why{})
}

// wait returns why nothing is ordered. If there is a new set, one of three cases applies: some set has a
// surplus, or the new set lacks available machines, or the rollout is done. Proof that there is no fourth case:
// assume that no set has a surplus and that the new set lacks none.
//
// First, assume that old machines are ordered. Let T machines be ordered in all sets, and F be the floor. The
// budget of retire is T − F. If the new set is at R, T > R >= F. If it is below R, only T = R + S can have kept
// it from growing, and R + S > F. So the budget is not zero. It is spent on an unavailable old machine or, if
// all T are available, on an available one. (Without any surplus all available machines are secure.) Either way
// there is an order, a contradiction.
//
// So no old machines are ordered. Then the new set is at R, because there is room for it, and has its R
// machines, all available: the rollout is done.
//
// If terminating machines count (Fleet.Strict), they may take that room, and the rollout waits for them.
func (d *decision) wait(f Fleet) Why {
	if !d.hasNew {
		return Why{Reason: ReasonNoNewSet, Count: d.ordered}
	}
	if Done(f) {
		return Why{Reason: ReasonDone, Count: d.replicas}
	}
	if why, paused := d.awaitPaused(f); paused {
		return why
	}
	oldOrdered := int64(0)
	for i := range d.old {
		oldOrdered += d.old[i].spec
	}
	current, name := &d.current, f.Sets[d.current.index].Name
	removing, some := d.awaitRemoval(f)
	if !some {
		removing = Why{Reason: ReasonDone, Count: d.replicas}
	}
	lacking := current.lacking()
	switch room := d.terminatingOld(); {
	case current.spec < d.replicas && room > 0 && !some:
		return Why{Reason: ReasonQuota, Set: name, Count: room, Total: current.spec, Ceiling: d.ceiling}
	case lacking == 0, current.spec < d.replicas && some:
		return removing
	case oldOrdered > 0 && d.usable > d.floor && some:
		return removing // until then some available machines may be among those to be removed
	case oldOrdered > 0:
		return Why{
			Reason: ReasonFloor, Set: name, Count: lacking,
			Total: d.ordered, Available: d.usable, Floor: d.floor, Ceiling: d.ceiling,
		}
	}
	return Why{Reason: ReasonNewUnavailable, Set: name, Count: lacking, Total: current.spec, Available: current.usable()}
}

// awaitPaused returns a wait for the oldest paused set that does not have its final size: an old set that has
// machines or a size, or a new set whose size is not R.
func (d *decision) awaitPaused(f Fleet) (Why, bool) {
	for i := 0; i <= len(d.old); i++ {
		m := d.at(i)
		machines := max(m.spec, m.actual)
		isNew := i == len(d.old)
		if !m.paused || isNew && m.spec == d.replicas || !isNew && machines == 0 {
			continue
		}
		return Why{Reason: ReasonPaused, Set: f.Sets[m.index].Name, Count: machines}, true
	}
	return Why{}, false
}
