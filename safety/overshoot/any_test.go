package overshoot_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/safety/overshoot"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyObservation(t *rapid.T) *overshoot.Observation {
	machines := safetytest.List(t, "machines", safetytest.AnyMachine)
	children := safetytest.List(t, "sets", func(t *rapid.T) deployment.Children {
		return deployment.Children{Set: safetytest.AnySet(t), Machines: machines}
	})
	return &overshoot.Observation{Deployment: safetytest.AnyDeployment(t), Sets: children}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, overshoot.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, overshoot.Decide, anyObservation, func(t testing.TB, p overshoot.Plan) { safetytest.Explained(t, time.Time{}, p.Why) }, func(o *overshoot.Observation) {
		if o.Deployment == nil && len(o.Sets) == 0 {
			o.Deployment = &deployment.Deployment{}
		}
	})
}
