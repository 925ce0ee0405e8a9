package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

const (
	preserveKey = "node.machine.sapcloud.io/preserve"
	preserveFor = 96 * time.Hour
)

// reconcilePreservation does what the machines' own controllers do about preservation: it writes the status.
func (w *world) reconcilePreservation() {
	for _, m := range w.all() {
		p, asked := &m.Status.Preservation, m.Annotations[preserveKey]
		failed := m.Status.Phase == machine.PhaseFailed
		keep := asked == machine.PreserveNow || failed && (asked == machine.PreserveWhenFailed || asked == machine.PreserveAutomatically)
		next := *p
		switch {
		case m.Deleted():
		case !p.Since.IsZero() && (!keep || !w.now.Before(p.Until)):
			next = machine.Preservation{Ended: w.now.Truncate(time.Second)}
			if keep {
				next.Request = asked
			}
		case keep && asked != p.Request:
			next = machine.Preservation{Request: asked, Since: w.now.Truncate(time.Second), Until: w.now.Truncate(time.Second).Add(preserveFor)}
		}
		if next != *p {
			w.change(m.Name, func(m *machine.Machine) { m.Status.Preservation = next })
		}
	}
}

// keep annotates machines to be preserved.
func (s *scenario) keep(value string, ordinals ...int64) {
	for _, n := range ordinals {
		s.w.change(s.name(n), func(m *machine.Machine) { m.Annotations[preserveKey] = value })
	}
	s.w.reconcilePreservation()
}

func (s *scenario) autoPreserve(limit int32) {
	s.w.edit(func(set *machineset.Set) { set.Spec.AutoPreserve = limit })
}

// TestPreservation shows how a set preserves machines for inspection.
func TestPreservation(t *testing.T) {
	playScenario(t, "preserved-on-request", 3, func(s *scenario) {
		s.runAll()
		s.comment("the second is to be kept when it fails, which it does")
		s.keep(machine.PreserveWhenFailed, 2)
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.after(time.Minute)
		s.comment("its own controller has written it down")
		s.w.reconcilePreservation()
		s.after(time.Minute)
		s.comment("its time is up")
		s.after(preserveFor)
	})
	playScenario(t, "preserved-automatically", 4, func(s *scenario) {
		s.runAll()
		s.autoPreserve(1)
		s.comment("two fail, one may be kept")
		s.w.phase(s.name(3), machine.PhaseFailed)
		s.w.advance(time.Minute)
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.after(time.Minute)
		s.w.reconcilePreservation()
		s.w.removeDeleted()
		s.markRunning(s.name(5))
		s.after(time.Minute)
		s.comment("it is well again")
		s.w.phase(s.name(3), machine.PhaseRunning)
		s.w.reconcilePreservation()
		s.after(time.Minute)
	})
	playScenario(t, "preserved-automatically-limit-lowered", 3, func(s *scenario) {
		s.runAll()
		s.autoPreserve(2)
		s.w.phase(s.name(1), machine.PhaseFailed)
		s.after(time.Minute)
		s.w.reconcilePreservation()
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.after(time.Minute)
		s.w.reconcilePreservation()
		s.comment("one is enough: the one that has the least time left is given up")
		s.autoPreserve(1)
		s.after(time.Minute)
		s.w.reconcilePreservation()
		s.after(time.Minute)
	})
	playScenario(t, "preserved-go-last", 5, func(s *scenario) {
		s.runAll()
		s.comment("the first is kept by a user, the second by the set; a scaler has chosen both and the third")
		s.keep(machine.PreserveNow, 1)
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.keep(machine.PreserveAutomatically, 2)
		s.w.edit(func(set *machineset.Set) {
			for n := int64(1); n <= 3; n++ {
				set.Instructions.DeletionCandidates = append(set.Instructions.DeletionCandidates, machineset.DeletionCandidate{Name: s.name(n), At: s.w.now})
			}
		})
		s.scale(2)
		s.after(time.Minute)
		s.w.removeDeleted()
		s.scale(0)
		s.after(time.Minute)
	})
}

