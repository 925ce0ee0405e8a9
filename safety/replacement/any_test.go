package replacement_test

import (
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety/replacement"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyObservation(t *rapid.T) *replacement.Observation {
	return &replacement.Observation{
		Machine: safetytest.AnyMachine(t), Deployment: safetytest.AnyDeployment(t), Set: safetytest.AnySet(t), Fleet: safetytest.List(t, "machines", safetytest.AnyMachine),
		Read: safetytest.ReadIf(rapid.Bool().Draw(t, "grant live")), Taken: rapid.Bool().Draw(t, "taken"), Zones: map[string]string{"a": "z"},
		NodeLeaves: rapid.Bool().Draw(t, "node leaves"),
	}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, replacement.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, replacement.Decide, anyObservation, func(t testing.TB, p replacement.Plan) { safetytest.Explained(t, time.Time{}, p.Why) }, func(o *replacement.Observation) {
		if o.Machine == nil {
			o.Machine = &machine.Machine{}
		}
	})
}

// BenchmarkDecide measures the decision about one machine of a deployment of 1,000.
func BenchmarkDecide(b *testing.B) {
	w := newWorld(b, 1000, false)
	w.setPhase(w.machines[0].Name, machine.PhaseUnknown)
	o := &replacement.Observation{Machine: w.machines[0], Deployment: w.deployment, Set: w.set, Fleet: w.machines, Read: decision.Freshness{Began: safetytest.Epoch}}
	for b.Loop() {
		if plan, err := replacement.Decide(o, w.policy, safetytest.Epoch); err != nil || plan.Write == nil {
			b.Fatal(plan.Why, err)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(safetytest.Run(m)) }
