package machine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

func init() { maps.Copy(creationStories, classBackoffStories) }

func anyClassBackoff(t *rapid.T) machine.ClassBackoff {
	return machine.ClassBackoff{
		Class: anyWord.Draw(t, "backoff class"), Zone: anyWord.Draw(t, "zone"), Code: codes.Code(rapid.IntRange(-1, 20).Draw(t, "backoff code")),
		Since: anyTime.Draw(t, "backoff since"), Until: anyTime.Draw(t, "backoff until"),
	}
}

func anyCreatePermit(t *rapid.T) machine.CreatePermit {
	return machine.CreatePermit{Given: rapid.Bool().Draw(t, "given"), At: anyTime.Draw(t, "permit at")}
}

// backOffClass makes the class back off for this time. Permits are given on request.
func (w *world) backOffClass(wait time.Duration) {
	w.classBackoff = &machine.ClassBackoff{
		Class: "small", Zone: "a", Code: codes.ResourceExhausted,
		Since: w.now.Truncate(time.Second), Until: w.now.Truncate(time.Second).Add(wait),
	}
	w.createPermit = func(*machine.Machine) *machine.CreatePermit { return &machine.CreatePermit{Given: true} }
}

var classBackoffStories = map[string]func(*story){
	"class slowed until it is its turn": func(s *story) {
		s.backOffClass(4 * time.Minute)
		s.createMachine()
		s.later(0, "its class is slowed: a new machine makes no call, and says once what is missing")
		s.later(time.Minute, "somebody looks")
		s.wait()
		s.classBackoff = nil
		s.later(time.Minute, "the node registers")
	},
	"class slowed while others are tried": func(s *story) {
		s.backOffClass(time.Minute)
		s.createPermit = func(*machine.Machine) *machine.CreatePermit {
			return &machine.CreatePermit{At: s.now.Add(10 * time.Second)}
		}
		s.createMachine()
		s.reconcile()
		s.wait()
		s.comment("the other one's create is still under way")
		s.wait()
		s.classBackoff = nil
		s.comment("it has succeeded, and so have others: the class is not slowed any more")
		s.wait()
	},
	"class slowed until the time is up": func(s *story) {
		s.failing(codes.CreateMachine, codes.ResourceExhausted, false)
		s.createMachine()
		s.reconcile()
		s.backOffClass(time.Hour)
		s.comment("its own try was refused, and the class is slowed for an hour")
		s.wait()
		s.wait()
		s.requestDeletion()
		s.reconcile()
	},
	"class slowed for longer than the creation may take": func(s *story) {
		s.backOffClass(time.Hour)
		s.createMachine()
		s.reconcile()
		s.provider.boot = -1
		s.comment("no node registers")
		s.wait()
		s.wait()
	},
	"class slowed after a first try": func(s *story) {
		s.failing(codes.CreateMachine, codes.ResourceExhausted, false)
		s.createMachine()
		s.reconcile()
		s.backOffClass(15 * time.Minute)
		s.comment("its refusal slows the class, others are tried meanwhile")
		s.wait()
		s.failing(codes.CreateMachine, codes.OK, false)
		s.comment("the quota is raised")
		s.wait()
	},
	"class slowed after a lost answer": func(s *story) {
		s.failing(codes.CreateMachine, codes.DeadlineExceeded, true)
		s.createMachine()
		s.reconcile()
		s.failing(codes.CreateMachine, codes.OK, false)
		s.backOffClass(15 * time.Minute)
		s.comment("its class is slowed, but its VM may be there already")
		s.wait()
	},
	"class slowed between two VMs of a crash": func(s *story) {
		s.createMachine()
		s.killAt, s.killAfter = 3, true
		s.reconcile()
		s.restart()
		s.backOffClass(15 * time.Minute)
		s.comment("its class is slowed meanwhile: the VM that was made is found")
		s.reconcile()
	},
}

// P28: while a class backs off for an exhausted quota, a machine that has no VM yet
// is written once, and no calls are made for it, however many passes there are.
// After that it has its whole creation timeout.
// Invariants: P21 P28
func TestP28MachinesInClassBackoffCostNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.backOffClass(24 * time.Hour)
		w.provider.boot = -1
		w.createMachine()
		until := w.classBackoff.Until
		s := &shell{w: w}
		_, _, err := s.reconcile()
		require.NoError(t, err)
		op := w.store.live().Status.LastOperation
		require.Equal(t, []any{machine.OperationCreate, machine.StateFailed, codes.ResourceExhausted}, []any{op.Kind, op.State, op.Code}, "an autoscaler reads it")
		for w.now.Before(until) {
			before := w.store.live().Version
			plan, _, err := s.reconcile()
			require.NoError(t, err)
			require.Equal(t, before, w.store.live().Version, "written: %s", plan.Why)
			require.Empty(t, w.provider.calls, "called: %s", plan.Why)
			require.True(t, plan.At.After(w.now) && !plan.At.After(until), "P21: At is in the past, or after the end of the backoff")
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 10_000_000).Draw(t, "passes")) * time.Millisecond)
		}
		w.runPass(s)
		require.Equal(t, machine.PhasePending, w.store.live().Status.Phase)
		before, then := w.phasesAround(w.now.Truncate(time.Second).Add(w.policy.CreationTimeout + time.Second))
		require.Equal(t, machine.PhasePending, before)
		require.Equal(t, machine.PhaseFailed, then)
	})
}

