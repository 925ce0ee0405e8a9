package convert_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// The template and capacity that were applied to a node are written where and how other managers read
// them.
func TestAppliedIsWhereOthersLook(t *testing.T) {
	n := &machine.Node{}
	n.Annotations = map[string]string{"theirs": "1"}
	n.Applied.Labels = map[string]string{"a": "b"}
	n.Applied.Taints = []object.Taint{{Key: "k", Value: "v", Effect: object.NoSchedule}}
	n.Applied.VirtualCapacity = map[string]string{"example.com/gpu": "2"}
	n.Applied.Generation = 4
	n.Drain = &machine.DrainRecord{}
	doc := nodes.store(t, map[string]any{}, n)
	annotations := nodes.typed(t, doc).Annotations
	assert.Len(t, annotations, 5)
	assert.JSONEq(t, `{"metadata":{"labels":{"a":"b"}},"spec":{"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]}}`,
		annotations["node.machine.sapcloud.io/last-applied-anno-labels-taints"])
	assert.JSONEq(t, `{"example.com/gpu":"2"}`, annotations["node.machine.sapcloud.io/last-applied-virtual-capacity"])
	assert.Equal(t, "generation=4", annotations["millwright-go/applied"])
	assert.Equal(t, "{}", annotations["millwright-go/drain"])
	read, _ := nodes.Read(nodes.typed(t, doc))
	assert.NotNil(t, read.Drain, "an empty record must not read as none")

	doc = nodes.store(t, doc, &machine.Node{})
	assert.Empty(t, nodes.typed(t, doc).Annotations)
}

// The template and capacity that were applied are read from the established annotations only, not from
// our record.
func TestAppliedIsReadWhereOthersWriteIt(t *testing.T) {
	w := &corev1.Node{}
	w.Annotations = map[string]string{keys.Applied: "generation=3 labels.a=b virtualCapacity.x=1"}
	n, problems := nodes.Read(w)
	require.Empty(t, problems)
	assert.Equal(t, machine.Applied{Generation: 3}, n.Applied)
}

// A node that another manager has written can be read, and written so that this manager can read it.
// Invariants: P23
func TestNodesOfOthersAreTakenOver(t *testing.T) {
	w := &corev1.Node{}
	w.Annotations = map[string]string{
		keys.LastApplied:         `{"metadata":{"creationTimestamp":null,"labels":{"pool":"a"},"annotations":{"note":"x"}},"spec":{"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]}}`,
		keys.LastAppliedCapacity: `{"example.com/memory":"1234567"}`,
	}
	n, problems := nodes.Read(w)
	require.Empty(t, problems)
	assert.Empty(t, n.Annotations, "records must not be among the annotations")
	assert.Equal(t, machine.Applied{
		NodeTemplate: machine.NodeTemplate{
			Labels: map[string]string{"pool": "a"}, Annotations: map[string]string{"note": "x"},
			Taints: []object.Taint{{Key: "k", Value: "v", Effect: object.NoSchedule}},
		},
		VirtualCapacity: map[string]string{"example.com/memory": "1234567"},
	}, n.Applied)
	n.Applied.Labels = map[string]string{"pool": "b"}
	n.Drain = &machine.DrainRecord{Since: begin}
	after := nodes.typed(t, nodes.store(t, nodes.document(t, w), n))
	assert.JSONEq(t, `{"metadata":{"labels":{"pool":"b"},"annotations":{"note":"x"}},"spec":{"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]}}`,
		after.Annotations[keys.LastApplied])
	assert.Equal(t, w.Annotations[keys.LastAppliedCapacity], after.Annotations[keys.LastAppliedCapacity])
	assert.Equal(t, "since=2026-03-01T12:00:00Z", after.Annotations[keys.Drain])
}

// No user can write a record as an annotation.
// Invariants: P23
func TestRecordsCannotBeForged(t *testing.T) {
	n := &machine.Node{}
	n.Applied.Labels = map[string]string{"a": "b"}
	doc := nodes.store(t, map[string]any{}, n)
	before := nodes.typed(t, doc).Annotations
	n.Annotations = map[string]string{keys.Drain: "forged", keys.Applied: "forged", keys.LastApplied: "forged", keys.LastAppliedCapacity: "forged"}
	patch, err := nodes.Update(nodes.typed(t, doc), n)
	require.NoError(t, err)
	assert.Nil(t, patch)
	made, err := nodes.Create(n)
	require.NoError(t, err)
	assert.Equal(t, before, made.Annotations)
}

// A record that can't be read is reported and counts as none. It stays until a new record is written.
func TestDamagedRecordsOfANode(t *testing.T) {
	w := &corev1.Node{}
	w.Annotations = map[string]string{keys.LastApplied: "{", keys.LastAppliedCapacity: "[]", keys.Applied: `{"generation":"x"}`, keys.Drain: "{}", "mine": "{"}
	n, problems := nodes.Read(w)
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	assert.ElementsMatch(t, []string{
		"metadata.annotations[" + keys.LastApplied + "]", "metadata.annotations[" + keys.LastAppliedCapacity + "]", "metadata.annotations[" + keys.Applied + "]",
	}, fields)
	assert.Equal(t, machine.Applied{}, n.Applied)
	assert.Equal(t, &machine.DrainRecord{}, n.Drain)

	rapid.Check(t, func(t *rapid.T) {
		garbage := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"null", "{}", "[]", "{", "0", `""`, `{"generation":"x"}`, `{"since":1e99}`, `{"since":"2026-03-01T12:00:00.9Z"}`, `{"metadata":[]}`, `{"x":"1000m"}`, `{"x":"many"}`,
		}))
		w := &corev1.Node{}
		w.Annotations = map[string]string{}
		for _, key := range []string{keys.LastApplied, keys.LastAppliedCapacity, keys.Applied, keys.Drain} {
			w.Annotations[key] = garbage.Draw(t, key)
		}
		n, problems := nodes.Read(w)
		require.LessOrEqual(t, len(problems), 4)
		patch, err := nodes.Update(w, n)
		require.NoError(t, err)
		require.Empty(t, string(patch))
		n.Applied.Generation, n.Drain = 3, &machine.DrainRecord{Since: begin}
		nodes.store(t, nodes.document(t, w), n)
	})
}

