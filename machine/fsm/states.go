package fsm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/qmuntal/stateless"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// ErrIllegal matches every *MoveError and every *StateError with errors.Is.
var ErrIllegal = errors.New("illegal move")

// MoveError says that a move is not allowed.
type MoveError struct {
	Move    machine.Move
	Problem string       // completes "phase: Running on joined to Pending: …"
	Why     decision.Why // of the guard that refuses the move; zero: no guard does
	Err     error        // of stateless; may be nil
}

// Error is "phase: Running on joined to Pending: leads nowhere".
func (e *MoveError) Error() string {
	return fmt.Sprintf("%s: %s on %s to %s: %s",
		e.Move.Table, display(e.Move.From), e.Move.On, display(e.Move.To), e.Problem)
}

// Unwrap returns the error of stateless, or nil.
func (e *MoveError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrIllegal) true.
func (e *MoveError) Is(target error) bool { return target == ErrIllegal }

// StateError says that an object is to be stored in another state than the moves lead to.
type StateError struct {
	Table string
	Led   string // the state that the moves lead to
	Have  string // the state that the object is to be stored with
}

// Error is "phase: the moves lead to Pending, and it is to be Running".
func (e *StateError) Error() string {
	return fmt.Sprintf("%s: the moves lead to %s, and it is to be %s", e.Table, display(e.Led), display(e.Have))
}

// Is makes errors.Is(err, ErrIllegal) true.
func (e *StateError) Is(target error) bool { return target == ErrIllegal }

// TableError says that no state machine can be built from a table.
type TableError struct {
	Table   string
	Problem string
}

// Error is "table phase: …".
func (e *TableError) Error() string { return "table " + e.Table + ": " + e.Problem }

// State is one state machine of objects of type M: its table, and where an object holds its state.
type State[M any] struct {
	Table *machine.Table
	// Get returns the state. A value that the table has no edge from counts as [machine.Unrecognized].
	Get func(*M) string
	// Set changes the state. It must not change values that the object points to.
	Set func(*M, string)
	// Guard returns the guard of an edge, or nil. A nil function: no edge has one.
	Guard func(machine.Edge) Guard
}

// Guard is an interlock on an edge. It gets what the plan was decided from, and returns why the move must not
// be made; the zero Why allows it. It repeats a check of the decision.
type Guard func(seen any) decision.Why

// States are all state machines of objects of type M. They are safe for concurrent use.
type States[M any] struct {
	states []running[M]
}

// running is a State with the machine that fires its moves.
type running[M any] struct {
	State[M]
	machine *stateless.StateMachine
}

// maxStates is how many states an object may have.
const maxStates = 4

// New returns the state machines of objects of type M, at most 4. The error is a *TableError: a table without a
// name, two tables with the same name, two edges with the same state and event, or too many tables.
func New[M any](states ...State[M]) (*States[M], error) {
	s := &States[M]{states: make([]running[M], len(states))}
	for i, state := range states {
		name := state.Table.Name
		switch {
		case name == "":
			return nil, &TableError{Table: `""`, Problem: "has no name"}
		case s.find(name) >= 0:
			return nil, &TableError{Table: name, Problem: "is given twice"}
		case i == maxStates:
			return nil, &TableError{Table: name, Problem: "is one too many"}
		}
		sm := stateless.NewStateMachineWithExternalStorage(read, write, stateless.FiringImmediate)
		if err := configure(sm, state.Table, state.Guard, func(s string) string { return s }); err != nil {
			return nil, err
		}
		s.states[i] = running[M]{state, sm}
	}
	return s, nil
}

// find returns the index of the state with this table, or -1.
func (s *States[M]) find(table string) int {
	for i := range s.states {
		if s.states[i].Table != nil && s.states[i].Table.Name == table {
			return i
		}
	}
	return -1
}

