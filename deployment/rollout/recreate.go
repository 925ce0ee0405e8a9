package rollout

// Recreate decides the next step of a rollout in which machines of two templates must never exist
// at the same time. Arguments, results and what to do with them are as for [Step], but Recreate
// ignores [Fleet.Bounds]: no order raises the number of machines above R, and there is no floor.
//
//  1. A new set above R is lowered to R, and every old set to 0.
//  2. The new set grows to R when no machine of an old set is left, neither one that exists nor one
//     that is terminating.
//
// So if only the new set is in use, it follows R, from and to 0. Without a new set nothing is
// rolled: what is ordered above R is shared among all sets by size.
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
	return out, d.await(f)
}

// await returns why nothing is ordered. With a new set and nothing ordered of old ones, R machines
// of the new set are ordered unless old machines are left.
func (d *decision) await(f Fleet) Why {
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