// The heartbeat of a condition never becomes older. A taint whose value changes loses its time of
// addition.
func TestHeartbeatsDoNotGoBack(t *testing.T) {
	at := func(n int) metav1.Time { return metav1.NewTime(begin.Add(time.Duration(n) * time.Minute)) }
	added := at(1)
	w := &corev1.Node{}
	w.Spec.Taints = []corev1.Taint{{Key: "a", Value: "1", Effect: "NoExecute", TimeAdded: &added}}
	w.Status.Conditions = []corev1.NodeCondition{
		{Type: "Ready", Status: "True", LastHeartbeatTime: at(9), LastTransitionTime: at(1)},
		{Type: "Full", Status: "False", LastHeartbeatTime: at(9), LastTransitionTime: at(1)},
		{Type: "Slow", Status: "False", LastHeartbeatTime: at(2), LastTransitionTime: at(1)},
	}
	n, _ := nodes.Read(w)
	n.Taints[0].Value = "2"
	n.Conditions[0].Reason = "Other"
	n.Conditions[2] = object.Condition{Type: "Slow", Status: object.True, Since: at(5).UTC()}
	after := nodes.typed(t, nodes.store(t, nodes.document(t, w), n))
	assert.Nil(t, after.Spec.Taints[0].TimeAdded)
	var beats []time.Time
	for _, c := range after.Status.Conditions {
		beats = append(beats, c.LastHeartbeatTime.UTC())
	}
	assert.Equal(t, []time.Time{at(9).UTC(), at(9).UTC(), at(5).UTC()}, beats)
}

func TestCapacityMustBeAQuantity(t *testing.T) {
	n := &machine.Node{Capacity: map[string]string{"cpu": "many"}}
	n.Name = "n"
	_, err := nodes.UpdateStatus(&corev1.Node{}, n)
	assert.EqualError(t, err, "node n can't be written: status.capacity[cpu] is no quantity")
}

// Annotations and the taint that a rollout of another manager has left on a node are removed when no
// rollout wants them, although there is no record of them. They stay on the node of a preserved
// machine, and so does an annotation of a user.
// Invariants: P23
func TestMarksOfRolloutsElsewhere(t *testing.T) {
	mark := func(w *corev1.Node) {
		w.Annotations[keys.KeepNode], w.Annotations[keys.KeptByUs] = "true", "true"
		w.Spec.Taints = append(w.Spec.Taints, corev1.Taint{Key: keys.AvoidTaint, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		keeps  []string
	}{
		"both":      {mark, nil},
		"a record":  {func(w *corev1.Node) { mark(w); w.Annotations[keys.Applied] = "generation=7" }, nil},
		"a user's":  {func(w *corev1.Node) { w.Annotations[keys.KeepNode] = "true" }, []string{keys.KeepNode}},
		"preserved": {func(w *corev1.Node) { mark(w); preserved(w) }, []string{keys.KeepNode, keys.KeptByUs}},
		"unrelated": {func(w *corev1.Node) { mark(w); w.Annotations["x"] = "y" }, []string{"x"}},
	} {
		w := &corev1.Node{}
		w.Name, w.Annotations = "web-1", map[string]string{}
		c.change(w)
		n, problems := nodes.Read(w)
		require.Empty(t, problems, name)
		m := &machine.Machine{Status: machine.Status{Phase: machine.PhaseRunning}}
		m.Name, m.Generation, m.Finalizers = "web-1", 7, []string{machine.Finalizer}
		m.Spec.Class.Name, m.Spec.ProviderID, m.Spec.NodeName = "small", "cloud://vm-1", "web-1"
		o := &machine.Observation{Machine: m, Marks: &machine.RolloutMarks{}, Node: &machine.NodeAnswer{Name: "web-1", Node: n, Read: decision.Freshness{Began: begin}}}
		if name == "preserved" {
			m.Annotations = map[string]string{keys.Preserve: machine.PreserveNow}
			m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: begin, Until: begin.Add(time.Hour)}
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), begin)
		require.NoError(t, err)
		sync, ok := plan.Effect.(*machine.SyncNode)
		require.True(t, ok, "%s: %v", name, plan.Why)
		after := nodes.typed(t, nodes.store(t, nodes.document(t, w), sync.Node))
		for _, key := range []string{keys.KeepNode, keys.KeptByUs, "x"} {
			_, there := after.Annotations[key]
			assert.Equal(t, slices.Contains(c.keeps, key), there, "%s: %s", name, key)
		}
		assert.Equal(t, name == "preserved", len(after.Spec.Taints) == 1, "%s: %v", name, after.Spec.Taints)
	}
}

// preserved sets the condition of a node whose machine is preserved.
func preserved(w *corev1.Node) {
	w.Status.Conditions = []corev1.NodeCondition{{Type: machine.NodePreserved, Status: corev1.ConditionTrue, Reason: machine.ReasonPreservedByUser}}
}
