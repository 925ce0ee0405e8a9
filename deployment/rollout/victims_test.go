package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// singleMachines is a fleet that is simulated machine by machine. A set reads its size and its machines, chooses all
// machines to delete at once, unavailable ones first, and deletes them one after the other. Meanwhile it ignores
// changes of these machines and of its size.
type singleMachines struct {
	t     *rapid.T
	fleet rollout.Fleet
	sets  []machineSet
}

type machineSet struct {
	machines map[int]bool // by number of the machine: whether it is available
	next     int
	victims  []int
}

// newSingleMachines draws a fleet in any state: sets may have chosen any of their machines before.
func newSingleMachines(t *rapid.T) *singleMachines {
	n := numbers{
		bound: func() int32 { return rapid.Int32Range(0, 6).Draw(t, "bound") },
		count: func() int32 { return rapid.Int32Range(0, 8).Draw(t, "count") },
		below: func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "below") },
	}
	h := &singleMachines{t: t, fleet: n.fleet(3)}
	for i := range h.fleet.Sets {
		set := &h.fleet.Sets[i]
		set.Accounted, set.Behind = 0, 0
		s := machineSet{machines: map[int]bool{}}
		for ; s.next < int(set.Actual); s.next++ {
			s.machines[s.next] = s.next < int(set.Available)
		}
		if surplus := int(set.Actual - set.Spec); surplus > 0 {
			numbered := rapid.Permutation(s.numbers()).Draw(t, "victims")
			s.victims = numbered[:rapid.IntRange(0, surplus).Draw(t, "chosen before")]
		}
		h.sets = append(h.sets, s)
		h.readSize(i)
	}
	return h
}

// numbers returns the numbers of the machines, unavailable ones first.
func (s *machineSet) numbers() (out []int) {
	for _, available := range []bool{false, true} {
		for i := range s.next {
			if is, exists := s.machines[i]; exists && is == available {
				out = append(out, i)
			}
		}
	}
	return out
}

// readSize updates the numbers of a set in the fleet.
func (h *singleMachines) readSize(i int) {
	set := &h.fleet.Sets[i]
	set.Actual, set.Available = int32(len(h.sets[i].machines)), 0
	for _, available := range h.sets[i].machines {
		if available {
			set.Available++
		}
	}
}

// obey lets a set delete its next chosen machine. If none is left, the set reads its size, and chooses or creates
// machines.
func (h *singleMachines) obey(i int) {
	s, set := &h.sets[i], &h.fleet.Sets[i]
	switch surplus := len(s.machines) - int(max(set.Spec, 0)); {
	case len(s.victims) > 0:
		delete(s.machines, s.victims[0])
		s.victims = s.victims[1:]
	case surplus > 0:
		s.victims = s.numbers()[:surplus]
		set.Behind = 0
	case surplus < 0:
		s.machines[s.next] = false
		s.next++
		set.Behind = 0
	default:
		set.Behind = 0
	}
	h.readSize(i)
}

// join makes a machine of a set available.
func (h *singleMachines) join(i int) {
	s := &h.sets[i]
	for _, n := range s.numbers() {
		if !s.machines[n] {
			s.machines[n] = true
			break
		}
	}
	h.readSize(i)
}

// availableAfter returns how many machines stay available once the sets have deleted the machines that they
// have chosen, and then follow their sizes.
func (h *singleMachines) availableAfter(f rollout.Fleet) (n int64) {
	for i := range h.sets {
		left := int64(f.Sets[i].Available)
		for _, victim := range h.sets[i].victims {
			if h.sets[i].machines[victim] {
				left--
			}
		}
		n += min(left, max(0, int64(f.Sets[i].Spec)))
	}
	return n
}

