package deployment_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// TestP7ChosenMachinesCountAsGone: a machine that a set was told to delete no longer counts, even
// if the set has one that is not available and would have gone first. No other available machine
// goes for it.
func TestP7ChosenMachinesCountAsGone(t *testing.T) {
	d := stored(5)
	d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 0, 1
	oldest, old, current := another(d, "large", 0, 2), another(d, "huge", 1, 3), ownSet(d, "web-a", 1)
	for _, c := range []deployment.Children{oldest, old, current} {
		c.Set.Instructions.Marks.Avoid = c.Set != current.Set
	}
	current.Set.Revision, current.Set.CreatedAt = 2, begin.Add(time.Hour)
	old.Set.Spec.Replicas = 2
	old.Machines[0].Status.Phase = machine.PhaseUnknown
	old.Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: old.Machines[1].Name, At: begin}}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{oldest, old, current}}
	plan := decide(t, o, begin)
	for _, order := range plan.Scale {
		require.NotEqual(t, oldest.Set.UID, order.Set.UID, "P7: three of five would be available, floor is 4: %s", order.Why)
	}
}

// TestP20NothingIsLeftToGoLater: a set without a surplus forgets its deletion candidates.
func TestP20NothingIsLeftToGoLater(t *testing.T) {
	o := settledObservation(t, 2)
	o.Sets[0].Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: o.Sets[0].Machines[0].Name, At: begin}, {Name: "gone", At: begin}}
	plan := decide(t, o, begin)
	require.Len(t, plan.Push, 1)
	require.Equal(t, deployment.ReasonCandidatesDropped, plan.Why.Reason)
	require.Empty(t, plan.Push[0].Set.Instructions.DeletionCandidates)
	o.Sets[0].Set.Instructions.DeletionCandidates = o.Sets[0].Set.Instructions.DeletionCandidates[1:]
	require.Empty(t, decide(t, o, begin).Push, "a name that no machine has costs no write")
}

// TestP20AReductionIsNotForgottenWhileOrdersAreHeld: after a refusal the status may be written, but
// the size wanted so far stays until orders are given.
func TestP20AReductionIsNotForgottenWhileOrdersAreHeld(t *testing.T) {
	o := settledObservation(t, 3)
	d := o.Deployment.Clone()
	d.Spec.Replicas, d.Generation = 2, d.Generation+1
	d.Annotations = map[string]string{deletionCandidatesKey: o.Sets[0].Machines[2].Name + "~" + begin.Format(time.RFC3339)}
	o.Deployment = d
	o.Refused = &deployment.Refusal{Outcome: machine.Outcome{Code: codes.Unavailable}, Until: begin.Add(time.Minute)}
	status := statusOf(t, decide(t, o, begin))
	require.Equal(t, int32(3), status.Wanted)
	d.Status = status
	o.Refused = nil
	plan := decide(t, o, begin.Add(time.Minute))
	require.Len(t, plan.Scale, 1)
	require.Equal(t, []machineset.DeletionCandidate{{Name: o.Sets[0].Machines[2].Name, At: begin}}, plan.Scale[0].Set.Instructions.DeletionCandidates)
}

// TestP20ChoicesOutlastAPause: a reduction that has to wait for a paused set takes the chosen
// machines when the pause is over.
// Invariants: P20
func TestP20ChoicesOutlastAPause(t *testing.T) {
	o := settledObservation(t, 3)
	d, set := o.Deployment.Clone(), o.Sets[0].Set
	d.Spec.Replicas, d.Generation = 2, d.Generation+1
	d.Annotations = map[string]string{deletionCandidatesKey: o.Sets[0].Machines[2].Name + "~" + begin.Format(time.RFC3339)}
	o.Deployment = d
	set.Annotations = map[string]string{"millwright-go/paused": "true"}
	status := statusOf(t, decide(t, o, begin))
	require.Equal(t, int32(3), status.Wanted)
	d.Status = status
	delete(set.Annotations, "millwright-go/paused")
	plan := decide(t, o, begin.Add(time.Hour))
	require.Len(t, plan.Scale, 1, "%s", plan.Why)
	require.Equal(t, []machineset.DeletionCandidate{{Name: o.Sets[0].Machines[2].Name, At: begin}}, plan.Scale[0].Set.Instructions.DeletionCandidates)

	d.Annotations = nil
	set.Annotations = map[string]string{"millwright-go/paused": "true"}
	require.Equal(t, int32(2), statusOf(t, decide(t, o, begin)).Wanted, "without a choice nothing is waited for")
}

