package machineset_test

import (
	"fmt"
	"math"
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
// Invariants: P7 P19
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

const week = 7 * 24 * time.Hour

// aging gives the set a maximum age.
func (w *world) aging(maxAge time.Duration) {
	w.edit(func(s *machineset.Set) { s.Spec.MaxAge = maxAge })
}

// TestExpiry tells how machines are replaced that are too old.
func TestExpiry(t *testing.T) {
	story(t, "too-old", 3, func(s *stage) {
		s.w.aging(week)
		s.settled()
		s.say("the first is too old, as are all a tenth of the time later")
		s.after(s.expires(0).Sub(s.w.now))
		s.say("another one runs")
		s.run(s.name(4))
		s.after(time.Minute)
		s.w.finish()
		s.pass()
	})
	story(t, "too-old-without-surge", 3, func(s *stage) {
		s.w.aging(time.Hour)
		s.p.policy.ExpireAtOnce = 1
		s.w.edit(func(set *machineset.Set) { set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Unavailable: 2} })
		s.settled()
		s.say("all three are too old; two may be missing, but one is replaced at a time for its age")
		s.after(2 * time.Hour)
		s.w.finish()
		s.say("its replacement runs")
		s.run(s.name(4))
		s.after(time.Minute)
	})
	story(t, "too-old-and-not-to-be-replaced", 3, func(s *stage) {
		s.w.aging(time.Hour)
		s.settled()
		s.say("one is paused, one is being updated, one is ill")
		s.w.pause(s.name(1), "true")
		s.w.phase(s.name(2), machine.PhaseInPlaceUpdating)
		s.w.phase(s.name(3), machine.PhaseUnknown)
		s.after(2 * time.Hour)
	})
}

// expires is when the n-th of the machines, by age, is too old.
func (s *stage) expires(n int) time.Time {
	var times []time.Time
	for _, m := range s.w.active() {
		times = append(times, machineset.ExpiresAt(m, s.w.set.Spec.MaxAge))
	}
	for i := range times {
		for j := range i {
			if times[i].Before(times[j]) {
				times[i], times[j] = times[j], times[i]
			}
		}
	}
	return times[n]
}

// TestP27ExpiryIsSpread: when a machine is too old follows from its UID, within
// a tenth of the age either way, and a fleet born together is spread over it.
// Invariants: P27
func TestP27ExpiryIsSpread(t *testing.T) {
	m := &machine.Machine{}
	m.CreatedAt = morning
	tenths := map[int]int{}
	for i := range 1000 {
		m.UID = fmt.Sprintf("uid-%d", i)
		at := machineset.ExpiresAt(m, week)
		require.Equal(t, at, machineset.ExpiresAt(m.Clone(), week))
		early := morning.Add(week - week/10)
		require.False(t, at.Before(early), "too early: %s", at)
		require.False(t, at.After(morning.Add(week+week/10+time.Second)), "too late: %s", at)
		tenths[int(10*at.Sub(early)/(week/5+2*time.Second))]++
	}
	for i := range 10 {
		require.InDelta(t, 100, tenths[i], 50, "%v", tenths)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &machine.Machine{}
		m.UID, m.CreatedAt = rapid.String().Draw(t, "uid"), anyTime(t, "created")
		age := time.Duration(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, math.MaxInt64, math.MinInt64})).Draw(t, "age"))
		at := machineset.ExpiresAt(m, age)
		require.Equal(t, age <= 0 || m.CreatedAt.IsZero(), at.IsZero())
		require.True(t, at.IsZero() || at.After(m.CreatedAt))
	})
	require.Zero(t, machineset.ExpiresAt(&machine.Machine{}, week), "its age is not known")
}

