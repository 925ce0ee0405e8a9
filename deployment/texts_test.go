package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/object"
)

// TestP58TextsAreOfTheirMoment: no text of a condition is carried over from an earlier status, from any
// state and after any condition.
// Invariants: P58
func TestP58TextsAreOfTheirMoment(t *testing.T) {
	const old = "as it was"
	rapid.Check(t, func(rt *rapid.T) {
		o := drawLive(rt)
		conditions := []object.Condition{{Type: deployment.ConditionAvailable, Status: object.True, Message: old}}
		for _, typ := range []string{
			deployment.ConditionCreationSlowed, deployment.ConditionReplacementSlowed, deployment.ConditionReplicaFailure,
			deployment.ConditionClassMissing, deployment.ConditionClassInvalid, deployment.ConditionSpecValid, deployment.ConditionVMsOutdated,
		} {
			conditions = append(conditions, object.Condition{Type: typ, Status: object.True, Reason: typ, Message: old})
		}
		progress := object.Condition{Type: deployment.ConditionProgressing, Status: object.True, Message: old}
		progress.Reason = rapid.SampledFrom([]string{
			deployment.ProgressCreated, deployment.ProgressFound, deployment.ProgressUpdated, deployment.ProgressAvailable,
			deployment.ProgressPaused, deployment.ProgressResumed, deployment.ProgressStopped, deployment.ProgressDeadlineExceeded,
		}).Draw(rt, "reason")
		switch progress.Reason {
		case deployment.ProgressDeadlineExceeded, deployment.ProgressStopped:
			progress.Status = object.False
		case deployment.ProgressPaused:
			progress.Status = object.Unknown
		}
		o.Deployment.Status.Conditions = append(conditions, progress)
		o.Deployment.Status.ObservedGeneration = o.Deployment.Generation
		o.Deployment.Revision = rapid.SampledFrom([]int64{0, 1, 2, 3, 4, 5}).Draw(rt, "revision")
		plan := decide(rt, o, begin)
		if update, ok := plan.Write.(*deployment.UpdateStatus); ok && plan.Why.Reason != deployment.ReasonCount { // that one tells nothing
			for _, c := range update.Status.Conditions {
				require.NotEqual(rt, old, c.Message, c.Type)
			}
		}
	})
}
