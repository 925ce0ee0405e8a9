package reachability_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/test/safetytest"
)

// site is two API servers, the machines that the first stores, and the process that checks both servers.
type site struct {
	safetytest.Journal
	t        require.TestingT
	policy   *safety.Policy
	machines []*machine.Machine
	control  codes.Code
	target   codes.Code
	noTarget bool

	reach reachability.State // the process's memory
	plan  reachability.Plan
	port  func(string) error
	wrote []machine.Move
	lost  bool      // the last outage is known: this process saw it, or clocks were restarted after it
	back  time.Time // when the last outage ended that a process had seen
}

func newSite(t require.TestingT) *site {
	return &site{Journal: safetytest.Journal{Now: safetytest.Epoch}, t: t, policy: safety.DefaultPolicy()}
}

// addMachine adds a machine in a phase.
func (w *site) addMachine(name string, phase machine.Phase) *machine.Machine {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}, CreatedAt: w.Now.Truncate(time.Second), Version: "0"}}
	m.Status.Phase, m.Status.Since = phase, w.Now.Truncate(time.Second)
	w.machines = append(w.machines, m)
	return m
}

func (w *site) call(name string) error {
	if w.port != nil {
		return w.port(name)
	}
	return nil
}

func (w *site) stage() string {
	return [...]string{"unproven", "open", "lost", "restarting", "settling"}[w.reach.Stage]
}

// pass makes one pass. An error ends it.
func (w *site) pass() error {
	o := &reachability.Observation{State: w.reach, NoTarget: w.noTarget}
	for range 50 {
		plan, err := reachability.Decide(o, w.policy, w.Now)
		require.NoError(w.t, err)
		w.plan, w.reach, o.State = plan, plan.State, plan.State
		w.lost = w.lost || plan.State.Stage == reachability.Lost
		switch {
		case plan.Check:
			w.Line(w.stage(), "check: "+w.control.Contract()+" "+w.target.Contract(), plan.Why)
			o.Control = &machine.Outcome{Code: w.control, Message: "timeout"}
			o.Target = &machine.Outcome{Code: w.target, Message: "timeout"}
			err = w.call("check")
		case plan.ReadMachines:
			w.Line(w.stage(), "read machines live", plan.Why)
			o.Machines = append([]*machine.Machine{nil}, w.machines...)
			err = w.call("read")
		case len(plan.Restart) > 0:
			err = w.restart(o, plan.Restart)
		default:
			w.Line(w.stage(), "wait until "+w.Since(plan.At), plan.Why)
			w.Warn(plan.Warn)
			return nil
		}
		if err != nil {
			return err
		}
	}
	require.Fail(w.t, "the pass does not end")
	return nil
}

func (w *site) restart(o *reachability.Observation, orders []reachability.RestartClock) error {
	for _, order := range orders {
		if err := w.call("write"); err != nil {
			return err
		}
		i := slices.IndexFunc(w.machines, func(m *machine.Machine) bool { return m.Name == order.Machine.Name })
		at := slices.Index(o.Machines, order.Machine)
		if w.machines[i].Version != order.Machine.Version {
			o.Machines[at] = w.machines[i]
			continue
		}
		changed := order.Machine.Clone()
		changed.Status, changed.Version = order.Status, order.Machine.Version+"+"
		w.machines[i], o.Machines[at] = changed, changed
		w.wrote = append(w.wrote, order.Move)
		w.lost = w.lost || !order.Status.ClockFrom.Before(w.back.Truncate(time.Second))
		w.Line(w.stage(), fmt.Sprintf("restart %s: %s, from %s", changed.Name, changed.Status.Phase, w.Since(changed.Status.ClockFrom)), order.Why)
	}
	return nil
}

func (w *site) wait(n int) {
	for range n {
		w.Now = w.plan.At
		require.NoError(w.t, w.pass())
	}
}

