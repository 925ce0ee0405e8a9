package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

const pausedKey = "millwright-go/paused"

func init() {
	for name, run := range map[string]func(*testing.T) *scenario{
		"paused-old-set":           pausedOldSet,
		"paused-new-set":           pausedNewSet,
		"paused-old-machine":       pausedOldMachine,
		"paused-set-and-deletion":  pausedSetDeletion,
		"paused-set-in-place":      pausedInPlace,
		"paused-machine-is-chosen": pausedChosen,
	} {
		scenarios[name] = run
	}
}

func isPaused(m *object.Meta) bool {
	paused, _ := machine.Paused(m, pausedKey)
	return paused
}

func setPause(m *object.Meta, yes bool) {
	annotations := map[string]string{}
	for k, v := range m.Annotations {
		annotations[k] = v
	}
	delete(annotations, pausedKey)
	if yes {
		annotations[pausedKey] = "true"
	}
	m.Annotations = annotations
}

func (w *world) pauseSet(name string, yes bool) {
	w.changeSet(name, func(s *machineset.Set) { setPause(&s.Meta, yes) })
}

func (w *world) pauseMachine(name string, yes bool) {
	w.changeMachine(name, func(m *machine.Machine) { setPause(&m.Meta, yes) })
}

// removable returns the machines that may be deleted of a set with a surplus of n, and how many at most: none if there
// are n paused machines that are not available.
func (w *world) removable(alive []*machine.Machine, n int64) (free []*machine.Machine, most int) {
	minReady := time.Duration(0)
	if w.deployment != nil {
		minReady = w.deployment.Spec.MinReady
	}
	for _, m := range alive {
		switch {
		case !isPaused(&m.Meta):
			free = append(free, m)
		case !available(m, minReady, w.now):
			n--
		}
	}
	if n <= 0 {
		return nil, 0
	}
	return free, int(n)
}

func pausedOldSet(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("the set is paused, and another class is wanted")
	s.pauseSet(s.sets[0].Name, true)
	s.edit(class("large"))
	s.decide()
	s.runRounds(2)
	s.comment("two are wanted: the new set keeps to what is left")
	s.edit(replicas(2))
	s.pass(time.Minute)
	s.decide()
	s.comment("resumed")
	s.pauseSet(s.sets[0].Name, false)
	s.runRounds(4)
	return s
}

func pausedNewSet(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.edit(class("large"))
	s.decide()
	s.comment("the new set is paused when it has its first machine")
	s.runRounds(1)
	s.pauseSet(s.sets[1].Name, true)
	s.runRounds(2)
	s.comment("resumed")
	s.pauseSet(s.sets[1].Name, false)
	s.runRounds(4)
	return s
}

func pausedOldMachine(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.comment("the first machine is paused, and another class is wanted")
	s.pauseMachine(s.running(0), true)
	s.edit(class("large"))
	s.decide()
	s.runRounds(4)
	s.comment("resumed")
	s.pauseMachine(s.running(0), false)
	s.runRounds(2)
	return s
}

func pausedSetDeletion(t *testing.T) *scenario {
	s := settled(t, web(2)).rolled("large")
	s.comment("the set in use is paused, and the deployment is deleted")
	name := s.sets[1].Name
	s.pauseSet(name, true)
	s.deleteDeployment()
	s.decide()
	s.runRounds(2)
	s.comment("resumed")
	s.pauseSet(name, false)
	s.runRounds(3)
	return s
}

func pausedInPlace(t *testing.T) *scenario {
	d := web(2)
	d.Spec.Strategy = deployment.Strategy{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 1}}
	s := settled(t, d)
	s.comment("the first machine is paused, and another class is wanted")
	first := s.running(0)
	s.pauseMachine(first, true)
	s.edit(class("large"))
	s.decide()
	s.runRounds(6)
	s.comment("the old set is paused instead")
	s.pauseSet(s.sets[0].Name, true)
	s.pauseMachine(first, false)
	s.runRounds(1)
	s.comment("resumed")
	s.pauseSet(s.sets[0].Name, false)
	s.runRounds(6)
	return s
}

func pausedChosen(t *testing.T) *scenario {
	s := settled(t, web(3))
	name := s.running(1)
	s.comment("machine %s is paused, and a scaler chooses it to go", name)
	s.pauseMachine(name, true)
	d := s.deployment.Clone()
	d.Annotations = map[string]string{"node.machine.sapcloud.io/trigger-deletion-by-mcm": name + "~" + s.now.UTC().Format(time.RFC3339)}
	d.Spec.Replicas = 2
	d.Generation++
	d.Version = s.unique("v")
	s.deployment = d
	s.changed()
	s.decide()
	s.runRounds(2)
	return s
}

