package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// rule is Resize or Recreate.
type rule func(rollout.Fleet, []rollout.Scale) ([]rollout.Scale, rollout.Why)

// withTerminating draws a fleet in which sets may be deleted, and machines terminating.
func (n numbers) withTerminating(sets int) rollout.Fleet {
	f := n.fleet(sets)
	f.Apart = n.below(3) == 0
	for i := range f.Sets {
		set := &f.Sets[i]
		set.Deleting = n.below(6) == 0
		if n.below(3) == 0 {
			set.Terminating = n.count()
		}
		if n.below(3) == 0 { // unused, as most old sets are
			*set = rollout.Set{Name: set.Name, New: set.New, Deleting: set.Deleting, Terminating: set.Terminating}
		}
	}
	return f
}

// resizeOracle is oracle for Resize and Recreate: it computes the sizes machine by machine.
type resizeOracle struct {
	*oracle
	leads       bool // there is a set that may grow
	isNew       bool // it has the wanted template
	terminating int64
	apart       bool
}

// newResizeOracle returns the oracle for a fleet in which the set with the name lead may grow. Empty: none may.
func newResizeOracle(f rollout.Fleet, lead string) *resizeOracle {
	h := &resizeOracle{apart: f.Apart}
	marked := f
	marked.Sets = append([]rollout.Set(nil), f.Sets...)
	for i := range marked.Sets {
		set := &marked.Sets[i]
		leads := set.Name == lead
		if leads {
			h.leads, h.isNew = true, set.New
		} else {
			h.terminating += max(int64(set.Terminating), 0)
		}
		set.New = leads
	}
	h.oracle = newOracle(marked)
	return h
}

// leader returns the set that Resize should let grow, and how many sets are in use.
func leader(f rollout.Fleet) (name string, inUse int) {
	newest, newestInUse, wanted := "", "", rollout.Set{Deleting: true}
	for _, set := range f.Sets {
		if set.Deleting {
			continue
		}
		newest = set.Name
		if set.Spec > 0 {
			newestInUse = set.Name
			inUse++
		}
		if set.New {
			wanted = set
		}
	}
	switch {
	case !wanted.Deleting && (inUse == 0 || wanted.Spec > 0):
		return wanted.Name, inUse
	case inUse > 0:
		return newestInUse, inUse
	}
	return newest, inUse
}

func (h *resizeOracle) resize(inUse int) {
	if h.wanted == 0 {
		h.most = 0
	}
	if inUse > 1 {
		h.scaleDown()
	}
	if used := h.used(); len(used) == 1 && !used[0].paused {
		used[0].spec = min(used[0].spec, h.wanted)
	}
	if h.isNew && h.current.spec == h.wanted && h.current.secured >= h.wanted {
		h.empty()
	}
	h.extend()
	h.settle()
}

func (h *resizeOracle) recreate() {
	h.most, h.least, h.apart = h.wanted, 0, true
	if h.leads {
		h.empty()
		if !h.current.paused {
			h.current.spec = min(h.current.spec, h.wanted)
		}
	} else {
		h.scaleDown()
	}
	h.extend()
	h.settle()
}

// empty removes all machines from old sets.
func (h *resizeOracle) empty() {
	for _, c := range h.old {
		if !c.paused {
			c.spec = 0
		}
	}
}

func (h *resizeOracle) used() (used []*tally) {
	for _, c := range h.sets() {
		if c.spec > 0 {
			used = append(used, c)
		}
	}
	return used
}

// extend adds machine after machine while the rules hold.
func (h *resizeOracle) extend() {
	if !h.leads {
		return
	}
	others, left := int64(0), h.terminating
	for _, c := range h.old {
		others += c.spec
		left += max(c.spec, c.actual)
	}
	if h.apart && left > 0 || others > 0 && h.current.actual > h.current.spec {
		return
	}
	change(h.current, +1, h.wanted, func() bool {
		total := h.current.spec
		for _, c := range h.old {
			total += max(c.spec, c.actual)
		}
		return total <= h.most && h.ordered() <= h.wanted
	})
}

// newName returns the name of the new set.
func newName(f rollout.Fleet) string {
	name := ""
	for _, set := range f.Sets {
		if set.New && !set.Deleting {
			name = set.Name
		}
	}
	return name
}

