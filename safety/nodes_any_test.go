package safety_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyNodes(t *rapid.T) *safety.NodesObservation {
	return &safety.NodesObservation{
		Nodes: safetytest.List(t, "nodes", func(t *rapid.T) *machine.Node {
			return rapid.SampledFrom([]*machine.Node{nil, {Meta: safetytest.AnyMeta(t), ProviderID: safetytest.AnyWord.Draw(t, "id")}}).Draw(t, "node")
		}),
		Machines: safetytest.List(t, "machines", safetytest.AnyMachine), Read: safetytest.ReadIf(rapid.Bool().Draw(t, "nodes live")),
	}
}

func TestP11P27AnyNodesHasOnePlan(t *testing.T) { safetytest.OnePlan(t, safety.DecideNodes, anyNodes) }

func FuzzDecideNodes(f *testing.F) {
	safetytest.Fuzz(f, safety.DecideNodes, anyNodes, func(t testing.TB, p safety.NodesPlan) { safetytest.Explained(t, p.At, p.Why) }, nil)
}

// BenchmarkNodes goes through 10,000 nodes, each with its machine.
func BenchmarkNodes(b *testing.B) {
	machines, _ := safetytest.Fleet(10_000)
	o := &safety.NodesObservation{Machines: machines}
	for _, m := range machines {
		o.Nodes = append(o.Nodes, &machine.Node{Meta: object.Meta{Key: object.Key{Name: m.Spec.NodeName}}})
	}
	for b.Loop() {
		if plan, err := safety.DecideNodes(o, safety.DefaultPolicy(), safetytest.Epoch); err != nil || len(plan.Write) > 0 {
			b.Fatal(plan.Why, err)
		}
	}
}
