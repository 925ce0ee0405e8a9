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

// rollingInPlace returns the same as rolling, with strategy InPlaceUpdate.
func rollingInPlace(n, surge, unavailable int32) (*deployment.Deployment, []deployment.Children) {
	d, sets := rolling(n)
	d.Spec.Strategy = deployment.Strategy{
		Kind:     deployment.InPlaceUpdate,
		MaxSurge: rollout.IntOrPercent{Value: surge}, MaxUnavailable: rollout.IntOrPercent{Value: unavailable},
	}
	return d, sets
}

// steps counts the steps with a reason.
func steps(line *preview.Timeline, reason decision.Reason) (n int) {
	for i := range line.Steps {
		if line.Steps[i].Why.Reason == reason {
			n++
		}
	}
	return n
}

// TestPreviewInPlace: four machines are updated two at a time, a quarter of an hour each. That takes half an
// hour, and no machine is created or deleted.
func TestPreviewInPlace(t *testing.T) {
	d, sets := rollingInPlace(4, 0, 2)
	line := predict(t, d, sets, preview.Model{Update: 15 * time.Minute, Start: startTime})
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, 30*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{4, 4, 0, 0}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
	require.Equal(t, []int32{2, 4}, []int32{line.LowestAvailable, line.HighestTotal})
	require.LessOrEqual(t, 2, steps(&line, deployment.ReasonSelect), "steps; those of one set and moment are one")
}

// TestPreviewInPlaceWithSurge: a new machine is created first, and an old one is deleted at the end without
// having been updated.
func TestPreviewInPlaceWithSurge(t *testing.T) {
	d, sets := rollingInPlace(3, 1, 0)
	line := predict(t, d, sets, preview.Model{Create: time.Minute, Update: 15 * time.Minute, Delete: 5 * time.Minute, Start: startTime})
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, time.Minute+2*15*time.Minute+5*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{2, 2, 1, 1}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
	require.Equal(t, []int32{3, 4}, []int32{line.LowestAvailable, line.HighestTotal})
}

// TestPreviewInPlaceFailing: the first update fails, and the rollout stops. If StopAfter is out of reach, the
// machine is replaced at the end of its health timeout, and the others wait for that.
func TestPreviewInPlaceFailing(t *testing.T) {
	d, sets := rollingInPlace(2, 0, 1)
	model := preview.Model{Update: 15 * time.Minute, FailUpdate: rollout.IntOrPercent{Value: 1}, Start: startTime}
	line := predict(t, d, sets, model)
	require.Equal(t, preview.EndRolloutStopped, line.Ending.Reason, "%s", describe(&line))
	require.Contains(t, line.Ending.String(), ": the rollout has stopped: 1 machine failed, the limit is 1")
	requireDuration(t, 15*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{1, 0, 0, 0}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})

	d.Spec.Strategy.StopAfter.Value = 3 // of 2 machines: never
	line = predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, 40*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{2, 1, 1, 1}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})

	model.FailUpdate = percent(100)
	line = predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, 50*time.Minute, line.Duration, 30, &line)
	require.Equal(t, []int64{2, 0, 2, 2}, []int64{line.Selected, line.Moved, line.Created, line.Deleted})
}

// TestPreviewInPlaceManual: with manual orchestration, a rollout waits for a user, so the preview is stuck.
func TestPreviewInPlaceManual(t *testing.T) {
	d, sets := rollingInPlace(2, 0, 1)
	d.Spec.Strategy.Orchestration = deployment.Manual
	line := predict(t, d, sets, preview.Model{Update: time.Minute, Start: startTime})
	require.Equal(t, preview.EndStuck, line.Ending.Reason)
	require.Equal(t, rollout.ReasonUnselected, deployment.RolloutOf(line.Ending.Waits).Reason)
}

