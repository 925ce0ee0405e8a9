package fsm

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// Machines declares the states of machines: the phase, and the stages of a deletion and of an in-place update.
// Their guards get the *machine.Observation that the plan was decided from. A nil policy is the default one.
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

// deletionOf returns the stage of a deletion. It is StageGone once our finalizer is removed.
func deletionOf(m *machine.Machine) string {
	stage := m.Status.DeletionStage()
	if stage != machine.StageNone && m.Deleted() && !m.HasFinalizer(machine.Finalizer) {
		stage = machine.StageGone
	}
	return string(stage)
}

func setDeletion(m *machine.Machine, to string) {
	if machine.Stage(to) == machine.StageGone {
		m.RemoveFinalizer(machine.Finalizer)
		return
	}
	m.Status.LastOperation.Kind, m.Status.LastOperation.Stage = machine.OperationDelete, machine.Stage(to)
}

func updateOf(m *machine.Machine) string { return string(m.Status.UpdateStage()) }

func setUpdate(m *machine.Machine, to string) {
	m.Status.LastOperation.Kind, m.Status.LastOperation.Stage = machine.OperationInPlaceUpdate, machine.Stage(to)
}

// Pools declares the state of pools: the phase.
func Pools() []State[machinepool.Pool] {
	return []State[machinepool.Pool]{{
		Table: machinepool.PhaseTable(),
		Get:   func(p *machinepool.Pool) string { return string(p.Status.Phase) },
		Set:   func(p *machinepool.Pool, to string) { p.Status.Phase = machinepool.Phase(to) },
	}}
}
