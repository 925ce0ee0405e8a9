package rollout_test

import (
	"math"
	"math/rand/v2"
	"strconv"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// numbers draws what a fleet consists of: from a rapid test, from a plain random source, from
// fuzzed bytes.
type numbers struct {
	bound func() int32 // replicas, surge, unavailable
	count func() int32 // spec, actual, available
	below func(n int) int
}

// fleet has at most so many sets, with unique names. In one case of eight no set is new. In one of
// two the machines ordered are as many as may be, or fewer, as in the middle of a rollout.
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

// smallNumbers make small fleets, where each number matters; rarely one is negative.
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

// extremeNumbers come from the ends and from the middle of the range.
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

// carriedOut returns the fleet with the orders in its ordered sizes. No set has seen them yet.
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
