package replacement_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/replacement"
	"github.com/millwright-go/millwright/test/safetytest"
)

// finish makes the rest of a pass.
func (r *request) finish() {
	for r.step(false) {
		continue
	}
}

var stories = map[string]func(*world){
	"grant to one of two": func(w *world) {
		a, b := w.machines[0].Name, w.machines[1].Name
		w.setPhase(a, machine.PhaseUnknown)
		w.setPhase(b, machine.PhaseUnknown)
		w.Say("both machines are Unknown")
		w.ask(a).finish()
		w.ask(b).finish()
		w.replace()
		w.Say("the first is being deleted, its replacement is Pending")
		w.ask(b).finish()
		w.setPhase(w.machines[2].Name, machine.PhaseRunning)
		w.Say("its replacement runs")
		w.ask(b).finish()
	},
	"grant to two at the same time": func(w *world) {
		a, b := w.machines[0].Name, w.machines[1].Name
		w.setPhase(a, machine.PhaseUnknown)
		w.setPhase(b, machine.PhaseUnknown)
		first, second := w.ask(a), w.ask(b)
		for range 6 {
			first.step(false)
			second.step(false)
		}
		w.Say("the second one's write meets a conflict; it asks again")
		w.ask(b).finish()
	},
	"grant not used": func(w *world) {
		a, b := w.machines[0].Name, w.machines[1].Name
		w.setPhase(a, machine.PhaseUnknown)
		w.setPhase(b, machine.PhaseUnknown)
		r := w.ask(a)
		for range 5 {
			r.step(false)
		}
		w.Say("the process dies with the slot taken")
		w.ask(b).finish()
		w.later(3 * time.Minute)
		w.ask(b).finish()
		w.later(time.Second)
		w.ask(b).finish()
	},
	"grant taken up again": func(w *world) {
		a := w.machines[0].Name
		w.setPhase(a, machine.PhaseUnknown)
		r := w.ask(a)
		for range 5 {
			r.step(false)
		}
		w.Say("the process dies with the slot taken; the next one takes it again")
		w.later(time.Minute)
		w.ask(a).finish()
	},
	"grant in a failing zone": func(w *world) {
		w.policy.ZoneRule, w.zones = true, map[string]string{"a": "zone-1"}
		w.add(machine.PhaseRunning)
		for _, m := range w.machines[:2] {
			w.setPhase(m.Name, machine.PhaseUnknown)
		}
		w.ask(w.machines[0].Name).finish()
		w.setPhase(w.machines[1].Name, machine.PhaseRunning)
		w.Say("one of the two is well again")
		w.ask(w.machines[0].Name).finish()
	},
	"grant where one is missing for another reason": func(w *world) {
		w.setPhase(w.machines[0].Name, machine.PhaseCrashLoopBackOff)
		w.setPhase(w.machines[1].Name, machine.PhaseUnknown)
		w.ask(w.machines[1].Name).finish()
		w.policy.Replacements = rollout.IntOrPercent{Value: 2}
		w.Say("the budget is raised to 2")
		w.ask(w.machines[1].Name).finish()
	},
}

// TestStories compares what machines are answered with the files in testdata.
func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, name == "grant taken up again")
			run(w)
			safetytest.Compare(t, name, &w.Journal)
		})
	}
}

// TestP24VerdictsStayWithinTheBudget: machines ask for a grant at the same time, because they are unhealthy or
// because others delete their nodes. Processes read old state, die with a slot taken, or write late. A verdict is the
// write that gives a machine up. No more verdicts are in flight than the budget allows. Once the faults stop, every
// unhealthy machine is replaced.
// Invariants: P24 P45
func TestP24VerdictsStayWithinTheBudget(t *testing.T) {
	given, late := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Int32Range(1, 5).Draw(t, "replicas"), rapid.Bool().Draw(t, "lone"))
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		w.policy.Replacements = rollout.IntOrPercent{Value: int32(limit)}
		for range rapid.IntRange(0, 2).Draw(t, "surplus") {
			w.add(machine.PhaseRunning)
		}
		lateSince := map[int]time.Time{}
		for i := range rapid.IntRange(1, 120).Draw(t, "steps") {
			act := rapid.SampledFrom([]string{
				"step", "step", "step", "finish", "finish", "ask", "ask", "leave", "all nodes", "all ill", "fall ill", "recover", "replace", "remove", "join", "user deletes", "late", "time", "stall", "crash",
			}).Draw(t, "act")
			switch {
			case act == "time":
				w.later(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			case act == "stall" && len(w.late) == 0:
				w.later(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
			case len(w.requests) == 0 || act != "step" && act != "crash" && act != "finish":
				w.act(t, act)
			case w.continueRequest(t, act):
				lateSince[i] = w.Now
				late++
			}
			w.applyLate(lateSince)
			require.LessOrEqual(t, w.inFlight(), limit, "verdicts in flight")
		}
		given += w.given
		w.heal(t)
	})
	assert.Positive(t, given, "no machine was ever given up")
	assert.Positive(t, late, "no write was ever late")
}

