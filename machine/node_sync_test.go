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

// parts says which parts of a node differ: mostly one, so that no other difference hides a mistake about it.
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

// threeWay returns what a map should be: the wanted entries, and of the others those that we have not applied,
// or that were changed since.
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

// A node is written exactly if it or the record differs from what it should be. The write makes it so.
func TestTemplatesAreAppliedThreeWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.createRunning()
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
			n.Applied.NodeTemplate = m.Spec.NodeTemplate.Clone() // as the generation says
		}
		want, last := &m.Spec.NodeTemplate, &n.Applied
		labels := threeWay(n.Labels, last.Labels, want.Labels)
		annotations := threeWay(n.Annotations, last.Annotations, want.Annotations)
		quantities := threeWay(n.Capacity, last.VirtualCapacity, capacity)
		taints := threeWayTaints(n.Taints, last.Taints, want.Taints)
		inSync := maps.Equal(labels, n.Labels) && maps.Equal(annotations, n.Annotations) && maps.Equal(quantities, n.Capacity) &&
			maps.Equal(taints, taintSet(n.Taints)) && last.Equal(want) && maps.Equal(last.VirtualCapacity, capacity)

		plan, err := machine.Decide(&machine.Observation{
			Machine: m, Class: w.class, Node: &machine.NodeAnswer{Name: node, Node: n, Read: w.read()},
		}, w.policy, w.now)
		require.NoError(t, err)
		sync, writes := plan.Effect.(*machine.SyncNode)
		require.Equal(t, !inSync, writes, "%s", plan.Why)
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
		require.True(t, sync.Capacity || maps.Equal(quantities, n.Capacity), "the capacity differs, and Capacity is not set")
		requireInSync(t, w, m, sync.Node)
	})
}

// requireInSync checks that a node that was just written is in sync.
func requireInSync(t *rapid.T, w *world, m *machine.Machine, n *machine.Node) {
	plan, err := machine.Decide(&machine.Observation{
		Machine: m, Class: w.class, Node: &machine.NodeAnswer{Name: node, Node: n, Read: w.read()},
	}, w.policy, w.now)
	require.NoError(t, err)
	require.Equal(t, machine.Plan{Why: decision.Why{Reason: machine.ReasonHealthy, Name: node}}, plan)
}

// Label b, which has an empty value and is on the node already, replaces label a in the template. b is not in
// the record, which differs from an empty value in the record. So the node is written, and a is removed.
func TestMissingRecordIsNotAnEmptyValue(t *testing.T) {
	w := newWorld(t)
	w.createMachine(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"a": ""} })
	s := &shell{w: w}
	s.settle(bound)
	w.cluster.change(node, func(n *machine.Node) { n.Labels["b"] = "" })
	w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"b": ""} })
	s.settle(bound)
	require.NotContains(t, w.cluster.live(node).Labels, "a")
	require.Contains(t, w.cluster.live(node).Labels, "b")
}

// P17: the deletion of a node without our finalizer does not delete the machine.
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

// P27: the node in a plan shares nothing with the observed one, and keeps everything that the write does not
// change.
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
	n.Applied.Preserved.Kept = true // from a preservation that has ended
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

func init() {
	healthStories["rollout marks"] = rolloutMarks
}

// rolloutMarks tells how marks are set and removed, and what they leave unchanged.
func rolloutMarks(s *story) {
	s.toRunning()
	s.marks = machine.RolloutMarks{Avoid: true, Keep: true}
	s.later(time.Minute, "a rollout begins, and this machine is to go")
	s.commentNode()
	s.marks = machine.RolloutMarks{}
	s.later(time.Minute, "the rollout is reverted")
	s.commentNode()
	s.cluster.change(node, func(n *machine.Node) {
		n.Annotations = map[string]string{s.policy.Keys.KeepNode: "true"}
	})
	s.marks = machine.RolloutMarks{Avoid: true, Keep: true}
	s.later(time.Minute, "somebody keeps the node from the autoscaler, and another rollout begins")
	s.commentNode()
	s.marks = machine.RolloutMarks{}
	s.later(time.Minute, "it is over")
	s.commentNode()
}

// place is a place on a node where a rollout sets a mark.
type place int

const (
	avoid place = iota
	keep
	kept
)

// content is what is in a place: nothing, or a value.
type content struct {
	there bool
	value string
}

func (p place) key(k *machine.Keys) string { return []string{k.AvoidTaint, k.KeepNode, k.KeptByUs}[p] }

func (p place) mark() content { return content{true, []string{"True", "true", "true"}[p]} }

func (p place) wanted(m machine.RolloutMarks) bool {
	if p == avoid {
		return m.Avoid
	}
	return m.Keep
}

