package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

func init() {
	for name, run := range map[string]func(*testing.T) *scenario{
		"inplace":                        inPlaceOne,
		"inplace-two-unavailable":        inPlaceTwo,
		"inplace-surge":                  inPlaceSurge,
		"inplace-quarter":                inPlaceQuarter,
		"inplace-manual":                 inPlaceManual,
		"inplace-one-fails":              inPlaceOneFails,
		"inplace-failed-in-the-way":      inPlaceInTheWay,
		"inplace-all-fail":               inPlaceAllFail,
		"inplace-never-answers":          inPlaceNever,
		"inplace-machine-lost":           inPlaceLost,
		"inplace-scaled-down":            inPlaceScaledDown,
		"inplace-scaled-up":              inPlaceScaledUp,
		"inplace-scaled-to-zero":         inPlaceZero,
		"inplace-paused":                 inPlacePaused,
		"inplace-rolled-back":            inPlaceRolledBack,
		"inplace-reverted-at-once":       inPlaceReverted,
		"inplace-reverted-amid-update":   inPlaceRevertedAmid,
		"inplace-reverted-and-recreated": inPlaceRecreated,
		"inplace-third-template":         inPlaceThird,
		"inplace-switched-to-rolling":    inPlaceSwitched,
		"inplace-switched-from-rolling":  inPlaceSwitchedTo,
		"inplace-crash-amid-move":        inPlaceCrash,
		"inplace-deleted-amid-move":      inPlaceDeletedAmid,
		"inplace-new-set-gone-amid-move": inPlaceSetGone,
		"inplace-overdue":                inPlaceOverdue,
	} {
		scenarios[name] = run
	}
}

// begun returns a settled fleet that is to be updated in place, after the first pass.
func begun(t *testing.T, d *deployment.Deployment) *scenario {
	s := settled(t, d)
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	return s
}

func inPlaceOne(t *testing.T) *scenario {
	s := begun(t, inPlace(3, 0, 1))
	s.runRounds(10)
	return s
}

func inPlaceTwo(t *testing.T) *scenario {
	s := begun(t, inPlace(4, 0, 2))
	s.runRounds(7)
	return s
}

func inPlaceSurge(t *testing.T) *scenario {
	s := begun(t, inPlace(3, 1, 0))
	s.runRounds(10)
	return s
}

func inPlaceQuarter(t *testing.T) *scenario {
	d := inPlace(8, 0, 0)
	d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable = percent(25), percent(25)
	s := begun(t, d)
	s.runRounds(8)
	return s
}

func inPlaceManual(t *testing.T) *scenario {
	d := inPlace(3, 0, 1)
	d.Spec.Strategy.Orchestration = deployment.Manual
	s := begun(t, d)
	s.runRounds(1)
	s.comment("somebody selects two machines, more than the deployment would have")
	first, second := s.running(0), s.running(1)
	s.setRequest(first, machine.InPlaceSelected)
	s.setRequest(second, machine.InPlaceSelected)
	s.decide()
	s.runRounds(4)
	s.comment("and the last one")
	s.setRequest(s.names()[2], machine.InPlaceSelected)
	s.runRounds(5)
	return s
}

func inPlaceOneFails(t *testing.T) *scenario {
	s := settled(t, inPlace(4, 0, 2))
	s.setFate(s.running(0), fateFails)
	s.comment("another class is wanted; the first update will fail")
	s.edit(class("large"))
	s.decide()
	s.runRounds(9)
	s.comment("its health timeout ends: it is Failed, and a new machine takes its place")
	for _, m := range s.machines {
		if m.Status.Phase == machine.PhaseInPlaceUpdateFailed {
			s.setPhase(m.Name, machine.PhaseFailed)
		}
	}
	s.decide()
	s.runRounds(4)
	return s
}

