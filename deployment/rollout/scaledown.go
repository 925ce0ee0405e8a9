package rollout

// scaleDown shares what is ordered above the ceiling among all sets, so that exactly the ceiling
// remains.
//
// The shares are by size. A share costs a set availability only as far as it exceeds the set's
// unavailable machines. If all shares together cost more than what is available above the floor,
// sets are spared available machines, and other sets lose unavailable ones instead. That is always
// possible. Let T machines be ordered, A of them available, C be the ceiling, F the floor; T − C
// have to be removed, and T − A are unavailable. If all of those are taken first, the cost is
//
//	max(0, (T − C) − (T − A)) = max(0, A − C) <= max(0, A − F)
//
// since C = R + S >= max(0, R − U) = F: the least possible cost is within what may be spent.
// Available machines that sets may be removing already count as unavailable here. If that leaves
// fewer than F available ones, no available machine is removed: what is beyond the unavailable ones
// stays until the sets have removed their surplus.
//
// Machines that a scaler has marked are removed first, and the rest is shared by what is left of
// the sizes. If more are marked than are above the ceiling, all marked ones are removed. Then the
// least possible cost may be more than may be spent, and what is beyond that stays: it is moved
// away from the sets that would lose available machines and no set takes it.
func (d *decision) scaleDown() {
	ordered, _ := d.totals()
	marked := d.limitMarked(ordered)
	excess := max(ordered-d.ceiling, marked)
	if excess <= 0 {
		return
	}
	var sizesArray, sharesArray [inline]int32
	sizes, shares := sizesArray[:0], sharesArray[:0]
	if n := len(d.old) + 1; n > inline {
		sizes, shares = make([]int32, 0, n), make([]int32, 0, n)
	}
	for i := range d.old {
		sizes = append(sizes, d.old[i].sharing())
	}
	if d.hasNew {
		sizes = append(sizes, d.current.sharing())
	}
	shares = Shares(excess-marked, sizes, shares)
	for i := range shares {
		d.at(i).shared = int64(shares[i]) + d.at(i).marked
	}
	d.spare()
	for i := range shares {
		m := d.at(i)
		m.spec -= m.shared
	}
}

// limitMarked drops marks for which no machine is left above R, the youngest set's first, because
// the set would be raised again. It returns how many remain.
func (d *decision) limitMarked(ordered int64) (marked int64) {
	left := max(0, ordered-d.replicas)
	for i := 0; i <= len(d.old); i++ {
		m := d.at(i)
		m.marked = min(m.marked, left-marked)
		marked += m.marked
	}
	return marked
}

// at returns the i-th set: the old ones, oldest first, then the new one.
func (d *decision) at(i int) *member {
	if i == len(d.old) {
		return &d.current
	}
	return &d.old[i]
}

// spare moves shares between sets until together they cost no more available machines than may be
// spent. It spares the new set first and then the youngest. What they keep is taken from the oldest
// set with unavailable machines left, the new one last. If fewer machines than the floor are
// secure, it spends none that may be available.
func (d *decision) spare() {
	spendable := d.secure() - d.floor
	scarce := spendable < 0
	spendable = max(0, spendable)
	cost := int64(0)
	for i := 0; i <= len(d.old); i++ {
		cost += d.at(i).cost(scarce)
	}
	moved := max(0, cost-spendable)

	left := moved
	for i := len(d.old); i >= 0 && left > 0; i-- {
		m := d.at(i)
		k := min(left, m.cost(scarce))
		m.shared -= k
		left -= k
	}
	left = moved
	for i := 0; i <= len(d.old) && left > 0; i++ {
		m := d.at(i)
		k := min(left, max(0, m.spec-m.kept(scarce)-m.shared))
		if m.paused {
			k = 0
		}
		m.shared += k
		left -= k
	}
}

// kept returns how many machines of the set a share should leave if it can.
func (m *member) kept(scarce bool) int64 {
	if scarce {
		return m.usable()
	}
	return m.secure()
}

// cost returns how many of these machines the set's share takes.
func (m *member) cost(scarce bool) int64 { return max(0, m.shared-(m.spec-m.kept(scarce))) }
