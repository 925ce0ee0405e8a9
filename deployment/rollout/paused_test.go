package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// withPaused pauses some sets of a fleet.
func (n numbers) withPaused(f rollout.Fleet) rollout.Fleet {
	for i := range f.Sets {
		f.Sets[i].Paused = n.below(3) == 0
	}
	return f
}

// checkPausedDecision checks one decision with paused sets: the bounds, and the reason Paused.
func checkPausedDecision(f rollout.Fleet, orders []rollout.Scale, why rollout.Why) error {
	if err := rollout.Check(f, orders); err != nil {
		return fmt.Errorf("P7: %w", err)
	}
	return namesPaused(f, why)
}

// namesPaused checks that the reason Paused is true of the fleet.
func namesPaused(f rollout.Fleet, why rollout.Why) error {
	if why.Reason == rollout.ReasonDone && !rollout.Done(f) {
		return fmt.Errorf("the reason is Done, but the fleet is not done")
	}
	if why.Reason != rollout.ReasonPaused {
		return nil
	}
	set := find(f, why.Set)
	spec := max(set.Spec, 0)
	if set.Deleting {
		spec = 0
	}
	if !set.Paused || why.Count != max(int64(spec), int64(set.Actual), 0) {
		return fmt.Errorf("the reason is not true of the fleet: %+v", why)
	}
	return nil
}

// TestP5P7PausedSets: with paused sets, Step orders what the oracle does, keeps
// the bounds, and gives a paused set no order.
// Invariants: P2 P5 P7
func TestP5P7PausedSets(t *testing.T) {
	cases := 300_000
	if testing.Short() {
		cases = 40_000
	}
	r := rand.New(rand.NewPCG(31, 32))
	small, extreme := smallNumbers(r), extremeNumbers(r)
	seen := make(map[rollout.Reason]int)
	var orders []rollout.Scale
	for i := range cases {
		f := small.withPaused(small.fleet(4))
		if i%5 == 0 {
			f = extreme.withPaused(extreme.fleet(4))
		}
		for j := range f.Sets {
			f.Sets[j].Chosen = int32(r.IntN(8)/6) * int32(r.IntN(3))
		}
		orders = compareWithOracle(t, f, orders)
		_, why := rollout.Step(f, nil)
		note(seen, orders, why)
		if err := checkPausedDecision(f, orders, why); err != nil {
			t.Fatalf("%v\nfleet  %+v\norders %+v", err, f, orders)
		}
	}
	for _, reason := range []rollout.Reason{
		rollout.ReasonPaused, rollout.ReasonScaleDown, rollout.ReasonNewGrows, rollout.ReasonOldAvailable,
		rollout.ReasonOldUnavailable, rollout.ReasonNewAboveReplicas, rollout.ReasonFloor,
	} {
		require.Greater(t, seen[reason], cases/4_000, "too few cases of %s: %v", reason, seen)
	}
}

// TestPausedSetsElsewhere is TestP5P7PausedSets for Resize, Recreate and InPlace.
// Invariants: P5
func TestPausedSetsElsewhere(t *testing.T) {
	cases := 100_000
	if testing.Short() {
		cases = 20_000
	}
	n := smallNumbers(rand.New(rand.NewPCG(33, 34)))
	seen := make(map[rollout.Reason]int)
	for range cases {
		f := n.withPaused(n.withTerminating(4))
		lead, inUse := leader(f)
		h := newResizeOracle(f, lead)
		h.resize(inUse)
		orders, why := rollout.Resize(f, nil)
		requireAsOracle(t, f, orders, h)
		require.NoError(t, namesPaused(f, why), "%+v", f)
		note(seen, orders, why)

		h = newResizeOracle(f, newName(f))
		h.recreate()
		orders, why = rollout.Recreate(f, nil)
		requireAsOracle(t, f, orders, h)
		require.NoError(t, namesPaused(f, why), "%+v", f)

		f = n.withPaused(n.inPlace(4))
		orders, selects, why := rollout.InPlace(f, nil, nil)
		if what := inPlaceDisagreement(f, orders, selects); what != "" {
			t.Fatalf("the oracle: %s\nfleet   %+v\norders  %+v\nselects %+v", what, f, orders, selects)
		}
		require.NoError(t, checkPausedDecision(f, orders, why), "%+v", f)
		for _, s := range selects {
			require.False(t, find(f, s.Name).Paused, "selects of a paused set: %+v", f)
		}
		note(seen, orders, why)
	}
	require.Greater(t, seen[rollout.ReasonPaused], cases/100)
}

