package machineset_test

import (
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

// failAll has every machine fail that does not run, and lets those go that are
// on their way out.
func (s *stage) failAll() {
	s.w.finish()
	for _, m := range s.w.all() {
		if !m.Ready() && !m.Deleted() && m.Status.Phase != machine.PhaseFailed {
			s.w.phase(m.Name, machine.PhaseFailed)
		}
	}
}

// round lets the creation timeout pass, and all that do not run fail.
func (s *stage) round(what string) {
	s.t.Helper()
	s.say("%s", what)
	s.w.advance(20 * time.Minute)
	s.failAll()
	s.pass()
}

// wait lets time pass to when the set looks again.
func (s *stage) wait() {
	s.t.Helper()
	s.after(s.p.wait.At.Sub(s.w.now))
}

// TestChurnEqual: an instant is the same in any location.
func TestChurnEqual(t *testing.T) {
	at := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	a := machineset.CrashLoop{Rounds: 2, UpTo: 3, Last: at, Missing: 1}
	b := a
	b.Last = at.In(time.FixedZone("here", 3600))
	require.True(t, a.Equal(&b))
	b.Last = at.Add(time.Second)
	require.False(t, a.Equal(&b))
	b = a
	b.Rounds++
	require.False(t, a.Equal(&b))
}

// TestChurn tells how machines that never run are replaced ever more slowly.
func TestChurn(t *testing.T) {
	story(t, "never-run-again-and-again", 2, func(s *stage) {
		s.pass()
		s.round("neither has come to run: replaced at once")
		s.round("nor their replacements")
		s.wait()
		s.wait()
		s.round("nor these")
		s.wait()
		s.wait()
		s.say("at last one runs")
		s.w.finish()
		s.w.advance(time.Minute)
		s.run(s.name(7))
		s.pass()
		s.round("the other one does not: the count begins again")
	})
	story(t, "never-run-while-one-is-lost-that-ran", 3, func(s *stage) {
		s.settled()
		s.say("one is deleted by hand")
		s.w.deleteMachine(s.name(1), s.w.machines[s.name(1)].UID)
		s.pass()
		s.round("what came in its place does not run")
		s.round("nor the next one")
		s.say("another is lost that had run, and is replaced at once")
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.after(10 * time.Second)
	})
	story(t, "never-run-and-scaled-up", 1, func(s *stage) {
		s.pass()
		s.round("it has not come to run")
		s.round("nor has the next")
		s.scale(3)
		s.say("two more are wanted: they are made at once, the one that failed waits")
		s.after(10 * time.Second)
		s.wait()
		s.wait()
	})
	story(t, "never-run-and-scaled-to-zero", 1, func(s *stage) {
		s.pass()
		s.round("it has not come to run")
		s.round("nor has the next")
		s.scale(0)
		s.after(10 * time.Second)
		s.scale(1)
		s.say("a new request is answered at once")
		s.after(10 * time.Second)
	})
	story(t, "never-run-until-the-class-is-corrected", 1, func(s *stage) {
		s.p.inputs = machine.Inputs{Class: 1, Secret: "v1"}
		s.pass()
		s.round("it has not come to run")
		s.round("nor has the next")
		s.p.inputs.Class = 2
		s.say("the class is changed")
		s.after(time.Second)
	})
	story(t, "never-run-and-nobody-remembers", 1, func(s *stage) {
		s.pass()
		s.round("it has not come to run")
		s.w.advance(20 * time.Minute)
		s.failAll()
		s.say("nor has the next, and the process dies as it notes that")
		s.faults("status", crashAfter)
		s.pass()
		s.say("another takes over")
		s.after(time.Second)
		s.wait()
		s.wait()
	})
	story(t, "never-run-in-turns", 2, func(s *stage) {
		s.pass()
		s.w.advance(10 * time.Minute)
		s.say("the first fails")
		s.w.phase(s.name(1), machine.PhaseFailed)
		s.pass()
		s.w.finish()
		s.w.advance(10 * time.Minute)
		s.say("the second, which is as old, fails in the same round")
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.pass()
		s.w.finish()
		s.w.advance(10 * time.Minute)
		s.say("the first replacement fails: that is another")
		s.w.phase(s.name(3), machine.PhaseFailed)
		s.pass()
		s.w.finish()
		s.w.advance(30 * time.Second)
		s.say("and the second one: both wait from now on")
		s.w.phase(s.name(4), machine.PhaseFailed)
		s.pass()
		s.wait()
		s.wait()
	})
	story(t, "class-slowed", 2, func(s *stage) {
		s.p.hold = &machine.ClassBackoff{Class: "small", Zone: "a", Code: codes.ResourceExhausted, Since: s.w.now.Truncate(time.Second), Until: s.w.now.Truncate(time.Second).Add(time.Minute)}
		s.pass()
		s.say("the provider has refused once more")
		hold := *s.p.hold
		hold.Until = hold.Until.Add(2 * time.Minute)
		s.p.hold = &hold
		s.wait()
		s.say("one has a VM, which matters to nobody, and one has not")
		s.w.change(s.name(1), func(m *machine.Machine) { m.Spec.ProviderID = "p://1" })
		s.after(2 * time.Second)
		s.say("so has the other")
		s.w.change(s.name(2), func(m *machine.Machine) { m.Spec.ProviderID = "p://2" })
		s.after(2 * time.Second)
	})
}

// TestChurnDelays: the first replacements are made at once, the next ones after
// a wait that doubles up to its bound, to the second.
func TestChurnDelays(t *testing.T) {
	for rounds, want := range map[int32]time.Duration{
		-1: 0, 0: 0, 1: 0, 2: time.Minute, 3: 2 * time.Minute, 4: 4 * time.Minute, 6: 16 * time.Minute, 7: 30 * time.Minute, 1 << 30: 30 * time.Minute,
	} {
		set := newSet(1)
		set.Finalizers = []string{machineset.Finalizer}
		set.Status.CrashLoop = machineset.CrashLoop{Rounds: rounds, Last: morning, Missing: 1}
		o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: morning}}
		creates := func(at time.Time) bool {
			plan, err := machineset.Decide(o, machineset.DefaultPolicy(), at)
			require.NoError(t, err)
			return plan.Why.Reason == machineset.ReasonReserve
		}
		if want > 0 {
			require.False(t, creates(morning.Add(want+time.Second-1)), rounds)
		}
		require.True(t, creates(morning.Add(want+time.Second)), rounds)
		require.True(t, creates(morning.Add(-31*time.Minute)), "a failure from far ahead is nobody's")
	}
}

