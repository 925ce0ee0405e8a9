package machine_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

var (
	fewKeys = rapid.SampledFrom([]string{"a", "b", "c"})
	fewMap  = rapid.MapOfN(fewKeys, rapid.SampledFrom([]string{"", "", "1", "2"}), 0, 2)
	// Taints of a template differ in key.
	fewTaints = rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) object.Taint {
		return object.Taint{
			Key: fewKeys.Draw(t, "key"), Value: rapid.SampledFrom([]string{"", "1"}).Draw(t, "value"), Effect: object.NoSchedule,
		}
	}), 0, 3, func(t object.Taint) string { return t.Key })
)

// parts says what of a node differs: mostly one thing, so that no other
// difference hides a mistake about it.
type parts struct{ labels, annotations, taints, capacity bool }

var anyParts = rapid.SampledFrom([]parts{
	{labels: true}, {annotations: true}, {taints: true}, {capacity: true}, {true, true, true, true},
})

func (p parts) mapOf(t *rapid.T, in bool, name string) map[string]string {
	if !in {
		return map[string]string{}
	}
	return fewMap.Draw(t, name)
}

func (p parts) taintsOf(t *rapid.T, name string) []object.Taint {
	if !p.taints {
		return nil
	}
	return fewTaints.Draw(t, name)
}

func (p parts) template(t *rapid.T) machine.NodeTemplate {
	return machine.NodeTemplate{
		Labels:      p.mapOf(t, p.labels, "labels"),
		Annotations: p.mapOf(t, p.annotations, "annotations"), Taints: p.taintsOf(t, "taints"),
	}
}

// threeWay is what a map should be: what is wanted, and of the rest what
// others put there, which is all but what we applied and was not changed since.
func threeWay(have, last, want map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range have {
		was, applied := last[k]
		if !applied || was != v {
			out[k] = v
		}
	}
	maps.Copy(out, want)
	return out
}

func threeWayTaints(have, last, want []object.Taint) map[object.Taint]bool {
	out := map[object.Taint]bool{}
	for _, h := range have {
		if !slices.Contains(last, h) && !slices.ContainsFunc(want, h.Same) {
			out[h] = true
		}
	}
	for _, w := range want {
		out[w] = true
	}
	return out
}

func taintSet(taints []object.Taint) map[object.Taint]bool {
	out := map[object.Taint]bool{}
	for _, t := range taints {
		out[t] = true
	}
	return out
}

// A node is written exactly when it or the record differs from what it should
// be, and then to what it should be.
func TestTemplatesAreAppliedThreeWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.running()
		m, n := w.store.live().Clone(), w.cluster.live(node).Clone()
		key := w.policy.Keys.NodeMachine
		p := anyParts.Draw(t, "parts")
		m.Spec.NodeTemplate = p.template(t)
		capacity := p.mapOf(t, p.capacity, "class")
		for k := range capacity {
			capacity[k] = strconv.Itoa(len(capacity[k])) // a class needs a quantity
		}
		w.class.NodeTemplate = &machine.NodeShape{VirtualCapacity: capacity}
		n.Labels, n.Annotations = p.mapOf(t, p.labels, "has"), p.mapOf(t, p.annotations, "notes")
		n.Taints, n.Labels[key], n.Capacity = p.taintsOf(t, "tainted"), ours, p.mapOf(t, p.capacity, "capacity")
		n.Applied = machine.Applied{NodeTemplate: p.template(t), VirtualCapacity: p.mapOf(t, p.capacity, "virtual")}
		n.Applied.Generation = rapid.Int64Range(0, 1).Draw(t, "applied generation")
		m.Generation = rapid.Int64Range(0, 2).Draw(t, "generation")
		if n.Applied.Generation == m.Generation && m.Generation != 0 {
			n.Applied.NodeTemplate = m.Spec.NodeTemplate.Clone() // what a generation promises
		}
		want, last := &m.Spec.NodeTemplate, &n.Applied
		labels := threeWay(n.Labels, last.Labels, want.Labels)
		annotations := threeWay(n.Annotations, last.Annotations, want.Annotations)
		quantities := threeWay(n.Capacity, last.VirtualCapacity, capacity)
		taints := threeWayTaints(n.Taints, last.Taints, want.Taints)
		inLine := maps.Equal(labels, n.Labels) && maps.Equal(annotations, n.Annotations) && maps.Equal(quantities, n.Capacity) &&
			maps.Equal(taints, taintSet(n.Taints)) && last.Equal(want) && maps.Equal(last.VirtualCapacity, capacity)

		plan, err := machine.Decide(&machine.Observation{
			Machine: m, Class: w.class, Node: &machine.NodeAnswer{Name: node, Node: n, Read: w.read()},
		}, w.policy, w.now)
		require.NoError(t, err)
		sync, writes := plan.Effect.(*machine.SyncNode)
		require.Equal(t, !inLine, writes, "%s", plan.Why)
		if !writes {
			return
		}
		require.Equal(t, labels, sync.Node.Labels)
		require.Equal(t, annotations, sync.Node.Annotations)
		require.Equal(t, quantities, sync.Node.Capacity)
		require.Equal(t, taints, taintSet(sync.Node.Taints))
		require.True(t, sync.Node.Applied.Equal(want))
		require.True(t, maps.Equal(capacity, sync.Node.Applied.VirtualCapacity))
		require.Equal(t, m.Generation, sync.Node.Applied.Generation)
		require.True(t, sync.Spec)
		require.True(t, sync.Capacity || maps.Equal(quantities, n.Capacity), "a change of capacity that is not announced")
		settledBy(t, w, m, sync.Node)
	})
}