// TestPausedSetsGetNoSize: for any observation, a paused set is not resized or deleted, and no machine moves to or from
// it, except for moves that had begun.
func TestPausedSetsGetNoSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
			o.Deployment.DeletedAt = begin
		}
		for _, c := range o.Sets {
			setPause(&c.Set.Meta, rapid.Bool().Draw(t, "pause"))
			if rapid.IntRange(0, 9).Draw(t, "odd size") == 0 {
				c.Set.Spec.Replicas = -1
			}
			c.Set.Instructions.Handover.Arriving, c.Set.Instructions.Handover.Leaving = nil, nil
			for _, m := range c.Machines {
				setPause(&m.Meta, rapid.IntRange(0, 2).Draw(t, "pause machine") == 0)
			}
		}
		for range 8 {
			plan := decide(t, o, begin)
			for _, order := range slices.Concat(plan.Scale, plan.Handover, plan.Push, plan.Delete) {
				i := slices.IndexFunc(o.Sets, func(c deployment.Children) bool { return c.Set.UID == order.Set.UID })
				if before := o.Sets[i].Set; isPaused(&before.Meta) {
					require.Equal(t, before.Spec.Replicas, order.Set.Spec.Replicas, "%s", order.Why)
					require.Empty(t, plan.Delete, "%s", order.Why)
					require.Equal(t, machineset.SurgeAllowance{}, order.Set.Instructions.SurgeAllowance)
				}
			}
			for _, order := range plan.Mark {
				if order.Why.Reason == deployment.ReasonSelect {
					require.False(t, isPaused(&order.Machine.Meta), "%s", order.Why)
				}
			}
			if plan.Write != nil || !plan.At.IsZero() || len(plan.Create)+len(plan.Adopt)+len(plan.Release) > 0 {
				return
			}
			follow(t, o, plan)
		}
	})
}

// pauses lets users pause and resume sets and machines.
func (c *chaos) pauses() {
	switch {
	case rapid.Bool().Draw(c.t, "a set") && len(c.sets) > 0:
		s := drawOne(c.t, "paused set", c.sets)
		c.pauseSet(s.Name, !isPaused(&s.Meta))
	case len(c.machines) > 0:
		m := drawOne(c.t, "paused machine", c.machines)
		c.pauseMachine(m.Name, !isPaused(&m.Meta))
	}
}

// resumeAll ends all pauses.
func (c *chaos) resumeAll() {
	for _, s := range c.sets {
		c.pauseSet(s.Name, false)
	}
	for _, m := range c.machines {
		c.pauseMachine(m.Name, false)
	}
}

// TestP7WithPauses: sets and machines are paused and resumed at any moment of a rollout. The fleet never leaves its
// bounds, and once all are resumed the rollout completes. If a pass waits for a paused object, its reason says so.
// Invariants: P3 P7
func TestP7WithPauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		require.GreaterOrEqual(t, c.converge(), 0)
		c.startShell()
		ceiling, floor := limitsOf(&c.deployment.Spec)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "who") == 0 {
				c.pauses()
			} else {
				c.randomStep()
			}
			total, usable, now := c.sums()
			require.LessOrEqual(t, total, ceiling, "P7: machines in all: %s", c)
			require.GreaterOrEqual(t, now, floor, "P7: machines available: %s", c)
			require.GreaterOrEqual(t, usable, floor, "P7: machines available once the sets have followed: %s", c)
		}
		c.observe = func(o *deployment.Observation, p deployment.Plan) {
			if p.At.IsZero() || p.Why.Reason != deployment.ReasonRollout || deployment.RolloutOf(p.Why).Reason == rollout.ReasonDone {
				return
			}
			require.True(t, waitsFor[deployment.RolloutOf(p.Why).Reason], "P3: %s", p.Why)
		}
		require.GreaterOrEqual(t, c.converge(), 0, "P3: never converges while paused: %s", c)
		c.resumeAll()
		require.GreaterOrEqual(t, c.converge(), 0, "P3: never converges: %s", c)
		requireComplete(t, c.world)
	})
}

