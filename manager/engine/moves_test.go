package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// machinesOf returns the machines of a store, with or without their states.
func machinesOf(t testing.TB, e *engine.Engine, c store.Collection[*machine.Machine]) *engine.Objects[*machine.Machine] {
	states, err := fsm.New(fsm.Machines(nil)...)
	require.NoError(t, err)
	return engine.NewObjects(e, "machine", c, states)
}

// storedMachine stores a machine with a status.
func storedMachine(t require.TestingT, c store.Collection[*machine.Machine], s machine.Status) *machine.Machine {
	ctx := context.Background()
	m, err := c.Create(ctx, &machine.Machine{Meta: object.Meta{Key: key, Finalizers: []string{machine.Finalizer}}})
	require.NoError(t, err)
	m = m.Clone()
	m.Status = s
	m, err = c.UpdateStatus(ctx, m)
	require.NoError(t, err)
	return m
}

var (
	anyPhase = rapid.SampledFrom([]machine.Phase{
		machine.PhaseNew, machine.PhasePending, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseFailed, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateFailed, machine.PhaseInPlaceUpdateSuccessful, "Dancing", "Singing",
	})
	anyKind = rapid.SampledFrom([]machine.OperationKind{
		"", machine.OperationCreate, machine.OperationHealthCheck, machine.OperationDelete, machine.OperationInPlaceUpdate,
	})
	anyStage = rapid.SampledFrom([]machine.Stage{
		machine.StageNone, machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageSelected, machine.StageReady, machine.StageCandidate, "Meditating",
	})
)

func anyStatus(t *rapid.T) machine.Status {
	return machine.Status{
		Phase:         anyPhase.Draw(t, "phase"),
		LastOperation: machine.Operation{Kind: anyKind.Draw(t, "kind"), Stage: anyStage.Draw(t, "stage")},
	}
}

// statesOf returns the states of a status, by the names of the tables.
func statesOf(s *machine.Status) map[string]string {
	return map[string]string{
		"phase": string(s.Phase), "deletion": string(s.DeletionStage()), "update": string(s.UpdateStage()),
	}
}

// explained is the oracle: it reports whether the moves lead from one status to the other, by the tables. A stage
// also ends with the phase that has it. Guards refuse their moves, because nothing was seen.
func explained(from, to *machine.Status, moves []decision.Move) bool {
	tables := map[string]*machine.Table{
		"phase": machine.PhaseTable(), "deletion": machine.DeletionTable(), "update": machine.UpdateTable(),
	}
	at, moved := statesOf(from), map[string]bool{}
	for _, m := range moves {
		edge := machine.Edge{From: m.From, On: m.On, To: m.To}
		next, leads := tables[m.Table].Next(m.From, m.On)
		if tables[m.Table].State(at[m.Table]) != m.From || !leads || next != m.To || machine.GuardOf(m.Table, edge) != nil {
			return false
		}
		at[m.Table], moved[m.Table] = m.To, true
	}
	led := *from
	led.Phase = machine.Phase(at["phase"])
	if moved["deletion"] && moved["update"] {
		return false // the operation is either a deletion or an update
	}
	for table, kind := range map[string]machine.OperationKind{"deletion": machine.OperationDelete, "update": machine.OperationInPlaceUpdate} {
		if moved[table] {
			led.LastOperation.Kind, led.LastOperation.Stage = kind, machine.Stage(at[table])
			now, over := statesOf(&led)[table], at[table] == string(machine.StageInService)
			if now != at[table] && !(over && now == string(machine.StageCandidate)) {
				return false // the phase has no such stage
			}
		}
	}
	want, have := statesOf(&led), statesOf(to)
	return want["phase"] == have["phase"] && want["deletion"] == have["deletion"] && want["update"] == have["update"]
}