func (p place) read(k *machine.Keys, n *machine.NodeTemplate) content {
	if p == avoid {
		i := slices.IndexFunc(n.Taints, object.Taint{Key: p.key(k), Effect: object.PreferNoSchedule}.Same)
		if i < 0 {
			return content{}
		}
		return content{true, n.Taints[i].Value}
	}
	value, ok := n.Annotations[p.key(k)]
	return content{ok, value}
}

func (p place) write(k *machine.Keys, n *machine.NodeTemplate, c content) {
	if p == avoid {
		taint := object.Taint{Key: p.key(k), Value: c.value, Effect: object.PreferNoSchedule}
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), taint.Same)
		if c.there {
			n.Taints = append(n.Taints, taint)
		}
		return
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	delete(n.Annotations, p.key(k))
	if c.there {
		n.Annotations[p.key(k)] = c.value
	}
}

// marking is a running machine and its node. ours says for each place whether its content is ours.
type marking struct {
	t      *rapid.T
	w      *world
	m      *machine.Machine
	n      *machine.Node
	wanted machine.RolloutMarks
	ours   [3]bool
}

func (g *marking) content(p place) content {
	return p.read(&g.w.policy.Keys, &machine.NodeTemplate{Annotations: g.n.Annotations, Taints: g.n.Taints})
}

// othersWrite changes a place as another program would.
func (g *marking) othersWrite() {
	p := rapid.SampledFrom([]place{avoid, keep, kept}).Draw(g.t, "place")
	c := rapid.SampledFrom([]content{{}, p.mark(), {true, "theirs"}}).Draw(g.t, "content")
	if g.content(p) == c && c.there {
		return // no change
	}
	spec := machine.NodeTemplate{Annotations: g.n.Annotations, Taints: g.n.Taints}
	p.write(&g.w.policy.Keys, &spec, c)
	g.n.Annotations, g.n.Taints = spec.Annotations, spec.Taints
	if !c.there {
		return // an empty place keeps its entry in ours
	}
	// If the value is as recorded, it can't be distinguished from ours.
	g.ours[p] = c == p.read(&g.w.policy.Keys, &g.n.Applied.NodeTemplate)
}

// ownerWrites changes a place in the machine's template.
func (g *marking) ownerWrites() {
	p := rapid.SampledFrom([]place{avoid, keep, kept}).Draw(g.t, "place")
	p.write(&g.w.policy.Keys, &g.m.Spec.NodeTemplate, rapid.SampledFrom([]content{{}, {}, p.mark(), {true, "owners"}}).Draw(g.t, "content"))
	g.m.Generation++
}

func (g *marking) marks() {
	g.wanted = machine.RolloutMarks{Avoid: rapid.Bool().Draw(g.t, "avoid"), Keep: rapid.Bool().Draw(g.t, "keep")}
}

func (g *marking) decide() machine.Plan {
	plan, err := machine.Decide(&machine.Observation{
		Machine: g.m, Class: g.w.class, Marks: &g.wanted, Node: &machine.NodeAnswer{Name: node, Node: g.n, Read: g.w.read()},
	}, g.w.policy, g.w.now)
	require.NoError(g.t, err)
	return plan
}

// pass syncs the node, and checks the content of each place against ours.
func (g *marking) pass() {
	var before [3]content
	for p := range before {
		before[p] = g.content(place(p))
	}
	if sync, ok := g.decide().Effect.(*machine.SyncNode); ok {
		g.n = sync.Node
		require.Nil(g.t, g.decide().Effect, "not in sync after one write")
	}
	keepOurs := false
	for i, was := range before {
		p := place(i)
		now := g.content(p)
		template := p.read(&g.w.policy.Keys, &g.m.Spec.NodeTemplate)
		free := !was.there || g.ours[p]
		switch {
		case template.there:
			require.Equal(g.t, template, now, "the template's entry is missing")
			g.ours[p] = true
		case !free:
			require.Equal(g.t, was, now, "P23: what others have set was changed")
		case p.wanted(g.wanted) && (p != kept || keepOurs):
			require.Equal(g.t, p.mark(), now, "a mark is missing")
			g.ours[p] = true
		default:
			require.False(g.t, now.there, "a mark of ours was left")
			g.ours[p] = false
		}
		if p == keep {
			keepOurs = g.ours[p] && !template.there && now == p.mark()
		}
	}
}