func inPlaceInTheWay(t *testing.T) *scenario {
	s := settled(t, inPlace(3, 0, 1))
	s.setFate(s.running(0), fateFails)
	s.comment("another class is wanted; the first update will fail, and only one machine may be missing")
	s.edit(class("large"))
	s.decide()
	s.runRounds(4)
	s.comment("its health timeout ends: it is Failed, and a new machine takes its place; the rollout is still stopped")
	s.setPhase(s.names()[0], machine.PhaseFailed)
	s.decide()
	s.runRounds(4)
	s.comment("the deployment is paused and resumed: the rollout goes on")
	s.edit(func(s *deployment.Spec) { s.Paused = true })
	s.decide()
	s.edit(func(s *deployment.Spec) { s.Paused = false })
	s.decide()
	s.runRounds(9)
	return s
}

func inPlaceAllFail(t *testing.T) *scenario {
	s := settled(t, inPlace(2, 0, 1))
	s.setFate(s.running(0), fateFails)
	s.setFate(s.running(1), fateFails)
	s.comment("another class is wanted; no update will succeed")
	s.edit(class("large"))
	s.decide()
	s.runRounds(4)
	s.comment("the class is put back: what failed is replaced when its health timeout ends")
	s.edit(class("small"))
	s.decide()
	s.setPhase(s.names()[0], machine.PhaseFailed)
	s.runRounds(4)
	return s
}

func inPlaceNever(t *testing.T) *scenario {
	s := settled(t, inPlace(2, 0, 1))
	s.setFate(s.running(0), fateNever)
	s.comment("another class is wanted; nothing is heard of the first update")
	s.edit(class("large"))
	s.decide()
	s.runRounds(3)
	s.comment("it comes through after all")
	s.setFate(s.names()[0], fateSucceeds)
	s.runRounds(6)
	return s
}

func inPlaceLost(t *testing.T) *scenario {
	s := begun(t, inPlace(3, 0, 1))
	s.runRounds(1)
	s.comment("a machine that waits for its turn fails")
	s.setPhase(s.names()[2], machine.PhaseFailed)
	s.decide()
	s.runRounds(8)
	return s
}

func inPlaceScaledDown(t *testing.T) *scenario {
	s := begun(t, inPlace(5, 0, 2))
	s.runRounds(3)
	s.comment("three are enough, and two are being updated")
	s.edit(replicas(3))
	s.decide()
	s.runRounds(6)
	return s
}

func inPlaceScaledUp(t *testing.T) *scenario {
	s := begun(t, inPlace(3, 0, 1))
	s.runRounds(2)
	s.comment("five are wanted: new machines come")
	s.edit(replicas(5))
	s.decide()
	s.runRounds(8)
	return s
}

func inPlaceZero(t *testing.T) *scenario {
	s := begun(t, inPlace(3, 0, 1))
	s.runRounds(1)
	s.comment("none is wanted, while one is being updated")
	s.edit(replicas(0))
	s.decide()
	s.runRounds(3)
	s.comment("two are wanted: they are new")
	s.edit(replicas(2))
	s.decide()
	s.runRounds(3)
	return s
}

func inPlacePaused(t *testing.T) *scenario {
	s := begun(t, inPlace(3, 0, 1))
	s.runRounds(1)
	s.comment("paused, while one is being updated")
	s.edit(paused(true))
	s.decide()
	s.runRounds(4)
	s.comment("resumed")
	s.edit(paused(false))
	s.decide()
	s.runRounds(8)
	return s
}

func inPlaceRolledBack(t *testing.T) *scenario {
	s := begun(t, inPlace(2, 0, 1))
	s.runRounds(3)
	s.comment("back to the last revision, when one machine has been updated: it is updated again")
	s.edit(func(spec *deployment.Spec) { spec.RollbackTo = &deployment.Rollback{} })
	s.decide()
	s.runRounds(9)
	return s
}

func inPlaceReverted(t *testing.T) *scenario {
	s := begun(t, inPlace(3, 0, 1))
	s.comment("the old class is wanted again, before any update has begun")
	s.edit(class("small"))
	s.decide()
	s.runRounds(2)
	return s
}

func inPlaceRevertedAmid(t *testing.T) *scenario {
	s := begun(t, inPlace(2, 0, 1))
	s.runRounds(1)
	s.comment("the old class is wanted again, while one is being updated to the new one: it ends up there, and is updated back")
	s.edit(class("small"))
	s.decide()
	s.runRounds(9)
	return s
}

