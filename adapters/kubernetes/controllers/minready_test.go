package controllers_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
)

// TestMinReadySecondsOfAnotherManager: with the setting for fleets that come from
// machine-controller-manager a rollout waits for no minReadySeconds, as under that one. The field stays
// as it is, on the deployment and on its sets.
func TestMinReadySecondsOfAnotherManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage(func(o *controllers.Options) {
		o.DeploymentPolicy, o.SetPolicy = controllers.DefaultDeploymentPolicy(), controllers.DefaultSetPolicy()
		o.DeploymentPolicy.IgnoreMinReady, o.SetPolicy.IgnoreMinReady = true, true
	})
	w.class("old", "o")
	w.class("new", "n")
	d := w.deployment("web", "old", 3)
	w.merge(d, `{"spec":{"minReadySeconds":500,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}}}`)
	w.eventually("the first machines", w.settled("web", 3))
	w.roll(d, "new")
	w.eventually("the rollout to end", w.settled("web", 3))
	w.eventually("the old VMs to go", func() bool { return maps.Equal(map[string]int{"n": 3}, w.vms()) })
	require.EqualValues(t, 500, w.get("web").Spec.MinReadySeconds)
	for _, s := range w.sets() {
		require.EqualValues(t, 500, s.Spec.MinReadySeconds, s.Name)
	}
}
