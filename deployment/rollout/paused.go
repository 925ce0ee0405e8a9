package rollout

// A set that is paused keeps its size: whoever paused it wants it left as it is. It takes part in every sum. What it
// has ordered may come into being when it is resumed, so it holds its room below R + S; what it has available counts
// above the floor; and what it lacks is not to be had by lowering it, so no other set is lowered in its stead.

// pausedLacking is how many machines of paused old sets are not available.
func (d *decision) pausedLacking() (n int64) {
	for i := range d.old {
		if m := &d.old[i]; m.paused {
			n += m.lacking()
		}
	}
	return n
}

// sharing is the size by which a set shares in a scale-down.
func (m *member) sharing() int32 {
	if m.paused {
		return 0
	}
	return int32(m.spec - m.marked)
}

// awaitPaused names the oldest paused set that is not as it should be in the end: an old one that has machines or is
// to have some, or a new one of another size than R.
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
