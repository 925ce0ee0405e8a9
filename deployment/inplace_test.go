package deployment_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// inPlace returns a deployment with the strategy InPlaceUpdate.
func inPlace(replicas, surge, unavailable int32) *deployment.Deployment {
	d := web(replicas)
	d.Spec.Strategy = deployment.Strategy{
		Kind: deployment.InPlaceUpdate, MaxSurge: rollout.IntOrPercent{Value: surge}, MaxUnavailable: rollout.IntOrPercent{Value: unavailable},
	}
	return d
}

// rollsInPlace changes a stored deployment so that it updates machines in place, in a rollout of revision 2 that has
// begun.
func rollsInPlace(d *deployment.Deployment, replicas, surge, unavailable int32) {
	d.Spec.Strategy = inPlace(replicas, surge, unavailable).Spec.Strategy
	d.Status.RolloutFailures.Revision = 2
}

// TestInPlaceKeepsMachines: without failures and without a surge, the machines at the end are those of the beginning,
// whatever the order of events, crashes and changes of the template.
// Invariants: P10
func TestInPlaceKeepsMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		c.edit(func(s *deployment.Spec) {
			s.Strategy.Kind, s.Strategy.MaxSurge = deployment.InPlaceUpdate, rollout.IntOrPercent{}
		})
		require.GreaterOrEqual(t, c.converge(), 0)
		c.startShell()
		before := c.names()
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 20).Draw(t, "crash") == 0 {
				c.crash()
			}
			c.randomStep()
			require.Equal(t, before, c.names(), "%s", c.ownersOfMachines())
		}
		require.GreaterOrEqual(t, c.converge(), 0)
		require.Equal(t, before, c.names(), "%s", c.ownersOfMachines())
		requireComplete(t, c.world)
	})
}

