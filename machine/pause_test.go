package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

const pausedKey = "millwright-go/paused"

// annotatePause sets the pause annotation; empty: removes it.
func (w *world) annotatePause(value string) {
	w.edit(func(m *machine.Machine) {
		m.Annotations = map[string]string{pausedKey: value}
		if value == "" {
			m.Annotations = nil
		}
	})
}

// setPause sets the annotation, and runs a pass.
func (s *story) setPause(value string) {
	s.comment("annotation %s: %q", pausedKey, value)
	s.annotatePause(value)
	s.reconcile()
}

// pauseStories are about machines that are not reconciled for a time.
var pauseStories = map[string]func(*story){
	"paused while it runs": func(s *story) {
		s.toRunning()
		s.setPause("true")
		s.cluster.setReady(node, object.False)
		s.later(time.Hour, "its node has been ill for an hour")
		s.setPause("false")
		s.wait()
	},
	"paused while a create is under way": func(s *story) {
		s.provider.faults = func(call codes.Call) fault {
			if call == codes.CreateMachine && s.store.live().Annotations == nil {
				s.annotatePause("1")
				s.comment("it is paused while the provider creates the VM")
			}
			return fault{}
		}
		s.createMachine()
		s.reconcile()
		s.later(time.Hour, "an hour later")
		s.setPause("")
		s.later(time.Minute, "the node has joined")
	},
	"paused before its health times out": func(s *story) {
		s.toRunning()
		s.cluster.setReady(node, object.False)
		s.later(0, "the node falls ill")
		s.advance(9 * time.Minute)
		s.setPause("true")
		s.later(time.Hour, "an hour later: no verdict")
		s.setPause("")
		s.wait()
	},
	"paused while it is being deleted": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 1)
		s.requestDeletion()
		s.reconcile()
		s.setPause("true")
		s.comment("the label force-deletion is set, and the drain's time is up: it is not for them to say")
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.later(3*time.Hour, "")
		s.edit(func(m *machine.Machine) { m.Labels = nil })
		s.setPause("")
		s.wait()
	},
	"deleted while it is paused": func(s *story) {
		s.toRunning()
		s.setPause("true")
		s.requestDeletion()
		s.reconcile()
		s.setPause("")
	},
	"pause that can not be read": func(s *story) {
		s.toRunning()
		s.setPause("yes please")
		s.setPause("false")
	},
	"pause during an update": func(s *story) {
		s.toRunning()
		s.toRunningWithAgent("", 0)
		s.selectForUpdate()
		s.reconcile()
		s.setPause("true")
		s.later(time.Hour, "the time for the update is up")
		s.setPause("")
		s.wait()
	},
}

// TestP25PausedMachinesAreLeftAlone: for any observation of a paused machine, no call is made, and only the
// condition is written, once.
// Invariants: P25
func TestP25PausedMachinesAreLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		p.Keys.Paused = pausedKey
		o.Machine.Annotations = map[string]string{pausedKey: rapid.SampledFrom([]string{"true", "1", "T"}).Draw(t, "yes")}
		plan, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		require.Nil(t, plan.Effect)
		require.Zero(t, plan.Moves)
		if o.Machine.Deleted() && !o.Machine.HasFinalizer(machine.Finalizer) {
			require.Equal(t, machine.ReasonNotOurs, plan.Why.Reason)
			return
		}
		require.Equal(t, machine.ReasonPaused, plan.Why.Reason)
		require.Zero(t, plan.At)
		if plan.Write != nil {
			write := plan.Write.(*machine.UpdateStatus).Status
			condition := object.FindCondition(write.Conditions, machine.ConditionPaused)
			require.Equal(t, object.True, condition.Status)
			write.Conditions = o.Machine.Status.Conditions
			require.Equal(t, o.Machine.Status, write, "more than the condition was written")
			o.Machine = o.Machine.Clone()
			o.Machine.Status = plan.Write.(*machine.UpdateStatus).Status
			plan, err = machine.Decide(o, p, epoch.Add(time.Hour))
			require.NoError(t, err)
		}
		require.Nil(t, plan.Write, "P28: the condition is written again")
	})
}