// TestP7WithPausesAndFaults: with pauses and all other faults, each order keeps the bounds, and a deletion ends
// when all are resumed.
// Invariants: P7
func TestP7WithPausesAndFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "who") == 0 {
				c.pauses()
			} else {
				c.randomStep()
			}
		}
		c.deleteDeployment()
		require.GreaterOrEqual(t, c.converge(), 0)
		c.resumeAll()
		require.GreaterOrEqual(t, c.converge(), 0)
		require.Nil(t, c.deployment, "%s", c)
	})
}

// TestSurplusOfAPausedSetDelaysNobody: a set whose status says that it is paused deletes no machine. So its available
// machines count, even if it has a surplus. Before the status says so, the set may be deleting any of them.
// Invariants: P3 P7
func TestSurplusOfAPausedSetDelaysNobody(t *testing.T) {
	condition := func(status object.ConditionStatus) []object.Condition {
		return []object.Condition{{Type: machineset.ConditionPaused, Status: status}}
	}
	for _, line := range []struct {
		name       string
		paused     bool
		conditions []object.Condition
		lowered    int
	}{
		{"it says so", true, condition(object.True), 1},
		{"it does not say so", true, nil, 0},
		{"it says the opposite", true, condition(object.False), 0},
		{"resumed", false, condition(object.True), 0},
	} {
		d := stored(4)
		d.Spec.Strategy = deployment.Strategy{Kind: deployment.RollingUpdate, MaxSurge: rollout.IntOrPercent{Value: 1}}
		left, old, current := another(d, "large", 2, 2), another(d, "huge", 1, 3), ownSet(d, "web-a", 1)
		left.Set.Spec.Replicas, left.Machines[0].Status.Phase = 1, machine.PhaseUnknown
		current.Set.Revision = 3
		left.Set.Status.Conditions = line.conditions
		setPause(&left.Set.Meta, line.paused)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{left, old, current}}
		lowered := 0
		for _, order := range upToScale(t, o).Scale {
			if order.Set.UID == old.Set.UID {
				lowered += int(order.Why.Have - order.Why.Want)
			}
		}
		require.Equal(t, line.lowered, lowered, line.name)
	}
}

// TestP7WithPausesAndUnhealthyMachines: machines of sets that are paused and resumed become unhealthy and recover. Each
// order keeps the bounds. The rollout proceeds as far as it can while some are paused, and completes afterwards.
// Invariants: P3 P7
func TestP7WithPausesAndUnhealthyMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		require.GreaterOrEqual(t, c.converge(), 0)
		c.startShell()
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "who") {
			case 0:
				c.pauses()
			case 1:
				c.machineIll()
			default:
				c.randomStep()
			}
		}
		require.GreaterOrEqual(t, c.converge(), 0, "P3: never converges while paused: %s", c)
		c.resumeAll()
		require.GreaterOrEqual(t, c.converge(), 0, "P3: never converges: %s", c)
		requireComplete(t, c.world)
	})
}

// TestPausedOldSetStays: an empty old set beyond the history limit is not deleted while it is paused. If several
// machines are paused, the reason names the first by name.
func TestPausedOldSetStays(t *testing.T) {
	o := settledObservation(t, 3)
	o.Sets = append(o.Sets, another(o.Deployment, "large", 0, 0))
	o.Deployment.Spec.RevisionHistoryLimit = ptr(0)
	setPause(&o.Sets[1].Set.Meta, true)
	require.Empty(t, decide(t, o, begin).Delete)
	setPause(&o.Sets[1].Set.Meta, false)
	require.Len(t, decide(t, o, begin).Delete, 1)

	o = settledObservation(t, 3)
	o.Deployment.Spec.Replicas, o.Sets[0].Set.Spec.Replicas = 1, 1
	machines := o.Sets[0].Machines
	machines[0], machines[2] = machines[2], machines[0]
	for _, m := range machines {
		setPause(&m.Meta, true)
	}
	plan := decide(t, o, begin)
	for decisions := 0; plan.At.IsZero(); decisions++ {
		require.Less(t, decisions, mostDecisions)
		o.Deployment = o.Deployment.Clone()
		o.Deployment.Status = statusOf(t, plan)
		plan = decide(t, o, begin)
	}
	require.Contains(t, plan.Why.String(), "; 3 machines of it are paused, such as "+machines[2].Name)
}

