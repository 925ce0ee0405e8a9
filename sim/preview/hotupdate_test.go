package preview_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/preview"
)

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
