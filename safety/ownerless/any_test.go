package ownerless_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/safety/ownerless"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyObservation(t *rapid.T) *ownerless.Observation {
	return &ownerless.Observation{
		Machines: safetytest.List(t, "machines", safetytest.AnyMachine), Sets: safetytest.List(t, "lone sets", safetytest.AnySet), Deployments: safetytest.List(t, "deployments", safetytest.AnyDeployment),
		NoDeployments: rapid.Bool().Draw(t, "no deployments"), Read: decision.Freshness{Began: safetytest.AnyTime.Draw(t, "owners live")}, Looked: safetytest.AnyTime.Draw(t, "looked"),
		Candidates: safetytest.List(t, "candidates", func(t *rapid.T) ownerless.Candidate {
			return ownerless.Candidate{UID: safetytest.AnyWord.Draw(t, "uid"), Owner: safetytest.AnyWord.Draw(t, "of"), Since: safetytest.AnyTime.Draw(t, "since")}
		}),
		Spent: safetytest.List(t, "spent", safetytest.AnySpent), Began: safetytest.AnyTime.Draw(t, "began"), Frozen: rapid.IntRange(0, 9).Draw(t, "frozen") == 0,
	}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, ownerless.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, ownerless.Decide, anyObservation, func(t testing.TB, p ownerless.Plan) {
		safetytest.Explained(t, time.Time{}, p.Why) // At counts from the live read, which may have been long ago
	}, nil)
}
