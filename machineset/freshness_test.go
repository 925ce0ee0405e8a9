package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// running is a world of a set with machines that all run, and a process that takes its time for
// each call.
func running(t *testing.T, machines int32, each time.Duration) (*world, *process) {
	t.Helper()
	w := newWorld(newSet(machines))
	p := newProcess(w, machineset.DefaultPolicy())
	require.True(t, p.run())
	for _, m := range w.all() {
		w.phase(m.Name, machine.PhaseRunning)
	}
	w.advance(time.Minute)
	require.True(t, p.run())
	p.fault = func(string) fault {
		w.advance(each)
		return fine
	}
	return w, p
}

// TestMachinesAboutToGoAreNotPushedTo: of a set that has too many machines, and whose marks have
// changed, the surplus is deleted at once, and only what stays is changed.
func TestMachinesAboutToGoAreNotPushedTo(t *testing.T) {
	w, p := running(t, 5, 13*time.Second)
	w.edit(func(s *machineset.Set) { s.Spec.Replicas, s.Instructions.Marks = 2, machine.RolloutMarks{Avoid: true} })
	began := w.now
	var pushed, deleted []string
	p.trace = func(verb, name, _ string) {
		switch verb {
		case "push":
			pushed = append(pushed, name)
		case "delete":
			if len(deleted) == 0 {
				require.Less(t, w.now.Sub(began), 13*time.Second, "nothing comes before the first deletion")
			}
			deleted = append(deleted, name)
		}
	}
	require.True(t, p.run())
	require.Len(t, deleted, 3)
	require.Len(t, pushed, 2)
	require.NotSubset(t, deleted, pushed)
}

// TestDeletionsRestOnAFreshLiveRead: a set whose size is back while its surplus is being deleted,
// one by one, keeps what has not gone yet.
// Invariants: P7
func TestDeletionsRestOnAFreshLiveRead(t *testing.T) {
	w, p := running(t, 9, 4*time.Second)
	w.edit(func(s *machineset.Set) { s.Spec.Replicas = 0 })
	deleted, back := 0, time.Time{}
	p.trace = func(verb, _, _ string) {
		if verb != "delete" {
			return
		}
		if deleted++; deleted == 1 {
			w.edit(func(s *machineset.Set) { s.Spec.Replicas = 9 })
			back = w.now
			return
		}
		require.Less(t, w.now.Sub(back), machineset.DeleteWithin)
	}
	require.True(t, p.run())
	require.LessOrEqual(t, deleted, 3, "the first one, and what is issued in 10 s")
	p.fault, p.trace = nil, nil
	require.True(t, p.run())
	require.Len(t, w.active(), 9)
}

// TestLiveReadsAllowDeletionsForAWhile: from DeleteWithin after its end on, a live read allows no
// deletion, and neither does one that ended in the future.
// Invariants: P7
func TestLiveReadsAllowDeletionsForAWhile(t *testing.T) {
	at := morning
	set := newSet(0)
	set.Finalizers = []string{machineset.Finalizer}
	m := &machine.Machine{}
	m.Key, m.UID, m.Labels = set.Key, "machine-1", set.Spec.Template.Labels
	m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID}
	m.Spec = set.Spec.Template.Spec.Clone()
	m.Status.Phase = machine.PhaseRunning
	o := &machineset.Observation{Set: set, Machines: []*machine.Machine{m}, Read: decision.Freshness{Began: at, Ended: at}}
	decide := func(after time.Duration) machineset.Plan {
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), at.Add(after))
		require.NoError(t, err)
		return plan
	}
	plan := decide(machineset.DeleteWithin - 1)
	require.Len(t, plan.Delete, 1)
	require.Equal(t, at.Add(machineset.DeleteWithin), plan.Until)
	require.True(t, decide(machineset.DeleteWithin).ReadLive)
	require.True(t, decide(-time.Second).ReadLive, "the clock was set back")
	o.Read.Ended = time.Time{}
	require.Len(t, decide(time.Hour).Delete, 1, "it is not known when it ended")
}

// TestNamesOfOthersNeedAFreshLiveRead: names that were given before the pass are used without a
// write, so nothing but a fresh live read says that they are still wanted.
// Invariants: P12
func TestNamesOfOthersNeedAFreshLiveRead(t *testing.T) {
	at := morning
	set := newSet(1)
	set.Finalizers = []string{machineset.Finalizer}
	set.Instructions.Reservation = machineset.Reservation{Reserved: 1, At: at}
	o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: at, Ended: at}}
	for after, fresh := range map[time.Duration]bool{
		0: true, machineset.DeleteWithin - 1: true, machineset.DeleteWithin: false, -time.Second: false,
	} {
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), at.Add(after))
		require.NoError(t, err)
		require.Equal(t, fresh, len(plan.Create) == 1, "%s", after)
		require.Equal(t, !fresh, plan.ReadLive, "%s", after)
	}
}
