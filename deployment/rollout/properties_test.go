package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// checkInvariant checks one invariant on fleets of all kinds.
func checkInvariant(t *testing.T, name string) {
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
func TestP1ScalingLowersNoSetWhileAllFit(t *testing.T) { checkInvariant(t, "P1") }

// Invariants: P3
func TestP3EmptyPlanIsDoneOrNamesWhatItWaitsFor(t *testing.T) { checkInvariant(t, "P3") }

// Invariants: P5
func TestP5DecidingAgainOrdersNothingMore(t *testing.T) { checkInvariant(t, "P5") }

// Invariants: P6
func TestP6OldMachinesAreRemovedWithinTheBudget(t *testing.T) { checkInvariant(t, "P6") }

// Invariants: P7
func TestP7BoundsHoldAfterEachOrder(t *testing.T) { checkInvariant(t, "P7") }

// Invariants: P9
func TestP9OrderedSizesAreInRange(t *testing.T) { checkInvariant(t, "P9") }

// TestP9ScaleDownIsExactAndAlwaysFeasible checks what the comment of scaleDown proves: for any excess and any number of
// unavailable machines, exactly the ceiling remains and the floor is kept. (Without a new set nothing else is ordered.)
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
		if before.secure < before.floor { // then no machine that may be available is removed
			require.Equal(t, before.usable, after.usable)
			return
		}
		require.Equal(t, min(before.ordered, before.ceiling), after.ordered)
	})
}

// TestP4OtherReplicasAreNoRollout: if only the new set is in use, its size follows R, and no other set changes.
// Invariants: P4
func TestP4OtherReplicasAreNoRollout(t *testing.T) {
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

// TestP11AnyInput: for any input, such as several new sets, or sets with the same name or without a name, there is no
// panic, every reason has a text, the input is unchanged, and Done agrees with the reason.
// Invariants: P11
func TestP11AnyInput(t *testing.T) {
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
			require.NotEqual(t, string(order.Why.Reason), order.Why.String(), "a reason without a text")
		}
		require.Equal(t, sets, append([]rollout.Set(nil), f.Sets...), "the input changed")

		// The same question has the same answer, for any content of the buffer.
		again, whyAgain := rollout.Step(f, nil)
		require.Equal(t, why, whyAgain)
		require.Equal(t, append([]rollout.Scale{}, orders...), append([]rollout.Scale{}, again...))
	})
}

// TestInvariantsOnManyFleets checks all invariants on many more fleets than the tests above draw. Every reason must
// occur, so that no invariant holds only for lack of cases.
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

// counts are the numbers of a fleet that the invariants are about, computed independently of Step.
type counts struct {
	wanted, ceiling, floor int64
	ordered                int64 // sum of sizes
	present                int64 // sum of the larger of ordered and existing
	usable                 int64 // sum of the available machines that stay with these sizes
	secure                 int64 // of the usable ones, those that stay even if the sets are removing available ones
	newSpec, newUsable     int64
	hasNew                 bool
}

func count(f rollout.Fleet) counts {
	surge, unavailable := max(int64(f.Bounds.Surge), 0), max(int64(f.Bounds.Unavailable), 0)
	if surge+unavailable < 1 {
		unavailable = 1
	}
	l := counts{wanted: max(int64(f.Replicas), 0)}
	l.ceiling, l.floor = l.wanted+surge, max(l.wanted-unavailable, 0)
	for _, set := range f.Sets {
		spec, actual := max(int64(set.Spec), 0), max(int64(set.Actual), 0)
		if set.Deleting {
			spec = 0
		}
		usable := min(max(int64(set.Available), 0), actual, spec)
		l.ordered += spec
		l.present += max(spec, actual)
		l.usable += usable
		available, most := removable(set)
		l.secure += min(spec, available-most)
		if set.New && !set.Deleting {
			l.newSpec, l.newUsable, l.hasNew = spec, usable, true
		}
	}
	return l
}

// removable returns how many available machines a set may be removing for its surplus, because it has chosen them
// before they became available.
func removable(set rollout.Set) (available, most int64) {
	spec, actual := max(int64(set.Spec), 0), max(int64(set.Actual), 0)
	if set.Deleting {
		spec = 0
	}
	available = min(max(int64(set.Available), 0), actual)
	accounted := min(max(int64(set.Accounted), 0), actual-available)
	actsOn := max(0, spec-max(int64(set.Behind), 0))
	return available, min(available, max(0, actual-actsOn-accounted))
}

// left returns how many machines stay available once every set has its size in then, if the i-th set removes lost[i]
// available machines.
func left(f, then rollout.Fleet, lost []int64) (n int64) {
	for i, set := range f.Sets {
		size := max(int64(then.Sets[i].Spec), 0)
		if set.Deleting {
			size = 0
		}
		available, _ := removable(set)
		n += min(size, available-lost[i])
	}
	return n
}

