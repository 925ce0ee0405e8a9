package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// inPlaceOracle is oracle for InPlace: it computes the sizes machine by machine, and then the selections one by one.
type inPlaceOracle struct {
	*oracle
	sets   map[string]rollout.Set
	manual bool
	chosen map[string]int64

	noSelect          bool
	stopAfter, failed int64
}

func newInPlaceOracle(f rollout.Fleet) *inPlaceOracle {
	o := &inPlaceOracle{oracle: newOracle(f), sets: map[string]rollout.Set{}, manual: f.Manual, noSelect: f.NoSelect, chosen: map[string]int64{}, stopAfter: int64(f.StopAfter), failed: int64(f.Failed)}
	for _, set := range f.Sets {
		o.sets[set.Name] = set
	}
	return o
}

// coming returns how many machines of old sets will move to the new one.
func (o *inPlaceOracle) coming() (n int64) {
	for _, c := range o.old {
		n += min(max(int64(o.sets[c.name].Selected), 0), c.spec)
	}
	return n
}

// selectable returns how many machines of a set could be selected.
func (o *inPlaceOracle) selectable(c *tally) int64 {
	if c.actual > c.spec || c.unseen || c.paused {
		return 0
	}
	return min(max(int64(o.sets[c.name].Selectable), 0), c.available)
}

func (o *inPlaceOracle) run() {
	defer o.settle()
	if o.current == nil {
		o.scaleDown()
		return
	}
	for _, c := range o.old {
		if !c.paused {
			c.spec = min(c.spec, c.actual)
		}
	}
	if !o.current.paused {
		o.current.spec = min(o.current.spec, o.wanted)
	}
	o.scaleDown()
	if oldOrdered := o.ordered() - o.current.spec; oldOrdered == 0 || o.current.actual <= o.current.spec {
		change(o.current, +1, o.wanted-o.current.spec, func() bool {
			total := o.current.spec
			for _, c := range o.old {
				total += max(c.spec, c.actual)
			}
			return total <= o.most && o.current.spec+o.coming() <= o.wanted
		})
	}
	if o.current.spec == o.wanted {
		o.shrink()
		return
	}
	if !o.manual && !o.noSelect {
		o.selectSome()
	}
}

func (o *inPlaceOracle) selectSome() {
	selected := int64(0)
	bearable := func(n int64) bool { // even if all of them fail
		return o.stopAfter <= 0 || o.failed <= 0 || o.failed+o.coming()+selected+n <= o.stopAfter
	}
	room := func() bool {
		return o.secure()-selected > o.least && o.current.spec+o.coming()+selected < o.wanted && bearable(1)
	}
	for _, c := range o.old {
		n := largest(o.selectable(c), func(n int64) bool {
			return o.secure()-selected-n >= o.least && o.current.spec+o.coming()+selected+n <= o.wanted && bearable(n)
		})
		if n > 0 && room() {
			o.chosen[c.name], selected = n, selected+n
		}
	}
}

// inPlace draws fleets in the middle of updates in place.
func (n numbers) inPlace(sets int) rollout.Fleet {
	f := n.fleet(sets)
	f.Manual, f.NoSelect = n.below(5) == 0, n.below(5) == 0
	if n.below(2) == 0 {
		f.StopAfter, f.Failed = n.count(), n.count()
	}
	for i := range f.Sets {
		set := &f.Sets[i]
		if n.below(6) == 0 { // arbitrary numbers
			set.Selected, set.Selectable = n.count(), n.count()
			continue
		}
		set.Available = min(max(set.Available, 0), max(set.Actual, 0))
		rest := max(set.Actual, 0) - set.Available
		set.Selected = min(max(n.count(), 0), rest)
		set.Selectable = set.Available
		if n.below(4) == 0 {
			set.Selectable = min(max(n.count(), 0), set.Available)
		}
		set.Deleting = n.below(12) == 0
	}
	return f
}

