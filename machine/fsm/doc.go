// Package fsm runs the transition tables of this library as state machines of
// github.com/qmuntal/stateless, and draws them. It alone imports that library.
//
// A decision never needs it: Table.Next is the lookup that decisions use. What
// carries a plan out fires the plan's moves before its write: [States.Fire]
// copies the states of the object as it was, fires each move in order on that
// copy, and compares the outcome with the object as it is to be. So neither a
// move that no table allows is stored, nor a state that no move leads to,
// wherever it comes from. [Machines] and [Pools] declare the states of these
// objects; objects of other types declare their own. [Mermaid] and [DOT] draw
// the diagrams under docs/.
//
// How the library is used, and why so:
//
//   - Building a machine costs tens of microseconds, so one is built a table and
//     shared. Its state lies in a cell in the context of each call: calls do not
//     see each other.
//   - A shared machine takes a lock a few times a call, so it does not get
//     faster with more cores. Beside a write to a store that is nothing; in a
//     decision it would be.
//   - The firing mode is FiringImmediate. In the queued mode a call returns nil
//     when another call is firing, and its own event is fired later or by
//     somebody else, or not at all. Fire looks for itself whether the state was
//     set, too.
//   - Guards are the library's, and each leaves its reason in the cell.
//   - A state that the library does not know is added to the shared machine for
//     good, so states are looked up in the table first. What the table does not
//     know is fired as machine.Unrecognized.
//   - There are no entry or exit actions. An error in one leaves the others half
//     run, and they run before anything is stored: users would be told of moves that
//     a conflict then undoes. What follows a transition is up to the caller that
//     stores it.
//   - Self-edges are PermitReentry: Permit panics on them.
//   - The library takes the second of two edges with the same state and event
//     without a word and panics when the event is fired; they are refused here
//     when the checker is built.
//   - States and events are plain strings throughout. machine.PhaseRunning and
//     "Running" would be two states to the library.
//   - Drawing asks a machine for its current state with a context of its own and
//     reads its table unlocked, so diagrams are drawn from a separate machine.
package fsm
