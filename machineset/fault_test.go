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

// chaos is a world in which everything goes wrong: there are two processes at once with stale caches. Calls
// fail, their answers are lost, or they take effect late. Processes die between any two calls. Machines are
// deleted or broken by others.
type chaos struct {
	*rapid.T
	w         *world
	processes []*process
	policy    *machineset.Policy
	log       []string

	created   int
	allowance int                  // how many may be created: the replicas at first, and one for each machine lost
	strict    bool                 // the set's size never changes, so there are never more active machines
	names     map[string]int       // how many machines have had each name
	reserved  map[string]time.Time // when each name was given out
	faultsOff bool
}

func newChaos(t *rapid.T, replicas int32) *chaos {
	s := &chaos{T: t, w: newWorld(newSet(replicas)), policy: machineset.DefaultPolicy(), strict: true}
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

func (s *chaos) sayf(format string, args ...any) {
	line := fmt.Sprintf("%s %s", s.w.now.Sub(morning), fmt.Sprintf(format, args...))
	s.log = append(s.log, line)
}

func (s *chaos) failf(format string, args ...any) {
	s.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(s.log, "\n"))
}

func (s *chaos) fault(verb string) fault {
	if s.faultsOff {
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

// onCreated checks P12 and P17 for each machine that is created.
func (s *chaos) onCreated(m *machine.Machine) {
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
		s.allowance++ // it was lost while another create under its name was in flight
	}
	if s.created > s.allowance {
		s.failf("P12: %d machines created, only %d were ever missing", s.created, s.allowance)
	}
	active := s.w.active()
	if s.strict && !s.cameBack(m) && len(slices.DeleteFunc(active, s.cameBack)) > int(s.w.set.Spec.Replicas) {
		s.failf("P12: %d active machines in a set of %d", len(active), s.w.set.Spec.Replicas)
	}
}

// cameBack reports whether a machine has the name of one that was lost while another create under this name
// was in flight. The library can't prevent that.
func (s *chaos) cameBack(m *machine.Machine) bool { return s.names[m.Name] > 1 }

// check fails if a plan does what no plan may do.
func (s *chaos) check(o *machineset.Observation, plan machineset.Plan) {
	if fault := planFault(o, &plan); fault != "" {
		s.failf("%s", fault)
	}
	if write, ok := plan.Write.(*machineset.Update); ok {
		old, next := o.Set.Instructions.Reservation, write.Set.Instructions.Reservation
		if next.Settled < old.Settled || next.Reserved < old.Reserved || next.Settled > next.Reserved {
			s.failf("P17: the reservation went from %+v to %+v", old, next)
		}
		if o.Set.Version == s.w.set.Version { // otherwise the write will fail
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

// checkAge fails if a deletion is issued too long after the live read that it was decided on.
func (s *chaos) checkAge(o *machineset.Observation) {
	if age := s.w.now.Sub(o.Read.Ended); age < 0 || age >= 10*time.Second {
		s.failf("P8: deleting on a live read that ended %s ago", age)
	}
}

// disturbMachine changes one machine as others do: its controller, a user, or the provider.
func (s *chaos) disturbMachine() {
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
		s.w.removeDeleted()
	}
}

// randomStep does one thing: a step of a process, a wait, a crash, a change of a machine, or one of more.
func (s *chaos) randomStep(more ...func()) {
	n := rapid.IntRange(0, 19+len(more)).Draw(s.T, "step")
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
		s.disturbMachine()
	default:
		more[n-20]()
	}
}

func (s *chaos) step(p *process) {
	p.step()
	if p.err != nil {
		s.failf("P11: %v", p.err)
	}
}

// endFaults ends all faults. One process goes on with fresh caches, until it has nothing left to do.
func (s *chaos) endFaults() {
	s.faultsOff = true
	p := s.processes[0]
	p.die()
	p.cached = nil
	s.w.advance(time.Second) // a machine that joins in the second in which others failed would not end the backoff
	for round := 0; ; round++ {
		if round == 100 {
			s.failf("not settled after 100 rounds: %+v", p.wait)
		}
		version := s.w.version
		s.w.removeDeleted()
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

// requireSettled requires that the set has exactly the machines that it should have, and says so.
func (s *chaos) requireSettled() {
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

// TestNeverTwice checks a set whose size stays the same: no faults lead to more machines than its size, and
// once they stop it has exactly as many.
// Invariants: P8 P12 P17
func TestNeverTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newChaos(t, int32(rapid.IntRange(0, 9).Draw(t, "replicas")))
		for range rapid.IntRange(0, 300).Draw(t, "acts") {
			s.randomStep()
		}
		s.endFaults()
		s.requireSettled()
	})
}

// TestNeverTwiceWhileSetChanges is TestNeverTwice for a set that is scaled, frozen and given orphans, and
// whose template and labels of machines change, while faults occur.
// Invariants: P12
func TestNeverTwiceWhileSetChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newChaos(t, int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
		s.strict = false
		for range rapid.IntRange(0, 300).Draw(t, "acts") {
			s.randomStep(s.scale, s.freeze, s.orphan, s.relabel, s.template)
		}
		for _, p := range s.processes {
			p.frozen = false
		}
		s.endFaults()
		s.requireSettled()
		for _, m := range s.w.active() {
			require.Equal(t, s.w.set.Spec.Template.Spec.NodeTemplate, m.Spec.NodeTemplate)
		}
	})
}

