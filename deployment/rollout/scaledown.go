package rollout

// scaleDown shares what is ordered above the ceiling among all sets, so that exactly the ceiling remains.
//
// The shares are in proportion to the sizes. A share costs a set available machines only as far as it exceeds
// the set's unavailable ones. If all shares together cost more than is available above the floor, sets are
// spared available machines, and other sets lose unavailable ones instead. That is always possible: let T
// machines be ordered, A of them available, C be the ceiling and F the floor. Then T − C have to be removed, and
// T − A are unavailable. If all unavailable ones are removed first, the cost is
//
//	max(0, (T − C) − (T − A)) = max(0, A − C) <= max(0, A − F)
//
// because C = R + S >= max(0, R − U) = F. So the least possible cost is no more than is available above the floor.
// Available machines that sets may be removing already count as unavailable here. If that leaves fewer than F
// available ones, no available machine is removed: the rest of the shares waits until the sets have removed
// their surplus.
//
// Machines that a scaler has marked are removed first, and the rest is shared in proportion to the remaining
// sizes. If more machines are marked than are above the ceiling, all marked ones are removed. Then the least
// possible cost may be more than is available above the floor. In that case sets keep available machines, and
// no other set loses machines for them.
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

// limitMarked drops marks beyond the machines ordered above R, of the youngest sets first: the set would be
// raised again. It returns how many remain.
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

// spare moves shares between sets until together they cost no more available machines than there are above the
// floor. It lowers the shares of the new set first, and then of the youngest. It raises the shares of the oldest
// sets with unavailable machines left, the new set last. If fewer machines than the floor are secure (scarce),
// the shares cost no machine that may be available.
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

// kept returns how many machines of the set a share should leave: the available ones if scarce, otherwise the
// secure ones.
func (m *member) kept(scarce bool) int64 {
	if scarce {
		return m.usable()
	}
	return m.secure()
}

// cost returns how many of the machines that kept counts the set's share takes.
func (m *member) cost(scarce bool) int64 { return max(0, m.shared-(m.spec-m.kept(scarce))) }
