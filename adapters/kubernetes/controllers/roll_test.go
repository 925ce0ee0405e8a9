package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
)

// merge applies a JSON merge patch, as kubectl patch does.
func (w *world) merge(o client.Object, patch string) {
	w.Helper()
	require.NoError(w, w.client.Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// deploymentWith creates a deployment with a strategy, given as JSON, and waits for its machines.
func (w *world) deploymentWith(name, class string, replicas int32, strategy string) *v1alpha1.MachineDeployment {
	w.Helper()
	d := w.deployment(name, class, replicas)
	w.merge(d, `{"spec":{"strategy":`+strategy+`}}`)
	w.eventually("the first machines", w.settled(name, replicas))
	return d
}

// roll changes the class of a deployment.
func (w *world) roll(d *v1alpha1.MachineDeployment, class string) {
	w.Helper()
	w.merge(d, `{"spec":{"template":{"spec":{"class":{"name":"`+class+`"}}}}}`)
}

func (w *world) names() []string {
	w.Helper()
	var names []string
	for _, m := range w.machines() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

// TestRollingBounds: a rolling update never has fewer running machines than the floor, and never
// more machines than the ceiling, at any version that the API server has stored.
// Invariants: P7
func TestRollingBounds(t *testing.T) {
	for _, c := range []struct {
		surge, unavailable intstr.IntOrString
		floor, ceiling     int
	}{
		{intstr.FromInt32(2), intstr.FromInt32(1), 5, 8},
		{intstr.FromInt32(0), intstr.FromString("50%"), 3, 6},
		{intstr.FromString("100%"), intstr.FromInt32(0), 6, 12},
	} {
		t.Run(fmt.Sprintf("%d to %d", c.floor, c.ceiling), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quick)
			w.manage()
			w.class("old", "o")
			w.class("new", "n")
			surge, _ := c.surge.MarshalJSON()
			unavailable, _ := c.unavailable.MarshalJSON()
			d := w.deploymentWith("web", "old", 6, fmt.Sprintf(`{"type":"RollingUpdate","rollingUpdate":{"maxSurge":%s,"maxUnavailable":%s}}`, surge, unavailable))
			seen := w.census(6)
			w.roll(d, "new")
			w.eventually("the rollout to end", w.settled("web", 6))
			w.eventually("the old VMs to be gone", func() bool { return maps.Equal(map[string]int{"n": 6}, w.vms()) })
			running, total := seen.spans()
			assert.GreaterOrEqual(t, running.least, c.floor, "floor")
			assert.LessOrEqual(t, total.most, c.ceiling, "ceiling")
			assert.NotEqual(t, span{6, 6}, total, "the census saw no creation and no deletion")
			assert.Equal(t, c.ceiling > 6, total.most > 6, "the surge is used if there is one")
		})
	}
}

// TestRecreate: no new machine is created while there is an old one, even if all old ones are being
// deleted.
func TestRecreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("old", "o")
	w.class("new", "n")
	d := w.deploymentWith("web", "old", 4, `{"type":"Recreate","rollingUpdate":null}`)
	var mixed, empty atomic.Bool
	w.followMachines(func(all map[string]*v1alpha1.Machine) {
		classes := map[string]bool{}
		for m := range maps.Values(all) {
			classes[m.Spec.Class.Name] = true
		}
		if len(classes) > 1 {
			mixed.Store(true)
		}
		if len(classes) == 0 {
			empty.Store(true)
		}
	})
	w.roll(d, "new")
	w.eventually("the rollout to end", w.settled("web", 4))
	w.eventually("the old VMs to be gone", func() bool { return maps.Equal(map[string]int{"n": 4}, w.vms()) })
	assert.False(t, mixed.Load(), "there were old and new machines at the same time")
	assert.True(t, empty.Load(), "there was no moment without machines")
}

// agent acts as the program that updates nodes in place. Once a node's condition says that it may be
// updated, agent records the node and sets the label with the result. found returns these nodes.
func (w *world) agent(answer string) (found func() map[string]*corev1.Node) {
	keys := machine.DefaultPolicy().Keys
	nodes := make(chan map[string]*corev1.Node, 1)
	nodes <- map[string]*corev1.Node{}
	w.background(func(ctx context.Context) {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			list, err := w.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: keys.CandidateForUpdate + "=true,!" + keys.UpdateResult})
			if err != nil {
				continue
			}
			for i := range list.Items {
				n := &list.Items[i]
				if !w.mine(n) || !readyForUpdate(n) {
					continue
				}
				patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, keys.UpdateResult, answer)
				if _, err := w.core.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil {
					all := <-nodes
					all[n.Name] = n
					nodes <- all
				}
			}
		}
	})
	return func() map[string]*corev1.Node {
		all := <-nodes
		defer func() { nodes <- all }()
		return maps.Clone(all)
	}
}

// readyForUpdate reports whether a node says that it may be updated.
func readyForUpdate(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return string(c.Type) == machine.NodeInPlaceUpdate && c.Status == corev1.ConditionTrue && c.Reason == machine.ReasonReadyForUpdate
	})
}

