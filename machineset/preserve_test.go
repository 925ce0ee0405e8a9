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
	keeping     = 96 * time.Hour
)

// preserving is what machines' own controllers do about requests on them, as
// far as a set sees it.
func (w *world) preserving() {
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
			next = machine.Preservation{Request: asked, Since: w.now.Truncate(time.Second), Until: w.now.Truncate(time.Second).Add(keeping)}
		}
		if next != *p {
			w.change(m.Name, func(m *machine.Machine) { m.Status.Preservation = next })
		}
	}
}

func (s *stage) keep(value string, ordinals ...int64) {
	for _, n := range ordinals {
		s.w.change(s.name(n), func(m *machine.Machine) { m.Annotations[preserveKey] = value })
	}
	s.w.preserving()
}

func (s *stage) autoPreserve(limit int32) {
	s.w.edit(func(set *machineset.Set) { set.Spec.AutoPreserve = limit })
}

// TestPreservation tells how a set keeps machines for inspection.
func TestPreservation(t *testing.T) {
	story(t, "preserved-on-request", 3, func(s *stage) {
		s.settled()
		s.say("the second is to be kept when it fails, which it does")
		s.keep(machine.PreserveWhenFailed, 2)
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.after(time.Minute)
		s.say("its own controller has written it down")
		s.w.preserving()
		s.after(time.Minute)
		s.say("its time is up")
		s.after(keeping)
	})
	story(t, "preserved-automatically", 4, func(s *stage) {
		s.settled()
		s.autoPreserve(1)
		s.say("two fail, one may be kept")
		s.w.phase(s.name(3), machine.PhaseFailed)
		s.w.advance(time.Minute)
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.after(time.Minute)
		s.w.preserving()
		s.w.finish()
		s.run(s.name(5))
		s.after(time.Minute)
		s.say("it is well again")
		s.w.phase(s.name(3), machine.PhaseRunning)
		s.w.preserving()
		s.after(time.Minute)
	})
	story(t, "preserved-automatically-limit-lowered", 3, func(s *stage) {
		s.settled()
		s.autoPreserve(2)
		s.w.phase(s.name(1), machine.PhaseFailed)
		s.after(time.Minute)
		s.w.preserving()
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.after(time.Minute)
		s.w.preserving()
		s.say("one is enough: the one that has the least time left is given up")
		s.autoPreserve(1)
		s.after(time.Minute)
		s.w.preserving()
		s.after(time.Minute)
	})
	story(t, "preserved-go-last", 5, func(s *stage) {
		s.settled()
		s.say("the first is kept by a user, the second by the set; a scaler has chosen both and the third")
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
		s.w.finish()
		s.scale(0)
		s.after(time.Minute)
	})
}

// TestPreservedVictims: in any state, one that is kept is deleted after one
// that is not, one that a user keeps last of all; a scaler's choice is followed but for the latter, and
// a request for the replacement of one that works makes no difference.
// Invariants: P19
func TestPreservedVictims(t *testing.T) {
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

// TestPreservedThroughAnything: machines fail, recover and are asked for, the
// limit changes, caches are old and the process dies: never are more annotated
// than a limit allows that held since, none that is kept is deleted but as
// surplus, and in the end there are as many as there should be, of which the
// kept ones are not available (P12, P19).
func TestPreservedThroughAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int32Range(1, 5).Draw(t, "replicas")
		w := newWorld(newSet(size))
		p := newProcess(w, machineset.DefaultPolicy())
		p.decided = func(o *machineset.Observation, plan machineset.Plan) { checkKept(t, w.now, o, plan) }
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
				w.preserving()
			case 4:
				w.finish()
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
			w.preserving()
			w.finish()
			for _, m := range w.all() {
				if m.Status.Phase != machine.PhaseFailed {
					w.phase(m.Name, machine.PhaseRunning)
				}
			}
			w.advance(10 * time.Minute)
		}
		require.Len(t, w.all(), int(size))
		kept := int32(0)
		for _, m := range w.all() {
			if m.Preserved(w.now) {
				kept++
			}
			require.Equal(t, m.Status.Phase == machine.PhaseFailed, m.Preserved(w.now), "a failed machine that nobody replaces")
		}
		require.LessOrEqual(t, kept, most)
		require.Equal(t, kept, w.set.Status.Preserved)
		require.Equal(t, size-kept, w.set.Status.Available)
	})
}

