package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/object"
)

func TestValidate(t *testing.T) {
	keys := deployment.DefaultPolicy().Keys
	require.NoError(t, stored(0).Validate(keys))
	for _, line := range []struct {
		field, problem string
		change         func(*deployment.Deployment)
	}{
		{"metadata.name", "must not be empty", func(d *deployment.Deployment) { d.Name = "" }},
		{"spec.replicas", "must not be negative", func(d *deployment.Deployment) { d.Spec.Replicas = -1 }},
		{"spec.minReady", "must not be negative", func(d *deployment.Deployment) { d.Spec.MinReady = -1 }},
		{"spec.selector", "must not be empty", func(d *deployment.Deployment) { d.Spec.Selector = object.Selector{} }},
		{"spec.selector.requirements[0].operator", `"Like" is unknown`, func(d *deployment.Deployment) {
			d.Spec.Selector.Requirements = []object.Requirement{{Key: "app", Operator: "Like"}}
		}},
		{"spec.template.labels", "must match spec.selector", func(d *deployment.Deployment) { d.Spec.Template.Labels["app"] = "db" }},
		{"spec.selector", `must not select by "machine-template-hash", which tells the deployment's own sets apart`, func(d *deployment.Deployment) {
			d.Spec.Selector.Labels[hashLabel] = "x"
			d.Spec.Template.Labels[hashLabel] = "x"
		}},
		{"spec.selector", `must not select by "machine-template-hash", which tells the deployment's own sets apart`, func(d *deployment.Deployment) {
			d.Spec.Selector.Requirements = []object.Requirement{{Key: hashLabel, Operator: object.DoesNotExist}}
		}},
		{"spec.revisionHistoryLimit", "must not be negative", func(d *deployment.Deployment) { d.Spec.RevisionHistoryLimit = ptr(-1) }},
		{"spec.progressDeadline", "must not be negative", func(d *deployment.Deployment) { d.Spec.ProgressDeadline = -1 }},
		{"spec.progressDeadline", "must be at least a second", func(d *deployment.Deployment) { d.Spec.ProgressDeadline = time.Second - 1 }},
		{"spec.strategy.kind", `"Yolo" is unknown`, func(d *deployment.Deployment) { d.Spec.Strategy.Kind = "Yolo" }},
		{"spec.strategy.orchestration", `"Remote" is unknown`, func(d *deployment.Deployment) { d.Spec.Strategy.Orchestration = "Remote" }},
		{"spec.template.spec.inPlace", "must be empty: it is one machine's", func(d *deployment.Deployment) { d.Spec.Template.Spec.InPlace = "Selected" }},
		{"spec.strategy.maxSurge", "must be a whole number, such as 3, or a whole percentage, such as 20%", func(d *deployment.Deployment) {
			d.Spec.Strategy.MaxSurge = rollout.Unreadable
		}},
		{"spec.strategy.maxUnavailable", "must be a whole number, such as 3, or a whole percentage, such as 20%", func(d *deployment.Deployment) {
			d.Spec.Strategy.MaxUnavailable = rollout.Unreadable
		}},
		{"spec.strategy.maxSurge", "must not be negative", func(d *deployment.Deployment) { d.Spec.Strategy.MaxSurge.Value = -1 }},
		{"spec.strategy.maxUnavailable", "must not be negative", func(d *deployment.Deployment) {
			d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: -20, Percent: true}
		}},
		{"spec.template.spec.class.name", "must not be empty", func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = "" }},
		{"spec.template.spec.providerID", "must be empty: it is one machine's", func(d *deployment.Deployment) { d.Spec.Template.Spec.ProviderID = "x" }},
		{"spec.template.spec.nodeName", "must be empty: it is one machine's", func(d *deployment.Deployment) { d.Spec.Template.Spec.NodeName = "x" }},
		{"spec.template.spec.config.drainTimeout", "must not be negative", func(d *deployment.Deployment) { d.Spec.Template.Spec.Config.DrainTimeout = -1 }},
	} {
		o := settledObservation(t, 2)
		d := o.Deployment
		line.change(d)
		d.Generation++
		var bad *object.FieldError
		require.ErrorAs(t, d.Validate(keys), &bad, line.field)
		require.Equal(t, []any{"deployment", d.Key, line.field, line.problem}, []any{bad.Kind, bad.Key, bad.Field, bad.Problem})

		// The result is recorded once, then reported and waited for. Nothing is ordered.
		status := statusOf(t, decide(t, o, begin))
		require.Equal(t, d.Generation, status.ObservedGeneration)
		c := object.FindCondition(status.Conditions, deployment.ConditionSpecValid)
		require.Equal(t, object.False, c.Status)
		require.Equal(t, line.field+" "+line.problem, c.Message)
		require.Equal(t, int32(2), status.Available)
		d.Status = status
		plan := decide(t, o, begin)
		require.Equal(t, deployment.Plan{At: begin.Add(10 * time.Minute), Why: plan.Why, Warn: plan.Why}, plan)
		require.Equal(t, line.field, plan.Why.Name)

		// Deletion still goes on.
		d.DeletedAt = begin
		require.NotEmpty(t, decide(t, o, begin).Delete)
	}
}

func TestStrategyWarnings(t *testing.T) {
	percent := func(n int32) rollout.IntOrPercent { return rollout.IntOrPercent{Value: n, Percent: true} }
	for _, line := range []struct {
		surge, unavailable rollout.IntOrPercent
		warning            string
	}{
		{percent(0), percent(0), "maxSurge and maxUnavailable are both 0: one machine may be unavailable"},
		{rollout.IntOrPercent{}, rollout.IntOrPercent{}, "maxSurge and maxUnavailable are both 0: one machine may be unavailable"},
		{percent(101), percent(100), "spec.strategy.maxSurge: more than 100% (101%)"},
		{percent(100), percent(101), "spec.strategy.maxUnavailable: more than 100% (101%)"},
		{percent(150), percent(200), "spec.strategy.maxSurge and spec.strategy.maxUnavailable: more than 100% (150% and 200%)"},
		{rollout.IntOrPercent{Value: 300}, percent(0), ""},
		{percent(1), percent(0), ""},
	} {
		o := settledObservation(t, 2)
		o.Deployment.Spec.Strategy.MaxSurge, o.Deployment.Spec.Strategy.MaxUnavailable = line.surge, line.unavailable
		require.NoError(t, o.Deployment.Validate(deployment.DefaultPolicy().Keys))
		o.StatusWritten = begin
		require.Equal(t, line.warning, decide(t, o, begin).Warn.String())

		o.Deployment.Spec.Strategy.Kind = deployment.Recreate
		require.Empty(t, decide(t, o, begin).Warn, "Recreate ignores the bounds")
	}
}
