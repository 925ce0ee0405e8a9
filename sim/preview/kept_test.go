package preview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/preview"
)

// TestPreviewKeepsAMachine: an old machine that is kept for inspection is not available and not
// replaced. The rollout goes on around it, and is complete without it.
func TestPreviewKeepsAMachine(t *testing.T) {
	d, sets := rolling(3)
	kept := sets[0].Machines[1]
	kept.Annotations = map[string]string{machine.DefaultPolicy().Keys.Preserve: "now"}
	kept.Status.Preservation = machine.Preservation{Request: "now", Since: later.Add(-time.Hour), Until: later.Add(5 * time.Hour)}
	line := predict(t, d, sets, usual())
	require.True(t, line.Complete, "%s", brief(&line))
	near(t, 2*90*time.Second+30*time.Second, line.Duration, 2, &line)
	require.Equal(t, []int64{2, 2}, []int64{line.Created, line.Deleted})
	last := line.Samples[len(line.Samples)-1].Counts
	require.Equal(t, preview.Counts{Old: 1, New: 2, NewAvailable: 2, Ready: 3}, last, "%s", brief(&line))
}

// TestPreviewKeepsAFailedMachine: the deployment keeps a failed machine by itself, and is complete
// without another in its place.
func TestPreviewKeepsAFailedMachine(t *testing.T) {
	d, sets := rolling(3)
	d.Spec.AutoPreserve = 1
	model := usual()
	model.Fail = rollout.IntOrPercent{Value: 1}
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, []int64{3, 3, 1}, []int64{line.Created, line.Deleted, line.Failed})
	last := line.Samples[len(line.Samples)-1].Counts
	require.Equal(t, preview.Counts{New: 3, NewAvailable: 2, Ready: 2}, last, "%s", brief(&line))
}

// TestPreviewOfACapacity: the provider has room for three VMs. A rollout that needs a fourth one
// never gets on. One that deletes first does, but a machine that was refused is tried again after ten
// minutes.
func TestPreviewOfACapacity(t *testing.T) {
	d, sets := rolling(3)
	model := usual()
	model.Capacity = 3
	line := predict(t, d, sets, model)
	require.Equal(t, preview.EndStuck, line.Ending.Reason, "%s", brief(&line))
	require.EqualValues(t, 3, line.Samples[len(line.Samples)-1].Old, "no old one goes: %s", brief(&line))
	require.EqualValues(t, 3, line.LowestAvailable)

	d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{}, rollout.IntOrPercent{Value: 1}
	line = predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	require.Equal(t, []int64{3, 3, 0}, []int64{line.Created, line.Deleted, line.Failed})
	expected := 3 * (10*time.Minute + 90*time.Second)
	require.InDelta(t, expected+90*time.Second, line.Duration, float64(90*time.Second), "%s", brief(&line))

	model.Capacity = 4
	roomy := predict(t, d, sets, model)
	near(t, 3*90*time.Second, roomy.Duration, 2, &roomy)
}

// TestPreviewIsDoneBesideAKeptMachine: a fleet with a kept machine is as it should be, though one
// machine less than wanted is available. The preview does not wait for the status to say so.
func TestPreviewIsDoneBesideAKeptMachine(t *testing.T) {
	d := stored(3)
	d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 3}
	set := staffed(d, "web-a", 3)
	kept := set.Machines[1]
	kept.Annotations = map[string]string{machine.DefaultPolicy().Keys.Preserve: "now"}
	kept.Status.Preservation = machine.Preservation{Request: "now", Since: later.Add(-time.Hour), Until: later.Add(5 * time.Hour)}
	d.Spec.Replicas = 4
	d.Status.Conditions = []object.Condition{
		{Type: deployment.ConditionProgressing, Status: object.True, Reason: deployment.ProgressAvailable},
		{Type: deployment.ConditionAvailable, Status: object.True, Reason: deployment.MinimumAvailable},
	}
	line := predict(t, d, []deployment.Children{set}, usual())
	require.True(t, line.Complete, "%s", brief(&line))
	near(t, 90*time.Second, line.Duration, 1, &line)
}
