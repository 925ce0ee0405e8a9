package controllers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// leftMachine is a machine as another manager leaves it.
type leftMachine struct {
	name     string
	vm       bool // the VM exists
	id       bool // the machine has the VM's provider ID
	node     bool // without a VM: the node still exists (with a VM it always does)
	deleting bool // deletion was requested
	// phase and the rest are fields of the status; kind, state and description are the last operation's.
	phase, kind, state, description string
}

// stayingMachines are machines in all stages of creation and service. deletingMachines are machines in
// all stages of a deletion.
var (
	stayingMachines = []leftMachine{
		{name: "running-1", vm: true, id: true, node: true, phase: "Running", kind: "Create", state: "Successful", description: "Machine running-1 successfully joined the cluster"},
		{name: "running-2", vm: true, id: true, node: true, phase: "Running", kind: "HealthCheck", state: "Successful", description: "Machine running-2 successfully re-joined the cluster"},
		{name: "pending", vm: true, id: true, node: true, phase: "Pending", kind: "Create", state: "Processing", description: "Creating machine on cloud provider"},
		{name: "unrecorded", vm: true, phase: "CrashLoopBackOff", kind: "Create", state: "Failed", description: "Cloud provider message - machine codes error: code = [Internal] message = [the answer was lost]"},
		{name: "uninitialized", vm: true, id: true, phase: "CrashLoopBackOff", kind: "Create", state: "Failed", description: "Provider error: x. Initialize VM Instance"},
		{name: "refused", phase: "CrashLoopBackOff", kind: "Create", state: "Failed", description: "Cloud provider message - machine codes error: code = [Unavailable] message = [later]"},
		{name: "unknown", vm: true, id: true, node: true, phase: "Unknown", kind: "HealthCheck", state: "Processing", description: "Machine unknown is unhealthy - changing MachineState to Unknown"},
		{name: "untouched"},
	}
	deletingMachines = []leftMachine{
		{name: "del-asked", vm: true, id: true, node: true, deleting: true, phase: "Running", kind: "Create", state: "Successful", description: "Machine del-asked successfully joined the cluster"},
		{name: "del-status", vm: true, id: true, node: true, deleting: true, phase: "Terminating", kind: "Delete", state: "Processing", description: "Set machine status to termination. Now, getting VM Status"},
		{name: "del-drain", vm: true, id: true, node: true, deleting: true, phase: "Terminating", kind: "Delete", state: "Failed", description: "Drain failed due to - x. Will retry in next sync. Initiate node drain"},
		{name: "del-vm", vm: true, id: true, node: true, deleting: true, phase: "Terminating", kind: "Delete", state: "Processing", description: "Drain successful. Initiate VM deletion"},
		{name: "del-node", id: true, node: true, deleting: true, phase: "Terminating", kind: "Delete", state: "Processing", description: "VM deletion was successful. Initiate node object deletion"},
		{name: "del-record", id: true, deleting: true, phase: "Terminating", kind: "Delete", state: "Processing", description: "Deletion of Node Object was successful. Initiate machine object finalizer removal"},
		{name: "del-never", deleting: true, phase: "CrashLoopBackOff", kind: "Create", state: "Failed", description: "Cloud provider message - x"},
	}
)

// writeStatus merges fields into the status of an object.
func (w *world) writeStatus(o client.Object, status map[string]any) {
	w.Helper()
	text, err := json.Marshal(map[string]any{"status": status})
	require.NoError(w, err)
	require.NoError(w, w.client.SubResource("status").Patch(w.Context(), o, client.RawPatch(types.MergePatchType, text)))
}

// removeVM removes the VM of the machine with that name: a file of the simulated provider.
func (w *world) removeVM(name string) {
	w.Helper()
	require.NoError(w, os.Remove(filepath.Join(w.folder, w.namespace, name)))
}

