package machinepool

import "github.com/millwright-go/millwright/machine"

// Events, for tests.
const (
	EventAccepted       = eventAccepted
	EventBootstrapReady = eventBootstrapReady
	EventDelete         = eventDelete
	EventFailed         = eventFailed
	EventGroupReady     = eventGroupReady
	EventNodesReady     = eventNodesReady
	EventNotDeleted     = eventNotDeleted
)

// WithoutEdges takes all edges out of the table of phases until the returned function is called.
func WithoutEdges() (restore func()) {
	old := phases
	phases = machine.NewTable(old.Name, old.Initial, old.Final, nil)
	return func() { phases = old }
}