// removals returns ways in which sets may be removing available machines for their surplus: each set none, or as many
// as possible, or half of these.
func removals(f rollout.Fleet) (all [][]int64) {
	all = [][]int64{make([]int64, len(f.Sets))}
	for i, set := range f.Sets {
		_, most := removable(set)
		if most == 0 || len(all) > 100 {
			continue
		}
		for _, lost := range all {
			for _, k := range []int64{most, most / 2} {
				other := append([]int64(nil), lost...)
				other[i] = k
				all = append(all, other)
			}
		}
	}
	return all
}

// find returns the set of this name.
func find(f rollout.Fleet, name string) rollout.Set {
	for _, set := range f.Sets {
		if set.Name == name {
			return set
		}
	}
	return rollout.Set{}
}

// check checks an invariant for a fleet, with unique names and at most one new set, and the results of Step for it. It
// returns an error if the invariant is broken.
type check func(f rollout.Fleet, orders []rollout.Scale, why rollout.Why) error

var invariants = map[string]check{
	"P1": scalingLowersNothingBelowCeiling,
	"P3": emptyPlanNamesWhatItWaitsFor,
	"P5": decidingAgainOrdersNothing,
	"P6": oldMachinesGoWithinBudget,
	"P7": boundsHoldAfterEachOrder,
	"P9": sizesAddUp,
}

func scalingLowersNothingBelowCeiling(f rollout.Fleet, orders []rollout.Scale, _ rollout.Why) error {
	before := count(f)
	if before.ceiling < before.ordered {
		return nil
	}
	for _, order := range orders {
		switch set := find(f, order.Name); {
		case !before.hasNew:
			return fmt.Errorf("resized %s without a new set", order.Name)
		case order.To < order.From && order.Why.Reason == rollout.ReasonScaleDown:
			return fmt.Errorf("scaled %s down", order.Name)
		case order.To < order.From && set.New && int64(order.From) <= before.wanted:
			return fmt.Errorf("lowered the new set to %d", order.To)
		}
	}
	return nil
}

func emptyPlanNamesWhatItWaitsFor(f rollout.Fleet, orders []rollout.Scale, why rollout.Why) error {
	if len(orders) > 0 {
		if why.Reason != rollout.ReasonOrdered || why.Count != int64(len(orders)) || rollout.Done(f) {
			return fmt.Errorf("with orders: %+v", why)
		}
		return nil
	}
	if rollout.Done(f) != (why.Reason == rollout.ReasonDone) {
		return fmt.Errorf("done is %t, the reason %s", rollout.Done(f), why.Reason)
	}
	truth, known := truths[why.Reason]
	if !known || !truth(count(f), find(f, why.Set), why) {
		return fmt.Errorf("the reason is not true: %+v", why)
	}
	return nil
}

// truths are, by reason, conditions for a fleet without orders to have this reason.
var truths = map[rollout.Reason]func(l counts, set rollout.Set, why rollout.Why) bool{
	rollout.ReasonDone: func(l counts, _ rollout.Set, why rollout.Why) bool { return why.Count == l.wanted },
	rollout.ReasonNoNewSet: func(l counts, _ rollout.Set, why rollout.Why) bool {
		return !l.hasNew && why.Count == l.ordered
	},
	rollout.ReasonRemoval: func(_ counts, set rollout.Set, why rollout.Why) bool {
		return why.Count > 0 && why.Count == int64(set.Actual)-max(int64(set.Spec), 0)
	},
	rollout.ReasonUnseen: func(_ counts, set rollout.Set, why rollout.Why) bool {
		return why.Count > 0 && why.Count <= int64(min(set.Behind, set.Actual))
	},
	rollout.ReasonFloor: func(l counts, set rollout.Set, why rollout.Why) bool {
		lacks := set.New && why.Count > 0 && why.Count == l.newSpec-l.newUsable
		return lacks && l.usable <= l.floor && l.ordered > l.newSpec &&
			why.Available == l.usable && why.Floor == l.floor && why.Total == l.ordered
	},
	rollout.ReasonNewUnavailable: func(l counts, set rollout.Set, why rollout.Why) bool {
		lacks := set.New && why.Count > 0 && why.Count == l.newSpec-l.newUsable
		return lacks && l.newSpec == l.wanted && l.ordered == l.newSpec
	},
}

func decidingAgainOrdersNothing(f rollout.Fleet, orders []rollout.Scale, _ rollout.Why) error {
	again, _ := rollout.Step(carriedOut(f, orders), nil)
	if len(again) > 0 {
		return fmt.Errorf("ordered again: %+v", again)
	}
	return nil
}