// storeLeft stores a machine as another manager leaves it, with its VM and node.
func (w *world) storeLeft(l leftMachine, set *unstructured.Unstructured, class string) {
	w.Helper()
	name := w.namespace + "-" + l.name
	w.createVM(w.namespace, name, class)
	vms, err := w.provider.VMs(w.namespace)
	require.NoError(w, err)
	id := ""
	for _, v := range vms {
		if v.Machine == name {
			id = v.ID
		}
	}
	w.eventually("the node of "+l.name, func() bool {
		_, err := w.core.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
		return err == nil
	})
	if !l.vm {
		w.removeVM(name)
	}
	if !l.node && !l.vm {
		require.NoError(w, w.core.CoreV1().Nodes().Delete(w.Context(), name, metav1.DeleteOptions{}))
	}
	hash := set.GetLabels()["machine-template-hash"]
	o := w.fromYAML("Machine", name, fmt.Sprintf(`{metadata: {labels: {name: pool, machine-template-hash: "%s"}, annotations: {machinepriority.machine.sapcloud.io: "3"}, finalizers: [machine.sapcloud.io/machine-controller-manager]}, spec: {class: {kind: MachineClass, name: %s}, creationTimeout: 20m0s, nodeTemplate: {metadata: {labels: {tier: a}}}}}`, hash, class))
	yes := true
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: set.GetAPIVersion(), Kind: "MachineSet", Name: set.GetName(), UID: set.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}})
	if l.id {
		require.NoError(w, unstructured.SetNestedField(o.Object, id, "spec", "providerID"))
		labels := o.GetLabels()
		labels["node"] = name
		o.SetLabels(labels)
	}
	require.NoError(w, w.client.Create(w.Context(), o))
	if l.phase != "" {
		at := time.Now().UTC().Format(time.RFC3339)
		w.writeStatus(o, map[string]any{
			"currentStatus": map[string]any{"phase": l.phase, "lastUpdateTime": at},
			"lastOperation": map[string]any{"type": l.kind, "state": l.state, "description": l.description, "lastUpdateTime": at},
		})
	}
	if l.deleting {
		require.NoError(w, w.client.Delete(w.Context(), o))
	}
}

// TestTakingOverEveryStage: a fleet that another manager has left, with machines in every stage, is
// continued from each machine's stage. No VM is created twice, no machine is replaced, no set is
// created, and deletions continue. Afterwards the objects have the annotations and labels that the
// other manager reads.
// Invariants: P4 P12 P18
func TestTakingOverEveryStage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, steady)
	w.class("new", "new")
	w.class("old", "old")
	const template = `metadata: {labels: {name: pool}, creationTimestamp: null}, spec: {class: {kind: MachineClass, name: %s}, creationTimeout: 20m0s, nodeTemplate: {metadata: {labels: {tier: a}}}}`
	d := w.fromYAML("MachineDeployment", "pool", fmt.Sprintf(`{metadata: {annotations: {deployment.kubernetes.io/revision: "7"}, finalizers: [machine.sapcloud.io/machine-controller-manager]}, spec: {replicas: %d, selector: {matchLabels: {name: pool}}, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, template: {`+template+`}}}`, len(stayingMachines), "new"))
	require.NoError(t, w.client.Create(t.Context(), d))
	sets := map[string]*unstructured.Unstructured{}
	for class, c := range map[string]struct{ hash, revision, replicas string }{"new": {"5f6b9", "7", fmt.Sprint(len(stayingMachines))}, "old": {"77c4d", "6", "0"}} {
		labels := fmt.Sprintf(`{name: pool, machine-template-hash: %s}`, c.hash)
		s := w.fromYAML("MachineSet", "pool-"+c.hash, fmt.Sprintf(`{metadata: {labels: %s, annotations: {deployment.kubernetes.io/revision: "%s", deployment.kubernetes.io/desired-replicas: "%d", deployment.kubernetes.io/max-replicas: "%d"}, finalizers: [machine.sapcloud.io/machine-controller-manager]}, spec: {replicas: %s, selector: {matchLabels: %s}, template: {`+strings.Replace(template, "{name: pool}", labels, 1)+`}}}`,
			labels, c.revision, len(stayingMachines), len(stayingMachines)+1, c.replicas, labels, class))
		yes := true
		s.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: d.GetAPIVersion(), Kind: "MachineDeployment", Name: "pool", UID: d.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}})
		require.NoError(t, w.client.Create(t.Context(), s))
		sets[class] = s
	}
	for _, l := range stayingMachines {
		w.storeLeft(l, sets["new"], "new")
	}
	for _, l := range deletingMachines {
		w.storeLeft(l, sets["old"], "old")
	}
	before, ids := w.names(), map[string]string{}
	vms, err := w.provider.VMs(w.namespace)
	require.NoError(t, err)
	for _, v := range vms {
		ids[v.Machine] = v.ID
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	w.followMachines(func(all map[string]*v1alpha1.Machine) {
		mu.Lock()
		defer mu.Unlock()
		for name := range all {
			seen[name] = true
		}
	})
	stop := w.manage()
	w.eventually("the fleet", w.settled("pool", int32(len(stayingMachines))))
	w.eventually("the deleted machines to be gone", func() bool { return len(w.machines()) == len(stayingMachines) })
	w.eventually("their VMs and nodes to be gone", func() bool {
		return maps.Equal(map[string]int{"new": len(stayingMachines)}, w.vms()) && w.nodes() == len(stayingMachines)
	})
	stop()
	mu.Lock()
	assert.Len(t, seen, len(before), "a machine was created")
	mu.Unlock()
	for _, m := range w.machines() {
		assert.Equal(t, "Running", string(m.Status.CurrentStatus.Phase), m.Name)
		assert.Equal(t, m.Name, m.Labels["node"])
		if id := ids[m.Name]; id != "" {
			assert.Equal(t, id, m.Spec.ProviderID, "%s has another VM", m.Name)
		}
		assert.Contains(t, m.Finalizers, machine.Finalizer)
		assert.NotEmpty(t, m.Status.LastOperation.Type)
	}
	require.Len(t, w.sets(), 2)
	for _, s := range w.sets() {
		class := s.Spec.Template.Spec.Class.Name
		assert.Equal(t, sets[class].GetUID(), s.UID)
		assert.Equal(t, map[string]string{"new": "7", "old": "6"}[class], s.Annotations["deployment.kubernetes.io/revision"])
		assert.Equal(t, fmt.Sprint(len(stayingMachines)), s.Annotations["deployment.kubernetes.io/desired-replicas"])
		assert.Equal(t, fmt.Sprint(len(stayingMachines)+1), s.Annotations["deployment.kubernetes.io/max-replicas"])
		assert.Equal(t, []string{machineset.Finalizer}, s.Finalizers)
	}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	assert.Equal(t, "7", d.GetAnnotations()["deployment.kubernetes.io/revision"])
	for _, name := range before {
		if node := w.nodeOf(name); node != nil {
			assert.JSONEq(t, `{"metadata":{"labels":{"tier":"a"}}}`, node.Annotations["node.machine.sapcloud.io/last-applied-anno-labels-taints"], name)
			assert.Equal(t, "a", node.Labels["tier"], name)
		}
	}
}

