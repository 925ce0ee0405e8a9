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

const replaceKey = "millwright-go/replace"

func (s *stage) request(ordinals ...int64) {
	for _, n := range ordinals {
		s.w.change(s.name(n), func(m *machine.Machine) { m.Annotations[replaceKey] = "true" })
	}
}

// TestReplacement tells how machines are replaced on request.
func TestReplacement(t *testing.T) {
	story(t, "replace-on-request", 3, func(s *stage) {
		s.settled()
		s.say("the first and the third are to be replaced; a set without an owner makes one more at a time")
		s.request(1, 3)
		s.after(time.Minute)
		for n := int64(4); n <= 5; n++ {
			s.say("the replacement runs")
			s.run(s.name(n))
			s.after(time.Minute)
		}
		s.w.finish()
		require.Len(t, s.w.all(), 3)
	})
	story(t, "replace-without-surge", 3, func(s *stage) {
		s.w.edit(func(set *machineset.Set) { set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Unavailable: 1} })
		s.settled()
		s.say("two are to be replaced, one may be missing")
		s.request(1, 2)
		s.after(time.Minute)
		s.say("the replacement runs")
		s.run(s.name(4))
		s.after(time.Minute)
	})
	story(t, "replace-request-withdrawn", 2, func(s *stage) {
		s.settled()
		s.request(1)
		s.after(time.Minute)
		s.say("it need not go after all")
		s.w.change(s.name(1), func(m *machine.Machine) { m.Annotations[replaceKey] = "false" })
		s.after(time.Minute)
	})
	story(t, "replace-while-frozen", 2, func(s *stage) {
		s.w.edit(func(set *machineset.Set) { set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Unavailable: 1} })
		s.settled()
		s.p.frozen = true
		s.request(1)
		s.after(time.Minute)
		require.Len(t, s.w.active(), 2)
	})
}

// TestRequestedGoFirst: where a set shrinks, those that were to be replaced go
// before others, also while it has no leave to replace any.
func TestRequestedGoFirst(t *testing.T) {
	o := liveObservation(newSet(3), 3)
	o.Set.Spec.Replicas, o.Set.Owner = 2, &object.Owner{UID: "deployment"}
	o.Machines[1].Annotations = map[string]string{replaceKey: "true"}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{o.Machines[1].Name}, names(plan.Delete))
}

func liveObservation(set *machineset.Set, n int) *machineset.Observation {
	set.Finalizers = []string{machineset.Finalizer}
	o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: morning}}
	for i := range n {
		m := &machine.Machine{Spec: set.Spec.Template.Spec.Clone(), Status: machine.Status{Phase: machine.PhaseRunning}}
		m.Namespace, m.Name, m.UID = set.Namespace, string(rune('a'+i)), string(rune('a'+i))
		m.Labels, m.Owner = set.Spec.Template.Labels, &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID}
		o.Machines = append(o.Machines, m)
	}
	return o
}

// TestReplacementWithinBounds: for any faults, and whenever the process dies,
// the requested machines are replaced, each once; there are never more than
// R + S, none that is available is taken where that leaves fewer than R − U,
// and, with a surge, none before its replacement is available.
func TestReplacementWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int32Range(1, 6).Draw(t, "replicas")
		allowance := machineset.SurgeAllowance{Surge: rapid.Int32Range(0, 2).Draw(t, "surge"), Unavailable: rapid.Int32Range(0, 2).Draw(t, "unavailable")}
		if allowance == (machineset.SurgeAllowance{}) {
			allowance.Surge = 1
		}
		set := newSet(size)
		set.Instructions.SurgeAllowance = allowance
		w := newWorld(set)
		p := newProcess(w, machineset.DefaultPolicy())
		settle := func() {
			for range 30 {
				require.True(t, p.run())
				w.finish()
				for _, m := range w.active() {
					w.phase(m.Name, machine.PhaseRunning)
				}
				w.advance(10 * time.Minute)
			}
		}
		settle()
		old := names2(w.all())
		made := 0
		w.created = func(*machine.Machine) {
			made++
			require.LessOrEqual(t, len(w.active()), int(size+allowance.Surge), "P7: machines")
		}
		asked := old[:rapid.IntRange(0, len(old)).Draw(t, "asked")]
		for _, name := range asked {
			w.change(name, func(m *machine.Machine) {
				m.Annotations = map[string]string{replaceKey: rapid.SampledFrom([]string{"true", "1", "T"}).Draw(t, "yes")}
			})
		}
		p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "cache") }
		p.decided = func(o *machineset.Observation, plan machineset.Plan) { checkSpared(t, o, plan, allowance) }
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "action") {
			case 0:
				for _, m := range w.active() {
					if m.Status.Phase == machine.PhaseNew && rapid.Bool().Draw(t, "comes up") {
						w.phase(m.Name, machine.PhaseRunning)
					}
				}
			case 1:
				w.finish()
			case 2:
				p.die()
			default:
				p.step()
			}
		}
		p.cached = nil
		p.die()
		settle()
		require.Equal(t, len(asked), made, "each once")
		require.Len(t, w.all(), int(size))
		for _, name := range asked {
			require.NotContains(t, w.machines, name)
		}
	})
}

