package rollout_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// refused returns the index of the first order that breaks a bound, or -1. It counts machines again
// after each order, for each way in which sets may be removing available machines.
func refused(f rollout.Fleet, orders []rollout.Scale) int {
	then, seen := f, make(map[string]bool)
	for i, order := range orders {
		before := then
		if seen[order.Name] || !mayGetOrder(f, order) {
			return i
		}
		seen[order.Name] = true
		then = resized(before, order)
		set, now := find(f, order.Name), count(before)
		isNew := set.New && order.Name == newName(f)
		switch {
		case order.To < 0 || int64(order.To) > now.ceiling:
			return i
		case order.To < order.From:
			if takesTooMany(f, before, then) {
				return i
			}
		case isNew && int64(order.To) > now.wanted,
			!isNew && !f.Stopped() && (f.NoRestore || raisedForNothing(set, order, now.usable, now.floor)),
			mostMachines(then) > max(mostMachines(before), now.ceiling):
			return i
		}
	}
	return -1
}

// mayGetOrder reports whether a set may get the order, whatever its size.
func mayGetOrder(f rollout.Fleet, order rollout.Scale) bool {
	sets := 0
	for _, set := range f.Sets {
		if set.Name == order.Name {
			sets++
		}
	}
	set := find(f, order.Name)
	return sets == 1 && !set.Paused && !set.Deleting && order.From == max(set.Spec, 0) && order.From != order.To
}

// takesTooMany reports whether fewer machines than before stay available, and fewer than the floor.
func takesTooMany(f, before, then rollout.Fleet) bool {
	for _, lost := range removals(f) {
		if now := left(f, then, lost); now < min(left(f, before, lost), count(f).floor) {
			return true
		}
	}
	return false
}

// raisedForNothing reports whether an old set is raised although enough machines are available, or above its number
// of available machines.
func raisedForNothing(set rollout.Set, order rollout.Scale, usable, floor int64) bool {
	return order.To > order.From && !set.New && (usable >= floor || order.To > min(set.Available, set.Actual))
}

// resized carries out one order.
func resized(f rollout.Fleet, order rollout.Scale) rollout.Fleet {
	f.Sets = append([]rollout.Set(nil), f.Sets...)
	for i := range f.Sets {
		if f.Sets[i].Name == order.Name {
			f.Sets[i].Spec = order.To
		}
	}
	return f
}

// mostMachines returns how many machines there may be until all sets have their sizes. With Strict, terminating
// ones count.
func mostMachines(f rollout.Fleet) (n int64) {
	for _, set := range f.Sets {
		spec, exist := max(int64(set.Spec), 0), max(int64(set.Actual), 0)
		if set.Deleting {
			spec = 0
		}
		if f.Strict {
			exist += max(int64(set.Terminating), 0)
		}
		n += max(spec, exist)
	}
	return n
}

// checkedFleets draws fleets with all fields that the bounds depend on.
func checkedFleets(t *rapid.T) rollout.Fleet {
	f := terminatingFleets(t)
	f.Strict = rapid.Bool().Draw(t, "strict")
	if rapid.IntRange(0, 4).Draw(t, "stopped") == 0 {
		f.StopAfter, f.Failed = 1, 1
	}
	for i := range f.Sets {
		f.Sets[i].Paused = rapid.IntRange(0, 7).Draw(t, "paused") == 0
	}
	return f
}

// anyOrders draws orders: those of Step with changes, or arbitrary ones.
func anyOrders(t *rapid.T, f rollout.Fleet) []rollout.Scale {
	orders, _ := rollout.Step(f, nil)
	number := rapid.OneOf(rapid.Int32Range(-1, 12), rapid.SampledFrom(extremes))
	if rapid.Bool().Draw(t, "any") {
		orders = orders[:0]
		for range rapid.IntRange(0, 4).Draw(t, "orders") {
			name := "set-" + string(rapid.RuneFrom([]rune("01234x")).Draw(t, "name"))
			order := rollout.Scale{Name: name, From: max(find(f, name).Spec, 0), To: number.Draw(t, "to")}
			if rapid.IntRange(0, 9).Draw(t, "other from") == 0 {
				order.From = number.Draw(t, "from")
			}
			orders = append(orders, order)
		}
	}
	for i := range orders {
		if rapid.IntRange(0, 2).Draw(t, "changed") == 0 {
			orders[i].To += rapid.Int32Range(-2, 2).Draw(t, "by")
		}
	}
	if len(orders) > 1 && rapid.Bool().Draw(t, "shuffled") {
		orders = rapid.Permutation(orders).Draw(t, "order")
	}
	return orders
}