// continueRequest makes one step of a request, or all its steps, or lets its process die. It returns true if a write
// is now on its way.
func (w *world) continueRequest(t *rapid.T, act string) bool {
	at := rapid.IntRange(0, len(w.requests)-1).Draw(t, "request")
	before, r := len(w.late), w.requests[at]
	delay := rapid.IntRange(0, 3).Draw(t, "delay") == 0
	open := act != "crash" && r.step(delay)
	for open && act == "finish" {
		open = r.step(delay)
	}
	if !open {
		w.requests = append(w.requests[:at], w.requests[at+1:]...)
	}
	return len(w.late) > before
}

// applyLate makes late writes take effect 20 seconds before they have been on their way for GrantFlight.
func (w *world) applyLate(lateSince map[int]time.Time) {
	for i, since := range lateSince {
		if w.Now.Sub(since) >= w.policy.GrantFlight-20*time.Second {
			for _, apply := range w.late {
				apply()
			}
			w.late = nil
			clear(lateSince)
			return
		}
		if len(w.late) == 0 {
			delete(lateSince, i)
		}
	}
}

// heal lets time pass without faults: each unhealthy machine asks and is replaced.
func (w *world) heal(t *rapid.T) {
	w.requests, w.late = nil, nil
	for range 40 {
		w.later(time.Minute)
		for _, m := range w.machines {
			if m.Status.Phase == machine.PhaseUnknown && !m.Deleted() {
				w.ask(m.Name).finish()
			}
		}
		w.replace()
		w.machines = slices.DeleteFunc(slices.Clone(w.machines), func(m *machine.Machine) bool { return m.Deleted() })
		for _, m := range w.machines {
			if m.Status.Phase == machine.PhasePending {
				w.setPhase(m.Name, machine.PhaseRunning)
			}
		}
	}
	for _, m := range w.machines {
		require.Equal(t, machine.PhaseRunning, m.Status.Phase, m.Name)
	}
	require.GreaterOrEqual(t, len(w.machines), int(w.replicas))
}

// TestOneOfTwoIsReplacedWithAnyBudget: an unhealthy machine of a deployment of two is given up with any budget.
// Invariants: P24
func TestOneOfTwoIsReplacedWithAnyBudget(t *testing.T) {
	for _, budget := range []rollout.IntOrPercent{{}, {Value: 1}, {Value: 1, Percent: true}, {Value: 100, Percent: true}} {
		w := newWorld(t, 2, false)
		w.policy.Replacements = budget
		w.setPhase(w.machines[0].Name, machine.PhaseUnknown)
		w.ask(w.machines[0].Name).finish()
		assert.Equal(t, machine.PhaseFailed, w.machines[0].Status.Phase, budget)
	}
}

// TestGrantsAmongSurplus: a failed machine counts in the budget even if there are more machines than wanted. A slot
// counts in addition to a machine that is missing for another reason.
func TestGrantsAmongSurplus(t *testing.T) {
	w := newWorld(t, 1, false)
	w.add(machine.PhaseRunning)
	w.add(machine.PhaseRunning)
	for _, m := range w.machines {
		w.setPhase(m.Name, machine.PhaseUnknown)
		w.ask(m.Name).finish()
	}
	assert.Equal(t, 1, w.given, "the one that was given up is not being deleted yet")
	w.setPhase(w.machines[0].Name, machine.PhaseTerminating)
	w.ask(w.machines[1].Name).finish()
	assert.Equal(t, 2, w.given, "the first is being deleted, and a surplus machine replaces it")

	w = newWorld(t, 4, false)
	w.policy.Replacements = rollout.IntOrPercent{Value: 2}
	w.setPhase(w.machines[0].Name, machine.PhaseCrashLoopBackOff)
	w.setPhase(w.machines[1].Name, machine.PhaseUnknown)
	w.setPhase(w.machines[2].Name, machine.PhaseUnknown)
	r := w.ask(w.machines[1].Name)
	for range 5 {
		r.step(false) // the slot is taken
	}
	w.ask(w.machines[2].Name).finish()
	assert.Zero(t, w.given, "one machine is missing, and one is about to be given up")
}