var stories = map[string]func(*site){
	"reach fresh process": func(w *site) {
		w.target = codes.Unavailable
		require.NoError(w.t, w.pass())
		w.wait(1)
		w.target = codes.NotFound
		w.Say("the target cluster answers: there is no such thing")
		w.wait(2)
	},
	"reach short outage": func(w *site) {
		w.addMachine("m-1", machine.PhaseUnknown)
		require.NoError(w.t, w.pass())
		w.control = codes.DeadlineExceeded
		w.wait(6)
		w.control = codes.OK
		w.wait(2)
	},
	"reach long outage": func(w *site) {
		w.addMachine("m-running", machine.PhaseRunning)
		w.addMachine("m-unknown", machine.PhaseUnknown)
		w.addMachine("m-pending", machine.PhasePending)
		deleted := w.addMachine("m-going", machine.PhaseTerminating)
		deleted.DeletedAt = w.Now.Truncate(time.Second)
		require.NoError(w.t, w.pass())
		w.target = codes.Unavailable
		w.Say("the target cluster is down")
		w.wait(8)
		w.target = codes.OK
		w.Say("it is back")
		w.wait(3)
	},
	"reach killed while restarting clocks": func(w *site) {
		w.addMachine("m-1", machine.PhaseUnknown)
		w.addMachine("m-2", machine.PhaseUnknown)
		w.control = codes.Unavailable
		require.NoError(w.t, w.pass())
		w.control, w.Now = codes.OK, w.plan.At
		writes := 0
		w.port = func(call string) error {
			if call == "write" {
				writes++
			}
			if writes == 2 {
				return safetytest.ErrKilled
			}
			return nil
		}
		require.Error(w.t, w.pass())
		w.port, w.reach = nil, reachability.State{}
		w.Now = w.Now.Add(time.Minute)
		w.Say("the process is killed; a new one looks")
		require.NoError(w.t, w.pass())
	},
	"reach down again while settling": func(w *site) {
		w.addMachine("m-1", machine.PhaseUnknown)
		w.control = codes.Unavailable
		require.NoError(w.t, w.pass())
		w.control = codes.OK
		w.wait(1)
		w.policy.CheckPeriod = 10 * time.Second
		w.Now = w.Now.Add(10 * time.Second)
		w.control = codes.Unavailable
		require.NoError(w.t, w.pass())
		w.control = codes.OK
		w.wait(3)
	},
}

// TestStories compares what happens in outages with the files in testdata.
func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			w := newSite(t)
			run(w)
			safetytest.Compare(t, name, &w.Journal)
		})
	}
}

// clock returns the time that a machine's waits count from. Zero: there is none.
func clock(m *machine.Machine) time.Time {
	at := m.CreatedAt
	switch {
	case m.Deleted():
		at = m.DeletedAt
	case m.Status.Phase == machine.PhaseUnknown, m.Status.Phase == machine.PhaseInPlaceUpdateFailed, m.Status.Phase == machine.PhaseInPlaceUpdating:
		at = m.Status.Since
	case m.Status.Phase != machine.PhasePending && m.Status.Phase != machine.PhaseNew && m.Status.Phase != machine.PhaseCrashLoopBackOff:
		return time.Time{}
	}
	if m.Status.ClockFrom.After(at) {
		return m.Status.ClockFrom
	}
	return at
}

// TestP25NoClockRunsThroughAnOutage: when a fleet thaws after an outage, no machine has a clock that ran during the
// outage, if a process saw it. That holds although processes are killed at any point and other programs write
// machines. The fleet thaws once both API servers answer.
// Invariants: P25
func TestP25NoClockRunsThroughAnOutage(t *testing.T) {
	thawed := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newSite(t)
		w.policy.Burst = rapid.IntRange(1, 3).Draw(t, "burst")
		w.policy.SettleTime = time.Duration(rapid.IntRange(0, 30).Draw(t, "settle")) * time.Second
		w.port = func(string) error { return w.disturb(t) }
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.Now = w.Now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "pause")) * time.Second)
			w.act(t, "m-"+strconv.Itoa(i))
			before := w.reach.Stage
			if w.pass() != nil && rapid.Bool().Draw(t, "a new process") {
				if w.reach.Stage != reachability.Restarting || !w.restartedSince(w.back) {
					w.lost = false
				}
				w.reach = reachability.State{}
			}
			if w.reach.Stage == reachability.Open && before.Frozen() {
				if w.lost && !w.back.IsZero() {
					thawed++
					w.clocksAfter(t, w.back)
				}
				w.lost = false
			}
		}
		w.control, w.port = codes.OK, nil
		w.Now = w.Now.Add(time.Minute)
		for range 4 {
			require.NoError(t, w.pass())
			w.Now = w.plan.At
		}
		require.Equal(t, reachability.Open, w.reach.Stage)
	})
	assert.Positive(t, thawed, "no fleet ever thawed after an outage")
}

