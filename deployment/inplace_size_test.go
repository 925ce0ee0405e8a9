package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
)

// TestP10SizeThatMeansNothingAmidAMove: a user makes a set's size negative while a machine is on
// its way. The set keeps what it has, less the machine that goes, more the one that stays.
func TestP10SizeThatMeansNothingAmidAMove(t *testing.T) {
	for name, c := range map[string]struct {
		note   func(old, current deployment.Children)
		reason decision.Reason
		size   int32
	}{
		"a machine leaves": {func(old, current deployment.Children) {
			current.Set.Instructions.Handover.Arriving = []string{old.Machines[0].Name}
		}, deployment.ReasonMoveFrom, 2},
		"a machine has nowhere to go": {func(old, _ deployment.Children) {
			old.Set.Instructions.Handover.Leaving = []string{old.Machines[0].Name}
		}, deployment.ReasonMoveBack, 3},
		"a machine has left": {func(old, _ deployment.Children) {
			old.Set.Instructions.Handover.Leaving = []string{"moved"}
		}, deployment.ReasonMoveDone, 3},
		"a machine has arrived": {func(old, _ deployment.Children) {
			old.Set.Instructions.Handover.Arriving = []string{old.Machines[0].Name}
		}, deployment.ReasonMoveDone, 3},
		"a machine died on its way": {func(old, _ deployment.Children) {
			old.Set.Instructions.Handover.Arriving = []string{"dead"}
		}, deployment.ReasonMoveOff, 3},
	} {
		d := stored(4)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{another(d, "large", 0, 3), ownSet(d, "web-a", 1)}}
		o.Sets[0].Set.Spec.Replicas = -2
		c.note(o.Sets[0], o.Sets[1])
		plan := decide(t, o, begin)
		require.Len(t, plan.Handover, 1, name)
		require.Equal(t, c.reason, plan.Handover[0].Why.Reason, name)
		require.Equal(t, c.size, plan.Handover[0].Set.Spec.Replicas, "%s: %s", name, plan.Handover[0].Why)
	}
}
