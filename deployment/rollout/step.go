package rollout

// Scale orders one set to have another size.
type Scale struct {
	// Name is the set's name, as in [Set.Name].
	Name string
	// From is the present ordered size, [Set.Spec], or 0 if that is negative.
	From int32
	// To is the new ordered size. It differs from From and is from 0 to R + S. A new set is not raised
	// above R.
	To int32
	// Why is the reason.
	Why Why
}

// Step decides what a fleet's rollout does next: which sets change size, and why. It builds the
// orders in out and replaces its content: pass the result of the last call again, or nil. For up
// to 16 sets it allocates nothing else. There is at most one order for a set. Carry out the orders from first to
// last. See the documentation of the package for the bounds that they keep.
//
// The second result is about the whole fleet: that there are orders, that the rollout is done, or what it waits
// for.
func Step(f Fleet, out []Scale) ([]Scale, Why) {
	if f.Stopped() && f.newSet() >= 0 {
		return stepStopped(f, out)
	}
	var array [inline]member
	storage := array[:]
	if len(f.Sets) > inline {
		storage = make([]member, len(f.Sets))
	}
	var d decision
	d.old = storage[:d.open(f, storage, f.newSet())]
	d.trim()
	d.scaleDown()
	d.grow()
	if !f.NoRestore {
		d.restoreOldSets()
	}
	d.retire()
	// If retire has removed machines that were ordered and never created, there is room at once, so
	// the new set may grow once more. There is no need to retire again: the added machines are
	// unavailable, so the budget of retire stays the same.
	d.grow()

	out = d.orders(f, out[:0])
	if len(out) > 0 {
		return out, Why{Reason: ReasonOrdered, Count: int64(len(out))}
	}
	return out, d.wait(f)
}

// stepStopped scales a fleet whose rollout has stopped.
func stepStopped(f Fleet, out []Scale) ([]Scale, Why) {
	out, why := Resize(f, out)
	if why.Reason == ReasonHeld {
		why = f.whyStopped()
	}
	return out, why
}

// member is a set in the working copy of a fleet.
type member struct {
	index     int   // in Fleet.Sets
	spec      int64 // the ordered size, which the decision changes
	actual    int64
	available int64 // at most actual
	secured   int64 // of available, those that stay whichever machines the set is removing
	unseen    int64 // of actual, those that it may be removing because it has not observed that it was raised
	shared    int64 // the set's share of a scale-down
	marked    int64 // of spec, those that a scaler has chosen for deletion

	paused  bool // its size stays
	deleted bool // it is being deleted

	terminating int64 // besides actual
	counted     int64 // of terminating, towards R + S
}

// usable returns how many machines will be available once the set has its ordered size: a set removes
// unavailable machines first.
func (m *member) usable() int64 { return min(m.available, m.spec) }

// secure returns how many machines will be available once the set has its ordered size, even if it
// deletes machines that it chose before they became available. A set that had no surplus when the
// decision began has chosen none.
//
// An order to shrink makes a surplus, so the next decision counts fewer secure machines than this one did. That
// does no harm: it then removes no more, and takes nothing back, because secure machines decide only whether
// more may be removed. If fewer than the floor are secure, a scale-down removes unavailable machines only, and
// the rest when the sets have removed their surplus. A set that was raised counts as if it still had the
// smaller size until it has observed the new one (Set.Behind).
func (m *member) secure() int64 { return min(m.secured, m.spec) }

// lacking returns how many of the ordered machines are not available, whether they exist or not.
func (m *member) lacking() int64 { return m.spec - m.usable() }

// present returns how many machines there may be until the set has the ordered size.
func (m *member) present() int64 { return max(m.spec, m.actual+m.counted) }

// surplus returns how many machines the set still has to remove.
func (m *member) surplus() int64 { return max(0, m.actual-m.spec) }

// decision is the working copy of a fleet.
type decision struct {
	replicas int64
	ceiling  int64 // R + S
	floor    int64 // max(0, R − U)
	old      []member
	current  member // the new set; empty if there is none
	hasNew   bool
	inPlace  bool // old machines are updated, not removed

	ordered int64 // machines ordered in all sets before the decision
	usable  int64 // of the ordered ones, those available
}

// open fills the working copy from the fleet. The set at position current (-1: none) becomes d.current. The other
// sets are put into storage, which has room for all sets; open returns their number. (It does not set d.old,
// because that would move the caller's storage to the heap.)
func (d *decision) open(f Fleet, storage []member, current int) (olds int) {
	surge, unavailable := f.Bounds.resolved()
	d.replicas = max(int64(f.Replicas), 0)
	d.ceiling = d.replicas + surge
	d.floor = max(0, d.replicas-unavailable)
	for i := range f.Sets {
		m := &storage[olds]
		if i == current {
			m = &d.current
			d.hasNew = true
		} else {
			olds++
		}
		m.read(&f.Sets[i])
		if f.Strict {
			m.counted = m.terminating
		}
		m.index = i
		d.ordered += m.spec
		d.usable += m.usable()
	}
	return olds
}

