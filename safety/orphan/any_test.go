package orphan_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

func anyClass(t *rapid.T) orphan.Class {
	c := orphan.Class{
		Key: object.Key{Name: safetytest.AnyWord.Draw(t, "class")}, Asked: safetytest.AnyTime.Draw(t, "asked"), Code: safetytest.AnyCode.Draw(t, "code"),
		Failures: int(safetytest.AnyInt.Draw(t, "failures")), Listed: int(safetytest.AnyInt.Draw(t, "listed")),
		Blind: rapid.Bool().Draw(t, "blind"),
	}
	if rapid.Bool().Draw(t, "listed") {
		c.Listing = &orphan.Listing{Asked: safetytest.AnyTime.Draw(t, "from"), Answered: safetytest.AnyTime.Draw(t, "to"), VMs: map[string]string{}}
		for range rapid.IntRange(0, 3).Draw(t, "vms") {
			c.Listing.VMs[safetytest.AnyWord.Draw(t, "vm")] = safetytest.AnyWord.Draw(t, "of")
		}
	}
	return c
}

func anyObservation(t *rapid.T) *orphan.Observation {
	return &orphan.Observation{
		Classes: safetytest.List(t, "classes", anyClass), Machines: safetytest.List(t, "machines", safetytest.AnyMachine), Read: decision.Freshness{Began: safetytest.AnyTime.Draw(t, "live")},
		NoCluster: rapid.Bool().Draw(t, "no cluster"),
		Unlisted: safetytest.List(t, "unlisted", func(t *rapid.T) orphan.Unlisted {
			return orphan.Unlisted{Machine: object.Key{Name: safetytest.AnyWord.Draw(t, "name")}, UID: safetytest.AnyWord.Draw(t, "uid"), Class: object.Key{Name: safetytest.AnyWord.Draw(t, "class")}, ProviderID: safetytest.AnyWord.Draw(t, "id"), Since: safetytest.AnyTime.Draw(t, "since"), Missing: safetytest.AnyTime.Draw(t, "missing")}
		}),
		Candidates: safetytest.List(t, "candidates", func(t *rapid.T) orphan.Candidate {
			return orphan.Candidate{Class: object.Key{Name: safetytest.AnyWord.Draw(t, "class")}, ProviderID: safetytest.AnyWord.Draw(t, "id"), Name: safetytest.AnyWord.Draw(t, "name"), Since: safetytest.AnyTime.Draw(t, "since")}
		}),
		Tries: safetytest.List(t, "tries", func(t *rapid.T) orphan.Try {
			return orphan.Try{ProviderID: safetytest.AnyWord.Draw(t, "id"), At: safetytest.AnyTime.Draw(t, "at"), Code: safetytest.AnyCode.Draw(t, "code"), Failures: int(safetytest.AnyInt.Draw(t, "n"))}
		}),
		Hints: safetytest.List(t, "hints", func(t *rapid.T) orphan.Hint {
			return orphan.Hint{Class: object.Key{Name: safetytest.AnyWord.Draw(t, "class")}, At: safetytest.AnyTime.Draw(t, "at"), Several: safetytest.AnyWord.Draw(t, "of")}
		}),
		Spent:  safetytest.List(t, "spent", safetytest.AnySpent),
		Owners: int(safetytest.AnyInt.Draw(t, "owners")), Began: safetytest.AnyTime.Draw(t, "began"),
		Frozen: rapid.IntRange(0, 9).Draw(t, "frozen") == 0,
	}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, orphan.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, orphan.Decide, anyObservation, func(t testing.TB, p orphan.Plan) {
		safetytest.Explained(t, time.Time{}, p.Why) // At counts from the last listing, which may have been long ago
	}, nil)
}

// BenchmarkSpelledOtherwise compares 100,000 VMs with their machines, which spell the IDs and names in another way.
func BenchmarkSpelledOtherwise(b *testing.B) {
	machines, vms := safetytest.Fleet(100_000)
	spelled := make(map[string]string, len(vms))
	for id, name := range vms {
		spelled[strings.ToUpper(id)] = name + "/"
	}
	o := &orphan.Observation{
		Classes: []orphan.Class{{Key: object.Key{Name: "a"}, Asked: safetytest.Epoch, Listing: &orphan.Listing{Asked: safetytest.Epoch, Answered: safetytest.Epoch, VMs: spelled}}},
		Read:    decision.Freshness{Began: safetytest.Epoch}, Machines: machines,
	}
	p := safety.DefaultPolicy()
	for b.Loop() {
		plan, err := orphan.Decide(o, p, safetytest.Epoch.Add(time.Second))
		if err != nil || len(plan.Candidates) != 0 {
			b.Fatal(len(plan.Candidates), err)
		}
	}
}

// BenchmarkDecide compares 10,000 VMs with their machines. No VM is an orphan, or a thousand are.
func BenchmarkDecide(b *testing.B) {
	for _, missing := range []int{0, 1000} {
		b.Run(fmt.Sprintf("orphans=%d", missing), func(b *testing.B) {
			machines, vms := safetytest.Fleet(10_000)
			o := &orphan.Observation{
				Classes: []orphan.Class{{Key: object.Key{Name: "a"}, Asked: safetytest.Epoch, Listing: &orphan.Listing{Asked: safetytest.Epoch, Answered: safetytest.Epoch, VMs: vms}}},
				Read:    decision.Freshness{Began: safetytest.Epoch}, Machines: machines[missing:],
			}
			p := safety.DefaultPolicy()
			for b.Loop() {
				plan, err := orphan.Decide(o, p, safetytest.Epoch.Add(time.Second))
				if err != nil || len(plan.Candidates) != missing {
					b.Fatal(len(plan.Candidates), err)
				}
			}
		})
	}
}

func TestMain(m *testing.M) { os.Exit(safetytest.Run(m)) }