func inPlaceDisagreement(f rollout.Fleet, orders []rollout.Scale, selects []rollout.Select) string {
	o := newInPlaceOracle(f)
	before := map[string]int64{}
	for _, c := range o.oracle.sets() {
		before[c.name] = c.spec
	}
	o.run()
	got := map[string]int64{}
	for _, order := range orders {
		got[order.Name] = int64(order.To)
	}
	for _, c := range o.oracle.sets() {
		to, ordered := got[c.name]
		if ordered && to != c.spec || !ordered && c.spec != before[c.name] {
			return fmt.Sprintf("size of %s: %d", c.name, c.spec)
		}
	}
	chosen := map[string]int64{}
	for _, s := range selects {
		chosen[s.Name] = int64(s.Count)
	}
	if len(chosen) != len(selects) || fmt.Sprint(chosen) != fmt.Sprint(o.chosen) {
		return fmt.Sprintf("selected: %v", o.chosen)
	}
	return ""
}

func requireInPlaceAsOracle(t *testing.T, n numbers, cases, sets int) map[rollout.Reason]int {
	t.Helper()
	var orders []rollout.Scale
	var selects []rollout.Select
	seen := map[rollout.Reason]int{}
	for range cases {
		f := n.inPlace(sets)
		var why rollout.Why
		orders, selects, why = rollout.InPlace(f, orders, selects)
		if what := inPlaceDisagreement(f, orders, selects); what != "" {
			t.Fatalf("the oracle: %s\nfleet   %+v\norders  %+v\nselects %+v", what, f, orders, selects)
		}
		if err := checkInPlaceDecision(f, orders, selects, why); err != nil {
			t.Fatalf("%v\nfleet   %+v\norders  %+v\nselects %+v", err, f, orders, selects)
		}
		note(seen, orders, why)
		for _, s := range selects {
			seen[s.Why.Reason]++
		}
	}
	return seen
}

// TestInPlaceAgreesWithOracle compares InPlace with the oracle on small fleets, on arbitrary numbers, and on more sets
// than fit into the storage on the stack. Each reason must occur.
// Invariants: P1 P5 P6 P7 P9 P46 P47
func TestInPlaceAgreesWithOracle(t *testing.T) {
	cases := 120_000
	if testing.Short() {
		cases = 20_000
	}
	seen := requireInPlaceAsOracle(t, smallNumbers(rand.New(rand.NewPCG(21, 22))), cases, 4)
	requireInPlaceAsOracle(t, extremeNumbers(rand.New(rand.NewPCG(23, 24))), cases/4, 5)
	requireInPlaceAsOracle(t, smallNumbers(rand.New(rand.NewPCG(25, 26))), 2_000, 60)
	for _, reason := range []rollout.Reason{
		rollout.ReasonOldMissing, rollout.ReasonLeftover, rollout.ReasonSelect, rollout.ReasonScaleDown,
		rollout.ReasonNewGrows, rollout.ReasonNewAboveReplicas, rollout.ReasonUpdating, rollout.ReasonUnselected,
		rollout.ReasonUnfit, rollout.ReasonFloor, rollout.ReasonRemoval, rollout.ReasonNoNewSet, rollout.ReasonNewUnavailable,
		rollout.ReasonDone, rollout.ReasonStopped, rollout.ReasonNoSelect,
	} {
		require.Greater(t, seen[reason], cases/4_000, "too few cases of %s: %v", reason, seen)
	}
}

// selected returns the fleet with the selections made, and nothing else changed.
func selected(f rollout.Fleet, selects []rollout.Select) rollout.Fleet {
	f.Sets = append([]rollout.Set(nil), f.Sets...)
	for _, s := range selects {
		for i := range f.Sets {
			if set := &f.Sets[i]; set.Name == s.Name {
				set.Selected, set.Selectable, set.Available = max(set.Selected, 0)+s.Count, set.Selectable-s.Count, set.Available-s.Count
			}
		}
	}
	return f
}