// TestP7CheckAgreesWithBruteForce: Check and a slow computation find the same first order that breaks a bound.
func TestP7CheckAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := checkedFleets(t)
		if len(f.Sets) > 1 && rapid.IntRange(0, 19).Draw(t, "twice") == 0 {
			f.Sets[0].Name = f.Sets[1].Name
		}
		orders := anyOrders(t, f)
		want, err := refused(f, orders), rollout.Check(f, orders)
		if want < 0 {
			require.NoError(t, err, "%v\n%v", f, orders)
			return
		}
		var broken *rollout.OrderError
		require.ErrorAs(t, err, &broken, "%v\n%v", f, orders)
		require.Equal(t, orders[want], broken.Order, "%v", f)
	})
}

// TestP7StepAndSmallerOrdersPass: the orders of Step pass, and so do only the first ones, even if the last of these has
// a smaller change.
func TestP7StepAndSmallerOrdersPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := checkedFleets(t)
		orders, _ := rollout.Step(f, nil)
		require.NoError(t, rollout.Check(f, orders), "%v", f)
		part := append([]rollout.Scale(nil), orders[:rapid.IntRange(0, len(orders)).Draw(t, "first")]...)
		if n := len(part) - 1; n >= 0 && int64(part[n].From) <= count(f).ceiling {
			least, most := part[n].To, part[n].From-1
			if part[n].To > part[n].From {
				least, most = part[n].From+1, part[n].To
			}
			part[n].To = rapid.Int32Range(least, most).Draw(t, "less")
		}
		require.NoError(t, rollout.Check(f, part), "%v", f)
	})
}

// TestCheckAcceptsOtherChoices: the bounds do not say which old set shrinks, or when the new one grows.
func TestCheckAcceptsOtherChoices(t *testing.T) {
	f := rollout.Fleet{Replicas: 10, Bounds: rollout.Bounds{Surge: 2, Unavailable: 2}, Sets: []rollout.Set{
		{Name: "a", Spec: 5, Actual: 5, Available: 5}, {Name: "b", Spec: 5, Actual: 5, Available: 5}, {Name: "c", New: true},
	}}
	orders, _ := rollout.Step(f, nil)
	require.Equal(t, "a", orders[0].Name)
	for _, other := range [][]rollout.Scale{
		nil,
		{{Name: "b", From: 5, To: 3}, {Name: "c", To: 2}},
		{{Name: "c", To: 1}, {Name: "a", From: 5, To: 4}, {Name: "b", From: 5, To: 4}},
	} {
		require.NoError(t, rollout.Check(f, other))
	}
}

// badOrders is an order list that breaks a bound.
type badOrders struct {
	rule   rollout.Rule
	says   string
	change func(*rollout.Fleet)
	orders []rollout.Scale
}

