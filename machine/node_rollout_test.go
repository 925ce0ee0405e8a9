package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func init() {
	healthStories["rollout marks"] = rolloutMarks
}

// rolloutMarks tells how marks come and go, and what they do not touch.
func rolloutMarks(s *story) {
	s.toRunning()
	s.mark(machine.RolloutMarks{Avoid: true, Keep: true})
	s.later(time.Minute, "a rollout begins, and this machine is to go")
	s.shape()
	s.mark(machine.RolloutMarks{})
	s.later(time.Minute, "the rollout is reverted")
	s.shape()
	s.cluster.change(node, func(n *machine.Node) {
		n.Annotations = map[string]string{s.policy.Keys.KeepNode: "true"}
	})
	s.mark(machine.RolloutMarks{Avoid: true, Keep: true})
	s.later(time.Minute, "somebody keeps the node from the autoscaler, and another rollout begins")
	s.shape()
	s.mark(machine.RolloutMarks{})
	s.later(time.Minute, "it is over")
	s.shape()
}

func (s *story) mark(marks machine.RolloutMarks) {
	s.edit(func(m *machine.Machine) { m.Spec.Marks = marks })
}

// place is one of the places on a node where a mark may be.
type place int

const (
	avoid place = iota
	keep
	kept
)

// content of a place: nothing, or a value.
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

// marking is a running machine, its node, and a ledger of who put there what
// is in each place now.
type marking struct {
	t    *rapid.T
	w    *world
	m    *machine.Machine
	n    *machine.Node
	ours [3]bool
}

func (g *marking) content(p place) content {
	return p.read(&g.w.policy.Keys, &machine.NodeTemplate{Annotations: g.n.Annotations, Taints: g.n.Taints})
}

// others change a place.
func (g *marking) others() {
	p := rapid.SampledFrom([]place{avoid, keep, kept}).Draw(g.t, "place")
	c := rapid.SampledFrom([]content{{}, p.mark(), {true, "theirs"}}).Draw(g.t, "content")
	if g.content(p) == c && c.there {
		return // nothing changes, so nothing shows
	}
	spec := machine.NodeTemplate{Annotations: g.n.Annotations, Taints: g.n.Taints}
	p.write(&g.w.policy.Keys, &spec, c)
	g.n.Annotations, g.n.Taints = spec.Annotations, spec.Taints
	if !c.there {
		return // what was ours and is gone can be no one else's
	}
	// Put back as it was, it can't be told from what was ours and stayed.
	g.ours[p] = c == p.read(&g.w.policy.Keys, &g.n.Applied.NodeTemplate)
}

// owner changes what the machine's own template says of a place.
func (g *marking) owner() {
	p := rapid.SampledFrom([]place{avoid, keep, kept}).Draw(g.t, "place")
	p.write(&g.w.policy.Keys, &g.m.Spec.NodeTemplate, rapid.SampledFrom([]content{{}, {}, p.mark(), {true, "owners"}}).Draw(g.t, "content"))
	g.m.Generation++
}

func (g *marking) marks() {
	g.m.Spec.Marks = machine.RolloutMarks{Avoid: rapid.Bool().Draw(g.t, "avoid"), Keep: rapid.Bool().Draw(g.t, "keep")}
	g.m.Generation++
}

func (g *marking) decide() machine.Plan {
	plan, err := machine.Decide(&machine.Observation{
		Machine: g.m, Class: g.w.class, Node: &machine.NodeAnswer{Name: node, Node: g.n, Read: g.w.read()},
	}, g.w.policy, g.w.now)
	require.NoError(g.t, err)
	return plan
}