// TestPreservedInDeletionOrder: machines that the set preserves are deleted after those that are not preserved,
// and machines that a user preserves are deleted last. A scaler's choice comes before all that, except for
// machines that a user preserves. A replace request for an available machine makes no difference.
// Invariants: P19
func TestPreservedInDeletionOrder(t *testing.T) {
	kinds := []string{"chosen", "chosen and automatic", "requested", "plain", "automatic", "explicit", "chosen and explicit", "requested and explicit"}
	places := map[string]int{"chosen": 0, "chosen and automatic": 0, "requested": 2, "plain": 2, "automatic": 3, "explicit": 4, "chosen and explicit": 4, "requested and explicit": 4}
	rapid.Check(t, func(t *rapid.T) {
		o := liveObservation(newSet(0), rapid.IntRange(1, 8).Draw(t, "machines"))
		place := map[string]int{}
		for _, m := range o.Machines {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			place[m.Name] = places[kind]
			m.Annotations = map[string]string{"machinepriority.machine.sapcloud.io": rapid.SampledFrom([]string{"1", "3", "9"}).Draw(t, "priority")}
			switch kind {
			case "chosen", "chosen and automatic", "chosen and explicit":
				o.Set.Instructions.DeletionCandidates = append(o.Set.Instructions.DeletionCandidates, machineset.DeletionCandidate{Name: m.Name, At: morning})
			case "requested", "requested and explicit":
				m.Annotations[replaceKey] = "true"
			}
			p := machine.Preservation{Since: morning, Until: morning.Add(time.Hour), Request: machine.PreserveNow}
			switch kind {
			case "automatic", "chosen and automatic":
				p.Request, m.Status.Phase = machine.PreserveAutomatically, machine.PhaseFailed
				m.Annotations[preserveKey] = p.Request
				m.Status.Preservation = p
			case "explicit", "chosen and explicit", "requested and explicit":
				m.Status.Preservation = p
			}
		}
		o.Set.Owner = &object.Owner{UID: "deployment"} // no surge allowance: requests delete no machine
		o.Set.Spec.AutoPreserve = 8
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		require.Len(t, plan.Delete, len(o.Machines))
		for i := 1; i < len(plan.Delete); i++ {
			require.LessOrEqual(t, place[plan.Delete[i-1].Machine.Name], place[plan.Delete[i].Machine.Name])
		}
	})
}

// TestPreservedUnderFaults: machines fail and recover, the limit changes, caches are old, and the process dies.
// Never are more machines annotated than the limit allows, and no preserved machine is replaced. In the end the
// set has its size, and the preserved machines are not available.
func TestPreservedUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int32Range(1, 5).Draw(t, "replicas")
		w := newWorld(newSet(size))
		p := newProcess(w, machineset.DefaultPolicy())
		p.decided = func(o *machineset.Observation, plan machineset.Plan) { checkPreservedKept(t, w.now, o, plan) }
		most := int32(0)
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "action") {
			case 0:
				most = rapid.Int32Range(0, 3).Draw(t, "limit")
				w.edit(func(s *machineset.Set) { s.Spec.AutoPreserve = most })
			case 1, 2:
				if all := w.all(); len(all) > 0 {
					m := rapid.SampledFrom(all).Draw(t, "machine")
					w.phase(m.Name, rapid.SampledFrom([]machine.Phase{machine.PhaseFailed, machine.PhaseFailed, machine.PhaseRunning}).Draw(t, "phase"))
				}
			case 3:
				w.reconcilePreservation()
			case 4:
				w.removeDeleted()
			case 5:
				p.die()
			case 6:
				w.advance(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 50 * time.Hour}).Draw(t, "time"))
			default:
				p.step()
			}
			p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "cache") }
		}
		p.cached = nil
		p.die()
		for range 40 {
			require.True(t, p.run())
			w.reconcilePreservation()
			w.removeDeleted()
			for _, m := range w.all() {
				if m.Status.Phase != machine.PhaseFailed {
					w.phase(m.Name, machine.PhaseRunning)
				}
			}
			w.advance(10 * time.Minute)
		}
		require.Len(t, w.all(), int(size))
		preserved := int32(0)
		for _, m := range w.all() {
			if m.Preserved(w.now) {
				preserved++
			}
			require.Equal(t, m.Status.Phase == machine.PhaseFailed, m.Preserved(w.now), "%s: failed and not preserved, or preserved and not failed", m.Name)
		}
		require.LessOrEqual(t, preserved, most)
		require.Equal(t, preserved, w.set.Status.Preserved)
		require.Equal(t, size-preserved, w.set.Status.Available)
	})
}

