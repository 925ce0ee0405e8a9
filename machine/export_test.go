package machine

// UnionOfValues is unionOfValues.
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

// ReasonSyncUndone is that of a node that another program changes too.
var ReasonSyncUndone = reasonSyncUndone

// WithoutEdges takes all edges out of the table of phases until the returned function is called.
func WithoutEdges() (restore func()) {
	old := phases
	phases = NewTable(old.Name, old.Initial, old.Final, nil)
	return func() { phases = old }
}
