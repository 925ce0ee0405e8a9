package engine

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// EventType of an event, in the spelling of Kubernetes.
type EventType string

// The event types.
const (
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
)

// Hooks tell what happens, by the name of the kind. Each is called while the pass waits. A hook that
// panics ends nothing. Nil fields are left out.
type Hooks struct {
	// Event tells of a change, a failure or something tolerated.
	Event func(kind string, key object.Key, typ EventType, reason, why string)
	// Told tells of each order and each plan that was carried out, with the decision's own value.
	Told func(kind string, key object.Key, why decision.Why)
	// Transition tells of a move of a state machine, once it is stored.
	Transition func(kind string, key object.Key, move decision.Move, why decision.Why)
	// Effect tells of a call or an order, and how long it took.
	Effect func(kind string, key object.Key, name string, took time.Duration, err error)
	// Withheld tells what was not done in a dry run, and why it would be.
	Withheld func(kind string, key object.Key, what, reason, why string)
	// Panicked tells of each panic. in is where, see [Place]; what never holds the panic's value.
	Panicked func(kind string, key object.Key, in, what string)
	// Pass tells that a pass ended.
	Pass func(kind string, key object.Key, steps int, result Result, err error)
}

// Result is how a pass ended.
type Result struct {
	// At is when to look again though nothing has changed; zero: never. A
	// time that has passed means at once.
	At  time.Time
	Why decision.Why // zero: nothing to say
}
