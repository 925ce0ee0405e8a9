package controllers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/machine"
)

// updating is a machine in the middle of an update in place by another manager.
type updating struct {
	leftMachine
	reason             string // of the node's condition InPlaceUpdate; empty: there is none
	selected, cordoned bool
	result             string // the agent's label; empty: it has not answered
}

func leftAmidUpdate(name, phase, kind, description string) leftMachine {
	return leftMachine{name: name, vm: true, id: true, node: true, phase: phase, kind: kind, state: "Processing", description: description}
}

// inUpdate is the description of a machine in phase InPlaceUpdating.
const inUpdate = "Machine x is undergoing an in-place update"

// updates are machines of the old set at all stages of an update.
var updates = []updating{
	{leftAmidUpdate("plain", "Running", "Create", "Machine plain successfully joined the cluster"), "", false, false, ""},
	{leftAmidUpdate("candidate", "Running", "Create", "Machine candidate successfully joined the cluster"), "CandidateForUpdate", false, false, ""},
	{leftAmidUpdate("selected", "Running", "Create", "Machine selected successfully joined the cluster"), "SelectedForUpdate", true, true, ""},
	{leftAmidUpdate("drained", "InPlaceUpdating", "InPlaceUpdate", inUpdate), "DrainSuccessful", true, true, ""},
	{leftAmidUpdate("ready", "InPlaceUpdating", "InPlaceUpdate", inUpdate), "ReadyForUpdate", true, true, ""},
	{leftAmidUpdate("answered", "InPlaceUpdating", "InPlaceUpdate", inUpdate), "ReadyForUpdate", true, true, "successful"},
	{leftAmidUpdate("updated", "Running", "HealthCheck", "Machine updated successfully re-joined the cluster"), "UpdateSuccessful", true, true, "successful"},
}

// markNode sets the labels, the cordon and the condition that the other manager and the agent have
// set on the node of a machine.
func (w *world) markNode(u *updating) {
	w.Helper()
	if u.reason == "" {
		return
	}
	keys, name := machine.DefaultPolicy().Keys, w.namespace+"-"+u.name
	labels := map[string]string{keys.CandidateForUpdate: "true"}
	if u.selected {
		labels[keys.SelectedForUpdate] = "true"
	}
	if u.result != "" {
		labels[keys.UpdateResult] = u.result
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"unschedulable": u.cordoned}})
	require.NoError(w, err)
	nodes := w.core.CoreV1().Nodes()
	_, err = nodes.Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w, err)
	at := time.Now().UTC().Format(time.RFC3339)
	patch, err = json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": machine.NodeInPlaceUpdate, "status": "True", "reason": u.reason, "message": u.name, "lastTransitionTime": at},
	}}})
	require.NoError(w, err)
	_, err = nodes.Patch(w.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(w, err)
}

// fleetAmidUpdate stores a deployment in the middle of an update in place by another manager. All
// machines are still in the old set.
func (w *world) fleetAmidUpdate() {
	w.Helper()
	sets := w.setsAmidUpdate("new", len(updates))
	for i := range updates {
		w.storeLeft(updates[i].leftMachine, sets["old"], "old")
		w.markNode(&updates[i])
	}
}

