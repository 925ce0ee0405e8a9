package reachability_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyObservation(t *rapid.T) *reachability.Observation {
	return &reachability.Observation{
		State: reachability.State{
			Stage: reachability.Stage(rapid.IntRange(-1, 6).Draw(t, "stage")), Checked: safetytest.AnyTime.Draw(t, "checked"),
			From: safetytest.AnyTime.Draw(t, "from"), Until: safetytest.AnyTime.Draw(t, "until"), Control: reachability.Side{Up: rapid.Bool().Draw(t, "up"), DownSince: safetytest.AnyTime.Draw(t, "down")},
		},
		NoTarget: rapid.Bool().Draw(t, "no target"), Control: safetytest.AnyOutcome(t), Target: safetytest.AnyOutcome(t), Machines: safetytest.List(t, "machines", safetytest.AnyMachine),
	}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, reachability.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, reachability.Decide, anyObservation, func(t testing.TB, p reachability.Plan) { safetytest.Explained(t, p.At, p.Why) }, nil)
}

// BenchmarkDecide checks a fleet whose API servers answer.
func BenchmarkDecide(b *testing.B) {
	o := &reachability.Observation{
		State:   reachability.State{Stage: reachability.Open, Checked: safetytest.Epoch, Control: reachability.Side{Up: true}, Target: reachability.Side{Up: true}},
		Control: &machine.Outcome{}, Target: &machine.Outcome{},
	}
	for b.Loop() {
		if plan, err := reachability.Decide(o, safety.DefaultPolicy(), safetytest.Epoch); err != nil || plan.State.Stage.Frozen() {
			b.Fatal(plan.Why, err)
		}
	}
}