// TestPausedRolloutsConverge: while sets are paused, the bounds are kept. Once nothing is paused any more, the rollout
// completes.
// Invariants: P3
func TestPausedRolloutsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		if !count(w.fleet).hasNew {
			w.wantTemplate(len(w.fleet.Sets))
		}
		least, most := min(w.initial.usable, w.initial.floor), max(w.initial.present, w.initial.ceiling)
		for range rapid.IntRange(0, 30).Draw(t, "actions") {
			i := rapid.IntRange(0, len(w.fleet.Sets)-1).Draw(t, "set")
			set := &w.fleet.Sets[i]
			switch n := rapid.Int32Range(1, 3).Draw(t, "machines"); rapid.IntRange(0, 3).Draw(t, "action") {
			case 0:
				set.Paused = !set.Paused
			case 1:
				if !set.Paused {
					w.obey(i, n)
				}
			case 2:
				w.becomeAvailable(i, n)
			default:
				before := w.fleet
				w.buffer, _ = rollout.Step(before, w.buffer)
				w.fleet = carriedOut(before, w.buffer)
			}
			l := count(w.fleet)
			require.True(t, l.usable >= least && l.present <= most, "%+v", w.fleet)
		}
		for i := range w.fleet.Sets {
			w.fleet.Sets[i].Paused = false
		}
		bound := 4*(count(w.fleet).present+count(w.fleet).wanted) + 10
		for round := int64(0); !rollout.Done(w.fleet); round++ {
			require.LessOrEqual(t, round, bound, "%+v", w.fleet)
			w.decide(4)
			for i := range w.fleet.Sets {
				w.obey(i, 3)
				w.becomeAvailable(i, 3)
			}
		}
	})
}

// TestPausedSetIsNamed: the reason names a paused set, unless the set has its final size.
func TestPausedSetIsNamed(t *testing.T) {
	f := rollout.Fleet{Replicas: 3, Bounds: rollout.Bounds{Surge: 1}, Sets: []rollout.Set{
		{Name: "web-1", Paused: true, Spec: 3, Actual: 3, Available: 3},
		{Name: "web-2", New: true, Spec: 1, Actual: 1, Available: 1},
	}}
	orders, why := rollout.Step(f, nil)
	require.Empty(t, orders)
	require.Equal(t, "set web-1 is paused, with 3 machines", why.String())
	_, why = rollout.Resize(f, nil)
	require.Equal(t, rollout.ReasonPaused, why.Reason, "4 machines are ordered, 3 wanted")
	_, why = rollout.Recreate(f, nil)
	require.Equal(t, rollout.ReasonPaused, why.Reason, "the set's machines stay")
	f.Replicas = 4
	_, why = rollout.Resize(f, nil)
	require.Equal(t, rollout.ReasonHeld, why.Reason, "as many machines are ordered as wanted")
	f.Replicas = 3
	f.Sets[0].Spec = 0 // paused before it has removed its machines
	f.Sets[1].Spec, f.Sets[1].Actual, f.Sets[1].Available = 1, 1, 1
	_, why = rollout.Step(f, nil)
	require.Equal(t, rollout.ReasonPaused, why.Reason)
	require.EqualValues(t, 3, why.Count)
	f.Sets[0] = rollout.Set{Name: "web-1", Paused: true}
	f.Sets[1] = rollout.Set{Name: "web-2", New: true, Paused: true, Spec: 3, Actual: 3, Available: 3}
	_, why = rollout.Step(f, nil)
	require.Equal(t, rollout.ReasonDone, why.Reason)
}