// TestP44NoStageIsStoredWithoutAMove: a write changes a machine from any status to any other, with any moves. It
// is stored if and only if the moves lead there. Otherwise nothing is stored, and no hook is called.
// Invariants: P44
func TestP44NoStageIsStoredWithoutAMove(t *testing.T) {
	counts := map[bool]int{}
	reported := 0
	e := engine.New(engine.Options{Hooks: engine.Hooks{
		Transition: func(string, object.Key, decision.Move, decision.Why) { reported++ },
	}})
	all := slices.Concat(edgesOf(machine.PhaseTable()), edgesOf(machine.DeletionTable()), edgesOf(machine.UpdateTable()))
	written := func(rt require.TestingT, stored *store.Memory[*machine.Machine], before, after *machine.Machine, moves ...decision.Move) {
		reported = 0
		want := after.Status
		_, err := machinesOf(t, e, stored).Write(context.Background(), &engine.Write[*machine.Machine]{
			Before: before, After: after, Status: true, Moves: moves,
		})
		now, missing := stored.Get(context.Background(), key)
		require.NoError(rt, missing)
		legal := explained(&before.Status, &want, moves)
		counts[legal && len(moves) > 0]++
		if legal {
			require.NoError(rt, err)
			require.Equal(rt, want, now.Status)
			require.Equal(rt, len(moves), reported)
			return
		}
		require.ErrorIs(rt, err, engine.ErrUnexplained)
		require.ErrorIs(rt, err, fsm.ErrIllegal)
		require.Equal(rt, before, now)
		require.Zero(rt, reported)
	}
	rapid.Check(t, func(rt *rapid.T) {
		stored := store.NewMemory[*machine.Machine](nil, nil)
		before := storedMachine(rt, stored, anyStatus(rt))
		after := before.Clone()
		if rapid.Bool().Draw(rt, "changed") {
			after.Status = anyStatus(rt)
		}
		var moves []decision.Move
		for range rapid.IntRange(0, 2).Draw(rt, "moves") {
			at := statesOf(&after.Status)
			possible := slices.DeleteFunc(slices.Clone(all), func(m decision.Move) bool { return m.From != at[m.Table] })
			if len(possible) == 0 || rapid.IntRange(0, 5).Draw(rt, "odd") == 0 {
				possible = all
			}
			m := rapid.SampledFrom(possible).Draw(rt, "move")
			moves = append(moves, m)
			enter(&after.Status, m.Table, m.To)
		}
		written(rt, stored, before, after, moves...)
	})
	for _, m := range all { // each edge, because random moves may include no legal one
		stored := store.NewMemory[*machine.Machine](nil, nil)
		status := machine.Status{Phase: machine.PhaseTerminating}
		enter(&status, m.Table, m.From)
		before := storedMachine(t, stored, status)
		after := before.Clone()
		enter(&after.Status, m.Table, m.To)
		written(t, stored, before, after, m)
	}
	require.NotZero(t, counts[true])
	require.NotZero(t, counts[false])
}

// enter sets a status to a state of one of the tables.
func enter(status *machine.Status, table, state string) {
	switch table {
	case "phase":
		status.Phase = machine.Phase(state)
	case "deletion":
		status.LastOperation.Kind, status.LastOperation.Stage = machine.OperationDelete, machine.Stage(state)
	case "update":
		status.LastOperation.Kind, status.LastOperation.Stage = machine.OperationInPlaceUpdate, machine.Stage(state)
	}
}

func edgesOf(t *machine.Table) []decision.Move {
	var moves []decision.Move
	for _, e := range t.Transitions() {
		moves = append(moves, decision.Move{Table: t.Name, From: e.From, On: e.On, To: e.To})
	}
	return moves
}

// BenchmarkWrite measures what firing adds to a write of a status: at most 5 µs.
func BenchmarkWrite(b *testing.B) {
	ctx, e := context.Background(), engine.New(engine.Options{})
	moves := []decision.Move{
		{Table: "phase", From: "Running", On: "delete", To: "Terminating"}, {Table: "deletion", On: "delete", To: "GetVMStatus"},
	}
	for name, states := range map[string]bool{"store": false, "fired": true} {
		b.Run(name, func(b *testing.B) {
			stored := store.NewMemory[*machine.Machine](nil, nil)
			before := storedMachine(b, stored, machine.Status{Phase: machine.PhaseRunning}).Clone()
			after := before.Clone()
			after.Status.Phase = machine.PhaseTerminating
			after.Status.LastOperation = machine.Operation{Kind: machine.OperationDelete, Stage: machine.StageGetVMStatus}
			w := &engine.Write[*machine.Machine]{Before: before, After: after, Status: true}
			machines := engine.NewObjects[*machine.Machine](e, "machine", stored, nil)
			if states {
				machines, w.Moves = machinesOf(b, e, stored), moves
			}
			b.ReportAllocs()
			for b.Loop() {
				made, err := machines.Write(ctx, w)
				if err != nil {
					b.Fatal(err)
				}
				w.Before.Version, w.After.Version = made.Version, made.Version
			}
		})
	}
}
