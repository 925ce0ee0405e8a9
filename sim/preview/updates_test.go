package preview_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/preview"
)

// updating is rolling, in place.
func updating(n, surge, unavailable int32) (*deployment.Deployment, []deployment.Children) {
	d, sets := rolling(n)
	d.Spec.Strategy = deployment.Strategy{
		Kind:     deployment.InPlaceUpdate,
		MaxSurge: rollout.IntOrPercent{Value: surge}, MaxUnavailable: rollout.IntOrPercent{Value: unavailable},
	}
	return d, sets
}

// steps counts the steps of a reason.
func steps(line *preview.Timeline, reason decision.Reason) (n int) {
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
	line := predict(t, d, sets, preview.Model{Update: 15 * time.Minute, Start: later})
	require.True(t, line.Complete, "%s", brief(&line))
	near(t, 30*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{4, 4, 0, 0}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
	require.Equal(t, []int32{2, 4}, []int32{line.LowestAvailable, line.HighestTotal})
	require.LessOrEqual(t, 2, steps(&line, deployment.ReasonSelect), "one a set and moment")
}

// TestPreviewInPlaceWithSurge: a new machine comes first, and an old one goes at the end, without
// having been updated.
func TestPreviewInPlaceWithSurge(t *testing.T) {
	d, sets := updating(3, 1, 0)
	line := predict(t, d, sets, preview.Model{Create: time.Minute, Update: 15 * time.Minute, Delete: 5 * time.Minute, Start: later})
	require.True(t, line.Complete, "%s", brief(&line))
	near(t, time.Minute+2*15*time.Minute+5*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{2, 2, 1, 1}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
	require.Equal(t, []int32{3, 4}, []int32{line.LowestAvailable, line.HighestTotal})
}

// TestPreviewInPlaceFailing: the first update fails, and the rollout stops. Without a limit, the
// machine is replaced at the end of its health timeout, and the others wait for that.
func TestPreviewInPlaceFailing(t *testing.T) {
	d, sets := updating(2, 0, 1)
	model := preview.Model{Update: 15 * time.Minute, FailUpdate: rollout.IntOrPercent{Value: 1}, Start: later}
	line := predict(t, d, sets, model)
	require.Equal(t, preview.EndRolloutStopped, line.Ending.Reason, "%s", brief(&line))
	require.Contains(t, line.Ending.String(), ": the rollout has stopped: 1 machine failed, the limit is 1")
	near(t, 15*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{1, 0, 0, 0}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})

	d.Spec.Strategy.StopAfter.Value = 3 // of 2 machines: never
	line = predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	near(t, 40*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{2, 1, 1, 1}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})

	model.FailUpdate = percent(100)
	line = predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	near(t, 50*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{2, 0, 2, 2}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
}

// TestPreviewInPlaceManual waits for a user.
func TestPreviewInPlaceManual(t *testing.T) {
	d, sets := updating(2, 0, 1)
	d.Spec.Strategy.Orchestration = deployment.Manual
	line := predict(t, d, sets, preview.Model{Update: time.Minute, Start: later})
	require.Equal(t, preview.EndStuck, line.Ending.Reason)
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
	line := predict(t, d, sets, preview.Model{Update: 15 * time.Minute, Start: later})
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, int64(3), line.Moved)
	require.Equal(t, []int64{1, 1}, []int64{line.Created, line.Deleted})
	near(t, 15*time.Minute, line.Duration, 30, &line)
}

// kind is a class of the fleet's provider.
func kind(name, size, team string) *machine.Class {
	c := &machine.Class{Provider: "cloud", SecretRef: &object.Key{Name: "cloud"}}
	c.Namespace, c.Name = namespace, name
	c.ProviderSpec = fmt.Appendf(nil, `{"size":%q,"tags":{"team":%q}}`, size, team)
	return c
}

// hot is a model of a driver that can change tags.
func hot(classes ...*machine.Class) preview.Model {
	model := usual()
	model.Classes, model.Updatable, model.UpdateVM = classes, []string{"tags"}, 20*time.Second
	return model
}

// TestPreviewHotUpdate: the template's next class has other tags. A tenth of the VMs at a time is
// changed, and none is replaced.
func TestPreviewHotUpdate(t *testing.T) {
	d, sets := rolling(20)
	line := predict(t, d, sets, hot(kind("small", "s", "blue"), kind("large", "s", "green")))
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, []int64{20, 0, 0}, []int64{line.Updated, line.Created, line.Deleted})
	require.Len(t, line.Steps, 1, "%s", brief(&line))
	require.Equal(t, deployment.ReasonExchange, line.Steps[0].Why.Reason)
	require.Equal(t, []int32{20, 20}, []int32{line.LowestAvailable, line.HighestTotal})
	require.InDelta(t, 10*25*time.Second, line.Duration, float64(50*time.Second), "two at a time, and up to 10 s until the next ask")
	outdated := []int32{}
	for _, s := range line.Samples {
		outdated = append(outdated, s.Outdated)
	}
	require.Contains(t, outdated, int32(20))
	require.Zero(t, outdated[len(outdated)-1])
}

// TestPreviewOfAChangedClass: a class that templates name already gets other tags.
func TestPreviewOfAChangedClass(t *testing.T) {
	d := stored(5)
	set := staffed(d, "web-a", 5)
	for _, m := range set.Machines {
		m.Status.VMSpec = machine.SplitSpec(kind("small", "s", "blue"), []string{"tags"})
	}
	sets := []deployment.Children{set}
	line := predict(t, d, sets, hot(kind("small", "s", "green")))
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, []int64{5, 0, 0}, []int64{line.Updated, line.Created, line.Deleted})
	require.Empty(t, line.Steps)

	line = predict(t, d, sets, hot(kind("small", "xl", "green")))
	require.True(t, line.Complete, "VMs of another size stay as they are")
	require.Zero(t, line.Updated)
	require.Zero(t, line.Duration)
}

// TestPreviewReplacesOtherwise: what the driver can't change takes a rollout.
func TestPreviewReplacesOtherwise(t *testing.T) {
	for name, model := range map[string]preview.Model{
		"another size":       hot(kind("small", "s", "blue"), kind("large", "xl", "green")),
		"a class made up":    hot(kind("small", "s", "blue")),
		"nothing declared":   {Classes: hot(kind("small", "s", "blue"), kind("large", "s", "green")).Classes, Start: later},
		"both are made up":   hot(),
		"a nil among others": hot(nil, kind("large", "s", "green")),
	} {
		t.Run(name, func(t *testing.T) {
			d, sets := rolling(3)
			line := predict(t, d, sets, model)
			require.True(t, line.Complete, "%s", brief(&line))
			require.Equal(t, []int64{0, 3, 3}, []int64{line.Updated, line.Created, line.Deleted})
		})
	}
}
