package machineset_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// TestMaxReplicas: a set above the policy's limit is not acted upon, and says so;
// a deployment answers for the size of its own sets.
func TestMaxReplicas(t *testing.T) {
	p, now := machineset.DefaultPolicy(), morning.Add(time.Hour)
	p.MaxReplicas = 5
	for replicas, refused := range map[int32]bool{5: false, 6: true, math.MaxInt32: true} {
		for _, owned := range []bool{false, true} {
			o := fleet(min(replicas, 6), 3, false)
			o.Set.Owner = nil
			if owned {
				o.Set.Owner = &object.Owner{Kind: "MachineDeployment", Name: "web", UID: "d"}
			}
			o.Set.Spec.Replicas, o.Read = replicas, decision.Freshness{Began: now}
			plan, err := machineset.Decide(o, p, now)
			require.NoError(t, err)
			if !refused || owned {
				require.NotEqual(t, machineset.ReasonSpecInvalid, plan.Why.Reason)
				continue
			}
			require.IsType(t, &machineset.UpdateStatus{}, plan.Write)
			status := plan.Write.(*machineset.UpdateStatus).Status
			c := object.FindCondition(status.Conditions, machineset.ConditionSpecValid)
			require.Equal(t, object.False, c.Status)
			require.Contains(t, c.Message, "spec.replicas must be at most 5, the policy's limit")
			require.Equal(t, plan.Why, plan.Warn)
			o.Set.Status = status
			plan, err = machineset.Decide(o, p, now)
			require.NoError(t, err)
			require.Equal(t, machineset.Plan{Why: plan.Why}, plan, "it waits for a change")

			unlimited, err := machineset.Decide(o, &machineset.Policy{MaxReplicas: object.Off}, now)
			require.NoError(t, err)
			require.NotEqual(t, machineset.ReasonSpecInvalid, unlimited.Why.Reason, "no limit")

			usual, err := machineset.Decide(o, nil, now)
			require.NoError(t, err)
			require.Equal(t, replicas > 10_000, usual.Why.Reason == machineset.ReasonSpecInvalid, "the default")
		}
	}
	p.MaxReplicas = -2
	_, err := machineset.Decide(fleet(1, 1, false), p, now)
	require.ErrorIs(t, err, object.ErrInvalid)
}

// TestLongestName: the machines of a set of the longest name fit into a host name.
func TestLongestName(t *testing.T) {
	s := &machineset.Set{}
	s.UID = "u"
	for range machineset.LongestName {
		s.Name += "n"
	}
	require.Len(t, s.MachineName(9_999_999), 63)
}
