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
	"github.com/millwright-go/millwright/object"
)

func init() { maps.Copy(healthStories, graceStories) }

var graceStories = map[string]func(*story){
	"timeouts that ran out while nobody watched": func(s *story) {
		s.provider.boot = 2 * time.Hour
		s.give()
		s.later(0, "")
		s.pass(2*time.Hour - 10*time.Second)
		s.watched = s.now
		s.later(0, "the process was away for two hours, and so was the cluster; another one begins")
		s.later(15*time.Second, "the node registers")
		s.cluster.ready(node, object.False)
		s.later(time.Minute, "the kubelet is not ready")
		s.pass(time.Hour)
		s.watched = s.now
		s.later(0, "the process was away for another hour")
		s.wait()
	},
}

// late is a machine whose time runs out, and what it is then.
type late struct {
	prepare func(*world)
	timeout time.Duration
	failed  machine.Phase
	// base is what its time counts from.
	base func(*machine.Machine) time.Time
}

func sinceCreation(m *machine.Machine) time.Time { return m.CreatedAt }
func sincePhase(m *machine.Machine) time.Time    { return m.Status.Since }

// lates are all waits whose end marks a machine as failed.
var lates = map[string]late{
	"its node does not join": {
		func(w *world) { w.provider.boot = -1; w.give() }, 20 * time.Minute, machine.PhaseFailed, sinceCreation,
	},
	"its VM cannot be made": {
		func(w *world) {
			w.give()
			w.provider.faults = func(call codes.Call) fault {
				return fault{code: map[codes.Call]codes.Code{codes.CreateMachine: codes.ResourceExhausted}[call]}
			}
		}, 20 * time.Minute, machine.PhaseFailed, sinceCreation,
	},
	"its class is slowed after its own try": {
		func(w *world) {
			w.give()
			w.provider.faults = func(codes.Call) fault { return fault{code: codes.ResourceExhausted} }
			w.passes(&shell{w: w})
			w.slow(100 * time.Hour)
		}, 20 * time.Minute, machine.PhaseFailed, sinceCreation,
	},
	"it is ill": {
		func(w *world) { w.running(); w.cluster.ready(node, object.False) }, 10 * time.Minute, machine.PhaseFailed, sincePhase,
	},
	"its node cannot be emptied for its update": {
		func(w *world) { w.running(); w.drains(0, 0, 1); w.ask(machine.InPlaceSelected) },
		20 * time.Minute, machine.PhaseInPlaceUpdateFailed, sincePhase,
	},
	"its agent does not answer": {
		func(w *world) { w.running(); w.ask(machine.InPlaceSelected) }, 20 * time.Minute, machine.PhaseInPlaceUpdateFailed, sincePhase,
	},
}

// at brings a machine to where it waits, and returns when its time is up.
func (l late) at(t *testing.T) (*world, time.Time) {
	w := newWorld(t)
	l.prepare(w)
	w.passes(&shell{w: w})
	return w, l.base(w.store.live()).Add(l.timeout + time.Second)
}

// TestGraceAfterStart: a process that marks a machine failed has watched it for the grace, or
// for as long as its time ran. Meanwhile nothing is written, and the plan says why
// and looks again on the second.
// Invariants: P21 P25
func TestGraceAfterStart(t *testing.T) {
	for name, l := range lates {
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
				require.False(t, plan.At.After(until), "it looks again in time")
				for at := plan.At; at.Before(until); at = plan.At {
					w.now = at
					plan, _, err = (&shell{w: w}).reconcile()
					require.NoError(t, err)
				}
				was, is := w.until(until)
				assert.Equal(t, before.Status.Phase, was)
				assert.Equal(t, l.failed, is)
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

// TestGraceIsForWhatWasNotWatched: a wait that this process has seen from its
// beginning, one that ends after the grace, and any where no start or no grace is
// known ends on its own time.
// Invariants: P21
func TestGraceIsForWhatWasNotWatched(t *testing.T) {
	for name, l := range lates {
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
				was, is := w.until(deadline)
				assert.NotEqual(t, l.failed, was)
				assert.Equal(t, l.failed, is)
			})
		}
	}
}

// TestGraceIsBounded: however often the process is restarted, if that is more than a
// grace apart, a machine is marked failed no later than its timeout and one grace after
// it fell ill.
// Invariants: P3 P21
func TestGraceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.running()
		w.cluster.ready(node, object.False)
		w.passes(&shell{w: w})
		since := w.store.live().Status.Since
		limit := since.Add(w.policy.HealthTimeout + w.policy.Grace + time.Second)
		for w.phase() != machine.PhaseFailed {
			require.False(t, w.now.After(limit), "not given up at %s, its limit was %s", w.now, limit)
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
