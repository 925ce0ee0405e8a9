package replacement_test

import (
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

// all makes the rest of a pass.
func (n *nurse) all() {
	for n.step(false) {
		continue
	}
}

var stories = map[string]func(*ward){
	"grant to one of two": func(w *ward) {
		a, b := w.machines[0].Name, w.machines[1].Name
		w.turn(a, machine.PhaseUnknown)
		w.turn(b, machine.PhaseUnknown)
		w.Say("both machines are Unknown")
		w.send(a).all()
		w.send(b).all()
		w.replace()
		w.Say("the first is being deleted, its replacement is Pending")
		w.send(b).all()
		w.turn(w.machines[2].Name, machine.PhaseRunning)
		w.Say("its replacement runs")
		w.send(b).all()
	},
	"grant to two at the same time": func(w *ward) {
		a, b := w.machines[0].Name, w.machines[1].Name
		w.turn(a, machine.PhaseUnknown)
		w.turn(b, machine.PhaseUnknown)
		first, second := w.send(a), w.send(b)
		for range 6 {
			first.step(false)
			second.step(false)
		}
		w.Say("the second one's write meets a conflict; it asks again")
		w.send(b).all()
	},
	"grant not used": func(w *ward) {
		a, b := w.machines[0].Name, w.machines[1].Name
		w.turn(a, machine.PhaseUnknown)
		w.turn(b, machine.PhaseUnknown)
		n := w.send(a)
		for range 5 {
			n.step(false)
		}
		w.Say("the process dies with the slot taken")
		w.send(b).all()
		w.pass(3 * time.Minute)
		w.send(b).all()
		w.pass(time.Second)
		w.send(b).all()
	},
	"grant taken up again": func(w *ward) {
		a := w.machines[0].Name
		w.turn(a, machine.PhaseUnknown)
		n := w.send(a)
		for range 5 {
			n.step(false)
		}
		w.Say("the process dies with the slot taken; the next one takes it again")
		w.pass(time.Minute)
		w.send(a).all()
	},
	"grant in a failing zone": func(w *ward) {
		w.policy.ZoneRule, w.zones = true, map[string]string{"a": "zone-1"}
		w.bear(machine.PhaseRunning)
		for _, m := range w.machines[:2] {
			w.turn(m.Name, machine.PhaseUnknown)
		}
		w.send(w.machines[0].Name).all()
		w.turn(w.machines[1].Name, machine.PhaseRunning)
		w.Say("one of the two is well again")
		w.send(w.machines[0].Name).all()
	},
	"grant where one is missing for another reason": func(w *ward) {
		w.turn(w.machines[0].Name, machine.PhaseCrashLoopBackOff)
		w.turn(w.machines[1].Name, machine.PhaseUnknown)
		w.send(w.machines[1].Name).all()
		w.policy.Replacements = rollout.IntOrPercent{Value: 2}
		w.Say("the budget is raised to 2")
		w.send(w.machines[1].Name).all()
	},
}

func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, 2, name == "grant taken up again")
			run(w)
			safetytest.Compare(t, name, &w.Journal)
		})
	}
}

// P24, P45: machines ask at the same time, for their health or because others delete their nodes.
// Processes read old state, die with a slot taken or write late. No more verdicts are in flight than
// the budget allows. Once all is quiet again, every machine that is ill is replaced.
// Invariants: P24 P45
func TestP24VerdictsStayWithinTheBudget(t *testing.T) {
	given, late := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWard(t, rapid.Int32Range(1, 5).Draw(t, "replicas"), rapid.Bool().Draw(t, "lone"))
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		w.policy.Replacements = rollout.IntOrPercent{Value: int32(limit)}
		for range rapid.IntRange(0, 2).Draw(t, "surplus") {
			w.bear(machine.PhaseRunning)
		}
		flying := map[int]time.Time{}
		for i := range rapid.IntRange(1, 120).Draw(t, "steps") {
			act := rapid.SampledFrom([]string{
				"step", "step", "step", "rest", "rest", "ask", "ask", "leave", "all nodes", "plague", "ill", "well", "replace", "bury", "join", "user deletes", "late", "time", "stall", "crash",
			}).Draw(t, "act")
			switch {
			case act == "time":
				w.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			case act == "stall" && len(w.late) == 0:
				w.pass(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
			case len(w.nurses) == 0 || act != "step" && act != "crash" && act != "rest":
				w.treat(t, act)
			case w.nurse(t, act):
				flying[i] = w.Now
				late++
			}
			w.land(flying)
			require.LessOrEqual(t, w.inFlight(), limit, "verdicts in flight")
		}
		given += w.given
		w.heal(t)
	})
	assert.Positive(t, given, "no machine was ever given up")
	assert.Positive(t, late, "no write was ever late")
}

