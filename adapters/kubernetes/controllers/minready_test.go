package controllers_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
)

// conditions returns type, status and reason of each condition of a deployment.
func (w *world) conditions(name string) []string {
	w.Helper()
	var all []string
	for _, c := range w.get(name).Status.Conditions {
		all = append(all, fmt.Sprint(c.Type, " ", c.Status, " ", c.Reason))
	}
	return all
}

// TestStepsOfMCMsIntegrationTests repeats the steps of the integration tests of
// machine-controller-manager (MCM), whose deployment has minReadySeconds 500. With IgnoreMinReady,
// the setting for fleets that come from MCM, numbers and conditions are those that its tests expect.
func TestStepsOfMCMsIntegrationTests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage(func(o *controllers.Options) {
		o.DeploymentPolicy, o.SetPolicy = controllers.DefaultDeploymentPolicy(), controllers.DefaultSetPolicy()
		o.DeploymentPolicy.IgnoreMinReady, o.SetPolicy.IgnoreMinReady = true, true
	})
	w.class("old", "o")
	w.class("new", "n")
	d := w.deployment("web", "old", 0)
	w.merge(d, `{"spec":{"minReadySeconds":500,"strategy":{"rollingUpdate":{"maxSurge":2,"maxUnavailable":1}}}}`)
	w.eventually("the set", func() bool { return len(w.sets()) == 1 })

	expect := func(replicas int32, size string) {
		t.Helper()
		n := int(replicas)
		w.eventually(fmt.Sprint(n, " machines"), w.settled("web", replicas))
		w.eventually(fmt.Sprint(n, " VMs and nodes"), func() bool { return maps.Equal(map[string]int{size: n}, w.vms()) && w.nodes() == n })
		require.ElementsMatch(t, []string{
			"Available True MinimumReplicasAvailable", "Progressing True NewMachineSetAvailable",
		}, w.conditions("web"))
	}
	for _, replicas := range []int32{1, 6, 2} {
		w.merge(d, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		expect(replicas, "o")
	}
	w.merge(d, `{"spec":{"replicas":4,"template":{"spec":{"class":{"name":"new"}}}}}`)
	expect(4, "n")
	require.EqualValues(t, 500, w.get("web").Spec.MinReadySeconds)
	for _, s := range w.sets() {
		require.EqualValues(t, 500, s.Spec.MinReadySeconds, s.Name)
	}

	require.NoError(t, w.client.Delete(t.Context(), d))
	w.eventually("all to be gone", func() bool { return w.gone(d)() && w.nodes() == 0 && len(w.vms()) == 0 })
}
