package safety_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyOwnerless(t *rapid.T) *safety.OwnerlessObservation {
	return &safety.OwnerlessObservation{
		Machines: safetytest.List(t, "machines", safetytest.AnyMachine), Sets: safetytest.List(t, "lone sets", safetytest.AnySet), Deployments: safetytest.List(t, "deployments", safetytest.AnyDeployment),
		NoDeployments: rapid.Bool().Draw(t, "no deployments"), Read: decision.Freshness{Began: safetytest.AnyTime.Draw(t, "owners live")}, Looked: safetytest.AnyTime.Draw(t, "looked"),
		Sightings: safetytest.List(t, "bereft", func(t *rapid.T) safety.Bereft {
			return safety.Bereft{UID: safetytest.AnyWord.Draw(t, "uid"), Owner: safetytest.AnyWord.Draw(t, "of"), Since: safetytest.AnyTime.Draw(t, "since")}
		}),
		Spent: safetytest.List(t, "spent", safetytest.AnySpent), Began: safetytest.AnyTime.Draw(t, "began"), Frozen: rapid.IntRange(0, 9).Draw(t, "frozen") == 0,
	}
}

func TestP11P27AnyOwnerlessHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, safety.DecideOwnerless, anyOwnerless)
}

func FuzzDecideOwnerless(f *testing.F) {
	safetytest.Fuzz(f, safety.DecideOwnerless, anyOwnerless, func(t testing.TB, p safety.OwnerlessPlan) {
		safetytest.Explained(t, time.Time{}, p.Why) // At counts from the live read, which may have been long ago
	}, nil)
}
