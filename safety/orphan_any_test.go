package safety_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyClass(t *rapid.T) safety.OrphanClass {
	c := safety.OrphanClass{
		Key: object.Key{Name: safetytest.AnyWord.Draw(t, "class")}, Asked: safetytest.AnyTime.Draw(t, "asked"), Code: safetytest.AnyCode.Draw(t, "code"),
		Failures: int(safetytest.AnyInt.Draw(t, "failures")), Listed: int(safetytest.AnyInt.Draw(t, "listed")),
	}
	if rapid.Bool().Draw(t, "listed") {
		c.Listing = &safety.Listing{Asked: safetytest.AnyTime.Draw(t, "from"), Answered: safetytest.AnyTime.Draw(t, "to"), VMs: map[string]string{}}
		for range rapid.IntRange(0, 3).Draw(t, "vms") {
			c.Listing.VMs[safetytest.AnyWord.Draw(t, "vm")] = safetytest.AnyWord.Draw(t, "of")
		}
	}
	return c
}

func anyOrphans(t *rapid.T) *safety.OrphanObservation {
	return &safety.OrphanObservation{
		Classes: safetytest.List(t, "classes", anyClass), Machines: safetytest.List(t, "machines", safetytest.AnyMachine), Read: decision.Freshness{Began: safetytest.AnyTime.Draw(t, "live")},
		NoCluster: rapid.Bool().Draw(t, "no cluster"),
		Unlisted: safetytest.List(t, "unlisted", func(t *rapid.T) safety.Unlisted {
			return safety.Unlisted{Machine: object.Key{Name: safetytest.AnyWord.Draw(t, "name")}, UID: safetytest.AnyWord.Draw(t, "uid"), Class: object.Key{Name: safetytest.AnyWord.Draw(t, "class")}, ProviderID: safetytest.AnyWord.Draw(t, "id"), Since: safetytest.AnyTime.Draw(t, "since"), Missing: safetytest.AnyTime.Draw(t, "missing")}
		}),
		Sightings: safetytest.List(t, "sightings", func(t *rapid.T) safety.Sighting {
			return safety.Sighting{Class: object.Key{Name: safetytest.AnyWord.Draw(t, "class")}, ProviderID: safetytest.AnyWord.Draw(t, "id"), Name: safetytest.AnyWord.Draw(t, "name"), Since: safetytest.AnyTime.Draw(t, "since")}
		}),
		Tries: safetytest.List(t, "tries", func(t *rapid.T) safety.Try {
			return safety.Try{ProviderID: safetytest.AnyWord.Draw(t, "id"), At: safetytest.AnyTime.Draw(t, "at"), Code: safetytest.AnyCode.Draw(t, "code"), Failures: int(safetytest.AnyInt.Draw(t, "n"))}
		}),
		Hints: safetytest.List(t, "hints", func(t *rapid.T) safety.Hint {
			return safety.Hint{Class: object.Key{Name: safetytest.AnyWord.Draw(t, "class")}, At: safetytest.AnyTime.Draw(t, "at"), Several: safetytest.AnyWord.Draw(t, "of")}
		}),
		Spent:  safetytest.List(t, "spent", safetytest.AnySpent),
		Owners: int(safetytest.AnyInt.Draw(t, "owners")), Began: safetytest.AnyTime.Draw(t, "began"),
		Frozen: rapid.IntRange(0, 9).Draw(t, "frozen") == 0,
	}
}

func TestP11P27AnyOrphansHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, safety.DecideOrphans, anyOrphans)
}

func FuzzDecideOrphans(f *testing.F) {
	safetytest.Fuzz(f, safety.DecideOrphans, anyOrphans, func(t testing.TB, p safety.OrphanPlan) {
		safetytest.Explained(t, time.Time{}, p.Why) // At counts from the last listing, which may have been long ago
	}, nil)
}

// BenchmarkOrphans compares 10,000 VMs with 10,000 machines, with no orphan or with a thousand
// among them.
func BenchmarkOrphans(b *testing.B) {
	for _, missing := range []int{0, 1000} {
		b.Run(fmt.Sprintf("orphans=%d", missing), func(b *testing.B) {
			machines, vms := safetytest.Fleet(10_000)
			o := &safety.OrphanObservation{
				Classes: []safety.OrphanClass{{Key: object.Key{Name: "a"}, Asked: safetytest.Epoch, Listing: &safety.Listing{Asked: safetytest.Epoch, Answered: safetytest.Epoch, VMs: vms}}},
				Read:    decision.Freshness{Began: safetytest.Epoch}, Machines: machines[missing:],
			}
			p := safety.DefaultPolicy()
			for b.Loop() {
				plan, err := safety.DecideOrphans(o, p, safetytest.Epoch.Add(time.Second))
				if err != nil || len(plan.Sightings) != missing {
					b.Fatal(len(plan.Sightings), err)
				}
			}
		})
	}
}
