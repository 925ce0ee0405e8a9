package machine

import "slices"

// Event is what moves a state machine from one state to another.
type Event string

// Events of the phase table.
const (
	EventCreate          Event = "create"           // a create is about to be issued
	EventProvisioned     Event = "provisioned"      // the VM exists and is recorded
	EventCreateFailed    Event = "create failed"    // a step of the creation failed
	EventCreateRefused   Event = "create refused"   // it can never succeed under this name
	EventCreationTimeout Event = "creation timeout" // it took too long
	EventAvailable       Event = "available"        // made, and no cluster to join
	EventJoined          Event = "joined"           // the node is there and healthy
	EventUnhealthy       Event = "unhealthy"        // the node is unhealthy or missing
	EventRecovered       Event = "recovered"        // it is healthy again
	EventLost            Event = "vm lost"          // the provider says that the VM is gone
	EventHealthTimeout   Event = "health timeout"   // it stayed unhealthy too long
	EventDelete          Event = "delete"           // deletion was asked for
	EventNotDeleted      Event = "not deleted"      // Terminating, but deletion was not asked for
)

// Events of an in-place update. Most move the phase and the stage at once.
const (
	EventSelected     Event = "selected"      // it is this machine's turn
	EventWithdrawn    Event = "withdrawn"     // the update is not wanted any more
	EventUpdated      Event = "updated"       // the agent says that it is done
	EventUpdateFailed Event = "update failed" // the agent says so, or the time is up
	EventOutdated     Event = "outdated"      // done after it had been withdrawn
	EventReturned     Event = "returned"      // moved to its new owner, and well
)

// Events of the deletion table.
const (
	EventNodeFound   Event = "node found"
	EventNoNode      Event = "no node"
	EventDrained     Event = "drained"
	EventForced      Event = "forced"
	EventDetached    Event = "detached"
	EventVMDeleted   Event = "vm deleted"
	EventNodeDeleted Event = "node deleted"
	EventReleased    Event = "released"
	EventStageFailed Event = "failed"
	EventRestart     Event = "restart"
)

// StageGone is the end of a deletion: the finalizer is removed and the object
// is gone. It is never stored.
const StageGone Stage = "Gone"

// Edge is one way through a state machine.
type Edge struct {
	From string
	On   Event
	To   string
	Why  string // the reason that this way exists
}

// Table is a state machine as data. Its edges are the only place where its
// transitions are written down.
type Table struct {
	Name    string
	Initial string
	Final   []string // states nothing leads out of
	Edges   []Edge

	index map[string]map[Event]string
}

// Next returns the state that an event leads to; false if the table has no
// such edge, or does not know the state.
func (t *Table) Next(from string, on Event) (string, bool) {
	to, ok := t.index[from][on]
	return to, ok
}

// Knows reports whether the state occurs in the table.
func (t *Table) Knows(state string) bool {
	_, ok := t.index[state]
	return ok
}

// States lists all states: the initial one first, then in order of appearance.
func (t *Table) States() []string {
	states := []string{t.Initial}
	add := func(s string) {
		if !slices.Contains(states, s) {
			states = append(states, s)
		}
	}
	for _, e := range t.Edges {
		add(e.From)
		add(e.To)
	}
	return states
}

// Transitions returns a copy of the edges.
func (t *Table) Transitions() []Edge { return slices.Clone(t.Edges) }

// NewTable returns a table whose lookup is ready. A later edge with the same
// state and event as an earlier one replaces it; tests hold tables to having none.
func NewTable(name, initial string, final []string, edges []Edge) *Table {
	t := &Table{Name: name, Initial: initial, Final: final, Edges: edges}
	t.index = make(map[string]map[Event]string)
	for _, s := range t.States() {
		t.index[s] = make(map[Event]string)
	}
	for _, e := range edges {
		t.index[e.From][e.On] = e.To
	}
	return t
}