// disturb writes a machine before a call, or kills the process.
func (w *site) disturb(t *rapid.T) error {
	if len(w.machines) > 0 && rapid.IntRange(0, 5).Draw(t, "meanwhile") == 0 {
		i := rapid.IntRange(0, len(w.machines)-1).Draw(t, "machine")
		w.machines[i] = w.machines[i].Clone()
		w.machines[i].Version += "*"
	}
	if rapid.IntRange(0, 8).Draw(t, "kill") == 0 {
		return safetytest.ErrKilled
	}
	return nil
}

// act makes one thing happen: an outage, its end, or a new machine.
func (w *site) act(t *rapid.T, name string) {
	phases := rapid.SampledFrom([]machine.Phase{
		machine.PhasePending, machine.PhaseUnknown, machine.PhaseRunning, machine.PhaseCrashLoopBackOff, machine.PhaseInPlaceUpdateFailed,
	})
	switch rapid.IntRange(0, 6).Draw(t, "act") {
	case 0:
		w.control = codes.Unavailable
	case 1:
		if w.control != codes.OK && w.reach.Stage == reachability.Lost {
			w.back = w.Now // an outage that a process knows of
		}
		w.control = codes.OK
	case 2:
		m := w.addMachine(name, phases.Draw(t, "phase"))
		if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
			m.DeletedAt = w.Now.Truncate(time.Second)
		}
	}
}

// restartedSince reports whether a machine's clock was restarted since the given time.
func (w *site) restartedSince(since time.Time) bool {
	return slices.ContainsFunc(w.machines, func(m *machine.Machine) bool {
		return !m.Status.ClockFrom.Before(since.Truncate(time.Second)) && !m.Status.ClockFrom.IsZero()
	})
}

// clocksAfter requires that no machine's clock began before an outage ended.
func (w *site) clocksAfter(t *rapid.T, back time.Time) {
	for _, m := range w.machines {
		if at := clock(m); !at.IsZero() {
			require.False(t, at.Before(back.Truncate(time.Second)), "%s: clock from %s, back at %s", m.Name, w.Since(at), w.Since(back))
		}
	}
}

// TestWhenTheFleetFreezes: a fleet freezes after more than DownTimeout without an answer. It is frozen until the
// first answer. If there is no target cluster, only the other API server is checked.
// Invariants: P25
func TestWhenTheFleetFreezes(t *testing.T) {
	w := newSite(t)
	assert.True(t, w.reach.Stage.Frozen())
	w.noTarget, w.target = true, codes.Unavailable
	require.NoError(t, w.pass())
	assert.False(t, w.reach.Stage.Frozen())
	w.control, w.Now = codes.Unavailable, w.plan.At
	require.NoError(t, w.pass())
	down := w.Now
	w.Now = down.Add(w.policy.DownTimeout)
	require.NoError(t, w.pass())
	assert.False(t, w.reach.Stage.Frozen())
	w.Now = w.Now.Add(w.policy.CheckDown)
	require.NoError(t, w.pass())
	assert.True(t, w.reach.Stage.Frozen())
}