// TestCheckRefuses: the error about an order that breaks a bound has the rule and the numbers. The fleet has 10
// replicas, a surge of 2 and 1 unavailable.
func TestCheckRefuses(t *testing.T) {
	seen := make(map[rollout.Rule]bool)
	for _, c := range []badOrders{
		{rollout.RuleName, "rollout: web-9 from 0 to 1: 0 sets of the fleet have this name", nil, []rollout.Scale{{Name: "web-9", To: 1}}},
		{rollout.RuleName, "rollout: web-1 from 6 to 5: 2 sets of the fleet have this name", func(f *rollout.Fleet) { f.Sets[2].Name = "web-1" }, []rollout.Scale{{Name: "web-1", From: 6, To: 5}}},
		{
			rollout.RuleOnce, "rollout: web-1 from 5 to 4: order 2 for this set, and a set gets one", nil,
			[]rollout.Scale{{Name: "web-1", From: 6, To: 5}, {Name: "web-1", From: 5, To: 4}},
		},
		{rollout.RuleHeld, "rollout: web-1 from 6 to 5: the set is paused or being deleted, and stays at 6", func(f *rollout.Fleet) { f.Sets[0].Paused = true }, []rollout.Scale{{Name: "web-1", From: 6, To: 5}}},
		{rollout.RuleHeld, "rollout: web-1 from 0 to 1: the set is paused or being deleted, and stays at 0", func(f *rollout.Fleet) { f.Sets[0].Deleting = true }, []rollout.Scale{{Name: "web-1", To: 1}}},
		{rollout.RuleFrom, "rollout: web-1 from 7 to 5: the size ordered until now is 6", nil, []rollout.Scale{{Name: "web-1", From: 7, To: 5}}},
		{rollout.RuleChange, "rollout: web-1 from 6 to 6: changes nothing", nil, []rollout.Scale{{Name: "web-1", From: 6, To: 6}}},
		{rollout.RuleSize, "rollout: web-1 from 6 to -1: -1 is beyond 0", nil, []rollout.Scale{{Name: "web-1", From: 6, To: -1}}},
		{rollout.RuleSize, "rollout: web-3 from 3 to 11: 11 is beyond 10", nil, []rollout.Scale{{Name: "web-3", From: 3, To: 11}}},
		{rollout.RuleSize, "rollout: web-1 from 6 to 13: 13 is beyond 12", nil, []rollout.Scale{{Name: "web-1", From: 6, To: 13}}},
		{rollout.RuleOld, "rollout: web-2 from 2 to 3: 11 machines available, floor is 9: no old set may grow", nil, []rollout.Scale{{Name: "web-2", From: 2, To: 3}}},
		{rollout.RuleOld, "rollout: web-2 from 2 to 3: 9 machines available, floor is 9: no old set may grow", func(f *rollout.Fleet) { f.Sets[0].Available, f.Sets[1].Actual, f.Sets[1].Available = 4, 3, 3 }, []rollout.Scale{{Name: "web-2", From: 2, To: 3}}},
		{rollout.RuleKept, "rollout: web-2 from 2 to 3: an old set that may keep 2 machines", func(f *rollout.Fleet) {
			f.NoRestore, f.Sets[0].Available, f.Sets[1].Actual, f.Sets[1].Available = true, 1, 3, 3
		}, []rollout.Scale{{Name: "web-2", From: 2, To: 3}}},
		{rollout.RuleKept, "rollout: web-2 from 2 to 3: an old set that may keep 2 machines", func(f *rollout.Fleet) { f.Sets[0].Available = 1 }, []rollout.Scale{{Name: "web-2", From: 2, To: 3}}},
		{rollout.RuleCeiling, "rollout: web-3 from 3 to 5: 13 machines ordered or still there, ceiling is 12", nil, []rollout.Scale{{Name: "web-3", From: 3, To: 5}}},
		{
			rollout.RuleCeiling, "rollout: web-3 from 3 to 5: 13 machines ordered or still there, ceiling is 12", nil, // web-1 has yet to remove it
			[]rollout.Scale{{Name: "web-1", From: 6, To: 5}, {Name: "web-3", From: 3, To: 5}},
		},
		{
			rollout.RuleCeiling, "rollout: web-3 from 3 to 4: 13 machines ordered or still there, ceiling is 12",
			func(f *rollout.Fleet) { f.Strict, f.Sets[1].Terminating = true, 1 }, []rollout.Scale{{Name: "web-3", From: 3, To: 4}},
		},
		{rollout.RuleFloor, "rollout: web-1 from 6 to 3: 8 machines sure to stay available, floor is 9", nil, []rollout.Scale{{Name: "web-1", From: 6, To: 3}}},
		{
			rollout.RuleFloor, "rollout: web-2 from 2 to 1: 8 machines sure to stay available, floor is 9", nil,
			[]rollout.Scale{{Name: "web-1", From: 6, To: 4}, {Name: "web-2", From: 2, To: 1}},
		},
		{
			rollout.RuleFloor, "rollout: web-1 from 6 to 5: 8 machines sure to stay available, floor is 9",
			func(f *rollout.Fleet) { f.Sets[2].Behind = 2 }, []rollout.Scale{{Name: "web-1", From: 6, To: 5}},
		},
	} {
		f := rollout.Fleet{Replicas: 10, Bounds: rollout.Bounds{Surge: 2, Unavailable: 1}, Sets: []rollout.Set{
			{Name: "web-1", Spec: 6, Actual: 6, Available: 6}, {Name: "web-2", Spec: 2, Actual: 2, Available: 2},
			{Name: "web-3", New: true, Spec: 3, Actual: 3, Available: 3},
		}}
		if c.change != nil {
			c.change(&f)
		}
		err := rollout.Check(f, c.orders)
		require.EqualError(t, err, c.says)
		var broken *rollout.OrderError
		require.True(t, errors.As(err, &broken))
		require.Equal(t, c.rule, broken.Rule)
		require.NotEqual(t, -1, refused(f, c.orders), c.says)
		seen[c.rule] = true
	}
	require.Len(t, seen, 10, "a rule without a case")
}