var (
	phases    = newPhaseTable()
	deletions = newDeletionTable()
	updates   = newUpdateTable()
)

// PhaseTable is the state machine of Status.Phase. It is shared: read only.
func PhaseTable() *Table { return phases }

// DeletionTable is the state machine of the stages of a deletion, kept in
// LastOperation.Stage while the phase is Terminating. It is shared: read only.
func DeletionTable() *Table { return deletions }

// UpdateTable is the state machine of the stages of an in-place update, kept in
// LastOperation.Stage while the operation is InPlaceUpdate. It is shared: read only.
func UpdateTable() *Table { return updates }

func newPhaseTable() *Table {
	var edges []Edge
	add := func(from Phase, on Event, to Phase, why string) {
		edges = append(edges, Edge{string(from), on, string(to), why})
	}
	for _, from := range []Phase{PhaseNew, PhasePending, PhaseCrashLoopBackOff} {
		add(from, EventCreate, PhasePending, "written before each create call, so that a stale reader's write fails before it calls")
		add(from, EventProvisioned, PhasePending, "the VM is there and waits to join")
		add(from, EventAvailable, PhaseAvailable, "without a cluster there is nothing to join")
		add(from, EventCreateFailed, PhaseCrashLoopBackOff, "to be tried again by the recovery table")
		add(from, EventCreateRefused, PhaseFailed, "the name is taken, or the node's name is: only another machine can succeed")
		add(from, EventCreationTimeout, PhaseFailed, "not joined in time: a replacement has better chances")
	}
	add(PhasePending, EventJoined, PhaseRunning, "the node is healthy and ready for workload")
	add(PhaseRunning, EventUnhealthy, PhaseUnknown, "the health clock starts")
	add(PhaseUnknown, EventRecovered, PhaseRunning, "the node is healthy again")
	add(PhaseFailed, EventRecovered, PhaseRunning, "kept for inspection, and the node is healthy again")
	for _, from := range []Phase{PhaseAvailable, PhaseRunning} {
		add(from, EventLost, PhaseFailed, "without a cluster, nothing but its VM says that it is there")
	}
	add(PhaseUnknown, EventHealthTimeout, PhaseFailed, "unhealthy for too long")
	add(PhaseInPlaceUpdateFailed, EventHealthTimeout, PhaseFailed, "unhealthy for too long after a failed update")
	add(PhaseRunning, EventSelected, PhaseInPlaceUpdating, "the node is taken out of service, drained, and updated by an agent")
	add(PhaseInPlaceUpdating, EventWithdrawn, PhaseRunning, "the agent was not told yet: nothing has happened to the node")
	add(PhaseInPlaceUpdating, EventUpdated, PhaseInPlaceUpdateSuccessful, "the agent is done; the owner takes the machine over")
	add(PhaseInPlaceUpdating, EventUpdateFailed, PhaseInPlaceUpdateFailed, "the agent failed, did not answer in time, or answered for nothing")
	add(PhaseInPlaceUpdateFailed, EventUpdated, PhaseInPlaceUpdateSuccessful, "the agent tried again and is done")
	add(PhaseInPlaceUpdateFailed, EventWithdrawn, PhaseRunning, "nobody wants the update any more, and the node is healthy")
	add(PhaseInPlaceUpdateFailed, EventSelected, PhaseInPlaceUpdating, "its update came too late for its owner: it is updated once more")
	add(PhaseInPlaceUpdateSuccessful, EventReturned, PhaseRunning, "the owner has taken it over, and the node is in service again")
	add(PhaseInPlaceUpdateSuccessful, EventUnhealthy, PhaseUnknown, "the node did not become healthy again in time")
	add(PhaseTerminating, EventNotDeleted, PhaseFailed, "its VM may be half gone and no deletion will finish it: it must be replaced")
	for _, from := range []Phase{
		PhaseNew, PhasePending, PhaseAvailable, PhaseRunning, PhaseUnknown, PhaseFailed, PhaseCrashLoopBackOff,
		PhaseInPlaceUpdating, PhaseInPlaceUpdateSuccessful, PhaseInPlaceUpdateFailed, PhaseTerminating,
	} {
		add(from, EventDelete, PhaseTerminating, "deletion can begin at any time")
	}
	return NewTable("phase", string(PhaseNew), nil, edges)
}

