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

// TestNodesDeletedByAnotherController: another controller deletes all node objects at the same
// moment. One machine goes at a time, and the others run on with their nodes, and say why (P45).
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
		require.GreaterOrEqual(t, running, 7, w.left())
		return old <= 6 && running == 8
	})
	told := 0
	for i := range before {
		if w.announced(before[i].Name, "ReplacementOfDeletedBlocked", "is being deleted, but machine and node stay")() {
			told++
		}
	}
	assert.GreaterOrEqual(t, told, 6)
	require.NoError(t, w.client.Delete(t.Context(), d))
	w.eventually("all to go", func() bool { return len(w.machines()) == 0 && len(w.vms()) == 0 && w.nodes() == 0 })
}

// badNodes are node templates that the server refuses.
var badNodes = map[string]struct{ template, field string }{
	"value":  {`{metadata: {labels: {pool: ` + strings.Repeat("a", 70) + `}}}`, `labels["pool"]`},
	"key":    {`{metadata: {labels: {"my pool": a}}}`, `labels["my pool"]`},
	"twice":  {`{spec: {taints: [{key: a, value: x, effect: NoSchedule}, {key: a, value: other, effect: NoSchedule}]}}`, "taints[1]"},
	"effect": {`{spec: {taints: [{key: a, effect: NoShedule}]}}`, "taints[0]"},
}

// TestNodeTemplatesThatAreRefused: no VM is made for a node that the server would refuse, and the
// deployment names the entry. Once that is corrected the machines run.
func TestNodeTemplatesThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	for name, c := range badNodes {
		o := w.with("MachineDeployment", name, `{spec: {template: {spec: {nodeTemplate: `+c.template+`}}}}`)
		require.NoError(t, w.client.Create(t.Context(), o), name)
		w.eventually(name+": "+c.field, func() bool { return strings.Contains(w.specValid(o), c.field) })
		w.eventually("an event about "+name, w.announced(name, c.field))
	}
	w.deployment("web", "small", 1)
	w.eventually("what is right beside it", w.settled("web", 1))
	require.Len(t, w.machines(), 1)
	require.Equal(t, map[string]int{"s": 1}, w.vms())
	for name := range badNodes {
		o := w.with("MachineDeployment", name, `{}`)
		w.merge(o, `{"spec":{"template":{"spec":{"nodeTemplate":null}}}}`)
		w.eventually(name+" to be put right", w.settled(name, 1))
	}
}

// TestRunningNodesWithARefusedTemplate: the template of a fleet that runs becomes one that the
// server refuses. The machines run on, and their nodes get its valid entries.
func TestRunningNodesWithARefusedTemplate(t *testing.T) {
	t.Parallel()
	w, d := fleetOf(t, 2)
	names := w.names()
	w.merge(d, `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"good":"label","bad":"`+strings.Repeat("a", 70)+`"}}}}}}}`)
	w.eventually("the valid label on each node", func() bool { return w.labelled("good", "label") == 2 })
	w.eventually("an event", w.announced(names[0], `labels["bad"]`))
	assert.ElementsMatch(t, names, w.names())
	w.eventually("all to be available", w.settled("web", 2))
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

// TestWhatOnlyTheServerRefuses: annotations that are too large only together with the node's others
// keep no machine from running. The rest of the template is on its node, and the machine has the
// code and the message of the server.
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
	w.eventually("what the server says", func() bool {
		op := w.machines()[0].Status.LastOperation
		return op.ErrorCode == "InvalidArgument" && strings.Contains(op.Description, "annotations")
	})
	require.Equal(t, 1, w.labelled("good", "label"))
	require.Contains(t, fmt.Sprint(w.node(name)), "dedicated")
	require.Equal(t, []string{name}, w.names())
	w.eventually("an event", w.announced(name, "SyncNodeRefused", "annotations"))
	w.merge(d, `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"annotations":{"note":"short"}}}}}}}`)
	w.eventually("it to be put right", func() bool { return w.machines()[0].Status.LastOperation.ErrorCode == "" })
	require.Equal(t, []string{name}, w.names())
}

// TestStartupTaintThatComesBack: kubelets that are restarted put their startup taint on their nodes
// again. It is taken off as at joining, so that the nodes take pods, and no machine is replaced.
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
			w.eventually("the startup taint to go from "+name, func() bool {
				return !strings.Contains(fmt.Sprint(w.nodeOf(name).Spec.Taints), key)
			})
			require.Contains(t, fmt.Sprint(w.nodeOf(name).Spec.Taints), "of-others/"+name)
			w.changeNode(name, func(n *corev1.Node) client.Object { n.Spec.Taints = nil; return n }, false)
		}
	}
	require.ElementsMatch(t, names, w.names())
	w.eventually("all to be available", w.settled("web", 3))
}

// TestP64AgentThatUndoes: an agent takes a label and a taint of the template off the node on sight.
// It is answered a few times, ever more rarely, a warning names both, and the machine runs on.
// Invariants: P64
func TestP64AgentThatUndoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	var undone atomic.Int64
	w.background(func(ctx context.Context) { w.undoes(ctx, &undone, "agent-not-ready") })
	w.manage()
	w.class("small", "s")
	o := w.with("MachineDeployment", "web", `{spec: {replicas: 1, template: {spec: {nodeTemplate: {
		metadata: {labels: {team: blue}}, spec: {taints: [{key: agent-not-ready, effect: NoSchedule}]}}}}}}`)
	require.NoError(t, w.client.Create(t.Context(), o))
	w.eventually("the machine", w.settled("web", 1))
	name := w.names()[0]
	w.eventually("the agent to be answered ever more rarely", func() bool {
		require.LessOrEqual(t, undone.Load(), int64(8), "a flood")
		return undone.Load() >= 4
	})
	w.eventually("a warning", w.announced(name, "SyncNodeUndone", "label team", "taint agent-not-ready:NoSchedule"))
	require.Equal(t, []string{name}, w.names())
	require.True(t, w.settled("web", 1)())
}

// TestStartupTaintsAreAddedOnce: an agent takes startup taints of the template off the node once it is
// ready. The machine runs, and they stay off.
func TestStartupTaintsAreAddedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	var undone atomic.Int64
	critical, agents := machine.DefaultPolicy().Keys.CriticalComponents, "startup-taint.cluster-autoscaler.kubernetes.io/agent"
	w.background(func(ctx context.Context) { w.undoes(ctx, &undone, critical, agents) })
	w.manage()
	w.class("small", "s")
	o := w.with("MachineDeployment", "web", `{spec: {replicas: 1, template: {spec: {nodeTemplate: {spec: {taints: [
		{key: `+critical+`, effect: NoSchedule}, {key: `+agents+`, effect: NoSchedule}]}}}}}}`)
	require.NoError(t, w.client.Create(t.Context(), o))
	w.eventually("the machine", w.settled("web", 1))
	name := w.names()[0]
	require.Equal(t, int64(1), undone.Load())
	w.merge(o, `{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"annotations":{"note":"later"}}}}}}}`)
	w.eventually("the next write of the node", func() bool { return w.nodeOf(name).Annotations["note"] == "later" })
	require.NotContains(t, fmt.Sprint(w.nodeOf(name).Spec.Taints), agents)
	require.Equal(t, int64(1), undone.Load())
	require.Equal(t, []string{name}, w.names())
}

// undoes takes the label team and taints of these keys off nodes on sight, and counts how often.
func (w *world) undoes(ctx context.Context, undone *atomic.Int64, keys ...string) {
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