// configure adds the edges of a table to a state machine of stateless. name returns what a state is called
// there.
func configure(sm *stateless.StateMachine, t *machine.Table, guard func(machine.Edge) Guard, name func(string) string) error {
	type trigger struct {
		from string
		on   machine.Event
	}
	seen := make(map[trigger]bool, len(t.Edges))
	for _, s := range t.States() {
		sm.Configure(name(s)) // states that nothing leads out of are states too
	}
	for _, e := range t.Edges {
		if seen[trigger{e.From, e.On}] {
			return &TableError{Table: t.Name, Problem: fmt.Sprintf("two edges from %s on %s", display(e.From), e.On)}
		}
		seen[trigger{e.From, e.On}] = true
		var guards []stateless.GuardFunc
		if guard != nil {
			if g := guard(e); g != nil {
				guards = append(guards, g.allows)
			}
		}
		state := sm.Configure(name(e.From))
		if e.From == e.To {
			state.PermitReentry(string(e.On), guards...)
		} else {
			state.Permit(string(e.On), name(e.To), guards...)
		}
	}
	return nil
}

// allows is the guard in the form that stateless calls. It leaves the guard's answer in the cell.
func (g Guard) allows(ctx context.Context, args ...any) bool {
	at, ok := ctx.Value(cellKey{}).(*cell)
	if !ok {
		return false
	}
	if at.refused = (decision.Why{Reason: reasonUnseen}); at.seen != nil {
		at.refused = g(at.seen)
	}
	return at.refused == (decision.Why{})
}

// Fire verifies that the moves lead from the states of before to those of after. It changes neither object: it
// copies the states of before and fires the moves on that copy, in order. The zero move is ignored.
//
// It returns a *MoveError if a move is not in its table, begins in another state, or is refused by a guard. It
// returns a *StateError if the moves lead to another state than that of after. seen is what guards get; without
// it, a move with a guard is refused.
func (s *States[M]) Fire(ctx context.Context, before, after *M, seen any, moves ...machine.Move) error {
	var copied [maxStates]string
	var moved [maxStates]bool
	led := before
	for i := range s.states {
		copied[i] = s.states[i].Get(before)
	}
	for _, move := range moves {
		if move == (machine.Move{}) {
			continue
		}
		i := s.find(move.Table)
		if i < 0 {
			return &MoveError{Move: move, Problem: "there is no such table"}
		}
		if err := s.states[i].fire(ctx, &copied[i], seen, move); err != nil {
			return err
		}
		moved[i] = true
		if led == before {
			c := *before
			led = &c
		}
	}
	for i := range s.states {
		if moved[i] {
			s.states[i].Set(led, copied[i])
		}
	}
	for i := range s.states {
		r := &s.states[i]
		want := r.Get(led)
		if moved[i] && want != copied[i] && !r.startedAgain(copied[i], want) {
			want = copied[i] // another state that moved has overwritten it
		}
		if is := r.Get(after); is != want {
			return &StateError{Table: r.Table.Name, Led: want, Have: is}
		}
	}
	return nil
}

// startedAgain reports whether an object that was moved to a final state is in the initial state again. An
// in-place update that has ended at StageInService reads as StageCandidate.
func (r *running[M]) startedAgain(led, now string) bool {
	return now == r.Table.Initial && slices.Contains(r.Table.Final, led)
}

// fire makes one move of a state.
func (r *running[M]) fire(ctx context.Context, state *string, seen any, move machine.Move) error {
	from := r.Table.State(*state)
	switch {
	case move.From != from:
		return &MoveError{Move: move, Problem: "it is in " + display(from)}
	case !r.Table.Knows(move.From):
		return &MoveError{Move: move, Problem: display(move.From) + " is not a state of this table"}
	}
	at := &cell{state: from, seen: seen}
	err := r.machine.FireCtx(context.WithValue(ctx, cellKey{}, at), string(move.On))
	switch {
	case at.refused != (decision.Why{}):
		return &MoveError{Move: move, Problem: at.refused.String(), Why: at.refused, Err: err}
	case err != nil:
		return &MoveError{Move: move, Problem: "the event leads nowhere from there", Err: err}
	case !at.set || at.state != move.To:
		return &MoveError{Move: move, Problem: "the event leads to " + display(at.state)}
	}
	*state = at.state
	return nil
}

// cell holds the state of the object during one call of Fire. It is in the context of the call.
type cell struct {
	state   string
	set     bool
	seen    any          // what guards get
	refused decision.Why // the answer of the last guard
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

// display returns a state for messages.
func display(state string) string {
	if state == "" {
		return `""`
	}
	return state
}