// TestP23MarksOfOthersStay: other programs write the node, the owner changes the template, and a rollout
// changes the marks, in any order. Wanted marks are set if their place is free, and removed when they are no
// longer wanted. Nothing that somebody else has set is changed or removed.
// Invariants: P23
func TestP23MarksOfOthersStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.createRunning()
		g := &marking{t: t, w: w, m: w.store.live().Clone(), n: w.cluster.live(node).Clone()}
		g.pass()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			rapid.SampledFrom([]func(){g.marks, g.marks, g.othersWrite, g.othersWrite, g.ownerWrites, g.pass, g.pass}).Draw(t, "step")()
		}
		g.pass()
		g.m.Spec.NodeTemplate, g.wanted = machine.NodeTemplate{}, machine.RolloutMarks{}
		g.m.Generation++
		g.pass()
		for i, ours := range g.ours {
			require.False(t, ours && g.content(place(i)).there, "a mark of ours was left")
		}
	})
}

// preserve begins or ends the preservation of the machine.
func (g *marking) preserve(yes bool) {
	g.m.Status.Preservation, g.m.Annotations = machine.Preservation{}, nil
	if yes {
		g.m.Annotations = map[string]string{g.w.policy.Keys.Preserve: machine.PreserveNow}
		g.m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: g.w.now, Until: g.w.now.Add(time.Hour)}
	}
}

// node carries out the writes of the node until there are none.
func (g *marking) node() {
	for range 5 {
		switch e := g.decide().Effect.(type) {
		case *machine.SyncNode:
			g.n = e.Node
		case *machine.MarkNode:
			g.n = g.n.Clone()
			g.n.Conditions = object.SetCondition(g.n.Conditions, e.Condition)
			g.m.Status.Conditions = slices.Clone(g.n.Conditions)
		default:
			return
		}
	}
	require.Fail(g.t, "the node does not get in sync")
}

// TestP23PreservedMachinesKeepTheirMarks: while a machine is preserved, the marks of a rollout are neither set
// nor removed. When that ends, they are, even if nothing else has changed. The annotations that keep
// autoscalers away belong to rollout and preservation.
// Invariants: P23
func TestP23PreservedMachinesKeepTheirMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.createRunning()
		g := &marking{t: t, w: w, m: w.store.live().Clone(), n: w.cluster.live(node).Clone()}
		g.marks()
		g.pass()
		had := g.content(avoid)
		g.preserve(true)
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			g.marks()
			if rapid.Bool().Draw(t, "something else is written too") {
				g.m.Spec.NodeTemplate.Labels = map[string]string{"pool": rapid.StringMatching("[a-c]").Draw(t, "pool")}
			}
			g.node()
			require.Equal(t, [3]content{had, keep.mark(), kept.mark()}, [3]content{g.content(avoid), g.content(keep), g.content(kept)})
		}
		g.preserve(false)
		g.node()
		require.Equal(t, [3]bool{g.wanted.Avoid, g.wanted.Keep, g.wanted.Keep}, [3]bool{g.content(avoid).there, g.content(keep).there, g.content(kept).there})
		require.Equal(t, machine.PreservedMarks{}, g.n.Applied.Preserved)
	})
}

// With keys that are empty, or the same for two marks, a node is not written again and again.
func TestOddMarkKeys(t *testing.T) {
	for _, keys := range []machine.Keys{
		{}, {AvoidTaint: "a"}, {KeepNode: "k"}, {KeptByUs: "b"}, {KeepNode: "k", KeptByUs: "k"},
	} {
		w := newWorld(t)
		w.createRunning()
		w.policy.Keys.AvoidTaint, w.policy.Keys.KeepNode, w.policy.Keys.KeptByUs = keys.AvoidTaint, keys.KeepNode, keys.KeptByUs
		m, n := w.store.live().Clone(), w.cluster.live(node).Clone()
		m.Generation++
		marks := &machine.RolloutMarks{Avoid: true, Keep: true}
		for range 2 {
			plan, err := machine.Decide(&machine.Observation{
				Machine: m, Class: w.class, Marks: marks, Node: &machine.NodeAnswer{Name: node, Node: n, Read: w.read()},
			}, w.policy, w.now)
			require.NoError(t, err)
			if sync, ok := plan.Effect.(*machine.SyncNode); ok {
				n = sync.Node
			}
		}
		require.Equal(t, keys.AvoidTaint != "", len(n.Taints) == 1, "%+v %+v", keys, n.Taints)
		require.Equal(t, keys.KeepNode != "", n.Annotations[keys.KeepNode] == "true")
		require.NotContains(t, n.Annotations, "b", "KeptByUs is not set without KeepNode")
		require.NotContains(t, n.Annotations, "")
		plan, err := machine.Decide(&machine.Observation{
			Machine: m, Class: w.class, Marks: marks, Node: &machine.NodeAnswer{Name: node, Node: n, Read: w.read()},
		}, w.policy, w.now)
		require.NoError(t, err)
		require.Nil(t, plan.Effect)
	}
}
