package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machine"
)

// TestNodesDeletedByAnotherController: another controller deletes all node objects at the same time.
// The machines are replaced one at a time. The others and their nodes stay, with an event that says
// why (P45).
// Invariants: P45
func TestNodesDeletedByAnotherController(t *testing.T) {
	t.Parallel()
	w, d := fleetOf(t, 8)
	before := w.machines()
	list, err := w.target.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		if w.mine(&list.Items[i]) {
			require.NoError(t, w.target.CoreV1().Nodes().Delete(t.Context(), list.Items[i].Name, metav1.DeleteOptions{}))
		}
	}
	w.eventually("two machines to be replaced, and the others to stay", func() bool {
		old, running := 0, 0
		for _, m := range w.machines() {
			for i := range before {
				if before[i].Name == m.Name && m.DeletionTimestamp == nil {
					old++
				}
			}
			if m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachinePhase(machine.PhaseRunning) {
				running++
			}
		}
		require.GreaterOrEqual(t, running, 7, "more than one machine is out of service:\n"+w.contents())
		return old <= 6 && running == 8
	})
	blocked := 0
	for i := range before {
		if w.hasEvent(before[i].Name, "ReplacementOfDeletedBlocked", "is being deleted, but machine and node stay")() {
			blocked++
		}
	}
	assert.GreaterOrEqual(t, blocked, 6)
	require.NoError(t, w.client.Delete(t.Context(), d))
	w.eventually("all to be gone", func() bool { return len(w.machines()) == 0 && len(w.vms()) == 0 && w.nodes() == 0 })
}

// badTemplates are node templates that the server refuses, and the field that the message names.
var badTemplates = map[string]struct{ template, field string }{
	"value":  {`{metadata: {labels: {pool: ` + strings.Repeat("a", 70) + `}}}`, `labels["pool"]`},
	"key":    {`{metadata: {labels: {"my pool": a}}}`, `labels["my pool"]`},
	"twice":  {`{spec: {taints: [{key: a, value: x, effect: NoSchedule}, {key: a, value: other, effect: NoSchedule}]}}`, "taints[1]"},
	"effect": {`{spec: {taints: [{key: a, effect: NoShedule}]}}`, "taints[0]"},
}

// TestNodeTemplatesThatAreRefused: no VM is created for a node template that the server would refuse,
// and the deployment's condition names the entry. Once it is corrected, the machines run.
func TestNodeTemplatesThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	for name, c := range badTemplates {
		o := w.variant("MachineDeployment", name, `{spec: {template: {spec: {nodeTemplate: `+c.template+`}}}}`)
		require.NoError(t, w.client.Create(t.Context(), o), name)
		w.eventually(name+": "+c.field, func() bool { return strings.Contains(w.specValid(o), c.field) })
		w.eventually("an event about "+name, w.hasEvent(name, c.field))
	}
	w.deployment("web", "small", 1)
	w.eventually("the valid deployment", w.settled("web", 1))
	require.Len(t, w.machines(), 1)
	require.Equal(t, map[string]int{"s": 1}, w.vms())
	for name := range badTemplates {
		o := w.variant("MachineDeployment", name, `{}`)
		w.merge(o, `{"spec":{"template":{"spec":{"nodeTemplate":null}}}}`)
		w.eventually("the corrected deployment "+name, w.settled(name, 1))
	}
}

// TestRunningNodesWithARefusedTemplate: the node template of a running fleet gets an entry that the
// server refuses. The machines keep running, and their nodes get the valid entries.
func TestRunningNodesWithARefusedTemplate(t *testing.T) {
	t.Parallel()
	w, d := fleetOf(t, 2)
	names := w.names()
	w.merge(d, `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"good":"label","bad":"`+strings.Repeat("a", 70)+`"}}}}}}}`)
	w.eventually("the valid label on each node", func() bool { return w.labelled("good", "label") == 2 })
	w.eventually("an event", w.hasEvent(names[0], `labels["bad"]`))
	assert.ElementsMatch(t, names, w.names())
	w.eventually("all machines to be available", w.settled("web", 2))
}

// labelled counts the nodes of the test's cluster with a label.
func (w *world) labelled(key, value string) (n int) {
	w.Helper()
	list, err := w.target.CoreV1().Nodes().List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	for i := range list.Items {
		if w.mine(&list.Items[i]) && list.Items[i].Labels[key] == value {
			n++
		}
	}
	return n
}

// TestWhatOnlyTheServerRefuses: the template's annotations are too large together with those that the
// node has already, which only the server notices. The machine still runs, the rest of the template
// is on its node, and its last operation has the server's code and message.
func TestWhatOnlyTheServerRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	d := w.deployment("web", "small", 0)
	template := map[string]any{"spec": map[string]any{"replicas": 1, "template": map[string]any{"spec": map[string]any{"nodeTemplate": map[string]any{
		"metadata": map[string]any{"labels": map[string]string{"good": "label"}, "annotations": map[string]string{"note": strings.Repeat("x", 200_000)}},
		"spec":     map[string]any{"taints": []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectPreferNoSchedule}}},
	}}}}}
	patch, err := json.Marshal(template)
	require.NoError(t, err)
	w.merge(d, string(patch))
	w.eventually("the machine to run", w.settled("web", 1))
	name := w.names()[0]
	w.eventually("the server's message at the machine", func() bool {
		op := w.machines()[0].Status.LastOperation
		return op.ErrorCode == "InvalidArgument" && strings.Contains(op.Description, "annotations")
	})
	require.Equal(t, 1, w.labelled("good", "label"))
	require.Contains(t, fmt.Sprint(w.node(name)), "dedicated")
	require.Equal(t, []string{name}, w.names())
	w.eventually("an event", w.hasEvent(name, "SyncNodeRefused", "annotations"))
	w.merge(d, `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"annotations":{"note":"short"}}}}}}}`)
	w.eventually("the error to be cleared", func() bool { return w.machines()[0].Status.LastOperation.ErrorCode == "" })
	require.Equal(t, []string{name}, w.names())
}