// decide takes a step and carries out some of the orders. None may take the machines that stay available below the
// floor or, if they are below already, further down.
func (h *singleMachines) decide() {
	orders, _ := rollout.Step(h.fleet, nil)
	orders = orders[:rapid.IntRange(0, len(orders)).Draw(h.t, "orders")]
	then := carriedOut(h.fleet, orders)
	before, after, floor := h.availableAfter(h.fleet), h.availableAfter(then), count(h.fleet).floor
	if after < min(before, floor) {
		h.t.Fatalf("P7: %d machines stay of %d, floor is %d\nfleet  %+v\nsets   %+v\norders %+v", after, before, floor, h.fleet, h.sets, orders)
	}
	h.fleet = then
}

// disturb changes something from outside: another size, another template, a machine that stops
// working.
func (h *singleMachines) disturb() {
	i := rapid.IntRange(0, len(h.sets)-1).Draw(h.t, "set")
	switch rapid.IntRange(0, 3).Draw(h.t, "event") {
	case 0:
		h.fleet.Replicas = rapid.Int32Range(0, 6).Draw(h.t, "replicas")
	case 1:
		for j := range h.fleet.Sets {
			h.fleet.Sets[j].New = j == i
		}
	default:
		if numbers := h.sets[i].numbers(); len(numbers) > 0 {
			h.sets[i].machines[rapid.SampledFrom(numbers).Draw(h.t, "fails")] = false
		}
		h.readSize(i)
	}
}

// TestP7MachinesChosenForDeletionEarly: whichever machines the sets have chosen, and whichever join or fail before they
// are deleted, no order takes the machines that stay available below the floor. Decisions and deletions happen in any
// order.
// Invariants: P7
func TestP7MachinesChosenForDeletionEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newSingleMachines(t)
		if len(h.sets) == 0 {
			return
		}
		for range rapid.IntRange(5, 80).Draw(t, "moves") {
			i := rapid.IntRange(0, len(h.sets)-1).Draw(h.t, "moves")
			switch rapid.IntRange(0, 9).Draw(h.t, "action") {
			case 0:
				h.disturb()
			case 1, 2, 3:
				h.decide()
			case 4, 5, 6:
				h.obey(i)
			default:
				h.join(i)
			}
		}
	})
}

// TestP3RolloutsConvergeIfSetsChooseEarly: a rollout is done within a number of rounds that is limited by the number of
// machines.
// Invariants: P3
func TestP3RolloutsConvergeIfSetsChooseEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newSingleMachines(t)
		l := count(h.fleet)
		if !l.hasNew {
			h.fleet.Sets = append(h.fleet.Sets, rollout.Set{Name: "wanted", New: true})
			h.sets = append(h.sets, machineSet{machines: map[int]bool{}})
		}
		bound := 6*(l.present+l.wanted) + 10
		for round := int64(0); !rollout.Done(h.fleet); round++ {
			require.LessOrEqual(t, round, bound, "%+v", h.fleet)
			h.decide()
			for i := range h.sets {
				h.obey(i)
				h.join(i)
			}
		}
	})
}

// TestSurplusCountsForNoOtherMachine: an available machine of a set with a surplus may be among those that the set has
// chosen for deletion. So no old machine is removed, and none is selected, because of it. The reason names the set.
// Invariants: P7
func TestSurplusCountsForNoOtherMachine(t *testing.T) {
	sets := []rollout.Set{
		{Name: "old", Spec: 1, Actual: 1, Available: 1, Selectable: 1},
		{Name: "new", New: true, Spec: 1, Actual: 5, Available: 1},
	}
	f := rollout.Fleet{Replicas: 1, Bounds: rollout.Bounds{Surge: 1}, Sets: sets}
	waits := rollout.Why{Reason: rollout.ReasonRemoval, Set: "new", Count: 4}
	orders, why := rollout.Step(f, nil)
	require.Empty(t, orders)
	require.Equal(t, waits, why)
	orders, why = rollout.Resize(f, nil)
	require.Empty(t, orders, "Resize orders nothing either")
	require.Equal(t, waits, why)
	f.Replicas = 2
	f.Bounds = rollout.Bounds{Unavailable: 1}
	orders, selects, why := rollout.InPlace(f, nil, nil)
	require.Empty(t, orders)
	require.Empty(t, selects)
	require.Equal(t, waits, why)

	f.Replicas = 1
	f.Bounds = rollout.Bounds{Surge: 1}
	f.Sets[1].Actual = 1
	orders, _ = rollout.Step(f, nil)
	require.Len(t, orders, 1, "without the surplus an old machine is removed")
	f.Sets[1].Actual, f.Sets[1].Accounted = 5, 4
	orders, _ = rollout.Step(f, nil)
	require.Len(t, orders, 1, "a surplus that costs no available machine does not matter")
}

