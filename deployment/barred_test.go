package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
)

// TestBarredSetIsOpened: another manager labels the old sets of an update in place so that they
// create no machines, and leaves the label there. With any strategy, a set that becomes the current
// one again creates machines.
func TestBarredSetIsOpened(t *testing.T) {
	key := deployment.DefaultPolicy().Keys.ScaleUpDisabled
	require.Equal(t, machineset.DefaultPolicy().Keys.ScaleUpDisabled, key)
	for name, c := range map[string]struct {
		change func(current, old *machineset.Set, d *deployment.Deployment)
		opened bool
	}{
		"in place":          {func(_, _ *machineset.Set, d *deployment.Deployment) { d.Spec.Strategy = inPlace(3, 0, 1).Spec.Strategy }, true},
		"rolling":           {func(_, _ *machineset.Set, _ *deployment.Deployment) {}, true},
		"deployment paused": {func(_, _ *machineset.Set, d *deployment.Deployment) { d.Spec.Paused = true }, true},
		"closed, too":       {func(s, _ *machineset.Set, _ *deployment.Deployment) { s.Instructions.Handover.Closed = true }, true},
		"old":               {func(s, old *machineset.Set, _ *deployment.Deployment) { s.Labels, old.Labels = old.Labels, s.Labels }, false},
		"set paused": {func(s, _ *machineset.Set, _ *deployment.Deployment) {
			s.Annotations = map[string]string{deployment.DefaultPolicy().Keys.Paused: "true"}
		}, false},
	} {
		d := stored(3)
		current, old := ownSet(d, "web-a", 3), another(d, "large", 0, 0)
		current.Machines = current.Machines[:1]
		if current.Set.Labels == nil {
			current.Set.Labels = map[string]string{}
		}
		current.Set.Labels[key], current.Set.Labels["team"] = "true", "a"
		c.change(current.Set, old.Set, d)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, current}}
		opened := false
		for range 5 {
			plan := decide(t, o, begin.Add(100*time.Hour))
			for _, order := range plan.Push {
				require.NotEqual(t, old.Set.Name, order.Set.Name, name)
				_, barred := order.Set.Labels[key]
				if opened = opened || !barred; opened {
					require.Equal(t, "a", order.Set.Labels["team"], name)
					require.EqualValues(t, 1, order.Set.Spec.Replicas, "%s: what it has; the next order says the rest", name)
				}
				apply(o, order)
			}
			if len(plan.Push) == 0 || opened {
				break
			}
		}
		require.Equal(t, c.opened, opened, name)
		if opened {
			require.Empty(t, decide(t, o, begin.Add(100*time.Hour)).Push, "%s: it is opened once", name)
		}
	}
}
