package fsm_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/machinepool"
)

// thing is an object with as many states as there are tables.
type thing struct{ states [4]string }

// stateOf declares the i-th state of things.
func stateOf(i int, table *machine.Table) fsm.State[thing] {
	return fsm.State[thing]{
		Table: table,
		Get:   func(o *thing) string { return o.states[i] },
		Set:   func(o *thing, to string) { o.states[i] = to },
	}
}

func tables() []*machine.Table {
	return []*machine.Table{machine.PhaseTable(), machine.DeletionTable(), machine.UpdateTable(), machinepool.PhaseTable()}
}

// things returns the state machines of things with these tables.
func things(t require.TestingT, tables ...*machine.Table) *fsm.States[thing] {
	states := make([]fsm.State[thing], len(tables))
	for i, table := range tables {
		states[i] = stateOf(i, table)
	}
	s, err := fsm.New(states...)
	require.NoError(t, err)
	return s
}

// checkAgainstTable fires every event of a table in every state, with every state as the claimed target. A
// move must pass if and only if the table has it.
func checkAgainstTable(t require.TestingT, table *machine.Table) {
	s := things(t, table)
	events := map[machine.Event]bool{"": true, "no such event": true}
	for _, e := range table.Transitions() {
		events[e.On] = true
	}
	states := append(table.States(), table.Final...)
	for _, from := range append(states, "no such state") {
		for on := range events {
			to, legal := table.Next(from, on)
			for _, claimed := range append(states, "no such state") {
				move := machine.Move{Table: table.Name, From: from, On: on, To: claimed}
				before, after := &thing{[4]string{from}}, &thing{[4]string{claimed}}
				err := s.Fire(context.Background(), before, after, nil, move)
				if legal && claimed == to {
					require.NoError(t, err, "%+v", move)
				} else {
					require.ErrorIs(t, err, fsm.ErrIllegal, "%+v", move)
				}
			}
		}
	}
}

func TestTablesAndLibraryAgree(t *testing.T) {
	for _, table := range tables() {
		checkAgainstTable(t, table)
	}
}

// anyTable is a table with any edges.
func anyTable(t *rapid.T, name string) *machine.Table {
	state := rapid.SampledFrom([]string{"", "A", "B", "C", "two words", "9", machine.Unrecognized})
	event := rapid.SampledFrom([]machine.Event{"go", "stop", "", "one, two"})
	edges := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) machine.Edge {
		return machine.Edge{From: state.Draw(t, "from"), On: event.Draw(t, "on"), To: state.Draw(t, "to")}
	}), 0, 12, func(e machine.Edge) string { return e.From + "\x00" + string(e.On) }).Draw(t, "edges")
	return machine.NewTable(name, state.Draw(t, "initial"), nil, edges)
}

func TestAnyTableAndLibraryAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkAgainstTable(t, anyTable(t, "any")) })
}

// explains is the oracle: it reports whether the tables have these moves, and the moves lead, in their
// order, from the states of before to those of after.
func explains(tables []*machine.Table, before, after thing, moves []machine.Move) bool {
	at := before.states
	for _, move := range moves {
		i := slices.IndexFunc(tables, func(t *machine.Table) bool { return t.Name == move.Table })
		switch to, leads := "", false; {
		case move == machine.Move{}:
			continue
		case i < 0 || tables[i].State(at[i]) != move.From:
			return false
		default:
			if to, leads = tables[i].Next(move.From, move.On); !leads || to != move.To {
				return false
			}
			at[i] = to
		}
	}
	return at == after.states
}

