package controllers_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	setRecord        = "millwright-go/set-record"
	deploymentRecord = "millwright-go/deployment-record"
	recordType       = "MillwrightRecord"
)

// TestRecordsOfEarlierVersions: records that an earlier version has left in conditions, as JSON, are
// moved although nothing else happens, and say what they said. No machine is made or lost.
func TestRecordsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.class("small", "s")
	stop := w.manage()
	d := w.deployment("web", "small", 2)
	w.eventually("two machines", w.settled("web", 2))
	names := w.names()
	stop()

	record := func(text string) string {
		list, err := json.Marshal([]any{map[string]any{"type": recordType, "status": "True", "reason": "Record", "message": text}})
		require.NoError(t, err)
		return string(list)
	}
	s := w.sets()[0]
	w.merge(d, `{"metadata":{"annotations":{"`+deploymentRecord+`":null}}}`)
	w.merge(&s, `{"metadata":{"annotations":{"`+setRecord+`":null}}}`)
	w.patchStatus(d, `{"status":{"conditions":`+record(`{"wanted":2,"wantedSince":"2026-03-01T12:00:00Z","later":{"version":[1,"two"]}}`)+`}}`)
	w.patchStatus(&s, `{"status":{"machineSetCondition":`+record(`{"later":{"version":[1,{"a":true}]}}`)+`}}`)

	w.manage()
	w.eventually("records in their own place", func() bool {
		now, set := w.get("web"), w.sets()[0]
		return now.Annotations[deploymentRecord] != "" && set.Annotations[setRecord] != "" && w.conditionTypes() == "Available Progressing "
	})
	assert.Contains(t, w.get("web").Annotations[deploymentRecord], "later.version=1,two ")
	assert.Contains(t, w.get("web").Annotations[deploymentRecord], "wanted=2 wantedSince=2026-03-01T12:00:00Z")
	assert.Equal(t, "later.version.0=1 later.version.1.a=true", w.sets()[0].Annotations[setRecord])
	w.eventually("a settled fleet", w.settled("web", 2))
	assert.Equal(t, names, w.names())
	assert.Equal(t, map[string]int{"s": 2}, w.vms())
}

// TestRecordsOfSetsAndDeploymentsAreApart: what machine-controller-manager does with the annotations of a deployment while
// it runs, copying them to the set, disturbs neither record.
func TestRecordsOfSetsAndDeploymentsAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.class("small", "s")
	stop := w.manage()
	d := w.deployment("web", "small", 2)
	w.eventually("two machines", w.settled("web", 2))
	names := w.names()
	stop()
	s := w.sets()[0]
	before := s.Annotations[setRecord]
	copied, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": w.get("web").Annotations}})
	require.NoError(t, err)
	w.merge(&s, string(copied))
	w.manage()
	w.scale(d, 2, 3)
	w.eventually("three machines", w.settled("web", 3))
	assert.Subset(t, w.names(), names)
	now := w.sets()[0]
	assert.Equal(t, before, now.Annotations[setRecord])
	assert.Contains(t, w.get("web").Annotations[deploymentRecord], "wanted=3")
	assert.Contains(t, now.Annotations[deploymentRecord], "wanted=2", "the copy, which is not read")
	assert.Equal(t, "Available Progressing ", w.conditionTypes())
}

// conditionTypes are the types of conditions of deployment web and of its set.
func (w *world) conditionTypes() (types string) {
	w.Helper()
	for _, c := range w.get("web").Status.Conditions {
		types += string(c.Type) + " "
	}
	for _, c := range w.sets()[0].Status.Conditions {
		types += "set: " + string(c.Type) + " "
	}
	return types
}

func (w *world) patchStatus(o client.Object, patch string) {
	w.Helper()
	require.NoError(w, w.client.SubResource("status").Patch(w.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))))
}
