package safety_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyGrant(t *rapid.T) *safety.GrantObservation {
	return &safety.GrantObservation{
		Machine: safetytest.AnyMachine(t), Deployment: safetytest.AnyDeployment(t), Set: safetytest.AnySet(t), Fleet: safetytest.List(t, "machines", safetytest.AnyMachine),
		Read: safetytest.ReadIf(rapid.Bool().Draw(t, "grant live")), Taken: rapid.Bool().Draw(t, "taken"), Zones: map[string]string{"a": "z"},
	}
}

func TestP11P27AnyGrantHasOnePlan(t *testing.T) { safetytest.OnePlan(t, safety.DecideGrant, anyGrant) }

func FuzzDecideGrant(f *testing.F) {
	safetytest.Fuzz(f, safety.DecideGrant, anyGrant, func(t testing.TB, p safety.GrantPlan) { safetytest.Explained(t, time.Time{}, p.Why) }, func(o *safety.GrantObservation) {
		if o.Machine == nil {
			o.Machine = &machine.Machine{}
		}
	})
}

// BenchmarkGrant asks about one machine of a deployment of 1,000.
func BenchmarkGrant(b *testing.B) {
	w := newWard(b, 1000, false)
	w.turn(w.machines[0].Name, machine.PhaseUnknown)
	o := &safety.GrantObservation{Machine: w.machines[0], Deployment: w.deployment, Set: w.set, Fleet: w.machines, Read: decision.Freshness{Began: safetytest.Epoch}}
	for b.Loop() {
		if plan, err := safety.DecideGrant(o, w.policy, safetytest.Epoch); err != nil || plan.Write == nil {
			b.Fatal(plan.Why, err)
		}
	}
}
