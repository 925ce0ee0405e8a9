package rollout_test

import (
	"math/big"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// oracle is a second, slow implementation of a step, made from the rules below. It changes a size by one machine,
// counts everything again, and keeps the change if the rule still holds. It repeats growing and shrinking until
// neither changes anything.
//
//	new set: up to R as long as the machines of all sets, ordered or there, stay within R + S; above R: down to R.
//	old sets: down within total − (R − U) − unavailable of the new set: first unhealthy machines, then as many as keep
//	R − U available, oldest set first.
//	scale-down: shared among the sets by size, leftovers to the largest, sums exactly, same bounds.
//	orders not yet visible count as done.
type oracle struct {
	wanted, most, least int64
	old                 []*tally
	current             *tally // or nil
	noRestore           bool
}

type tally struct {
	name                    string
	spec, actual, available int64
	before                  int64 // spec when the decision begins
	secured                 int64 // machines that stay available even if the set removes only available ones
	marked                  int64 // chosen for deletion by a scaler; removed first
	paused                  bool  // its size stays
	deleted                 bool
	unseen                  bool // it may not have observed that it was raised, and be removing machines
}

func newOracle(f rollout.Fleet) *oracle {
	surge, unavailable := max(int64(f.Bounds.Surge), 0), max(int64(f.Bounds.Unavailable), 0)
	if surge+unavailable == 0 {
		unavailable = 1
	}
	o := &oracle{wanted: max(int64(f.Replicas), 0), noRestore: f.NoRestore}
	o.most, o.least = o.wanted+surge, max(o.wanted-unavailable, 0)
	for _, set := range f.Sets {
		c := &tally{name: set.Name, spec: max(int64(set.Spec), 0), actual: max(int64(set.Actual), 0)}
		c.available = min(max(int64(set.Available), 0), c.actual)
		if c.deleted = set.Deleting; c.deleted {
			c.spec = 0
		}
		c.before = c.spec
		actsOn := max(0, c.spec-max(int64(set.Behind), 0))
		pending := max(0, c.actual-actsOn-min(max(int64(set.Accounted), 0), c.actual-c.available))
		c.unseen = c.spec > actsOn && pending > 0
		c.secured = max(0, c.available-pending)
		c.marked = min(max(int64(set.Chosen), 0), c.spec)
		if c.paused = set.Paused; c.paused {
			c.marked = 0
		}
		if set.New && !set.Deleting {
			o.current = c
		} else {
			o.old = append(o.old, c)
		}
	}
	return o
}

// sets returns the old sets, oldest first, then the new one.
func (o *oracle) sets() []*tally {
	all := append([]*tally(nil), o.old...)
	if o.current != nil {
		all = append(all, o.current)
	}
	return all
}

// ordered and available are sums over all sets. Machines that a set has yet to remove do not count.
func (o *oracle) ordered() (n int64) {
	for _, c := range o.sets() {
		n += c.spec
	}
	return n
}

func (o *oracle) available() (n int64) {
	for _, c := range o.sets() {
		n += min(c.available, c.spec)
	}
	return n
}

func (o *oracle) secure() (n int64) {
	for _, c := range o.sets() {
		n += min(c.secured, c.spec)
	}
	return n
}

func (o *oracle) newUnavailable() int64 {
	return o.current.spec - min(o.current.available, o.current.spec)
}

// withinBudget is the rule for removing old machines.
func (o *oracle) withinBudget() bool {
	kept := int64(0) // machines that paused sets lack are missing whichever sets are lowered
	for _, c := range o.old {
		if c.paused {
			kept += c.spec - min(c.available, c.spec)
		}
	}
	return o.ordered()-o.least-o.newUnavailable()-kept >= 0
}

// largest returns the largest number of machines, up to limit, for which try returns true. It searches one by one, or
// by halves if limit is large.
func largest(limit int64, try func(n int64) bool) int64 {
	if limit <= 64 {
		n := int64(0)
		for n < limit && try(n+1) {
			n++
		}
		return n
	}
	low, high := int64(0), limit
	for low < high {
		middle := low + (high-low+1)/2
		if try(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// change adds machines to a set, or removes them (step -1), while the rule holds. It reports whether it changed any.
func change(c *tally, step, limit int64, rule func() bool) bool {
	if c.paused {
		return false
	}
	before := c.spec
	n := largest(limit, func(n int64) bool {
		c.spec = before + step*n
		defer func() { c.spec = before }()
		return rule()
	})
	c.spec = before + step*n
	return n > 0
}

func (o *oracle) run() {
	if o.current != nil && !o.current.paused {
		went := max(0, o.current.spec-o.wanted)
		o.current.spec -= went
		o.current.marked = max(0, o.current.marked-went)
	}
	o.scaleDown()
	if o.current != nil {
		o.grow()
		if !o.noRestore {
			o.restoreOldSets()
		}
	}
	for o.current != nil && (o.grow() || o.shrink()) {
	}
	o.settle()
}

func (o *oracle) grow() bool {
	if o.current.marked > 0 {
		return false // a scaler has chosen some of its machines for deletion
	}
	oldOrdered := o.ordered() - o.current.spec
	if oldOrdered > 0 && o.current.actual > o.current.spec {
		// Its own removals are not visible yet. If it were raised, they would count as available
		// machines that are about to be removed.
		return false
	}
	return change(o.current, +1, o.wanted-o.current.spec, func() bool {
		total := o.current.spec
		for _, c := range o.old {
			total += max(c.spec, c.actual)
		}
		return total <= o.most
	})
}

// restoreOldSets makes old sets keep available machines that they were ordered to remove, as many as are missing to the
// floor. If too many would be ordered, unavailable machines of old sets are removed.
func (o *oracle) restoreOldSets() {
	for i := len(o.old) - 1; i >= 0; i-- {
		c := o.old[i]
		if c.deleted {
			continue
		}
		change(c, +1, max(0, c.available-c.spec), func() bool {
			return o.available() <= o.least && o.ordered()-o.unhealthy() <= o.most
		})
		for _, other := range o.old {
			n := min(o.ordered()-o.most, other.spec-other.available)
			if n > 0 && !other.paused {
				other.spec -= n
			}
		}
	}
}

// unhealthy returns how many machines of old sets are not available and could be removed.
func (o *oracle) unhealthy() (n int64) {
	for _, c := range o.old {
		if !c.paused {
			n += max(0, c.spec-c.available)
		}
	}
	return n
}

func (o *oracle) shrink() bool {
	changed := false
	for _, c := range o.old {
		unhealthy := c.spec - min(c.available, c.spec)
		changed = change(c, -1, unhealthy, o.withinBudget) || changed
	}
	for _, c := range o.old {
		changed = change(c, -1, c.spec, func() bool {
			return o.withinBudget() && o.secure() >= o.least
		}) || changed
	}
	return changed
}

func (o *oracle) scaleDown() {
	sets, marked := o.sets(), int64(0)
	for _, c := range sets {
		c.marked = min(c.marked, max(0, o.ordered()-o.wanted-marked))
		marked += c.marked
	}
	excess := max(o.ordered()-o.most, marked)
	if excess <= 0 {
		return
	}
	// If fewer machines than the floor are sure to stay, no machine that may be available is removed.
	enough, measure, counts := o.least, o.secure, func(c *tally) int64 { return c.secured }
	if o.secure() < o.least {
		enough, measure, counts = o.available(), o.available, func(c *tally) int64 { return c.available }
	}
	sizes, rest := sizesOf(sets), sizesOf(sets)
	for i, c := range sets {
		if rest[i] -= c.marked; c.paused {
			rest[i] = 0
		}
	}
	for i, share := range oracleShares(excess-marked, rest) {
		sets[i].spec -= share + sets[i].marked
	}
	for measure() < enough {
		// Give machines back to the last set that lost some that count, and take as many that do
		// not count from the first that has some.
		giver := lastWhere(sets, func(c *tally, size int64) bool { return c.spec < min(counts(c), size) }, sizes)
		taker := firstWhere(sets, func(c *tally) bool { return c.spec > counts(c) && !c.paused })
		n := min(enough-measure(), min(counts(sets[giver]), sizes[giver])-sets[giver].spec)
		if taker >= 0 { // otherwise all that does not count is removed already: this much stays
			n = min(n, sets[taker].spec-counts(sets[taker]))
			sets[taker].spec -= n
		}
		sets[giver].spec += n
	}
}

// settle takes back orders for sizes above the ceiling.
func (o *oracle) settle() {
	for _, c := range o.sets() {
		if c.spec > o.most {
			c.spec = c.before
		}
	}
}

func sizesOf(sets []*tally) (sizes []int64) {
	for _, c := range sets {
		sizes = append(sizes, c.spec)
	}
	return sizes
}

func lastWhere(sets []*tally, found func(*tally, int64) bool, sizes []int64) int {
	for i := len(sets) - 1; i >= 0; i-- {
		if found(sets[i], sizes[i]) {
			return i
		}
	}
	return -1
}

func firstWhere(sets []*tally, found func(*tally) bool) int {
	for i := range sets {
		if found(sets[i]) {
			return i
		}
	}
	return -1
}

// oracleShares rounds each proportion down, and adds the rest one by one, each to the largest set that has got none of
// it yet.
func oracleShares(total int64, sizes []int64) []int64 {
	sum := new(big.Int)
	for _, size := range sizes {
		sum.Add(sum, big.NewInt(size))
	}
	total = min(total, sum.Int64()) // paused sets have no share
	shares, left := make([]int64, len(sizes)), total
	if sum.Sign() == 0 {
		return shares
	}
	for i, size := range sizes {
		product := new(big.Int).Mul(big.NewInt(total), big.NewInt(size))
		shares[i] = product.Quo(product, sum).Int64()
		left -= shares[i]
	}
	served := make([]bool, len(sizes))
	for ; left > 0; left-- {
		next := -1
		for i, size := range sizes {
			if !served[i] && (next < 0 || size > sizes[next]) {
				next = i
			}
		}
		served[next] = true
		shares[next]++
	}
	return shares
}
