package unmanaged_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/unmanaged"
	"github.com/millwright-go/millwright/test/safetytest"
)

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

// BenchmarkDecide goes through 10,000 nodes, each with its machine.
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