// TestDelayedMachineHasItsWholeTimeout: the creation of a machine may be delayed, for example by the
// backoff of its class or because the library was down. Its creation timeout begins with its first attempt,
// even if the delay ended before it, and even if the first attempts fail.
func TestDelayedMachineHasItsWholeTimeout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.provider.boot = -1
		w.createMachine()
		s := &shell{w: w}
		if rapid.Bool().Draw(t, "class backs off") {
			w.backOffClass(100 * time.Hour)
			w.runPass(s)
		}
		w.advance(time.Duration(rapid.IntRange(61, 100_000).Draw(t, "seconds")) * time.Second)
		w.classBackoff = nil
		begun := w.now
		failing := rapid.SampledFrom([]codes.Code{codes.OK, codes.Unavailable, codes.Internal}).Draw(t, "first answer")
		failed := rapid.SampledFrom([]codes.Call{codes.GetMachineStatus, codes.CreateMachine}).Draw(t, "of")
		w.provider.faults = func(call codes.Call) fault {
			if call == failed && w.now.Sub(begun) < time.Minute {
				return fault{code: failing}
			}
			return fault{}
		}
		deadline := begun.Truncate(time.Second).Add(w.policy.CreationTimeout + time.Second)
		for w.now.Before(deadline) {
			plan, _, err := s.reconcile()
			require.NoError(t, err)
			require.NotEqual(t, machine.PhaseFailed, w.store.live().Status.Phase, "%s after its first attempt", w.now.Sub(begun))
			require.True(t, plan.At.After(w.now))
			w.now = plan.At
		}
		w.runPass(s)
		require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
	})
}

// TestMachineIsTriedAtOnceAfterClassBackoff: the recorded refusal of its class is no
// attempt of the machine. When the class no longer backs off, the VM is created at once.
func TestMachineIsTriedAtOnceAfterClassBackoff(t *testing.T) {
	w := newWorld(t)
	w.backOffClass(time.Hour)
	w.createMachine()
	s := &shell{w: w}
	w.runPass(s)
	require.Equal(t, machine.PhaseCrashLoopBackOff, w.store.live().Status.Phase)
	w.classBackoff = nil
	w.advance(time.Second)
	w.runPass(s)
	require.NotEmpty(t, w.store.live().Spec.ProviderID)
	require.Equal(t, machine.PhasePending, w.store.live().Status.Phase)
}

// TestOnlyMissingQuotaIsRecorded: other reasons of a class backoff are not written to the machine, because
// autoscalers do not need them.
func TestOnlyMissingQuotaIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.backOffClass(time.Hour)
	w.classBackoff.Code = codes.InvalidArgument
	w.createMachine()
	before := w.store.live().Version
	w.runPass(&shell{w: w})
	require.Equal(t, before, w.store.live().Version)
}

// For any observation: while its class backs off, no create of a machine is
// announced or issued without a permit.
func TestNoCreateWithoutAPermit(t *testing.T) {
	waited := 0
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		backoff := anyClassBackoff(t)
		o.ClassBackoff = &backoff
		if rapid.Bool().Draw(t, "lasts") {
			backoff.Since, backoff.Until, o.CreatePermit = epoch, epoch.Add(time.Minute), nil
		}
		if rapid.Bool().Draw(t, "new") {
			o.Token, o.Created = machine.TokenUnused, nil
			o.Machine.DeletedAt, o.Machine.Status, o.Frozen = time.Time{}, machine.Status{}, false
			o.Machine.Annotations, o.Machine.Finalizers = nil, []string{machine.Finalizer}
			o.Machine.Spec = machine.Spec{Class: machine.ClassRef{Name: "small"}}
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		_, creates := plan.Effect.(machine.CreateVM)
		_, asks := plan.Effect.(machine.AskCreate)
		given := o.CreatePermit != nil && o.CreatePermit.Given
		if asks {
			require.Nil(t, o.CreatePermit, "asked twice")
			require.False(t, epoch.Before(backoff.Until), "asked too early")
		}
		if plan.Why.Reason == machine.ReasonClassBackoff {
			waited++
			require.Nil(t, plan.Write)
			require.True(t, plan.At.After(epoch))
		}
		if creates || first(&plan).On == machine.EventCreate {
			require.True(t, given, "created without a permit: %s", plan.Why)
		}
	})
	assert.Positive(t, waited, "no decision waited for a permit")
}

