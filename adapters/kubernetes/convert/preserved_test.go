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

// Failed machines that are kept for inspection are counted in the fields that others read, and
// what others wrote there is read.
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

// A machine that is kept because its node asked for it goes on by what the node asked, to the end that
// is stored: it is not kept anew.
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
