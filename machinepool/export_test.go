package machinepool

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
