package rollout

// Select orders machines of one old set to be updated in place.
type Select struct {
	// Name is the set's name, as in [Set.Name].
	Name string
	// Count is how many of its selectable machines are selected: at least 1, at most
	// [Set.Selectable].
	Count int32
	// Why is the reason.
	Why Why
}

// InPlace decides the next step of a rollout that updates old machines instead of replacing them, after which
// the caller moves them to the new set. For each move, the caller lowers the size of the set that the machine
// leaves by one, and raises that of the new set by one. Machines stop working while they are updated. The
// caller counts them as [Set.Selected] from their selection until they are moved or have failed. Bounds, orders
// and how to carry them out are as for [Step].
//
//  1. A new set above R is lowered to R; what is ordered above R + S is shared, as in Step.
//  2. Old sets create no machines: their sizes are lowered to the machines that they have. The new set
//     grows as far as R and R + S allow, less the machines that are selected already. So with a surge,
//     new machines are created first; as many old ones are left over in the end.
//  3. Once the new set has the size R, old sets shrink as in Step.
//  4. Machines are selected, from the oldest set first: no more than are available above the floor, and no
//     more than the new set lacks to R. A set that has yet to remove machines is left out. Once machines
//     have failed, no more are selected or under way than may still fail ([Fleet.StopAfter]).
//
// InPlace removes no machine because it is unavailable or because its update failed. It waits until
// the machine recovers, or until the caller replaces it for its health.
//
// The last step is left out with [Fleet.Manual], because the user selects machines, and with
// [Fleet.NoSelect].
//
// InPlace builds the orders in out and the selections in selects, and replaces their contents. The
// selections are valid if the orders are carried out, but need not wait for them.
func InPlace(f Fleet, out []Scale, selects []Select) ([]Scale, []Select, Why) {
	var array [inline]member
	storage := array[:]
	if len(f.Sets) > inline {
		storage = make([]member, len(f.Sets))
	}
	d := decision{inPlace: true}
	d.old = storage[:d.open(f, storage, f.newSet())]
	if d.hasNew {
		d.dropMissing()
		d.trim()
	}
	d.scaleDown()
	d.growBeside(d.underWay(f))
	if d.hasNew && d.current.spec == d.replicas {
		d.retire()
	}
	out = d.orders(f, out[:0])
	selects = d.selects(f, selects[:0])
	if n := len(out) + len(selects); n > 0 {
		return out, selects, Why{Reason: ReasonOrdered, Count: int64(n)}
	}
	return out, selects, d.waitInPlace(f)
}

// dropMissing lowers old sets to the machines that they have. It removes no existing machine.
func (d *decision) dropMissing() {
	for i := range d.old {
		m := &d.old[i]
		if !m.paused {
			m.spec = min(m.spec, m.actual)
			m.marked = min(m.marked, m.spec) // a machine that does not exist can't be chosen for deletion
		}
	}
}

// underWay returns how many machines of old sets will soon be in the new one.
func (d *decision) underWay(f Fleet) (n int64) {
	for i := range d.old {
		m := &d.old[i]
		n += min(max(int64(f.Sets[m.index].Selected), 0), m.spec)
	}
	return n
}

// growBeside grows the new set as grow does, but not for the machines that will move to it from old sets. At
// least R machines are still ordered in all sets, because these count in the old sets.
func (d *decision) growBeside(underWay int64) {
	before := d.current.spec
	d.grow()
	d.current.spec = max(before, min(d.current.spec, d.replicas-underWay))
}

// selectable returns how many machines of an old set may be selected. A set that has yet to remove
// some may be about to remove any of them.
func (m *member) selectable(f Fleet) int64 {
	if m.surplus()+m.unseen > 0 || m.paused {
		return 0
	}
	return min(max(int64(f.Sets[m.index].Selectable), 0), m.usable())
}

// spareMachines returns how many secure machines there are above the floor.
func (d *decision) spareMachines() int64 { return d.secure() - d.floor }

// selects returns how many machines of which old sets are selected.
func (d *decision) selects(f Fleet, out []Select) []Select {
	if !d.hasNew || f.Manual || f.NoSelect {
		return out
	}
	total, usable := d.totals()
	left := min(d.spareMachines(), d.replicas-d.current.spec-d.underWay(f))
	if f.StopAfter > 0 && f.Failed > 0 { // machines under way may fail, too
		left = min(left, int64(f.StopAfter)-int64(f.Failed)-d.underWay(f))
	}
	for i := range d.old {
		m := &d.old[i]
		k := min(left, m.selectable(f))
		if k <= 0 {
			continue
		}
		left -= k
		out = append(out, Select{Name: f.Sets[m.index].Name, Count: int32(k), Why: Why{
			Reason: ReasonSelect, Count: k, Total: total, Available: usable, Floor: d.floor, Ceiling: d.ceiling,
		}})
	}
	return out
}

// inPlaceReason returns why an old set is lowered.
func (d *decision) inPlaceReason(m *member) Reason {
	if m.spec >= m.actual {
		return ReasonOldMissing
	}
	return ReasonLeftover
}

// waitInPlace returns why nothing is ordered or selected. If the new set has the size R, it is as in Step. If
// not, more than S machines of old sets are ordered or exist, or some are selected: otherwise the new set
// would have grown. So one of the reasons applies.
func (d *decision) waitInPlace(f Fleet) Why {
	if !d.hasNew || d.current.spec == d.replicas {
		return d.wait(f)
	}
	if why, paused := d.awaitPaused(f); paused {
		return why
	}
	if why, some := d.awaitRemoval(f); some {
		return why
	}
	if f.Stopped() {
		return f.whyStopped()
	}
	updating, waiting := Why{Reason: ReasonUpdating}, Why{Reason: ReasonUnselected}
	unfit, lacking := Why{Reason: ReasonUnfit}, Why{Reason: ReasonUnfit}
	for i := range d.old {
		m := &d.old[i]
		set := &f.Sets[m.index]
		updating.add(set.Name, min(max(int64(set.Selected), 0), m.spec))
		waiting.add(set.Name, m.selectable(f))
		unfit.add(set.Name, m.spec)
		lacking.add(set.Name, m.lacking())
	}
	switch {
	case updating.Count > 0:
		return updating
	case waiting.Count == 0:
		return unfit
	case f.Manual:
		return waiting
	case f.NoSelect:
		return Why{Reason: ReasonNoSelect, Set: waiting.Set, Count: waiting.Count}
	case d.current.lacking() == 0:
		return lacking // they may recover; until then no other may be selected
	}
	return Why{
		Reason: ReasonFloor, Set: f.Sets[d.current.index].Name, Count: d.current.lacking(),
		Total: d.ordered, Available: d.usable, Floor: d.floor, Ceiling: d.ceiling,
	}
}

// add adds n machines of a set to what the rollout waits for.
func (w *Why) add(set string, n int64) {
	if n > 0 && w.Count == 0 {
		w.Set = set
	}
	w.Count += n
}