// nodeOf returns the node of that name, or nil.
func (w *world) nodeOf(name string) *corev1.Node {
	w.Helper()
	n := &corev1.Node{}
	err := w.client.Get(w.Context(), client.ObjectKey{Name: name}, n)
	require.NoError(w, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return n
}

// TestReturningFromAnotherManager: the fleet returns from another manager, which kept our annotations
// and removed our conditions. A machineset.Reservation that was left on a set does not lead to
// additional machines, and the name of the deleted machine is not used again.
// Invariants: P12 P17
func TestReturningFromAnotherManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t, steady)
	w.class("small", "small")
	stop := w.manage()
	s := w.machineSet("web", "small", 2)
	w.eventually("two machines", w.setSettled(s, 2))
	stop()
	first := w.names()
	set := w.fromYAML("MachineSet", "web", "{}")
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(set), set))

	// The other manager replaces the first machine by one with a name that it chose, and removes our
	// conditions.
	gone := &v1alpha1.Machine{ObjectMeta: w.meta(first[0])}
	require.NoError(t, w.client.Delete(t.Context(), gone))
	w.merge(gone, `{"metadata":{"finalizers":null}}`)
	w.removeVM(first[0])
	require.NoError(t, w.core.CoreV1().Nodes().Delete(t.Context(), first[0], metav1.DeleteOptions{}))
	l := stayingMachines[0]
	w.storeLeft(l, set, "small")
	w.merge(&v1alpha1.Machine{ObjectMeta: w.meta(w.namespace + "-" + l.name)}, `{"metadata":{"labels":{"lone":"web","machine-template-hash":null}}}`)
	for _, m := range w.machines() {
		w.writeStatus(&m, map[string]any{"conditions": nil})
	}
	second := w.names()
	for _, c := range []struct {
		settled, reserved int
		age               time.Duration
	}{
		{settled: 2, reserved: 6, age: 0},         // names 3 to 6 may have been given out, just now
		{settled: 6, reserved: 9, age: time.Hour}, // names 7 to 9, an hour ago
	} {
		w.merge(s, fmt.Sprintf(`{"metadata":{"annotations":{"millwright-go/reservation":"settled=%d reserved=%d at=%s"}}}`, c.settled, c.reserved, time.Now().Add(-c.age).UTC().Format(time.RFC3339)))
		before := w.names()
		seen := w.census(len(before))
		stop := w.manage()
		replicas := int32(len(before)) + 1
		w.merge(s, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		w.eventually("one more machine", w.setSettled(s, replicas))
		_, total := seen.spans()
		assert.Equal(t, int(replicas), total.most, "more machines were created than desired")
		assert.Subset(t, w.names(), before)
		stop()
	}
	assert.Subset(t, w.names(), second)
	assert.NotContains(t, w.names(), first[0], "a new machine has the name of a deleted one")
	assert.Equal(t, map[string]int{"small": 4}, w.vms())
}
