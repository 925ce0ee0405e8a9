package sim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// openFaults are those that occur in an open world only.
var openFaults = []sim.Fault{sim.CallThrottled, sim.NodeSpelled, sim.ClockSkewed, sim.UpdateLate, sim.UpdateRebooted, sim.UpdateMended}

// TestOpenStorm is TestStorm with what other programs and people do besides: each of that happens, and
// no invariant is violated.
// Invariants: P48 P50 P53 P61 P62 P63 P64 P65 P66
func TestOpenStorm(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 40
	}
	all := make([]sim.Stats, 10)
	t.Run("seeds", func(t *testing.T) {
		for part := range all {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := uint64(part); seed < seeds; seed += uint64(len(all)) {
					r := play(t, scenario.Open(seed))
					require.NoError(t, errorOf(r.Violation))
					require.True(t, r.Left.None(), "%s", r.Left)
					all[part].Add(&r.Stats)
				}
			})
		}
	})
	sum := sim.Stats{}
	for i := range all {
		sum.Add(&all[i])
	}
	for _, f := range openFaults {
		require.Positive(t, sum.Faults[f], "%s", f)
	}
	for _, action := range scenario.Others() {
		require.Positive(t, sum.Actions[action], "%s", action)
	}
}