func oldMachinesGoWithinBudget(f rollout.Fleet, orders []rollout.Scale, _ rollout.Why) error {
	before, after := count(f), count(carriedOut(f, orders))
	oldUsable, oldUsableAfter := before.usable-before.newUsable, after.usable-after.newUsable
	newUsable := min(before.newUsable, before.wanted)
	removed := before.ordered - before.newSpec - (after.ordered - after.newSpec)
	if before.ordered-before.newSpec+min(before.newSpec, before.wanted) > before.ceiling {
		return nil // a scale-down, which the floor alone bounds
	}
	if budget := before.ordered - before.newSpec + newUsable - before.floor; removed > max(budget, 0) {
		return fmt.Errorf("removed %d old machines, but only %d are above the floor", removed, budget)
	}
	if budget := oldUsable + newUsable - before.floor; oldUsable-oldUsableAfter > max(budget, 0) {
		return fmt.Errorf("removed %d available old machines of %d", oldUsable-oldUsableAfter, budget)
	}
	return nil
}

func boundsHoldAfterEachOrder(f rollout.Fleet, orders []rollout.Scale, _ rollout.Why) error {
	return rollout.Check(f, orders)
}

func sizesAddUp(f rollout.Fleet, orders []rollout.Scale, _ rollout.Why) error {
	before, after := count(f), count(carriedOut(f, orders))
	for _, order := range orders {
		switch set := find(f, order.Name); {
		case set.New && int64(order.To) > before.wanted:
			return fmt.Errorf("new set %s to %d", order.Name, order.To)
		case order.Why.Count != int64(max(order.From, order.To))-int64(min(order.From, order.To)):
			return fmt.Errorf("%s from %d to %d, the reason counts %d", order.Name, order.From, order.To, order.Why.Count)
		}
	}
	if before.secure < before.floor {
		return nil // a scale-down may have to wait for removals
	}
	if after.ordered > before.ceiling {
		return fmt.Errorf("%d machines are still ordered, ceiling is %d", after.ordered, before.ceiling)
	}
	if !before.hasNew && after.ordered != min(before.ordered, before.ceiling) {
		return fmt.Errorf("a scale-down left %d machines, ceiling is %d", after.ordered, before.ceiling)
	}
	return nil
}

// world is a fleet whose sets act on orders late and in part. A set removes machines by the size that it last read,
// which may be an earlier one. Before it creates machines it reads its size again. It removes unavailable machines
// first.
type world struct {
	t       *rapid.T
	fleet   rollout.Fleet
	read    []int32 // by set: the size it acts on
	initial counts  // as of the last change from outside
	buffer  []rollout.Scale
}

func newWorld(t *rapid.T) *world {
	n := numbers{
		bound: func() int32 { return rapid.Int32Range(0, 8).Draw(t, "bound") },
		count: func() int32 { return rapid.Int32Range(0, 8).Draw(t, "count") },
		below: func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "below") },
	}
	w := &world{t: t, fleet: n.fleet(3)}
	for i := range w.fleet.Sets {
		set := &w.fleet.Sets[i]
		set.Available = min(set.Available, set.Actual)
		w.read = append(w.read, set.Spec)
	}
	w.initial = count(w.fleet)
	return w
}

// decide takes a step, checks it against all invariants, and carries out the first orders, up to this number.
func (w *world) decide(orders int) rollout.Why {
	before := w.fleet
	var why rollout.Why
	w.buffer, why = rollout.Step(before, w.buffer)
	for name, invariant := range invariants {
		if err := invariant(before, w.buffer, why); err != nil {
			w.t.Fatalf("%s: %v\nfleet  %+v\norders %+v", name, err, before, w.buffer)
		}
	}
	w.fleet = carriedOut(before, w.buffer[:min(orders, len(w.buffer))])
	return why
}

// obey lets a set remove or create up to most machines.
func (w *world) obey(i int, most int32) {
	set := &w.fleet.Sets[i]
	if k := min(set.Actual-w.read[i], most); k > 0 {
		set.Actual -= k
		set.Available = min(set.Available, set.Actual)
	}
	w.readSize(i)
	if k := min(set.Spec-set.Actual, most); k > 0 {
		set.Actual += k
	}
}

// readSize lets a set read its size, without acting on it yet.
func (w *world) readSize(i int) {
	w.read[i] = w.fleet.Sets[i].Spec
	w.fleet.Sets[i].Behind = 0
}

func (w *world) becomeAvailable(i int, most int32) {
	set := &w.fleet.Sets[i]
	set.Available = min(set.Available+most, set.Actual)
}

