package machineset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// siege is a world in which everything goes wrong: two processes at once with
// stale caches, calls that fail, succeed unheard or come in late, processes
// that die between any two calls, and machines that others delete or break.
type siege struct {
	*rapid.T
	w         *world
	processes []*process
	policy    *machineset.Policy
	log       []string

	created   int
	allowance int // replicas first missing, plus what was lost since
	strict    bool
	names     map[string]int       // how many machines have had a name
	reserved  map[string]time.Time // when each name was given out
	peaceful  bool
}

func newSiege(t *rapid.T, replicas int32) *siege {
	s := &siege{T: t, w: newWorld(newSet(replicas)), policy: machineset.DefaultPolicy(), strict: true}
	s.policy.Burst = int32(rapid.IntRange(1, 6).Draw(t, "burst"))
	if rapid.Bool().Draw(t, "settles late") {
		s.policy.SettleWithin = time.Duration(rapid.IntRange(1, int(s.policy.RequestTimeout/time.Second)).Draw(t, "settle within")) * time.Second
	}
	s.names, s.reserved = map[string]int{}, map[string]time.Time{}
	s.allowance = int(replicas)
	s.w.created = s.onCreated
	s.w.lost = func(m *machine.Machine) {
		s.allowance++
		s.sayf("lost %s", m.Name)
	}
	for i := range 2 {
		p := newProcess(s.w, s.policy)
		p.floor = 0
		p.cached = func(oldest, newest int) int {
			if rapid.Bool().Draw(t, "fresh") {
				return newest
			}
			return rapid.IntRange(oldest, newest).Draw(t, "snapshot")
		}
		p.delay = func() time.Duration {
			return time.Duration(rapid.IntRange(0, int(s.policy.RequestTimeout/time.Second)-1).Draw(t, "late by")) * time.Second
		}
		p.fault = s.fault
		p.trace = func(verb, name, why string) { s.sayf("process %d: %s %s: %s", i, verb, name, why) }
		p.decided = s.check
		p.issued = s.checkAge
		s.processes = append(s.processes, p)
	}
	return s
}

func (s *siege) sayf(format string, args ...any) {
	line := fmt.Sprintf("%s %s", s.w.now.Sub(morning), fmt.Sprintf(format, args...))
	s.log = append(s.log, line)
}

func (s *siege) failf(format string, args ...any) {
	s.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(s.log, "\n"))
}

func (s *siege) fault(verb string) fault {
	if s.peaceful {
		return fine
	}
	n := rapid.IntRange(0, 99).Draw(s.T, "fault")
	kinds := []fault{refuse, lose, crash, crashAfter}
	if verb == "create" {
		kinds = append(kinds, late, lateCrash, late, lateCrash)
	}
	if n >= 5*len(kinds) {
		return fine
	}
	s.sayf("the next call meets fault %d", kinds[n/5])
	return kinds[n/5]
}

// onCreated holds P12 and P17 to every machine that is created.
func (s *siege) onCreated(m *machine.Machine) {
	s.created++
	s.sayf("created %s", m.Name)
	at, known := s.reserved[m.Name]
	if !known {
		s.failf("P17: %s was created under a name that nobody reserved", m.Name)
	}
	s.names[m.Name]++
	if s.cameBack(m) {
		if done := at.Add(2*s.policy.RequestTimeout + time.Second); !s.w.now.Before(done) {
			s.failf("P17: name %s, reserved at %s, came back at %s", m.Name, at.Sub(morning), s.w.now.Sub(morning))
		}
		s.allowance++ // it was there and was lost while another create of it was under way
	}
	if s.created > s.allowance {
		s.failf("P12: %d machines created, only %d were ever missing", s.created, s.allowance)
	}
	active := s.w.active()
	if s.strict && !s.cameBack(m) && len(slices.DeleteFunc(active, s.cameBack)) > int(s.w.set.Spec.Replicas) {
		s.failf("P12: %d active machines in a set of %d", len(active), s.w.set.Spec.Replicas)
	}
}

// cameBack reports whether a machine has the name of one that was lost while
// another create of it was under way: what the library can't prevent.
func (s *siege) cameBack(m *machine.Machine) bool { return s.names[m.Name] > 1 }

// check holds each plan to what no plan may do.
func (s *siege) check(o *machineset.Observation, plan machineset.Plan) {
	if fault := improper(o, &plan); fault != "" {
		s.failf("%s", fault)
	}
	if write, ok := plan.Write.(*machineset.Update); ok {
		old, next := o.Set.Instructions.Reservation, write.Set.Instructions.Reservation
		if next.Settled < old.Settled || next.Reserved < old.Reserved || next.Settled > next.Reserved {
			s.failf("P17: the reservation went from %+v to %+v", old, next)
		}
		if o.Set.Version == s.w.set.Version { // else it will fail
			for n := old.Reserved + 1; n <= next.Reserved; n++ {
				s.reserved[o.Set.MachineName(n)] = next.At
			}
		}
	}
	for _, order := range plan.Create {
		if at := s.reserved[order.Machine.Name]; !s.w.now.Before(at.Add(s.policy.RequestTimeout)) {
			s.failf("P17: %s ordered at %s, reserved at %s", order.Machine.Name, s.w.now.Sub(morning), at.Sub(morning))
		}
	}
}

