package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
)

// updating is rolling, in place.
func updating(n, surge, unavailable int32) (*deployment.Deployment, []deployment.Children) {
	d, sets := rolling(n)
	d.Spec.Strategy = inPlace(n, surge, unavailable).Spec.Strategy
	return d, sets
}

// steps counts the steps of a reason.
func steps(line *deployment.Timeline, reason decision.Reason) (n int) {
	for i := range line.Steps {
		if line.Steps[i].Why.Reason == reason {
			n++
		}
	}
	return n
}

// TestPreviewInPlace: four machines, two at a time, a quarter of an hour each: half an hour, and
// none is created or deleted.
func TestPreviewInPlace(t *testing.T) {
	d, sets := updating(4, 0, 2)
	line := preview(t, d, sets, deployment.Model{Update: 15 * time.Minute, Start: later})
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, 30*time.Minute, line.Duration)
	require.Equal(t, []int64{4, 4, 0, 0}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
	require.Equal(t, []int32{2, 4}, []int32{line.LowestAvailable, line.HighestTotal})
	require.Equal(t, 2, steps(&line, deployment.ReasonSelect), "one a set and moment")
	require.Equal(t, 2, steps(&line, deployment.ReasonMoveTo))
	require.Equal(t, 2, steps(&line, deployment.ReasonMoveFrom))
	require.Len(t, line.Steps, 7, "%s", brief(&line)) // and the new set's creation
}

// TestPreviewInPlaceWithSurge: a new machine comes first, and an old one goes at the end, without
// having been updated.
func TestPreviewInPlaceWithSurge(t *testing.T) {
	d, sets := updating(3, 1, 0)
	line := preview(t, d, sets, deployment.Model{Create: time.Minute, Update: 15 * time.Minute, Delete: 5 * time.Minute, Start: later})
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, time.Minute+2*15*time.Minute+5*time.Minute, line.Duration)
	require.Equal(t, []int64{2, 2, 1, 1}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
	require.Equal(t, []int32{3, 4}, []int32{line.LowestAvailable, line.HighestTotal})
}

// TestPreviewInPlaceFailing: the first update fails. Its machine is in the way and replaced at
// once. The last one's would wait for its health timeout.
func TestPreviewInPlaceFailing(t *testing.T) {
	d, sets := updating(2, 0, 1)
	model := deployment.Model{Update: 15 * time.Minute, FailUpdate: rollout.IntOrPercent{Value: 1}, Start: later}
	line := preview(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, 30*time.Minute, line.Duration)
	require.Equal(t, []int64{2, 1, 1, 1}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})

	model.FailUpdate = percent(100)
	line = preview(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, 40*time.Minute, line.Duration, "with a health timeout of 10 min")
	require.Equal(t, []int64{2, 0, 2, 2}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
}

// TestPreviewInPlaceManual waits for a user.
func TestPreviewInPlaceManual(t *testing.T) {
	d, sets := updating(2, 0, 1)
	d.Spec.Strategy.Orchestration = deployment.Manual
	line := preview(t, d, sets, deployment.Model{Update: time.Minute, Start: later})
	require.Equal(t, deployment.EndStuck, line.Ending.Reason)
	require.Equal(t, rollout.ReasonUnselected, deployment.RolloutOf(line.Ending.Waits).Reason)
}

// TestPreviewInPlaceFromTheMiddle: an update under way at the start continues as the model says.
func TestPreviewInPlaceFromTheMiddle(t *testing.T) {
	d, sets := updating(4, 0, 4)
	for i, phase := range []machine.Phase{
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseRunning, machine.PhaseInPlaceUpdateFailed,
	} {
		m := sets[0].Machines[i]
		m.Status.Phase, m.Spec.InPlace = phase, machine.InPlaceSelected
		m.Status.Since = later.Add(-5 * time.Minute)
	}
	line := preview(t, d, sets, deployment.Model{Update: 15 * time.Minute, Start: later})
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, int64(3), line.Moved)
	require.Equal(t, []int64{1, 1}, []int64{line.Created, line.Deleted})
	require.Equal(t, 15*time.Minute, line.Duration, "the failed one is Failed after 5 more minutes")
}
