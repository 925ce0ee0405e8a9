package rollout_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// TestP8StrictQuota: no order of any strategy raises the total, including terminating machines,
// above R + S. A step that is not done says what it waits for.
// Invariants: P8
func TestP8StrictQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleets().Draw(t, "fleet")
		f.Strict = true
		for i := range f.Sets {
			f.Sets[i].Terminating = rapid.SampledFrom([]int32{0, 0, 1, 2, 5, -1}).Draw(t, "terminating")
		}
		onHold, recreated := f, f
		onHold.StopAfter, onHold.Failed = 1, 1
		recreated.Bounds = rollout.Bounds{Unavailable: math.MaxInt32}
		strategy := rapid.SampledFrom([]struct {
			decide rule
			checks rollout.Fleet
		}{{rollout.Step, f}, {rollout.Resize, onHold}, {rollout.Recreate, recreated}}).Draw(t, "strategy")
		orders, why := strategy.decide(f, nil)
		require.NoError(t, rollout.Check(strategy.checks, orders), "P8: %v", f)
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