// names returns the existing machines, by name.
func (w *world) names() []string {
	names := make([]string, 0, len(w.machines))
	for _, m := range w.machines {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

// requireTidy requires that no requests, targets or handovers are left after a rollout in place.
func requireTidy(t require.TestingT, w *world) {
	for _, s := range w.sets {
		require.Empty(t, s.Instructions.Handover.Arriving, "%s", w.ownersOfMachines())
		require.Empty(t, s.Instructions.Handover.Leaving, "%s", w.ownersOfMachines())
	}
	for _, m := range w.machines {
		require.Empty(t, m.Spec.InPlace, "%s", w.ownersOfMachines())
		require.NotContains(t, m.Annotations, deployment.DefaultPolicy().Keys.InPlaceTarget)
	}
}

// TestInPlaceInterrupted: a rollout in place is interrupted after each of its steps, by a crash or by a user's action,
// and still completes. No machine is in two sets, none is counted twice, and there are R machines.
// Invariants: P3 P5 P10
func TestInPlaceInterrupted(t *testing.T) {
	for name, meddle := range map[string]func(*interrupted){
		"crash":            func(*interrupted) {},
		"machine deleted":  func(i *interrupted) { i.deleteMachine(i.onTheWay()) },
		"machine gone":     func(i *interrupted) { i.dropMachine(i.onTheWay()) },
		"old set deleted":  func(i *interrupted) { i.deleteNth(0) },
		"new set deleted":  func(i *interrupted) { i.deleteNth(1) },
		"template returns": func(i *interrupted) { i.edit(class("small")) },
		"third template":   func(i *interrupted) { i.edit(class("huge")) },
		"scaled to 1":      func(i *interrupted) { i.edit(replicas(1)) },
		"scaled to 0":      func(i *interrupted) { i.edit(replicas(0)) },
		"scaled to 5":      func(i *interrupted) { i.edit(replicas(5)) },
		"rolled otherwise": func(i *interrupted) { i.edit(strategy(deployment.RollingUpdate)) },
		"recreated":        func(i *interrupted) { i.edit(strategy(deployment.Recreate)) },
	} {
		t.Run(name, func(t *testing.T) {
			longest := 0
			for at := 0; ; at++ {
				require.Less(t, at, mostDecisions, "the rollout does not end")
				i := interrupt(t, at)
				if i.over {
					require.Greater(t, at, 20, "a rollout has more steps than that")
					require.Greater(t, longest, 1, "no interruption was during a move")
					return
				}
				longest += i.moving
				meddle(i)
				i.shell = newShell(t, i.world)
				i.settleDown(t)
				requireComplete(t, i.world)
				requireTidy(t, i.world)
			}
		})
	}
}

func strategy(kind deployment.StrategyKind) func(*deployment.Spec) {
	return func(s *deployment.Spec) { s.Strategy.Kind = kind }
}

// interrupted is a rollout that was interrupted.
type interrupted struct {
	*world
	shell  *shell
	over   bool // it was complete before
	moving int  // how many machines were moving when it was interrupted
}

// interrupt interrupts a rollout of three machines after at steps of the shell.
func interrupt(t *testing.T, at int) *interrupted {
	s := newScenario(t, inPlace(3, 0, 2))
	s.settle()
	s.edit(class("large"))
	i := &interrupted{world: s.world, shell: newShell(t, s.world)}
	for n := 0; n < at; {
		before := i.number
		for ended := false; !ended && n < at; n++ {
			ended = i.shell.step()
		}
		if n == at {
			break
		}
		i.runSetControllers()
		i.advanceMachines()
		i.now = i.now.Add(time.Second)
		if i.number == before && deployment.RolloutOf(i.shell.last.Why).Reason == rollout.ReasonDone {
			i.over = true
			return i
		}
	}
	for _, set := range i.sets {
		i.moving += len(set.Instructions.Handover.Arriving)
	}
	return i
}

// onTheWay returns a machine that is moving or, if none is, one that is being updated, or else any machine.
func (i *interrupted) onTheWay() string {
	for _, set := range i.sets {
		for _, name := range set.Instructions.Handover.Arriving {
			if slices.ContainsFunc(i.machines, func(m *machine.Machine) bool { return m.Name == name }) {
				return name
			}
		}
	}
	for _, m := range i.machines {
		if m.Spec.InPlace == machine.InPlaceSelected {
			return m.Name
		}
	}
	return i.machines[0].Name
}

func (i *interrupted) deleteNth(n int) {
	if n < len(i.sets) {
		_ = i.deleteSet(i.sets[n].Name, i.sets[n].UID)
	}
}

// settleDown lets each actor act until nothing changes, and checks the ceiling and that each
// machine is in one set.
func (i *interrupted) settleDown(t *testing.T) {
	most, _, _ := i.sums()
	for quiet := 0; quiet < 3; {
		before := i.number
		i.shell.pass()
		i.runSetControllers()
		i.advanceMachines()
		i.now = i.now.Add(10 * time.Second)
		ceiling, _ := limitsOf(&i.deployment.Spec)
		total, _, _ := i.sums()
		require.LessOrEqual(t, total, max(most, ceiling), "P7: %s\n%s", i, i.ownersOfMachines())
		if quiet++; i.number != before {
			quiet = 0
		}
		require.Less(t, i.number, 5000, "never converges: %s\n%s", i, i.ownersOfMachines())
	}
}

// TestMoveGivesWholeTemplate: a moved machine gets all fields of its new set's template. It keeps its identity, and the
// labels and annotations that others have put on it.
func TestMoveGivesWholeTemplate(t *testing.T) {
	s := newScenario(t, inPlace(2, 0, 1))
	s.edit(func(s *deployment.Spec) {
		s.Template.Annotations = map[string]string{"plan": "small", "kept": "always", "tuned": "1"}
	})
	s.settle()
	name := s.running(0)
	s.changeMachine(name, func(m *machine.Machine) {
		m.Labels, m.Annotations = maps.Clone(m.Labels), maps.Clone(m.Annotations)
		m.Labels["theirs"], m.Annotations["theirs"], m.Annotations["tuned"] = "1", "2", "9"
		m.Spec.ProviderID, m.Spec.NodeName = "vm-7", "node-7"
	})
	before := s.machine(name)
	s.edit(func(s *deployment.Spec) {
		s.Template.Spec.Class.Name, s.Template.Spec.NodeTemplate.Labels = "large", map[string]string{"pool": "b"}
		s.Template.Spec.Config.DrainTimeout = time.Hour
		s.Template.Annotations = map[string]string{"version": "2", "kept": "always"}
	})
	s.settle()
	m, set := s.machine(name), s.sets[1]
	require.Equal(t, before.UID, m.UID)
	require.True(t, m.OwnedBy(set.UID))
	require.Equal(t, set.Name, m.Owner.Name)
	require.Equal(t, machineset.OwnerKind, m.Owner.Kind)
	require.True(t, set.Spec.Selector.Matches(m.Labels))
	require.Equal(t, map[string]string{
		"app": "web", "machine-template-hash": set.Labels["machine-template-hash"], "theirs": "1",
	}, m.Labels)
	require.Equal(t, map[string]string{"version": "2", "kept": "always", "theirs": "2", "tuned": "9"}, m.Annotations)
	want := set.Spec.Template.Spec.Clone()
	want.ProviderID, want.NodeName = "vm-7", "node-7"
	require.Equal(t, want, m.Spec)
	require.Equal(t, machine.PhaseRunning, m.Status.Phase)
}

// TestMoveDropsLabelsThatPreventAMatch: a moved machine loses a label of others that the new set's selector forbids,
// because the set would release the machine.
func TestMoveDropsLabelsThatPreventAMatch(t *testing.T) {
	s := newScenario(t, inPlace(1, 0, 1))
	s.settle()
	name := s.running(0)
	s.changeMachine(name, func(m *machine.Machine) {
		m.Labels = maps.Clone(m.Labels)
		m.Labels["banned"] = "yes"
	})
	s.edit(class("large"))
	s.shell.pass()
	s.changeSet(s.sets[1].Name, func(set *machineset.Set) {
		set.Spec.Selector.Requirements = []object.Requirement{{Key: "banned", Operator: object.DoesNotExist}}
	})
	s.settle()
	require.Equal(t, s.sets[1].Spec.Template.Labels, s.machine(name).Labels)
	require.True(t, s.machine(name).OwnedBy(s.sets[1].UID))
}

// TestManyMachinesInPlace: there are more machines than one plan may change.
func TestManyMachinesInPlace(t *testing.T) {
	s := newScenario(t, inPlace(250, 0, 230))
	s.settle()
	names := s.names()
	s.edit(class("large"))
	largest := 0
	s.shell.decided = func(_ *deployment.Observation, p deployment.Plan) {
		largest = max(largest, len(p.Mark), len(p.Move))
	}
	s.settle()
	require.Equal(t, names, s.names())
	require.Equal(t, 100, largest, "the most machines in one plan")
	requireComplete(t, s.world)
	requireTidy(t, s.world)
}

// TestSelectionIsByAge: the oldest machines are selected first, and by name if they are of the same age, whatever the
// order of the list.
func TestSelectionIsByAge(t *testing.T) {
	d := stored(5)
	rollsInPlace(d, 5, 0, 2)
	old := another(d, "large", 1, 5)
	old.Set.Instructions.Handover.Closed = true
	for i, m := range old.Machines {
		m.Name, m.UID = fmt.Sprintf("m-%d", i), fmt.Sprintf("m-%d", i)
		m.CreatedAt = begin.Add(time.Duration([]int{4, 2, 0, 2, 9}[i]) * time.Hour)
		m.Spec.InPlace = machine.InPlaceWaiting
	}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
	plan := decide(t, o, begin.Add(100*time.Hour))
	require.Len(t, plan.Mark, 2, "%s", plan.Why)
	require.Equal(t, "m-2", plan.Mark[0].Machine.Name)
	require.Equal(t, "m-1", plan.Mark[1].Machine.Name)
	require.Equal(t, "web-a", plan.Mark[0].Machine.Annotations[deployment.DefaultPolicy().Keys.InPlaceTarget])
}

// TestP7NoSelectionWhileASetMayBeReplacing: a set that was allowed to replace machines on request may be deleting one,
// until it has observed that the allowance was revoked. Until then no machine is selected (P7).
// Invariants: P7
func TestP7NoSelectionWhileASetMayBeReplacing(t *testing.T) {
	selected := func(change func(old *deployment.Children)) int {
		d := stored(3)
		rollsInPlace(d, 3, 0, 1)
		old := another(d, "large", 1, 3)
		old.Set.Instructions.Handover.Closed, old.Set.Generation, old.Set.Status.ObservedGeneration = true, 2, 1
		old.Machines[2].Annotations = map[string]string{deployment.DefaultPolicy().Keys.Replace: "true"}
		change(&old)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
		n := 0
		for _, order := range decide(t, o, begin.Add(100*time.Hour)).Mark {
			if order.Machine.Spec.InPlace == machine.InPlaceSelected {
				n++
			}
		}
		return n
	}
	require.Equal(t, 0, selected(func(*deployment.Children) {}))
	require.Equal(t, 0, selected(func(old *deployment.Children) {
		old.Set.Status.ObservedGeneration, old.Set.Instructions.SurgeAllowance = 2, machineset.SurgeAllowance{Unavailable: 1}
	}))
	require.Equal(t, 1, selected(func(old *deployment.Children) { old.Set.Status.ObservedGeneration = 2 }))
	require.Equal(t, 1, selected(func(old *deployment.Children) { old.Machines[2].Annotations = nil }), "without a request the set replaces none")
}

// TestMachinesWithoutNodesAreNotSelected: machines without a node are not selected, because no agent could update them.
// The reason of the wait says so.
func TestMachinesWithoutNodesAreNotSelected(t *testing.T) {
	s := newScenario(t, inPlace(2, 0, 1))
	s.settle()
	for _, name := range s.names() {
		s.setPhase(name, machine.PhaseAvailable)
	}
	s.edit(class("large"))
	s.runRounds(3)
	for _, m := range s.machines {
		require.Equal(t, machine.InPlaceWaiting, m.Spec.InPlace)
	}
	require.Equal(t, rollout.ReasonUnfit, deployment.RolloutOf(s.shell.last.Why).Reason, "%s", s.shell.last.Why)
}

// TestFailedKeepsItsRequest: a machine whose update failed may have the old template or the new one. So when the old
// template is wanted again, the machine keeps its request, and is replaced after its health timeout.
func TestFailedKeepsItsRequest(t *testing.T) {
	s := newScenario(t, inPlace(3, 0, 3))
	s.settle()
	name := s.running(0)
	s.setFate(name, fateFails)
	s.edit(class("large"))
	s.runRounds(3)
	require.Equal(t, machine.PhaseInPlaceUpdateFailed, s.machine(name).Status.Phase)
	s.edit(class("small"))
	s.runRounds(4)
	require.Equal(t, machine.InPlaceSelected, s.machine(name).Spec.InPlace, "%s", s.ownersOfMachines())
	s.setPhase(name, machine.PhaseFailed)
	s.settle()
	require.NotContains(t, s.names(), name)
	requireComplete(t, s.world)
	requireTidy(t, s.world)
}

// TestNoMoveWhileSetsHaveSurplus: no machine moves from or to a set that still has to delete machines, because its
// controller may act on its earlier size.
func TestNoMoveWhileSetsHaveSurplus(t *testing.T) {
	for name, sizes := range map[string]struct {
		old, current int32 // of two machines each
		moves        bool
		kind         deployment.StrategyKind // empty: in place
	}{
		"nothing to remove":            {old: 2, current: 2, moves: true},
		"more to come":                 {old: 3, current: 2, moves: true},
		"the old set has yet to":       {old: 1, current: 2},
		"the new set has yet to":       {old: 2, current: 1},
		"the new set has all it wants": {old: 2, current: 5},
		"sizes that mean nothing":      {old: -1, current: -1},
		"rolled now":                   {old: 2, current: 2, moves: true, kind: deployment.RollingUpdate},
		"recreated now":                {old: 2, current: 2, kind: deployment.Recreate},
	} {
		t.Run(name, func(t *testing.T) {
			d := stored(5)
			rollsInPlace(d, 5, 0, 1)
			if sizes.kind != "" {
				d.Spec.Strategy.Kind = sizes.kind
			}
			old, current := another(d, "large", 1, 2), ownSet(d, "web-a", 2)
			current.Set.Revision, old.Set.Instructions.Handover.Closed = 2, sizes.kind == ""
			old.Set.Spec.Replicas, current.Set.Spec.Replicas = sizes.old, sizes.current
			m := old.Machines[1]
			m.Spec.InPlace, m.Status.Phase = machine.InPlaceSelected, machine.PhaseInPlaceUpdateSuccessful
			plan := decide(t, &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, current}}, begin)
			if !sizes.moves {
				require.Empty(t, plan.Handover, "%s", plan.Why)
				return
			}
			require.Len(t, plan.Handover, 2, "%s", plan.Why)
			require.Equal(t, []string{m.Name}, plan.Handover[0].Set.Instructions.Handover.Arriving)
			require.Equal(t, sizes.current+1, plan.Handover[0].Set.Spec.Replicas)
			require.Equal(t, []string{m.Name}, plan.Handover[1].Set.Instructions.Handover.Leaving)
			require.Equal(t, sizes.old-1, plan.Handover[1].Set.Spec.Replicas)
		})
	}
}

