package rollout

// Set is what is known of one set of machines that share a template. Negative numbers count as 0.
type Set struct {
	// Name is returned with the orders for this set; it is not looked into.
	Name string
	// New says that this set has the template wanted now. At most one set is new; of several the last counts, and
	// the others as old.
	New bool
	// Spec is the ordered size in machines: the last order, whether the set has followed it yet or not.
	Spec int32
	// Actual is how many machines exist and are not terminating.
	Actual int32
	// Available is how many of Actual are available. More than Actual counts as Actual.
	Available int32
	// Terminating is how many machines exist besides Actual and are being deleted. Only [Recreate], [Resize] of a
	// fleet with Apart, and all with Strict look at it.
	Terminating int32
	// Marked is how many of the set's machines a scaler has chosen to go with the replicas it has just taken away: the
	// set gives them up now, before others share what is left, and even if what is ordered does not exceed R + S, as
	// long as it exceeds R. The floor comes first. More than Spec counts as Spec. Zero: none; the set is to be told at once of those that it gives
	// up, and they must not be passed again.
	Marked int32
	// Selected is how many of Actual are to be updated in place, or being updated, or done and not moved yet. They
	// stop working for it: none of them is in Available. Only [InPlace] looks at it, and at the next two.
	Selected int32
	// Selectable is how many of Available could be selected now. More than Available counts as Available.
	Selectable int32
	// Broken is how many of Actual, neither Available nor Selected, are not working and could not be updated.
	Broken int32
	// Accounted is how many of Actual, none of them Available, cost no available machine although they are surplus:
	// those that do not exist yet but may come, those left out of Available because the set gives them up first, and
	// those that the set leaves alone. More than the others of Actual counts as all of these. Zero is the careful value:
	// the set may be removing available machines for all of its surplus.
	Accounted int32
	// Behind is by how many machines the set may still act below Spec: it had more machines than it was ordered to have
	// when Spec was raised, and has not said since that it knows. More than Spec counts as Spec. Zero: it knows its size.
	Behind int32
	// Paused says that the set is to be left as it is: it gets no order and no selection, and whatever it has stays
	// and counts, its unavailable machines too.
	Paused bool
	// Going says that the set itself is being deleted: its Spec counts as 0, it gets no order, and it is not the new
	// one whatever New says.
	Going bool
}

// ordered is the ordered size as it counts.
func (s *Set) ordered() int32 {
	if s.Going {
		return 0
	}
	return max(s.Spec, 0)
}

// Fleet is all that [Step], [Resize], [Recreate] and [InPlace] decide on, as of one moment. The zero value wants no machines and has
// none.
type Fleet struct {
	// Replicas is how many machines are wanted. Negative counts as 0.
	Replicas int32
	// Bounds is how far the rollout may leave Replicas, both ways; see [Fenceposts].
	Bounds Bounds
	// Sets are all sets, the oldest first, the new one anywhere. Without a new one nothing grows and nothing is
	// rolled. It is only read.
	Sets []Set
	// Apart says that machines of two sets must not be made to exist at once, as [Recreate] has it. Only [Resize] looks
	// at it.
	Apart bool
	// Strict has machines that are being deleted count towards R + S, so that a provider's quota of so many is never
	// exceeded. The sets must keep to it, too: a set makes no machine while it has as many as ordered, those being
	// deleted among them.
	Strict bool
	// NoGiveBack says that an old set can't be raised to keep machines that it was to remove. Then no other set is lowered
	// to make room for that either. Only [Step] looks at it.
	NoGiveBack bool
	// Manual says that whoever runs the fleet selects the machines to be updated. Only [InPlace] looks at it.
	Manual bool
}

// newSet is the position of the new set, -1 if there is none.
func (f Fleet) newSet() int {
	for i := len(f.Sets) - 1; i >= 0; i-- {
		if f.Sets[i].New && !f.Sets[i].Going {
			return i
		}
	}
	return -1
}

// Done reports that the rollout is complete: there is a new set, its ordered size and its existing and available
// machines are as many as wanted, and the old sets have neither orders nor machines left. Step then orders nothing.
func Done(f Fleet) bool {
	current := f.newSet()
	if current < 0 {
		return false
	}
	for i := range f.Sets {
		set, wanted := &f.Sets[i], int32(0)
		if i == current {
			wanted = max(f.Replicas, 0)
		}
		available := min(set.Available, set.Actual)
		if set.ordered() != wanted || max(set.Actual, 0) != wanted || max(available, 0) != wanted {
			return false
		}
	}
	return true
}
