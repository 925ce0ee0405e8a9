package controllers_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
)

const (
	keptKey  = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	byMCMKey = "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"
)

var preservedTaint = corev1.Taint{Key: "node.machine.sapcloud.io/preserved", Effect: corev1.TaintEffectNoSchedule}

// markPreserved sets on a node what another manager sets while it preserves a failed machine for
// inspection, and the condition that has made the machine fail.
func (w *world) markPreserved(name string, until time.Time) {
	w.Helper()
	w.changeNode(name, func(n *corev1.Node) client.Object {
		n.Annotations = maps.Clone(n.Annotations)
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[keptKey], n.Annotations[byMCMKey] = "true", "true"
		n.Spec.Taints = append(n.Spec.Taints, preservedTaint)
		return n
	}, false)
	w.changeNode(name, func(n *corev1.Node) client.Object {
		setNodeCondition(n, "KernelDeadlock", corev1.ConditionTrue, "DockerHung", "")
		setNodeCondition(n, "Preserved", corev1.ConditionTrue, "Preserved by user.", fmt.Sprintf("Drain of preserved node successful. Machine preserved until %v.", until))
		return n
	}, true)
}

// changeNode changes a node, or its status, and repeats that after a conflict.
func (w *world) changeNode(name string, change func(*corev1.Node) client.Object, status bool) {
	w.Helper()
	w.eventually("node "+name+" to be written", func() bool {
		o := change(w.nodeOf(name))
		var err error
		if status {
			err = w.client.Status().Update(w.Context(), o)
		} else {
			err = w.client.Update(w.Context(), o)
		}
		require.True(w, err == nil || apierrors.IsConflict(err), "%v", err)
		return err == nil
	})
}

func setNodeCondition(n *corev1.Node, kind string, status corev1.ConditionStatus, reason, message string) {
	c := corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == c.Type {
			n.Status.Conditions[i] = c
			return
		}
	}
	n.Status.Conditions = append(n.Status.Conditions, c)
}

func nodeCondition(n *corev1.Node, kind string) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if string(c.Type) == kind {
			return c.Status
		}
	}
	return ""
}

// TestTakingOverAPreservedMachine: a failed machine that another manager preserves for inspection
// stays preserved, and is counted in the set's status. When it is healthy again, the taint and the
// annotations for autoscalers are removed from its node.
// Invariants: P23
func TestTakingOverAPreservedMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, steady)
	w.class("small", "small")
	set := w.fromYAML("MachineSet", "pool-5f6b9", `{metadata: {finalizers: [machine.sapcloud.io/machine-controller-manager]}, spec: {replicas: 1, selector: {matchLabels: {name: pool}}, template: {metadata: {labels: {name: pool}}, spec: {class: {kind: MachineClass, name: small}}}}}`)
	require.NoError(t, w.client.Create(t.Context(), set))
	w.storeLeft(leftMachine{
		name: "kept", vm: true, id: true, node: true, phase: "Failed", kind: "HealthCheck", state: "Failed",
		description: "Machine kept health checks failing since last 10m0s minutes. Updating machine phase to Failed.",
	}, set, "small")
	name := w.namespace + "-kept"
	m := &v1alpha1.Machine{ObjectMeta: w.meta(name)}
	until := time.Now().Add(72 * time.Hour).UTC().Truncate(time.Second)
	w.merge(m, `{"metadata":{"annotations":{"node.machine.sapcloud.io/preserve":"when-failed"}}}`)
	w.writeStatus(m, map[string]any{"currentStatus": map[string]any{"preserveExpiryTime": until.Format(time.RFC3339)}})
	w.markPreserved(name, until)
	uid := m.UID

	w.manage()
	s := &v1alpha1.MachineSet{ObjectMeta: w.meta(set.GetName())}
	w.eventually("the preserved machine to be counted", func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		return s.Status.PreservedFailedReplicas == 1 && w.nodeOf(name).Annotations["millwright-go/applied"] != ""
	})
	assert.Nil(t, s.Status.FailedMachines)
	assert.Zero(t, s.Status.AutoPreserveFailedMachineCount)

	w.changeNode(name, func(n *corev1.Node) client.Object {
		setNodeCondition(n, "KernelDeadlock", corev1.ConditionFalse, "KernelHasNoDeadlock", "")
		return n
	}, true)
	w.eventually("the marks of the other manager to be gone", func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		n := w.nodeOf(name)
		_, kept := n.Annotations[keptKey]
		_, byMCM := n.Annotations[byMCMKey]
		return m.Status.CurrentStatus.Phase == "Running" && m.Status.CurrentStatus.PreserveExpiryTime == nil && !kept && !byMCM &&
			len(n.Spec.Taints) == 0 && !n.Spec.Unschedulable && nodeCondition(n, "Preserved") == corev1.ConditionFalse
	})
	w.eventually("the machine to count as available", w.setSettled(s, 1))
	assert.Zero(t, s.Status.PreservedFailedReplicas)
	assert.Equal(t, uid, m.UID)
	assert.Equal(t, []string{name}, w.names())
	assert.Equal(t, map[string]int{"small": 1}, w.vms())
}
