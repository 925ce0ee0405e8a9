package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

const pausedKey = "millwright-go/paused"

// pause writes the pause annotation of a machine. An empty value removes it.
func (w *world) pause(name, value string) {
	w.change(name, func(m *machine.Machine) { m.Annotations = withPauseAnnotation(m.Annotations, value) })
}

// pauseSet writes the pause annotation of the set. An empty value removes it.
func (w *world) pauseSet(value string) {
	w.edit(func(s *machineset.Set) { s.Annotations = withPauseAnnotation(s.Annotations, value) })
}

func withPauseAnnotation(annotations map[string]string, value string) map[string]string {
	out := map[string]string{}
	for k, v := range annotations {
		out[k] = v
	}
	delete(out, pausedKey)
	if value != "" {
		out[pausedKey] = value
	}
	return out
}

// TestPaused shows paused sets and machines.
func TestPaused(t *testing.T) {
	playScenario(t, "paused-set", 3, func(s *scenario) {
		s.runAll()
		s.comment("the set is paused, a machine fails, and five are wanted")
		s.w.pauseSet("true")
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.scale(5)
		s.after(time.Minute)
		s.after(time.Hour)
		s.comment("resumed")
		s.w.pauseSet("")
		s.after(time.Minute)
	})
	playScenario(t, "paused-set-with-open-names", 3, func(s *scenario) {
		s.comment("the process dies at its second create, and the set is paused for an hour")
		s.faults("create", fine, crash)
		s.pass()
		s.w.pauseSet("true")
		s.after(time.Minute)
		s.w.pauseSet("false")
		s.after(time.Hour)
	})
	playScenario(t, "paused-set-deleted", 2, func(s *scenario) {
		s.runAll()
		s.w.pauseSet("true")
		s.delete()
		s.after(time.Minute)
		s.comment("resumed")
		s.w.pauseSet("")
		s.after(time.Minute)
	})
	playScenario(t, "pause-unreadable", 1, func(s *scenario) {
		s.runAll()
		s.w.pauseSet("for a while")
		s.scale(2)
		s.after(time.Minute)
		require.Equal(t, machineset.ReasonOddPause, s.p.plan.Warn.Reason)
	})
	playScenario(t, "paused-machine-of-a-shrinking-set", 3, func(s *scenario) {
		s.runAll()
		s.comment("the oldest is paused")
		s.w.pause(s.name(1), "true")
		s.scale(2)
		s.after(time.Minute)
		s.w.removeDeleted()
		s.comment("and none is wanted")
		s.scale(0)
		s.after(time.Minute)
		s.w.removeDeleted()
		s.after(time.Minute)
		s.comment("resumed")
		s.w.pause(s.name(1), "")
		s.after(time.Minute)
	})
	playScenario(t, "paused-machine-that-does-not-work", 3, func(s *scenario) {
		s.runAll()
		s.comment("the first is ill and paused: two others work, and two are wanted")
		s.w.phase(s.name(1), machine.PhaseUnknown)
		s.w.pause(s.name(1), "true")
		s.scale(2)
		s.after(time.Minute)
		s.comment("one is wanted")
		s.scale(1)
		s.after(time.Minute)
	})
	playScenario(t, "paused-machine-that-failed", 2, func(s *scenario) {
		s.runAll()
		s.w.pause(s.name(1), "true")
		s.w.phase(s.name(1), machine.PhaseFailed)
		s.after(time.Minute)
		s.comment("resumed")
		s.w.pause(s.name(1), "")
		s.after(time.Minute)
	})
	playScenario(t, "paused-machine-of-a-deleted-set", 2, func(s *scenario) {
		s.runAll()
		s.w.pause(s.name(2), "true")
		s.delete()
		s.after(time.Minute)
		s.w.removeDeleted()
		s.after(time.Minute)
		s.comment("resumed")
		s.w.pause(s.name(2), "")
		s.after(time.Minute)
		s.w.removeDeleted()
		s.after(time.Minute)
	})
}

// TestPausedSetGivesNoOrder: for any observation of a paused set, the only plan is at most one write of its
// status.
// Invariants: P28
func TestPausedSetGivesNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := anySet(t)
		o := &machineset.Observation{Set: set, Machines: anyMachines(t, set, 6), Frozen: rapid.Bool().Draw(t, "frozen")}
		o.Orphans = anyMachines(t, set, 2)
		if rapid.Bool().Draw(t, "live") {
			o.Read = decision.Freshness{Began: morning}
		}
		set.Annotations = map[string]string{pausedKey: "true"}
		for n := range 2 {
			plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
			require.NoError(t, err)
			require.False(t, plan.ReadLive)
			require.Empty(t, orders(plan))
			if set.Deleted() && !set.HasFinalizer(machineset.Finalizer) {
				require.Equal(t, machineset.ReasonNotOurs, plan.Why.Reason)
				return
			}
			if plan.Write == nil {
				require.Equal(t, machineset.ReasonPaused, plan.Why.Reason)
				return
			}
			require.Zero(t, n, "P28: written once: %s", plan.Why)
			status := plan.Write.(*machineset.UpdateStatus).Status
			require.NotNil(t, object.FindCondition(status.Conditions, machineset.ConditionPaused))
			o.Set = set.Clone()
			o.Set.Status = status
		}
	})
}

// orders returns all orders of a plan.
func orders(p machineset.Plan) (out []machineset.Order) {
	for _, list := range [][]machineset.Order{p.Create, p.Delete, p.Adopt, p.Release, p.Push} {
		out = append(out, list...)
	}
	return out
}

