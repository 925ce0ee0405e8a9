package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// TestCallsThatHang plays storms in which calls to the provider do not end at their deadline, up to
// nearly each third of them: P52 and all other invariants hold, and all converges.
// Invariants: P52
func TestCallsThatHang(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 9
	}
	sum := sim.Stats{}
	for seed := range seeds {
		for kind, s := range map[string]*sim.Scenario{"machines": scenario.Random(seed), "pools": scenario.RandomPools(seed)} {
			f := &s.Options.Faults
			f.Hang, f.HangFor = [...]float64{0.02, 0.1, 0.3}[seed%3], 20*time.Minute
			s.Options.Manager.Tuning.CallTimeout = time.Duration(1+seed%7) * time.Minute
			r := play(t, s)
			what := fmt.Sprintf("%s, seed %d", kind, seed)
			require.NoError(t, errorOf(r.Violation), what)
			require.True(t, r.Left.None(), "%s: %s", what, r.Left)
			sum.Add(&r.Stats)
		}
	}
	require.Greater(t, sum.Faults[sim.CallHung], int(seeds))
}
