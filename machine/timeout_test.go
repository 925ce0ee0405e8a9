package machine_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// phasesAround runs a pass a nanosecond before a time, and one at it, and returns the phases after both.
func (w *world) phasesAround(at time.Time) (before, then machine.Phase) {
	s := &shell{w: w}
	w.now = at.Add(-time.Nanosecond)
	w.runPass(s)
	before = w.store.live().Status.Phase
	w.now = at
	w.runPass(s)
	return before, w.store.live().Status.Phase
}

// Each limit counts from a stored time, which has lost up to a second. So it ends exactly a second after its
// figure.
// Invariants: P21
func TestLimitsEndOnTheSecond(t *testing.T) {
	t.Run("creation", func(t *testing.T) {
		w := newWorld(t)
		w.provider.boot = -1
		w.createMachine()
		w.runPass(&shell{w: w})
		before, then := w.phasesAround(w.store.live().CreatedAt.Add(w.policy.CreationTimeout + time.Second))
		assert.Equal(t, machine.PhasePending, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
	t.Run("health", func(t *testing.T) {
		w := newWorld(t)
		w.createRunning()
		w.cluster.setReady(node, object.False)
		w.runPass(&shell{w: w})
		before, then := w.phasesAround(w.store.live().Status.Since.Add(w.policy.HealthTimeout + time.Second))
		assert.Equal(t, machine.PhaseUnknown, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
	t.Run("creation, by a leader whose clock is ahead", func(t *testing.T) {
		w := newWorld(t)
		w.provider.boot = -1
		w.createMachine()
		w.runPass(&shell{w: w})
		w.now = w.now.Add(time.Hour)
		w.led = w.now
		before, then := w.phasesAround(w.led.Add(w.policy.CreationTimeout + time.Second))
		assert.Equal(t, machine.PhasePending, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
	t.Run("health, by a leader whose clock is ahead", func(t *testing.T) {
		w := newWorld(t)
		w.createRunning()
		w.cluster.setReady(node, object.False)
		w.runPass(&shell{w: w})
		w.now = w.now.Add(time.Hour)
		w.led = w.now
		before, then := w.phasesAround(w.led.Add(w.policy.HealthTimeout + time.Second))
		assert.Equal(t, machine.PhaseUnknown, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
	t.Run("creation, by a leader whose clock was set back since", func(t *testing.T) {
		w := newWorld(t)
		w.provider.boot = -1
		w.createMachine()
		w.runPass(&shell{w: w})
		w.led = w.now.Add(24 * time.Hour)
		before, then := w.phasesAround(w.store.live().CreatedAt.Add(w.policy.CreationTimeout + time.Second))
		assert.Equal(t, machine.PhasePending, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
	t.Run("health of one machine, its clock restarted", func(t *testing.T) {
		w := newWorld(t)
		w.createRunning()
		w.edit(func(m *machine.Machine) { m.Spec.Config.HealthTimeout = time.Minute })
		w.cluster.setReady(node, object.False)
		w.runPass(&shell{w: w})
		status := w.store.live().Status.Clone()
		status.ClockFrom = w.now.Add(30 * time.Second).Truncate(time.Second)
		_, err := w.store.updateStatus(w.store.live().Version, status)
		require.NoError(t, err)
		before, then := w.phasesAround(status.ClockFrom.Add(time.Minute + time.Second))
		assert.Equal(t, machine.PhaseUnknown, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
}

// requireForceAt deletes a machine whose node can't be marked, and checks that the deletion continues exactly
// when force is due.
func requireForceAt(t *testing.T, prepare func(*world), due func(*world) time.Time) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.faults = func(effect string) codes.Code {
		if effect == "MarkNode" {
			return codes.Unavailable
		}
		return codes.OK
	}
	prepare(w)
	w.store.remove()
	at := due(w)
	s := &shell{w: w}
	for w.now.Before(at) {
		plan, gone, err := s.reconcile()
		require.NoError(t, err)
		require.False(t, gone, "forced at %s, due at %s", w.now, at)
		require.False(t, plan.At.IsZero())
		w.now = plan.At
	}
	require.Equal(t, at, w.now, "no plan has this At")
	_, gone, err := s.reconcile()
	require.NoError(t, err)
	require.True(t, gone, "the deletion does not continue although force is due")
}

// Invariants: P21
func TestForceIsDueOnTheSecond(t *testing.T) {
	none := func(*world) {}
	t.Run("drain timeout", func(t *testing.T) {
		requireForceAt(t, none, func(w *world) time.Time {
			return w.store.live().DeletedAt.Add(w.policy.DrainTimeout + time.Second)
		})
	})
	t.Run("drain timeout, by a leader whose clock is ahead", func(t *testing.T) {
		requireForceAt(t, none, func(w *world) time.Time {
			w.now = w.now.Add(3 * time.Hour)
			w.led = w.now
			return w.led.Add(w.policy.DrainTimeout + time.Second)
		})
	})
	t.Run("drain timeout of one machine", func(t *testing.T) {
		requireForceAt(t, func(w *world) {
			w.edit(func(m *machine.Machine) { m.Spec.Config.DrainTimeout = time.Minute })
		}, func(w *world) time.Time { return w.store.live().DeletedAt.Add(time.Minute + time.Second) })
	})
	t.Run("node not ready", func(t *testing.T) {
		since := epoch.Add(30 * time.Second)
		requireForceAt(t, func(w *world) { w.condition(machine.NodeReady, object.Unknown, since) },
			func(*world) time.Time { return since.Add(5*time.Minute + time.Second) })
	})
	t.Run("node read-only before it was not ready", func(t *testing.T) {
		since := epoch.Add(30 * time.Second)
		requireForceAt(t, func(w *world) {
			w.condition(machine.NodeReadonlyFilesystem, object.True, since)
			w.condition(machine.NodeReady, object.False, since.Add(time.Minute))
		}, func(*world) time.Time { return since.Add(5*time.Minute + time.Second) })
	})
	t.Run("node not ready before it was read-only", func(t *testing.T) {
		since := epoch.Add(30 * time.Second)
		requireForceAt(t, func(w *world) {
			w.condition(machine.NodeReadonlyFilesystem, object.True, since.Add(time.Minute))
			w.condition(machine.NodeReady, object.False, since)
		}, func(*world) time.Time { return since.Add(5*time.Minute + time.Second) })
	})
	t.Run("label", func(t *testing.T) {
		requireForceAt(t, func(w *world) {
			w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "1"} })
		}, func(w *world) time.Time { return w.now })
	})
}

// silent returns the observation of a drain whose node has not been Ready since epoch.
func silent(t *rapid.T, w *world, read time.Time) *machine.Observation {
	w.condition(machine.NodeReady, object.Unknown, epoch)
	w.condition(machine.NodeTerminating, object.True, epoch)
	m := w.store.live().Clone()
	m.DeletedAt = epoch.Add(time.Duration(rapid.IntRange(-10, 10).Draw(t, "deleted")) * time.Minute).Truncate(time.Second)
	m.Status.Phase = machine.PhaseTerminating
	m.Status.LastOperation = machine.Operation{
		Kind: machine.OperationDelete, State: machine.StateProcessing, Stage: machine.StageInitiateDrain, Time: m.DeletedAt,
	}
	return &machine.Observation{
		Machine: m, Class: w.class, Node: &machine.NodeAnswer{Name: node, Node: w.cluster.live(node), Read: readAt(read)},
		Drain: rapid.SampledFrom([]*machine.DrainAnswer{
			nil, {Why: "a pod is leaving"}, {Done: true}, {Outcome: machine.Outcome{Code: codes.Unavailable}},
		}).Draw(t, "drain"),
	}
}

// P22: a node counts as unresponsive only until it was read. So force is due only if the node was still
// unresponsive in a read that late. Neither a cached read, nor the time that a pass takes, nor the deadline of
// a drain replaces that.
// Invariants: P22
func TestP22SilenceLastsUntilTheNodeWasRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.createRunning()
		seconds := func(most int, label string) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Second
		}
		w.policy.DrainTimeout = rapid.SampledFrom([]time.Duration{2 * time.Hour, 7 * time.Minute}).Draw(t, "timeout")
		due := epoch.Add(w.policy.Unresponsive + time.Second)
		w.now = due.Add(seconds(240, "later") - 2*time.Minute)
		read := w.now.Add(-seconds(120, "ago"))
		if rapid.Bool().Draw(t, "cached") {
			read = time.Time{}
		}
		o := silent(t, w, read)
		end := o.Machine.DeletedAt.Add(w.policy.DrainTimeout + time.Second)
		plan, err := machine.Decide(o, w.policy, w.now)
		require.NoError(t, err)
		over := !w.now.Before(end)
		require.True(t, over || !read.Before(due) || !forces(&plan), "P22: %s of a node that was read at %s", plan.Why, read)
		require.True(t, plan.At.IsZero() || plan.At.After(w.now))
		order, drains := plan.Effect.(*machine.DrainNode)
		require.False(t, drains && !order.Forced && !order.Until.Equal(end), "P22: the drain would use force at the wrong time: %s", order)
		if !over && read.IsZero() && !w.now.Before(due) {
			require.IsType(t, machine.FindNode{}, plan.Effect)
		} else if o.Drain == nil {
			require.Equal(t, over || !read.Before(due), order.Forced, "P21: force is due, and not used, or used too early")
		}
	})
}

// forces reports whether a plan uses force, or continues as after a forced drain.
func forces(p *machine.Plan) bool {
	order, drains := p.Effect.(*machine.DrainNode)
	status, stores := p.Write.(*machine.UpdateStatus)
	return drains && order.Forced || stores && status.Status.LastOperation.Forced || first(p).On == machine.EventForced
}

func (w *world) condition(typ string, status object.ConditionStatus, since time.Time) {
	w.cluster.change(node, func(n *machine.Node) {
		n.Conditions = object.SetCondition(object.DropCondition(n.Conditions, typ),
			object.Condition{Type: typ, Status: status, Since: since})
	})
}

// A label whose value is not true forces nothing.
func TestForceNeedsAReason(t *testing.T) {
	for _, value := range []string{"", "no", "false", "yes"} {
		requireForceAt(t, func(w *world) {
			w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": value} })
		}, func(w *world) time.Time {
			return w.store.live().DeletedAt.Add(w.policy.DrainTimeout + time.Second)
		})
	}
}

// P25: the time of a freeze does not count: after the clocks are restarted, a machine has its whole timeout.
// Invariants: P25
func TestP25ClocksRestartOnThaw(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.setReady(node, object.False)
	s := &shell{w: w}
	w.runPass(s)
	w.frozen = true
	w.advance(24 * time.Hour)
	w.runPass(s)
	require.Equal(t, machine.PhaseUnknown, w.store.live().Status.Phase)
	status := w.store.live().Status.Clone()
	status.ClockFrom = w.now.Truncate(time.Second)
	_, err := w.store.updateStatus(w.store.live().Version, status)
	require.NoError(t, err)
	w.frozen = false
	before, then := w.phasesAround(status.ClockFrom.Add(w.policy.HealthTimeout + time.Second))
	assert.Equal(t, machine.PhaseUnknown, before)
	assert.Equal(t, machine.PhaseFailed, then)
}

// watchedDeletion is a deletion with hooks, and with pods that leave only by force. It records when things
// happen.
type watchedDeletion struct {
	*world
	preDrain, preTerminate string
	vmGone                 time.Time // when the VM was gone
	forced                 time.Time // the first DrainNode with force
	unforced               time.Time // the first DrainNode without force
}

func newWatchedDeletion(t require.TestingT) *watchedDeletion {
	p := &watchedDeletion{world: newWorld(t)}
	p.createRunning()
	p.addDrain(0, 0, 1)
	p.preDrain, p.preTerminate = p.policy.Keys.PreDrainHook+"backup", p.policy.Keys.PreTerminateHook+"wipe"
	return p
}

// hook adds or removes a hook, as another program does.
func (p *watchedDeletion) hook(name string, on bool) {
	m := p.store.live()
	if m == nil {
		return
	}
	if _, there := m.Annotations[name]; there == on {
		return
	}
	p.edit(func(m *machine.Machine) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[name] = ""
		if !on {
			delete(m.Annotations, name)
		}
	})
}

// passOnce runs one pass, replaces a killed process, and records what has happened.
func (p *watchedDeletion) passOnce(s *shell) (next time.Time) {
	plan, _, err := s.reconcile()
	if !errors.Is(err, errConflict) && !errors.Is(err, errKilled) {
		require.NoError(p.t, err)
	}
	for _, order := range p.cluster.drain.orders {
		if order.Forced && p.forced.IsZero() {
			p.forced = p.now
		}
		if !order.Forced && p.unforced.IsZero() {
			p.unforced = p.now
		}
	}
	if len(p.provider.vms) == 0 && p.vmGone.IsZero() {
		p.vmGone = p.now
	}
	if errors.Is(err, errKilled) {
		*s = shell{w: p.world}
		return p.now
	}
	return plan.At
}

// passUntil runs passes until a time, or until the machine is gone.
func (p *watchedDeletion) passUntil(s *shell, end time.Time) {
	for range 1000 {
		next := p.passOnce(s)
		if p.store.live() == nil {
			return
		}
		if next.IsZero() || next.After(end) {
			p.now = end
			return
		}
		p.now = next
	}
	require.Fail(p.t, "the deletion does not end")
}

// A drain has its whole timeout, however long a hook has blocked it.
// Invariants: P21 P66
func TestP21HookLeavesTheDrainItsTime(t *testing.T) {
	for _, held := range []time.Duration{time.Minute, 110 * time.Minute, 119*time.Minute + 59*time.Second, 3 * time.Hour} {
		p := newWatchedDeletion(t)
		p.hook(p.preDrain, true)
		p.store.remove()
		begun, s := p.now, &shell{w: p.world}
		p.passUntil(s, begun.Add(held))
		p.hook(p.preDrain, false)
		p.passUntil(s, begun.Add(100*time.Hour))
		drain := begun.Add(min(held, p.policy.HookTimeout))
		assert.WithinDuration(t, drain, p.unforced, 2*time.Second, "held for %s", held)
		assert.WithinDuration(t, drain.Add(p.policy.DrainTimeout), p.forced, 3*time.Second, "held for %s", held)
	}
}

// After a forced drain, the hook before the VM's deletion has its whole timeout.
// Invariants: P21
func TestP21ForcedDrainLeavesTheHookItsTime(t *testing.T) {
	p := newWatchedDeletion(t)
	p.hook(p.preTerminate, true)
	p.store.remove()
	begun := p.now
	p.passUntil(&shell{w: p.world}, begun.Add(100*time.Hour))
	assert.WithinDuration(t, begun.Add(p.policy.DrainTimeout), p.forced, 2*time.Second)
	assert.WithinDuration(t, p.forced.Add(p.policy.HookTimeout), p.vmGone, 2*time.Second)
}

// P21: each wait of a deletion counts from its own stored beginning, with kills, and with hooks that are added
// and removed. All waits together are bounded.
// Invariants: P21
func TestP21EachWaitHasItsOwnTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newWatchedDeletion(t)
		minutes := func(most int, what string) time.Duration {
			return time.Duration(rapid.IntRange(1, most).Draw(t, what)) * time.Minute
		}
		hooks, drains := minutes(180, "hook timeout"), minutes(180, "drain timeout")
		p.policy.HookTimeout, p.policy.DrainTimeout = hooks, drains
		p.hook(p.preTerminate, rapid.Bool().Draw(t, "hook before the VM's deletion"))
		p.store.remove()
		begun, s := p.now, &shell{w: p.world}
		first, free, on := time.Time{}, p.now, false // when the first hook was added, when hooks no longer block, whether there is one
		for range 8 {
			if rapid.Bool().Draw(t, "hook") {
				if on = !on; on && first.IsZero() {
					first = p.now
				}
				p.hook(p.preDrain, on)
				switch end := first.Add(hooks); {
				case on && p.now.Before(end):
					free = end
				case !on && p.now.Before(end):
					free = p.now
				}
			}
			if rapid.Bool().Draw(t, "killed") {
				p.killAt, p.killAfter = p.calls+rapid.IntRange(1, 12).Draw(t, "at"), rapid.Bool().Draw(t, "after it")
			}
			p.passUntil(s, p.now.Add(minutes(120, "later")))
			if p.store.live() == nil || !p.forced.IsZero() {
				break
			}
		}
		bound := 2*hooks + 2*drains + p.policy.DetachTimeout + 2*time.Minute
		p.passUntil(s, begun.Add(bound))
		require.Nil(t, p.store.live(), "after %s", bound)
		require.GreaterOrEqual(t, p.forced.Sub(free), drains, "the drain had less than its timeout after the hooks")
		if _, hooked := p.store.cached(1).Annotations[p.preTerminate]; hooked {
			require.GreaterOrEqual(t, p.vmGone.Sub(p.forced), hooks, "the hook before the VM's deletion had less than its timeout")
		}
	})
}

func init() { maps.Copy(healthStories, graceStories) }

var graceStories = map[string]func(*story){
	"timeouts that ran out while nobody watched": func(s *story) {
		s.provider.boot = 2 * time.Hour
		s.createMachine()
		s.later(0, "")
		s.advance(2*time.Hour - 10*time.Second)
		s.watched = s.now
		s.later(0, "the process was away for two hours, and so was the cluster; another one begins")
		s.later(15*time.Second, "the node registers")
		s.cluster.setReady(node, object.False)
		s.later(time.Minute, "the kubelet is not ready")
		s.advance(time.Hour)
		s.watched = s.now
		s.later(0, "the process was away for another hour")
		s.wait()
	},
}

// failingWait is a wait whose end marks a machine, or its update, as failed.
type failingWait struct {
	prepare func(*world)
	timeout time.Duration
	failed  machine.Phase
	// base returns when the wait began.
	base func(*machine.Machine) time.Time
}

func sinceCreation(m *machine.Machine) time.Time { return m.CreatedAt }
func sincePhase(m *machine.Machine) time.Time    { return m.Status.Since }

// failingWaits are all of them.
var failingWaits = map[string]failingWait{
	"its node does not join": {
		func(w *world) { w.provider.boot = -1; w.createMachine() }, 20 * time.Minute, machine.PhaseFailed, sinceCreation,
	},
	"its VM cannot be made": {
		func(w *world) {
			w.createMachine()
			w.provider.faults = func(call codes.Call) fault {
				return fault{code: map[codes.Call]codes.Code{codes.CreateMachine: codes.ResourceExhausted}[call]}
			}
		}, 20 * time.Minute, machine.PhaseFailed, sinceCreation,
	},
	"its class is slowed after its own try": {
		func(w *world) {
			w.createMachine()
			w.provider.faults = func(codes.Call) fault { return fault{code: codes.ResourceExhausted} }
			w.runPass(&shell{w: w})
			w.backOffClass(100 * time.Hour)
		}, 20 * time.Minute, machine.PhaseFailed, sinceCreation,
	},
	"its node is not ready": {
		func(w *world) { w.createRunning(); w.cluster.setReady(node, object.False) }, 10 * time.Minute, machine.PhaseFailed, sincePhase,
	},
	"its node cannot be emptied for its update": {
		func(w *world) { w.createRunning(); w.addDrain(0, 0, 1); w.requestInPlace(machine.InPlaceSelected) },
		20 * time.Minute, machine.PhaseInPlaceUpdateFailed, sincePhase,
	},
	"its agent does not answer": {
		func(w *world) { w.createRunning(); w.requestInPlace(machine.InPlaceSelected) }, 20 * time.Minute, machine.PhaseInPlaceUpdateFailed, sincePhase,
	},
}

// at brings a machine to where it waits, and returns when its time is up.
func (l failingWait) at(t *testing.T) (*world, time.Time) {
	w := newWorld(t)
	l.prepare(w)
	w.runPass(&shell{w: w})
	return w, l.base(w.store.live()).Add(l.timeout + time.Second)
}

// TestGraceAfterStart: a process marks a machine failed only after it has watched for the grace, or since the
// wait began. Until then nothing is written, the plan says why, and At is the end of the grace.
// Invariants: P21 P25
func TestGraceAfterStart(t *testing.T) {
	for name, l := range failingWaits {
		for away, started := range map[string]time.Duration{
			"for hours": 5 * time.Hour, "until a moment after its time was up": time.Second, "until a moment before": -10 * time.Second,
		} {
			t.Run(name+", nobody watched "+away, func(t *testing.T) {
				w, deadline := l.at(t)
				w.watched = deadline.Add(started)
				until := w.watched.Add(w.policy.Grace)
				w.now = later(deadline, w.watched)
				before := w.store.live()
				plan, _, err := (&shell{w: w}).reconcile()
				require.NoError(t, err)
				require.Equal(t, machine.ReasonGrace, plan.Why.Reason, "%s", plan.Why)
				require.False(t, plan.At.After(until), "At is after the end of the grace")
				for at := plan.At; at.Before(until); at = plan.At {
					w.now = at
					plan, _, err = (&shell{w: w}).reconcile()
					require.NoError(t, err)
				}
				phaseBefore, phase := w.phasesAround(until)
				assert.Equal(t, before.Status.Phase, phaseBefore)
				assert.Equal(t, l.failed, phase)
			})
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// TestNoGraceForWatchedWaits: a wait ends at its own deadline if this process has watched it from its
// beginning, if the deadline is after the grace, or if no start or no grace is known.
// Invariants: P21
func TestNoGraceForWatchedWaits(t *testing.T) {
	for name, l := range failingWaits {
		for when, prepare := range map[string]func(*world, time.Time){
			"no start is known":           func(*world, time.Time) {},
			"it began in the same second": func(w *world, d time.Time) { w.watched = d.Add(-l.timeout - time.Second) },
			"the grace was long over":     func(w *world, d time.Time) { w.watched = d.Add(-w.policy.Grace) },
			"there is no grace":           func(w *world, d time.Time) { w.watched, w.policy.Grace = d.Add(-time.Second), object.Off },
			"its clock was restarted": func(w *world, d time.Time) {
				status := w.store.live().Status.Clone()
				status.ClockFrom = l.base(w.store.live()).Add(time.Second)
				_, err := w.store.updateStatus(w.store.live().Version, status)
				require.NoError(t, err)
				w.watched = status.ClockFrom.Add(-time.Minute)
			},
			"the clock was set back since": func(w *world, d time.Time) { w.watched = d.Add(time.Hour) },
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				w, deadline := l.at(t)
				prepare(w, deadline)
				if when == "its clock was restarted" {
					deadline = deadline.Add(time.Second)
				}
				phaseBefore, phase := w.phasesAround(deadline)
				assert.NotEqual(t, l.failed, phaseBefore)
				assert.Equal(t, l.failed, phase)
			})
		}
	}
}

// TestGraceIsBounded: however often the process restarts, if the restarts are more than a grace apart, a
// machine is marked Failed at most one grace after its timeout.
// Invariants: P3 P21
func TestGraceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.createRunning()
		w.cluster.setReady(node, object.False)
		w.runPass(&shell{w: w})
		since := w.store.live().Status.Since
		limit := since.Add(w.policy.HealthTimeout + w.policy.Grace + time.Second)
		for w.phase() != machine.PhaseFailed {
			require.False(t, w.now.After(limit), "not marked Failed at %s, its limit was %s", w.now, limit)
			w.watched = w.now
			next := w.now.Add(w.policy.Grace + time.Duration(rapid.IntRange(1, 900).Draw(t, "s"))*time.Second)
			for w.phase() != machine.PhaseFailed {
				plan, _, err := (&shell{w: w}).reconcile()
				require.NoError(t, err)
				if w.phase() == machine.PhaseFailed || !plan.At.Before(next) {
					break
				}
				w.now = plan.At
			}
			if w.phase() != machine.PhaseFailed {
				w.now = next
			}
		}
	})
}
