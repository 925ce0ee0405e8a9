package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// until has passes a moment before a time and at it, and returns both phases.
func (w *world) until(at time.Time) (before, then machine.Phase) {
	s := &shell{w: w}
	w.now = at.Add(-time.Nanosecond)
	w.passes(s)
	before = w.store.live().Status.Phase
	w.now = at
	w.passes(s)
	return before, w.store.live().Status.Phase
}

// Each limit counts from a stored time, which lost up to a second: it is over
// a second later than its figure says, and not a moment before.
// Invariants: P21
func TestLimitsEndOnTheSecond(t *testing.T) {
	t.Run("creation", func(t *testing.T) {
		w := newWorld(t)
		w.provider.boot = -1
		w.give()
		w.passes(&shell{w: w})
		before, then := w.until(w.store.live().CreatedAt.Add(w.policy.CreationTimeout + time.Second))
		assert.Equal(t, machine.PhasePending, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
	t.Run("health", func(t *testing.T) {
		w := newWorld(t)
		w.running()
		w.cluster.ready(node, object.False)
		w.passes(&shell{w: w})
		before, then := w.until(w.store.live().Status.Since.Add(w.policy.HealthTimeout + time.Second))
		assert.Equal(t, machine.PhaseUnknown, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
	t.Run("health of one machine, its clock restarted", func(t *testing.T) {
		w := newWorld(t)
		w.running()
		w.edit(func(m *machine.Machine) { m.Spec.Config.HealthTimeout = time.Minute })
		w.cluster.ready(node, object.False)
		w.passes(&shell{w: w})
		status := w.store.live().Status.Clone()
		status.ClockFrom = w.now.Add(30 * time.Second).Truncate(time.Second)
		_, err := w.store.updateStatus(w.store.live().Version, status)
		require.NoError(t, err)
		before, then := w.until(status.ClockFrom.Add(time.Minute + time.Second))
		assert.Equal(t, machine.PhaseUnknown, before)
		assert.Equal(t, machine.PhaseFailed, then)
	})
}

// force is a deletion held up at the mark on its node, and when force is due.
func force(t *testing.T, prepare func(*world), due func(*world) time.Time) {
	w := newWorld(t)
	w.running()
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
	require.Equal(t, at, w.now, "force is a time to look again at")
	_, gone, err := s.reconcile()
	require.NoError(t, err)
	require.True(t, gone, "force was due")
}

// Invariants: P21
func TestForceIsDueOnTheSecond(t *testing.T) {
	none := func(*world) {}
	t.Run("drain timeout", func(t *testing.T) {
		force(t, none, func(w *world) time.Time {
			return w.store.live().DeletedAt.Add(w.policy.DrainTimeout + time.Second)
		})
	})
	t.Run("drain timeout of one machine", func(t *testing.T) {
		force(t, func(w *world) {
			w.edit(func(m *machine.Machine) { m.Spec.Config.DrainTimeout = time.Minute })
		}, func(w *world) time.Time { return w.store.live().DeletedAt.Add(time.Minute + time.Second) })
	})
	t.Run("node not ready", func(t *testing.T) {
		since := epoch.Add(30 * time.Second)
		force(t, func(w *world) { w.condition(machine.NodeReady, object.Unknown, since) },
			func(*world) time.Time { return since.Add(5*time.Minute + time.Second) })
	})
	t.Run("node read-only before it was not ready", func(t *testing.T) {
		since := epoch.Add(30 * time.Second)
		force(t, func(w *world) {
			w.condition(machine.NodeReadonlyFilesystem, object.True, since)
			w.condition(machine.NodeReady, object.False, since.Add(time.Minute))
		}, func(*world) time.Time { return since.Add(5*time.Minute + time.Second) })
	})
	t.Run("node not ready before it was read-only", func(t *testing.T) {
		since := epoch.Add(30 * time.Second)
		force(t, func(w *world) {
			w.condition(machine.NodeReadonlyFilesystem, object.True, since.Add(time.Minute))
			w.condition(machine.NodeReady, object.False, since)
		}, func(*world) time.Time { return since.Add(5*time.Minute + time.Second) })
	})
	t.Run("label", func(t *testing.T) {
		force(t, func(w *world) {
			w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "1"} })
		}, func(w *world) time.Time { return w.now })
	})
}

// silent is what is known of a drain whose node has been silent since epoch.
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

// P22: a node has been silent until it was read, and no longer: neither a cache nor the time that
// a pass takes nor a drain's deadline may make up what is missing until force is due.
// Invariants: P22
func TestP22SilenceLastsUntilTheNodeWasRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.running()
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
		require.False(t, drains && !order.Forced && !order.Until.Equal(end), "P22: what is left would be deleted at %s", order)
		if !over && read.IsZero() && !w.now.Before(due) {
			require.IsType(t, machine.FindNode{}, plan.Effect)
		} else if o.Drain == nil {
			require.Equal(t, over || !read.Before(due), order.Forced, "P21: force is due")
		}
	})
}

// forces reports whether a plan uses force, or goes on as if it had been used.
func forces(p *machine.Plan) bool {
	order, drains := p.Effect.(*machine.DrainNode)
	status, stores := p.Write.(*machine.UpdateStatus)
	return drains && order.Forced || stores && status.Status.LastOperation.Forced || p.Moves[0].On == machine.EventForced
}

func (w *world) condition(typ string, status object.ConditionStatus, since time.Time) {
	w.cluster.change(node, func(n *machine.Node) {
		n.Conditions = object.SetCondition(object.DropCondition(n.Conditions, typ),
			object.Condition{Type: typ, Status: status, Since: since})
	})
}

// A label that does not parse as true forces nothing, and neither does a node
// that is another machine's.
func TestForceNeedsAReason(t *testing.T) {
	for _, value := range []string{"", "no", "false", "yes"} {
		force(t, func(w *world) {
			w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": value} })
		}, func(w *world) time.Time {
			return w.store.live().DeletedAt.Add(w.policy.DrainTimeout + time.Second)
		})
	}
}

// Time spent frozen does not count: no verdict on thaw, once the clock is restarted.
// Invariants: P25
func TestP25ClocksRestartOnThaw(t *testing.T) {
	w := newWorld(t)
	w.running()
	w.cluster.ready(node, object.False)
	s := &shell{w: w}
	w.passes(s)
	w.frozen = true
	w.pass(24 * time.Hour)
	w.passes(s)
	require.Equal(t, machine.PhaseUnknown, w.store.live().Status.Phase)
	status := w.store.live().Status.Clone()
	status.ClockFrom = w.now.Truncate(time.Second)
	_, err := w.store.updateStatus(w.store.live().Version, status)
	require.NoError(t, err)
	w.frozen = false
	before, then := w.until(status.ClockFrom.Add(w.policy.HealthTimeout + time.Second))
	assert.Equal(t, machine.PhaseUnknown, before)
	assert.Equal(t, machine.PhaseFailed, then)
}