func requireAsOracle(t *testing.T, f rollout.Fleet, orders []rollout.Scale, h *resizeOracle) {
	t.Helper()
	after := carriedOut(f, orders)
	for _, c := range h.sets() {
		set := find(after, c.name)
		got := max(int64(set.Spec), 0)
		if set.Deleting {
			got = 0
		}
		if got != c.spec {
			t.Fatalf("%s: %d, by the oracle %d\nfleet  %+v\norders %+v", c.name, got, c.spec, f, orders)
		}
	}
}

// Invariants: P9
func TestResizeAndRecreateAgreeWithOracle(t *testing.T) {
	cases := 300_000
	if testing.Short() {
		cases = 40_000
	}
	r := rand.New(rand.NewPCG(11, 12))
	small, extreme := smallNumbers(r), extremeNumbers(r)
	seen := make(map[rollout.Reason]int)
	for i := range cases {
		f := small.withTerminating(4)
		if i%5 == 0 {
			f = extreme.withTerminating(20)
		}
		lead, inUse := leader(f)
		h := newResizeOracle(f, lead)
		h.resize(inUse)
		orders, why := rollout.Resize(f, nil)
		requireAsOracle(t, f, orders, h)
		note(seen, orders, why)

		h = newResizeOracle(f, newName(f))
		h.recreate()
		orders, why = rollout.Recreate(f, nil)
		requireAsOracle(t, f, orders, h)
		note(seen, orders, why)
	}
	for _, reason := range []rollout.Reason{
		rollout.ReasonGrows, rollout.ReasonAboveReplicas, rollout.ReasonScaleDown, rollout.ReasonHeld, rollout.ReasonRemoval,
		rollout.ReasonRecreate, rollout.ReasonOldPresent, rollout.ReasonNewGrows, rollout.ReasonNewUnavailable,
		rollout.ReasonDone, rollout.ReasonNoNewSet,
	} {
		require.Greater(t, seen[reason], cases/2_000, "too few cases of %s: %v", reason, seen)
	}
}

func note(seen map[rollout.Reason]int, orders []rollout.Scale, why rollout.Why) {
	seen[why.Reason]++
	for _, order := range orders {
		seen[order.Why.Reason]++
	}
}

// terminatingFleets draws fleets for tests of Resize and Recreate.
func terminatingFleets(t *rapid.T) rollout.Fleet {
	bound := rapid.OneOf(rapid.Int32Range(-1, 9), rapid.Int32Range(-1, 9), rapid.SampledFrom(extremes))
	return numbers{
		bound: func() int32 { return bound.Draw(t, "bound") },
		count: func() int32 { return bound.Draw(t, "count") },
		below: func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "below") },
	}.withTerminating(5)
}

// checkDecision checks one decision against P5, P7 and P9, and against its reason.
func checkDecision(f rollout.Fleet, decide rule, orders []rollout.Scale, why rollout.Why) error {
	onHold := f
	onHold.StopAfter, onHold.Failed = 1, 1
	if err := rollout.Check(onHold, orders); err != nil {
		return fmt.Errorf("P7, P9: %w", err)
	}
	if again, _ := decide(carriedOut(f, orders), nil); len(again) > 0 {
		return fmt.Errorf("P5: ordered again: %+v", again)
	}
	raised := 0
	for _, order := range orders {
		if order.To > order.From {
			raised++
		}
		if order.Why.Count != int64(max(order.From, order.To))-int64(min(order.From, order.To)) {
			return fmt.Errorf("%s from %d to %d, the reason counts %d", order.Name, order.From, order.To, order.Why.Count)
		}
	}
	if raised > 1 {
		return fmt.Errorf("%d sets raised: %+v", raised, orders)
	}
	if (why.Reason == rollout.ReasonDone) != (len(orders) == 0 && rollout.Done(f)) {
		return fmt.Errorf("done is %t, the reason %s", rollout.Done(f), why.Reason)
	}
	return nil
}

// Invariants: P5
func TestP5P7P9Resize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := terminatingFleets(t)
		orders, why := rollout.Resize(f, nil)
		if err := checkDecision(f, rollout.Resize, orders, why); err != nil {
			t.Fatalf("%v\nfleet  %+v\norders %+v", err, f, orders)
		}
		// P1: while R + S machines or fewer are ordered, no set is lowered, unless it is above R or the new set has
		// all R machines available.
		l := count(f)
		current := find(f, newName(f))
		saturated := min(int64(current.Available), int64(current.Actual)) >= l.wanted && int64(current.Spec) == l.wanted
		for _, order := range orders {
			if order.To < order.From && l.ordered <= l.ceiling && l.wanted > 0 && !saturated && int64(order.From) <= l.wanted {
				t.Fatalf("P1: %+v\nfleet %+v", order, f)
			}
		}
	})
}