// TestTheFirstSetThatNamesAMachineGetsIt: if several sets name a machine as arriving, it moves to the first one,
// and the names of the others are removed.
func TestTheFirstSetThatNamesAMachineGetsIt(t *testing.T) {
	s := newScenario(t, inPlace(2, 0, 1))
	s.settle()
	s.edit(class("large"))
	s.shell.pass()
	s.edit(class("huge"))
	s.shell.pass()
	name := s.names()[1]
	for _, set := range slices.Clone(s.sets[1:]) {
		s.changeSet(set.Name, func(set *machineset.Set) { set.Instructions.Handover.Arriving, set.Spec.Replicas = []string{name}, 1 })
	}
	moved := 0
	s.shell.decided = func(_ *deployment.Observation, p deployment.Plan) { moved += len(p.Move) }
	s.shell.pass()
	require.Equal(t, 1, moved)
	require.True(t, s.machine(name).OwnedBy(s.sets[1].UID), "%s", s.ownersOfMachines())
	for _, set := range s.sets {
		require.Empty(t, set.Instructions.Handover.Arriving, "%s", s.ownersOfMachines())
	}
}

// TestPruneWaitsForUpdates: an empty old set to whose template a machine is being updated is not deleted before the
// update is over, even with a history limit of 0.
func TestPruneWaitsForUpdates(t *testing.T) {
	d := inPlace(2, 0, 1)
	d.Spec.RevisionHistoryLimit = new(int32)
	s := newScenario(t, d)
	s.settle()
	s.setFate(s.running(0), fateNever)
	s.edit(class("large"))
	s.runRounds(2)
	s.edit(class("small"))
	s.edit(paused(true))
	s.runRounds(3)
	require.Len(t, s.sets, 2, "%s", s.ownersOfMachines())
	s.setFate(s.running(0), fateSucceeds)
	s.edit(paused(false))
	s.settle()
	require.Len(t, s.sets, 1)
	requireComplete(t, s.world)
}

