package replacement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/replacement"
	"github.com/millwright-go/millwright/test/safetytest"
)

// TestGrantForALostVM: without a cluster a machine that does its work may ask. Its slot counts
// until it has expired: of two that ask one is granted (P24).
// Invariants: P24
func TestGrantForALostVM(t *testing.T) {
	p, now := safety.DefaultPolicy(), safetytest.Epoch
	var fleet []*machine.Machine
	for _, name := range []string{"a", "b", "c"} {
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}
		m.Status.Phase = machine.PhaseAvailable
		fleet = append(fleet, m)
	}
	d := &deployment.Deployment{Spec: deployment.Spec{Replicas: 3}}
	ask := func(m *machine.Machine, cluster bool) replacement.Plan {
		plan, err := replacement.Decide(&replacement.Observation{
			Machine: m, Deployment: d, Set: &machineset.Set{}, Fleet: fleet, Read: decision.Freshness{Began: now}, NoCluster: !cluster,
		}, p, now)
		require.NoError(t, err)
		return plan
	}
	require.Equal(t, replacement.ReasonNotAsking, ask(fleet[0], true).Why.Reason)
	d = ask(fleet[0], false).Write.(*replacement.TakeFromDeployment).Deployment
	second := ask(fleet[1], false)
	require.Equal(t, replacement.ReasonBudgetSpent, second.Why.Reason)
	require.False(t, second.Grant.Allowed)
	now = now.Add(3*time.Minute + 2*time.Second)
	require.NotNil(t, ask(fleet[1], false).Write, "nothing came of the slot")
}