// TestP44MovesExplainTheChange: moves pass if and only if the tables have them and they lead, in their
// order, from the states of before to those of after. All values that a table does not know count as one
// state. Neither object is changed.
// Invariants: P44
func TestP44MovesExplainTheChange(t *testing.T) {
	counts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		two := []*machine.Table{anyTable(t, "one"), anyTable(t, "two")}
		stored := rapid.SampledFrom([]string{"", "A", "B", "C", "Dancing"})
		odd := rapid.Custom(func(t *rapid.T) machine.Move {
			return machine.Move{
				Table: rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "table"), From: stored.Draw(t, "from"),
				On: "go", To: stored.Draw(t, "to"),
			}
		})
		before := thing{[4]string{stored.Draw(t, "one"), stored.Draw(t, "two")}}
		after := before
		var moves []machine.Move
		for range rapid.IntRange(0, 4).Draw(t, "moves") {
			at := rapid.IntRange(0, 1).Draw(t, "table")
			ways := slices.DeleteFunc(two[at].Transitions(), func(e machine.Edge) bool { return e.From != two[at].State(after.states[at]) })
			switch {
			case rapid.IntRange(0, 9).Draw(t, "odd") == 0:
				moves = append(moves, odd.Draw(t, "move"))
			case len(ways) == 0:
				moves = append(moves, machine.Move{})
			default:
				e := rapid.SampledFrom(ways).Draw(t, "edge")
				moves = append(moves, machine.Move{Table: two[at].Name, From: e.From, On: e.On, To: e.To})
				after.states[at] = e.To
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "unexplained") == 0 {
			after.states[rapid.IntRange(0, 1).Draw(t, "of")] = stored.Draw(t, "instead")
		}
		from, to := before, after
		err := things(t, two...).Fire(t.Context(), &from, &to, nil, moves...)
		require.Equal(t, before, from)
		require.Equal(t, after, to)
		legal := explains(two, before, after, moves)
		counts[legal]++
		if legal {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, fsm.ErrIllegal)
		}
	})
	require.NotZero(t, counts[true])
	require.NotZero(t, counts[false])
}

func TestFireSaysWhatIsWrong(t *testing.T) {
	s := things(t, tables()...)
	for want, c := range map[string]struct {
		move machine.Move
		from string
	}{
		`phase: Running on joined to Running: the event leads nowhere from there`: {
			machine.Move{Table: "phase", From: "Running", On: machine.EventJoined, To: "Running"}, "Running"},
		`phase: "" on create to Running: the event leads to Pending`: {
			machine.Move{Table: "phase", On: "create", To: "Running"}, ""},
		`phase: Dancing on delete to Terminating: it is in Unrecognized`: {
			machine.Move{Table: "phase", From: "Dancing", On: "delete", To: "Terminating"}, "Dancing"},
		`phase: Unknown on delete to Terminating: it is in Running`: { // from Running the event leads to Terminating, too
			machine.Move{Table: "phase", From: "Unknown", On: "delete", To: "Terminating"}, "Running"},
		`mood: Good on  to Bad: there is no such table`: {machine.Move{Table: "mood", From: "Good", To: "Bad"}, ""},
	} {
		o := &thing{[4]string{c.from}}
		err := s.Fire(context.Background(), o, o, nil, c.move)
		assert.EqualError(t, err, want)
		var illegal *fsm.MoveError
		require.ErrorAs(t, err, &illegal)
		assert.Equal(t, c.move, illegal.Move)
	}
	err := s.Fire(context.Background(), &thing{[4]string{"Pending"}}, &thing{[4]string{"Running"}}, nil, machine.Move{})
	assert.EqualError(t, err, "phase: the moves lead to Pending, and it is to be Running")
	var state *fsm.StateError
	require.ErrorAs(t, err, &state)
}

// TestZeroMoveIsLegal: the zero move stands for no move.
func TestZeroMoveIsLegal(t *testing.T) {
	assert.NoError(t, things(t).Fire(context.Background(), &thing{}, &thing{}, nil, machine.Move{}))
}

func TestSelfEdgesFire(t *testing.T) {
	move := machine.Move{Table: "deletion", From: "InitiateDrain", On: "failed", To: "InitiateDrain"}
	o := &thing{[4]string{"", "InitiateDrain"}}
	assert.NoError(t, things(t, tables()...).Fire(context.Background(), o, o, nil, move))
}

func TestBadTablesAreRefused(t *testing.T) {
	twice := []machine.Edge{{From: "A", On: "go", To: "B"}, {From: "A", On: "go", To: "A"}}
	named := func(name string) fsm.State[thing] { return stateOf(0, machine.NewTable(name, "A", nil, nil)) }
	for want, given := range map[string][]fsm.State[thing]{
		`table x: two edges from A on go`: {stateOf(0, machine.NewTable("x", "A", nil, twice))},
		`table "": has no name`:           {named("")},
		`table phase: is given twice`:     {named("phase"), named("phase")},
		`table e: is one too many`:        {named("a"), named("b"), named("c"), named("d"), named("e")},
	} {
		_, err := fsm.New(given...)
		assert.EqualError(t, err, want)
		var bad *fsm.TableError
		assert.ErrorAs(t, err, &bad)
	}
}

