package rollout

// Resize decides what scaling alone requires, for a rollout that is paused: R has changed, or fewer than R
// machines are ordered. Arguments, results and how to carry them out are as for [Step], and so are the bounds. No
// order raises the number of machines above R + S or takes availability below the floor. If availability is
// below the floor already, no order removes another available machine.
//
// A set is in use if it is ordered to have machines.
//
//   - If at most one set is in use, its size becomes R. If none is in use, this set is the new one, or
//     else the newest.
//   - If several sets are in use and more than R + S machines are ordered (more than 0 if R is 0), all
//     shrink in proportion to their sizes, as in Step. If fewer than R are ordered, the new set grows by
//     the missing ones or, if it is not in use, the newest set that is. It grows only after it has removed
//     its surplus.
//   - If several sets are in use and the new set has the size R and R available machines, the others are
//     lowered to 0.
//
// With [Fleet.Apart], a set grows only when no machine of any other set is left, not even a terminating
// one.
func Resize(f Fleet, out []Scale) ([]Scale, Why) {
	var array [inline]member
	storage := array[:]
	if len(f.Sets) > inline {
		storage = make([]member, len(f.Sets))
	}
	var d decision
	lead, inUse := f.lead()
	d.old = storage[:d.open(f, storage, lead)]
	if d.replicas == 0 {
		d.ceiling = 0
	}
	if inUse <= 1 {
		d.trim()
	} else {
		// By shares in proportion, a single set is never left with more than R: the largest set is
		// the first to lose what rounding leaves over, so others keep some machines while it keeps
		// two or more. But if scaleDown spares available machines, one set may be left.
		d.scaleDown()
		d.trimLast()
	}
	if lead >= 0 && lead == f.newSet() && d.current.spec == d.replicas && d.current.secure() == d.replicas {
		d.empty()
	}
	d.extend(f.Apart)

	out = d.orders(f, out[:0])
	for i := range out {
		switch why := &out[i].Why; why.Reason {
		case ReasonNewGrows:
			why.Reason = ReasonGrows
		case ReasonNewAboveReplicas:
			why.Reason = ReasonAboveReplicas
		}
	}
	if len(out) > 0 {
		return out, Why{Reason: ReasonOrdered, Count: int64(len(out))}
	}
	return out, d.waitResize(f)
}

// lead returns the position of the set that grows in Resize, or -1 if there is none, and how many sets are in
// use.
func (f Fleet) lead() (lead, inUse int) {
	lead = -1
	for i := range f.Sets {
		set := &f.Sets[i]
		switch {
		case set.Deleting:
			continue
		case set.ordered() > 0:
			inUse++
			lead = i
		case inUse == 0:
			lead = i
		}
	}
	if current := f.newSet(); current >= 0 && (inUse == 0 || f.Sets[current].ordered() > 0) {
		lead = current
	}
	return lead, inUse
}

// trimLast lowers a set to R if it is the only one in use. As with trim, availability does not fall below the
// floor.
func (d *decision) trimLast() {
	var last *member
	for i := 0; i <= len(d.old); i++ {
		switch m := d.at(i); {
		case m.spec == 0:
		case last != nil:
			return
		default:
			last = m
		}
	}
	if last != nil && !last.paused {
		last.spec = min(last.spec, d.replicas)
	}
}

// empty lowers all old sets to 0.
func (d *decision) empty() {
	for i := range d.old {
		if m := &d.old[i]; !m.paused {
			m.spec = 0
		}
	}
}

// extend raises the current set so that R machines are ordered in all sets, as far as the ceiling allows. As in
// grow, its own surplus must be gone first as long as other sets have machines.
func (d *decision) extend(apart bool) {
	if !d.hasNew || d.current.paused {
		return
	}
	oldOrdered, oldPresent, terminating := int64(0), int64(0), int64(0)
	for i := range d.old {
		oldOrdered += d.old[i].spec
		oldPresent += d.old[i].present()
		terminating += d.old[i].terminating
	}
	if oldOrdered > 0 && d.current.surplus() > 0 || apart && oldPresent+terminating > 0 {
		return
	}
	d.current.spec = max(d.current.spec, min(d.replicas-oldOrdered, d.ceiling-oldPresent))
}

// waitResize returns why Resize orders nothing.
func (d *decision) waitResize(f Fleet) Why {
	if Done(f) {
		return Why{Reason: ReasonDone, Count: d.replicas}
	}
	if why, paused := d.awaitPaused(f); paused && d.ordered != d.replicas {
		return why
	}
	if why, some := d.awaitRemoval(f); some {
		return why
	}
	if room := d.terminatingOld(); d.hasNew && room > 0 && d.ordered < d.replicas {
		return Why{
			Reason: ReasonQuota, Set: f.Sets[d.current.index].Name, Count: room, Total: d.current.spec, Ceiling: d.ceiling,
		}
	}
	why := Why{Reason: ReasonHeld, Count: d.ordered, Total: d.ordered, Ceiling: d.replicas}
	if current := f.newSet(); current >= 0 {
		why.Count -= int64(f.Sets[current].ordered())
	}
	return why
}