// TestInvalidHandoversAreCleared: names of machines that do not exist, that are in this set already, or that two sets
// name, block nothing.
func TestInvalidHandoversAreCleared(t *testing.T) {
	s := newScenario(t, inPlace(3, 0, 1))
	s.settle()
	s.edit(class("large"))
	s.shell.pass()
	name := s.running(0)
	for _, set := range slices.Clone(s.sets) {
		s.changeSet(set.Name, func(set *machineset.Set) {
			set.Instructions.Handover.Arriving = []string{"nobody", "", name, name}
			set.Instructions.Handover.Leaving = []string{name, "nobody"}
		})
	}
	s.settle()
	requireComplete(t, s.world)
	requireTidy(t, s.world)
}

// TestMachineDeletedDuringMoveCountsOnce: the process dies when the new set has grown for a machine and the old one has
// not shrunk yet, and the machine is deleted. There are never more machines than allowed, whatever the wanted size.
// Invariants: P7 P10
func TestMachineDeletedDuringMoveCountsOnce(t *testing.T) {
	for name, change := range map[string]func(*deployment.Spec){
		"goes on":  func(*deployment.Spec) {},
		"paused":   func(s *deployment.Spec) { s.Paused = true },
		"reverted": class("small"),
		"rolled":   strategy(deployment.RollingUpdate),
	} {
		for _, gone := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := halfMoved(t)
				for _, set := range s.sets {
					for _, m := range set.Instructions.Handover.Arriving {
						s.deleteMachine(m)
					}
				}
				if gone {
					s.advanceMachines()
				}
				s.edit(change)
				for range 20 {
					s.pass(10 * time.Second)
					for ended := false; !ended; {
						ended = s.shell.step() // fails if the pass does not end
						s.runSetControllers()  // the sets act between any two steps
						requireAtMost(t, s, 2)
					}
					s.advanceMachines()
				}
				sizes := int32(0)
				for _, set := range s.sets {
					sizes += set.Spec.Replicas
				}
				require.EqualValues(t, 2, sizes, s.ownersOfMachines())
			})
		}
	}
}

