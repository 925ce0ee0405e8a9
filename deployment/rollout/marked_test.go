package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// markedFleets are fleets in which a scaler has chosen machines for deletion.
func markedFleets() *rapid.Generator[rollout.Fleet] {
	return rapid.Custom(func(t *rapid.T) rollout.Fleet {
		f := fleets().Draw(t, "fleet")
		for i := range f.Sets {
			f.Sets[i].Marked = rapid.SampledFrom([]int32{0, 0, 1, 2, 3, -1, 1 << 30}).Draw(t, "marked")
		}
		return f
	})
}

// TestP20StepTakesWhatWasChosen: the rules in words, with a scaler's choice first, give the same
// sizes, and the bounds still hold.
// Invariants: P20
func TestP20StepTakesWhatWasChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := markedFleets().Draw(t, "marked fleet")
		orders, _ := rollout.Step(f, nil)
		require.Empty(t, disagreement(f, orders))
		require.NoError(t, rollout.Check(f, orders), "P7")
	})
}

// TestP20ChosenMachinesGoFromTheSetThatHasThem: if all machines are available and availability
// permits it, each set loses as many as were chosen of it, though the ceiling would not require
// one.
func TestP20ChosenMachinesGoFromTheSetThatHasThem(t *testing.T) {
	for _, chosen := range []int{0, 1} {
		f := rollout.Fleet{Replicas: 9, Bounds: rollout.Bounds{Surge: 1, Unavailable: 1}, Sets: []rollout.Set{
			{Name: "old", Spec: 6, Actual: 6, Available: 6}, {Name: "new", New: true, Spec: 4, Actual: 4, Available: 4},
		}}
		f.Sets[chosen].Marked = 1
		orders, _ := rollout.Step(f, nil)
		size := map[string]int32{"old": 6, "new": 4}
		for _, order := range orders {
			size[order.Name] = order.To
			if order.Name == f.Sets[chosen].Name {
				require.Equal(t, rollout.ReasonMarked, order.Why.Reason)
				require.Contains(t, order.Why.String(), "1 chosen by a scaler")
			}
		}
		require.Less(t, size[f.Sets[chosen].Name], f.Sets[chosen].Spec)
		if chosen == 1 {
			require.EqualValues(t, 3, size["new"], "raised again, the machine would stay")
		}
	}
}

// TestP20ResizeTakesWhatWasChosen: while nothing is rolled, the set that would grow loses what was
// chosen, and is not raised for it.
func TestP20ResizeTakesWhatWasChosen(t *testing.T) {
	f := rollout.Fleet{Replicas: 8, Bounds: rollout.Bounds{Surge: 2, Unavailable: 1}, Sets: []rollout.Set{
		{Name: "old", Spec: 5, Actual: 5, Available: 5}, {Name: "new", New: true, Spec: 4, Actual: 4, Available: 4, Marked: 1},
	}}
	orders, _ := rollout.Resize(f, nil)
	require.Len(t, orders, 1)
	require.Equal(t, "new", orders[0].Name)
	require.EqualValues(t, 3, orders[0].To)
	f.Replicas = 9
	orders, _ = rollout.Resize(f, nil)
	require.Empty(t, orders, "none is left above R")
}

// TestP20ChosenOfASetAboveReplicas: a set that is lowered to R anyway is not lowered further for
// those that were chosen.
func TestP20ChosenOfASetAboveReplicas(t *testing.T) {
	f := rollout.Fleet{Replicas: 8, Bounds: rollout.Bounds{Unavailable: 2}, Sets: []rollout.Set{
		{Name: "new", New: true, Spec: 10, Actual: 10, Available: 10, Marked: 2},
	}}
	for _, decide := range []func(rollout.Fleet, []rollout.Scale) ([]rollout.Scale, rollout.Why){rollout.Step, rollout.Resize, rollout.Recreate} {
		orders, _ := decide(f, nil)
		require.Len(t, orders, 1)
		require.EqualValues(t, 8, orders[0].To)
	}
}

// TestP20WhyCountsWhatWasChosen: of the machines that a set loses, the reason counts those that a
// scaler chose, and no share.
// Invariants: P20
func TestP20WhyCountsWhatWasChosen(t *testing.T) {
	f := rollout.Fleet{Replicas: 4, Bounds: rollout.Bounds{Surge: 1, Unavailable: 1}, Sets: []rollout.Set{
		{Name: "old", Spec: 6, Actual: 6, Available: 6, Marked: 1}, {Name: "new", New: true, Spec: 4, Actual: 4, Available: 4},
	}}
	orders, _ := rollout.Step(f, nil)
	require.Equal(t, "old", orders[0].Name)
	require.Equal(t, rollout.ReasonMarked, orders[0].Why.Reason)
	require.Greater(t, orders[0].Why.Count, int64(1))
	require.EqualValues(t, 1, orders[0].Why.Share, "%s", orders[0].Why)
}
