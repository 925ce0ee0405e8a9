package rollout_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// world is a fleet whose sets obey orders late and in pieces. A set removes machines by the size
// that it last read, which may be an earlier one. Before it creates machines it reads its size
// again. It removes unavailable machines first.
type world struct {
	t       *rapid.T
	fleet   rollout.Fleet
	read    []int32 // by set: the size it acts on
	initial ledger  // as of the last change from outside
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

// decide takes a step, checks it against all invariants, and carries out the first so many orders.
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

// obey lets a set remove or create up to so many machines.
func (w *world) obey(i int, most int32) {
	set := &w.fleet.Sets[i]
	if k := min(set.Actual-w.read[i], most); k > 0 {
		set.Actual -= k
		set.Available = min(set.Available, set.Actual)
	}
	w.see(i)
	if k := min(set.Spec-set.Actual, most); k > 0 {
		set.Actual += k
	}
}

// see lets a set read its size, without acting on it yet.
func (w *world) see(i int) {
	w.read[i] = w.fleet.Sets[i].Spec
	w.fleet.Sets[i].Behind = 0
}

func (w *world) becomeAvailable(i int, most int32) {
	set := &w.fleet.Sets[i]
	set.Available = min(set.Available+most, set.Actual)
}

// quietly takes one random action of the fleet itself, in which nothing is lost.
func (w *world) quietly() {
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
		w.see(i)
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

// P3: once disturbances stop and every set gets its turn, a rollout is done within as many rounds
// as there are machines to order, create, remove and wait for. In each round before, there is an
// order, or what the reason names happens next.
// Invariants: P3
func TestP3RolloutsConvergeOnceDisturbancesStop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 12).Draw(t, "noise") {
			if rapid.Bool().Draw(t, "disturb") {
				w.disturb()
			} else {
				w.quietly()
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

// P2 and P7 over time: from any state, in any interleaving of decisions, orders carried out in
// part, and sets acting on earlier sizes. As long as machines are only lost by our orders, what
// really happens breaks neither bound.
// Invariants: P5 P7
func TestP7BoundsHoldInEveryInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		least := min(w.initial.usable, w.initial.floor)
		most := max(w.initial.present, w.initial.ceiling)
		for range rapid.IntRange(10, 60).Draw(t, "actions") {
			w.quietly()
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

// P2: the wanted number and the template change at any moment of a rollout. Each decision in
// between obeys every invariant (decide checks them), for the fleet as it is at that moment.
// Invariants: P2
func TestP2ScalingAndRollingTogetherObeyAllBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(5, 40).Draw(t, "actions") {
			if rapid.IntRange(0, 5).Draw(t, "disturb") == 0 {
				w.disturb()
			}
			w.quietly()
		}
	})
}