// nurse lets one of the passes go on, to its end or by a step, or die. It returns true if a write
// is on its way.
func (w *ward) nurse(t *rapid.T, act string) bool {
	at := rapid.IntRange(0, len(w.nurses)-1).Draw(t, "nurse")
	before, n := len(w.late), w.nurses[at]
	delay := rapid.IntRange(0, 3).Draw(t, "delay") == 0
	going := act != "crash" && n.step(delay)
	for going && act == "rest" {
		going = n.step(delay)
	}
	if !going {
		w.nurses = append(w.nurses[:at], w.nurses[at+1:]...)
	}
	return len(w.late) > before
}

// land makes late writes take effect before they have been on their way for too long.
func (w *ward) land(flying map[int]time.Time) {
	for i, since := range flying {
		if w.Now.Sub(since) >= w.policy.GrantFlight-20*time.Second {
			for _, apply := range w.late {
				apply()
			}
			w.late = nil
			clear(flying)
			return
		}
		if len(w.late) == 0 {
			delete(flying, i)
		}
	}
}

// heal lets everything proceed: each ill machine stays ill, asks, and is replaced.
func (w *ward) heal(t *rapid.T) {
	w.nurses, w.late = nil, nil
	for range 40 {
		w.pass(time.Minute)
		for _, m := range w.machines {
			if m.Status.Phase == machine.PhaseUnknown && !m.Deleted() {
				w.send(m.Name).all()
			}
		}
		w.replace()
		kept := w.machines[:0:0]
		for _, m := range w.machines {
			if !m.Deleted() {
				kept = append(kept, m)
			}
		}
		w.machines = kept
		for _, m := range w.machines {
			if m.Status.Phase == machine.PhasePending {
				w.turn(m.Name, machine.PhaseRunning)
			}
		}
	}
	for _, m := range w.machines {
		require.Equal(t, machine.PhaseRunning, m.Status.Phase, m.Name)
	}
	require.GreaterOrEqual(t, len(w.machines), int(w.replicas))
}

// A deployment of two machines with one broken heals with any budget.
// Invariants: P24
func TestTwoWithOneBrokenHeal(t *testing.T) {
	for _, budget := range []rollout.IntOrPercent{{}, {Value: 1}, {Value: 1, Percent: true}, {Value: 100, Percent: true}} {
		w := newWard(t, 2, false)
		w.policy.Replacements = budget
		w.turn(w.machines[0].Name, machine.PhaseUnknown)
		w.send(w.machines[0].Name).all()
		assert.Equal(t, machine.PhaseFailed, w.machines[0].Status.Phase, budget)
	}
}

// If there are more machines than wanted, failed ones count all the same. A slot counts in addition
// to a machine that is missing for another reason.
func TestGrantsAmongSurplus(t *testing.T) {
	w := newWard(t, 1, false)
	w.bear(machine.PhaseRunning)
	w.bear(machine.PhaseRunning)
	for _, m := range w.machines {
		w.turn(m.Name, machine.PhaseUnknown)
		w.send(m.Name).all()
	}
	assert.Equal(t, 1, w.given, "one is given up and not being deleted yet")
	w.turn(w.machines[0].Name, machine.PhaseTerminating)
	w.send(w.machines[1].Name).all()
	assert.Equal(t, 2, w.given, "it is being deleted, and another is there in its place")

	w = newWard(t, 4, false)
	w.policy.Replacements = rollout.IntOrPercent{Value: 2}
	w.turn(w.machines[0].Name, machine.PhaseCrashLoopBackOff)
	w.turn(w.machines[1].Name, machine.PhaseUnknown)
	w.turn(w.machines[2].Name, machine.PhaseUnknown)
	n := w.send(w.machines[1].Name)
	for range 5 {
		n.step(false) // the slot is taken
	}
	w.send(w.machines[2].Name).all()
	assert.Zero(t, w.given, "one is missing, and one about to be given up")
}