// TestNoMoveWithPausedSets: an updated machine moves only while neither set is paused. An invalid size of a paused set
// is not repaired.
func TestNoMoveWithPausedSets(t *testing.T) {
	d := stored(2)
	d.Spec.Strategy = deployment.Strategy{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 1}}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{another(d, "large", 0, 2), ownSet(d, "web-a", 0)}}
	o.Sets[0].Set.Instructions.Handover.Closed = true
	m := o.Sets[0].Machines[0]
	m.Status.Phase, m.Spec.InPlace = machine.PhaseInPlaceUpdateSuccessful, machine.InPlaceSelected
	for _, c := range o.Sets {
		setPause(&c.Set.Meta, true)
		require.Empty(t, decide(t, o, begin).Handover, c.Set.Name)
		setPause(&c.Set.Meta, false)
	}
	require.Len(t, decide(t, o, begin).Handover, 2)

	o = settledObservation(t, 1)
	o.Sets[0].Set.Spec.Replicas = -1
	setPause(&o.Sets[0].Set.Meta, true)
	require.Empty(t, decide(t, o, begin).Scale)
	setPause(&o.Sets[0].Set.Meta, false)
	require.Equal(t, deployment.ReasonRepair, decide(t, o, begin).Why.Reason)
}

// TestCopiedPauseIsRemoved: another manager copies a deployment's annotations to its sets. A set that is paused only by
// such a copy is resumed. One with a pause annotation of its own stays paused.
func TestCopiedPauseIsRemoved(t *testing.T) {
	key := deployment.DefaultPolicy().Keys.Paused
	for said, copied := range map[string]bool{"true": true, "1": false, "": false} {
		o := settledObservation(t, 2)
		if said != "" {
			o.Deployment.Annotations = map[string]string{key: said}
		}
		o.Sets[0].Set.Annotations = map[string]string{"theirs": "stays"}
		o.Sets[0].Set.Annotations[key] = "true"
		plan := decide(t, o, begin.Add(time.Hour))
		for range 3 {
			if plan.Write == nil {
				break
			}
			o.Deployment.Status = statusOf(t, plan)
			plan = decide(t, o, begin.Add(time.Hour))
		}
		if !copied {
			require.Empty(t, plan.Push, "%s", plan.Why)
			continue
		}
		require.Len(t, plan.Push, 1)
		require.Equal(t, map[string]string{"theirs": "stays"}, plan.Push[0].Set.Annotations)
		require.Equal(t, deployment.ReasonPauseCopied, plan.Why.Reason)
	}
}

// TestFrozenGrowsNothing: from any state, a frozen deployment creates no set, and raises none except one with a
// negative size. It lowers the same sets as one that is not frozen.
// Invariants: P25
func TestFrozenGrowsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		thawed := decide(t, o, begin)
		o.Frozen = true
		frozen := decide(t, o, begin)
		require.Empty(t, frozen.Create)
		var lowered []deployment.Order
		restores := false
		for _, order := range thawed.Scale {
			if order.Why.Want < order.Why.Have {
				lowered = append(lowered, order)
			}
			restores = restores || deployment.RolloutOf(order.Why).Reason == rollout.ReasonRestored
		}
		for _, order := range frozen.Scale {
			require.Less(t, order.Why.Want, order.Why.Have)
		}
		if len(thawed.Create) == 0 && len(thawed.Scale) > 0 && !restores { // keeping machines of old sets may lower others to make room
			require.Equal(t, lowered, frozen.Scale)
		}
	})
}

// TestFrozenSaysSo: a frozen deployment reports what it waits for, and continues when it is no longer frozen.
func TestFrozenSaysSo(t *testing.T) {
	d := stored(3)
	o := &deployment.Observation{Deployment: d, Read: live, Frozen: true, Sets: []deployment.Children{ownSet(d, "web-a", 1)}}
	plan := decide(t, o, begin)
	for range 5 { // the status and the revision come first
		if update, ok := plan.Write.(*deployment.UpdateStatus); ok {
			o.Deployment = o.Deployment.Clone()
			o.Deployment.Status = update.Status
		}
		if update, ok := plan.Write.(*deployment.Update); ok {
			o.Deployment = update.Deployment
		}
		plan = decide(t, o, begin)
	}
	require.Nil(t, plan.Write)
	require.Equal(t, deployment.ReasonFrozen, plan.Why.Reason)
	require.Contains(t, plan.Why.String(), "frozen: no set is created, and none grows: ")
	o.Frozen = false
	require.Len(t, decide(t, o, begin).Scale, 1)
}