// TestResumingIsOneWrite: for any observation of a machine that is no longer paused, the first write removes
// the condition and restarts the clocks, and changes nothing else.
// Invariants: P25
func TestResumingIsOneWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		p.Keys.Paused = rapid.SampledFrom([]string{pausedKey, ""}).Draw(t, "key")
		o.Machine.Finalizers = []string{machine.Finalizer}
		o.Machine.Annotations = map[string]string{pausedKey: "false"}
		if p.Keys.Paused == "" {
			o.Machine.Annotations[pausedKey] = "true" // the feature is off
		}
		o.Machine.Status.Conditions = append(o.Machine.Status.Conditions, object.Condition{Type: machine.ConditionPaused, Status: object.True})
		plan, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		require.Equal(t, machine.ReasonResumed, plan.Why.Reason)
		status := plan.Write.(*machine.UpdateStatus).Status
		require.Nil(t, object.FindCondition(status.Conditions, machine.ConditionPaused))
		require.Equal(t, epoch.Truncate(time.Second), status.ResumedAt)
		status.Conditions, status.ResumedAt = o.Machine.Status.Conditions, o.Machine.Status.ResumedAt
		require.Equal(t, o.Machine.Status, status)
	})
}

// pauseApplies reports whether a machine is paused. A machine that is being deleted without our finalizer is
// not.
func pauseApplies(m *machine.Machine) bool {
	yes, _ := machine.Paused(&m.Meta, pausedKey)
	return yes && !(m.Deleted() && !m.HasFinalizer(machine.Finalizer))
}

// TestPausedInAStorm: a machine is paused and resumed at any moment, with faults, stale reads and kills. Its
// deletion ends nevertheless, and a pass that sees the pause calls nothing but the store.
// Invariants: P18
func TestPausedInAStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		for range rapid.IntRange(0, 25).Draw(t, "steps") {
			if m := c.store.live(); m != nil && rapid.IntRange(0, 2).Draw(t, "pause") == 0 {
				c.annotatePause(rapid.SampledFrom([]string{"true", "", "false"}).Draw(t, "value"))
			} else {
				c.event()
			}
			paused, seen := false, ""
			c.shell.onDecision = func(o *machine.Observation, plan machine.Plan, _ string) {
				if o.Machine == nil {
					return // gone
				}
				seen = o.Machine.Version
				if pauseApplies(o.Machine) {
					paused = true
					require.Nil(t, plan.Effect, "%s", plan.Why)
				}
			}
			_, _, err := c.shell.reconcile()
			if errors.Is(err, errKilled) {
				c.restart()
			} else if !errors.Is(err, errConflict) {
				require.NoError(t, err)
			}
			if m := c.store.live(); paused && err == nil && m != nil && m.Version == seen && m.Annotations[pausedKey] == "true" {
				require.NotNil(t, object.FindCondition(m.Status.Conditions, machine.ConditionPaused))
			}
			c.requireOneRecordedVM()
		}
		c.stormy, c.killAt, c.shell.onDecision = false, 0, nil
		if c.store.live() != nil {
			c.annotatePause("")
			c.store.remove()
		}
		c.shell.settle(bound)
		require.Nil(t, c.store.live(), "P18: its deletion does not end")
	})
}

// TestInvalidPauses: an invalid value pauses nothing, and is returned. A condition Paused on the node does not
// concern the machine.
func TestInvalidPauses(t *testing.T) {
	for _, text := range []string{"", "yes", "true ", "2"} {
		paused, odd := machine.Paused(&object.Meta{Annotations: map[string]string{pausedKey: text}}, pausedKey)
		require.False(t, paused, "%q", text)
		require.NotEmpty(t, odd)
	}
	for _, key := range []string{"", "another"} {
		paused, odd := machine.Paused(&object.Meta{Annotations: map[string]string{pausedKey: "true", "": "true"}}, key)
		require.False(t, paused)
		require.Empty(t, odd)
	}
	s := newStory(t)
	s.toRunning()
	n := s.cluster.live(node).Clone()
	n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: machine.ConditionPaused, Status: object.True})
	s.cluster.put(n)
	for range 3 {
		s.reconcile()
		require.Equal(t, machine.ReasonHealthy, s.last.Why.Reason)
	}
	require.Nil(t, object.FindCondition(s.store.live().Status.Conditions, machine.ConditionPaused))
	require.Zero(t, s.store.live().Status.ResumedAt)
}