// TestOldSetKeepsMachines: if a machine has failed, an old set keeps one that it was ordered to remove. Until the
// set has observed that, no other machine is removed because of the kept one.
func TestOldSetKeepsMachines(t *testing.T) {
	f := rollout.Fleet{Replicas: 10, Bounds: rollout.Bounds{Surge: 2, Unavailable: 1}, Sets: []rollout.Set{
		{Name: "old-1", Spec: 3, Actual: 3, Available: 2},
		{Name: "old-2", Spec: 5, Actual: 7, Available: 7},
		{Name: "new", New: true, Spec: 2, Actual: 2, Available: 1},
	}}
	orders, _ := rollout.Step(f, nil)
	require.NotEmpty(t, orders)
	var kept rollout.Scale
	for _, order := range orders {
		if order.Name == "old-2" {
			kept = order
		}
	}
	require.EqualValues(t, 6, kept.To, "%+v", orders)
	require.Equal(t, "8 of 10 machines available, floor is 9: 1 old machine that had to go may stay", kept.Why.String())

	require.EqualValues(t, 1, find(carriedOut(f, orders), "old-2").Behind, "it may be removing two by its size of 5")
}

// TestRaisedSetsCountAsSmallerUntilObserved: a set that was raised and has not observed that may still be removing
// machines, so no other machine is removed because of them.
func TestRaisedSetsCountAsSmallerUntilObserved(t *testing.T) {
	f := rollout.Fleet{Replicas: 10, Bounds: rollout.Bounds{Surge: 1, Unavailable: 1}, Sets: []rollout.Set{
		{Name: "old", Spec: 6, Actual: 6, Available: 6, Behind: 2},
		{Name: "new", New: true, Spec: 5, Actual: 5, Available: 4},
	}}
	orders, why := rollout.Step(f, nil)
	require.Empty(t, orders)
	require.Equal(t, rollout.Why{Reason: rollout.ReasonUnseen, Set: "old", Count: 2}, why)
	require.Equal(t, "set old may still be removing 2 machines: waiting for it to observe its new size", why.String())
	f.Sets[0].Behind = 0
	orders, _ = rollout.Step(f, nil)
	require.Len(t, orders, 1)
	require.EqualValues(t, 5, orders[0].To)
}

// markedFleets draws fleets in which a scaler has chosen machines for deletion.
func markedFleets() *rapid.Generator[rollout.Fleet] {
	return rapid.Custom(func(t *rapid.T) rollout.Fleet {
		f := fleets().Draw(t, "fleet")
		for i := range f.Sets {
			f.Sets[i].Chosen = rapid.SampledFrom([]int32{0, 0, 1, 2, 3, -1, 1 << 30}).Draw(t, "marked")
		}
		return f
	})
}

// TestP20StepRemovesChosenMachines: Step orders the same sizes as the oracle, which removes chosen machines first, and
// keeps the bounds.
// Invariants: P20
func TestP20StepRemovesChosenMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := markedFleets().Draw(t, "marked fleet")
		orders, _ := rollout.Step(f, nil)
		require.Empty(t, disagreement(f, orders))
		require.NoError(t, rollout.Check(f, orders), "P7")
	})
}

