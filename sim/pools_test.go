package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// poolActions are the steps that change pools in storms.
var poolActions = []sim.Action{
	sim.ScalePool, sim.RollPool, sim.SpreadPool, sim.BoundPool, sim.Autoscale, sim.ResizeGroup, sim.ReplaceNode, sim.AskDrain, sim.LoseInstance, sim.LoseGroup,
	sim.FailGroup, sim.StopGroups, sim.DeletePool, sim.RemakePool, sim.ForgetPool,
}

// TestPoolsWithSkewedClock: instances join even if the manager's clock differs from that of the cluster by
// more than the lifetime of a bootstrap token.
func TestPoolsWithSkewedClock(t *testing.T) {
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

// TestPoolStorm plays scenarios with pools in which anything fails, as TestStorm does with fleets. All calls
// are made, all are refused at times, and all steps take effect. The following holds:
//   - groups have the sizes that are wanted and no others (P30, P31);
//   - phases move along the table (P32);
//   - each instance is named once (P33);
//   - an instance that the manager removes was chosen and is drained (P34);
//   - groups are deleted with their pools and before their bootstrap data (P35), also if the
//     manager was killed (P36);
//   - nothing is written or called for a pool at rest (P37);
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
		require.Zero(t, sum.PoolRefusals[sim.PoolRefusal{Call: call, Code: codes.NotFound}], "the provider wrongly answered that a group was gone")
	}
	t.Logf("%d steps, %d passes, %d kills; calls %v", sum.Steps, sum.Passes, sum.Kills(), sum.PoolCalls)
}

// poolScenario returns a scenario without faults of a pool of three, with these steps an hour apart. Its driver can
// remove and replace given instances.
func poolScenario(steps ...sim.Step) *sim.Scenario {
	s := &sim.Scenario{Options: quiet, Classes: []string{"large"}, Pools: []*machinepool.Pool{sim.Pool("herd", 3)}, Steps: steps}
	s.Options.Pools = &sim.PoolOptions{Features: machinepool.Features{DeleteInstances: true, ReplaceInstance: true, RollingUpdate: true}}
	for i := range s.Steps {
		s.Steps[i].After, s.Steps[i].Name = time.Hour, "herd"
	}
	return s
}

// TestPoolLives: without faults, a pool converges to its spec after each kind of step, by the calls that
// are meant for that.
func TestPoolLives(t *testing.T) {
	for name, c := range map[string]struct {
		step sim.Step
		want map[machinepool.Call]int // in addition to the creation and the status reads
	}{
		"nothing":  {sim.Step{}, map[machinepool.Call]int{}},
		"up":       {sim.Step{Do: sim.ScalePool, N: 5}, map[machinepool.Call]int{machinepool.ScalePool: 1}},
		"down":     {sim.Step{Do: sim.ScalePool, N: 1}, map[machinepool.Call]int{machinepool.DeleteInstances: 1}},
		"by hand":  {sim.Step{Do: sim.ResizeGroup, N: 1}, map[machinepool.Call]int{machinepool.ScalePool: 1}},
		"template": {sim.Step{Do: sim.RollPool, Class: "large"}, map[machinepool.Call]int{machinepool.UpdatePool: 1}},
		"zones":    {sim.Step{Do: sim.SpreadPool, N: 2}, map[machinepool.Call]int{machinepool.UpdatePool: 1}},
		"surge":    {sim.Step{Do: sim.BoundPool, N: 2}, map[machinepool.Call]int{machinepool.UpdatePool: 1}},
		"replaced": {sim.Step{Do: sim.ReplaceNode, N: 1}, map[machinepool.Call]int{machinepool.ReplaceInstance: 1}},
		"drained":  {sim.Step{Do: sim.AskDrain, N: 1}, map[machinepool.Call]int{machinepool.InstancesDrained: 1}},
		"lost":     {sim.Step{Do: sim.LoseInstance, N: 1}, map[machinepool.Call]int{}},
		"no group": {sim.Step{Do: sim.LoseGroup}, map[machinepool.Call]int{machinepool.CreatePool: 1}},
		"failed":   {sim.Step{Do: sim.FailGroup, For: time.Hour}, map[machinepool.Call]int{}},
		"silent":   {sim.Step{Do: sim.StopGroups, For: time.Hour}, map[machinepool.Call]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := poolScenario(c.step)
			s.Keep = true
			r := play(t, s)
			require.NoError(t, errorOf(r.Violation))
			c.want[machinepool.CreatePool]++
			for _, call := range machinepool.Calls() {
				if call != machinepool.GetPoolStatus {
					require.Equal(t, c.want[call], r.Stats.PoolCalls[call], "%s", call)
				}
			}
			require.Equal(t, 1, r.Left.Groups)
			if c.step.Do != "" {
				require.Equal(t, 1, r.Stats.Actions[c.step.Do])
			}
			s.Keep = false
			r = play(t, s)
			require.NoError(t, errorOf(r.Violation))
			require.True(t, r.Left.None(), "%s", r.Left)
		})
	}
}