// checkAge holds a deletion to the age of what it was decided on.
func (s *siege) checkAge(o *machineset.Observation) {
	if age := s.w.now.Sub(o.Read.Ended); age < 0 || age >= 10*time.Second {
		s.failf("P8: deleting on a live read that ended %s ago", age)
	}
}

// disturb lets others do something.
func (s *siege) disturb() {
	all := s.w.all()
	if len(all) == 0 {
		return
	}
	name := rapid.SampledFrom(all).Draw(s.T, "machine").Name
	switch rapid.IntRange(0, 6).Draw(s.T, "event") {
	case 0, 1:
		if s.w.machines[name].Status.Phase != machine.PhaseFailed {
			s.sayf("%s runs", name)
			s.w.phase(name, machine.PhaseRunning)
		}
	case 2:
		s.sayf("%s fails", name)
		s.w.phase(name, machine.PhaseFailed)
	case 3:
		s.sayf("%s is deleted by hand", name)
		s.w.deleteMachine(name, s.w.machines[name].UID)
	case 4:
		s.sayf("%s is taken away", name)
		s.w.vanish(name)
	default:
		s.sayf("the deleted machines go")
		s.w.finish()
	}
}

// act lets one of all that can happen happen.
func (s *siege) act(more ...func()) {
	n := rapid.IntRange(0, 19+len(more)).Draw(s.T, "act")
	switch {
	case n < 12:
		s.step(s.processes[0])
	case n < 15:
		s.step(s.processes[1])
	case n == 15:
		s.w.advance(time.Duration(rapid.IntRange(0, 400).Draw(s.T, "seconds")) * time.Second)
	case n == 16:
		s.w.advance(time.Duration(rapid.IntRange(0, 9999).Draw(s.T, "ms")) * time.Millisecond)
	case n == 17:
		i := rapid.IntRange(0, 1).Draw(s.T, "process")
		s.sayf("process %d dies", i)
		s.processes[i].die()
		s.processes[i].floor = max(0, len(s.w.history)-30)
	case n < 20:
		s.disturb()
	default:
		more[n-20]()
	}
}

func (s *siege) step(p *process) {
	p.step()
	if p.err != nil {
		s.failf("P11: %v", p.err)
	}
}

// peace ends all faults: from now on one process works with fresh caches, and
// must settle with the set as it should be.
func (s *siege) peace() {
	s.peaceful = true
	p := s.processes[0]
	p.die()
	p.cached = nil
	s.w.advance(time.Second) // none joins in the second in which others failed: that would not end a row of failures
	for round := 0; ; round++ {
		if round == 100 {
			s.failf("no rest after 100 rounds: %+v", p.wait)
		}
		version := s.w.version
		s.w.finish()
		for _, m := range s.w.active() {
			if m.Status.Phase != machine.PhaseRunning {
				s.w.phase(m.Name, machine.PhaseRunning)
			}
		}
		if !p.run() {
			s.failf("a pass without an end")
		}
		if s.w.set == nil || s.w.version == version && p.wait.At.Equal(s.w.now.Add(s.policy.Resync)) {
			break
		}
		if at := p.wait.At; at.After(s.w.now) {
			s.w.advance(at.Sub(s.w.now))
		}
	}
}

func (s *siege) settled() {
	set := s.w.set
	require.Len(s, s.w.active(), int(set.Spec.Replicas), strings.Join(s.log, "\n"))
	require.Equal(s, set.Instructions.Reservation.Reserved, set.Instructions.Reservation.Settled)
	require.Equal(s, set.Spec.Replicas, set.Status.Replicas)
	require.Equal(s, set.Spec.Replicas, set.Status.Ready)
	require.Equal(s, set.Spec.Replicas, set.Status.Available)
	require.Equal(s, set.Spec.Replicas, set.Status.FullyLabeled)
	require.Equal(s, set.Generation, set.Status.ObservedGeneration)
	require.Empty(s, set.Status.Conditions)
}

// TestNeverTwice is P12 and P17 for a set whose size stays as it is: no faults
// lead to more machines than it asks for, and once they stop it has exactly
// as many.
// Invariants: P8 P12 P17
func TestNeverTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSiege(t, int32(rapid.IntRange(0, 9).Draw(t, "replicas")))
		for range rapid.IntRange(0, 300).Draw(t, "acts") {
			s.act()
		}
		s.peace()
		s.settled()
	})
}