const inPlace = `{"type":"InPlaceUpdate","rollingUpdate":null,"inPlaceUpdate":{"maxSurge":0,"maxUnavailable":%d,"orchestrationType":%q}}`

// inPlaceFleet returns a deployment of machines of class old with strategy InPlaceUpdate. A class new
// exists as well.
func inPlaceFleet(t *testing.T, replicas int32, unavailable int, orchestration string) (*world, *v1alpha1.MachineDeployment) {
	t.Helper()
	w := newWorld(t, quick)
	w.manage()
	w.class("old", "o")
	w.class("new", "n")
	return w, w.deploymentWith("web", "old", replicas, fmt.Sprintf(inPlace, unavailable, orchestration))
}

// TestUpdateInPlace: machines, VMs and nodes stay, no more machines are out of service at a time than
// allowed, and each machine moves to the new set.
// Invariants: P10
func TestUpdateInPlace(t *testing.T) {
	t.Parallel()
	w, d := inPlaceFleet(t, 4, 2, "Auto")
	names, vms := w.names(), w.vms()
	found := w.agent(machine.UpdateSuccessful)
	seen := w.census(4)
	w.roll(d, "new")
	w.eventually("the rollout to end", w.settled("web", 4))
	assert.Equal(t, names, w.names())
	assert.Equal(t, vms, w.vms())
	running, total := seen.spans()
	assert.GreaterOrEqual(t, running.least, 2, "floor")
	assert.Less(t, running.least, 4, "the census saw no update")
	assert.Equal(t, span{4, 4}, total)
	require.Len(t, found(), 4)
	for _, n := range found() {
		assert.True(t, n.Spec.Unschedulable, "node %s was ready for its update before it was cordoned", n.Name)
	}
	w.eventually("the nodes to be as before", func() bool { return w.unmarked() == 4 })
	for _, m := range w.machines() {
		assert.Equal(t, "new", m.Spec.Class.Name)
	}
}

// unmarked counts the nodes of the test that are schedulable and have no label or condition of an
// update.
func (w *world) unmarked() (n int) {
	w.Helper()
	keys := machine.DefaultPolicy().Keys
	list, err := w.core.CoreV1().Nodes().List(w.Context(), metav1.ListOptions{LabelSelector: "!" + keys.CandidateForUpdate + ",!" + keys.SelectedForUpdate + ",!" + keys.UpdateResult})
	require.NoError(w, err)
	for i := range list.Items {
		if node := &list.Items[i]; w.mine(node) && !node.Spec.Unschedulable && !readyForUpdate(node) {
			n++
		}
	}
	return n
}

// TestUpdateInPlaceThatFails: if every update fails, no VM is deleted, and no more machines are
// updated than may be out of service. The rollout stops, with an event.
func TestUpdateInPlaceThatFails(t *testing.T) {
	t.Parallel()
	w, d := inPlaceFleet(t, 5, 1, "Auto")
	names, vms := w.names(), w.vms()
	found := w.agent(machine.UpdateFailed)
	w.roll(d, "new")
	failed := func() (n int) {
		for _, m := range w.machines() {
			if m.Status.CurrentStatus.Phase == v1alpha1.MachinePhase(machine.PhaseInPlaceUpdateFailed) {
				n++
			}
		}
		return n
	}
	stopped := func() bool {
		for _, c := range w.get("web").Status.Conditions {
			if string(c.Type) == deployment.ConditionProgressing {
				return c.Reason == deployment.ReasonRolloutStopped.String()
			}
		}
		return false
	}
	w.eventually("the rollout to stop", stopped)
	w.eventually("an event about it", w.hasEvent("web", "RolloutStopped", "the limit is 1"))
	assert.Len(t, found(), 1)
	assert.Equal(t, 1, failed())
	assert.Equal(t, names, w.names())
	assert.Equal(t, vms, w.vms())
	for _, m := range w.machines() {
		assert.Nil(t, m.DeletionTimestamp, m.Name)
	}
}

// TestUpdateInPlaceByHand: all machines become candidates, and only those whose node a person labels
// as selected are updated.
func TestUpdateInPlaceByHand(t *testing.T) {
	t.Parallel()
	w, d := inPlaceFleet(t, 3, 1, "Manual")
	found := w.agent(machine.UpdateSuccessful)
	names := w.names()
	w.roll(d, "new")
	keys := machine.DefaultPolicy().Keys
	w.eventually("all nodes to be candidates", func() bool {
		list, err := w.core.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: keys.CandidateForUpdate + "=true"})
		require.NoError(t, err)
		return len(slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return !w.mine(&n) })) == 3
	})
	for i, name := range names {
		require.Len(t, found(), i, "a machine was updated that nobody has selected")
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, keys.SelectedForUpdate)
		_, err := w.core.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
		w.eventually("the selected machine to be updated", func() bool { return w.updated("web") == int32(i+1) })
	}
	w.eventually("the rollout to end", w.settled("web", 3))
	assert.Equal(t, names, w.names())
}

// updated returns how many machines of a deployment have its current template.
func (w *world) updated(name string) int32 {
	w.Helper()
	d := &v1alpha1.MachineDeployment{}
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, d))
	return d.Status.UpdatedReplicas
}