// Invariants: P5
func TestP5P7P9Recreate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := terminatingFleets(t)
		f.Bounds = rollout.Bounds{Unavailable: 1<<31 - 1} // Recreate keeps these bounds, whatever the fleet's are
		orders, why := rollout.Recreate(f, nil)
		if err := checkDecision(f, rollout.Recreate, orders, why); err != nil {
			t.Fatalf("%v\nfleet  %+v\norders %+v", err, f, orders)
		}
		for _, order := range orders {
			for _, set := range f.Sets {
				if order.To > order.From && set.Name != order.Name && max(set.Actual, 0)+max(set.Terminating, 0) > 0 {
					t.Fatalf("%+v with machines of %+v", order, set)
				}
			}
		}
		g := f
		g.Bounds = rollout.Bounds{Surge: 7}
		same, _ := rollout.Recreate(g, make([]rollout.Scale, 3))
		require.Equal(t, append([]rollout.Scale{}, orders...), append([]rollout.Scale{}, same...))
	})
}

// TestP11ResizeAndRecreateAnyInput: for any input every reason has a text, and the input is unchanged.
// Invariants: P11
func TestP11ResizeAndRecreateAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := terminatingFleets(t)
		for i := range f.Sets {
			f.Sets[i].Name = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")
			f.Sets[i].New = rapid.Bool().Draw(t, "new")
		}
		sets := append([]rollout.Set(nil), f.Sets...)
		for _, decide := range []rule{rollout.Resize, rollout.Recreate} {
			orders, why := decide(f, nil)
			require.NotEqual(t, string(why.Reason), why.String())
			for _, order := range orders {
				require.NotEqual(t, string(order.Why.Reason), order.Why.String())
			}
			require.Equal(t, sets, append([]rollout.Set(nil), f.Sets...), "the input changed")
		}
	})
}

// TestP3ResizeAndRecreateConverge: sets act in part, and removed machines take time to disappear. With Resize, the
// fleet reaches R. With Recreate, the rollout is done, and no machine of the new set is ever created beside one of
// another set.
// Invariants: P3
func TestP3ResizeAndRecreateConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recreate := rapid.Bool().Draw(t, "recreate")
		decide := rollout.Resize
		if recreate {
			decide = rollout.Recreate
		}
		w := newWorld(t)
		if rapid.Bool().Draw(t, "new set") || len(w.fleet.Sets) == 0 {
			w.wantTemplate(len(w.fleet.Sets))
		}
		for i := range w.fleet.Sets { // what was ordered before the test was not by this strategy
			w.fleet.Sets[i].Spec = min(w.fleet.Sets[i].Spec, w.fleet.Sets[i].Actual)
		}
		quiet := 0
		for round := 0; quiet < 3; round++ {
			if round > 200 {
				t.Fatalf("the fleet does not converge: %+v", w.fleet)
			}
			orders, _ := decide(w.fleet, nil)
			before := w.fleet
			w.fleet = carriedOut(w.fleet, orders)
			before.Sets = append([]rollout.Set(nil), w.fleet.Sets...)
			for i := range w.fleet.Sets {
				w.obeySlowly(i, rapid.Int32Range(1, 3).Draw(t, "moved"), recreate)
			}
			if quiet++; len(orders) > 0 || fmt.Sprint(before.Sets) != fmt.Sprint(w.fleet.Sets) {
				quiet = 0
			}
		}
		l := count(w.fleet)
		switch {
		case recreate && l.hasNew:
			require.True(t, rollout.Done(w.fleet), "%+v", w.fleet)
		case recreate:
			require.LessOrEqual(t, l.ordered, l.wanted)
		default:
			require.GreaterOrEqual(t, l.ordered, l.wanted, "%+v", w.fleet)
			require.LessOrEqual(t, l.ordered, l.ceiling, "%+v", w.fleet)
		}
	})
}