// What counts as in replacement, one phase at a time.
func TestInReplacement(t *testing.T) {
	busy := map[machine.Phase]bool{
		machine.PhaseNew: true, machine.PhasePending: true, machine.PhaseCrashLoopBackOff: true, machine.PhaseFailed: true,
		machine.PhaseTerminating: true, machine.PhaseInPlaceUpdating: true, machine.PhaseInPlaceUpdateSuccessful: true,
		machine.PhaseRunning: false, machine.PhaseAvailable: false, machine.PhaseUnknown: false, machine.PhaseInPlaceUpdateFailed: false,
	}
	for phase, counts := range busy {
		w := newWard(t, 3, false)
		w.turn(w.machines[0].Name, machine.PhaseUnknown)
		w.turn(w.machines[1].Name, phase)
		n := w.send(w.machines[0].Name)
		n.all()
		assert.Equal(t, counts, !n.grant.Allowed, "%q", phase)
		w.bear(machine.PhaseRunning)
		n = w.send(w.machines[0].Name)
		if w.find(n.m.Name).Status.Phase == machine.PhaseUnknown {
			n.all()
			assert.True(t, n.grant.Allowed, "%q, with a machine more than wanted", phase)
		}
	}
}

// Half a machine of a percentage counts as a whole one. Machines whose in-place update failed are
// failed too. A preserved machine is not missing. No budget applies to a machine that no set
// replaces.
func TestGrantDetails(t *testing.T) {
	w := newWard(t, 10, false)
	w.policy.Replacements = rollout.IntOrPercent{Value: 11, Percent: true}
	for range 3 {
		w.turn(w.machines[w.given].Name, machine.PhaseInPlaceUpdateFailed)
		w.send(w.machines[w.given].Name).all()
	}
	assert.Equal(t, 2, w.given, "11% of 10")

	w = newWard(t, 2, false)
	w.turn(w.machines[0].Name, machine.PhaseUnknown)
	w.turn(w.machines[1].Name, machine.PhaseFailed)
	n := w.send(w.machines[0].Name)
	n.o.Preserved = map[string]bool{w.machines[1].Name: true}
	n.all()
	assert.True(t, n.grant.Allowed)

	w = newWard(t, 1, false)
	w.bear(machine.PhaseRunning)
	kept := w.bear(machine.PhaseRunning)
	w.turn(kept.Name, machine.PhaseUnknown)
	w.send(kept.Name).all()
	w.turn(w.machines[0].Name, machine.PhaseUnknown)
	n = w.send(w.machines[0].Name)
	n.o.Preserved = map[string]bool{kept.Name: true}
	n.all()
	assert.False(t, n.grant.Allowed, "as long as its slot is fresh, what is kept may go with its node")
	w.pass(time.Hour)
	n = w.send(w.machines[0].Name)
	n.o.Preserved = map[string]bool{kept.Name: true}
	n.all()
	assert.True(t, n.grant.Allowed, "what is kept is in nobody's way, though it was given up")
	third := w.bear(machine.PhaseRunning)
	w.bear(machine.PhaseRunning)
	w.turn(w.machines[0].Name, machine.PhaseRunning) // it recovered, and is not given up
	w.turn(third.Name, machine.PhaseUnknown)
	n = w.send(third.Name)
	n.all()
	assert.False(t, n.grant.Allowed, "it is kept no longer, and there still")

	w = newWard(t, 1, false)
	w.bear(machine.PhaseRunning)
	w.turn(w.machines[0].Name, machine.PhaseUnknown)
	w.send(w.machines[0].Name).all()
	w.machines[0] = w.machines[0].Clone()
	w.machines[0].DeletedAt = w.Now
	w.bear(machine.PhaseRunning)
	w.turn(w.machines[1].Name, machine.PhaseUnknown)
	n = w.send(w.machines[1].Name)
	n.all()
	assert.True(t, n.grant.Allowed, "what is being deleted is only missing, and here nothing is")

	plan, err := replacement.Decide(&replacement.Observation{Machine: n.m}, w.policy, w.Now)
	require.NoError(t, err)
	assert.True(t, plan.Grant.Allowed)

	w = newWard(t, 2, false)
	n = w.send(w.machines[0].Name)
	n.all()
	assert.Equal(t, replacement.ReasonNotAsking, n.plan.Why.Reason, "it runs")

	w = newWard(t, 3, false)
	for _, m := range w.machines {
		w.turn(m.Name, machine.PhaseUnknown)
	}
	w.policy.ZoneRule, w.zones = true, map[string]string{"b": "z"}
	n = w.send(w.machines[0].Name)
	n.all()
	assert.True(t, n.grant.Allowed, "no zone is known")
	w.zones = map[string]string{"a": "z"}
	w.policy.ZoneRule = false
	w.policy.Replacements = rollout.IntOrPercent{Value: 3}
	n = w.send(w.machines[1].Name)
	n.all()
	assert.True(t, n.grant.Allowed, "the rule is off")
}

