package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// TestP7ChosenMachinesCountAsGone: a machine that a set was told to give up is
// no longer counted on, though the set has one that is not available and would
// have gone first: nothing else that is available is taken for it.
func TestP7ChosenMachinesCountAsGone(t *testing.T) {
	d := stored(5)
	d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 0, 1
	oldest, old, current := another(d, "large", 0, 2), another(d, "huge", 1, 3), ownSet(d, "web-a", 1)
	for _, c := range []deployment.Children{oldest, old, current} {
		c.Set.Spec.Marks.Avoid = c.Set != current.Set
	}
	current.Set.Revision, current.Set.CreatedAt = 2, begin.Add(time.Hour)
	old.Set.Spec.Replicas = 2
	old.Machines[0].Status.Phase = machine.PhaseUnknown
	old.Set.Spec.Victims = []machineset.Victim{{Name: old.Machines[1].Name, At: begin}}
	o := &deployment.Observation{Deployment: d, Live: true, Sets: []deployment.Children{oldest, old, current}}
	plan := decide(t, o, begin)
	for _, order := range plan.Scale {
		require.NotEqual(t, oldest.Set.UID, order.Set.UID, "P7: three of five would be available, floor is 4: %s", order.Why)
	}
}

// TestP20NothingIsLeftToGoLater: a set that has no surplus forgets what it was
// told to give up.
func TestP20NothingIsLeftToGoLater(t *testing.T) {
	o := settledObservation(t, 2)
	o.Sets[0].Set.Spec.Victims = []machineset.Victim{{Name: o.Sets[0].Machines[0].Name, At: begin}, {Name: "gone", At: begin}}
	plan := decide(t, o, begin)
	require.Len(t, plan.Push, 1)
	require.Equal(t, deployment.ReasonForget, plan.Why.Reason)
	require.Empty(t, plan.Push[0].Set.Spec.Victims)
	o.Sets[0].Set.Spec.Victims = o.Sets[0].Set.Spec.Victims[1:]
	require.Empty(t, decide(t, o, begin).Push, "a name that no machine has costs no write")
}

// TestP20AReductionIsNotForgottenWhileOrdersAreHeld: after a refusal the status
// may be written, but what was wanted so far stays until orders are given.
func TestP20AReductionIsNotForgottenWhileOrdersAreHeld(t *testing.T) {
	o := settledObservation(t, 3)
	d := o.Deployment.Clone()
	d.Spec.Replicas, d.Generation = 2, d.Generation+1
	d.Annotations = map[string]string{victimsKey: o.Sets[0].Machines[2].Name + "~" + begin.Format(time.RFC3339)}
	o.Deployment = d
	o.Refused = &deployment.Refusal{Outcome: machine.Outcome{Code: codes.Unavailable}, Until: begin.Add(time.Minute)}
	status := statusOf(t, decide(t, o, begin))
	require.Equal(t, int32(3), status.Wanted)
	d.Status = status
	o.Refused = nil
	plan := decide(t, o, begin.Add(time.Minute))
	require.Len(t, plan.Scale, 1)
	require.Equal(t, []machineset.Victim{{Name: o.Sets[0].Machines[2].Name, At: begin}}, plan.Scale[0].Set.Spec.Victims)
}

// TestP20ChoicesOutlastAPause: a reduction that has to wait for a set which is
// paused takes the machines that were chosen when the pause is over.
func TestP20ChoicesOutlastAPause(t *testing.T) {
	o := settledObservation(t, 3)
	d, set := o.Deployment.Clone(), o.Sets[0].Set
	d.Spec.Replicas, d.Generation = 2, d.Generation+1
	d.Annotations = map[string]string{victimsKey: o.Sets[0].Machines[2].Name + "~" + begin.Format(time.RFC3339)}
	o.Deployment = d
	set.Annotations = map[string]string{"millwright-go/paused": "true"}
	status := statusOf(t, decide(t, o, begin))
	require.Equal(t, int32(3), status.Wanted)
	d.Status = status
	delete(set.Annotations, "millwright-go/paused")
	plan := decide(t, o, begin.Add(time.Hour))
	require.Len(t, plan.Scale, 1, "%s", plan.Why)
	require.Equal(t, []machineset.Victim{{Name: o.Sets[0].Machines[2].Name, At: begin}}, plan.Scale[0].Set.Spec.Victims)

	d.Annotations = nil
	set.Annotations = map[string]string{"millwright-go/paused": "true"}
	require.Equal(t, int32(2), statusOf(t, decide(t, o, begin)).Wanted, "without a choice nothing is waited for")
}

// TestPreviewLeavesMarksOut: a rollout that is under way is foreseen as if
// nothing were marked.
func TestPreviewLeavesMarksOut(t *testing.T) {
	d, sets := rolling(3)
	plain := preview(t, d, sets, usual())
	sets[0].Set.Spec.Marks.Avoid = true
	for _, m := range sets[0].Machines {
		m.Spec.Marks.Avoid = true
	}
	assert.Equal(t, plain.Steps, preview(t, d, sets, usual()).Steps)
}