// requireAtMost requires no more than n machines that are not being deleted.
func requireAtMost(t *testing.T, s *scenario, n int) {
	t.Helper()
	alive := 0
	for _, m := range s.machines {
		if !m.Deleted() {
			alive++
		}
	}
	require.LessOrEqual(t, alive, n, s.ownersOfMachines())
}

// TestUpdatesBegunElsewhereAreMarked: if a machine of an old set is being updated without a request, another
// program has selected it. It becomes a candidate, and its update is to the new set. A machine that has been
// updated and has no request stays in its set.
func TestUpdatesBegunElsewhereAreMarked(t *testing.T) {
	d := stored(3)
	rollsInPlace(d, 3, 0, 1)
	old := another(d, "large", 1, 3)
	old.Set.Instructions.Handover.Closed = true
	for i, phase := range []machine.Phase{machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateFailed, machine.PhaseInPlaceUpdateSuccessful} {
		old.Machines[i].Status.Phase = phase
	}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
	marked := map[string]machine.InPlaceRequest{}
	for _, order := range decide(t, o, begin.Add(100*time.Hour)).Mark {
		marked[order.Machine.Name] = order.Machine.Spec.InPlace
	}
	want := map[string]machine.InPlaceRequest{old.Machines[0].Name: machine.InPlaceWaiting, old.Machines[1].Name: machine.InPlaceWaiting}
	require.Equal(t, want, marked)

	old.Machines[0].Spec.InPlace, old.Machines[1].Spec.InPlace = machine.InPlaceWaiting, machine.InPlaceWaiting
	mark := decide(t, o, begin.Add(100*time.Hour)).Mark
	require.Len(t, mark, 1)
	require.Equal(t, "web-a", mark[0].Machine.Annotations[deployment.DefaultPolicy().Keys.InPlaceTarget])
}