// TestNeverTwiceWhileItsOwnerActs is P12, P17 and P25 for a set that is scaled,
// frozen and given orphans in the middle of everything.
// Invariants: P12
func TestNeverTwiceWhileItsOwnerActs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSiege(t, int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
		s.strict = false
		for range rapid.IntRange(0, 300).Draw(t, "acts") {
			s.act(s.scale, s.freeze, s.orphan, s.relabel, s.template)
		}
		for _, p := range s.processes {
			p.frozen = false
		}
		s.peace()
		s.settled()
		for _, m := range s.w.active() {
			require.Equal(t, s.w.set.Spec.Template.Spec.NodeTemplate, m.Spec.NodeTemplate)
		}
	})
}

// TestDeletionUnderFaults is P25 and P12 for a set that is deleted at some
// time: nothing is created from then on but what was under way, and when it is
// gone nothing of it is left or ever comes in, but for names that come back.
func TestDeletionUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSiege(t, int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
		s.strict = false
		for range rapid.IntRange(0, 150).Draw(t, "acts") {
			s.act(s.scale)
		}
		if len(s.w.set.Finalizers) == 0 {
			t.Skip("the set was never seen")
		}
		s.w.edit(func(set *machineset.Set) { set.DeletedAt = s.w.now.Truncate(time.Second) })
		for range rapid.IntRange(0, 100).Draw(t, "more acts") {
			if s.w.set != nil {
				s.act()
			}
		}
		s.peace()
		require.Nil(t, s.w.set)
		s.w.advance(time.Hour)
		require.Empty(t, slices.DeleteFunc(s.w.all(), s.cameBack), strings.Join(s.log, "\n"))
	})
}

func (s *siege) scale() {
	replicas := int32(rapid.IntRange(0, 9).Draw(s.T, "new replicas"))
	s.sayf("scaled to %d", replicas)
	s.allowance += int(max(0, replicas-s.w.set.Spec.Replicas))
	s.w.edit(func(set *machineset.Set) {
		set.Spec.Replicas = replicas
		if rapid.Bool().Draw(s.T, "with names") {
			s.giveNames(set)
		}
	})
}

// giveNames does what a set's deployment may: it gives out names in the write that
// resizes the set, if all before became machines, as a live read tells. It may
// give out more than are needed.
func (s *siege) giveNames(set *machineset.Set) {
	r := &set.Instructions.Reservation
	for n := r.Settled + 1; n <= r.Reserved; n++ {
		if m := s.w.machines[set.MachineName(n)]; m == nil || !m.OwnedBy(set.UID) {
			return
		}
	}
	*r = r.Next(rapid.Int64Range(0, 5).Draw(s.T, "names"), s.w.now.Truncate(time.Second))
	for n := r.Settled + 1; n <= r.Reserved; n++ {
		s.reserved[set.MachineName(n)] = r.At
	}
	s.sayf("reservation: %+v", *r)
}

func (s *siege) freeze() {
	frozen := rapid.Bool().Draw(s.T, "frozen")
	s.sayf("frozen: %v", frozen)
	for _, p := range s.processes {
		p.frozen = frozen
		if p.o != nil {
			p.o.Frozen = frozen
		}
	}
}

func (s *siege) orphan() {
	m := &machine.Machine{Meta: object.Meta{
		Key:    object.Key{Namespace: namespace, Name: fmt.Sprintf("orphan-%d", len(s.w.history))},
		Labels: map[string]string{"pool": "web", "tier": "front"}, Finalizers: []string{machine.Finalizer},
	}}
	m.Spec.Class = machine.ClassRef{Name: "large"}
	s.sayf("orphan %s", m.Name)
	s.reserved[m.Name] = s.w.now
	s.allowance++
	s.w.createMachine(m)
}

func (s *siege) relabel() {
	active := s.w.active()
	if len(active) > 0 {
		name := rapid.SampledFrom(active).Draw(s.T, "relabelled").Name
		s.sayf("%s is relabelled", name)
		s.w.change(name, func(m *machine.Machine) { m.Labels["pool"] = "none" })
	}
}

func (s *siege) template() {
	zone := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(s.T, "zone")
	s.sayf("template's zone is %s", zone)
	s.w.edit(func(set *machineset.Set) { set.Spec.Template.Spec.NodeTemplate.Labels["zone"] = zone })
}

// TestP7NoneIsMadeForOneThatStays: a failed machine whose deletion was refused, or of
// which no answer came, is there still: none is made in its place, nor in that of
// one that stops being kept meanwhile (P7).
// Invariants: P7
func TestP7NoneIsMadeForOneThatStays(t *testing.T) {
	o := liveObservation(newSet(2), 2)
	for _, m := range o.Machines {
		m.Status.Phase = machine.PhaseFailed
	}
	o.Refused.Delete = &machine.Outcome{Code: codes.Unknown, Message: "the answer was lost"}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Empty(t, plan.Create)
	if write, is := plan.Write.(*machineset.Update); is {
		require.Equal(t, o.Set.Instructions.Reservation, write.Set.Instructions.Reservation)
	}
	deleted := *o.Machines[0]
	deleted.DeletedAt = morning
	o.Machines[0] = &deleted
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, int64(1), plan.Write.(*machineset.Update).Set.Instructions.Reservation.Reserved, "one for the one that goes")
}

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
