package rollout_test

import (
	"math/rand/v2"
	"testing"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// disagreement compares the sizes that Step orders with the oracle's, by name; it is empty if they
// agree.
func disagreement(f rollout.Fleet, orders []rollout.Scale) string {
	o := newOracle(f)
	before := make(map[string]int64, len(f.Sets))
	for _, c := range o.sets() {
		before[c.name] = c.spec
	}
	o.run()
	ordered := make(map[string]rollout.Scale, len(orders))
	for _, order := range orders {
		if _, twice := ordered[order.Name]; twice {
			return "two orders for " + order.Name
		}
		ordered[order.Name] = order
	}
	for _, c := range o.sets() {
		order, changed := ordered[c.name]
		switch {
		case changed && (int64(order.From) != before[c.name] || order.From == order.To):
			return "order for " + c.name + " does not start at its size, or changes nothing"
		case changed && int64(order.To) != c.spec, !changed && c.spec != before[c.name]:
			return "other size for " + c.name
		}
	}
	return ""
}

func compareWithOracle(t *testing.T, f rollout.Fleet, buffer []rollout.Scale) []rollout.Scale {
	t.Helper()
	orders, _ := rollout.Step(f, buffer)
	if what := disagreement(f, orders); what != "" {
		o := newOracle(f)
		o.run()
		t.Fatalf("%s\nfleet  %+v\norders %+v\noracle %v", what, f, orders, sizesOf(o.sets()))
	}
	return orders
}

// One old and one new set, every combination of small numbers.
func TestStepAgreesWithOracleExhaustively(t *testing.T) {
	var states []rollout.Set
	for spec := range int32(5) {
		for actual := range int32(5) {
			for available := range actual + 1 {
				states = append(states, rollout.Set{Spec: spec, Actual: actual, Available: available})
			}
		}
	}
	var orders []rollout.Scale
	for n := range int32(4 * 3 * 3) {
		f := rollout.Fleet{Replicas: n % 4, Bounds: rollout.Bounds{Surge: n / 4 % 3, Unavailable: n / 12}}
		f.Sets = make([]rollout.Set, 2)
		for _, old := range states {
			for _, current := range states {
				f.Sets[0], f.Sets[1] = old, current
				f.Sets[0].Name, f.Sets[1].Name, f.Sets[1].New = "old", "new", true
				orders = compareWithOracle(t, f, orders)
			}
		}
	}
}

func TestStepAgreesWithOracleOnSmallFleets(t *testing.T) {
	cases := 800_000
	if testing.Short() {
		cases = 100_000
	}
	n := smallNumbers(rand.New(rand.NewPCG(1, 2)))
	var orders []rollout.Scale
	for range cases {
		orders = compareWithOracle(t, n.fleet(4), orders)
	}
}

// Invariants: P9
func TestStepAgreesWithOracleOnAnyInt32(t *testing.T) {
	cases := 100_000
	if testing.Short() {
		cases = 10_000
	}
	n := extremeNumbers(rand.New(rand.NewPCG(3, 4)))
	var orders []rollout.Scale
	for range cases {
		orders = compareWithOracle(t, n.fleet(5), orders)
	}
}

// More sets than fit into the storage on the stack.
func TestStepAgreesWithOracleOnManySets(t *testing.T) {
	n := smallNumbers(rand.New(rand.NewPCG(5, 6)))
	var orders []rollout.Scale
	for range 2_000 {
		orders = compareWithOracle(t, n.fleet(60), orders)
	}
}