// checkPreservedKept fails if a plan replaces a preserved machine, or preserves more than the limit.
func checkPreservedKept(t *rapid.T, now time.Time, o *machineset.Observation, plan machineset.Plan) {
	if len(plan.Delete) > 0 && plan.Why.Reason == machineset.ReasonDeleteFailed {
		for _, order := range plan.Delete {
			require.False(t, order.Machine.Preserved(now), "a preserved machine is replaced")
			require.False(t, order.Machine.ToBePreserved(preserveKey), "a machine that is to be preserved is replaced")
		}
	}
	if plan.Why.Reason != machineset.ReasonPreserving {
		return
	}
	require.True(t, o.Read.Live(), "preserved on a read from a cache")
	counted := len(plan.Push)
	for _, m := range o.Machines {
		if machineset.CountsAsAutoPreserved(m, preserveKey) {
			counted++
		}
	}
	require.LessOrEqual(t, counted, int(o.Set.Spec.AutoPreserve), "more preserved than the limit")
}

// TestNotPreservedAutomatically: with each of these changes, a set replaces a failed machine instead of
// preserving it.
func TestNotPreservedAutomatically(t *testing.T) {
	for name, change := range map[string]func(*machineset.Policy, *machine.Machine){
		"key off": func(p *machineset.Policy, _ *machine.Machine) { p.Keys.Preserve = "" },
		"annotated with false": func(_ *machineset.Policy, m *machine.Machine) {
			m.Annotations = map[string]string{preserveKey: "false"}
		},
		"its node had the annotation": func(_ *machineset.Policy, m *machine.Machine) { m.Status.Preservation.NodeAsked = true },
		"its preservation after this failure has ended": func(_ *machineset.Policy, m *machine.Machine) {
			m.Status.Since, m.Status.Preservation.Ended = morning.Add(-time.Hour), morning
		},
		"its time was up": func(_ *machineset.Policy, m *machine.Machine) {
			m.Annotations = map[string]string{preserveKey: machine.PreserveAutomatically}
			m.Status.Preservation = machine.Preservation{Request: machine.PreserveAutomatically, Ended: morning}
		},
	} {
		o, p := liveObservation(newSet(2), 2), machineset.DefaultPolicy()
		o.Set.Spec.AutoPreserve = 2
		o.Machines[0].Status.Phase = machine.PhaseFailed
		plan, err := machineset.Decide(o, p, morning)
		require.NoError(t, err)
		require.Equal(t, machineset.ReasonPreserving, plan.Why.Reason, "without the change it is preserved")
		change(p, o.Machines[0])
		plan, err = machineset.Decide(o, p, morning)
		require.NoError(t, err)
		require.Equal(t, machineset.ReasonDeleteFailed, plan.Why.Reason, name)
	}
}

// TestPreservedMachinesAreNotReplacedOnRequest: a replace request waits while a user preserves the machine.
func TestPreservedMachinesAreNotReplacedOnRequest(t *testing.T) {
	o := liveObservation(newSet(2), 2)
	o.Set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Unavailable: 2}
	o.Machines[0].Annotations = map[string]string{replaceKey: "true"}
	o.Machines[0].Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: morning, Until: morning.Add(time.Minute)}
	for now, deleted := range map[time.Time]int{morning: 0, morning.Add(time.Minute): 1} {
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), now)
		require.NoError(t, err)
		require.Len(t, plan.Delete, deleted)
	}
}