// TestPreviewInPlaceFromTheMiddle: updates that are under way at the start continue as the model says.
func TestPreviewInPlaceFromTheMiddle(t *testing.T) {
	d, sets := rollingInPlace(4, 0, 4)
	for i, phase := range []machine.Phase{
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseRunning, machine.PhaseInPlaceUpdateFailed,
	} {
		m := sets[0].Machines[i]
		m.Status.Phase, m.Spec.InPlace = phase, machine.InPlaceSelected
		m.Status.Since = startTime.Add(-5 * time.Minute)
	}
	line := predict(t, d, sets, preview.Model{Update: 15 * time.Minute, Start: startTime})
	require.True(t, line.Complete, "%s", describe(&line))
	require.Equal(t, int64(3), line.Moved)
	require.Equal(t, []int64{1, 1}, []int64{line.Created, line.Deleted})
	requireDuration(t, 15*time.Minute, line.Duration, 30, &line)
}

// classWith returns a class with that size, and a tag for that team.
func classWith(name, size, team string) *machine.Class {
	c := &machine.Class{Provider: "cloud", SecretRef: &object.Key{Name: "cloud"}}
	c.Namespace, c.Name = namespace, name
	c.ProviderSpec = fmt.Appendf(nil, `{"size":%q,"tags":{"team":%q}}`, size, team)
	return c
}

// tagModel returns a model with a driver that can change tags.
func tagModel(classes ...*machine.Class) preview.Model {
	model := defaultModel()
	model.Classes, model.Updatable, model.UpdateVM = classes, []string{"tags"}, 20*time.Second
	return model
}

// TestPreviewHotUpdate: the template's new class differs in its tags. The VMs are changed, a tenth at a time,
// and no machine is replaced.
func TestPreviewHotUpdate(t *testing.T) {
	d, sets := rolling(20)
	line := predict(t, d, sets, tagModel(classWith("small", "s", "blue"), classWith("large", "s", "green")))
	require.True(t, line.Complete, "%s", describe(&line))
	require.Equal(t, []int64{20, 0, 0}, []int64{line.Updated, line.Created, line.Deleted})
	require.Len(t, line.Steps, 1, "%s", describe(&line))
	require.Equal(t, deployment.ReasonExchange, line.Steps[0].Why.Reason)
	require.Equal(t, []int32{20, 20}, []int32{line.LowestAvailable, line.HighestTotal})
	require.InDelta(t, 10*25*time.Second, line.Duration, float64(50*time.Second), "two at a time, and up to 10 s between them")
	outdated := []int32{}
	for _, s := range line.Samples {
		outdated = append(outdated, s.Outdated)
	}
	require.Contains(t, outdated, int32(20))
	require.Zero(t, outdated[len(outdated)-1])
}

// TestPreviewOfAChangedClass: the tags of the present class change.
func TestPreviewOfAChangedClass(t *testing.T) {
	d := stored(5)
	set := setWithMachines(d, "web-a", 5)
	for _, m := range set.Machines {
		m.Status.VMSpec = machine.SplitSpec(classWith("small", "s", "blue"), []string{"tags"})
	}
	sets := []deployment.Children{set}
	line := predict(t, d, sets, tagModel(classWith("small", "s", "green")))
	require.True(t, line.Complete, "%s", describe(&line))
	require.Equal(t, []int64{5, 0, 0}, []int64{line.Updated, line.Created, line.Deleted})
	require.Empty(t, line.Steps)

	line = predict(t, d, sets, tagModel(classWith("small", "xl", "green")))
	require.True(t, line.Complete, "VMs of another size stay as they are")
	require.Zero(t, line.Updated)
	require.Zero(t, line.Duration)
}

// TestPreviewReplacesIfNotUpdatable: if the driver can't change the difference, machines are replaced.
func TestPreviewReplacesIfNotUpdatable(t *testing.T) {
	for name, model := range map[string]preview.Model{
		"another size":       tagModel(classWith("small", "s", "blue"), classWith("large", "xl", "green")),
		"a class made up":    tagModel(classWith("small", "s", "blue")),
		"nothing declared":   {Classes: tagModel(classWith("small", "s", "blue"), classWith("large", "s", "green")).Classes, Start: startTime},
		"both are made up":   tagModel(),
		"a nil among others": tagModel(nil, classWith("large", "s", "green")),
	} {
		t.Run(name, func(t *testing.T) {
			d, sets := rolling(3)
			line := predict(t, d, sets, model)
			require.True(t, line.Complete, "%s", describe(&line))
			require.Equal(t, []int64{0, 3, 3}, []int64{line.Updated, line.Created, line.Deleted})
		})
	}
}
