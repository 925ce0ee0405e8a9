package rollout

// Recreate decides the next step of a rollout in which machines of two templates must never exist
// at the same time. Arguments, results and how to carry them out are as for [Step], but Recreate
// ignores [Fleet.Bounds]: no order raises the number of machines above R, and there is no floor.
//
//  1. A new set above R is lowered to R, and every old set to 0.
//  2. When no machine of an old set is left, not even a terminating one, the new set grows to R.
//
// So if only the new set is in use, its size is always R. Without a new set nothing is rolled out: what is
// ordered above R is shared among all sets by size.
func Recreate(f Fleet, out []Scale) ([]Scale, Why) {
	var array [inline]member
	storage := array[:]
	if len(f.Sets) > inline {
		storage = make([]member, len(f.Sets))
	}
	var d decision
	d.old = storage[:d.open(f, storage, f.newSet())]
	d.ceiling, d.floor = d.replicas, 0
	if d.hasNew {
		d.trim()
		d.empty()
	} else {
		d.scaleDown()
	}
	d.extend(true)

	out = d.orders(f, out[:0])
	for i := range out {
		if why := &out[i].Why; why.Reason == ReasonOldAvailable || why.Reason == ReasonOldUnavailable {
			why.Reason = ReasonRecreate
		}
	}
	if len(out) > 0 {
		return out, Why{Reason: ReasonOrdered, Count: int64(len(out))}
	}
	return out, d.waitRecreate(f)
}

// waitRecreate returns why nothing is ordered. If there is a new set below R, old machines are left.
func (d *decision) waitRecreate(f Fleet) Why {
	if !d.hasNew || d.current.spec == d.replicas {
		return d.wait(f)
	}
	if why, paused := d.awaitPaused(f); paused {
		return why
	}
	for i := range d.old {
		if m := &d.old[i]; m.actual+m.terminating > 0 {
			return Why{
				Reason: ReasonOldPresent, Set: f.Sets[m.index].Name,
				Count: m.actual + m.terminating, Terminating: m.terminating,
			}
		}
	}
	return d.wait(f)
}
