package rollout_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// holds tries one invariant on fleets of all kinds.
func holds(t *testing.T, name string) {
	t.Helper()
	invariant := invariants[name]
	require.NotNil(t, invariant)
	rapid.Check(t, func(t *rapid.T) {
		f := fleets().Draw(t, "fleet")
		orders, why := rollout.Step(f, nil)
		if err := invariant(f, orders, why); err != nil {
			t.Fatalf("%s: %v\nfleet  %+v\norders %+v", name, err, f, orders)
		}
	})
}

// Invariants: P1
func TestP1ScalingLowersNoSetWhileAllFit(t *testing.T) { holds(t, "P1") }

// Invariants: P3
func TestP3EmptyPlanIsDoneOrNamesWhatItWaitsFor(t *testing.T) { holds(t, "P3") }

// Invariants: P5
func TestP5DecidingAgainOrdersNothingMore(t *testing.T) { holds(t, "P5") }

// Invariants: P6
func TestP6OldMachinesGoOnlyWithinTheBudget(t *testing.T) { holds(t, "P6") }

// Invariants: P7
func TestP7BoundsHoldAfterEachOrder(t *testing.T) { holds(t, "P7") }

// Invariants: P9
func TestP9OrderedSizesAreInRange(t *testing.T) { holds(t, "P9") }

// The feasibility that the comment on scale-downs proves: for any excess and any number of
// unavailable machines, exactly the ceiling remains and the floor is kept. Without a new set
// nothing else is ordered.
// Invariants: P9
func TestP9ScaleDownIsExactAndAlwaysFeasible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleets().Draw(t, "fleet")
		for i := range f.Sets {
			f.Sets[i].New = false
		}
		f.Replicas = int32(rapid.Int64Range(0, min(count(f).ordered, 1<<31-1)).Draw(t, "replicas"))
		orders, _ := rollout.Step(f, nil)
		before, after := count(f), count(carriedOut(f, orders))
		require.GreaterOrEqual(t, after.usable, min(before.usable, before.floor))
		if before.secure < before.floor { // what may be available stays
			require.Equal(t, before.usable, after.usable)
			return
		}
		require.Equal(t, min(before.ordered, before.ceiling), after.ordered)
	})
}

// With the new set alone in use, it follows the wanted number, up and down and from zero, and no
// other set is touched.
// Invariants: P4
func TestP4OtherReplicasAreNeverARollout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleets().Draw(t, "fleet")
		if len(f.Sets) == 0 {
			f.Sets = []rollout.Set{{Name: "only"}}
		}
		current := rapid.IntRange(0, len(f.Sets)-1).Draw(t, "new")
		for i := range f.Sets {
			if f.Sets[i].New = i == current; !f.Sets[i].New {
				f.Sets[i] = rollout.Set{Name: f.Sets[i].Name}
			}
		}
		for range 3 {
			orders, _ := rollout.Step(f, nil)
			f = carriedOut(f, orders)
			require.Equal(t, max(f.Replicas, 0), max(f.Sets[current].Spec, 0))
			for _, order := range orders {
				require.Equal(t, f.Sets[current].Name, order.Name)
			}
			f.Replicas = rapid.OneOf(rapid.Just(int32(0)), rapid.Int32Range(0, 20), rapid.Int32()).Draw(t, "replicas")
		}
	})
}

// Any input, such as several new sets, sets of one name or without any: no panic, every answer has
// a sentence, the input is unchanged, and Done agrees with the reason.
// Invariants: P11
func TestP11AnyInputHasAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int32(), rapid.Int32Range(-2, 5), rapid.SampledFrom(extremes))
		f := rollout.Fleet{
			Replicas: number.Draw(t, "replicas"),
			Bounds:   rollout.Bounds{Surge: number.Draw(t, "surge"), Unavailable: number.Draw(t, "unavailable")},
			Sets: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rollout.Set {
				return rollout.Set{
					Name: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"),
					New:  rapid.Bool().Draw(t, "new"),
					Spec: number.Draw(t, "spec"), Actual: number.Draw(t, "actual"), Available: number.Draw(t, "available"),
				}
			}), 0, 20).Draw(t, "sets"),
		}
		sets := append([]rollout.Set(nil), f.Sets...)
		orders, why := rollout.Step(f, make([]rollout.Scale, 3))
		require.NotEmpty(t, why.String())
		require.Equal(t, rollout.Done(f), why.Reason == rollout.ReasonDone)
		for _, order := range orders {
			require.NotEmpty(t, order.Why.String())
			require.NotEqual(t, string(order.Why.Reason), order.Why.String(), "a reason without a sentence")
		}
		require.Equal(t, sets, append([]rollout.Set(nil), f.Sets...), "the input changed")

		// The same question has the same answer, for any content of the buffer.
		again, whyAgain := rollout.Step(f, nil)
		require.Equal(t, why, whyAgain)
		require.Equal(t, append([]rollout.Scale{}, orders...), append([]rollout.Scale{}, again...))
	})
}

// All invariants are tried on many more fleets than the properties above draw. Every reason is
// among the answers, so that none holds for lack of cases.
func TestInvariantsOnManyFleets(t *testing.T) {
	cases := 400_000
	if testing.Short() {
		cases = 20_000
	}
	r := rand.New(rand.NewPCG(7, 8))
	small, extreme := smallNumbers(r), extremeNumbers(r)
	seen := make(map[rollout.Reason]int)
	var orders []rollout.Scale
	for i := range cases {
		f := small.fleet(4)
		if i%4 == 0 {
			f = extreme.fleet(4)
		}
		var why rollout.Why
		orders, why = rollout.Step(f, orders)
		seen[why.Reason]++
		for _, order := range orders {
			seen[order.Why.Reason]++
		}
		for name, invariant := range invariants {
			if err := invariant(f, orders, why); err != nil {
				t.Fatalf("%s: %v\nfleet  %+v\norders %+v", name, err, f, orders)
			}
		}
	}
	for _, reason := range []rollout.Reason{
		rollout.ReasonNewAboveReplicas, rollout.ReasonScaleDown, rollout.ReasonNewGrows, rollout.ReasonOldUnavailable,
		rollout.ReasonOldAvailable, rollout.ReasonOrdered, rollout.ReasonDone, rollout.ReasonNoNewSet, rollout.ReasonFloor,
		rollout.ReasonRemoval, rollout.ReasonNewUnavailable,
	} {
		require.Greater(t, seen[reason], cases/2_000, "too few cases of %s: %v", reason, seen)
	}
}
