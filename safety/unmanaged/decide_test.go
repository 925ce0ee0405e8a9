package unmanaged_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/unmanaged"
	"github.com/millwright-go/millwright/test/safetytest"
)

// cluster has nodes, and machines that own some of them.
type cluster struct {
	safetytest.Journal
	t        require.TestingT
	policy   *safety.Policy
	nodes    []*machine.Node
	machines []*machine.Machine
	stale    []*machine.Machine // what the cache shows; nil: the current state
	refuse   map[string]bool    // names of nodes whose writes are refused
	frozen   bool
	pooled   map[string]bool // provider IDs of instances of pools
	plan     unmanaged.Plan
	wrote    []*machine.Node
}

func newCluster(t require.TestingT) *cluster {
	return &cluster{Journal: safetytest.Journal{Now: safetytest.Epoch}, t: t, policy: safety.DefaultPolicy()}
}

func (f *cluster) node(name string) *machine.Node {
	n := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}, CreatedAt: f.Now.Truncate(time.Second)}}
	n.AddFinalizer(machine.NodeFinalizer)
	n.AddFinalizer("others")
	f.nodes = append(f.nodes, n)
	return n
}

// pass decides and carries out plans until there is nothing to do.
func (f *cluster) pass() {
	o := &unmanaged.Observation{Nodes: append([]*machine.Node(nil), f.nodes...), Machines: f.machines, Instances: f.pooled, Frozen: f.frozen, Refused: map[string]bool{}}
	if f.stale != nil {
		o.Machines = f.stale
	}
	for range 20 {
		plan, err := unmanaged.Decide(o, f.policy, f.Now)
		require.NoError(f.t, err)
		f.plan = plan
		switch {
		case plan.ReadMachines:
			o.Machines, o.Read = f.machines, decision.Freshness{Began: f.Now}
			f.Line("", "read machines live", plan.Why)
		case len(plan.Write) > 0:
			for _, w := range plan.Write {
				f.write(o, w)
			}
		default:
			f.Line("", "wait until "+f.Since(plan.At), plan.Why)
			f.Warn(plan.Warn...)
			return
		}
	}
	require.Fail(f.t, "the pass does not end")
}

func (f *cluster) write(o *unmanaged.Observation, w unmanaged.WriteNode) {
	if f.refuse[w.Node.Name] {
		o.Refused[w.Node.Name] = true
		f.Line("", "write "+w.Node.Name+": refused", w.Why)
		return
	}
	f.Line("", fmt.Sprintf("write %s: %q %v", w.Node.Name, w.Node.Annotations, w.Node.Finalizers), w.Why)
	f.wrote = append(f.wrote, w.Node)
	for i, n := range f.nodes {
		if n.Name == w.Node.Name {
			f.nodes[i], o.Nodes[i] = w.Node, w.Node
		}
	}
}

var stories = map[string]func(*cluster){
	"node of no machine": func(f *cluster) {
		f.node("n-1")
		f.node("n-2")
		f.machines = []*machine.Machine{{Meta: object.Meta{Key: object.Key{Name: "m-2"}}, Spec: machine.Spec{NodeName: "n-2"}}}
		f.pass()
		f.Now = f.plan.At
		f.pass()
		f.Now = f.plan.At
		f.pass()
		f.Now = f.plan.At
		f.Say("a machine is made for it by hand")
		f.machines = append(f.machines, &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m-1"}}, Spec: machine.Spec{NodeName: "n-1"}})
		f.pass()
	},
	"node whose machine the cache misses": func(f *cluster) {
		f.node("n-1")
		f.stale = []*machine.Machine{}
		f.machines = []*machine.Machine{{Meta: object.Meta{Key: object.Key{Name: "m-1"}}, Spec: machine.Spec{NodeName: "n-1"}}}
		f.Now = f.Now.Add(time.Hour)
		f.pass()
	},
	"node of two machines": func(f *cluster) {
		f.node("n-1")
		for _, name := range []string{"m-2", "m-1"} {
			f.machines = append(f.machines, &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}}, Spec: machine.Spec{NodeName: "n-1"}})
		}
		f.Now = f.Now.Add(time.Hour)
		f.pass()
	},
	"node that cannot be written": func(f *cluster) {
		f.node("n-1")
		f.node("n-2")
		f.refuse = map[string]bool{"n-1": true}
		f.Now = f.Now.Add(time.Hour)
		f.pass()
	},
}

// TestStories compares what is written to nodes with the files in testdata.
func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			f := newCluster(t)
			run(f)
			safetytest.Compare(t, name, &f.Journal)
		})
	}
}