// TestGuards: a move along a guarded edge passes if the guard gives no reason, and is refused with the
// guard's reason otherwise. It is also refused if there is nothing that the guard can look at.
func TestGuards(t *testing.T) {
	no := decision.NewReason("Closed", "the door is closed")
	door := stateOf(0, machine.NewTable("door", "Out", nil, []machine.Edge{
		{From: "Out", On: "go", To: "In"}, {From: "In", On: "turn", To: "In"}, {From: "In", On: "go", To: "Out"},
	}))
	door.Guard = func(e machine.Edge) fsm.Guard {
		if e.From == "In" && e.To == "Out" {
			return nil
		}
		return func(seen any) (why decision.Why) {
			if seen != "open" {
				why.Reason = no
			}
			return why
		}
	}
	s, err := fsm.New(door)
	require.NoError(t, err)
	fire := func(seen any, from string, on machine.Event, to string) error {
		move := machine.Move{Table: "door", From: from, On: on, To: to}
		return s.Fire(t.Context(), &thing{[4]string{from}}, &thing{[4]string{to}}, seen, move)
	}
	for _, way := range [][3]string{{"Out", "go", "In"}, {"In", "turn", "In"}} {
		require.NoError(t, fire("open", way[0], machine.Event(way[1]), way[2]))
		var refused *fsm.MoveError
		require.ErrorAs(t, fire("shut", way[0], machine.Event(way[1]), way[2]), &refused)
		require.Equal(t, decision.Why{Reason: no}, refused.Why)
		require.ErrorAs(t, fire(nil, way[0], machine.Event(way[1]), way[2]), &refused)
		require.NotZero(t, refused.Why)
	}
	require.NoError(t, fire(nil, "In", "go", "Out"))
}

// TestFireConcurrently: each call on the shared machines sees only its own state. Run it with -race.
func TestFireConcurrently(t *testing.T) {
	s := things(t, tables()...)
	edges := machine.PhaseTable().Transitions()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				e := edges[(i+worker)%len(edges)]
				move := machine.Move{Table: "phase", From: e.From, On: e.On, To: e.To}
				before, after := &thing{[4]string{e.From}}, &thing{[4]string{e.To}}
				if err := s.Fire(context.Background(), before, after, nil, move); err != nil {
					t.Errorf("legal move refused: %v", err)
				}
				move.From = fmt.Sprintf("garbage %d %d", worker, i)
				if err := s.Fire(context.Background(), before, after, nil, move); err == nil {
					t.Errorf("illegal move passed: %+v", move)
				}
			}
		})
	}
	all.Wait()
}

// TestGetReturnsWhatSetStored: for each state that the tables of machines and pools lead to, Get returns
// what Set has stored. Set changes nothing that the object only points to.
func TestGetReturnsWhatSetStored(t *testing.T) {
	before := machine.Machine{Status: machine.Status{Phase: machine.PhaseTerminating}}
	before.Status.LastOperation.Kind, before.Status.LastOperation.Stage = machine.OperationDelete, machine.StageInitiateFinalizerRemoval
	before.DeletedAt = before.DeletedAt.AddDate(2030, 0, 0)
	before.Finalizers = []string{"other", machine.Finalizer}
	phases := map[string][]machine.Phase{
		"update": {machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed},
	}
	for _, state := range fsm.Machines(nil) {
		for _, e := range state.Table.Transitions() {
			read := false
			for _, phase := range append(phases[state.Table.Name], machine.PhaseTerminating) {
				m := before
				m.Status.Phase = phase
				state.Set(&m, e.To)
				read = read || state.Get(&m) == e.To
			}
			assert.True(t, read || e.To == string(machine.StageInService), "%s: %s", state.Table.Name, e.To)
		}
	}
	require.Equal(t, []string{"other", machine.Finalizer}, before.Finalizers)
	for _, e := range machinepool.PhaseTable().Transitions() {
		var p machinepool.Pool
		fsm.Pools()[0].Set(&p, e.To)
		assert.Equal(t, e.To, fsm.Pools()[0].Get(&p))
	}
}

func BenchmarkFire(b *testing.B) {
	s, err := fsm.New(fsm.Machines(nil)...)
	require.NoError(b, err)
	before := &machine.Machine{Status: machine.Status{Phase: machine.PhaseRunning}}
	after := &machine.Machine{Status: machine.Status{Phase: machine.PhaseUnknown}}
	move := machine.Move{Table: "phase", From: "Running", On: "unhealthy", To: "Unknown"}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Fire(ctx, before, after, nil, move); err != nil {
			b.Fatal(err)
		}
	}
}
