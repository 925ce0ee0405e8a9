// Package fsm checks the moves of state machines before they are stored, and draws their tables.
//
// A [machine.Table] is a state machine as data. A decision looks up a transition with Table.Next and puts it
// into its plan as a move; it needs nothing of this package. The program that carries the plan out fires the
// moves before the write: [States.Fire] copies the states of the object as it was, fires each move on that copy,
// and compares the result with the object to be written. So nothing is stored if a table does not allow a move,
// if a guard refuses it, or if a state changes without a move.
//
// [Machines] and [Pools] declare the states of machines and pools. For a type of your own, make a table with
// [machine.NewTable], declare with a [State] where an object holds its state, and pass it to [New], as the
// example of New does. [Mermaid] and [DOT] draw tables, such as those in docs/concepts/state-machines.md.
//
// # Implementation
//
// Moves are fired by github.com/qmuntal/stateless ("the library"), which only this package imports:
//
//   - Building a machine takes tens of microseconds, so each table has one machine, shared by all objects.
//     The state of the object is in a cell in the context of the call, so calls do not affect each other.
//   - A shared machine takes a few locks a call. That is negligible next to a write to a store.
//   - The firing mode is FiringImmediate. In the queued mode a call returns nil while another call fires, and
//     its own event is fired later, by another goroutine, or never. Fire also checks that the state was set.
//   - Guards leave their reason in the cell.
//   - The library adds unknown states to the shared machine forever, so states are looked up in the table
//     first. A state that the table does not know is fired as machine.Unrecognized.
//   - There are no entry and exit actions. They would run before anything is stored, and announce moves that
//     a conflict then undoes.
//   - Self-edges use PermitReentry, because Permit panics on them.
//   - Of two edges with the same state and event the library accepts both, and panics when the event is
//     fired. New refuses such a table.
//   - States and events are plain strings. To the library, machine.PhaseRunning and "Running" would be two
//     states.
//   - Drawing reads a machine's table without a lock, so diagrams are drawn from a separate machine.
package fsm
