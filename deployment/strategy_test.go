package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
)

// TestStrategyNotSet: a strategy that is not set is a quarter more and a quarter less. One that says
// only its kind has neither, which is taken as one machine less, with a warning.
func TestStrategyNotSet(t *testing.T) {
	kind := deployment.Strategy{Kind: deployment.RollingUpdate}
	more := deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 2}}
	none := deployment.Strategy{MaxSurge: rollout.IntOrPercent{Percent: true}, MaxUnavailable: rollout.IntOrPercent{Percent: true}}
	for _, c := range []struct {
		strategy deployment.Strategy
		replicas int32
		want     rollout.Bounds
		warns    bool
	}{
		{deployment.Strategy{}, 10, rollout.Bounds{Surge: 3, Unavailable: 2}, false},
		{deployment.Strategy{}, 1, rollout.Bounds{Surge: 1}, false},
		{deployment.Strategy{}, 0, rollout.Bounds{Unavailable: 1}, false},
		{deployment.Strategy{}, -4, rollout.Bounds{Unavailable: 1}, false},
		{kind, 10, rollout.Bounds{Unavailable: 1}, true},
		{none, 10, rollout.Bounds{Unavailable: 1}, true},
		{deployment.Strategy{Kind: deployment.InPlaceUpdate}, 10, rollout.Bounds{Unavailable: 1}, true},
		{more, 10, rollout.Bounds{Surge: 2}, false},
		{deployment.Rolling(rollout.IntOrPercent{}, rollout.IntOrPercent{}), 10, rollout.Bounds{Unavailable: 1}, true},
		{deployment.Rolling(rollout.IntOrPercent{Value: 2}, rollout.IntOrPercent{}), 10, rollout.Bounds{Surge: 2}, false},
		{deployment.Rolling(rollout.IntOrPercent{}, rollout.IntOrPercent{Value: 20, Percent: true}), 10, rollout.Bounds{Unavailable: 2}, false},
		{deployment.Strategy{Kind: deployment.Recreate}, 10, rollout.Bounds{Unavailable: 10}, false},
		{deployment.Strategy{Kind: deployment.Recreate}, -10, rollout.Bounds{}, false},
	} {
		require.Equal(t, c.want, c.strategy.Bounds(c.replicas), "%+v of %d", c.strategy, c.replicas)
		if c.replicas < 0 {
			continue // invalid, and nothing else is said of it
		}
		o := settledObservation(t, int(c.replicas))
		o.Deployment.Spec.Strategy = c.strategy
		plan := decide(t, o, begin)
		if plan.Write != nil { // the bounds are in a condition
			o.Deployment.Status = statusOf(t, plan)
			plan = decide(t, o, begin)
		}
		if !c.warns {
			require.Equal(t, decision.Why{}, plan.Warn, "%+v", c.strategy)
			continue
		}
		require.Contains(t, plan.Warn.String(), "neither surge nor unavailable", "%+v", c.strategy)
	}
}
