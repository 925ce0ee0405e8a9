package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// gate is a persisted failure of one call, and what asking again does.
type gate struct {
	call    codes.Call
	prepare func(*world) // brings a machine to where the call is made
	also    func(*world) // what has to hold for the call to be the next effect
}

var gates = []gate{
	{codes.GetMachineStatus, func(w *world) { w.createMachine() }, nil},
	{codes.CreateMachine, func(w *world) { w.createMachine() }, nil},
	{codes.InitializeMachine, func(w *world) { w.provider.hasInit = true; w.createMachine() }, nil},
	{codes.DeleteMachine, func(w *world) { w.createRunning(); w.store.remove() }, nil},
	{codes.UpdateMachine, func(w *world) {
		w.fields = []string{"tags"}
		w.setClassSpec(spec("s"))
		w.createRunning()
		w.setClassSpec(spec("s", "team", "b"))
	}, nil},
}

// passes over reports whether a code from a call is no failure, or a final one.
func (g gate) passesOver(code codes.Code) bool {
	switch g.call {
	case codes.GetMachineStatus:
		return code == codes.OK || code == codes.NotFound || code == codes.Unimplemented
	case codes.CreateMachine:
		return code == codes.OK || code == codes.AlreadyExists
	case codes.InitializeMachine, codes.UpdateMachine: // final for the latter: see TestUnimplementedUpdateIsNotRepeated
		return code == codes.OK || code == codes.NotFound || code == codes.Unimplemented
	}
	return code == codes.OK || code == codes.NotFound
}

// fails brings a world to where the call was answered with the code, once.
func (g gate) failOnce(t *testing.T, code codes.Code) (*world, *shell, machine.Plan) {
	w := newWorld(t)
	g.prepare(w)
	w.provider.faults = func(call codes.Call) fault {
		if call == g.call {
			return fault{code: code}
		}
		return fault{}
	}
	s := &shell{w: w}
	before := w.provider.calls[g.call]
	plan, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, before+1, w.provider.calls[g.call], "%s %s: a pass spins", g.call, code)
	return w, s, plan
}

// The recovery table says when a failed call is made again: not a moment
// before. At least a second is added, which the stored time has lost.
func TestGatesFollowTheRecoveryTable(t *testing.T) {
	for _, g := range gates {
		for code := range codes.All() {
			if g.passesOver(code) {
				continue
			}
			w, s, plan := g.failOnce(t, code)
			recorded := code
			if code == codes.Uninitialized && g.call == codes.GetMachineStatus {
				recorded = codes.Internal // with no ID anywhere there is nothing to initialize
			}
			recovery := codes.RecoveryFor(g.call, recorded)
			if recovery.Class == codes.None {
				recovery.Class = codes.Short
			}
			opens := w.now.Truncate(time.Second).Add(recovery.Backoff(1, 0) + time.Second)
			require.Equal(t, opens, plan.At, "%s %s", g.call, code)
			calls := w.provider.calls[g.call]
			w.now = opens.Add(-time.Nanosecond)
			w.runPass(s)
			require.Equal(t, calls, w.provider.calls[g.call], "%s %s: called too early", g.call, code)
			require.Equal(t, machine.StateFailed, w.store.live().Status.LastOperation.State)
			w.now = opens
			w.runPass(s)
			require.Equal(t, calls+1, w.provider.calls[g.call], "%s %s: not called in time", g.call, code)
		}
	}
}

// An INTERNAL often passes by itself: two repeats come at once. Then the call waits for a person,
// as after other codes that need a change. A count that was lost brings no quick repeat back.
func TestInternalIsRepeatedTwiceAtOnce(t *testing.T) {
	for _, g := range gates {
		if g.call == codes.InitializeMachine { // is Short all along
			continue
		}
		w, s, plan := g.failOnce(t, codes.Internal)
		period := codes.RecoveryFor(g.call, codes.Internal).Class.Period(0)
		for _, wait := range []time.Duration{5 * time.Second, 10 * time.Second, period} {
			require.Equal(t, w.now.Truncate(time.Second).Add(wait+time.Second), plan.At, "%s", g.call)
			w.now = plan.At
			calls := w.provider.calls[g.call]
			var err error
			plan, _, err = s.reconcile()
			require.NoError(t, err)
			require.Equal(t, calls+1, w.provider.calls[g.call], "%s: not called in time", g.call)
		}
		w, _, _ = g.failOnce(t, codes.Internal)
		plan, _, err := (&shell{w: w}).reconcile()
		require.NoError(t, err)
		require.Equal(t, w.now.Truncate(time.Second).Add(period+time.Second), plan.At, "%s: after a restart", g.call)
	}
}