// settledBy holds a node that was just written to being in line.
func settledBy(t *rapid.T, w *world, m *machine.Machine, n *machine.Node) {
	plan, err := machine.Decide(&machine.Observation{
		Machine: m, Class: w.class, Node: &machine.NodeAnswer{Name: node, Node: n, Read: w.read()},
	}, w.policy, w.now)
	require.NoError(t, err)
	require.Equal(t, machine.Plan{Why: decision.Why{Reason: machine.ReasonHealthy, Name: node}}, plan)
}

// Label a makes way for label b, which has no value and is there already: the
// record of b's value is missing, not empty, and a has to go.
func TestARecordThatIsMissingIsNotEmpty(t *testing.T) {
	w := newWorld(t)
	w.give(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"a": ""} })
	s := &shell{w: w}
	s.settle(bound)
	w.cluster.change(node, func(n *machine.Node) { n.Labels["b"] = "" })
	w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"b": ""} })
	s.settle(bound)
	require.NotContains(t, w.cluster.live(node).Labels, "a")
	require.Contains(t, w.cluster.live(node).Labels, "b")
}

// P17: only a node that carries our finalizer takes its machine along.
func TestP17DeletionOfOthersNodesIsNotFollowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		n := anyNode(t)
		n.DeletedAt, n.Finalizers = epoch.Add(-time.Minute), []string{"other"}
		o.Machine.DeletedAt, o.Machine.Finalizers = time.Time{}, []string{machine.Finalizer}
		o.Machine.Status.Phase = rapid.SampledFrom([]machine.Phase{machine.PhasePending, machine.PhaseRunning, machine.PhaseUnknown}).Draw(t, "phase")
		o.Node = &machine.NodeAnswer{Name: o.Machine.Spec.NodeName, Node: &n, Read: readAt(epoch)}
		plan, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		_, deletes := plan.Write.(*machine.Delete)
		require.False(t, deletes)
	})
}

// P27: a node that is to be written is the plan's own, with anything on it, and
// what is not to be changed is on it as it was.
func TestSyncedNodeIsAClone(t *testing.T) {
	m := &machine.Machine{Meta: object.Meta{
		Key: object.Key{Namespace: "fleet", Name: "m-1"}, UID: "u", Version: "1", Generation: 1, Finalizers: []string{machine.Finalizer},
	}}
	m.Spec.Class.Name, m.Spec.ProviderID, m.Spec.NodeName = "small", "p://1", "m-1"
	m.Spec.NodeTemplate = machine.NodeTemplate{
		Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "1"}, Taints: []object.Taint{{Key: "c", Effect: object.NoSchedule}},
	}
	m.Status.Phase, m.Status.Since = machine.PhaseRunning, epoch
	n := &machine.Node{Meta: object.Meta{
		Key: object.Key{Name: "m-1"}, UID: "n", Version: "1", CreatedAt: epoch, Finalizers: []string{machine.NodeFinalizer, "other"},
		Labels:      map[string]string{machine.DefaultPolicy().Keys.NodeMachine: "m-1", "x": "1"},
		Annotations: map[string]string{"x": "1", machine.DefaultPolicy().Keys.KeepNode: "true"}, Owner: &object.Owner{Name: "pool"},
	}, ProviderID: "p://1"}
	n.Applied.Preserved.Kept = true // not any more
	n.Taints = []object.Taint{{Key: "x"}}
	n.Conditions = []object.Condition{{Type: machine.NodeReady, Status: object.True}}
	n.Addresses = []machine.Address{{Type: "InternalIP", Value: "10.0.0.1"}}
	n.Capacity = map[string]string{"cpu": "4"}
	n.Drain = &machine.DrainRecord{Since: epoch}
	m.Status.Conditions, m.Status.Addresses = slices.Clone(n.Conditions), slices.Clone(n.Addresses)
	o := &machine.Observation{Machine: m, Class: &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}}, Node: &machine.NodeAnswer{Name: "m-1", Node: n, Read: readAt(epoch)}}
	kept := n.Clone()
	plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
	require.NoError(t, err)
	sync, ok := plan.Effect.(*machine.SyncNode)
	require.True(t, ok, "%+v", plan)
	got := sync.Node.Clone()
	require.Equal(t, "1", got.Labels["a"])
	require.Equal(t, map[string]string{"x": "1", "b": "1"}, got.Annotations)
	got.Labels, got.Annotations, got.Taints, got.Applied, got.Drain = kept.Labels, kept.Annotations, kept.Taints, kept.Applied, kept.Drain
	require.Equal(t, kept, got)
	scramble(plan)
	require.Equal(t, kept, n)
}
