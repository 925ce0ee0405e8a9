package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// badTemplates are node templates that no API server accepts, each with the name of its invalid field.
var badTemplates = map[string]struct {
	field    string
	template machine.NodeTemplate
}{
	"long value":       {`spec.nodeTemplate.labels["pool"]`, machine.NodeTemplate{Labels: map[string]string{"pool": strings.Repeat("a", 70)}}},
	"key with a space": {`spec.nodeTemplate.labels["my pool"]`, machine.NodeTemplate{Labels: map[string]string{"my pool": "a"}}},
	"prefix":           {`spec.nodeTemplate.labels["Example.com/pool"]`, machine.NodeTemplate{Labels: map[string]string{"Example.com/pool": "a"}}},
	"taint twice": {"spec.nodeTemplate.taints[1]", machine.NodeTemplate{Taints: []object.Taint{
		{Key: "a", Value: "x", Effect: object.NoSchedule}, {Key: "a", Value: "y", Effect: object.NoSchedule},
	}}},
	"effect":         {"spec.nodeTemplate.taints[0]", machine.NodeTemplate{Taints: []object.Taint{{Key: "a", Effect: "NoShedule"}}}},
	"annotation key": {`spec.nodeTemplate.annotations["a/b/c"]`, machine.NodeTemplate{Annotations: map[string]string{"a/b/c": "x"}}},
	"annotations":    {"spec.nodeTemplate.annotations", machine.NodeTemplate{Annotations: map[string]string{"a": strings.Repeat("x", 1<<18)}}},
}

// No VM is created for a machine whose template no API server accepts. The machine does not fail for that,
// because its owner would replace it again and again. Once the template is corrected, it has its whole
// creation timeout.
func TestNoVMIsCreatedForAnInvalidTemplate(t *testing.T) {
	for name, c := range badTemplates {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createMachine(func(m *machine.Machine) { m.Spec.NodeTemplate = c.template })
			var bad *object.FieldError
			require.ErrorAs(t, w.store.live().Validate(), &bad)
			require.Equal(t, c.field, bad.Field)
			s := &shell{w: w}
			s.settle(5)
			w.advance(24 * time.Hour)
			w.disableHealthTimeout()
			s.settle(5)
			m := w.store.live()
			require.Equal(t, machine.PhaseNew, m.Status.Phase)
			require.Empty(t, w.provider.calls)
			condition := object.FindCondition(m.Status.Conditions, machine.ConditionSpecValid)
			require.NotNil(t, condition)
			require.Contains(t, condition.Message, c.field)

			w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate = machine.NodeTemplate{} })
			s.settle(20)
			m = w.store.live()
			require.Equal(t, machine.PhaseRunning, m.Status.Phase)
			require.Nil(t, object.FindCondition(m.Status.Conditions, machine.ConditionSpecValid))
		})
	}
}

// No VM is created for a machine whose name is no valid value of its node's label. Without a cluster such a
// name is valid.
func TestNoVMIsCreatedForAnInvalidName(t *testing.T) {
	o := &machine.Observation{Machine: &machine.Machine{Meta: object.Meta{
		Key: object.Key{Name: strings.Repeat("a", 64)}, Finalizers: []string{machine.Finalizer}, CreatedAt: epoch,
	}}, Class: &machine.Class{}}
	o.Machine.Spec.Class.Name = "small"
	plan, err := machine.Decide(o, nil, epoch)
	require.NoError(t, err)
	require.Contains(t, plan.Why.String(), "metadata.name")
	o.NoCluster = true
	plan, err = machine.Decide(o, nil, epoch)
	require.NoError(t, err)
	require.Equal(t, machine.GetVM{}, plan.Effect)
}