// By policy, the contract's codes that are not retried wait for a change and nothing else, but for the
// end of a creation's time; the others are made again as usual.
func TestGatesWaitForChange(t *testing.T) {
	for _, g := range gates {
		for code := range codes.All() {
			if g.passesOver(code) || code == codes.Uninitialized {
				continue
			}
			w, s, _ := g.failOnce(t, code)
			w.policy.WaitForChange = true
			calls := w.provider.calls[g.call]
			creating := g.call != codes.DeleteMachine && g.call != codes.UpdateMachine
			for range 6 {
				w.advance(3 * time.Minute)
				w.runPass(s)
			}
			if codes.RecoveryFor(g.call, code).AutoRetry {
				require.Greater(t, w.provider.calls[g.call], calls, "%s %s", g.call, code)
				continue
			}
			if codes.RecoveryFor(g.call, code).Class == codes.None {
				continue
			}
			require.Equal(t, calls, w.provider.calls[g.call], "%s %s: made again", g.call, code)
			plan, _, err := s.reconcile()
			require.NoError(t, err)
			require.Equal(t, machine.ReasonWaitForChange, plan.Why.Reason, "%s %s", g.call, code)
			require.Equal(t, creating, !plan.At.IsZero(), "%s %s: %s", g.call, code, plan.At)
			w.secret = "another"
			w.runPass(s)
			require.Equal(t, calls+1, w.provider.calls[g.call], "%s %s: not made again after a change", g.call, code)
			if creating {
				w.advance(3 * time.Minute)
				w.runPass(s)
				require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase, "%s %s", g.call, code)
			}
		}
	}
}

func (w *world) runPass(s *shell) {
	_, _, err := s.reconcile()
	require.NoError(w.t, err)
}

// What the call depends on having changed opens the gate at once.
// Invariants: P55
func TestGatesOpenWhenInputsChange(t *testing.T) {
	changes := map[string]func(*world){
		"class":   func(w *world) { w.class.Generation++ },
		"secret":  func(w *world) { w.secret = "v2" },
		"machine": func(w *world) { w.edit(func(m *machine.Machine) { m.Spec.Config.DrainTimeout = time.Hour }) },
	}
	for _, g := range gates {
		for name, change := range changes {
			w, s, _ := g.failOnce(t, codes.InvalidArgument)
			calls := w.provider.calls[g.call]
			w.runPass(s)
			require.Equal(t, calls, w.provider.calls[g.call])
			change(w)
			w.runPass(s)
			assert.Equal(t, calls+1, w.provider.calls[g.call], "%s: %s changed", g.call, name)
			w.runPass(s)
			assert.Equal(t, calls+1, w.provider.calls[g.call], "%s: %s did not change again", g.call, name)
		}
	}
}

// What the call does not depend on leaves the gate shut: labels, status.
func TestGatesStayShutOtherwise(t *testing.T) {
	for _, g := range gates {
		w, s, _ := g.failOnce(t, codes.InvalidArgument)
		calls := w.provider.calls[g.call]
		w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"a": "b"} })
		status := w.store.live().Status.Clone()
		status.LastKnown = "something"
		_, err := w.store.updateStatus(w.store.live().Version, status)
		require.NoError(t, err)
		w.runPass(s)
		assert.Equal(t, calls, w.provider.calls[g.call], "%s", g.call)
	}
}

// Failures in a row lengthen the wait; losing count of them shortens it, but
// never below the class's period.
func TestGatesBackOff(t *testing.T) {
	for _, g := range gates {
		w, s, plan := g.failOnce(t, codes.Unavailable)
		last := time.Duration(0)
		for range 4 {
			w.now = plan.At
			var err error
			plan, _, err = s.reconcile()
			require.NoError(t, err)
			wait := plan.At.Sub(w.now)
			assert.Greater(t, wait, last, "%s", g.call)
			last = wait
		}
		fresh := &shell{w: w}
		plan, _, err := fresh.reconcile()
		require.NoError(t, err)
		assert.GreaterOrEqual(t, plan.At.Sub(w.now), 5*time.Second, "%s", g.call)
		assert.Less(t, plan.At.Sub(w.now), last, "%s", g.call)
	}
}

// A failure from the future, left by a clock that was wrong, holds nothing up.
func TestGatesOpenForFailuresFromTheFuture(t *testing.T) {
	for _, g := range gates {
		w, s, _ := g.failOnce(t, codes.InvalidArgument)
		calls := w.provider.calls[g.call]
		m := w.store.live().Clone()
		m.Status.LastOperation.Time = w.now.AddDate(7000, 0, 0)
		w.store.force(m)
		w.runPass(s)
		assert.Equal(t, calls+1, w.provider.calls[g.call], "%s", g.call)
	}
}

// Waits end at the creation's deadline, regardless of the recovery table.
func TestGatesEndWithTheCreation(t *testing.T) {
	w := newWorld(t)
	w.createMachine(func(m *machine.Machine) { m.Spec.Config.CreationTimeout = time.Minute })
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.CreateMachine {
			return fault{code: codes.ResourceExhausted}
		}
		return fault{}
	}
	s := &shell{w: w}
	plan, _, err := s.reconcile()
	require.NoError(t, err)
	deadline := w.store.live().CreatedAt.Add(time.Minute + time.Second)
	require.Equal(t, deadline, plan.At)
	w.now = deadline.Add(-time.Nanosecond)
	w.runPass(s)
	require.Equal(t, machine.PhaseCrashLoopBackOff, w.store.live().Status.Phase)
	w.now = deadline
	w.runPass(s)
	require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
	require.Equal(t, codes.ResourceExhausted, w.store.live().Status.LastOperation.Code)
}