// pass syncs the node and holds what is in each place then to the ledger.
func (g *marking) pass() {
	var before [3]content
	for p := range before {
		before[p] = g.content(place(p))
	}
	if sync, ok := g.decide().Effect.(*machine.SyncNode); ok {
		g.n = sync.Node
		require.Nil(g.t, g.decide().Effect, "not in line after one write")
	}
	keepOurs := false
	for i, was := range before {
		p := place(i)
		now := g.content(p)
		template := p.read(&g.w.policy.Keys, &g.m.Spec.NodeTemplate)
		free := !was.there || g.ours[p]
		switch {
		case template.there:
			require.Equal(g.t, template, now, "the template's is not there")
			g.ours[p] = true
		case !free:
			require.Equal(g.t, was, now, "P23: what others put there was changed")
		case p.wanted(g.m.Spec.Marks) && (p != kept || keepOurs):
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

// TestP23MarksOfOthersStay: for anything that others write on a node, the owner in the
// template and a rollout on the machine, in any order: marks that are
// wanted are there where the place was free, go when they are not wanted, and
// nothing that somebody else put there is changed or taken away.
func TestP23MarksOfOthersStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.running()
		g := &marking{t: t, w: w, m: w.store.live().Clone(), n: w.cluster.live(node).Clone()}
		g.pass()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			rapid.SampledFrom([]func(){g.marks, g.marks, g.others, g.others, g.owner, g.pass, g.pass}).Draw(t, "step")()
		}
		g.pass()
		g.m.Spec.NodeTemplate, g.m.Spec.Marks = machine.NodeTemplate{}, machine.RolloutMarks{}
		g.m.Generation++
		g.pass()
		for i, ours := range g.ours {
			require.False(t, ours && g.content(place(i)).there, "a mark of ours was left")
		}
	})
}

// preserve has the machine kept for inspection, or not any more.
func (g *marking) preserve(yes bool) {
	g.m.Status.Preservation, g.m.Annotations = machine.Preservation{}, nil
	if yes {
		g.m.Annotations = map[string]string{g.w.policy.Keys.Preserve: machine.PreserveNow}
		g.m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: g.w.now, Until: g.w.now.Add(time.Hour)}
	}
}

// node writes the node until it is in line.
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
	require.Fail(g.t, "the node does not get in line")
}

// TestP23PreservedMachinesKeepTheirMarks: marks of a rollout neither come nor
// go while a machine is preserved; they do when that ends, though nothing else
// changed. What keeps autoscalers off belongs to both, and says so.
func TestP23PreservedMachinesKeepTheirMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.running()
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
		wanted := g.m.Spec.Marks
		require.Equal(t, [3]bool{wanted.Avoid, wanted.Keep, wanted.Keep}, [3]bool{g.content(avoid).there, g.content(keep).there, g.content(kept).there})
		require.Equal(t, machine.PreservedMarks{}, g.n.Applied.Preserved)
	})
}

// Keys that are empty, or the same for two marks, leave no node to be written
// again and again.
func TestOddMarkKeys(t *testing.T) {
	for _, keys := range []machine.Keys{
		{}, {AvoidTaint: "a"}, {KeepNode: "k"}, {KeptByUs: "b"}, {KeepNode: "k", KeptByUs: "k"},
	} {
		w := newWorld(t)
		w.running()
		w.policy.Keys.AvoidTaint, w.policy.Keys.KeepNode, w.policy.Keys.KeptByUs = keys.AvoidTaint, keys.KeepNode, keys.KeptByUs
		m, n := w.store.live().Clone(), w.cluster.live(node).Clone()
		m.Generation++
		m.Spec.Marks = machine.RolloutMarks{Avoid: true, Keep: true}
		for range 2 {
			plan, err := machine.Decide(&machine.Observation{
				Machine: m, Class: w.class, Node: &machine.NodeAnswer{Name: node, Node: n, Read: w.read()},
			}, w.policy, w.now)
			require.NoError(t, err)
			if sync, ok := plan.Effect.(*machine.SyncNode); ok {
				n = sync.Node
			}
		}
		require.Equal(t, keys.AvoidTaint != "", len(n.Taints) == 1, "%+v %+v", keys, n.Taints)
		require.Equal(t, keys.KeepNode != "", n.Annotations[keys.KeepNode] == "true")
		require.NotContains(t, n.Annotations, "b", "the mark that is ours says of nothing that it is")
		require.NotContains(t, n.Annotations, "")
		plan, err := machine.Decide(&machine.Observation{
			Machine: m, Class: w.class, Node: &machine.NodeAnswer{Name: node, Node: n, Read: w.read()},
		}, w.policy, w.now)
		require.NoError(t, err)
		require.Nil(t, plan.Effect)
	}
}