// TestUnknownRunsAgain: after an outage, Unknown machines become Running again, by an edge of the phase table. Other
// phases stay.
func TestUnknownRunsAgain(t *testing.T) {
	w := newSite(t)
	w.addMachine("m-1", machine.PhaseUnknown)
	w.addMachine("m-2", machine.PhasePending)
	w.control = codes.Unavailable
	require.NoError(t, w.pass())
	w.control = codes.OK
	w.wait(1)
	require.Len(t, w.wrote, 2)
	to, known := machine.PhaseTable().Next(w.wrote[0].From, w.wrote[0].On)
	assert.True(t, known)
	assert.Equal(t, machine.Move{Table: "phase", From: "Unknown", On: machine.EventRecovered, To: to}, w.wrote[0])
	assert.Equal(t, machine.PhaseRunning, w.machines[0].Status.Phase)
	assert.Equal(t, w.Now.Truncate(time.Second), w.machines[0].Status.Since)
	assert.Equal(t, machine.Move{}, w.wrote[1])
	assert.Equal(t, machine.PhasePending, w.machines[1].Status.Phase)
	assert.Equal(t, w.Now.Truncate(time.Second), w.machines[1].Status.ClockFrom)
}

// TestClockFromTheFuture: a machine's clock in the future, which no process can have written, does not restart the
// clocks of other machines.
func TestClockFromTheFuture(t *testing.T) {
	w := newSite(t)
	w.addMachine("m-1", machine.PhaseUnknown).Status.ClockFrom = safetytest.Epoch.Add(time.Hour)
	w.addMachine("m-2", machine.PhaseUnknown)
	w.Now = w.Now.Add(time.Minute)
	require.NoError(t, w.pass())
	assert.False(t, w.reach.Stage.Frozen())
	assert.Empty(t, w.wrote)
}

// TestP25PausedClocksAreLeftAlone: clocks of paused machines are left alone after an outage, and
// restart when the pause ends.
// Invariants: P25
func TestP25PausedClocksAreLeftAlone(t *testing.T) {
	fine := &machine.Outcome{}
	o := &reachability.Observation{
		State: reachability.State{Stage: reachability.Lost}, Control: fine, Target: fine,
		Machines: []*machine.Machine{safetytest.Member("m-1", machine.PhaseUnknown, "true"), safetytest.Member("m-2", machine.PhaseUnknown, "no")},
	}
	plan, err := reachability.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
	require.NoError(t, err)
	require.Len(t, plan.Restart, 1)
	require.Equal(t, "m-2", plan.Restart[0].Machine.Name)
}

func anyObservation(t *rapid.T) *reachability.Observation {
	return &reachability.Observation{
		State: reachability.State{
			Stage: reachability.Stage(rapid.IntRange(-1, 6).Draw(t, "stage")), Checked: safetytest.AnyTime.Draw(t, "checked"),
			From: safetytest.AnyTime.Draw(t, "from"), Until: safetytest.AnyTime.Draw(t, "until"), Control: reachability.Side{Up: rapid.Bool().Draw(t, "up"), DownSince: safetytest.AnyTime.Draw(t, "down")},
		},
		NoTarget: rapid.Bool().Draw(t, "no target"), Control: safetytest.AnyOutcome(t), Target: safetytest.AnyOutcome(t), Machines: safetytest.List(t, "machines", safetytest.AnyMachine),
	}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, reachability.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, reachability.Decide, anyObservation, func(t testing.TB, p reachability.Plan) { safetytest.Explained(t, p.At, p.Why) }, nil)
}

// BenchmarkDecide checks a fleet whose API servers answer.
func BenchmarkDecide(b *testing.B) {
	o := &reachability.Observation{
		State:   reachability.State{Stage: reachability.Open, Checked: safetytest.Epoch, Control: reachability.Side{Up: true}, Target: reachability.Side{Up: true}},
		Control: &machine.Outcome{}, Target: &machine.Outcome{},
	}
	for b.Loop() {
		if plan, err := reachability.Decide(o, safety.DefaultPolicy(), safetytest.Epoch); err != nil || plan.State.Stage.Frozen() {
			b.Fatal(plan.Why, err)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(safetytest.Run(m)) }
