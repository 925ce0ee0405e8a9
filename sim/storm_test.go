package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
	"github.com/millwright-go/millwright/store"
)

// TestStorm plays scenarios in which anything fails. No invariant is violated. When the faults have
// stopped, everything converges to what was wanted last, and its deletion leaves nothing behind
// (P3, P7, P12 to P17, P22, P24 to P26, P28). Every kind of fault occurs, and the provider refuses
// each call with each code.
// Invariants: P3 P4 P7 P10 P12 P13 P14 P15 P16 P17 P19 P20 P21 P22 P23 P24 P25 P26 P28 P44 P45 P46 P47 P49 P50 P51 P52 P53 P61 P62 P63 P65 P66
func TestStorm(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 60
	}
	all := make([]sim.Stats, 10)
	t.Run("seeds", func(t *testing.T) {
		for part := range all {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := uint64(part); seed < seeds; seed += uint64(len(all)) {
					r := play(t, scenario.Random(seed))
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
	for f := range sim.AllFaults() {
		if slices.Contains(openFaults, f) {
			continue
		}
		require.Positive(t, sum.Faults[f], "%s", f)
	}
	for _, action := range []sim.Action{
		sim.PauseMachine, sim.PauseSet, sim.Preserve, sim.PreserveNode, sim.Prioritize, sim.Replace, sim.ScaleDown, sim.Tag, sim.Retag,
	} {
		require.Positive(t, sum.Actions[action], "%s", action)
	}
	require.Positive(t, sum.Calls[codes.UpdateMachine])
	if !testing.Short() {
		for _, code := range sim.AllCodes() {
			require.Positive(t, sum.Refusals[sim.Refusal{Call: codes.CreateMachine, Code: code}], "%s", code)
		}
	}
	require.Zero(t, sum.Refusals[sim.Refusal{Call: codes.DeleteMachine, Code: codes.NotFound}], "that would be a lie")
	t.Logf("%d steps, %d passes, %d kills", sum.Steps, sum.Passes, sum.Kills())
}

func errorOf(v *sim.Violation) error {
	if v == nil {
		return nil
	}
	return v
}

// TestAnyScenario is TestStorm with scenarios that rapid draws, and shrinks when one fails.
func TestAnyScenario(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		s := scenario.Draw(draw, rapid.Uint64Range(0, 1000).Draw(t, "seed"))
		r, err := sim.Play(s)
		require.NoError(t, err)
		if r.Violation != nil {
			text, _ := json.Marshal(s)
			t.Fatalf("%v in the scenario\n%s", r.Violation, text)
		}
	})
}

// addOrphanVM adds an orphan VM: under a name of its own, or under that of a machine that has one.
func (r *run) stray(i int) {
	if i%2 == 0 {
		r.w.AddOrphanVM(fmt.Sprint("web-stray-", i))
		return
	}
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, m := range machines {
		if m.Status.Phase == machine.PhaseRunning {
			r.w.AddOrphanVM(m.Name)
			return
		}
	}
}

// empty reports whether nothing is left.
func (r *run) empty() bool { return r.left() == "" }

func (r *run) left() string {
	if left := r.w.Left(); !left.None() {
		return left.String()
	}
	return ""
}

// TestStormsOfOld plays storms that once showed a fault: in the library, or in a check that was too
// strict.
func TestStormsOfOld(t *testing.T) {
	// It was before there were pools.
	none := func(s sim.Step) bool { return slices.Contains(poolActions, s.Do) }
	for seed, why := range map[uint64]string{
		144:  "a cache shows that a pod is gone, and not yet that its volumes are followed",
		404:  "the answer is lost that a failed machine is kept",
		566:  "a machine that works is to be replaced, and one that does not is there",
		1512: "a node says nonsense of a machine that is to be kept",
		3515: "a scaler chooses machines of a set that is paused",
		858:  "what a pause held up is carried out when it is over",
	} {
		s := scenario.Random(seed)
		s.Pools, s.Options.Pools, s.Steps = nil, nil, slices.DeleteFunc(s.Steps, none)
		require.NoError(t, errorOf(play(t, s).Violation), why)
	}
}
