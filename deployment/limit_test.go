package deployment_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// TestMaxReplicas: a deployment above the policy's limit orders nothing, and says why. Its machines
// are still counted.
func TestMaxReplicas(t *testing.T) {
	p := deployment.DefaultPolicy()
	p.MaxReplicas = 5
	for replicas, refused := range map[int32]bool{5: false, 6: true, math.MaxInt32: true} {
		o := settledObservation(t, 3)
		o.Deployment.Spec.Replicas = replicas
		plan, err := deployment.Decide(o, p, begin)
		require.NoError(t, err)
		require.Equal(t, !refused, len(plan.Scale) > 0, plan.Why)
		if !refused {
			continue
		}
		status := statusOf(t, plan)
		c := object.FindCondition(status.Conditions, deployment.ConditionSpecValid)
		require.Equal(t, object.False, c.Status)
		require.Contains(t, c.Message, "spec.replicas must be at most 5, the policy's limit")
		require.Equal(t, int32(3), status.Replicas)
		o.Deployment.Status = status
		plan, err = deployment.Decide(o, p, begin)
		require.NoError(t, err)
		require.Nil(t, plan.Write)
		require.Contains(t, plan.Why.String(), "at most 5")

		plan, err = deployment.Decide(o, &deployment.Policy{MaxReplicas: object.Off}, begin)
		require.NoError(t, err)
		require.NotEmpty(t, plan.Scale, "no limit")
	}
	for replicas, refused := range map[int32]bool{10_000: false, 10_001: true} {
		o := settledObservation(t, 3)
		o.Deployment.Spec.Replicas = replicas
		plan, err := deployment.Decide(o, nil, begin)
		require.NoError(t, err)
		require.Equal(t, refused, len(plan.Scale) == 0, "the default")
	}
	p.MaxReplicas = -2
	_, err := deployment.Decide(settledObservation(t, 1), p, begin)
	require.ErrorIs(t, err, object.ErrInvalid)
}

// TestLongNames: the sets of a deployment have names that leave room for those of machines. An
// existing set keeps its name.
func TestLongNames(t *testing.T) {
	for name, begins := range map[string]string{
		"web":                          "web-",
		strings.Repeat("n", 38):        strings.Repeat("n", 38) + "-",
		strings.Repeat("n", 39):        strings.Repeat("n", 38) + "-",
		strings.Repeat("n", 37) + "-b": strings.Repeat("n", 37) + "-",
		strings.Repeat("n", 63):        strings.Repeat("n", 38) + "-",
	} {
		d := stored(3)
		d.Name = name
		plan := decide(t, &deployment.Observation{Deployment: d, Read: live}, begin)
		require.Len(t, plan.Create, 1)
		made := plan.Create[0].Set
		require.True(t, strings.HasPrefix(made.Name, begins), made.Name)
		require.Len(t, made.Name, len(begins)+10)
		require.LessOrEqual(t, len(made.Name), machineset.LongestName)
		made.UID = "u"
		require.LessOrEqual(t, len(made.MachineName(9_999_999)), 63)

		own := ownSet(d, name+"-0123456789", 3)
		plan = decide(t, &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{own}}, begin)
		require.Empty(t, plan.Create)
	}
}