const scaledAtKey = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"

// chosenBy is a fleet of three, last resized a second ago, from which a scaler has just removed
// one. It names the last machine, in the form of the entry.
func chosenBy(t *testing.T, annotations map[string]string, entry string) (o *deployment.Observation, name string) {
	o = settledObservation(t, 3)
	d := o.Deployment.Clone()
	d.Status.WantedSince = begin.Add(-time.Second)
	d.Spec.Replicas, d.Generation = 2, d.Generation+1
	name = o.Sets[0].Machines[2].Name
	d.Annotations = map[string]string{deletionCandidatesKey: name + entry}
	maps.Copy(d.Annotations, annotations)
	o.Deployment = d
	return o, name
}

func handedNames(plan deployment.Plan) (names []string) {
	for _, order := range plan.Scale {
		for _, v := range order.Set.Instructions.DeletionCandidates {
			names = append(names, v.Name)
		}
	}
	return names
}

// TestP20ScalersClock: the times of a scaler are compared with each other. Its
// clock may be ahead of this one or behind it.
// Invariants: P20
func TestP20ScalersClock(t *testing.T) {
	stamp := func(skew time.Duration) string { return begin.Add(skew).Format(time.RFC3339) }
	for _, skew := range []time.Duration{-time.Hour, -2 * time.Second, 0, 2 * time.Second, time.Hour} {
		o, name := chosenBy(t, map[string]string{scaledAtKey: stamp(skew)}, "~"+stamp(skew))
		plan := decide(t, o, begin.Add(100*time.Millisecond))
		require.Equal(t, []string{name}, handedNames(plan), "clock %s off: %s", skew, plan.Why)
		require.Equal(t, begin, plan.Scale[0].Set.Instructions.DeletionCandidates[0].At, "the set compares it with times of its machines")

		o.Sets[0].Set = plan.Scale[0].Set
		o.Sets[0].Set.Status.Replicas = 3
		status := statusOf(t, decide(t, o, begin.Add(time.Second)))
		require.Equal(t, int32(2), status.Wanted)
		require.True(t, status.ScaledAt.Equal(begin.Add(skew)), "%s is noted", status.ScaledAt)

		next, _ := chosenBy(t, map[string]string{scaledAtKey: stamp(skew + time.Minute)}, "~"+stamp(skew-time.Second))
		next.Deployment.Status.ScaledAt = status.ScaledAt
		require.Empty(t, handedNames(decide(t, next, begin.Add(time.Minute))), "clock %s off: the choice is from before the last change", skew)
		next, name = chosenBy(t, map[string]string{scaledAtKey: stamp(skew + time.Minute)}, "~"+stamp(skew+time.Second))
		next.Deployment.Status.ScaledAt = status.ScaledAt
		require.Equal(t, []string{name}, handedNames(decide(t, next, begin.Add(time.Minute))), "of two changes that are seen at once both count")
		next, name = chosenBy(t, map[string]string{scaledAtKey: stamp(skew - time.Minute)}, "~"+stamp(skew-time.Minute))
		next.Deployment.Status.ScaledAt = status.ScaledAt
		require.Equal(t, []string{name}, handedNames(decide(t, next, begin.Add(time.Minute))), "another scaler's clock is behind the first one's")
	}
	o, _ := chosenBy(t, map[string]string{scaledAtKey: stamp(0)}, "~"+stamp(time.Minute))
	require.Empty(t, handedNames(decide(t, o, begin.Add(time.Second))), "a choice from after the change belongs to a later one")
}