// A class backoff does not delay a machine that has a VM or is being deleted.
func TestClassBackoffDelaysOnlyCreations(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.backOffClass(time.Hour)
	before := w.store.live().Version
	w.runPass(&shell{w: w})
	assert.Equal(t, before, w.store.live().Version)
	o := (&shell{w: w}).observe()
	o.ClassBackoff = w.classBackoff
	o.Machine = o.Machine.Clone()
	o.Machine.DeletedAt = w.now
	plan, err := machine.Decide(o, w.policy, w.now)
	require.NoError(t, err)
	assert.Equal(t, machine.ReasonTerminating, plan.Why.Reason)
}

func init() {
	maps.Copy(creationStories, tokenStories)
	maps.Copy(creationStories, tokenTroubles)
	maps.Copy(scenarios, tokenScenarios)
}

// on returns a function that makes effects of one type fail.
func on[E machine.Effect](f fault) func(machine.Effect) fault {
	return func(e machine.Effect) fault {
		if _, is := e.(E); is {
			return f
		}
		return fault{}
	}
}

var tokenStories = map[string]func(*story){
	"token": func(s *story) {
		s.needTokens()
		s.createMachine()
		s.reconcile()
		s.later(time.Minute, "the node registers with its token")
		s.later(time.Hour, "nothing has changed")
		s.store.remove()
		s.later(0, "somebody deletes the machine")
	},
	"token that nobody makes": func(s *story) {
		s.needTokens().use = machine.TokenUnavailable
		s.createMachine()
		s.reconcile()
		s.wait()
		s.tokens.use, s.secret = machine.TokenUnused, "v2"
		s.later(time.Minute, "the user data is corrected")
	},
	"token that nobody makes and a deletion": func(s *story) {
		s.needTokens().use = machine.TokenUnavailable
		s.createMachine()
		s.reconcile()
		s.tokens.use = machine.TokenNeeded
		s.store.remove()
		s.later(time.Minute, "somebody deletes the machine: nobody was called for it")
	},
	"token that cannot be made at first": func(s *story) {
		s.needTokens().faults = on[machine.EnsureToken](fault{code: codes.Unavailable})
		s.createMachine()
		s.reconcile()
		s.tokens.faults = nil
		s.comment("tokens can be made again")
		s.wait()
	},
	"token that cannot be deleted": func(s *story) {
		s.needTokens().faults = on[machine.RemoveToken](fault{code: codes.PermissionDenied})
		s.createMachine()
		s.reconcile()
		s.later(time.Minute, "the node registers")
		s.later(time.Hour, "nothing has changed")
		s.store.remove()
		s.later(0, "somebody deletes the machine")
	},
	"token of a machine that does not join": func(s *story) {
		s.needTokens()
		s.provider.boot = -1
		s.createMachine()
		s.reconcile()
		s.wait()
		s.store.remove()
		s.later(time.Minute, "its set replaces it")
	},
	"token of a machine deleted before": func(s *story) {
		s.needTokens()
		s.createMachine()
		s.store.remove()
		s.reconcile()
	},
	"token after a crash": func(s *story) {
		s.needTokens()
		s.provider.hasInit = true
		s.createMachine()
		s.killAt, s.killAfter = 4, true // at the create
		_, _, err := s.shell.reconcile()
		require.ErrorIs(s.t, err, errKilled)
		s.restart()
		s.reconcile()
		s.later(time.Minute, "the node registers")
	},
	"token prolonged after a freeze": func(s *story) {
		s.needTokens()
		s.provider.boot = 30 * time.Minute
		s.createMachine()
		s.reconcile()
		s.advance(10 * time.Minute)
		s.restartClock()
		s.tokens.faults = on[machine.RenewToken](fault{code: codes.Unavailable})
		s.later(0, "after a freeze, its clock starts again; the cluster is not quite there yet")
		s.tokens.faults = nil
		s.wait()
		s.later(19*time.Minute+55*time.Second, "it registers after the time that its token was first made for")
	},
}

