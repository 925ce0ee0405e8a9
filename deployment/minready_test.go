package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
)

// TestMinReadyIgnored: a deployment whose MinReady is ignored is treated as one that has none, from any
// state, but for the field itself, which stays and is passed on to sets.
func TestMinReadyIgnored(t *testing.T) {
	p := deployment.DefaultPolicy()
	p.IgnoreMinReady = true
	without := func(plan deployment.Plan) deployment.Plan {
		for _, orders := range ordersOf(&plan) {
			for i := range orders {
				orders[i].Set = orders[i].Set.Clone()
				orders[i].Set.Spec.MinReady = 0
			}
		}
		if update, ok := plan.Write.(*deployment.Update); ok {
			d := update.Deployment.Clone()
			d.Spec.MinReady = 0
			plan.Write = &deployment.Update{Deployment: d, News: update.News}
		}
		return plan
	}
	rapid.Check(t, func(rt *rapid.T) {
		o := drawLive(rt)
		minReady := o.Deployment.Spec.MinReady
		got, err := deployment.Decide(o, p, begin)
		require.NoError(rt, err)
		for _, order := range got.Create {
			require.Equal(rt, minReady, order.Set.Spec.MinReady)
		}
		none := copyOf(o)
		none.Deployment.Spec.MinReady = 0
		for i := range none.Sets {
			none.Sets[i].Set.Spec.MinReady = 0
		}
		require.Equal(rt, without(decide(rt, none, begin)), without(got))
	})
}