// TestStartupTaintThatComesBack: restarted kubelets add their startup taint to their nodes again. The
// taint is removed as it was at joining, and no machine is replaced. Taints of others stay.
func TestStartupTaintThatComesBack(t *testing.T) {
	t.Parallel()
	w, _ := fleetOf(t, 3)
	names, key := w.names(), machine.DefaultPolicy().Keys.NotReadyTaint
	for range 2 {
		for _, name := range names {
			w.changeNode(name, func(n *corev1.Node) client.Object {
				n.Spec.Taints = append(n.Spec.Taints,
					corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "of-others/" + name, Effect: corev1.TaintEffectPreferNoSchedule})
				return n
			}, false)
		}
		for _, name := range names {
			w.eventually("the startup taint to be removed from "+name, func() bool {
				return !strings.Contains(fmt.Sprint(w.nodeOf(name).Spec.Taints), key)
			})
			require.Contains(t, fmt.Sprint(w.nodeOf(name).Spec.Taints), "of-others/"+name)
			w.changeNode(name, func(n *corev1.Node) client.Object { n.Spec.Taints = nil; return n }, false)
		}
	}
	require.ElementsMatch(t, names, w.names())
	w.eventually("all machines to be available", w.settled("web", 3))
}

// TestP64AgentThatUndoes: an agent removes a label and a taint of the template from the node whenever
// it sees them. The manager sets them again a few times, with growing waits, and a warning names
// both. The machine keeps running.
// Invariants: P64
func TestP64AgentThatUndoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	var undone atomic.Int64
	w.background(func(ctx context.Context) { w.undo(ctx, &undone, "agent-not-ready") })
	w.manage()
	w.class("small", "s")
	o := w.variant("MachineDeployment", "web", `{spec: {replicas: 1, template: {spec: {nodeTemplate: {
		metadata: {labels: {team: blue}}, spec: {taints: [{key: agent-not-ready, effect: NoSchedule}]}}}}}}`)
	require.NoError(t, w.client.Create(t.Context(), o))
	w.eventually("the machine", w.settled("web", 1))
	name := w.names()[0]
	w.eventually("label and taint to be set a few times", func() bool {
		require.LessOrEqual(t, undone.Load(), int64(8), "the waits between two writes don't grow")
		return undone.Load() >= 4
	})
	w.eventually("a warning", w.hasEvent(name, "SyncNodeUndone", "label team", "taint agent-not-ready:NoSchedule"))
	require.Equal(t, []string{name}, w.names())
	require.True(t, w.settled("web", 1)())
}

// TestStartupTaintsAreAddedOnce: an agent removes startup taints of the template from the node. The
// machine runs, and the taints are not added again.
func TestStartupTaintsAreAddedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	var undone atomic.Int64
	critical, agentTaint := machine.DefaultPolicy().Keys.CriticalComponents, "startup-taint.cluster-autoscaler.kubernetes.io/agent"
	w.background(func(ctx context.Context) { w.undo(ctx, &undone, critical, agentTaint) })
	w.manage()
	w.class("small", "s")
	o := w.variant("MachineDeployment", "web", `{spec: {replicas: 1, template: {spec: {nodeTemplate: {spec: {taints: [
		{key: `+critical+`, effect: NoSchedule}, {key: `+agentTaint+`, effect: NoSchedule}]}}}}}}`)
	require.NoError(t, w.client.Create(t.Context(), o))
	w.eventually("the machine", w.settled("web", 1))
	name := w.names()[0]
	require.Equal(t, int64(1), undone.Load())
	w.merge(o, `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"annotations":{"note":"later"}}}}}}}`)
	w.eventually("the next write of the node", func() bool { return w.nodeOf(name).Annotations["note"] == "later" })
	require.NotContains(t, fmt.Sprint(w.nodeOf(name).Spec.Taints), agentTaint)
	require.Equal(t, int64(1), undone.Load())
	require.Equal(t, []string{name}, w.names())
}

// undo removes the label team and taints with these keys from nodes whenever it sees them, and counts
// how often.
func (w *world) undo(ctx context.Context, undone *atomic.Int64, keys ...string) {
	for ctx.Err() == nil {
		nodes, err := w.client.Watch(ctx, &corev1.NodeList{})
		if err != nil {
			continue
		}
		for e := range nodes.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok || !w.mine(n) {
				continue
			}
			labels, taints := len(n.Labels), len(n.Spec.Taints)
			delete(n.Labels, "team")
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(keys, t.Key) })
			if len(n.Labels) == labels && len(n.Spec.Taints) == taints {
				continue
			}
			if w.client.Update(ctx, n) == nil { // after a conflict, the next event is the newer node
				undone.Add(1)
			}
		}
	}
}
