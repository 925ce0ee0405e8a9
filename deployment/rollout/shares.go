package rollout

import (
	"math"
	"math/bits"
	"slices"
)

// inline is the largest number of sets whose working storage lies on the stack.
const inline = 16

// Shares divides total among sets in proportion to their sizes, for a scale-down that affects all
// alike. The shares sum exactly to total. Each is its exact proportion rounded down. What that
// leaves over is given out one apiece, to the largest set first, of equal ones to the first. So
// every share is within one of the exact proportion and never above its size, and a larger set
// never has the smaller share.
//
// Total and sizes are in machines; a negative size counts as 0, a negative total as 0, and a total
// above the sum of the sizes as that sum. The result has the length of sizes; it is built in out,
// which must not overlap sizes and whose content is replaced. A nil out is allocated.
func Shares(total int64, sizes, out []int32) []int32 {
	sum := int64(0)
	for _, size := range sizes {
		sum += max(int64(size), 0)
	}
	total = min(max(total, 0), sum)
	left := total
	out = slices.Grow(out[:0], len(sizes))
	for _, size := range sizes {
		share := proportion(total, size, sum)
		out = append(out, int32(share))
		left -= share
	}
	if left > 0 {
		giveLeftovers(left, sizes, out)
	}
	return out
}

// proportion returns total × size / sum, rounded down, for total <= sum. The product may need 128
// bits.
func proportion(total int64, size int32, sum int64) int64 {
	if size <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(total), uint64(size))
	if high == 0 {
		return int64(low / uint64(sum))
	}
	// The quotient is at most size, so high < sum, which Div64 asks for.
	quotient, _ := bits.Div64(high, low, uint64(sum))
	return int64(quotient)
}

// giveLeftovers adds one to each of the largest sets, as many as are left. Fewer are left than
// there are sets with a size, since each lost less than one to rounding. If any is left, total <
// sum, so that each of these sets has a share below its size.
func giveLeftovers(left int64, sizes, shares []int32) {
	var array [inline]uint64
	keys := array[:0]
	if len(sizes) > inline {
		keys = make([]uint64, 0, len(sizes))
	}
	// Size above, position below and inverted: of equal sizes the first has the largest key.
	for i, size := range sizes {
		if size > 0 {
			keys = append(keys, uint64(size)<<32|uint64(math.MaxUint32-uint32(i)))
		}
	}
	slices.Sort(keys)
	for i := len(keys) - 1; i >= 0 && left > 0; i-- {
		shares[math.MaxUint32-uint32(keys[i])]++
		left--
	}
}
