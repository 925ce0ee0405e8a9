package rollout_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

func TestShares(t *testing.T) {
	const most = math.MaxInt32
	for _, c := range []struct {
		name  string
		total int64
		sizes []int32
		want  []int32
	}{
		{"no sets", 3, []int32{}, nil},
		{"nothing to share", 0, []int32{4, 2}, []int32{0, 0}},
		{"even", 4, []int32{5, 5}, []int32{2, 2}},
		{"in proportion", 6, []int32{10, 5, 15}, []int32{2, 1, 3}},
		{"leftover to the largest", 3, []int32{2, 7, 3}, []int32{0, 2, 1}},
		{"leftovers, one apiece", 2, []int32{1, 1, 1}, []int32{1, 1, 0}},
		{"all of it", 12, []int32{2, 7, 3}, []int32{2, 7, 3}},
		{"more than there is", 99, []int32{2, 7, 3}, []int32{2, 7, 3}},
		{"all but one", 2, []int32{1, 1, 1}, []int32{1, 1, 0}},
		{"an empty set gets none", 1, []int32{0, 1, 0}, []int32{0, 1, 0}},
		{"negative size", 2, []int32{-5, 2, 2}, []int32{0, 1, 1}},
		{"negative total", -2, []int32{2, 2}, []int32{0, 0}},
		{"largest numbers", 2*most - 1, []int32{most, most}, []int32{most, most - 1}},
		{"product beyond 64 bits", 5 * most, []int32{most, most, most, most, most, most}, []int32{
			1789569706, 1789569706, 1789569706, 1789569706, 1789569706, 1789569705,
		}},
		{"all sizes equal, many sets", 17, make20(1), append(make20(1)[:17], 0, 0, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, rollout.Shares(c.total, c.sizes, nil))
		})
	}
}

func make20(size int32) []int32 {
	sizes := make([]int32, 20)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}

// P9: exact sums, no share above its size, within one of the exact proportion, and in the order of
// the sizes; and as the oracle has it.
// Invariants: P9
func TestP9SharesSumExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Int32Range(-1, 9), rapid.SampledFrom(extremes), rapid.Int32())
		sizes := rapid.SliceOfN(size, 0, 24).Draw(t, "sizes")
		clamped, sum := make([]int64, len(sizes)), int64(0)
		for i := range sizes {
			clamped[i] = max(int64(sizes[i]), 0)
			sum += clamped[i]
		}
		total := rapid.OneOf(rapid.Int64Range(-1, sum+1), rapid.Int64()).Draw(t, "total")
		shares := rollout.Shares(total, sizes, make([]int32, 2, 40))
		total = min(max(total, 0), sum)

		require.Len(t, shares, len(sizes))
		left := total
		for i, share := range shares {
			left -= int64(share)
			require.GreaterOrEqual(t, share, int32(0))
			require.LessOrEqual(t, int64(share), clamped[i])
			require.True(t, nearProportion(int64(share), total, clamped[i], sum), "share %d of %v", i, shares)
			for j := range shares {
				require.False(t, clamped[i] > clamped[j] && share < shares[j], "a larger set got less: %v", shares)
			}
		}
		require.Zero(t, left)
		for i, want := range oracleShares(total, clamped) {
			require.Equal(t, want, int64(shares[i]))
		}
	})
}

// nearProportion reports whether |share − total × size / sum| <= 1, multiplied by sum.
func nearProportion(share, total, size, sum int64) bool {
	exact := new(big.Int).Mul(big.NewInt(total), big.NewInt(size))
	difference := new(big.Int).Mul(big.NewInt(share), big.NewInt(sum))
	return difference.Sub(difference, exact).CmpAbs(big.NewInt(sum)) <= 0
}

func TestSharesKeepsBuffer(t *testing.T) {
	buffer := make([]int32, 0, 8)
	shares := rollout.Shares(3, []int32{2, 2}, buffer)
	require.Same(t, &buffer[:1][0], &shares[0])
}
