package rollout

// A paused set keeps its size, because the user who paused it wants it unchanged. It takes part in
// every sum. What it has ordered may come into being when it is resumed, so it holds its room below
// R + S. What it has available counts above the floor. Lowering another set does not make up for
// what it lacks, so no other set is lowered instead.

// pausedLacking returns how many machines of paused old sets are not available.
func (d *decision) pausedLacking() (n int64) {
	for i := range d.old {
		if m := &d.old[i]; m.paused {
			n += m.lacking()
		}
	}
	return n
}

// sharing returns the size by which a set shares in a scale-down.
func (m *member) sharing() int32 {
	if m.paused {
		return 0
	}
	return int32(m.spec - m.marked)
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