// TestInReplacement has each phase, and whether a machine in it counts as being replaced.
func TestInReplacement(t *testing.T) {
	busy := map[machine.Phase]bool{
		machine.PhaseNew: true, machine.PhasePending: true, machine.PhaseCrashLoopBackOff: true, machine.PhaseFailed: true,
		machine.PhaseTerminating: true, machine.PhaseInPlaceUpdating: true, machine.PhaseInPlaceUpdateSuccessful: true,
		machine.PhaseRunning: false, machine.PhaseAvailable: false, machine.PhaseUnknown: false, machine.PhaseInPlaceUpdateFailed: false,
	}
	for phase, counts := range busy {
		w := newWorld(t, 3, false)
		w.setPhase(w.machines[0].Name, machine.PhaseUnknown)
		w.setPhase(w.machines[1].Name, phase)
		r := w.ask(w.machines[0].Name)
		r.finish()
		assert.Equal(t, counts, !r.grant.Allowed, "%q", phase)
		w.add(machine.PhaseRunning)
		r = w.ask(w.machines[0].Name)
		if w.find(r.m.Name).Status.Phase == machine.PhaseUnknown {
			r.finish()
			assert.True(t, r.grant.Allowed, "%q, with a machine more than wanted", phase)
		}
	}
}

// TestGrantDetails: a percentage of machines is rounded up. A machine whose in-place update failed may ask too. A
// preserved machine is not missing. No budget applies to a machine that no set replaces.
func TestGrantDetails(t *testing.T) {
	w := newWorld(t, 10, false)
	w.policy.Replacements = rollout.IntOrPercent{Value: 11, Percent: true}
	for range 3 {
		w.setPhase(w.machines[w.given].Name, machine.PhaseInPlaceUpdateFailed)
		w.ask(w.machines[w.given].Name).finish()
	}
	assert.Equal(t, 2, w.given, "11% of 10")

	w = newWorld(t, 2, false)
	w.setPhase(w.machines[0].Name, machine.PhaseUnknown)
	w.setPhase(w.machines[1].Name, machine.PhaseFailed)
	r := w.ask(w.machines[0].Name)
	r.o.Preserved = map[string]bool{w.machines[1].Name: true}
	r.finish()
	assert.True(t, r.grant.Allowed)

	w = newWorld(t, 1, false)
	w.add(machine.PhaseRunning)
	preserved := w.add(machine.PhaseRunning)
	w.setPhase(preserved.Name, machine.PhaseUnknown)
	w.ask(preserved.Name).finish()
	w.setPhase(w.machines[0].Name, machine.PhaseUnknown)
	r = w.ask(w.machines[0].Name)
	r.o.Preserved = map[string]bool{preserved.Name: true}
	r.finish()
	assert.False(t, r.grant.Allowed, "the preserved machine's slot is recent: it may still follow its node")
	w.later(time.Hour)
	r = w.ask(w.machines[0].Name)
	r.o.Preserved = map[string]bool{preserved.Name: true}
	r.finish()
	assert.True(t, r.grant.Allowed, "a preserved machine takes no place in the budget, though it was given up")
	third := w.add(machine.PhaseRunning)
	w.add(machine.PhaseRunning)
	w.setPhase(w.machines[0].Name, machine.PhaseRunning) // it recovered, and is not given up
	w.setPhase(third.Name, machine.PhaseUnknown)
	r = w.ask(third.Name)
	r.finish()
	assert.False(t, r.grant.Allowed, "the machine that was given up is no longer preserved, and still there")

	w = newWorld(t, 1, false)
	w.add(machine.PhaseRunning)
	w.setPhase(w.machines[0].Name, machine.PhaseUnknown)
	w.ask(w.machines[0].Name).finish()
	w.machines[0] = w.machines[0].Clone()
	w.machines[0].DeletedAt = w.Now
	w.add(machine.PhaseRunning)
	w.setPhase(w.machines[1].Name, machine.PhaseUnknown)
	r = w.ask(w.machines[1].Name)
	r.finish()
	assert.True(t, r.grant.Allowed, "a machine that is being deleted only counts as missing, and none is missing here")

	plan, err := replacement.Decide(&replacement.Observation{Machine: r.m}, w.policy, w.Now)
	require.NoError(t, err)
	assert.True(t, plan.Grant.Allowed)

	w = newWorld(t, 2, false)
	r = w.ask(w.machines[0].Name)
	r.finish()
	assert.Equal(t, replacement.ReasonNotAsking, r.plan.Why.Reason, "a running machine does not ask")

	w = newWorld(t, 3, false)
	for _, m := range w.machines {
		w.setPhase(m.Name, machine.PhaseUnknown)
	}
	w.policy.ZoneRule, w.zones = true, map[string]string{"b": "z"}
	r = w.ask(w.machines[0].Name)
	r.finish()
	assert.True(t, r.grant.Allowed, "the zone of the machine's class is not known")
	w.zones = map[string]string{"a": "z"}
	w.policy.ZoneRule = false
	w.policy.Replacements = rollout.IntOrPercent{Value: 3}
	r = w.ask(w.machines[1].Name)
	r.finish()
	assert.True(t, r.grant.Allowed, "the zone rule is off")
}

