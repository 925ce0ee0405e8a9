package preview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim/preview"
)

// TestPreviewDrainsPods: a node's pods end before its VM goes. The last of four replacements ends
// with that; the others go on meanwhile.
func TestPreviewDrainsPods(t *testing.T) {
	d, sets := rolling(4)
	model := usual()
	empty := predict(t, d, sets, model)
	model.Pods = 10
	atOnce := predict(t, d, sets, model)
	require.True(t, atOnce.Complete, "%s", brief(&atOnce))
	near(t, empty.Duration, atOnce.Duration, 2, &atOnce)

	model.PodEnd = 5 * time.Minute
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	near(t, empty.Duration+5*time.Minute, line.Duration, 2, &line)
	terminating := int32(0)
	for _, s := range line.Samples {
		terminating = max(terminating, s.Terminating)
	}
	require.EqualValues(t, 4, terminating, "a machine that is drained is no longer counted, so the next one may come: %s", brief(&line))
}

// TestPreviewForcesDrains: pods that take longer than the drain timeout are not waited for.
func TestPreviewForcesDrains(t *testing.T) {
	d, sets := rolling(1)
	model := usual()
	model.Pods, model.PodEnd = 3, 4*time.Hour
	model.MachinePolicy = machine.DefaultPolicy()
	model.MachinePolicy.DrainTimeout = time.Hour
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	expected := 90*time.Second + time.Hour + 30*time.Second
	require.InDelta(t, expected+3*time.Minute, line.Duration, float64(3*time.Minute), "waits are spread: %s", brief(&line))
}

// TestPreviewDrainsBeforeUpdates: a node is drained before it is updated in place.
func TestPreviewDrainsBeforeUpdates(t *testing.T) {
	d, sets := updating(3, 0, 1)
	model := preview.Model{Update: 15 * time.Minute, Pods: 5, PodEnd: 2 * time.Minute, Start: later}
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", brief(&line))
	near(t, 3*(15+2)*time.Minute, line.Duration, 30, &line)
	require.EqualValues(t, 3, line.Moved)
}