// TestExpiryWithinBounds: while machines get old, fail to come up, and the
// process dies or reads old caches, a fleet stays within its bounds, no machine
// goes before its time, and none that is not available, paused or being
// updated; and in the end none is left that is older than it may be.
// Invariants: P7
func TestExpiryWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int32Range(1, 6).Draw(t, "replicas")
		allowance := machineset.SurgeAllowance{Surge: rapid.Int32Range(0, 2).Draw(t, "surge"), Unavailable: rapid.Int32Range(0, 2).Draw(t, "unavailable")}
		if allowance == (machineset.SurgeAllowance{}) {
			allowance.Surge = 1
		}
		set := newSet(size)
		set.Instructions.SurgeAllowance, set.Spec.MaxAge = allowance, week
		w := newWorld(set)
		p := newProcess(w, machineset.DefaultPolicy())
		p.policy.ExpireAtOnce = rapid.Int32Range(1, 3).Draw(t, "at once")
		w.created = func(*machine.Machine) {
			require.LessOrEqual(t, len(w.active()), int(size+allowance.Surge), "P7: machines")
		}
		p.decided = func(o *machineset.Observation, plan machineset.Plan) {
			checkExpired(t, w.now, o, plan, allowance, int(p.policy.ExpireAtOnce))
		}
		settle := func(rounds int, pause time.Duration) {
			for range rounds {
				require.True(t, p.run())
				w.finish()
				for _, m := range w.active() {
					w.phase(m.Name, machine.PhaseRunning)
				}
				w.advance(pause)
			}
		}
		settle(5, time.Minute)
		p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "cache") }
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			disturbAge(t, w, p)
		}
		p.cached = nil
		p.die()
		for _, m := range w.all() {
			w.pause(m.Name, "")
		}
		settle(60, time.Minute)
		for _, m := range w.active() {
			require.True(t, w.now.Before(machineset.ExpiresAt(m, week)), "%s is too old", m.Name)
		}
		require.Len(t, w.all(), int(size))
	})
}

func disturbAge(t *rapid.T, w *world, p *process) {
	all := w.active()
	switch rapid.IntRange(0, 6).Draw(t, "action") {
	case 0:
		for _, m := range all {
			if m.Status.Phase == machine.PhaseNew && rapid.Bool().Draw(t, "comes up") {
				w.phase(m.Name, machine.PhaseRunning)
			}
		}
	case 1:
		w.finish()
	case 2:
		p.die()
	case 3:
		w.advance(rapid.SampledFrom([]time.Duration{time.Hour, 24 * time.Hour, 3 * 24 * time.Hour}).Draw(t, "time"))
	case 4:
		if len(all) > 0 {
			m := all[rapid.IntRange(0, len(all)-1).Draw(t, "machine")]
			w.phase(m.Name, rapid.SampledFrom([]machine.Phase{machine.PhaseUnknown, machine.PhaseRunning}).Draw(t, "phase"))
			w.pause(m.Name, rapid.SampledFrom([]string{"", "", "true"}).Draw(t, "pause"))
		}
	default:
		p.step()
	}
}

// checkExpired holds deletions for age to the bounds.
func checkExpired(t *rapid.T, now time.Time, o *machineset.Observation, plan machineset.Plan, allowance machineset.SurgeAllowance, atOnce int) {
	if plan.Why.Reason != machineset.ReasonDeleteExpired {
		return
	}
	ready := 0
	for _, m := range o.Machines {
		if m.Ready() {
			ready++
		}
	}
	require.LessOrEqual(t, len(plan.Delete), atOnce)
	last := time.Time{}
	for _, order := range plan.Delete {
		m := order.Machine
		at := machineset.ExpiresAt(m, week)
		paused, _ := machine.Paused(&m.Meta, pausedKey)
		require.False(t, now.Before(at) || !m.Ready() || paused || !machineset.MayExpire(m), "%s: %s", m.Name, order.Why)
		require.False(t, at.Truncate(time.Second).Before(last), "the oldest goes first")
		last = at.Truncate(time.Second)
	}
	size := int(o.Set.Spec.Replicas)
	require.GreaterOrEqual(t, ready-len(plan.Delete), size-int(allowance.Unavailable), "P7: availability")
	require.True(t, allowance.Surge == 0 || ready-len(plan.Delete) >= size, "no replacement is there yet")
	require.True(t, allowance.Surge > 0 || size-ready+len(plan.Delete) <= atOnce, "more than %d at a time", atOnce)
}