func inPlaceRecreated(t *testing.T) *scenario {
	s := begun(t, inPlace(2, 0, 1))
	s.runRounds(1)
	s.comment("the old class is wanted again, by recreating: what is being updated to the new one ends up there, and is replaced")
	s.edit(func(spec *deployment.Spec) {
		class("small")(spec)
		spec.Strategy = deployment.Strategy{Kind: deployment.Recreate}
	})
	s.decide()
	s.runRounds(6)
	return s
}

func inPlaceThird(t *testing.T) *scenario {
	s := begun(t, inPlace(2, 0, 1))
	s.runRounds(1)
	s.comment("yet another class is wanted: what is being updated goes to the set it was selected for first")
	s.edit(class("huge"))
	s.decide()
	s.runRounds(12)
	return s
}

func inPlaceSwitched(t *testing.T) *scenario {
	s := begun(t, inPlace(3, 0, 1))
	s.runRounds(2)
	s.comment("the rest is to be replaced")
	s.edit(func(spec *deployment.Spec) {
		spec.Strategy.Kind, spec.Strategy.MaxSurge = deployment.RollingUpdate, rollout.IntOrPercent{Value: 1}
	})
	s.decide()
	s.runRounds(7)
	return s
}

func inPlaceSwitchedTo(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("another class is wanted, by replacing machines")
	s.edit(class("large"))
	s.decide()
	s.runRounds(1)
	s.comment("the rest is to be updated in place")
	s.edit(strategy(deployment.InPlaceUpdate))
	s.decide()
	s.runRounds(8)
	return s
}

// halfMoved returns a rollout whose process died when the new set had grown for a machine, and the old set had not
// shrunk yet.
func halfMoved(t *testing.T) *scenario {
	s := begun(t, inPlace(2, 0, 1))
	s.runRounds(1)
	s.pass(time.Minute)
	s.runSetControllers()
	s.advanceMachines()
	s.comment("the process dies when the new set names the machine, before the old one does")
	arriving := func(set *machineset.Set) bool { return len(set.Instructions.Handover.Arriving) > 0 }
	for steps := 0; !slices.ContainsFunc(s.sets, arriving); steps++ {
		require.Less(t, steps, mostDecisions, "no machine moves")
		s.shell.step()
	}
	s.shell = newShell(t, s.world)
	s.shell.decided = s.note
	return s
}

func inPlaceCrash(t *testing.T) *scenario {
	s := halfMoved(t)
	s.comment("the sets act, as far as they can, and a new process goes on")
	s.runSetControllers()
	s.decide()
	s.runRounds(6)
	return s
}

func inPlaceDeletedAmid(t *testing.T) *scenario {
	s := halfMoved(t)
	s.comment("the machine is deleted: the new set makes another one")
	s.deleteMachine(s.names()[0])
	s.decide()
	s.runRounds(6)
	return s
}

func inPlaceSetGone(t *testing.T) *scenario {
	s := halfMoved(t)
	s.comment("the old set gives the machine up, and the process dies again")
	for steps := 0; len(s.sets[0].Instructions.Handover.Leaving) == 0; steps++ {
		require.Less(t, steps, mostDecisions)
		s.shell.step()
	}
	s.shell = newShell(t, s.world)
	s.shell.decided = s.note
	s.comment("the new set is deleted by hand: the machine stays where it is, until there is another one")
	require.NoError(t, s.deleteSet(s.sets[1].Name, s.sets[1].UID))
	s.decide()
	s.runRounds(8)
	return s
}

func inPlaceOverdue(t *testing.T) *scenario {
	d := inPlace(2, 0, 1)
	d.Spec.ProgressDeadline = 5 * time.Minute
	s := settled(t, d)
	s.setFate(s.running(0), fateNever)
	s.comment("another class is wanted; nothing is heard of the first update")
	s.edit(class("large"))
	s.decide()
	s.runRounds(2)
	s.comment("the deadline, from when the update began, passes")
	s.pass(5 * time.Minute)
	s.decide()
	return s
}
