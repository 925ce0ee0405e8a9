package safety_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyReach(t *rapid.T) *safety.ReachObservation {
	return &safety.ReachObservation{
		Reach: safety.Reach{
			Stage: safety.ReachStage(rapid.IntRange(-1, 6).Draw(t, "stage")), Checked: safetytest.AnyTime.Draw(t, "checked"),
			From: safetytest.AnyTime.Draw(t, "from"), Until: safetytest.AnyTime.Draw(t, "until"), Control: safety.Side{Up: rapid.Bool().Draw(t, "up"), DownSince: safetytest.AnyTime.Draw(t, "down")},
		},
		NoTarget: rapid.Bool().Draw(t, "no target"), Control: safetytest.AnyOutcome(t), Target: safetytest.AnyOutcome(t), Machines: safetytest.List(t, "machines", safetytest.AnyMachine),
	}
}

func TestP11P27AnyReachHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, safety.DecideReachability, anyReach)
}

func FuzzDecideReachability(f *testing.F) {
	safetytest.Fuzz(f, safety.DecideReachability, anyReach, func(t testing.TB, p safety.ReachPlan) { safetytest.Explained(t, p.At, p.Why) }, nil)
}

// BenchmarkReach checks a fleet whose API servers answer.
func BenchmarkReach(b *testing.B) {
	o := &safety.ReachObservation{
		Reach:   safety.Reach{Stage: safety.ReachOpen, Checked: safetytest.Epoch, Control: safety.Side{Up: true}, Target: safety.Side{Up: true}},
		Control: &machine.Outcome{}, Target: &machine.Outcome{},
	}
	for b.Loop() {
		if plan, err := safety.DecideReachability(o, safety.DefaultPolicy(), safetytest.Epoch); err != nil || plan.Reach.Stage.Frozen() {
			b.Fatal(plan.Why, err)
		}
	}
}