// P45: others delete all nodes. A machine asks in any phase that it may have with a node, one goes
// at a time, and its slot counts while it still looks well.
// Invariants: P45
func TestP45NodesDeletedByOthers(t *testing.T) {
	for _, phase := range []machine.Phase{
		machine.PhasePending, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseInPlaceUpdating,
		machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed,
	} {
		w := newWard(t, 8, false)
		w.turn(w.machines[0].Name, phase)
		first := w.sendLeaving(w.machines[0].Name)
		for range 5 {
			first.step(false) // the slot is taken
		}
		for _, m := range w.machines[1:] {
			n := w.sendLeaving(m.Name)
			n.all()
			require.False(t, n.grant.Allowed, "%q", phase)
		}
		first.all()
		require.Equal(t, 1, w.given, "%q", phase)
		second := w.sendLeaving(w.machines[1].Name)
		second.all()
		require.Equal(t, replacement.ReasonBudgetSpent, second.plan.Why.Reason, "the first is not replaced yet")
		w.replace()
		w.turn(w.machines[len(w.machines)-1].Name, machine.PhaseRunning)
		w.sendLeaving(w.machines[1].Name).all()
		require.Equal(t, 2, w.given, "%q", phase)
	}
}

// P45: no budget counts machines that no set replaces. So many may follow their nodes within a
// period as orphans may go.
// Invariants: P45
func TestP45LoneMachinesAreBraked(t *testing.T) {
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
		require.True(t, ask(i, false), "to be failed costs no VM that no set replaces")
	}
	require.Equal(t, int(p.Brake), allowed)
	require.True(t, ask(0, true), "the same one again")
	now = now.Add(p.OwnerPeriod)
	require.True(t, ask(19, true))
}

// Only the slots that count are stored.
func TestSlotsDoNotPileUp(t *testing.T) {
	w := newWard(t, 3, true)
	for range 20 {
		m := w.machines[0]
		w.turn(m.Name, machine.PhaseUnknown)
		w.send(m.Name).all()
		w.replace()
		w.machines = w.machines[1:]
		w.turn(w.machines[2].Name, machine.PhaseRunning)
	}
	assert.Equal(t, 20, w.given)
	assert.Len(t, replacement.ParseSlots(w.set.Annotations[w.policy.Keys.Slots]), 1)
}

// ParseSlots reads what FormatSlots writes, which skips slots that can't be written.
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
			require.False(t, seen[s.Machine], "named twice")
			seen[s.Machine] = true
		}
	})
}

// A machine whose name can't be written is refused once, and not tried again and again.
func TestSlotThatCannotBeWritten(t *testing.T) {
	w := newWard(t, 2, false)
	w.machines[0].Name = "a,b"
	w.turn("a,b", machine.PhaseUnknown)
	n := w.send("a,b")
	n.all()
	require.NotNil(t, n.grant)
	assert.False(t, n.grant.Allowed)
}