// TestPausedMachinesStay: whatever happens to a set, and whenever its process dies, no paused machine is
// deleted, and none is created in its place (P12). No available machine is deleted instead of a paused one that
// is unavailable, so that availability does not fall below the set's size (P7). When all machines are resumed,
// the set gets its size.
// Invariants: P7 P12
func TestPausedMachinesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int32Range(1, 6).Draw(t, "replicas")
		w := newWorld(newSet(size))
		p := newProcess(w, machineset.DefaultPolicy())
		settle := func() {
			for range 20 {
				require.True(t, p.run())
				w.removeDeleted()
				for _, m := range w.active() {
					w.phase(m.Name, machine.PhaseRunning)
				}
				w.advance(10 * time.Minute)
			}
		}
		settle()
		p.decided = func(o *machineset.Observation, plan machineset.Plan) { checkPausedKept(t, o, plan) }
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			all := w.active()
			switch rapid.IntRange(0, 7).Draw(t, "action") {
			case 0, 1:
				if len(all) > 0 {
					m := all[rapid.IntRange(0, len(all)-1).Draw(t, "machine")]
					w.pause(m.Name, rapid.SampledFrom([]string{"true", "true", ""}).Draw(t, "value"))
				}
			case 2:
				if len(all) > 0 {
					m := all[rapid.IntRange(0, len(all)-1).Draw(t, "machine")]
					w.phase(m.Name, rapid.SampledFrom([]machine.Phase{
						machine.PhaseUnknown, machine.PhaseFailed, machine.PhaseRunning,
					}).Draw(t, "phase"))
				}
			case 3:
				w.edit(func(s *machineset.Set) { s.Spec.Replicas = rapid.Int32Range(0, 6).Draw(t, "size") })
			case 4:
				w.removeDeleted()
			case 5:
				p.die()
			default:
				p.run()
			}
			w.advance(time.Second)
		}
		for _, m := range w.all() {
			w.pause(m.Name, "")
		}
		p.decided = nil
		settle()
		require.Len(t, w.all(), int(w.set.Spec.Replicas))
	})
}

// checkPausedKept fails if a plan deletes a paused machine, or creates or deletes others because of it.
func checkPausedKept(t *rapid.T, o *machineset.Observation, plan machineset.Plan) {
	present, available, paused, deleted := 0, 0, 0, 0
	for _, m := range o.Machines {
		if yes, _ := machine.Paused(&m.Meta, pausedKey); !m.Deleted() {
			if present++; yes {
				paused++
			}
			if m.Ready() {
				available++
			}
		}
	}
	for _, order := range plan.Delete {
		yes, _ := machine.Paused(&order.Machine.Meta, pausedKey)
		require.False(t, yes, "deletes a paused machine: %s", order.Why)
		if order.Machine.Ready() {
			deleted++
		}
	}
	size := int(o.Set.Spec.Replicas)
	require.True(t, deleted == 0 || available-deleted >= min(size, available), "P7: %d of %d available deleted, %d wanted", deleted, available, size)
	if len(plan.Create) > 0 {
		require.LessOrEqual(t, present+len(plan.Create), max(size, present), "P12: too many created beside %d paused", paused)
	}
}

// TestTheFirstPausedIsNamed: the reason names the first paused machine by name, whatever the order of the machines.
func TestTheFirstPausedIsNamed(t *testing.T) {
	o := liveObservation(newSet(3), 3)
	o.Set.Spec.Replicas = 0
	o.Machines[0], o.Machines[1] = o.Machines[1], o.Machines[0]
	for _, m := range o.Machines {
		m.Annotations = map[string]string{pausedKey: "true"}
	}
	for range 2 {
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		if w, ok := plan.Write.(*machineset.UpdateStatus); ok {
			o.Set.Status = w.Status
			continue
		}
		require.Equal(t, machineset.ReasonMachinePaused, plan.Why.Reason)
		require.Equal(t, "a", plan.Why.Name)
		require.EqualValues(t, 3, plan.Why.Count)
		return
	}
	require.Fail(t, "the status is written again and again")
}

// TestPausedSetStatus: a paused set is decided about again when a machine becomes available, so that its status
// says so. The status of a paused set that is being deleted without our finalizer is not written.
func TestPausedSetStatus(t *testing.T) {
	o := liveObservation(newSet(1), 1)
	o.Set.Annotations = map[string]string{pausedKey: "true"}
	o.Set.Spec.MinReady = time.Minute
	o.Machines[0].Status.Since = morning
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	o.Set.Status = plan.Write.(*machineset.UpdateStatus).Status
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, machineset.ReasonPaused, plan.Why.Reason)
	require.Equal(t, morning.Add(time.Minute+time.Second), plan.At)

	o.Set.DeletedAt, o.Set.Finalizers, o.Set.Status = morning, []string{"other"}, machineset.Status{}
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Nil(t, plan.Write)
	require.Equal(t, machineset.ReasonNotOurs, plan.Why.Reason)
}

// TestResumedSetRemovesConditionFirst: a set that is resumed removes its condition Paused before it gives any
// order, so that it does not look paused while it deletes machines.
// Invariants: P7
func TestResumedSetRemovesConditionFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := anySet(t)
		set.DeletedAt = time.Time{}
		set.Status.Conditions = object.SetCondition(set.Status.Conditions, object.Condition{
			Type: machineset.ConditionPaused, Status: object.True, Since: morning,
		})
		o := &machineset.Observation{Set: set, Machines: anyMachines(t, set, 6), Orphans: anyMachines(t, set, 2), Read: decision.Freshness{Began: morning}}
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		require.Empty(t, orders(plan), "%s", plan.Why)
		if update, ok := plan.Write.(*machineset.UpdateStatus); ok && plan.Why.Reason != machineset.ReasonSpecInvalid {
			require.Nil(t, object.FindCondition(update.Status.Conditions, machineset.ConditionPaused))
		}
	})
}
