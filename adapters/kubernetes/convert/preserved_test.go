package convert_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// The counts of preserved failed machines are written to the fields that other programs read, and are
// read from these fields.
func TestPreservedFailedMachinesAreCountedWhereOthersLook(t *testing.T) {
	s, d := &machineset.Set{}, &deployment.Deployment{}
	s.Status.PreservedFailed, s.Status.AutoPreserved, d.Status.PreservedFailed = 2, 1, 3
	for want, doc := range map[string]map[string]any{
		`{"preservedFailedReplicas":2,"autoPreserveFailedMachineCount":1}`: sets.store(t, map[string]any{}, s),
		`{"preservedFailedReplicas":3}`:                                    deployments.store(t, map[string]any{}, d),
	} {
		text, err := json.Marshal(doc["status"])
		require.NoError(t, err)
		var have, field map[string]any
		require.NoError(t, json.Unmarshal(text, &have))
		require.NoError(t, json.Unmarshal([]byte(want), &field))
		for name, value := range field {
			assert.Equal(t, value, have[name], name)
		}
	}
	read, problems := sets.Read(sets.typed(t, map[string]any{"status": map[string]any{"preservedFailedReplicas": 4, "autoPreserveFailedMachineCount": 5}}))
	require.Empty(t, problems)
	assert.Equal(t, []int32{4, 5}, []int32{read.Status.PreservedFailed, read.Status.AutoPreserved})
}

// A preservation that another manager began because of the node's annotation is read as such, with the
// stored end.
func TestPreservationThatANodeAskedForIsTakenOver(t *testing.T) {
	m, problems := machines.Read(machines.typed(t, map[string]any{
		"metadata": map[string]any{"name": "m", "annotations": map[string]any{
			"node.machine.sapcloud.io/last-applied-node-preserve-value": "now",
		}},
		"status": map[string]any{"currentStatus": map[string]any{
			"phase": "Running", "lastUpdateTime": "2026-03-01T11:00:00Z", "preserveExpiryTime": "2026-03-02T11:00:00Z",
		}},
	}))
	require.Empty(t, problems)
	assert.Equal(t, machine.Preservation{
		Request: machine.PreserveNow, NodeAsked: true, TakenOver: true,
		Since: begin.Add(-time.Hour), Until: begin.Add(23 * time.Hour),
	}, m.Status.Preservation)
}

// If a deployment omits the kind of its class, which other programs require on sets and machines, then
// the sets and machines that are created from it have it. They also have the template's
// maxEvictRetries.
func TestNewSetsAndMachinesHaveWhatOthersRequire(t *testing.T) {
	d, problems := deployments.Read(deployments.typed(t, map[string]any{
		"metadata": map[string]any{"name": "d"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"class": map[string]any{"name": "c"}, "maxEvictRetries": 7,
		}}},
	}))
	require.Empty(t, problems)
	set := &machineset.Set{}
	set.Name, set.Spec.Template = "s", d.Spec.Template.Clone()
	s, err := sets.Create(set)
	require.NoError(t, err)
	assert.Equal(t, "MachineClass", s.Spec.Template.Spec.Class.Kind)
	require.NotNil(t, s.Spec.Template.Spec.MachineConfiguration)
	assert.EqualValues(t, 7, *s.Spec.Template.Spec.MaxEvictRetries)

	read, _ := sets.Read(s)
	made := &machine.Machine{Spec: read.Spec.Template.Spec.Clone()}
	made.Name = "m"
	m, err := machines.Create(made)
	require.NoError(t, err)
	assert.Equal(t, "MachineClass", m.Spec.Class.Kind)
	require.NotNil(t, m.Spec.MachineConfiguration)
	assert.EqualValues(t, 7, *m.Spec.MaxEvictRetries)
}

// Other programs copy annotations of a deployment to its sets. The deployment's count of changes does
// not affect the generation of the sets, because it has another key.
func TestADeploymentCountsUnderANameOfItsOwn(t *testing.T) {
	doc := map[string]any{"metadata": map[string]any{
		"name": "d", "generation": json.Number("3"), "annotations": map[string]any{keys.SpecChanges: "9", keys.DeploymentChanges: "4"},
	}}
	d, _ := deployments.Read(deployments.typed(t, doc))
	require.EqualValues(t, 7, d.Generation)
	d.Spec.MaxAge = time.Hour
	doc = deployments.store(t, doc, d)
	d, _ = deployments.Read(deployments.typed(t, doc))
	require.EqualValues(t, 8, d.Generation)
	copied := doc["metadata"].(map[string]any)["annotations"].(map[string]any)
	require.Equal(t, "9", copied[keys.SpecChanges])
	require.Equal(t, "5", copied[keys.DeploymentChanges])

	s, _ := sets.Read(sets.typed(t, map[string]any{"metadata": map[string]any{
		"name": "s", "generation": json.Number("3"), "annotations": copied,
	}}))
	require.EqualValues(t, 12, s.Generation)
}
