package rollout

import "slices"

// orders compares the working copy with the fleet. The new set comes last: a raise may need the
// room that lowering an old set makes.
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

// postpone takes back what would order a size above the ceiling: a scale-down that waits for
// removals.
func (d *decision) postpone(f Fleet) {
	for i := 0; i <= len(d.old); i++ {
		if m := d.at(i); m.spec > d.ceiling {
			m.spec = int64(f.Sets[m.index].ordered())
		}
	}
}

// order appends an order. It is filled in place, since it is large. The numbers of a lowering are
// in it already.
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

// whyNew completes the reason for resizing the new set; oldPresent is how many machines there may
// be in the old ones after this decision.
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

// terminatingOld returns how many old machines are being deleted and count.
func (d *decision) terminatingOld() (n int64) {
	for i := range d.old {
		n += d.old[i].counted
	}
	return n
}

// awaitRemoval names the oldest set that has yet to remove machines, or else the oldest that may be
// removing some because it does not know that it was raised. It reports whether there is one.
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

// wait returns why nothing is ordered. With a new set one of these holds: some set has a surplus,
// or the new set lacks available machines, or all is done. Assume neither of the first two.
//
// If old machines are ordered, retire has a budget of T − F, T being the machines ordered and F the
// floor. With the new set at R, T > R >= F. With the new set below R, only T = R + S can have kept
// it from growing, and R + S > F. So the budget is not empty; it is spent on an unavailable old
// machine or, if all T are available, on an available one. Either way there is an order. (Without
// any surplus all available machines are secure.)
//
// If none are ordered, the new set is at R, since there is room for it, and has its R machines, all
// available.
//
// If terminating machines count, they may take that room, and the rollout waits for them.
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
		return removing // until then some of the available machines may be about to be removed
	case oldOrdered > 0:
		return Why{
			Reason: ReasonFloor, Set: name, Count: lacking,
			Total: d.ordered, Available: d.usable, Floor: d.floor, Ceiling: d.ceiling,
		}
	}
	return Why{Reason: ReasonNewUnavailable, Set: name, Count: lacking, Total: current.spec, Available: current.usable()}
}

// awaitPaused names the oldest paused set that does not have its final size: an old one that has
// machines or orders some, or a new one whose size is not R.
func (d *decision) awaitPaused(f Fleet) (Why, bool) {
	for i := 0; i <= len(d.old); i++ {
		m := d.at(i)
		there := max(m.spec, m.actual)
		last := i == len(d.old)
		if !m.paused || last && m.spec == d.replicas || !last && there == 0 {
			continue
		}
		return Why{Reason: ReasonPaused, Set: f.Sets[m.index].Name, Count: there}, true
	}
	return Why{}, false
}
