package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// gate is the wait between a stored failure of a call and the next attempt of that call.
type gate struct {
	call    codes.Call
	prepare func(*world) // brings a machine to where the call is made
}

var gates = []gate{
	{codes.GetMachineStatus, func(w *world) { w.createMachine() }},
	{codes.CreateMachine, func(w *world) { w.createMachine() }},
	{codes.InitializeMachine, func(w *world) { w.provider.hasInit = true; w.createMachine() }},
	{codes.DeleteMachine, func(w *world) { w.createRunning(); w.store.remove() }},
	{codes.UpdateMachine, func(w *world) {
		w.fields = []string{"tags"}
		w.setClassSpec(spec("s"))
		w.createRunning()
		w.setClassSpec(spec("s", "team", "b"))
	}},
}

// passesOver reports whether a code of the call is no failure, or a failure that is not retried.
func (g gate) passesOver(code codes.Code) bool {
	switch g.call {
	case codes.GetMachineStatus:
		return code == codes.OK || code == codes.NotFound || code == codes.Unimplemented
	case codes.CreateMachine:
		return code == codes.OK || code == codes.AlreadyExists
	case codes.InitializeMachine, codes.UpdateMachine: // for the latter see TestUnimplementedUpdateIsNotRepeated
		return code == codes.OK || code == codes.NotFound || code == codes.Unimplemented
	}
	return code == codes.OK || code == codes.NotFound
}

// failOnce returns a world in which the call has failed once with the code.
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
	require.Equal(t, before+1, w.provider.calls[g.call], "%s %s: called more than once in a pass", g.call, code)
	return w, s, plan
}

// A failed call is repeated exactly when the recovery table says, plus a second
// because the stored time has whole seconds.
func TestGatesFollowTheRecoveryTable(t *testing.T) {
	for _, g := range gates {
		for code := range codes.All() {
			if g.passesOver(code) {
				continue
			}
			w, s, plan := g.failOnce(t, code)
			recorded := code
			if code == codes.Uninitialized && g.call == codes.GetMachineStatus {
				recorded = codes.Internal // without an ID there is no VM to initialize
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

// An INTERNAL often passes by itself, so two quick retries follow. After that the wait is as long as after
// other codes that need a change. A process that does not know the count makes no quick retries.
func TestInternalIsRepeatedTwiceAtOnce(t *testing.T) {
	for _, g := range gates {
		if g.call == codes.InitializeMachine { // its waits are always Short
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

// With Policy.WaitForChange, a call that failed with a code that the contract does not retry waits for a
// change, at most until the creation deadline. After other codes it is retried as usual.
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
			require.Equal(t, calls, w.provider.calls[g.call], "%s %s: called without a change", g.call, code)
			plan, _, err := s.reconcile()
			require.NoError(t, err)
			require.Equal(t, machine.ReasonWaitForChange, plan.Why.Reason, "%s %s", g.call, code)
			require.Equal(t, creating, !plan.At.IsZero(), "%s %s: %s", g.call, code, plan.At)
			w.secret = "another"
			w.runPass(s)
			require.Equal(t, calls+1, w.provider.calls[g.call], "%s %s: not called after a change", g.call, code)
			if creating {
				w.advance(3 * time.Minute)
				w.runPass(s)
				require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase, "%s %s", g.call, code)
			}
		}
	}
}

// runPass runs one pass, which must not fail.
func (w *world) runPass(s *shell) {
	_, _, err := s.reconcile()
	require.NoError(w.t, err)
}

// A change of anything that the call depends on ends the wait at once.
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

// Changes of what the call does not depend on do not end the wait: labels, status.
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

// Each failure in a row makes the wait longer. A process that does not know the
// count waits less, but at least the class's period.
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

// A failure with a time in the future, stored when a clock was wrong, is ignored.
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

// The wait ends at the creation deadline, whatever the recovery table says.
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