// TestP20FirstTimeOfAScaler: machines that a set was told of before a scaler wrote times do not
// count against its choice.
func TestP20FirstTimeOfAScaler(t *testing.T) {
	stamp := begin.Add(2 * time.Second).Format(time.RFC3339)
	o, name := chosenBy(t, map[string]string{scaledAtKey: stamp}, "~"+stamp)
	gone := machineset.DeletionCandidate{Name: "long-gone", At: begin.Add(-time.Hour)}
	o.Sets[0].Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{gone}
	require.Contains(t, handedNames(decide(t, o, begin.Add(time.Second))), name)
}

// TestP20NamesWithoutTime: a name without a time counts for the reduction that it is seen with,
// once, and for no later one.
func TestP20NamesWithoutTime(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"no time at all": nil, "the time of an earlier change": {scaledAtKey: begin.Add(-time.Hour).Format(time.RFC3339)},
	} {
		o, candidate := chosenBy(t, annotations, "")
		o.Sets[0].Machines[2].Status.Since = begin.Add(-time.Minute) // it has become available since
		plan := decide(t, o, begin.Add(time.Second))
		require.Equal(t, []string{candidate}, handedNames(plan), name)
		require.Equal(t, begin.Add(time.Second), plan.Scale[0].Set.Instructions.DeletionCandidates[0].At, name)

		o.Sets[0].Set = plan.Scale[0].Set
		again := decide(t, o, begin.Add(2*time.Second))
		require.Empty(t, again.Scale, "%s: it is handed over once", name)
		o.Deployment.Status = statusOf(t, again)
		o.StatusWritten = time.Time{}
		require.NotEqual(t, deployment.ReasonCandidatesPruned, decide(t, o, begin.Add(2*time.Second)).Why.Reason, "%s: it stays until the machine goes", name)

		late, _ := chosenBy(t, annotations, "")
		late.Deployment.Spec.Replicas = 3
		plan = decide(t, late, begin.Add(time.Second))
		if s, ok := plan.Write.(*deployment.UpdateStatus); ok {
			late.Deployment.Status = s.Status
			plan = decide(t, late, begin.Add(time.Hour))
		}
		require.Equal(t, deployment.ReasonCandidatesPruned, plan.Why.Reason, "%s: without a reduction it is of no use", name)
		require.NotContains(t, plan.Write.(*deployment.Update).Deployment.Annotations, deletionCandidatesKey)
	}
}

// TestP20UntimedChoiceOutlastsAPause: a name without a time waits with its
// reduction.
func TestP20UntimedChoiceOutlastsAPause(t *testing.T) {
	o, name := chosenBy(t, nil, "")
	set := o.Sets[0].Set
	set.Annotations = map[string]string{"millwright-go/paused": "true"}
	o.Deployment.Status = statusOf(t, decide(t, o, begin))
	require.NotEqual(t, deployment.ReasonCandidatesPruned, decide(t, o, begin.Add(time.Minute)).Why.Reason)
	delete(set.Annotations, "millwright-go/paused")
	require.Equal(t, []string{name}, handedNames(decide(t, o, begin.Add(time.Hour))))
}

// TestP20ScaleDownIsNeverBefore: names that this library writes are not older than those that a
// scaler with a faster clock wrote before.
func TestP20ScaleDownIsNeverBefore(t *testing.T) {
	o := settledObservation(t, 3)
	ahead := begin.Add(time.Minute).Format(time.RFC3339)
	o.Deployment.Annotations = map[string]string{scaledAtKey: ahead}
	name := o.Sets[0].Machines[1].Name
	d, err := deployment.ScaleDown(o, []string{name}, 2, deployment.DefaultPolicy(), begin)
	require.NoError(t, err)
	require.Equal(t, map[string]string{scaledAtKey: ahead, deletionCandidatesKey: name + "~" + ahead}, d.Annotations)
	o.Deployment.Annotations = nil
	d, err = deployment.ScaleDown(o, []string{name}, 2, deployment.DefaultPolicy(), begin)
	require.NoError(t, err)
	now := begin.Format(time.RFC3339)
	require.Equal(t, map[string]string{scaledAtKey: now, deletionCandidatesKey: name + "~" + now}, d.Annotations)
}