// TestP20ChosenMachinesGoFromTheSetThatHasThem: if all machines are available and the floor permits it, each set is
// lowered by the number of its chosen machines, even if R + S machines or fewer are ordered.
func TestP20ChosenMachinesGoFromTheSetThatHasThem(t *testing.T) {
	for _, chosen := range []int{0, 1} {
		f := rollout.Fleet{Replicas: 9, Bounds: rollout.Bounds{Surge: 1, Unavailable: 1}, Sets: []rollout.Set{
			{Name: "old", Spec: 6, Actual: 6, Available: 6}, {Name: "new", New: true, Spec: 4, Actual: 4, Available: 4},
		}}
		f.Sets[chosen].Chosen = 1
		orders, _ := rollout.Step(f, nil)
		size := map[string]int32{"old": 6, "new": 4}
		for _, order := range orders {
			size[order.Name] = order.To
			if order.Name == f.Sets[chosen].Name {
				require.Equal(t, rollout.ReasonMarked, order.Why.Reason)
				require.Contains(t, order.Why.String(), "1 chosen by a scaler")
			}
		}
		require.Less(t, size[f.Sets[chosen].Name], f.Sets[chosen].Spec)
		if chosen == 1 {
			require.EqualValues(t, 3, size["new"], "with a larger size, the chosen machine would stay")
		}
	}
}

// TestP20ResizeRemovesChosenMachines: in Resize the set that would grow is lowered by its chosen machines, and not
// raised again.
func TestP20ResizeRemovesChosenMachines(t *testing.T) {
	f := rollout.Fleet{Replicas: 8, Bounds: rollout.Bounds{Surge: 2, Unavailable: 1}, Sets: []rollout.Set{
		{Name: "old", Spec: 5, Actual: 5, Available: 5}, {Name: "new", New: true, Spec: 4, Actual: 4, Available: 4, Chosen: 1},
	}}
	orders, _ := rollout.Resize(f, nil)
	require.Len(t, orders, 1)
	require.Equal(t, "new", orders[0].Name)
	require.EqualValues(t, 3, orders[0].To)
	f.Replicas = 9
	orders, _ = rollout.Resize(f, nil)
	require.Empty(t, orders, "R machines are ordered, so choices do not count")
}

// TestP20ChosenMachinesOfASetAboveReplicas: a set that is lowered to R anyway is not lowered further because of its
// chosen machines.
func TestP20ChosenMachinesOfASetAboveReplicas(t *testing.T) {
	f := rollout.Fleet{Replicas: 8, Bounds: rollout.Bounds{Unavailable: 2}, Sets: []rollout.Set{
		{Name: "new", New: true, Spec: 10, Actual: 10, Available: 10, Chosen: 2},
	}}
	for _, decide := range []func(rollout.Fleet, []rollout.Scale) ([]rollout.Scale, rollout.Why){rollout.Step, rollout.Resize, rollout.Recreate} {
		orders, _ := decide(f, nil)
		require.Len(t, orders, 1)
		require.EqualValues(t, 8, orders[0].To)
	}
}

// TestP20WhyCountsChosenMachines: in the reason of an order, Share is the number of chosen machines.
// Invariants: P20
func TestP20WhyCountsChosenMachines(t *testing.T) {
	f := rollout.Fleet{Replicas: 4, Bounds: rollout.Bounds{Surge: 1, Unavailable: 1}, Sets: []rollout.Set{
		{Name: "old", Spec: 6, Actual: 6, Available: 6, Chosen: 1}, {Name: "new", New: true, Spec: 4, Actual: 4, Available: 4},
	}}
	orders, _ := rollout.Step(f, nil)
	require.Equal(t, "old", orders[0].Name)
	require.Equal(t, rollout.ReasonMarked, orders[0].Why.Reason)
	require.Greater(t, orders[0].Why.Count, int64(1))
	require.EqualValues(t, 1, orders[0].Why.Share, "%s", orders[0].Why)
}
