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

func (s *scenario) request(ordinals ...int64) {
	for _, n := range ordinals {
		s.w.change(s.name(n), func(m *machine.Machine) { m.Annotations[replaceKey] = "true" })
	}
}

// TestReplacementOnRequest shows how machines are replaced on request.
func TestReplacementOnRequest(t *testing.T) {
	playScenario(t, "replace-on-request", 3, func(s *scenario) {
		s.runAll()
		s.comment("the first and the third are to be replaced; without an owner, the set has a surge allowance of 1")
		s.request(1, 3)
		s.after(time.Minute)
		for n := int64(4); n <= 5; n++ {
			s.comment("the replacement runs")
			s.markRunning(s.name(n))
			s.after(time.Minute)
		}
		s.w.removeDeleted()
		require.Len(t, s.w.all(), 3)
	})
	playScenario(t, "replace-without-surge", 3, func(s *scenario) {
		s.w.edit(func(set *machineset.Set) { set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Unavailable: 1} })
		s.runAll()
		s.comment("two are to be replaced, one may be missing")
		s.request(1, 2)
		s.after(time.Minute)
		s.comment("the replacement runs")
		s.markRunning(s.name(4))
		s.after(time.Minute)
	})
	playScenario(t, "replace-request-withdrawn", 2, func(s *scenario) {
		s.runAll()
		s.request(1)
		s.after(time.Minute)
		s.comment("it need not go after all")
		s.w.change(s.name(1), func(m *machine.Machine) { m.Annotations[replaceKey] = "false" })
		s.after(time.Minute)
	})
	playScenario(t, "replace-while-frozen", 2, func(s *scenario) {
		s.w.edit(func(set *machineset.Set) { set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Unavailable: 1} })
		s.runAll()
		s.p.frozen = true
		s.request(1)
		s.after(time.Minute)
		require.Len(t, s.w.active(), 2)
	})
}

// TestScaleDownPrefersReplaceRequests: on scale-down, machines with a replace request are deleted first,
// even if the set has no surge allowance.
func TestScaleDownPrefersReplaceRequests(t *testing.T) {
	o := liveObservation(newSet(3), 3)
	o.Set.Spec.Replicas, o.Set.Owner = 2, &object.Owner{UID: "deployment"}
	o.Machines[1].Annotations = map[string]string{replaceKey: "true"}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{o.Machines[1].Name}, names(plan.Delete))
}

// liveObservation returns a live read of a set and n running machines of it.
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

// TestReplacementWithinBounds: whatever old state the caches show, and whenever the process dies, each
// machine with a replace request is replaced once. Let a set have R replicas, a surge of S, and U that may be
// unavailable. There are never more than R+S machines, without those being deleted. An available one is
// deleted only if R−U remain available and, if S > 0, only after its replacement is available.
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
				w.removeDeleted()
				for _, m := range w.active() {
					w.phase(m.Name, machine.PhaseRunning)
				}
				w.advance(10 * time.Minute)
			}
		}
		settle()
		old := machineNames(w.all())
		made := 0
		w.created = func(*machine.Machine) {
			made++
			require.LessOrEqual(t, len(w.active()), int(size+allowance.Surge), "P7: more machines than replicas + surge")
		}
		asked := old[:rapid.IntRange(0, len(old)).Draw(t, "asked")]
		for _, name := range asked {
			w.change(name, func(m *machine.Machine) {
				m.Annotations = map[string]string{replaceKey: rapid.SampledFrom([]string{"true", "1", "T"}).Draw(t, "yes")}
			})
		}
		p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "cache") }
		p.decided = func(o *machineset.Observation, plan machineset.Plan) { checkRequestedDeletions(t, o, plan, allowance) }
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "action") {
			case 0:
				for _, m := range w.active() {
					if m.Status.Phase == machine.PhaseNew && rapid.Bool().Draw(t, "comes up") {
						w.phase(m.Name, machine.PhaseRunning)
					}
				}
			case 1:
				w.removeDeleted()
			case 2:
				p.die()
			default:
				p.step()
			}
		}
		p.cached = nil
		p.die()
		settle()
		require.Equal(t, len(asked), made, "each is replaced once")
		require.Len(t, w.all(), int(size))
		for _, name := range asked {
			require.NotContains(t, w.machines, name)
		}
	})
}

// checkRequestedDeletions checks that deletions on request stay within the allowance.
func checkRequestedDeletions(t *rapid.T, o *machineset.Observation, plan machineset.Plan, allowance machineset.SurgeAllowance) {
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
	deleted := 0
	for _, order := range plan.Delete {
		require.True(t, machineset.Requested(order.Machine, replaceKey))
		if order.Machine.Ready() {
			deleted++
		}
	}
	size := int(o.Set.Spec.Replicas)
	require.True(t, deleted == 0 || ready-deleted >= size-int(allowance.Unavailable), "P7: fewer ready than replicas - unavailable")
	require.True(t, deleted == 0 || allowance.Surge == 0 || others >= size-asked+deleted, "deleted before its replacement is ready")
}

