package controllers_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	setRecord        = "millwright-go/set-record"
	deploymentRecord = "millwright-go/deployment-record"
)

// TestRecordsOfSetsAndDeploymentsAreApart: machine-controller-manager copies the annotations of a
// deployment to its set. The copy of the deployment's record changes neither the deployment's record
// nor the set's.
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
	assert.Contains(t, now.Annotations[deploymentRecord], "wanted=2", "the copy is not updated")
	assert.Equal(t, "Available Progressing ", w.conditionTypes())
}

// conditionTypes returns the types of the conditions of deployment web and of its set.
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
