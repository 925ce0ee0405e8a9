package fsm

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// Machines are the states of machines: the phase, and the stages of a deletion and of an in-place update.
// What their guards look at is the *machine.Observation that a plan was decided from, and its policy; nil
// is the default one.
func Machines(p *machine.Policy) []State[machine.Machine] {
	states := []State[machine.Machine]{
		{Table: machine.PhaseTable(), Get: phaseOf, Set: setPhase},
		{Table: machine.DeletionTable(), Get: deletionOf, Set: setDeletion},
		{Table: machine.UpdateTable(), Get: updateOf, Set: setUpdate},
	}
	for i, state := range states {
		states[i].Guard = func(e machine.Edge) Guard { return guardOf(state.Table.Name, e, p) }
	}
	return states
}

func guardOf(table string, e machine.Edge, p *machine.Policy) Guard {
	guard := machine.GuardOf(table, e)
	if guard == nil {
		return nil
	}
	return func(seen any) decision.Why {
		o, ok := seen.(*machine.Observation)
		if !ok || o == nil || o.Machine == nil {
			return decision.Why{Reason: reasonUnseen}
		}
		return guard(o, p)
	}
}

func phaseOf(m *machine.Machine) string { return string(m.Status.Phase) }

func setPhase(m *machine.Machine, to string) { m.Status.Phase = machine.Phase(to) }

// deletionOf is the stage of a deletion that was begun. It is over when our finalizer is gone.
func deletionOf(m *machine.Machine) string {
	op := &m.Status.LastOperation
	switch {
	case m.Status.Phase != machine.PhaseTerminating || op.Kind != machine.OperationDelete:
		return string(machine.StageNone)
	case m.Deleted() && !m.HasFinalizer(machine.Finalizer):
		return string(machine.StageGone)
	}
	return machine.DeletionTable().State(string(op.Stage))
}

func setDeletion(m *machine.Machine, to string) {
	if machine.Stage(to) == machine.StageGone {
		m.RemoveFinalizer(machine.Finalizer)
		return
	}
	m.Status.LastOperation.Kind, m.Status.LastOperation.Stage = machine.OperationDelete, machine.Stage(to)
}

// updateOf is the stage of an in-place update: what is stored of it while the phase is of one, and what
// the phase says where that makes no sense with it. A machine in any other phase is a candidate.
func updateOf(m *machine.Machine) string {
	op := &m.Status.LastOperation
	stage := op.Stage
	if op.Kind != machine.OperationInPlaceUpdate {
		stage = machine.StageNone
	}
	switch m.Status.Phase {
	case machine.PhaseInPlaceUpdating:
		if stage != machine.StageSelected && stage != machine.StageReady {
			return machine.Unrecognized
		}
		return string(stage)
	case machine.PhaseInPlaceUpdateSuccessful:
		return string(machine.StageUpdateSuccessful)
	case machine.PhaseInPlaceUpdateFailed:
		if stage != machine.StageCandidate {
			return string(machine.StageUpdateFailed)
		}
	case machine.PhaseNew, machine.PhasePending, machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown,
		machine.PhaseFailed, machine.PhaseCrashLoopBackOff, machine.PhaseTerminating:
	}
	return string(machine.StageCandidate)
}

func setUpdate(m *machine.Machine, to string) {
	m.Status.LastOperation.Kind, m.Status.LastOperation.Stage = machine.OperationInPlaceUpdate, machine.Stage(to)
}

// Pools are the states of pools: the phase.
func Pools() []State[machinepool.Pool] {
	return []State[machinepool.Pool]{{
		Table: machinepool.PhaseTable(),
		Get:   func(p *machinepool.Pool) string { return string(p.Status.Phase) },
		Set:   func(p *machinepool.Pool, to string) { p.Status.Phase = machinepool.Phase(to) },
	}}
}