// read copies a set's numbers and makes them consistent.
func (m *member) read(set *Set) {
	m.spec = int64(set.ordered())
	m.actual = max(int64(set.Actual), 0)
	m.available = min(max(int64(set.Available), 0), m.actual)
	accounted := min(max(int64(set.Accounted), 0), m.actual-m.available)
	behind := min(max(int64(set.Behind), 0), m.spec)
	pending := max(0, m.actual-accounted-(m.spec-behind))
	m.secured = max(0, m.available-pending)
	m.unseen = min(pending, behind)
	m.deleted = set.Deleting
	m.terminating = max(int64(set.Terminating), 0)
	m.marked = min(max(int64(set.Chosen), 0), m.spec)
	if m.paused = set.Paused; m.paused {
		m.marked = 0
	}
}

// totals returns the ordered machines of all sets as of now, and how many of them are available.
func (d *decision) totals() (ordered, usable int64) {
	ordered, usable = d.current.spec, d.current.usable()
	for i := range d.old {
		ordered += d.old[i].spec
		usable += d.old[i].usable()
	}
	return ordered, usable
}

// secure returns how many available machines are sure to stay once the sets have their present ordered sizes.
func (d *decision) secure() int64 {
	n := d.current.secure()
	for i := range d.old {
		n += d.old[i].secure()
	}
	return n
}

// trim lowers a new set above R to R. It can't take availability below the floor: either no
// available machine is removed, or R of them stay.
func (d *decision) trim() {
	if trimmed := d.current.spec - d.replicas; trimmed > 0 && !d.current.paused {
		d.current.spec = d.replicas
		d.current.marked = max(0, d.current.marked-trimmed) // the machines removed here include marked ones
	}
}

// grow raises the new set to R, or as far as the ceiling allows. Its own surplus must be gone first
// as long as old sets have machines. Otherwise the surplus would count as available in the next decision, and
// old machines would be removed although the new set may still be removing the surplus.
//
// After retire it may raise the new set again, which scaleDown has lowered in the same decision: machines of
// old sets that were never created have made room. The set gets one order, with the final size.
func (d *decision) grow() {
	if !d.hasNew || d.current.paused || d.current.marked > 0 { // with a larger size, marked machines would stay
		return
	}
	oldOrdered, oldPresent := int64(0), int64(0)
	for i := range d.old {
		oldOrdered += d.old[i].spec
		oldPresent += d.old[i].present()
	}
	if oldOrdered > 0 && d.current.surplus() > 0 {
		return
	}
	d.current.spec = max(d.current.spec, min(d.replicas, d.ceiling-oldPresent))
}

// retire lowers old sets, the oldest first: all unavailable machines before the first available
// one. The budget leaves out unavailable machines of the new set, so that old machines are removed
// only when others have taken their place.
//
// It keeps the floor, too. Let A machines be available, and let N of the new set and O of the old sets not be
// available. A + N + O are ordered, and the budget is A + O − floor. Unavailable old machines cost no
// availability. If any budget is left when all O are removed, it is A − floor. An available machine is removed
// only if enough secure ones are left, too: a set with surplus may be removing machines that have become
// available since it chose them.
func (d *decision) retire() {
	if !d.hasNew {
		return
	}
	ordered, _ := d.totals()
	budget := ordered - d.floor - d.current.lacking() - d.pausedLacking()
	for i := range d.old {
		m := &d.old[i]
		if k := min(budget, m.lacking()); k > 0 && !m.paused {
			m.spec -= k
			budget -= k
		}
	}
	spare := d.secure() - d.floor
	if spare < 0 {
		return
	}
	for i := range d.old {
		m := &d.old[i]
		free := m.usable() - m.secure()
		if k := min(budget, m.spec, free+spare); k > 0 && !m.paused {
			m.spec -= k
			budget -= k
			spare -= max(0, k-free)
		}
	}
}

// restoreOldSets raises old sets that have yet to remove available machines, the youngest first, while fewer
// machines than the floor are available. That happens if other machines fail after the removal was ordered. No
// set creates a machine because of it, and retire removes no other machine instead. If R + S machines are
// ordered already, sets with unavailable machines are lowered to make room.
func (d *decision) restoreOldSets() {
	if !d.hasNew {
		return
	}
	ordered, usable := d.totals()
	left, room := d.floor-usable, d.ceiling-ordered
	for i := len(d.old) - 1; i >= 0 && left > 0; i-- {
		m := &d.old[i]
		if m.paused || m.deleted {
			continue
		}
		k := max(0, min(left, m.available-m.spec))
		room += d.release(k - room)
		k = max(0, min(k, room))
		m.spec += k
		left -= k
		room -= k
	}
}

// release lowers old sets by up to n unavailable machines, the oldest set first. It returns by how many.
func (d *decision) release(n int64) (released int64) {
	for i := range d.old {
		m := &d.old[i]
		if k := min(n-released, m.lacking()); k > 0 && !m.paused {
			m.spec -= k
			released += k
		}
	}
	return released
}

// A paused set keeps its size, because the user who paused it wants it unchanged. It counts in every sum. Its
// ordered machines may be created when it is resumed, so they count toward R + S. Its available machines count
// toward the floor. Its missing machines count against the budget of retire, so that no other set is lowered
// because of them.

// pausedLacking returns how many machines of paused old sets are not available.
func (d *decision) pausedLacking() (n int64) {
	for i := range d.old {
		if m := &d.old[i]; m.paused {
			n += m.lacking()
		}
	}
	return n
}

// sharing returns the size that determines a set's share of a scale-down.
func (m *member) sharing() int32 {
	if m.paused {
		return 0
	}
	return int32(m.spec - m.marked)
}
