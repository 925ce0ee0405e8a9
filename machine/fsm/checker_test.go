package fsm_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
)

func tables() []*machine.Table {
	return []*machine.Table{machine.PhaseTable(), machine.DeletionTable()}
}

func checker(t testing.TB, tables ...*machine.Table) *fsm.Checker {
	c, err := fsm.NewChecker(tables...)
	require.NoError(t, err)
	return c
}

// agree holds the checker to the table for every state and event of it, and
// every state the event could be said to lead to.
func agree(t require.TestingT, c *fsm.Checker, table *machine.Table) {
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
				err := c.Fire(context.Background(), move)
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
	c := checker(t, tables()...)
	for _, table := range tables() {
		agree(t, c, table)
	}
}

func TestAnyTableAndLibraryAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.SampledFrom([]string{"", "A", "B", "C", "two words", "9"})
		event := rapid.SampledFrom([]machine.Event{"go", "stop", "", "one, two"})
		edges := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) machine.Edge {
			return machine.Edge{From: state.Draw(t, "from"), On: event.Draw(t, "on"), To: state.Draw(t, "to")}
		}), 0, 12, func(e machine.Edge) string { return e.From + "\x00" + string(e.On) }).Draw(t, "edges")
		table := machine.NewTable("any", state.Draw(t, "initial"), nil, edges)
		c, err := fsm.NewChecker(table)
		require.NoError(t, err)
		agree(t, c, table)
	})
}

func TestFireSaysWhatIsWrong(t *testing.T) {
	c := checker(t, tables()...)
	for want, move := range map[string]machine.Move{
		`phase: Running on joined to Running: the event leads nowhere from there`: {
			Table: "phase", From: "Running", On: machine.EventJoined, To: "Running"},
		`phase: "" on create to Running: the event leads to Pending`: {
			Table: "phase", On: "create", To: "Running"},
		`phase: Dancing on delete to Terminating: Dancing is not a state of this table`: {
			Table: "phase", From: "Dancing", On: "delete", To: "Terminating"},
		`mood: Good on  to Bad: there is no such table`: {Table: "mood", From: "Good", To: "Bad"},
	} {
		err := c.Fire(context.Background(), move)
		assert.EqualError(t, err, want)
		var illegal *fsm.MoveError
		require.ErrorAs(t, err, &illegal)
		assert.Equal(t, move, illegal.Move)
	}
}

func TestZeroMoveIsLegal(t *testing.T) {
	assert.NoError(t, checker(t).Fire(context.Background(), machine.Move{}))
}

func TestSelfEdgesFire(t *testing.T) {
	move := machine.Move{Table: "deletion", From: "InitiateDrain", On: "failed", To: "InitiateDrain"}
	assert.NoError(t, checker(t, tables()...).Fire(context.Background(), move))
}

func TestBadTablesAreRefused(t *testing.T) {
	twice := []machine.Edge{{From: "A", On: "go", To: "B"}, {From: "A", On: "go", To: "A"}}
	for want, given := range map[string][]*machine.Table{
		`table x: two edges from A on go`: {machine.NewTable("x", "A", nil, twice)},
		`table "": has no name`:           {machine.NewTable("", "A", nil, nil)},
		`table phase: is given twice`:     {machine.PhaseTable(), machine.PhaseTable()},
	} {
		_, err := fsm.NewChecker(given...)
		assert.EqualError(t, err, want)
		var bad *fsm.TableError
		assert.ErrorAs(t, err, &bad)
	}
}

// Calls on the shared machines see their own state only; run with -race.
func TestFireConcurrently(t *testing.T) {
	c := checker(t, tables()...)
	edges := machine.PhaseTable().Transitions()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				e := edges[(i+worker)%len(edges)]
				move := machine.Move{Table: "phase", From: e.From, On: e.On, To: e.To}
				if err := c.Fire(context.Background(), move); err != nil {
					t.Errorf("legal move refused: %v", err)
				}
				move.From = fmt.Sprintf("garbage %d %d", worker, i)
				if err := c.Fire(context.Background(), move); err == nil {
					t.Errorf("illegal move passed: %+v", move)
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkFire(b *testing.B) {
	c := checker(b, tables()...)
	move := machine.Move{Table: "phase", From: "Running", On: "unhealthy", To: "Unknown"}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Fire(ctx, move); err != nil {
			b.Fatal(err)
		}
	}
}