// TestAutoscaledPools: the provider's autoscaler sets the size. When autoscaling ends, the manager keeps
// that size.
func TestAutoscaledPools(t *testing.T) {
	s := poolScenario(sim.Step{Do: sim.Autoscale, Value: "true"}, sim.Step{Do: sim.ResizeGroup, N: 6}, sim.Step{Do: sim.ResizeGroup, N: 2}, sim.Step{Do: sim.Autoscale})
	s.FaultsAfterSteps, s.Keep = time.Hour, true
	nodes := 0
	s.Options.Properties = []sim.Property{{Name: "nodes", Check: func(w *sim.World) error {
		p, err := w.Pools().Get(ctx, object.Key{Namespace: sim.Namespace, Name: "herd"})
		if err == nil {
			nodes = len(p.Status.NodeRefs)
		}
		return err
	}}}
	r := play(t, s)
	require.NoError(t, errorOf(r.Violation))
	require.Equal(t, 2, nodes)
	require.Zero(t, r.Stats.PoolCalls[machinepool.ScalePool]+r.Stats.PoolCalls[machinepool.DeleteInstances])
}

// ignoringDriver is a pool driver that ignores one kind of call, and answers that it was carried out.
type ignoringDriver struct {
	pooldriver.Driver
	w    *sim.World
	call machinepool.Call
}

func (d ignoringDriver) Unwrap() pooldriver.Driver { return d.Driver }

func (d ignoringDriver) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	if d.call == machinepool.ScalePool {
		return &pooldriver.Response{}, nil
	}
	return d.Driver.ScalePool(ctx, req)
}

func (d ignoringDriver) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	if d.call == machinepool.DeletePool {
		return &pooldriver.Response{}, nil
	}
	return d.Driver.DeletePool(ctx, req)
}

// TestBrokenPoolDriversAreFound: the simulation finds a pool driver's mistake, and Shrink makes the scenario
// that finds it smaller.
// Invariants: P37
func TestBrokenPoolDriversAreFound(t *testing.T) {
	for call, rule := range map[machinepool.Call]string{machinepool.ScalePool: sim.RuleSettled, machinepool.DeletePool: "P35"} {
		s := poolScenario(sim.Step{Do: sim.SpreadPool, N: 2}, sim.Step{Do: sim.ScalePool, N: 5}, sim.Step{Do: sim.LoseInstance})
		s.Pools = append(s.Pools, sim.Pool("flock", 1))
		s.Limit = 12 * time.Hour
		s.Options.PoolDriver = func(w *sim.World) pooldriver.Driver { return ignoringDriver{w.Groups(), w, call} }
		found := play(t, s).Violation
		require.NotNil(t, found, "%s", call)
		require.Equal(t, rule, found.Rule)
		small := scenario.Shrink(s, rule, 200)
		require.Len(t, small.Pools, 1)
		require.Len(t, s.Pools, 2)
		require.LessOrEqual(t, len(small.Steps), 1)
	}
}

// TestPoolScenariosAreSaved: a scenario that was written to JSON and read again gives the same run.
func TestPoolScenariosAreSaved(t *testing.T) {
	for seed := range uint64(5) {
		s := scenario.RandomPools(seed)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		again := &sim.Scenario{}
		require.NoError(t, json.Unmarshal(text, again))
		first, err := scenario.Trace(s)
		require.NoError(t, err)
		second, err := scenario.Trace(again)
		require.NoError(t, err)
		require.Equal(t, first, second, "seed %d", seed)
	}
}

// TestStormsWithoutPools: most storms have no pools, and no steps that change pools.
func TestStormsWithoutPools(t *testing.T) {
	withPools := 0
	for seed := range uint64(100) {
		s := scenario.Random(seed)
		if s.Options.Pools != nil {
			withPools++
			require.NotEmpty(t, s.Pools)
			continue
		}
		require.Empty(t, s.Pools)
		for i := range s.Steps {
			require.NotContains(t, poolActions, s.Steps[i].Do)
		}
	}
	require.InDelta(t, 20, withPools, 10)
}
