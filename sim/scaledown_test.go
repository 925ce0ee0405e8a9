package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim/scenario"
)

// TestScaleDownDuringRollouts scales fleets down during rollouts (P7). The first seeds of each latency once
// violated it.
// Invariants: P7
func TestScaleDownDuringRollouts(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 20
	}
	for latency, allSeeds := range map[time.Duration][]uint64{
		300 * time.Millisecond: {262, 2457, 5098, 6599, 8480, 9131},
		3 * time.Second:        {17, 49, 754, 871, 981, 1270, 1508, 2075, 2091, 2309, 2928},
	} {
		t.Run(latency.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				allSeeds = append(allSeeds, 10_000+seed)
			}
			for _, seed := range allSeeds {
				require.NoError(t, errorOf(play(t, scenario.ScaleDown(seed, latency)).Violation), "seed %d", seed)
			}
		})
	}
}