// TestNodesWithoutMachine: a node is marked as not managed, and loses the finalizer, only if it is old enough and has
// no owner. An owner is a machine with the node's name or provider ID, the machine that the node's label names, or a
// pool with the provider ID. Empty names and IDs match nothing (P17). Other finalizers and annotations stay.
// Invariants: P17 P39
func TestNodesWithoutMachine(t *testing.T) {
	unowned, owned := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := newCluster(t)
		word := rapid.SampledFrom([]string{"", "", "a", "b", "c"})
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			n := f.node([]string{"a", "b", "c", "d"}[i])
			n.CreatedAt = safetytest.Epoch.Add(-time.Duration(rapid.IntRange(0, 2500).Draw(t, "age")) * time.Second).Truncate(time.Second)
			n.ProviderID = rapid.SampledFrom([]string{"", "", "a", "b", "c", "p:///A", "b/"}).Draw(t, "id")
			n.Labels = map[string]string{f.policy.Keys.NodeMachine: word.Draw(t, "label")}
			n.Annotations = map[string]string{"mine": "x"}
			if rapid.Bool().Draw(t, "marked") {
				n.Annotations[f.policy.Keys.NotManaged] = "1"
			}
			if rapid.Bool().Draw(t, "not ours") {
				n.RemoveFinalizer(machine.NodeFinalizer)
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "machines") {
			m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: word.Draw(t, "name")}}}
			m.Spec.NodeName, m.Spec.ProviderID = word.Draw(t, "node"), word.Draw(t, "provider id")
			f.machines = append(f.machines, m, nil)
		}
		f.pooled = map[string]bool{word.Draw(t, "pooled"): true}
		f.stale = rapid.SampledFrom([][]*machine.Machine{{}, f.machines}).Draw(t, "cache")
		f.policy.Burst = rapid.IntRange(1, 3).Draw(t, "burst")
		f.pass()
		f.stale = nil
		f.pass()
		for _, n := range f.nodes {
			_, marked := n.Annotations[f.policy.Keys.NotManaged]
			require.Equal(t, "x", n.Annotations["mine"])
			require.True(t, n.HasFinalizer("others"))
			if f.owned(n) {
				require.False(t, marked, "%s has an owner and is marked", n.Name)
				owned++
			} else if safetytest.Epoch.Sub(n.CreatedAt) > f.policy.NodeAge+time.Second {
				require.True(t, marked && !n.HasFinalizer(machine.NodeFinalizer), "%s has no owner and is not marked", n.Name)
				unowned++
			}
		}
		for _, n := range f.wrote {
			if _, marked := n.Annotations[f.policy.Keys.NotManaged]; marked {
				require.False(t, f.owned(n), "%s has a machine", n.Name)
				require.Greater(t, safetytest.Epoch.Sub(n.CreatedAt), f.policy.NodeAge, "%s is too young", n.Name)
			}
		}
		count := len(f.wrote)
		f.pass()
		require.Len(t, f.wrote, count, "a second pass writes again")
	})
	assert.Positive(t, unowned)
	assert.Positive(t, owned)
}

// owned reports whether a node has an owner, by the model's own rule. An ID in another spelling counts.
func (f *cluster) owned(n *machine.Node) bool {
	id := map[string]string{"p:///A": "a", "b/": "b"}[n.ProviderID]
	if id == "" {
		id = n.ProviderID
	}
	if id != "" && f.pooled[id] {
		return true
	}
	for _, m := range f.machines {
		if m != nil && m.Name != "" && (m.Spec.NodeName == n.Name ||
			m.Spec.ProviderID == id && id != "" || n.Labels[f.policy.Keys.NodeMachine] == m.Name) {
			return true
		}
	}
	return false
}

// TestP48NodesSpelledOtherwise: a node whose ID is known in another spelling keeps the finalizer, and a warning names
// the node.
// Invariants: P48
func TestP48NodesSpelledOtherwise(t *testing.T) {
	f := newCluster(t)
	n := f.node("n-1")
	n.ProviderID, f.pooled = "cloud:///blue/1", map[string]bool{"cloud:///Blue/1": true}
	f.Now = f.Now.Add(time.Hour)
	f.pass()
	assert.Empty(t, f.wrote)
	require.Len(t, f.plan.Warn, 1)
	assert.Equal(t, "1 nodes, such as n-1, carry the provider ID of a machine or an instance in another spelling, cloud:///blue/1: they are left alone", f.plan.Warn[0].String())
	f.pooled = nil
	f.pass()
	assert.Len(t, f.wrote, 1)
}

// TestNodesFrozenAndUnmarked: while the fleet is frozen, no node is written. Without a key no annotation is written.
func TestNodesFrozenAndUnmarked(t *testing.T) {
	f := newCluster(t)
	f.node("n-1")
	f.Now, f.frozen = f.Now.Add(time.Hour), true
	f.pass()
	assert.Empty(t, f.wrote)
	f.frozen, f.policy.Keys.NotManaged = false, ""
	f.pass()
	require.Len(t, f.wrote, 1)
	assert.Empty(t, f.wrote[0].Annotations)
	assert.False(t, f.wrote[0].HasFinalizer(machine.NodeFinalizer))
}

func anyObservation(t *rapid.T) *unmanaged.Observation {
	return &unmanaged.Observation{
		Nodes: safetytest.List(t, "nodes", func(t *rapid.T) *machine.Node {
			return rapid.SampledFrom([]*machine.Node{nil, {Meta: safetytest.AnyMeta(t), ProviderID: safetytest.AnyWord.Draw(t, "id")}}).Draw(t, "node")
		}),
		Machines: safetytest.List(t, "machines", safetytest.AnyMachine), Read: safetytest.ReadIf(rapid.Bool().Draw(t, "nodes live")),
	}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, unmanaged.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, unmanaged.Decide, anyObservation, func(t testing.TB, p unmanaged.Plan) { safetytest.Explained(t, p.At, p.Why) }, nil)
}

// BenchmarkDecide measures a decision about 10,000 nodes, each with its machine.
func BenchmarkDecide(b *testing.B) {
	machines, _ := safetytest.Fleet(10_000)
	o := &unmanaged.Observation{Machines: machines}
	for _, m := range machines {
		o.Nodes = append(o.Nodes, &machine.Node{Meta: object.Meta{Key: object.Key{Name: m.Spec.NodeName}}})
	}
	for b.Loop() {
		if plan, err := unmanaged.Decide(o, safety.DefaultPolicy(), safetytest.Epoch); err != nil || len(plan.Write) > 0 {
			b.Fatal(plan.Why, err)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(safetytest.Run(m)) }