// If an earlier create may have made a VM, the VM is looked for and used although the template is invalid now.
func TestVMOfATemplateThatBecameInvalid(t *testing.T) {
	w := newWorld(t)
	w.createMachine()
	w.killAt, w.killAfter = 3, true // at the create
	_, _, err := (&shell{w: w}).reconcile()
	require.ErrorIs(t, err, errKilled)
	w.killAt = 0
	w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate = badTemplates["long value"].template })
	(&shell{w: w}).settle(20)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	require.Equal(t, 1, w.provider.calls[codes.CreateMachine])
}

// A machine continues to run if its template becomes invalid: the valid part is applied to the node, a
// condition reports the rest, and nothing is written repeatedly.
func TestMachineRunsOnWithAnInvalidTemplate(t *testing.T) {
	for name, c := range badTemplates {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createMachine(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"old": "label"} })
			(&shell{w: w}).settle(bound)
			w.edit(func(m *machine.Machine) {
				m.Spec.NodeTemplate = c.template.Clone()
				labels := map[string]string{"good": "label"}
				for k, v := range c.template.Labels {
					labels[k] = v
				}
				m.Spec.NodeTemplate.Labels = labels
			})
			s := &shell{w: w}
			s.settle(5)
			m, n := w.store.live(), w.cluster.live(node)
			require.Equal(t, machine.PhaseRunning, m.Status.Phase)
			require.Contains(t, object.FindCondition(m.Status.Conditions, machine.ConditionSpecValid).Message, c.field)
			require.Equal(t, "label", n.Labels["good"])
			require.NotContains(t, n.Labels, "old")
			require.LessOrEqual(t, len(n.Labels), 3, "beside its host and machine name")
			requireIdle(w)

			w.cluster.setReady(node, object.False)
			w.runPass(s)
			require.Equal(t, machine.PhaseUnknown, w.store.live().Status.Phase, "its health is judged as before")
			w.cluster.setReady(node, object.True)
			w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate = machine.NodeTemplate{} })
			s.settle(5)
			m = w.store.live()
			require.Equal(t, machine.PhaseRunning, m.Status.Phase)
			require.Nil(t, object.FindCondition(m.Status.Conditions, machine.ConditionSpecValid))
			require.NotContains(t, w.cluster.live(node).Labels, "good")
		})
	}
}

// A machine joins although the server rejects a part of its template for a reason of its own: the node gets
// the rest, and the machine's status says what was rejected. The write is retried after 10 min, or when the
// machine changes.
func TestServerRefusesPartOfATemplate(t *testing.T) {
	w := newWorld(t)
	template := machine.NodeTemplate{
		Labels: map[string]string{"pool": "a"}, Annotations: map[string]string{"note": "b"},
		Taints: []object.Taint{{Key: "dedicated", Effect: object.NoSchedule}},
	}
	w.cluster.rejects = func(n *machine.Node) bool { return n.Labels["pool"] != "" }
	w.createMachine(func(m *machine.Machine) { m.Spec.NodeTemplate = template })
	s := &shell{w: w}
	w.runPass(s)
	w.advance(time.Minute)
	w.runPass(s)
	m, n := w.store.live(), w.cluster.live(node)
	require.Equal(t, machine.PhaseRunning, m.Status.Phase)
	require.Equal(t, machine.OperationUpdate, m.Status.LastOperation.Kind)
	require.Equal(t, machine.StageSyncNode, m.Status.LastOperation.Stage)
	require.Equal(t, codes.InvalidArgument, m.Status.LastOperation.Code)
	require.Equal(t, "the server refuses it", m.Status.LastOperation.Message)
	require.Equal(t, "b", n.Annotations["note"])
	require.Contains(t, n.Taints, template.Taints[0])
	require.Equal(t, ours, n.Labels[w.policy.Keys.NodeMachine])
	require.True(t, n.HasFinalizer(machine.NodeFinalizer))
	require.False(t, slices.ContainsFunc(n.Taints, func(t object.Taint) bool { return t.Key == w.policy.Keys.NotReadyTaint }))
	require.Equal(t, 1, w.cluster.rejections)

	plan, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, n.Applied.Refused.At.Add(10*time.Minute), plan.At)
	require.Equal(t, 1, w.cluster.rejections, "it is not tried in each pass")
	w.now = plan.At
	w.runPass(s)
	require.Equal(t, 2, w.cluster.rejections)
	w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = nil })
	w.runPass(s)
	m = w.store.live()
	require.Equal(t, machine.StateSuccessful, m.Status.LastOperation.State)
	require.Zero(t, w.cluster.live(node).Applied.Refused)
	requireIdle(w)
}