// TestCheckOfExtremes: sums may exceed int32.
func TestCheckOfExtremes(t *testing.T) {
	f := rollout.Fleet{Replicas: math.MaxInt32, Bounds: rollout.Bounds{Surge: math.MaxInt32}, Sets: []rollout.Set{
		{Name: "old", Spec: math.MaxInt32, Actual: math.MaxInt32, Available: math.MaxInt32}, {Name: "new", New: true},
	}}
	require.NoError(t, rollout.Check(f, []rollout.Scale{{Name: "new", To: math.MaxInt32}}))
	require.ErrorContains(t, rollout.Check(f, []rollout.Scale{{Name: "old", From: math.MaxInt32, To: 5}}), "5 machines sure to stay available, floor is 2147483647")
}

// numbers draws the numbers of a fleet, from a rapid test, from a random source or from fuzzed bytes.
type numbers struct {
	bound func() int32 // replicas, surge, unavailable
	count func() int32 // spec, actual, available
	below func(n int) int
}

// fleet draws a fleet with at most this number of sets, with unique names. In one case of eight no set is new. In half
// of the cases R + S machines or fewer are ordered, as in the middle of a rollout.
func (n numbers) fleet(sets int) rollout.Fleet {
	f := rollout.Fleet{
		Replicas: n.bound(),
		Bounds:   rollout.Bounds{Surge: n.bound(), Unavailable: n.bound()},
	}
	room := int64(math.MaxInt64)
	if n.below(2) == 0 {
		room = count(f).ceiling
	}
	for i := range n.below(sets + 1) {
		set := rollout.Set{Name: "set-" + strconv.Itoa(i), Spec: int32(min(int64(n.count()), room))}
		room -= max(int64(set.Spec), 0)
		// Most sets have followed their order, or have machines that are all available, or both.
		set.Actual, set.Available = set.Spec, set.Spec
		if n.below(3) == 0 {
			set.Actual = n.count()
			set.Available = set.Actual
		}
		if n.below(2) == 0 {
			set.Available = n.count()
		}
		if n.below(8) == 0 {
			set.Accounted = n.count()
		}
		if n.below(8) == 0 {
			set.Behind = n.count()
		}
		f.Sets = append(f.Sets, set)
	}
	if len(f.Sets) > 0 && n.below(8) > 0 {
		f.Sets[n.below(len(f.Sets))].New = true
	}
	f.NoRestore = n.below(8) == 0
	return f
}

// smallNumbers draw small fleets, in which each machine matters. A number is rarely negative.
func smallNumbers(r *rand.Rand) numbers {
	between := func(low, high int32) func() int32 {
		return func() int32 { return low + r.Int32N(high-low+1) }
	}
	return numbers{bound: between(-1, 7), count: between(-1, 9), below: r.IntN}
}

var extremes = []int32{
	math.MinInt32, math.MinInt32 + 1, -1, 0, 1, 2, 3, 99, 100, 101, 1 << 16, 1<<30 - 1, 1 << 30, 1<<30 + 1,
	math.MaxInt32 - 2, math.MaxInt32 - 1, math.MaxInt32,
}

// extremeNumbers draw numbers from the ends and from the middle of the range of int32.
func extremeNumbers(r *rand.Rand) numbers {
	draw := func() int32 {
		if r.IntN(4) == 0 {
			return int32(r.Uint32())
		}
		return extremes[r.IntN(len(extremes))]
	}
	return numbers{bound: draw, count: draw, below: r.IntN}
}

// fleets draws fleets for properties: small ones, and ones with any int32.
func fleets() *rapid.Generator[rollout.Fleet] {
	return rapid.Custom(func(t *rapid.T) rollout.Fleet {
		bound, count := rapid.Int32Range(-1, 12), rapid.Int32Range(-1, 12)
		if rapid.IntRange(0, 3).Draw(t, "large") == 0 {
			bound = rapid.OneOf(rapid.Int32(), rapid.SampledFrom(extremes))
			count = bound
		}
		n := numbers{
			bound: func() int32 { return bound.Draw(t, "bound") },
			count: func() int32 { return count.Draw(t, "count") },
			below: func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "below") },
		}
		return n.fleet(5)
	})
}

// carriedOut returns the fleet with the orders in its ordered sizes. No set has acted on them yet.
func carriedOut(f rollout.Fleet, orders []rollout.Scale) rollout.Fleet {
	sets := append([]rollout.Set(nil), f.Sets...)
	for _, order := range orders {
		for i := range sets {
			if sets[i].Name == order.Name {
				actsOn := max(0, order.From-max(0, min(sets[i].Behind, order.From)))
				if order.To < order.From || actsOn < order.From || sets[i].Actual > order.From {
					sets[i].Behind = max(0, order.To-actsOn)
				}
				sets[i].Spec = order.To
			}
		}
	}
	f.Sets = sets
	return f
}