// obeySlowly lets a set remove or create up to most machines, and up to most terminating ones disappear.
func (w *world) obeySlowly(i int, most int32, apart bool) {
	set := &w.fleet.Sets[i]
	set.Spec, set.Behind = max(set.Spec, 0), 0 // it has observed its size
	set.Terminating -= min(set.Terminating, most)
	if k := min(set.Actual-set.Spec, most); k > 0 {
		set.Actual -= k
		set.Terminating += k
	}
	if k := min(set.Spec-set.Actual, most); k > 0 {
		for j, other := range w.fleet.Sets {
			if apart && set.New && j != i && other.Actual+other.Terminating > 0 {
				w.t.Fatalf("%s creates machines beside those of %+v", set.Name, other)
			}
		}
		set.Actual += k
	}
	set.Available = set.Actual
}

// TestRecreateReason: Recreate lowers each old set with the reason Recreate, whether its machines are available or not.
func TestRecreateReason(t *testing.T) {
	f := rollout.Fleet{Replicas: 3, Sets: []rollout.Set{
		{Name: "sound", Spec: 2, Actual: 2, Available: 2}, {Name: "broken", Spec: 1, Actual: 1}, {Name: "new", New: true},
	}}
	orders, _ := rollout.Recreate(f, nil)
	require.Len(t, orders, 2)
	for _, order := range orders {
		require.Equal(t, rollout.ReasonRecreate, order.Why.Reason, order.Name)
	}
}

func resumeRollout(s *scenario) { s.decides = rollout.Step }

// pausedStories are scenarios of Resize, as for a paused rollout.
func pausedStories() []*scenario {
	return []*scenario{{
		file: "paused-scale", title: "The template has changed, but rolling is on hold: the old set follows the wanted number.",
		replicas: 3, surge: "1", unavailable: "0", decides: rollout.Resize,
		sets: []rollout.Set{full("web-1", 3), wanted(full("web-2", 0))},
		events: map[int]event{
			2: {"scaled to 5", scaleTo(5)},
			4: {"scaled to 0", scaleTo(0)},
			6: {"scaled to 2: of no set in use the new one is taken", scaleTo(2)},
		},
	}, {
		file: "paused-amid-rollout", title: "On hold halfway: growth goes to the new set, a scale-down hits both.",
		replicas: 6, surge: "2", unavailable: "1", decides: rollout.Resize,
		sets: []rollout.Set{full("web-1", 4), wanted(full("web-2", 3))},
		events: map[int]event{
			2: {"scaled to 9", scaleTo(9)},
			4: {"scaled to 3", scaleTo(3)},
			7: {"resumed", resumeRollout},
		},
	}, {
		file: "paused-third-template", title: "On hold with a third template that nothing is made of: growth goes to the newest set in use.",
		replicas: 6, surge: "2", unavailable: "1", decides: rollout.Resize,
		sets: []rollout.Set{full("web-1", 3), full("web-2", 3), wanted(full("web-3", 0))},
		events: map[int]event{2: {
			"scaled to 8", scaleTo(8),
		}},
	}, {
		file: "paused-saturated", title: "On hold with all new machines there: what is left of the old ones goes.",
		replicas: 3, surge: "1", unavailable: "0", decides: rollout.Resize,
		sets: []rollout.Set{full("web-1", 1), wanted(full("web-2", 3))},
	}}
}

// recreatingStories are scenarios of Recreate.
func recreatingStories() []*scenario {
	return []*scenario{{
		file: "recreate", title: "All old machines go, the last one too, and then the new ones come.",
		replicas: 3, surge: "0", unavailable: "0", decides: rollout.Recreate, lingering: true,
		sets: []rollout.Set{full("web-1", 3), wanted(full("web-2", 0))},
	}, {
		file: "recreate-third-template", title: "The template changes again before a machine of the second was gone.",
		replicas: 3, surge: "0", unavailable: "0", decides: rollout.Recreate, lingering: true,
		sets: []rollout.Set{full("web-1", 0), wanted(full("web-2", 3))},
		slow: map[string]bool{"web-2": true},
		events: map[int]event{
			2: {"the template changes", func(s *scenario) { s.want("web-3") }},
			4: {"web-2 removes machines", func(s *scenario) { s.slow = nil }},
		},
	}, {
		file: "recreate-scaled", title: "Scaled down, to zero and up: the new set alone follows at once, but not while old machines are there.",
		replicas: 4, surge: "0", unavailable: "0", decides: rollout.Recreate, lingering: true,
		sets: []rollout.Set{wanted(full("web-1", 4))},
		events: map[int]event{
			2: {"scaled to 2", scaleTo(2)},
			4: {"the template changes, and none is wanted", func(s *scenario) { s.want("web-2"); s.replicas = 0 }},
			5: {"scaled to 3", scaleTo(3)},
		},
	}}
}