// randomStep lets the fleet take one random step, in which no machine fails.
func (w *world) randomStep() {
	action := rapid.IntRange(0, 3).Draw(w.t, "action")
	if action == 0 || len(w.fleet.Sets) == 0 {
		w.decide(rapid.IntRange(0, 4).Draw(w.t, "orders"))
		return
	}
	i := rapid.IntRange(0, len(w.fleet.Sets)-1).Draw(w.t, "set")
	n := rapid.Int32Range(1, 4).Draw(w.t, "machines")
	switch action {
	case 1:
		w.obey(i, n)
	case 2:
		w.readSize(i)
	default:
		w.becomeAvailable(i, n)
	}
}

// disturb changes the fleet from outside.
func (w *world) disturb() {
	sets := w.fleet.Sets
	event := rapid.IntRange(0, 3).Draw(w.t, "event")
	switch {
	case event == 0:
		w.fleet.Replicas = rapid.Int32Range(0, 8).Draw(w.t, "replicas")
	case event == 1 && len(sets) < 5:
		w.wantTemplate(len(sets))
	case len(sets) == 0:
	case event == 2:
		w.wantTemplate(rapid.IntRange(0, len(sets)-1).Draw(w.t, "template"))
	default:
		set := &sets[rapid.IntRange(0, len(sets)-1).Draw(w.t, "set")]
		set.Actual -= rapid.Int32Range(0, set.Actual).Draw(w.t, "lost")
		set.Available = min(set.Available, rapid.Int32Range(0, set.Actual).Draw(w.t, "healthy"))
	}
}

// wantTemplate makes the i-th set the new one. The set may be one more than there are.
func (w *world) wantTemplate(i int) {
	if i == len(w.fleet.Sets) {
		w.fleet.Sets = append(w.fleet.Sets, rollout.Set{Name: string(rune('A' + i))})
		w.read = append(w.read, 0)
	}
	for j := range w.fleet.Sets {
		w.fleet.Sets[j].New = j == i
	}
}

// TestP3RolloutsConvergeOnceDisturbancesStop: once nothing changes from outside and every set gets its turn, a
// rollout is done within as many rounds as there are machines to order, create, remove and wait for (P3). In each
// earlier round there is an order, or the event that the reason waits for happens next.
// Invariants: P3
func TestP3RolloutsConvergeOnceDisturbancesStop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 12).Draw(t, "noise") {
			if rapid.Bool().Draw(t, "disturb") {
				w.disturb()
			} else {
				w.randomStep()
			}
		}
		if !count(w.fleet).hasNew {
			w.wantTemplate(len(w.fleet.Sets))
		}
		l := count(w.fleet)
		bound := 4*(l.present+l.wanted) + 10
		for round := int64(0); !rollout.Done(w.fleet); round++ {
			if round > bound {
				t.Fatalf("not done after %d rounds: %+v", bound, w.fleet)
			}
			w.decide(rapid.IntRange(1, 4).Draw(t, "orders"))
			for i := range w.fleet.Sets {
				w.obey(i, rapid.Int32Range(1, 3).Draw(t, "moved"))
				if w.fleet.Sets[i].New {
					w.becomeAvailable(i, rapid.Int32Range(1, 3).Draw(t, "available"))
				}
			}
		}
		if why := w.decide(0); why.Reason != rollout.ReasonDone || len(w.buffer) > 0 {
			t.Fatalf("done, but %v with %+v", why, w.buffer)
		}
	})
}

// TestP7BoundsHoldInEveryInterleaving: while machines are lost only by orders of the rollout, the number of machines
// breaks neither bound (P2, P7). That holds from any state and in any interleaving of decisions, orders that are
// carried out in part, and sets that act on earlier sizes.
// Invariants: P5 P7
func TestP7BoundsHoldInEveryInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		least := min(w.initial.usable, w.initial.floor)
		most := max(w.initial.present, w.initial.ceiling)
		for range rapid.IntRange(10, 60).Draw(t, "actions") {
			w.randomStep()
			actual, available := int64(0), int64(0)
			for _, set := range w.fleet.Sets {
				actual += int64(set.Actual)
				available += int64(set.Available)
			}
			if available < least {
				t.Fatalf("%d available, %d at the beginning, floor is %d: %+v", available, w.initial.usable, w.initial.floor, w.fleet)
			}
			if actual > most {
				t.Fatalf("%d machines, %d at the beginning, ceiling is %d: %+v", actual, w.initial.present, w.initial.ceiling, w.fleet)
			}
		}
	})
}

// TestP2ScalingAndRollingTogetherObeyAllBounds: R and the template change at any moment of a rollout. Each decision
// keeps all invariants (decide checks them) for the fleet as it is at that moment.
// Invariants: P2
func TestP2ScalingAndRollingTogetherObeyAllBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(5, 40).Draw(t, "actions") {
			if rapid.IntRange(0, 5).Draw(t, "disturb") == 0 {
				w.disturb()
			}
			w.randomStep()
		}
	})
}
