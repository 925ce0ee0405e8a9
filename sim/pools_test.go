package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// poolActions are the steps that change pools in storms.
var poolActions = []sim.Action{
	sim.ScalePool, sim.RollPool, sim.SpreadPool, sim.BoundPool, sim.Autoscale, sim.ResizeGroup, sim.ReplaceNode, sim.AskDrain, sim.LoseInstance, sim.LoseGroup,
	sim.FailGroup, sim.StopGroups, sim.DeletePool, sim.RemakePool, sim.ForgetPool,
}

// TestPoolsUnderAnotherClock: instances join also if the manager's clock is further behind the cluster's,
// or ahead of it, than a bootstrap token lives.
func TestPoolsUnderAnotherClock(t *testing.T) {
	for seed := range uint64(6) {
		for _, skew := range []time.Duration{-50 * time.Minute, 50 * time.Minute} {
			s := scenario.RandomPools(seed)
			s.Options.Faults.ClockJumps = sim.Spells{}
			s.Options.Faults.Skew = skew
			r := play(t, s)
			require.NoError(t, errorOf(r.Violation))
			require.True(t, r.Left.None(), "%s", r.Left)
		}
	}
}

// TestPoolStorm plays scenarios with pools in which anything fails, as TestStorm does with fleets.
// It checks the following, and that each call is made, each call is refused, and each step takes
// effect:
//   - groups have the sizes that are wanted and no others (P30, P31);
//   - phases move along the table (P32);
//   - each instance is named once (P33);
//   - an instance that the manager removes was chosen and is empty (P34);
//   - groups are deleted with their pools and before their bootstrap data (P35), also if the
//     manager was killed (P36);
//   - what is at rest is left alone (P37);
//   - no node of a pool is left without an owner (P39).
//
// Invariants: P30 P31 P32 P33 P34 P35 P36 P37 P39 P44
func TestPoolStorm(t *testing.T) {
	seeds := uint64(450)
	if testing.Short() {
		seeds = 60
	}
	all := make([]sim.Stats, 10)
	t.Run("seeds", func(t *testing.T) {
		for part := range all {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := uint64(part); seed < seeds; seed += uint64(len(all)) {
					r := play(t, scenario.RandomPools(seed))
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
	for _, action := range poolActions {
		require.Positive(t, sum.Actions[action], "%s", action)
	}
	refused := map[machinepool.Call]int{}
	for r, n := range sum.PoolRefusals {
		refused[r.Call] += n
	}
	for _, call := range machinepool.Calls() {
		require.Positive(t, sum.PoolCalls[call], "%s", call)
		if !testing.Short() {
			require.Positive(t, refused[call], "%s", call)
		}
	}
	for _, call := range []machinepool.Call{machinepool.DeletePool, machinepool.GetPoolStatus} {
		require.Zero(t, sum.PoolRefusals[sim.PoolRefusal{Call: call, Code: codes.NotFound}], "that would be a lie")
	}
	t.Logf("%d steps, %d passes, %d kills; calls %v", sum.Steps, sum.Passes, sum.Kills(), sum.PoolCalls)
}