var tokenTroubles = map[string]func(*story){
	"token not there to be prolonged": func(s *story) {
		s.needTokens()
		s.provider.boot = 30 * time.Minute
		s.createMachine()
		s.reconcile()
		clear(s.tokens.byUID)
		s.advance(10 * time.Minute)
		s.restartClock()
		s.later(0, "after a freeze, in which somebody has deleted the token: no other would be of use to the VM")
	},
	"token that was deleted already": func(s *story) {
		s.needTokens().faults = on[machine.RemoveToken](fault{code: codes.NotFound})
		s.createMachine()
		s.reconcile()
		s.later(time.Minute, "the node registers")
	},
	"token not found before initialization": func(s *story) {
		s.needTokens()
		s.provider.hasInit = true
		s.createMachine()
		s.killAt, s.killAfter = 4, true // at the create
		_, _, err := s.shell.reconcile()
		require.ErrorIs(s.t, err, errKilled)
		s.restart()
		s.tokens.faults = on[machine.RenewToken](fault{code: codes.Unavailable})
		s.reconcile()
		s.tokens.faults = nil
		clear(s.tokens.byUID)
		s.comment("somebody deletes the token")
		s.wait()
	},
	"token that would be over at once": func(s *story) {
		s.needTokens()
		s.provider.hasInit, s.provider.boot = true, -1
		s.createMachine()
		s.failing(codes.InitializeMachine, codes.Unavailable, false)
		s.reconcile()
		s.restart()
		s.failing(codes.InitializeMachine, codes.OK, false)
		s.edit(func(m *machine.Machine) { m.Spec.Config.CreationTimeout = time.Second })
		s.later(time.Minute, "its time is up")
	},
}

// restartClock restarts the machine's clock, as the end of a freeze does.
func (w *world) restartClock() {
	m := w.store.live().Clone()
	m.Status.ClockFrom = w.now.Truncate(time.Second)
	w.store.force(m)
}

var tokenScenarios = map[string]func(*world){
	"creation with a token": func(w *world) {
		w.needTokens()
		w.createMachine()
	},
	"creation with a token and initialization": func(w *world) {
		w.needTokens()
		w.provider.hasInit = true
		w.createMachine()
	},
	"deletion of a machine that waits with a token": func(w *world) {
		w.needTokens()
		w.createMachine()
		w.runPass(&shell{w: w})
		w.store.remove()
	},
	"deletion of a machine that had a token": func(w *world) {
		w.needTokens()
		w.createRunning()
		w.store.remove()
	},
}

// A token costs two calls in a creation, one in a deletion, and none otherwise.
// Invariants: P28
func TestTokensCostThreeCalls(t *testing.T) {
	life := func(tokens bool) (calls []int) {
		w := newWorld(t)
		if tokens {
			w.needTokens()
		}
		count := func(do func()) {
			w.calls = 0
			do()
			(&shell{w: w, noInitialize: true}).settle(bound)
			calls = append(calls, w.calls)
		}
		count(func() { w.createMachine() })
		require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
		count(func() { w.cluster.setReady(node, "False"); w.disableHealthTimeout() })
		count(func() { w.cluster.setReady(node, "True") })
		count(w.store.remove)
		require.Nil(t, w.store.live())
		return calls
	}
	with, without := life(true), life(false)
	assert.Equal(t, []int{without[0] + 2, without[1], without[2], without[3] + 1}, with)
}

// A token is valid until the machine's creation deadline, also if the machine has a timeout of its own.
func TestTokensLastUntilTheDeadline(t *testing.T) {
	w := newWorld(t)
	w.needTokens()
	w.provider.boot = -1
	w.createMachine(func(m *machine.Machine) { m.Spec.Config.CreationTimeout = 3 * time.Hour })
	s := &shell{w: w}
	w.runPass(s)
	has := w.tokens.byUID["uid-"+ours]
	deadline := w.store.live().CreatedAt.Add(3*time.Hour + time.Second)
	assert.Equal(t, deadline, has.until)
	before := w.tokens.ensured
	w.advance(2 * time.Hour)
	w.runPass(s)
	assert.Equal(t, before, w.tokens.ensured, "the token was renewed")
}

// During a storm no VM is created without the token of its machine: the model
// checks that at once. After the storm, a machine that has joined or is gone has
// no token, unless the deletion of the token failed.
// Invariants: P14
func TestTokensAfterAStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		tokens := c.needTokens()
		tokens.faults = func(machine.Effect) fault {
			if !c.stormy {
				return fault{}
			}
			return rapid.SampledFrom([]fault{{}, {}, {}, {codes.Unavailable, false}, {codes.DeadlineExceeded, true}, {codes.Unknown, false}}).Draw(t, "token fault")
		}
		c.storm(25)
		c.shell.settle(60)
		if m := c.store.live(); m != nil {
			if m.Status.Phase == machine.PhaseRunning && !tokens.removalFailed {
				require.Empty(t, tokens.byUID, "a machine that has joined still has a token")
			}
			requireIdle(c.world)
			c.store.remove()
			c.shell.settle(20)
			tokens.removalFailed = false
		}
		require.Nil(t, c.store.live())
		require.LessOrEqual(t, len(tokens.byUID), 1)
		if !tokens.removalFailed {
			require.Empty(t, tokens.byUID, "a machine that is gone still has a token")
		}
	})
}
