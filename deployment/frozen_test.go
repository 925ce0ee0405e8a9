package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
)

// TestFrozenGrowsNothing: from any state, a frozen deployment creates no set and raises none but
// one of negative size. It orders the same lowerings as otherwise.
// Invariants: P25
func TestFrozenGrowsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		thawed := decide(t, o, begin)
		o.Frozen = true
		frozen := decide(t, o, begin)
		require.Empty(t, frozen.Create)
		var lowered []deployment.Order
		restores := false
		for _, order := range thawed.Scale {
			if order.Why.Want < order.Why.Have {
				lowered = append(lowered, order)
			}
			restores = restores || deployment.RolloutOf(order.Why).Reason == rollout.ReasonRestored
		}
		for _, order := range frozen.Scale {
			require.Less(t, order.Why.Want, order.Why.Have)
		}
		if len(thawed.Create) == 0 && len(thawed.Scale) > 0 && !restores { // that may lower others to make room
			require.Equal(t, lowered, frozen.Scale)
		}
	})
}

// TestFrozenSaysSo: a frozen deployment reports what it waits for, and continues from there when it
// thaws.
func TestFrozenSaysSo(t *testing.T) {
	d := stored(3)
	o := &deployment.Observation{Deployment: d, Read: live, Frozen: true, Sets: []deployment.Children{ownSet(d, "web-a", 1)}}
	plan := decide(t, o, begin)
	for range 5 { // the status and the revision come first
		if update, ok := plan.Write.(*deployment.UpdateStatus); ok {
			o.Deployment = o.Deployment.Clone()
			o.Deployment.Status = update.Status
		}
		if update, ok := plan.Write.(*deployment.Update); ok {
			o.Deployment = update.Deployment
		}
		plan = decide(t, o, begin)
	}
	require.Nil(t, plan.Write)
	require.Equal(t, deployment.ReasonFrozen, plan.Why.Reason)
	require.Contains(t, plan.Why.String(), "frozen: no set is created, and none grows: ")
	o.Frozen = false
	require.Len(t, decide(t, o, begin).Scale, 1)
}