// A new slot leaves the others in place. A slot from the future, which no process can have taken,
// blocks no machine.
func TestSlotsOfOthers(t *testing.T) {
	w := newWard(t, 5, false)
	w.policy.Replacements = rollout.IntOrPercent{Value: 2}
	for _, m := range w.machines[:3] {
		w.turn(m.Name, machine.PhaseUnknown)
		n := w.send(m.Name)
		for range 5 {
			n.step(false) // the slot is taken, if there is one, and not used
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
	n := w.send(w.machines[2].Name)
	n.all()
	assert.False(t, n.grant.Allowed, "a clock may be a minute ahead")
	w.policy.Replacements = rollout.IntOrPercent{Value: 2}
	n = w.send(w.machines[2].Name)
	n.all()
	assert.True(t, n.grant.Allowed, "but not an hour")
}

// Most of a zone is more than half of it, and a zone of two proves nothing.
func TestZoneRuleLimits(t *testing.T) {
	for _, c := range []struct {
		size, ill int
		allowed   bool
	}{{2, 2, true}, {3, 1, true}, {3, 2, false}, {4, 2, true}, {4, 3, false}} {
		w := newWard(t, int32(c.size), false)
		w.policy.ZoneRule, w.zones = true, map[string]string{"a": "z"}
		w.policy.Replacements = rollout.IntOrPercent{Value: 100, Percent: true}
		for _, m := range w.machines[:c.ill] {
			w.turn(m.Name, machine.PhaseUnknown)
		}
		away := w.bear(machine.PhaseRunning) // one that goes, and one elsewhere
		w.turn(away.Name, machine.PhaseTerminating)
		w.bear(machine.PhaseRunning).Spec.Class.Name = "b"
		n := w.send(w.machines[0].Name)
		n.all()
		assert.Equal(t, c.allowed, n.grant.Allowed, "%d of %d", c.ill, c.size)
	}
}

// TestGrantForALostVM: without a cluster a machine that does its work may ask. Its slot counts
// until it has expired: of two that ask one is granted (P24).
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
	require.NotNil(t, ask(fleet[1], false).Write, "nothing came of the slot")
}

// TestPausedMachinesAreNotInReplacement: they take no place in the budget in any phase, unless they
// are being deleted, or were given up so recently that this may still be on its way.
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
			require.Nil(t, plan.Write, "its slot is fresh")
			if paused == "true" {
				d.Annotations = slots(safetytest.Noon.Add(-time.Hour))
			}
			plan, err = replacement.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
			require.NoError(t, err)
			require.Equal(t, paused == "true", plan.Write != nil, "%s, paused %s: %s", phase, paused, plan.Why)
			o.Fleet[1].DeletedAt = safetytest.Noon
			plan, err = replacement.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
			require.NoError(t, err)
			require.Nil(t, plan.Write, "it is missing")
		}
	}
}

// TestSlotsInUse: only permits of machines that are failed or not yet replaced count. Expired
// permits do not count, nor more than machines are missing.
func TestSlotsInUse(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	p := safety.DefaultPolicy()
	at := func(name string, phase machine.Phase) *machine.Machine {
		return &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}}, Status: machine.Status{Phase: phase}}
	}
	going := at("a", machine.PhaseFailed)
	going.DeletedAt = now
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
		"going":                    {[]replacement.Slot{{"a", now}}, []*machine.Machine{going, at("b", ok)}, 1},
		"gone":                     {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("b", ok)}, 1},
		"made good for":            {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("c", ok), at("b", ok)}, 0},
		"no more than lacks":       {[]replacement.Slot{{"a", now}, {"x", now}, {"y", now}}, []*machine.Machine{nil, at("b", ok)}, 1},
	} {
		holder := &object.Meta{Annotations: map[string]string{p.Keys.Slots: replacement.FormatSlots(c.slots)}}
		used, limit := replacement.SlotsInUse(holder, 2, c.fleet, p, now)
		require.Equal(t, c.used, used, name)
		require.Equal(t, 1, limit, name)
	}
}