// checkKept holds one decision to the rules.
func checkKept(t *rapid.T, now time.Time, o *machineset.Observation, plan machineset.Plan) {
	if len(plan.Delete) > 0 && plan.Why.Reason == machineset.ReasonDeleteFailed {
		for _, order := range plan.Delete {
			require.False(t, order.Machine.Preserved(now), "one that is kept is replaced")
			require.False(t, order.Machine.ToBePreserved(preserveKey), "one that is to be kept is replaced")
		}
	}
	if plan.Why.Reason != machineset.ReasonPreserving {
		return
	}
	require.False(t, !o.Read.Live(), "kept for what a cache remembers")
	counted := len(plan.Push)
	for _, m := range o.Machines {
		if machineset.CountsAsAutoPreserved(m, preserveKey) {
			counted++
		}
	}
	require.LessOrEqual(t, counted, int(o.Set.Spec.AutoPreserve), "over the limit")
}

// TestNotPreservedAutomatically: what a set does not keep by itself.
func TestNotPreservedAutomatically(t *testing.T) {
	for name, change := range map[string]func(*machineset.Policy, *machine.Machine){
		"key off": func(p *machineset.Policy, _ *machine.Machine) { p.Keys.Preserve = "" },
		"told not to": func(_ *machineset.Policy, m *machine.Machine) {
			m.Annotations = map[string]string{preserveKey: "false"}
		},
		"its node was asked": func(_ *machineset.Policy, m *machine.Machine) { m.Status.Preservation.NodeAsked = true },
		"kept and over": func(_ *machineset.Policy, m *machine.Machine) {
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
		require.Equal(t, machineset.ReasonPreserving, plan.Why.Reason, "it would be kept")
		change(p, o.Machines[0])
		plan, err = machineset.Decide(o, p, morning)
		require.NoError(t, err)
		require.Equal(t, machineset.ReasonDeleteFailed, plan.Why.Reason, name)
	}
}

// TestKeptMachinesAreNotReplacedOnRequest, for as long as a user keeps them.
func TestKeptMachinesAreNotReplacedOnRequest(t *testing.T) {
	o := liveObservation(newSet(2), 2)
	o.Set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Unavailable: 2}
	o.Machines[0].Annotations = map[string]string{replaceKey: "true"}
	o.Machines[0].Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: morning, Until: morning.Add(time.Minute)}
	for now, gone := range map[time.Time]int{morning: 0, morning.Add(time.Minute): 1} {
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), now)
		require.NoError(t, err)
		require.Len(t, plan.Delete, gone)
	}
}

// TestRefusedAnnotationReplacesNobody: a machine that is to be kept is not
// replaced because it could not be told so.
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
	require.False(t, reserves, "nor is another made in its place: %s", plan.Why)
	o.Set.Spec.Replicas = 3
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	reserved := plan.Write.(*machineset.Update).Set.Instructions.Reservation
	require.EqualValues(t, 1, reserved.Reserved-reserved.Settled, "what is missing besides is made")
	o.Set.Spec.Replicas = 2
	o.Machines[1].Status.Phase = machine.PhaseFailed
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Empty(t, plan.Delete)
	_, reserves = plan.Write.(*machineset.Update)
	require.False(t, reserves, "of two that failed both stay until it is known which is kept: %s", plan.Why)
	o.Machines[1].Status.Phase = machine.PhaseRunning
	o.Set.Spec.AutoPreserve = 0
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Len(t, plan.Delete, 1)
}

// TestPreservedIsLookedAtWhenItEnds, and does not count as available until then.
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

// A failed machine that is kept for inspection is counted, and is not reported as one that
// failed, for any last operation: who waits for a fleet without failures must not wait for it.
func TestPreservedFailedMachinesAreNotListedAsFailed(t *testing.T) {
	o := fleet(4, 4, false)
	o.Set.Spec.AutoPreserve = 2
	fails := func(m *machine.Machine, phase machine.Phase) {
		m.Status.Phase = phase
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationHealthCheck, State: machine.StateFailed, Time: morning}
	}
	now := morning.Add(time.Hour)
	kept := machine.Preservation{Request: machine.PreserveAutomatically, Since: morning, Until: now.Add(time.Hour)}
	fails(o.Machines[0], machine.PhaseFailed)
	o.Machines[0].Status.Preservation = kept
	o.Machines[0].Annotations = map[string]string{preserveKey: machine.PreserveAutomatically}
	fails(o.Machines[1], machine.PhaseRunning) // kept too, and in service
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
