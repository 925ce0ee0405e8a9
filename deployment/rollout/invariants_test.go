package rollout_test

import (
	"fmt"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// ledger is what the invariants are about, counted from a fleet without the help of Step's own
// counts.
type ledger struct {
	wanted, ceiling, floor int64
	ordered                int64 // sum of sizes
	present                int64 // sum of the larger of ordered and existing
	usable                 int64 // sum of available machines that the sizes let stay
	secure                 int64 // of these, what stays even if all that is being removed is available
	newSpec, newUsable     int64
	hasNew                 bool
}

func count(f rollout.Fleet) ledger {
	surge, unavailable := max(int64(f.Bounds.Surge), 0), max(int64(f.Bounds.Unavailable), 0)
	if surge+unavailable < 1 {
		unavailable = 1
	}
	l := ledger{wanted: max(int64(f.Replicas), 0)}
	l.ceiling, l.floor = l.wanted+surge, max(l.wanted-unavailable, 0)
	for _, set := range f.Sets {
		spec, actual := max(int64(set.Spec), 0), max(int64(set.Actual), 0)
		if set.Going {
			spec = 0
		}
		usable := min(max(int64(set.Available), 0), actual, spec)
		l.ordered += spec
		l.present += max(spec, actual)
		l.usable += usable
		available, most := removable(set)
		l.secure += min(spec, available-most)
		if set.New && !set.Going {
			l.newSpec, l.newUsable, l.hasNew = spec, usable, true
		}
	}
	return l
}

// removable returns how many available machines a set may be removing for its surplus, by a choice
// from before they became available.
func removable(set rollout.Set) (available, most int64) {
	spec, actual := max(int64(set.Spec), 0), max(int64(set.Actual), 0)
	if set.Going {
		spec = 0
	}
	available = min(max(int64(set.Available), 0), actual)
	accounted := min(max(int64(set.Accounted), 0), actual-available)
	actsOn := max(0, spec-max(int64(set.Behind), 0))
	return available, min(available, max(0, actual-actsOn-accounted))
}

// left returns how many machines stay available once every set has its size as in then, where the
// i-th set has removed lost[i] machines that were available.
func left(f, then rollout.Fleet, lost []int64) (n int64) {
	for i, set := range f.Sets {
		size := max(int64(then.Sets[i].Spec), 0)
		if set.Going {
			size = 0
		}
		available, _ := removable(set)
		n += min(size, available-lost[i])
	}
	return n
}

// removals are ways in which sets may be removing available machines for the surplus they have: for
// each set none, or as many as can be, or half of these.
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

// The checks take a fleet with unique names and at most one new set, and what Step made of it. They
// return what is broken, or nothing.
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
		return fmt.Errorf("it is not so: %+v", why)
	}
	return nil
}

// truths are what must be true of a fleet without orders that waits for a reason.
var truths = map[rollout.Reason]func(l ledger, set rollout.Set, why rollout.Why) bool{
	rollout.ReasonDone: func(l ledger, _ rollout.Set, why rollout.Why) bool { return why.Count == l.wanted },
	rollout.ReasonNoNewSet: func(l ledger, _ rollout.Set, why rollout.Why) bool {
		return !l.hasNew && why.Count == l.ordered
	},
	rollout.ReasonRemoval: func(_ ledger, set rollout.Set, why rollout.Why) bool {
		return why.Count > 0 && why.Count == int64(set.Actual)-max(int64(set.Spec), 0)
	},
	rollout.ReasonUnseen: func(_ ledger, set rollout.Set, why rollout.Why) bool {
		return why.Count > 0 && why.Count <= int64(min(set.Behind, set.Actual))
	},
	rollout.ReasonFloor: func(l ledger, set rollout.Set, why rollout.Why) bool {
		lacks := set.New && why.Count > 0 && why.Count == l.newSpec-l.newUsable
		return lacks && l.usable <= l.floor && l.ordered > l.newSpec &&
			why.Available == l.usable && why.Floor == l.floor && why.Total == l.ordered
	},
	rollout.ReasonNewUnavailable: func(l ledger, set rollout.Set, why rollout.Why) bool {
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