// setsAmidUpdate stores a deployment of the wanted class and its two sets, and returns the sets by
// their class. The set of class old has all replicas, and a label that forbids it to create machines.
func (w *world) setsAmidUpdate(wanted string, replicas int) map[string]*unstructured.Unstructured {
	w.Helper()
	w.class("old", "o")
	w.class("new", "n")
	const template = `metadata: {labels: {name: pool}, creationTimestamp: null}, spec: {class: {kind: MachineClass, name: %s}, creationTimeout: 20m0s, nodeTemplate: {metadata: {labels: {tier: a}}}}`
	d := w.fromYAML("MachineDeployment", "pool", fmt.Sprintf(`{metadata: {annotations: {deployment.kubernetes.io/revision: "2"}, finalizers: [machine.sapcloud.io/machine-controller-manager]}, spec: {replicas: %d, selector: {matchLabels: {name: pool}}, strategy: {type: InPlaceUpdate, inPlaceUpdate: {maxSurge: 0, maxUnavailable: %d, orchestrationType: Auto}}, template: {`+template+`}}}`,
		replicas, replicas-1, wanted))
	require.NoError(w, w.client.Create(w.Context(), d))
	sets, yes := map[string]*unstructured.Unstructured{}, true
	for class, c := range map[string]struct {
		hash, revision string
		replicas       int
	}{"new": {"5f6b9", "2", 0}, "old": {"77c4d", "1", replicas}} {
		s := w.fromYAML("MachineSet", "pool-"+c.hash, fmt.Sprintf(`{metadata: {labels: {name: pool, machine-template-hash: %[1]s}, annotations: {deployment.kubernetes.io/revision: "%[2]s"}, finalizers: [machine.sapcloud.io/machine-controller-manager]}, spec: {replicas: %[3]d, selector: {matchLabels: {name: pool, machine-template-hash: %[1]s}}, template: {metadata: {labels: {name: pool, machine-template-hash: %[1]s}}, spec: {class: {kind: MachineClass, name: %[4]s}, creationTimeout: 20m0s, nodeTemplate: {metadata: {labels: {tier: a}}}}}}}`,
			c.hash, c.revision, c.replicas, class))
		s.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: d.GetAPIVersion(), Kind: "MachineDeployment", Name: "pool", UID: d.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}})
		if class == "old" {
			labels := s.GetLabels()
			labels[scaleUpDisabled] = "true"
			s.SetLabels(labels)
		}
		require.NoError(w, w.client.Create(w.Context(), s))
		sets[class] = s
	}
	return sets
}

// scaleUpDisabled is the label by which another manager prevents old sets from creating machines.
const scaleUpDisabled = "node.machine.sapcloud.io/scale-up-disabled"

// TestTakingOverAnUpdateInPlace: an update in place that another manager has begun is continued
// from the stage of each machine. No machine is replaced or updated twice. Afterwards the nodes have
// no marks of the update, except the condition from which the other manager could begin the next one.
// Invariants: P23
func TestTakingOverAnUpdateInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.fleetAmidUpdate()
	names, vms := w.names(), w.vms()
	updatedByAgent := w.agent(machine.UpdateSuccessful)
	stop := w.manage()
	w.eventually("the rollout to end", func() bool {
		return w.updated("pool") == int32(len(updates)) && w.settled("pool", int32(len(updates)))()
	})
	w.eventually("the nodes to be as before", func() bool { return w.unmarked() == len(updates) })
	stop()
	assert.Equal(t, names, w.names())
	assert.True(t, maps.Equal(vms, w.vms()), "%v", w.vms())
	for i := range updates {
		name := w.namespace + "-" + updates[i].name
		if updates[i].result != "" {
			assert.NotContains(t, updatedByAgent(), name, "updated once more")
		}
		c := inPlaceCondition(w.nodeOf(name))
		require.NotNil(t, c, name)
		assert.Equal(t, []any{corev1.ConditionTrue, machine.ReasonUpdateSuccessful}, []any{c.Status, c.Reason}, name)
	}
	for _, m := range w.machines() {
		assert.Equal(t, "new", m.Spec.Class.Name, m.Name)
		assert.Equal(t, "Running", string(m.Status.CurrentStatus.Phase), m.Name)
	}
}

// TestTakingOverARolledBackUpdate: after a rollback the old set is the current one. It creates the
// missing machine, although another manager has disabled its scale-up.
func TestTakingOverARolledBackUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	sets := w.setsAmidUpdate("old", 3)
	for _, name := range []string{"a", "b"} {
		w.storeLeft(leftAmidUpdate(name, "Running", "Create", "Machine "+name+" successfully joined the cluster"), sets["old"], "old")
	}
	stop := w.manage()
	w.eventually("the missing machine", w.settled("pool", 3))
	stop()
	for _, s := range w.sets() {
		if s.Name == sets["old"].GetName() {
			assert.NotContains(t, s.Labels, scaleUpDisabled)
			assert.EqualValues(t, 3, s.Spec.Replicas)
		}
	}
}

func inPlaceCondition(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; string(c.Type) == machine.NodeInPlaceUpdate {
			return c
		}
	}
	return nil
}
