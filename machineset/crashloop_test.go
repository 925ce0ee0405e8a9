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

// failAll removes the machines that are being deleted, and sets all that are not ready to Failed.
func (s *scenario) failAll() {
	s.w.removeDeleted()
	for _, m := range s.w.all() {
		if !m.Ready() && !m.Deleted() && m.Status.Phase != machine.PhaseFailed {
			s.w.phase(m.Name, machine.PhaseFailed)
		}
	}
}

// round lets the creation timeout pass, so that all machines fail that are not ready, and makes a pass.
func (s *scenario) round(what string) {
	s.t.Helper()
	s.comment("%s", what)
	s.w.advance(20 * time.Minute)
	s.failAll()
	s.pass()
}

// wait lets time pass until the next decision is due, and makes a pass.
func (s *scenario) wait() {
	s.t.Helper()
	s.after(s.p.wait.At.Sub(s.w.now))
}

// TestCrashLoopEqual: Equal compares times as instants, in any location.
func TestCrashLoopEqual(t *testing.T) {
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

// TestCrashLoop shows that machines that never run are replaced with longer and longer waits.
func TestCrashLoop(t *testing.T) {
	playScenario(t, "never-run-again-and-again", 2, func(s *scenario) {
		s.pass()
		s.round("neither has come to run: replaced at once")
		s.round("nor their replacements")
		s.wait()
		s.wait()
		s.round("nor these")
		s.wait()
		s.wait()
		s.comment("at last one runs")
		s.w.removeDeleted()
		s.w.advance(time.Minute)
		s.markRunning(s.name(7))
		s.pass()
		s.round("the other one does not: the count begins again")
	})
	playScenario(t, "never-run-while-one-is-lost-that-ran", 3, func(s *scenario) {
		s.runAll()
		s.comment("one is deleted by hand")
		s.w.deleteMachine(s.name(1), s.w.machines[s.name(1)].UID)
		s.pass()
		s.round("what came in its place does not run")
		s.round("nor the next one")
		s.comment("another is lost that had run, and is replaced at once")
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.after(10 * time.Second)
	})
	playScenario(t, "never-run-and-scaled-up", 1, func(s *scenario) {
		s.pass()
		s.round("it has not come to run")
		s.round("nor has the next")
		s.scale(3)
		s.comment("two more are wanted: they are made at once, the one that failed waits")
		s.after(10 * time.Second)
		s.wait()
		s.wait()
	})
	playScenario(t, "never-run-and-scaled-to-zero", 1, func(s *scenario) {
		s.pass()
		s.round("it has not come to run")
		s.round("nor has the next")
		s.scale(0)
		s.after(10 * time.Second)
		s.scale(1)
		s.comment("a new request is answered at once")
		s.after(10 * time.Second)
	})
	playScenario(t, "never-run-until-the-class-is-corrected", 1, func(s *scenario) {
		s.p.inputs = machine.Inputs{Class: 1, Secret: "v1"}
		s.pass()
		s.round("it has not come to run")
		s.round("nor has the next")
		s.p.inputs.Class = 2
		s.comment("the class is changed")
		s.after(time.Second)
	})
	playScenario(t, "never-run-and-nobody-remembers", 1, func(s *scenario) {
		s.pass()
		s.round("it has not come to run")
		s.w.advance(20 * time.Minute)
		s.failAll()
		s.comment("nor has the next, and the process dies as it notes that")
		s.faults("status", crashAfter)
		s.pass()
		s.comment("another takes over")
		s.after(time.Second)
		s.wait()
		s.wait()
	})
	playScenario(t, "never-run-in-turns", 2, func(s *scenario) {
		s.pass()
		s.w.advance(10 * time.Minute)
		s.comment("the first fails")
		s.w.phase(s.name(1), machine.PhaseFailed)
		s.pass()
		s.w.removeDeleted()
		s.w.advance(10 * time.Minute)
		s.comment("the second, which is as old, fails in the same round")
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.pass()
		s.w.removeDeleted()
		s.w.advance(10 * time.Minute)
		s.comment("the first replacement fails: that is another")
		s.w.phase(s.name(3), machine.PhaseFailed)
		s.pass()
		s.w.removeDeleted()
		s.w.advance(30 * time.Second)
		s.comment("and the second one: both wait from now on")
		s.w.phase(s.name(4), machine.PhaseFailed)
		s.pass()
		s.wait()
		s.wait()
	})
	playScenario(t, "class-slowed", 2, func(s *scenario) {
		s.p.classBackoff = &machine.ClassBackoff{Class: "small", Zone: "a", Code: codes.ResourceExhausted, Since: s.w.now.Truncate(time.Second), Until: s.w.now.Truncate(time.Second).Add(time.Minute)}
		s.pass()
		s.comment("the provider has refused once more")
		hold := *s.p.classBackoff
		hold.Until = hold.Until.Add(2 * time.Minute)
		s.p.classBackoff = &hold
		s.wait()
		s.comment("one has a VM, which matters to nobody, and one has not")
		s.w.change(s.name(1), func(m *machine.Machine) { m.Spec.ProviderID = "p://1" })
		s.after(2 * time.Second)
		s.comment("so has the other")
		s.w.change(s.name(2), func(m *machine.Machine) { m.Spec.ProviderID = "p://2" })
		s.after(2 * time.Second)
	})
}

// TestCrashLoopDelays: the first replacements are created at once, the next ones after a wait, which doubles up
// to its maximum.
func TestCrashLoopDelays(t *testing.T) {
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
		require.True(t, creates(morning.Add(-31*time.Minute)), "a failure far in the future delays nothing")
	}
}

// TestCrashLoopOff: if CrashLoopBase is off, no failure delays a replacement.
func TestCrashLoopOff(t *testing.T) {
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

// TestCrashLoopIsBounded: while all machines fail, each is replaced at most once a round, and rounds are at least
// the backoff apart. Crashes and lost answers do not reset the count (P12). Once machines run, the set has its
// size within 50 minutes (P3).
// Invariants: P3 P12
func TestCrashLoopIsBounded(t *testing.T) {
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
			w.removeDeleted()
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
		require.LessOrEqual(t, made, n*rounds, "%d machines created in %s", made, hours)
		p.fault = nil
		for end := w.now.Add(50 * time.Minute); w.now.Before(end); {
			step(false)
		}
		require.Len(t, w.active(), n)
		require.Equal(t, machineset.CrashLoop{}, w.set.Status.CrashLoop)
		require.Nil(t, object.FindCondition(w.set.Status.Conditions, machineset.ConditionReplacementSlowed))
	})
}

// TestAnyCrashLoop: for any stored CrashLoop there is a plan. The same failures are recorded at most once.
// Invariants: P11
func TestAnyCrashLoop(t *testing.T) {
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
