package preview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/sim/preview"
)

// A share of machines is spread evenly: of the first n, it is the share of n, rounded down.
func TestAmong(t *testing.T) {
	for _, percent := range []int32{0, 1, 25, 33, 50, 99, 100} {
		hits := int64(0)
		for n := int64(1); n <= 300; n++ {
			if preview.Among(n, rollout.IntOrPercent{Value: percent, Percent: true}) {
				hits++
			}
			require.Equal(t, n*int64(percent)/100, hits, "%d%% of %d", percent, n)
		}
	}
	require.True(t, preview.Among(3, rollout.IntOrPercent{Value: 3}))
	require.False(t, preview.Among(4, rollout.IntOrPercent{Value: 3}))
}