func newDeletionTable() *Table {
	var edges []Edge
	add := func(from Stage, on Event, to Stage, why string) {
		edges = append(edges, Edge{string(from), on, string(to), why})
	}
	add(StageNone, EventDelete, StageGetVMStatus, "deletion was asked for")
	add(StageGetVMStatus, EventNodeFound, StageInitiateDrain, "its node carries workload that must leave first")
	add(StageGetVMStatus, EventNoNode, StageInitiateVMDeletion, "nothing to drain")
	add(StageInitiateDrain, EventDrained, StageInitiateVMDeletion, "the workload has left")
	add(StageInitiateDrain, EventForced, StageDeleteVolumeAttachments, "a forced drain does not wait for volumes")
	add(StageDeleteVolumeAttachments, EventDetached, StageInitiateVMDeletion, "no volume is held any more, or its time is up")
	add(StageInitiateVMDeletion, EventVMDeleted, StageInitiateNodeDeletion, "the provider said that the VM is gone")
	add(StageInitiateNodeDeletion, EventNodeDeleted, StageInitiateFinalizerRemoval, "no node of it is left")
	for _, from := range []Stage{StageInitiateVMDeletion, StageInitiateNodeDeletion, StageInitiateFinalizerRemoval} {
		add(from, EventReleased, StageGone, "VM and node are gone; what is left of the way was done in the same pass")
	}
	for _, s := range []Stage{
		StageGetVMStatus, StageInitiateDrain, StageDeleteVolumeAttachments,
		StageInitiateVMDeletion, StageInitiateNodeDeletion, StageInitiateFinalizerRemoval,
	} {
		add(s, EventStageFailed, s, "a deletion is tried until it succeeds")
		add(s, EventRestart, StageGetVMStatus, "what storage holds makes no sense: every stage can be done again")
	}
	return NewTable("deletion", string(StageNone), []string{string(StageGone)}, edges)
}

func newUpdateTable() *Table {
	var edges []Edge
	add := func(from Stage, on Event, to Stage, why string) {
		edges = append(edges, Edge{string(from), on, string(to), why})
	}
	add(StageCandidate, EventSelected, StageSelected, "its owner or a user says that it is its turn")
	add(StageSelected, EventWithdrawn, StageCandidate, "rolled back or deselected before the agent was told")
	add(StageSelected, EventStageFailed, StageSelected, "the node could not be drained or written, which is tried again")
	add(StageSelected, EventUpdateFailed, StageUpdateFailed, "the time was up before the node was empty")
	add(StageSelected, EventDrained, StageReady, "the workload has left: from here on the agent may be at work")
	add(StageReady, EventStageFailed, StageReady, "the node could not be written, which is tried again")
	add(StageReady, EventUpdated, StageUpdateSuccessful, "the agent says so")
	add(StageReady, EventUpdateFailed, StageUpdateFailed, "the agent says so, or it did not answer in time")
	add(StageReady, EventOutdated, StageCandidate, "withdrawn while the agent was at work: the node is not what the machine's owner says, and needs another update")
	add(StageUpdateFailed, EventUpdated, StageUpdateSuccessful, "the agent tried again and is done")
	add(StageUpdateFailed, EventWithdrawn, StageCandidate, "nobody wants the update any more, and the node is healthy")
	add(StageUpdateSuccessful, EventReturned, StageInService, "the owner has taken it over, and the node is healthy")
	add(StageUpdateSuccessful, EventUnhealthy, StageInService, "not healthy in time: the health clock decides")
	return NewTable("update", string(StageCandidate), []string{string(StageInService)}, edges)
}