// TestP45NodesDeletedByOthers: others delete all nodes. Machines ask in any phase that a machine with a node may
// have. They follow their nodes one at a time, and a slot counts while its machine still looks healthy.
// Invariants: P45
func TestP45NodesDeletedByOthers(t *testing.T) {
	for _, phase := range []machine.Phase{
		machine.PhasePending, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseInPlaceUpdating,
		machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed,
	} {
		w := newWorld(t, 8, false)
		w.setPhase(w.machines[0].Name, phase)
		first := w.askLeaving(w.machines[0].Name)
		for range 5 {
			first.step(false) // the slot is taken
		}
		for _, m := range w.machines[1:] {
			r := w.askLeaving(m.Name)
			r.finish()
			require.False(t, r.grant.Allowed, "%q", phase)
		}
		first.finish()
		require.Equal(t, 1, w.given, "%q", phase)
		second := w.askLeaving(w.machines[1].Name)
		second.finish()
		require.Equal(t, replacement.ReasonBudgetSpent, second.plan.Why.Reason, "the first is not replaced yet")
		w.replace()
		w.setPhase(w.machines[len(w.machines)-1].Name, machine.PhaseRunning)
		w.askLeaving(w.machines[1].Name).finish()
		require.Equal(t, 2, w.given, "%q", phase)
	}
}

// TestP45BrakeOnMachinesWithoutASet: no budget counts machines that no set replaces. In each period, as many of them
// may follow their nodes as the brake allows.
// Invariants: P45
func TestP45BrakeOnMachinesWithoutASet(t *testing.T) {
	p, now := safety.DefaultPolicy(), safetytest.Epoch
	var spent []safety.Spent
	ask := func(i int, leaves bool) bool {
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m"}, UID: strconv.Itoa(i)}}
		plan, err := replacement.Decide(&replacement.Observation{Machine: m, NodeLeaves: leaves, Spent: spent}, p, now)
		require.NoError(t, err)
		spent = plan.Spent
		return plan.Grant.Allowed
	}
	allowed := 0
	for i := range 20 {
		if ask(i, true) {
			allowed++
		}
		require.True(t, ask(i, false), "the brake does not count machines that only become Failed")
	}
	require.Equal(t, int(p.Brake), allowed)
	require.True(t, ask(0, true), "a machine that was allowed may ask again")
	now = now.Add(p.OwnerPeriod)
	require.True(t, ask(19, true))
}

// TestSlotsDoNotPileUp: only slots that still count are stored.
func TestSlotsDoNotPileUp(t *testing.T) {
	w := newWorld(t, 3, true)
	for range 20 {
		m := w.machines[0]
		w.setPhase(m.Name, machine.PhaseUnknown)
		w.ask(m.Name).finish()
		w.replace()
		w.machines = w.machines[1:]
		w.setPhase(w.machines[2].Name, machine.PhaseRunning)
	}
	assert.Equal(t, 20, w.given)
	assert.Len(t, replacement.ParseSlots(w.set.Annotations[w.policy.Keys.Slots]), 1)
}