// checkInPlaceDecision checks one decision against P1, P5, P6, P7 and P9, and against its reason.
func checkInPlaceDecision(f rollout.Fleet, orders []rollout.Scale, selects []rollout.Select, why rollout.Why) error {
	if err := boundsHoldAfterEachOrder(f, orders, why); err != nil {
		return fmt.Errorf("P7: %w", err)
	}
	if err := sizesAddUp(f, orders, why); err != nil {
		return fmt.Errorf("P9: %w", err)
	}
	if err := selectsWithinBudget(f, orders, selects); err != nil {
		return fmt.Errorf("P6: %w", err)
	}
	if err := checkInPlaceReason(f, orders, selects, why); err != nil {
		return fmt.Errorf("P3: %w", err)
	}
	then := selected(carriedOut(f, orders), selects)
	if !adds(f) {
		return nil
	}
	if again, more, _ := rollout.InPlace(then, nil, nil); len(again)+len(more) > 0 {
		return fmt.Errorf("P5: ordered again: %+v %+v", again, more)
	}
	before := count(f)
	for _, order := range orders {
		set := find(f, order.Name)
		if before.ordered <= before.ceiling && order.Why.Reason == rollout.ReasonScaleDown {
			return fmt.Errorf("P1: scaled %s down", order.Name)
		}
		takes := order.Why.Unavailable < order.Why.Count
		if order.To < order.From && !set.New && takes && order.Why.Reason != rollout.ReasonLeftover && order.Why.Reason != rollout.ReasonScaleDown {
			return fmt.Errorf("P6: %s takes available machines of %s", order.Why.Reason, order.Name)
		}
	}
	return nil
}

// adds reports whether the numbers of each set can be those of one set.
func adds(f rollout.Fleet) bool {
	for _, set := range f.Sets {
		least := min(set.Actual, set.Available, set.Selected, set.Selectable)
		if least < 0 || set.Selectable > set.Available || int64(set.Available)+int64(set.Selected) > int64(set.Actual) {
			return false
		}
	}
	return true
}

func selectsWithinBudget(f rollout.Fleet, orders []rollout.Scale, selects []rollout.Select) error {
	then := carriedOut(f, orders)
	l, n := count(then), int64(0)
	underWay := int64(0)
	for _, set := range then.Sets {
		if !set.New && !set.Deleting {
			underWay += min(max(int64(set.Selected), 0), max(int64(set.Spec), 0))
		}
	}
	for _, s := range selects {
		set := find(then, s.Name)
		n += int64(s.Count)
		if s.Count < 1 || s.Count > mostSelectable(f, set) {
			return fmt.Errorf("selects %+v of %+v", s, set)
		}
	}
	if n > 0 && f.StopAfter > 0 && f.Failed > 0 && int64(f.Failed)+underWay+n > int64(f.StopAfter) {
		return fmt.Errorf("selects %d, %d under way, %d failed of %d", n, underWay, f.Failed, f.StopAfter)
	}
	if n > 0 && (l.usable-n < l.floor || l.newSpec+underWay+n > l.wanted) {
		return fmt.Errorf("selects %d, %d available, floor %d, %d of %d new, %d under way", n, l.usable, l.floor, l.newSpec, l.wanted, underWay)
	}
	return nil
}

// mostSelectable returns how many machines of a set may be selected at most.
func mostSelectable(f rollout.Fleet, set rollout.Set) int32 {
	if set.New || set.Deleting || f.Manual || f.NoSelect || set.Actual > set.Spec {
		return 0
	}
	return min(set.Selectable, set.Available)
}

