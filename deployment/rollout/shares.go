package rollout

import (
	"math"
	"math/bits"
	"slices"
)

// inline is the largest number of sets whose working storage lies on the stack.
const inline = 16

// Shares divides total among sets in proportion to their sizes, for a scale-down that affects all
// sets equally. The sum of the shares is total. Each share is the exact proportion rounded down; what
// that leaves over is added, one machine to a set, to the largest sets first, and among equal ones to
// the first. So every share differs by less than one from the exact proportion and is never above the size, and
// a larger set never has a smaller share.
//
// Negative sizes and a negative total count as 0, and a total above the sum of the sizes as that sum.
// The result has the length of sizes. It is built in out, whose content is replaced, and which must not
// overlap sizes. If out is nil, it is allocated.
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
	// Div64 requires high < sum. That holds because the quotient is at most size.
	quotient, _ := bits.Div64(high, low, uint64(sum))
	return int64(quotient)
}

// giveLeftovers adds one machine each to the shares of the largest sets, as many as left says. There are enough
// sets, because rounding took less than one machine from each. If left is not 0, total < sum, so that each share is
// below its set's size.
func giveLeftovers(left int64, sizes, shares []int32) {
	var array [inline]uint64
	keys := array[:0]
	if len(sizes) > inline {
		keys = make([]uint64, 0, len(sizes))
	}
	// The size is in the high bits, the inverted position in the low ones: of equal sizes the first
	// has the largest key.
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
