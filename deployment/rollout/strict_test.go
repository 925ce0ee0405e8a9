package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// existing is how many machines there may be before all sets have followed
// their orders, those being deleted among them.
func existing(f rollout.Fleet) (n int64) {
	for _, set := range f.Sets {
		spec := max(int64(set.Spec), 0)
		if set.Going {
			spec = 0
		}
		n += max(spec, max(int64(set.Actual), 0)+max(int64(set.Terminating), 0))
	}
	return n
}

// TestP8StrictQuota: no order of any strategy raises the total, including terminating machines,
// above R + S. A step that is not done says what it waits for.
func TestP8StrictQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleets().Draw(t, "fleet")
		f.Strict = true
		for i := range f.Sets {
			f.Sets[i].Terminating = rapid.SampledFrom([]int32{0, 0, 1, 2, 5, -1}).Draw(t, "terminating")
		}
		decide := rapid.SampledFrom([]func(rollout.Fleet, []rollout.Scale) ([]rollout.Scale, rollout.Why){
			rollout.Step, rollout.Resize, rollout.Recreate,
		}).Draw(t, "strategy")
		orders, why := decide(f, nil)
		before, after := existing(f), existing(carriedOut(f, orders))
		require.LessOrEqual(t, after, max(before, count(f).ceiling), "P8: %+v", orders)
		require.NotEmpty(t, why.String())
		if why.Reason == rollout.ReasonDone {
			require.True(t, rollout.Done(f), "done, it says")
		}
	})
}

// TestP8StrictQuotaSaysWhatItWaitsFor if a terminating machine has the room of the next one.
func TestP8StrictQuotaSaysWhatItWaitsFor(t *testing.T) {
	f := rollout.Fleet{Replicas: 3, Bounds: rollout.Bounds{Surge: 1}, Strict: true, Sets: []rollout.Set{
		{Name: "old", Spec: 2, Actual: 2, Available: 2, Terminating: 1},
		{Name: "new", New: true, Spec: 1, Actual: 1, Available: 1},
	}}
	orders, why := rollout.Step(f, nil)
	require.Empty(t, orders)
	require.Equal(t, "1 machine of set new; waiting for 1 terminating machine to be gone, which count: ceiling is 4", why.String())
	orders, why = rollout.Resize(f, nil)
	require.Empty(t, orders)
	require.Equal(t, rollout.ReasonHeld, why.Reason, "three are ordered")
	f.Sets[0].Terminating = 0
	orders, _ = rollout.Step(f, nil)
	require.Len(t, orders, 1)
	f.Sets[0] = rollout.Set{Name: "old", Spec: 1, Actual: 1, Available: 1, Terminating: 2}
	orders, why = rollout.Resize(f, nil)
	require.Empty(t, orders)
	require.Equal(t, rollout.ReasonQuota, why.Reason)
}
