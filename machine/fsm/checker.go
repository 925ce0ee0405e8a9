package fsm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/qmuntal/stateless"

	"github.com/millwright-go/millwright/machine"
)

// ErrIllegal is what every *MoveError is, for errors.Is.
var ErrIllegal = errors.New("illegal move")

// MoveError says that a move is on no table.
type MoveError struct {
	Move    machine.Move
	Problem string // completes "phase: Running on joined to Pending: …"
	Err     error  // the library's own error; may be nil
}

// Error is "phase: Running on joined to Pending: leads nowhere".
func (e *MoveError) Error() string {
	return fmt.Sprintf("%s: %s on %s to %s: %s",
		e.Move.Table, display(e.Move.From), e.Move.On, display(e.Move.To), e.Problem)
}

// Unwrap returns the library's own error, if there is one.
func (e *MoveError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrIllegal) true.
func (e *MoveError) Is(target error) bool { return target == ErrIllegal }

// TableError says that no state machine can be built from a table.
type TableError struct {
	Table   string
	Problem string
}

// Error is "table phase: …".
func (e *TableError) Error() string { return "table " + e.Table + ": " + e.Problem }

// Checker holds moves to the tables they name. It is safe for concurrent use.
type Checker struct {
	machines map[string]*shared
	legal    sync.Map // moves that were found to be: no more than the tables have edges
}

// shared is the one machine of a table.
type shared struct {
	table   *machine.Table
	machine *stateless.StateMachine
}

// NewChecker returns a checker of moves on these tables. The error is a
// *TableError: a table without a name, two of one name, or two edges with the
// same state and event.
func NewChecker(tables ...*machine.Table) (*Checker, error) {
	c := &Checker{machines: make(map[string]*shared, len(tables))}
	for _, t := range tables {
		if t.Name == "" {
			return nil, &TableError{Table: `""`, Problem: "has no name"}
		}
		if _, twice := c.machines[t.Name]; twice {
			return nil, &TableError{Table: t.Name, Problem: "is given twice"}
		}
		sm := stateless.NewStateMachineWithExternalStorage(read, write, stateless.FiringImmediate)
		if err := configure(sm, t, func(s string) string { return s }); err != nil {
			return nil, err
		}
		c.machines[t.Name] = &shared{table: t, machine: sm}
	}
	return c, nil
}

// configure gives a machine the edges of a table; name is what it calls a state.
func configure(sm *stateless.StateMachine, t *machine.Table, name func(string) string) error {
	type way struct {
		from string
		on   machine.Event
	}
	seen := make(map[way]bool, len(t.Edges))
	for _, s := range t.States() {
		sm.Configure(name(s)) // states that nothing leads out of are states too
	}
	for _, e := range t.Edges {
		if seen[way{e.From, e.On}] {
			return &TableError{Table: t.Name, Problem: fmt.Sprintf("two edges from %s on %s", display(e.From), e.On)}
		}
		seen[way{e.From, e.On}] = true
		state := sm.Configure(name(e.From))
		if e.From == e.To {
			state.PermitReentry(string(e.On))
		} else {
			state.Permit(string(e.On), name(e.To))
		}
	}
	return nil
}

// Fire verifies that a move is legal: that its table has the state it comes
// from, and that its event leads from there to where it says. It changes
// nothing. The error is a *MoveError. The zero move, which stands for none in
// a plan, is legal.
func (c *Checker) Fire(ctx context.Context, move machine.Move) error {
	if move == (machine.Move{}) {
		return nil
	}
	if _, known := c.legal.Load(move); known {
		return nil
	}
	s, ok := c.machines[move.Table]
	if !ok {
		return &MoveError{Move: move, Problem: "there is no such table"}
	}
	if !s.table.Knows(move.From) {
		return &MoveError{Move: move, Problem: display(move.From) + " is not a state of this table"}
	}
	at := &cell{state: move.From}
	if err := s.machine.FireCtx(context.WithValue(ctx, cellKey{}, at), string(move.On)); err != nil {
		return &MoveError{Move: move, Problem: "the event leads nowhere from there", Err: err}
	}
	if !at.set || at.state != move.To {
		return &MoveError{Move: move, Problem: "the event leads to " + display(at.state)}
	}
	c.legal.Store(move, struct{}{})
	return nil
}

// cell is where the state lies that one call of Fire is about.
type cell struct {
	state string
	set   bool
}

type cellKey struct{}

var errNoCell = errors.New("the context carries no state")

func read(ctx context.Context) (stateless.State, error) {
	at, ok := ctx.Value(cellKey{}).(*cell)
	if !ok {
		return nil, errNoCell
	}
	return at.state, nil
}

func write(ctx context.Context, to stateless.State) error {
	at, ok := ctx.Value(cellKey{}).(*cell)
	if !ok {
		return errNoCell
	}
	at.state, at.set = to.(string), true
	return nil
}

// display is a state as people read it.
func display(state string) string {
	if state == "" {
		return `""`
	}
	return state
}
