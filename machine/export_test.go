package machine

// UnionOfValues is unionOfValues, for tests.
func UnionOfValues(first, second string) string { return unionOfValues(first, second) }

// Events, for tests.
const (
	EventAvailable     = eventAvailable
	EventCreate        = eventCreate
	EventDetached      = eventDetached
	EventHealthTimeout = eventHealthTimeout
	EventLost          = eventLost
	EventReturned      = eventReturned
	EventSelected      = eventSelected
	EventUnhealthy     = eventUnhealthy
	EventUpdateFailed  = eventUpdateFailed
	EventUpdated       = eventUpdated
	EventWithdrawn     = eventWithdrawn
)

// ReasonSyncUndone is the reason of a plan for a node that another program keeps changing back.
var ReasonSyncUndone = reasonSyncUndone

// WithoutEdges removes all edges from the phase table until the returned function is called.
func WithoutEdges() (restore func()) {
	old := phases
	phases = NewTable(old.Name, old.Initial, old.Final, nil)
	return func() { phases = old }
}