// TestAgesThatAreNone: no maximum age, no surge allowance from a deployment, a frozen
// set; and what can't be acted upon.
func TestAgesThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*machineset.Observation){
		"no age":             func(o *machineset.Observation) { o.Set.Spec.MaxAge = 0 },
		"no surge allowance": func(o *machineset.Observation) { o.Set.Owner = &object.Owner{UID: "deployment"} },
		"frozen":             func(o *machineset.Observation) { o.Frozen = true },
	} {
		o := liveObservation(newSet(2), 2)
		o.Set.Spec.MaxAge = time.Hour
		for _, m := range o.Machines {
			m.CreatedAt = morning.Add(-2 * time.Hour)
		}
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		require.Equal(t, machineset.ReasonReserve, plan.Why.Reason, "one more, to begin with")
		change(o)
		plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		require.Empty(t, orders(plan), name)
		_, reserves := plan.Write.(*machineset.Update)
		require.False(t, reserves, name)
	}
	set := newSet(1)
	for _, age := range []time.Duration{-1, 1, time.Minute - 1} {
		set.Spec.MaxAge = age
		require.ErrorContains(t, set.Validate(), "spec.maxAge")
	}
	p := machineset.DefaultPolicy()
	for _, n := range []int32{-1, 10_001} {
		p.ExpireAtOnce = n
		require.ErrorContains(t, p.Validate(), "expireAtOnce")
	}
}

// TestNextExpiryIsWaitedFor: the set looks again when the next machine is too
// old, and not a moment earlier.
func TestNextExpiryIsWaitedFor(t *testing.T) {
	o := liveObservation(newSet(2), 2)
	o.Set.Spec.MaxAge = time.Hour
	first := time.Time{}
	for _, m := range o.Machines {
		m.CreatedAt = morning.Add(-time.Hour + time.Minute)
		if at := machineset.ExpiresAt(m, time.Hour); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	now := first.Add(-time.Second)
	for decisions := 0; ; decisions++ {
		require.Less(t, decisions, 10, "the status is written again and again")
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), now)
		require.NoError(t, err)
		if w, ok := plan.Write.(*machineset.UpdateStatus); ok {
			o.Set = o.Set.Clone()
			o.Set.Status = w.Status
			continue
		}
		require.Equal(t, first, plan.At)
		require.Equal(t, machineset.ReasonSettled, plan.Why.Reason)
		break
	}
	o.Read = decision.Freshness{Began: first}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), first)
	require.NoError(t, err)
	require.Equal(t, machineset.ReasonReserve, plan.Why.Reason)
}

// TestEachCountsOnce: a machine that is too old and was asked to be replaced is
// one, and no more than ExpireAtOnce are too old at a time.
func TestEachCountsOnce(t *testing.T) {
	o := liveObservation(newSet(3), 3)
	o.Set.Spec.MaxAge, o.Set.Instructions.SurgeAllowance = time.Hour, machineset.SurgeAllowance{Surge: 3}
	for _, m := range o.Machines {
		m.CreatedAt = morning
	}
	o.Machines[0].CreatedAt = morning.Add(-2 * time.Hour)
	o.Machines[0].Annotations = map[string]string{replaceKey: "true"}
	p := machineset.DefaultPolicy()
	plan, err := machineset.Decide(o, p, morning)
	require.NoError(t, err)
	require.EqualValues(t, 1, plan.Why.Count)
	p.ExpireAtOnce = 1
	plan, err = machineset.Decide(o, p, morning.Add(2*time.Hour))
	require.NoError(t, err)
	require.EqualValues(t, 2, plan.Why.Count, "one asked for, one of two for its age: %s", plan.Why)
}

// TestMayExpire: nothing that is being updated in place, or about to be, or on
// its way out.
func TestMayExpire(t *testing.T) {
	for phase, may := range map[machine.Phase]bool{
		machine.PhaseRunning: true, machine.PhaseAvailable: true, "Confused": true, machine.PhaseInPlaceUpdating: false,
		machine.PhaseInPlaceUpdateSuccessful: false, machine.PhaseInPlaceUpdateFailed: false,
	} {
		m := &machine.Machine{Status: machine.Status{Phase: phase}}
		require.Equal(t, may, machineset.MayExpire(m), string(phase))
		m.Spec.InPlace = machine.InPlaceCandidate
		require.False(t, machineset.MayExpire(m), string(phase))
		m.Spec.InPlace, m.DeletedAt = machine.InPlaceNone, morning
		require.False(t, machineset.MayExpire(m), string(phase))
	}
}