// If the server rejects the whole template, the library's own entries are written without it, and an
// in-place update continues.
func TestServerRefusesAWholeTemplate(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.rejects = func(n *machine.Node) bool { return n.Labels["pool"] != "" || n.Annotations["note"] != "" }
	w.edit(func(m *machine.Machine) {
		m.Spec.NodeTemplate.Labels, m.Spec.NodeTemplate.Annotations = map[string]string{"pool": "a"}, map[string]string{"note": "b"}
		m.Spec.InPlace = machine.InPlaceSelected
	})
	s := &shell{w: w}
	w.runPass(s)
	w.runPass(s)
	m, n := w.store.live(), w.cluster.live(node)
	require.Equal(t, machine.PhaseInPlaceUpdating, m.Status.Phase)
	assert.NotEqual(t, machine.StateFailed, m.Status.LastOperation.State, m.Status.LastOperation.Message)
	assert.Contains(t, n.Labels, w.policy.Keys.SelectedForUpdate)
}

// The virtual capacity of a class must be in Kubernetes' notation.
func TestVirtualCapacityIsWellFormed(t *testing.T) {
	for quantity, valid := range map[string]bool{
		"2": true, "0.5": true, "500Mi": true, "1e3": true, "1E-3": true, "+3": true, ".5": true, "100m": true,
		"": false, "two": false, "-1": false, "5 Gi": false, "1e": false, "1e+-3": false, "Mi": false, "1Mib": false, ".": false,
	} {
		c := &machine.Class{NodeTemplate: &machine.NodeShape{VirtualCapacity: map[string]string{"example.com/slots": quantity}}}
		assert.Equal(t, valid, c.Validate() == nil, "%q", quantity)
	}
	c := &machine.Class{NodeTemplate: &machine.NodeShape{VirtualCapacity: map[string]string{"my slots": "1"}}}
	assert.ErrorContains(t, c.Validate(), `virtualCapacity["my slots"]`)
}

// TestNodesRecordDoesNotClearSpecInvalid: the record on a node may say that an invalid template was applied, because
// an older version accepted it. ConditionSpecValid stays False, whether the node was read or not.
func TestNodesRecordDoesNotClearSpecInvalid(t *testing.T) {
	w, o := settledObservation(t)
	m, n := o.Machine.Clone(), o.Node.Node.Clone()
	m.Spec.NodeTemplate.Taints = []object.Taint{{Effect: "NoSchedule"}} // without a key
	n.Applied.Generation = m.Generation
	read := &machine.NodeAnswer{Name: n.Name, Node: n, Read: w.read()}
	o.Machine, o.Node = m, nil
	plan, err := machine.Decide(o, w.policy, w.now)
	require.NoError(t, err)
	write, ok := plan.Write.(*machine.UpdateStatus)
	require.True(t, ok, "%s", plan.Why)
	require.NotNil(t, object.FindCondition(write.Status.Conditions, machine.ConditionSpecValid))
	m = m.Clone()
	m.Status = write.Status
	o.Machine, o.Node = m, read
	plan, err = machine.Decide(o, w.policy, w.now)
	require.NoError(t, err)
	if write, ok := plan.Write.(*machine.UpdateStatus); ok {
		require.NotNil(t, object.FindCondition(write.Status.Conditions, machine.ConditionSpecValid), "%s", plan.Why)
	}
}