// TestUpdatesBegunElsewhereCount: while the node of a candidate says that its update has begun, no other machine is
// selected, although the machine's own phase is still Running. Its update is to the new set.
// Invariants: P7
func TestUpdatesBegunElsewhereCount(t *testing.T) {
	for reason, counts := range map[string]bool{
		machine.ReasonSelectedForUpdate: true, machine.ReasonDrainSuccessful: true, machine.ReasonReadyForUpdate: true,
		machine.ReasonCandidateForUpdate: false, machine.ReasonUpdateSuccessful: false,
	} {
		d := stored(3)
		rollsInPlace(d, 3, 0, 1)
		d.Status.RolloutFailures.Revision = 4
		old := another(d, "large", 3, 3)
		old.Set.Instructions.Handover.Closed = true
		for _, m := range old.Machines {
			m.Spec.InPlace = machine.InPlaceWaiting
		}
		begun := old.Machines[2]
		begun.Status.Conditions = object.SetCondition(begun.Status.Conditions, object.Condition{
			Type: machine.NodeInPlaceUpdate, Status: object.True, Reason: reason,
		})
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
		marked := map[string]machine.InPlaceRequest{}
		for _, order := range decide(t, o, begin.Add(100*time.Hour)).Mark {
			marked[order.Machine.Name] = order.Machine.Spec.InPlace
			require.Equal(t, "web-a", order.Machine.Annotations[deployment.DefaultPolicy().Keys.InPlaceTarget])
		}
		want := map[string]machine.InPlaceRequest{old.Machines[0].Name: machine.InPlaceSelected}
		if counts {
			want = map[string]machine.InPlaceRequest{begun.Name: machine.InPlaceWaiting}
		}
		require.Equal(t, want, marked, reason)
	}
}