// TestDeletionUnderFaults deletes a set while faults occur. From then on it creates nothing; only creates in
// flight may still take effect. When the set is gone, no machine of it is left, and none appears later, except
// under names that come back (see cameBack).
func TestDeletionUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newChaos(t, int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
		s.strict = false
		for range rapid.IntRange(0, 150).Draw(t, "acts") {
			s.randomStep(s.scale)
		}
		if len(s.w.set.Finalizers) == 0 {
			t.Skip("no process has seen the set")
		}
		s.w.edit(func(set *machineset.Set) { set.DeletedAt = s.w.now.Truncate(time.Second) })
		for range rapid.IntRange(0, 100).Draw(t, "more acts") {
			if s.w.set != nil {
				s.randomStep()
			}
		}
		s.endFaults()
		require.Nil(t, s.w.set)
		s.w.advance(time.Hour)
		require.Empty(t, slices.DeleteFunc(s.w.all(), s.cameBack), strings.Join(s.log, "\n"))
	})
}

func (s *chaos) scale() {
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

// giveNames reserves names in the write that resizes the set, as its deployment may. It does so only if all
// earlier names became machines, and may reserve more than are needed.
func (s *chaos) giveNames(set *machineset.Set) {
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

func (s *chaos) freeze() {
	frozen := rapid.Bool().Draw(s.T, "frozen")
	s.sayf("frozen: %v", frozen)
	for _, p := range s.processes {
		p.frozen = frozen
		if p.o != nil {
			p.o.Frozen = frozen
		}
	}
}

func (s *chaos) orphan() {
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

func (s *chaos) relabel() {
	active := s.w.active()
	if len(active) > 0 {
		name := rapid.SampledFrom(active).Draw(s.T, "relabelled").Name
		s.sayf("%s is relabelled", name)
		s.w.change(name, func(m *machine.Machine) { m.Labels["pool"] = "none" })
	}
}

func (s *chaos) template() {
	zone := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(s.T, "zone")
	s.sayf("template's zone is %s", zone)
	s.w.edit(func(set *machineset.Set) { set.Spec.Template.Spec.NodeTemplate.Labels["zone"] = zone })
}

// TestP7NoReplacementWhileDeletionRefused: if the deletion of a failed machine was refused, or got no answer,
// the machine still exists, so no other is created in its place.
// Invariants: P7
func TestP7NoReplacementWhileDeletionRefused(t *testing.T) {
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
	require.Equal(t, int64(1), plan.Write.(*machineset.Update).Set.Instructions.Reservation.Reserved, "one replacement, for the machine that is being deleted")
}

// running returns the world of a set whose machines all run, and a process of which each call takes the time each.
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

// TestSurplusIsDeletedBeforeUpdates: if a set has too many machines and its node template has changed, the surplus
// is deleted first, and only the other machines are updated.
func TestSurplusIsDeletedBeforeUpdates(t *testing.T) {
	w, p := running(t, 5, 13*time.Second)
	w.edit(func(s *machineset.Set) {
		s.Spec.Replicas, s.Spec.Template.Spec.NodeTemplate.Labels = 2, map[string]string{"team": "a"}
	})
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

// TestDeletionsRestOnAFreshLiveRead: a set is scaled up again while it deletes its surplus, one by one. It
// keeps the machines that it has not deleted yet, except for those deleted within DeleteWithin.
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
	require.LessOrEqual(t, deleted, 3, "the first one, and those issued within 10 s")
	p.fault, p.trace = nil, nil
	require.True(t, p.run())
	require.Len(t, w.active(), 9)
}

// TestLiveReadExpiresForDeletions: a live read allows no deletion from DeleteWithin after its end on. A live
// read that ended in the future allows none either.
// Invariants: P7
func TestLiveReadExpiresForDeletions(t *testing.T) {
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
	require.Len(t, decide(time.Hour).Delete, 1, "if the end of the read is not known, it does not expire")
}

// TestNamesOfEarlierPassesNeedAFreshLiveRead: names that were reserved before the pass are used without another
// write of the set, so only a fresh live read shows that these machines are still wanted.
// Invariants: P12
func TestNamesOfEarlierPassesNeedAFreshLiveRead(t *testing.T) {
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