// TestIgnoredRequests: a replace request is ignored if its value is no boolean, the policy has no key for it,
// the set's deployment has given it no surge allowance, or the template has the annotation, too.
func TestIgnoredRequests(t *testing.T) {
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

// TestReplaceRequestsInDeletionOrder: surplus machines that are not available are deleted first. Among
// machines that are equal in all but their age, those with a replace request are.
// Invariants: P7 P19
func TestReplaceRequestsInDeletionOrder(t *testing.T) {
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
	require.Equal(t, "requested", decide(func(_, _ *machine.Machine) {}), "although the other is older")
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

func (w *world) setMaxAge(maxAge time.Duration) {
	w.edit(func(s *machineset.Set) { s.Spec.MaxAge = maxAge })
}

// TestExpiry shows how machines that are too old are replaced.
func TestExpiry(t *testing.T) {
	playScenario(t, "too-old", 3, func(s *scenario) {
		s.w.setMaxAge(week)
		s.runAll()
		s.comment("the first is too old; the others follow, at the latest at 1.1 times the maximum age")
		s.after(s.expires(0).Sub(s.w.now))
		s.comment("another one runs")
		s.markRunning(s.name(4))
		s.after(time.Minute)
		s.w.removeDeleted()
		s.pass()
	})
	playScenario(t, "too-old-without-surge", 3, func(s *scenario) {
		s.w.setMaxAge(time.Hour)
		s.p.policy.ExpireAtOnce = 1
		s.w.edit(func(set *machineset.Set) { set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Unavailable: 2} })
		s.runAll()
		s.comment("all three are too old; two may be missing, but one is replaced at a time for its age")
		s.after(2 * time.Hour)
		s.w.removeDeleted()
		s.comment("its replacement runs")
		s.markRunning(s.name(4))
		s.after(time.Minute)
	})
	playScenario(t, "too-old-and-not-to-be-replaced", 3, func(s *scenario) {
		s.w.setMaxAge(time.Hour)
		s.runAll()
		s.comment("one is paused, one is being updated, one is ill")
		s.w.pause(s.name(1), "true")
		s.w.phase(s.name(2), machine.PhaseInPlaceUpdating)
		s.w.phase(s.name(3), machine.PhaseUnknown)
		s.after(2 * time.Hour)
	})
}

// expires returns the n-th expiry time of all active machines, counted from 0.
func (s *scenario) expires(n int) time.Time {
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

// TestP27ExpiryIsSpread: the maximum age of a machine varies by up to a tenth in both directions, by its UID,
// so that machines created at the same time don't expire at the same time.
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

// TestExpiryWithinBounds: machines get old or fail to come up, and the process dies or reads old caches. The
// set stays within its surge allowance. No machine is deleted for its age before it has expired, or while it
// is unavailable, paused or being updated. In the end no expired machine is left.
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
			require.LessOrEqual(t, len(w.active()), int(size+allowance.Surge), "P7: more machines than replicas + surge")
		}
		p.decided = func(o *machineset.Observation, plan machineset.Plan) {
			checkExpiredDeletions(t, w.now, o, plan, allowance, int(p.policy.ExpireAtOnce))
		}
		settle := func(rounds int, pause time.Duration) {
			for range rounds {
				require.True(t, p.run())
				w.removeDeleted()
				for _, m := range w.active() {
					w.phase(m.Name, machine.PhaseRunning)
				}
				w.advance(pause)
			}
		}
		settle(5, time.Minute)
		p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "cache") }
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			randomAgeStep(t, w, p)
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

// randomAgeStep makes one step of the process, or changes the world: a machine comes up, breaks or is paused,
// time passes, or the process dies.
func randomAgeStep(t *rapid.T, w *world, p *process) {
	all := w.active()
	switch rapid.IntRange(0, 6).Draw(t, "action") {
	case 0:
		for _, m := range all {
			if m.Status.Phase == machine.PhaseNew && rapid.Bool().Draw(t, "comes up") {
				w.phase(m.Name, machine.PhaseRunning)
			}
		}
	case 1:
		w.removeDeleted()
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

// checkExpiredDeletions checks that deletions for age stay within the allowance and ExpireAtOnce.
func checkExpiredDeletions(t *rapid.T, now time.Time, o *machineset.Observation, plan machineset.Plan, allowance machineset.SurgeAllowance, atOnce int) {
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
		require.False(t, at.Truncate(time.Second).Before(last), "the first to expire goes first")
		last = at.Truncate(time.Second)
	}
	size := int(o.Set.Spec.Replicas)
	require.GreaterOrEqual(t, ready-len(plan.Delete), size-int(allowance.Unavailable), "P7: fewer ready than replicas - unavailable")
	require.True(t, allowance.Surge == 0 || ready-len(plan.Delete) >= size, "deleted before its replacement is ready")
	require.True(t, allowance.Surge > 0 || size-ready+len(plan.Delete) <= atOnce, "more than %d are missing at a time", atOnce)
}

// TestNoExpiry: no machine is replaced for its age if the set has no maximum age, has no surge allowance from
// its deployment, or is frozen. Invalid maximum ages and settings are refused.
func TestNoExpiry(t *testing.T) {
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
		require.Equal(t, machineset.ReasonReserve, plan.Why.Reason, "without the change it reserves a name for one more machine")
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

// TestNextExpiryIsWaitedFor: the next decision is due when the next machine expires, and not earlier.
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

// TestRequestedAndExpiredCountsOnce: a machine that is too old and has a replace request counts once, and no
// more than ExpireAtOnce are replaced for their age at a time.
func TestRequestedAndExpiredCountsOnce(t *testing.T) {
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
	require.EqualValues(t, 2, plan.Why.Count, "one on request, and one of the two that expired: %s", plan.Why)
}

// TestMayExpire: machines that are being updated in place, are about to be, or are being deleted do not expire.
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