// checkInPlaceReason checks that the reason is true of the fleet.
func checkInPlaceReason(f rollout.Fleet, orders []rollout.Scale, selects []rollout.Select, why rollout.Why) error {
	if n := len(orders) + len(selects); n > 0 {
		if why.Reason != rollout.ReasonOrdered || why.Count != int64(n) || rollout.Done(f) {
			return fmt.Errorf("with orders: %+v", why)
		}
		return nil
	}
	f = gone(f)
	if why.Reason == rollout.ReasonStopped {
		return checkStopReason(f, why)
	}
	l, set := count(f), find(f, why.Set)
	isTrue := map[rollout.Reason]bool{
		rollout.ReasonUpdating:   set.Selected > 0,
		rollout.ReasonUnselected: f.Manual && set.Selectable > 0,
		rollout.ReasonNoSelect:   f.NoSelect && set.Selectable > 0,
		rollout.ReasonUnfit:      set.Spec > 0 && why.Count <= l.ordered-l.newSpec,
	}
	holds, known := isTrue[why.Reason]
	if !known {
		return emptyPlanNamesWhatItWaitsFor(f, nil, why)
	}
	if !holds || why.Count <= 0 || !l.hasNew || l.newSpec >= l.wanted || set.New {
		return fmt.Errorf("the reason is not true of the fleet: %+v", why)
	}
	return nil
}

func checkStopReason(f rollout.Fleet, why rollout.Why) error {
	if why.Count != int64(f.Failed) || why.Total != int64(f.StopAfter) || !f.Stopped() {
		return fmt.Errorf("the reason is not true of the fleet: %+v", why)
	}
	return nil
}

// gone returns the fleet with size 0 for sets that are being deleted.
func gone(f rollout.Fleet) rollout.Fleet {
	f.Sets = append([]rollout.Set(nil), f.Sets...)
	for i := range f.Sets {
		if set := &f.Sets[i]; set.Deleting {
			set.Spec, set.New = 0, false
		}
	}
	return f
}

// TestP11InPlaceAnyInput: for any input, such as several new sets and duplicate names, there is a reason with a
// text, and a second call returns the same.
// Invariants: P11
func TestP11InPlaceAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int32(), rapid.Int32Range(-2, 5), rapid.SampledFrom(extremes))
		draw := func(label string) int32 { return number.Draw(t, label) }
		f := rollout.Fleet{Replicas: draw("replicas"), Bounds: rollout.Bounds{Surge: draw("surge"), Unavailable: draw("unavailable")}}
		f.Manual = rapid.Bool().Draw(t, "manual")
		f.StopAfter, f.Failed = draw("stop after"), draw("failed")
		for range rapid.IntRange(0, 18).Draw(t, "sets") {
			f.Sets = append(f.Sets, rollout.Set{
				Name: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"), New: rapid.Bool().Draw(t, "new"),
				Spec: draw("spec"), Actual: draw("actual"), Available: draw("available"), Selected: draw("selected"),
				Selectable: draw("selectable"), Deleting: rapid.Bool().Draw(t, "going"),
			})
		}
		before := append([]rollout.Set(nil), f.Sets...)
		orders, selects, why := rollout.InPlace(f, make([]rollout.Scale, 2), make([]rollout.Select, 2))
		require.NotEqual(t, string(why.Reason), why.String())
		for _, order := range orders {
			require.NotEqual(t, string(order.Why.Reason), order.Why.String())
		}
		for _, s := range selects {
			require.NotEqual(t, string(s.Why.Reason), s.Why.String())
		}
		require.Equal(t, before, append([]rollout.Set(nil), f.Sets...))
		again, same, _ := rollout.InPlace(f, nil, nil)
		require.Equal(t, append([]rollout.Scale{}, orders...), append([]rollout.Scale{}, again...))
		require.Equal(t, append([]rollout.Select{}, selects...), append([]rollout.Select{}, same...))
	})
}

// TestMarksWithoutMachines: if more machines of a set are marked than it has, its size does not fall below zero.
// Invariants: P11
func TestMarksWithoutMachines(t *testing.T) {
	f := rollout.Fleet{Replicas: 3, Bounds: rollout.Bounds{Unavailable: 3}, Sets: []rollout.Set{
		{Name: "a", Spec: 1, Chosen: 1}, {Name: "b", Spec: 5, Actual: 5, Available: 5, Chosen: 5, Selectable: 5}, {Name: "c", New: true},
	}}
	orders, _, _ := rollout.InPlace(f, nil, nil)
	require.NotEmpty(t, orders)
	for _, order := range orders {
		require.GreaterOrEqual(t, order.To, int32(0), "%+v", order)
	}
}