// TestRefusedAnnotationReplacesNobody: if the annotation that preserves a failed machine was refused, the
// machine is not replaced.
// Invariants: P7
func TestRefusedAnnotationReplacesNobody(t *testing.T) {
	o := liveObservation(newSet(2), 2)
	o.Set.Spec.AutoPreserve = 1
	o.Machines[0].Status.Phase = machine.PhaseFailed
	o.Refused.Change = &machine.Outcome{Code: 13}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Empty(t, plan.Delete)
	_, reserves := plan.Write.(*machineset.Update)
	require.False(t, reserves, "no other is created in its place: %s", plan.Why)
	o.Set.Spec.Replicas = 3
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	reserved := plan.Write.(*machineset.Update).Set.Instructions.Reservation
	require.EqualValues(t, 1, reserved.Reserved-reserved.Settled, "the third machine, which is missing anyway, is created")
	o.Set.Spec.Replicas = 2
	o.Machines[1].Status.Phase = machine.PhaseFailed
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Empty(t, plan.Delete)
	_, reserves = plan.Write.(*machineset.Update)
	require.False(t, reserves, "two failed, and it is undecided which is preserved, so none is replaced: %s", plan.Why)
	o.Machines[1].Status.Phase = machine.PhaseRunning
	o.Set.Spec.AutoPreserve = 0
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Len(t, plan.Delete, 1)
}

// TestPreservedIsLookedAtWhenItEnds: the next decision is due when a preservation ends. Until then the machine
// does not count as available.
func TestPreservedIsLookedAtWhenItEnds(t *testing.T) {
	o := liveObservation(newSet(2), 2)
	end := morning.Add(time.Minute)
	o.Machines[0].Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: morning, Until: end}
	for now, available := range map[time.Time]int32{morning: 1, end: 2} {
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), now)
		require.NoError(t, err)
		status := plan.Write.(*machineset.UpdateStatus).Status
		require.Equal(t, []int32{2, available, 2 - available}, []int32{status.Ready, status.Available, status.Preserved})
		o.Set.Status = status
		plan, err = machineset.Decide(o, machineset.DefaultPolicy(), now)
		require.NoError(t, err)
		require.Equal(t, now == morning, plan.At.Equal(end))
		o.Set.Status = machineset.Status{}
	}
}

// TestPreservedFailedMachinesAreNotListedAsFailed: a failed machine that is preserved is counted as preserved and
// is not listed as failed, so that who waits until no machine is failed need not wait for it.
func TestPreservedFailedMachinesAreNotListedAsFailed(t *testing.T) {
	o := fleet(4, 4, false)
	o.Set.Spec.AutoPreserve = 2
	fails := func(m *machine.Machine, phase machine.Phase) {
		m.Status.Phase = phase
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationHealthCheck, State: machine.StateFailed, Time: morning}
	}
	now := morning.Add(time.Hour)
	preservation := machine.Preservation{Request: machine.PreserveAutomatically, Since: morning, Until: now.Add(time.Hour)}
	fails(o.Machines[0], machine.PhaseFailed)
	o.Machines[0].Status.Preservation = preservation
	o.Machines[0].Annotations = map[string]string{preserveKey: machine.PreserveAutomatically}
	fails(o.Machines[1], machine.PhaseRunning) // preserved, too, but running
	o.Machines[1].Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: morning, Until: now.Add(time.Hour)}
	fails(o.Machines[2], machine.PhaseRunning)
	settle(t, o, now)

	got := o.Set.Status
	require.Equal(t, []int32{2, 1, 1, 2}, []int32{got.Preserved, got.PreservedFailed, got.AutoPreserved, got.Failing})
	for _, s := range got.Failed {
		require.NotEqual(t, o.Machines[0].Name, s.Name)
	}
	require.Len(t, got.Failed, 2)
}