// FuzzParseSlots: ParseSlots reads what FormatSlots writes, which skips slots that can't be written.
func FuzzParseSlots(f *testing.F) {
	f.Add("m-1~2026-03-01T09:00:00Z,m-2~2026-03-01T09:00:01Z")
	f.Add("m-1~2026-03-01T09:00:00Z,m-1~2026-03-01T10:00:00+01:00,~,x,y~,~2026-03-01T09:00:00Z")
	f.Add("m-1~0000-01-01T0:00:00+01:00")
	f.Fuzz(func(t *testing.T, text string) {
		slots := replacement.ParseSlots(text)
		again := replacement.ParseSlots(replacement.FormatSlots(slots))
		require.Equal(t, slots, again)
		seen := map[string]bool{}
		for _, s := range slots {
			require.NotEmpty(t, s.Machine)
			require.False(t, seen[s.Machine], "%s has two slots", s.Machine)
			seen[s.Machine] = true
		}
	})
}

// TestSlotThatCannotBeWritten: a machine whose name can't be written into a slot is refused, and its pass ends.
func TestSlotThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, 2, false)
	w.machines[0].Name = "a,b"
	w.setPhase("a,b", machine.PhaseUnknown)
	r := w.ask("a,b")
	r.finish()
	require.NotNil(t, r.grant)
	assert.False(t, r.grant.Allowed)
}

// TestSlotsOfOthers: a new slot leaves the others in place. A slot from the future, which no process can have taken,
// blocks no machine.
func TestSlotsOfOthers(t *testing.T) {
	w := newWorld(t, 5, false)
	w.policy.Replacements = rollout.IntOrPercent{Value: 2}
	for _, m := range w.machines[:3] {
		w.setPhase(m.Name, machine.PhaseUnknown)
		r := w.ask(m.Name)
		for range 5 {
			r.step(false) // the slot is taken, if there is one, and not used
		}
	}
	slots := replacement.ParseSlots(w.deployment.Annotations[w.policy.Keys.Slots])
	require.Len(t, slots, 2)
	assert.Equal(t, w.machines[0].Name, slots[0].Machine)
	assert.Equal(t, w.machines[1].Name, slots[1].Machine)

	w.deployment = w.deployment.Clone()
	w.deployment.Annotations[w.policy.Keys.Slots] = replacement.FormatSlots([]replacement.Slot{
		{Machine: w.machines[0].Name, At: safetytest.Epoch.Add(time.Hour)}, {Machine: w.machines[1].Name, At: safetytest.Epoch.Add(time.Minute)},
	})
	w.policy.Replacements = rollout.IntOrPercent{Value: 1}
	r := w.ask(w.machines[2].Name)
	r.finish()
	assert.False(t, r.grant.Allowed, "a slot a minute in the future counts, since clocks differ")
	w.policy.Replacements = rollout.IntOrPercent{Value: 2}
	r = w.ask(w.machines[2].Name)
	r.finish()
	assert.True(t, r.grant.Allowed, "a slot an hour in the future does not count")
}

// TestZoneRuleLimits: the zone rule refuses a grant if more than half of a zone's machines are unhealthy, and the
// zone has more than two.
func TestZoneRuleLimits(t *testing.T) {
	for _, c := range []struct {
		size, ill int
		allowed   bool
	}{{2, 2, true}, {3, 1, true}, {3, 2, false}, {4, 2, true}, {4, 3, false}} {
		w := newWorld(t, int32(c.size), false)
		w.policy.ZoneRule, w.zones = true, map[string]string{"a": "z"}
		w.policy.Replacements = rollout.IntOrPercent{Value: 100, Percent: true}
		for _, m := range w.machines[:c.ill] {
			w.setPhase(m.Name, machine.PhaseUnknown)
		}
		terminating := w.add(machine.PhaseRunning)
		w.setPhase(terminating.Name, machine.PhaseTerminating)
		w.add(machine.PhaseRunning).Spec.Class.Name = "b" // in another zone
		r := w.ask(w.machines[0].Name)
		r.finish()
		assert.Equal(t, c.allowed, r.grant.Allowed, "%d of %d", c.ill, c.size)
	}
}

// TestGrantForALostVM: without a cluster an Available machine may ask, because its VM may be missing. Of two that ask
// one is granted (P24), until the slot has expired.
// Invariants: P24
func TestGrantForALostVM(t *testing.T) {
	p, now := safety.DefaultPolicy(), safetytest.Epoch
	var fleet []*machine.Machine
	for _, name := range []string{"a", "b", "c"} {
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}
		m.Status.Phase = machine.PhaseAvailable
		fleet = append(fleet, m)
	}
	d := &deployment.Deployment{Spec: deployment.Spec{Replicas: 3}}
	ask := func(m *machine.Machine, cluster bool) replacement.Plan {
		plan, err := replacement.Decide(&replacement.Observation{
			Machine: m, Deployment: d, Set: &machineset.Set{}, Fleet: fleet, Read: decision.Freshness{Began: now}, NoCluster: !cluster,
		}, p, now)
		require.NoError(t, err)
		return plan
	}
	require.Equal(t, replacement.ReasonNotAsking, ask(fleet[0], true).Why.Reason)
	d = ask(fleet[0], false).Write.(*replacement.TakeFromDeployment).Deployment
	second := ask(fleet[1], false)
	require.Equal(t, replacement.ReasonBudgetSpent, second.Why.Reason)
	require.False(t, second.Grant.Allowed)
	now = now.Add(3*time.Minute + 2*time.Second)
	require.NotNil(t, ask(fleet[1], false).Write, "the first slot expired unused")
}