// TestChurnIsOff: with CrashLoopBase off no failure delays a replacement.
func TestChurnIsOff(t *testing.T) {
	set := newSet(1)
	set.Finalizers = []string{machineset.Finalizer}
	set.Status.CrashLoop = machineset.CrashLoop{Rounds: 7, Last: morning, Missing: 1}
	o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: morning}}
	for base, creates := range map[time.Duration]bool{0: false, object.Off: true} {
		plan, err := machineset.Decide(o, &machineset.Policy{CrashLoopBase: base}, morning)
		require.NoError(t, err)
		require.Equal(t, creates, plan.Why.Reason == machineset.ReasonReserve, "%s: %s", base, plan.Why)
	}
}

// From any state: with a machine that fails each time, creates stay within
// one a round, and rounds within the delays; killed or stale at any point, the
// count is not forgotten (P12, P26). Once machines run, all are there within the
// longest wait (P3).
// Invariants: P3 P12
func TestChurnIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "machines")
		w := newWorld(newSet(int32(n)))
		p := newProcess(w, machineset.DefaultPolicy())
		made := 0
		w.created = func(*machine.Machine) { made++ }
		p.fault = func(string) fault {
			return []fault{fine, fine, fine, fine, fine, fine, crash, crashAfter, lose, refuse}[rapid.IntRange(0, 9).Draw(t, "fault")]
		}
		step := func(fails bool) {
			require.True(t, p.run())
			w.finish()
			for _, m := range w.all() {
				switch {
				case m.Deleted() || m.Status.Phase == machine.PhaseFailed:
				case fails && w.now.Sub(m.CreatedAt) >= 20*time.Minute:
					w.phase(m.Name, machine.PhaseFailed)
				case !fails && !m.Ready():
					w.phase(m.Name, machine.PhaseRunning)
				}
			}
			w.advance(time.Duration(rapid.IntRange(1, 300).Draw(t, "s")) * time.Second)
		}
		hours := time.Duration(rapid.IntRange(1, 6).Draw(t, "hours")) * time.Hour
		for end := w.now.Add(hours); w.now.Before(end); {
			step(true)
		}
		// Rounds of 20 min with waits of 0, 1, 2, 4, 8, 16, 30, 30 … min between.
		rounds, wait := 1, time.Duration(0)
		for at := 20 * time.Minute; at <= hours; at += 20*time.Minute + wait {
			rounds++
			wait = min(max(2*wait, time.Minute), 30*time.Minute)
		}
		require.LessOrEqual(t, made, n*rounds, "%d machines made in %s", made, hours)
		p.fault = nil
		for end := w.now.Add(50 * time.Minute); w.now.Before(end); {
			step(false)
		}
		require.Len(t, w.active(), n)
		require.Equal(t, machineset.CrashLoop{}, w.set.Status.CrashLoop)
		require.Nil(t, object.FindCondition(w.set.Status.Conditions, machineset.ConditionReplacementSlowed))
	})
}

// P11: any count that storage may hold gets a plan, and the write that notes a
// failure does so once.
// Invariants: P11
func TestAnyChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := newSet(int32(rapid.IntRange(0, 5).Draw(t, "replicas")))
		set.Finalizers = []string{machineset.Finalizer}
		set.Instructions.Reservation = machineset.Reservation{Settled: 5, Reserved: 5, At: morning}
		set.Status.CrashLoop = machineset.CrashLoop{
			Rounds: rapid.Int32().Draw(t, "rounds"), UpTo: rapid.Int64().Draw(t, "up to"), Missing: rapid.Int32().Draw(t, "missing"),
			Last: anyTime(t, "last"), Against: machine.Inputs{Class: int64(rapid.IntRange(0, 1).Draw(t, "class"))},
		}
		o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: morning}, Inputs: machine.Inputs{Class: int64(rapid.IntRange(0, 1).Draw(t, "now"))}}
		for i := range rapid.IntRange(0, 8).Draw(t, "machines") {
			m := anyMachine(t, set, i)
			m.Status.LastOperation.Kind = machine.OperationCreate
			m.Status.JoinedAfter = time.Duration(rapid.IntRange(-1, 1).Draw(t, "joined")) * time.Minute
			o.Machines = append(o.Machines, m)
		}
		noted := 0
		for range 20 {
			plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
			require.NoError(t, err)
			write, ok := plan.Write.(*machineset.UpdateStatus)
			if !ok {
				return
			}
			if plan.Why.Reason == machineset.ReasonFailedBeforeReady || plan.Why.Reason == machineset.ReasonFailedBeforeReadyFirst {
				noted++
			}
			require.LessOrEqual(t, noted, 1)
			set = set.Clone()
			set.Status = write.Status
			o.Set = set
		}
		require.Fail(t, "status writes without end")
	})
}
