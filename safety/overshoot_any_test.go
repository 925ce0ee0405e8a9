package safety_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyOvershoot(t *rapid.T) *safety.OvershootObservation {
	machines := safetytest.List(t, "machines", safetytest.AnyMachine)
	children := safetytest.List(t, "sets", func(t *rapid.T) deployment.Children {
		return deployment.Children{Set: safetytest.AnySet(t), Machines: machines}
	})
	return &safety.OvershootObservation{Deployment: safetytest.AnyDeployment(t), Sets: children}
}

func TestP11P27AnyOvershootHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, safety.DecideOvershoot, anyOvershoot)
}

func FuzzDecideOvershoot(f *testing.F) {
	safetytest.Fuzz(f, safety.DecideOvershoot, anyOvershoot, func(t testing.TB, p safety.OvershootPlan) { safetytest.Explained(t, time.Time{}, p.Why) }, func(o *safety.OvershootObservation) {
		if o.Deployment == nil && len(o.Sets) == 0 {
			o.Deployment = &deployment.Deployment{}
		}
	})
}