// TestPausedMachinesAreNotInReplacement: paused machines take no place in the budget, in any phase. Exceptions are
// machines that are being deleted, and those with a slot so recent that a write may still be on its way.
// Invariants: P24
func TestPausedMachinesAreNotInReplacement(t *testing.T) {
	for _, phase := range []machine.Phase{
		machine.PhaseFailed, machine.PhasePending, machine.PhaseCrashLoopBackOff, machine.PhaseNew, machine.PhaseUnknown,
	} {
		for _, paused := range []string{"true", "false"} {
			d := &deployment.Deployment{Spec: deployment.Spec{Replicas: 2}}
			slots := func(at time.Time) map[string]string {
				return map[string]string{safety.DefaultPolicy().Keys.Slots: "m-2~" + at.Format(time.RFC3339)}
			}
			d.Annotations = slots(safetytest.Noon)
			o := &replacement.Observation{
				Machine: safetytest.Member("m-1", machine.PhaseUnknown, ""), Deployment: d, Set: &machineset.Set{}, Read: decision.Freshness{Began: safetytest.Epoch},
			}
			o.Fleet = []*machine.Machine{o.Machine, safetytest.Member("m-2", phase, paused)}
			plan, err := replacement.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
			require.NoError(t, err)
			require.Nil(t, plan.Write, "the slot of m-2 is recent")
			if paused == "true" {
				d.Annotations = slots(safetytest.Noon.Add(-time.Hour))
			}
			plan, err = replacement.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
			require.NoError(t, err)
			require.Equal(t, paused == "true", plan.Write != nil, "%s, paused %s: %s", phase, paused, plan.Why)
			o.Fleet[1].DeletedAt = safetytest.Noon
			plan, err = replacement.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
			require.NoError(t, err)
			require.Nil(t, plan.Write, "m-2 is being deleted")
		}
	}
}

// TestSlotsInUse: a slot counts if its machine has failed or is not replaced yet. An expired slot does not count,
// and slots of machines that are gone count at most as often as machines are missing.
func TestSlotsInUse(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	p := safety.DefaultPolicy()
	at := func(name string, phase machine.Phase) *machine.Machine {
		return &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}}, Status: machine.Status{Phase: phase}}
	}
	deleted := at("a", machine.PhaseFailed)
	deleted.DeletedAt = now
	ok, failed, unknown := machine.PhaseRunning, machine.PhaseFailed, machine.PhaseUnknown
	for name, c := range map[string]struct {
		slots []replacement.Slot
		fleet []*machine.Machine
		used  int
	}{
		"none":                     {nil, []*machine.Machine{at("a", failed)}, 0},
		"given up":                 {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("a", failed), at("b", ok)}, 1},
		"about to be":              {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("a", unknown), at("b", ok)}, 1},
		"about to follow its node": {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("a", ok), at("b", ok)}, 1},
		"not used in time":         {[]replacement.Slot{{"a", now.Add(-24 * time.Hour)}}, []*machine.Machine{at("a", unknown), at("b", ok)}, 0},
		"being deleted":            {[]replacement.Slot{{"a", now}}, []*machine.Machine{deleted, at("b", ok)}, 1},
		"gone":                     {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("b", ok)}, 1},
		"replaced":                 {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("c", ok), at("b", ok)}, 0},
		"more slots than missing":  {[]replacement.Slot{{"a", now}, {"x", now}, {"y", now}}, []*machine.Machine{nil, at("b", ok)}, 1},
	} {
		holder := &object.Meta{Annotations: map[string]string{p.Keys.Slots: replacement.FormatSlots(c.slots)}}
		used, limit := replacement.SlotsInUse(holder, 2, c.fleet, p, now)
		require.Equal(t, c.used, used, name)
		require.Equal(t, 1, limit, name)
	}
}