// TestP10NegativeSizeDuringAMove: a user makes a set's size negative while a machine is moving. The set keeps its
// machines, without one that leaves and with one that stays after all.
// Invariants: P10
func TestP10NegativeSizeDuringAMove(t *testing.T) {
	for name, c := range map[string]struct {
		note   func(old, current deployment.Children)
		reason decision.Reason
		size   int32
	}{
		"a machine leaves": {func(old, current deployment.Children) {
			current.Set.Instructions.Handover.Arriving = []string{old.Machines[0].Name}
		}, deployment.ReasonMoveFrom, 2},
		"a machine has nowhere to go": {func(old, _ deployment.Children) {
			old.Set.Instructions.Handover.Leaving = []string{old.Machines[0].Name}
		}, deployment.ReasonMoveBack, 3},
		"a machine has left": {func(old, _ deployment.Children) {
			old.Set.Instructions.Handover.Leaving = []string{"moved"}
		}, deployment.ReasonMoveDone, 3},
		"a machine has arrived": {func(old, _ deployment.Children) {
			old.Set.Instructions.Handover.Arriving = []string{old.Machines[0].Name}
		}, deployment.ReasonMoveDone, 3},
		"a machine died on its way": {func(old, _ deployment.Children) {
			old.Set.Instructions.Handover.Arriving = []string{"dead"}
		}, deployment.ReasonMoveOff, 3},
	} {
		d := stored(4)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{another(d, "large", 0, 3), ownSet(d, "web-a", 1)}}
		o.Sets[0].Set.Spec.Replicas = -2
		c.note(o.Sets[0], o.Sets[1])
		plan := decide(t, o, begin)
		require.Len(t, plan.Handover, 1, name)
		require.Equal(t, c.reason, plan.Handover[0].Why.Reason, name)
		require.Equal(t, c.size, plan.Handover[0].Set.Spec.Replicas, "%s: %s", name, plan.Handover[0].Why)
	}
}
