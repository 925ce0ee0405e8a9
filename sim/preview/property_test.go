package preview_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/preview"
)

// TestP7InPreviews: a preview of a settled fleet keeps floor and ceiling at every moment, also while creations
// fail, unless the fleet is beyond them from the start. The rollout completes, or stops because machines
// failed.
func TestP7InPreviews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, sets, model := drawPlausible(t)
		line := predict(t, d, sets, model)
		first := line.Samples[0].Counts
		floor, ceiling := min(line.Floor, first.Available()), max(line.Ceiling, first.Total())
		require.GreaterOrEqual(t, line.LowestAvailable, floor, "P7: %s", describe(&line))
		require.LessOrEqual(t, line.HighestTotal, ceiling, "P7: %s", describe(&line))
		if line.Ending.Reason == preview.EndRolloutStopped {
			require.NotEqual(t, model.FailUpdate.Value+model.Fail.Value, int32(0), "%s", describe(&line))
			return
		}
		require.True(t, line.Complete, "P3: %s", describe(&line))
		want := preview.Counts{New: d.Spec.Replicas, NewAvailable: d.Spec.Replicas, Ready: d.Spec.Replicas}
		require.Equal(t, want, line.Samples[len(line.Samples)-1].Counts, "P3: %s", describe(&line))
		requireConsistent(t, &line)
		requireSeen(t, &line)
		if len(line.Steps) == 0 {
			require.Zero(t, line.Duration)
			require.Len(t, line.Samples, 1)
		}
	})
}

// requireSeen compares the counts of steps with the numbers in their reasons.
func requireSeen(t require.TestingT, line *preview.Timeline) {
	for i := range line.Steps {
		s := &line.Steps[i]
		why := deployment.RolloutOf(s.Why)
		switch why.Reason {
		case rollout.ReasonOldAvailable:
			require.EqualValues(t, why.Available, s.Seen.Available(), "%s", describe(line))
		case rollout.ReasonNewGrows:
			require.LessOrEqual(t, s.Seen.New, s.From, "%s", describe(line))
		}
		if s.Why.Reason == deployment.ReasonScale {
			require.Equal(t, [2]int32{int32(s.Why.Have), int32(s.Why.Want)}, [2]int32{s.From, s.To})
		}
	}
}

// requireConsistent requires that the parts of a timeline do not contradict each other.
func requireConsistent(t require.TestingT, line *preview.Timeline) {
	first, last := line.Samples[0], line.Samples[len(line.Samples)-1]
	lowest, highest := int32(math.MaxInt32), int32(0)
	at := time.Duration(0)
	for i, s := range line.Samples {
		require.GreaterOrEqual(t, s.After, at, "samples are not ordered by time")
		require.True(t, i == 0 || s.Counts != line.Samples[i-1].Counts, "a sample equals the one before")
		require.LessOrEqual(t, s.OldAvailable+s.NewAvailable, s.Ready)
		require.Equal(t, s.Total(), s.Available()+s.Unavailable())
		at, lowest, highest = s.After, min(lowest, s.Available()), max(highest, s.Total())
	}
	require.LessOrEqual(t, at, line.Duration)
	require.Equal(t, lowest, line.LowestAvailable)
	require.Equal(t, highest, line.HighestTotal)
	require.EqualValues(t, last.Total(), int64(first.Total())+line.Created-line.Deleted, "machines at the end are not those at the start plus created minus deleted: %s", describe(line))
	require.LessOrEqual(t, line.Failed, line.Created)
	require.Equal(t, line.Complete, line.Ending.Reason == preview.EndComplete)
	require.Equal(t, line.Duration, line.Ending.After)
	requireOrdered(t, line)
}

// requireOrdered requires that steps are ordered by time, and that a sample until then has their counts.
func requireOrdered(t require.TestingT, line *preview.Timeline) {
	at := time.Duration(0)
	for i := range line.Steps {
		s := &line.Steps[i]
		require.GreaterOrEqual(t, s.After, at, "steps are not ordered by time")
		at = s.After
		found := false
		for j := range line.Samples {
			found = found || line.Samples[j].After <= s.After && line.Samples[j].Counts == s.Seen
		}
		require.True(t, found, "no sample has the counts of a step: %+v", s)
		require.NotEmpty(t, s.Reason())
		require.NotEmpty(t, s.String())
	}
}

// TestPreviewFromAnywhere: from any state that a store might hold, with any valid model, a preview ends, and
// says why.
func TestPreviewFromAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		model := drawModel(t)
		line := predict(t, o.Deployment, adopted(o), model)
		requireConsistent(t, &line)
		if line.Ending.Reason == preview.EndLimit {
			limit := model.Limit
			if limit == 0 {
				limit = preview.DefaultLimit
			}
			require.Equal(t, limit.Truncate(time.Second), line.Duration)
		}
	})
}

// TestP11InPreviews: no invalid input makes a preview panic or run endlessly.
// Invariants: P11
func TestP11InPreviews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, model := drawGarbage(t), drawAnyModel(t)
		if rapid.Bool().Draw(t, "a good model") {
			model = drawModel(t)
		}
		kept := copyOf(o)
		line, err := sim.Preview(context.Background(), o.Deployment, o.Sets, model)
		require.Equal(t, kept.Deployment, o.Deployment)
		require.Equal(t, kept.Sets, copyOf(o).Sets)
		if err != nil {
			require.ErrorIs(t, err, object.ErrInvalid)
			return
		}
		require.NotEmpty(t, line.Ending.Reason)
		require.NotEmpty(t, line.Ending.String())
		require.NotEmpty(t, line.Samples)
	})
}

// predict previews a rollout twice, and requires that both timelines are the same and that the arguments are
// not changed.
func predict(t require.TestingT, d *deployment.Deployment, sets []deployment.Children, model preview.Model) preview.Timeline {
	before, owners := copyOf(&deployment.Observation{Deployment: d, Sets: sets}), ownersOf(sets)
	line, err := sim.Preview(context.Background(), d, sets, model)
	require.NoError(t, err)
	require.Equal(t, before.Deployment, d, "the deployment was changed")
	require.Equal(t, before.Sets, copyOf(&deployment.Observation{Deployment: d, Sets: sets}).Sets, "the sets were changed")
	require.True(t, slices.Equal(owners, ownersOf(sets)), "the machines were written to")
	again, err := sim.Preview(context.Background(), d, sets, model)
	require.NoError(t, err)
	require.Equal(t, line, again, "a second preview differs")
	return line
}

// ownersOf returns the owner pointers of all machines, which differ if a machine was written to.
func ownersOf(sets []deployment.Children) []*object.Owner {
	var out []*object.Owner
	for _, c := range sets {
		for _, m := range c.Machines {
			out = append(out, m.Owner)
		}
	}
	return out
}

func TestPreviewNeedsADeployment(t *testing.T) {
	_, err := sim.Preview(t.Context(), nil, nil, preview.Model{})
	require.ErrorIs(t, err, decision.ErrNoObservation)
}
