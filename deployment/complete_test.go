package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/object"
)

// TestMissing: a status says what is missing, one thing at a time, and what holds it up.
func TestMissing(t *testing.T) {
	complete := func() *deployment.Deployment {
		d := &deployment.Deployment{Meta: object.Meta{Generation: 4}, Spec: deployment.Spec{Replicas: 10}}
		d.Status = deployment.Status{ObservedGeneration: 4, Replicas: 10, Updated: 10, Ready: 10, Available: 10}
		return d
	}
	for missing, change := range map[string]func(*deployment.Deployment){
		"":                                func(d *deployment.Deployment) { d.Spec.Paused = true },
		"the deployment is being deleted": func(d *deployment.Deployment) { d.DeletedAt = begin },
		"the current spec has not been observed yet": func(d *deployment.Deployment) { d.Status.ObservedGeneration = 3 },
		"the spec is invalid: no selector": func(d *deployment.Deployment) {
			d.Status.Conditions = []object.Condition{{Type: deployment.ConditionSpecValid, Status: object.False, Message: "no selector"}}
		},
		"9 of 10 machines are updated":    func(d *deployment.Deployment) { d.Status.Updated = 9 },
		"old machines are still there: 2": func(d *deployment.Deployment) { d.Status.Replicas = 12 },
		"more machines than wanted: 1":    func(d *deployment.Deployment) { d.Status.Replicas, d.Status.Updated = 11, 11 },
		"7 of 10 machines are available":  func(d *deployment.Deployment) { d.Status.Available = 7 },
		"more machines than wanted: 10":   func(d *deployment.Deployment) { d.Spec.Replicas = 0 },
		"0 of 10 machines are updated":    func(d *deployment.Deployment) { d.Status = deployment.Status{ObservedGeneration: 4} },
		"0 of 10 machines are updated; the deployment is paused": func(d *deployment.Deployment) {
			d.Spec.Paused, d.Status.Updated = true, 0
		},
		"7 of 10 machines are available, 3 are kept for inspection": func(d *deployment.Deployment) {
			d.Status.Available, d.Status.Preserved = 7, 3
		},
		"8 of 10 machines are updated; there was no progress within 10m0s": func(d *deployment.Deployment) {
			d.Spec.ProgressDeadline, d.Status.Updated = 10*time.Minute, 8
			d.Status.Conditions = []object.Condition{{
				Type: deployment.ConditionProgressing, Status: object.False, Reason: deployment.ProgressDeadlineExceeded,
			}}
		},
	} {
		d := complete()
		change(d)
		require.Equal(t, missing, deployment.Missing(d))
		require.Equal(t, missing == "", deployment.Complete(d))
	}
}

// TestCompleteIsProgressAvailable: a deployment that is complete by the numbers of its status has the
// condition too, in every fleet that can be drawn.
func TestCompleteIsProgressAvailable(t *testing.T) {
	available := func(t *rapid.T, d *deployment.Deployment) {
		c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
		require.Equal(t, deployment.ProgressAvailable, c.Reason, "%+v", d.Status)
	}
	t.Run("any", rapid.MakeCheck(func(t *rapid.T) {
		d := reported(t, drawLive(t))
		if d != nil && deployment.Complete(d) && !d.Spec.Paused {
			available(t, d)
		}
	}))
	t.Run("complete", rapid.MakeCheck(func(t *rapid.T) {
		d := reported(t, drawComplete(t))
		require.Empty(t, deployment.Missing(d))
		available(t, d)
	}))
}

// reported is the deployment with the next status that is written for it; nil: something else is
// written first.
func reported(t *rapid.T, o *deployment.Observation) *deployment.Deployment {
	plan := decide(t, o, begin)
	for decisions := 0; plan.Write == nil; decisions++ {
		require.Less(t, decisions, mostDecisions)
		follow(t, o, plan)
		plan = decide(t, o, begin)
	}
	written, ok := plan.Write.(*deployment.UpdateStatus)
	if !ok {
		return nil
	}
	d := o.Deployment.Clone()
	d.Status = written.Status
	return d
}

// drawComplete returns a fleet in which nothing is left to be done but a status: each machine wanted
// is there and available, and older sets are kept empty.
func drawComplete(t *rapid.T) *deployment.Observation {
	o := drawLive(t)
	d := o.Deployment
	d.Spec.Paused, d.Spec.MinReady, d.Spec.RevisionHistoryLimit = false, 0, nil
	d.Revision = 9
	o.Sets = slices.DeleteFunc(o.Sets, func(c deployment.Children) bool {
		return c.Set.Deleted() || c.Set.Spec.Template.Spec.Class == d.Spec.Template.Spec.Class
	})
	for i := range o.Sets {
		s := o.Sets[i].Set
		o.Sets[i] = deployment.Children{Set: s}
		s.Spec.Replicas, s.Spec.MinReady = 0, 0
	}
	wanted := ownSet(d, "web-a", int(d.Spec.Replicas))
	wanted.Set.Revision = d.Revision
	o.Sets = append(o.Sets, wanted)
	return o
}