// checkSpared holds deletions on request to the bounds.
func checkSpared(t *rapid.T, o *machineset.Observation, plan machineset.Plan, allowance machineset.SurgeAllowance) {
	if plan.Why.Reason != machineset.ReasonDeleteRequested {
		return
	}
	ready, others, asked := 0, 0, 0
	for _, m := range o.Machines {
		switch yes := machineset.Requested(m, replaceKey); {
		case m.Deleted():
		case yes:
			asked++
		case m.Ready():
			others++
		}
		if m.Ready() {
			ready++
		}
	}
	gone := 0
	for _, order := range plan.Delete {
		require.True(t, machineset.Requested(order.Machine, replaceKey))
		if order.Machine.Ready() {
			gone++
		}
	}
	size := int(o.Set.Spec.Replicas)
	require.True(t, gone == 0 || ready-gone >= size-int(allowance.Unavailable), "P7: availability")
	require.True(t, gone == 0 || allowance.Surge == 0 || others >= size-asked+gone, "its replacement is not there yet")
}

// TestRequestsThatAreNone: what can't be read, a key that is off, a set that a
// deployment has given no surge allowance, and a template that asks for it.
func TestRequestsThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*process, *machineset.Set, *machine.Machine){
		"unreadable":         func(_ *process, _ *machineset.Set, m *machine.Machine) { m.Annotations[replaceKey] = "please" },
		"key off":            func(p *process, _ *machineset.Set, _ *machine.Machine) { p.policy.Keys.Replace = "" },
		"no surge allowance": func(_ *process, s *machineset.Set, _ *machine.Machine) { s.Owner = &object.Owner{UID: "deployment"} },
		"by the template": func(_ *process, s *machineset.Set, _ *machine.Machine) {
			s.Spec.Template.Annotations = map[string]string{replaceKey: "true"}
		},
	} {
		w := newWorld(newSet(2))
		p := newProcess(w, machineset.DefaultPolicy())
		for range 3 {
			require.True(t, p.run())
			for _, m := range w.all() {
				w.phase(m.Name, machine.PhaseRunning)
			}
			w.advance(time.Minute)
		}
		first := w.all()[0].Name
		w.change(first, func(m *machine.Machine) {
			m.Annotations = map[string]string{replaceKey: "true"}
			w.edit(func(s *machineset.Set) { change(p, s, m) })
		})
		for range 3 {
			require.True(t, p.run())
			w.advance(time.Minute)
		}
		require.Len(t, w.all(), 2, name)
		require.False(t, w.machines[first].Deleted(), name)
	}
}

// TestRequestedVictims: of a surplus goes first what does no work, whether it is to
// be replaced or not; of machines that nothing else tells apart, those that are
// to be replaced (P7, P19).
func TestRequestedVictims(t *testing.T) {
	decide := func(change func(plain, requested *machine.Machine)) string {
		o := liveObservation(newSet(1), 2)
		o.Set.Owner = &object.Owner{UID: "deployment"} // no surge allowance: requests delete no machine
		o.Machines[1].Annotations = map[string]string{replaceKey: "true"}
		o.Machines[1].CreatedAt = o.Machines[0].CreatedAt.Add(time.Hour)
		change(o.Machines[0], o.Machines[1])
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		require.Len(t, plan.Delete, 1)
		if plan.Delete[0].Machine == o.Machines[0] {
			return "plain"
		}
		return "requested"
	}
	pending := func(m *machine.Machine) { m.Status.Phase = machine.PhasePending }
	require.Equal(t, "requested", decide(func(_, _ *machine.Machine) {}), "though the other is older")
	require.Equal(t, "plain", decide(func(plain, _ *machine.Machine) { pending(plain) }))
	require.Equal(t, "requested", decide(func(_, requested *machine.Machine) { pending(requested) }))
	require.Equal(t, "requested", decide(func(plain, requested *machine.Machine) {
		pending(plain)
		pending(requested)
	}))
	require.Equal(t, "plain", decide(func(plain, _ *machine.Machine) {
		pending(plain)
		plain.Annotations = map[string]string{"machinepriority.machine.sapcloud.io": "1"}
	}))
}
