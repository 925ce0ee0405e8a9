package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// Event is what moves a state machine from one state to another. The tables hold all of them, and
// docs/concepts/state-machines.md shows them. An event is exported if another package matches on it.
type Event = decision.Event

// Events of the phase table.
const (
	eventCreate          Event = "create"           // a create is about to be issued
	EventProvisioned     Event = "provisioned"      // the VM exists and is recorded
	eventCreateFailed    Event = "create failed"    // a step of the creation failed
	eventCreateRefused   Event = "create refused"   // the creation can't succeed under this name
	eventCreationTimeout Event = "creation timeout" // the creation timeout has passed
	eventAvailable       Event = "available"        // without a cluster: the VM exists, or is healthy again
	EventJoined          Event = "joined"           // the node has joined and is healthy
	eventUnhealthy       Event = "unhealthy"        // the node is unhealthy or missing; without a cluster: the VM is unhealthy
	EventRecovered       Event = "recovered"        // the node is healthy again
	eventLost            Event = "vm lost"          // the VM is gone
	eventHealthTimeout   Event = "health timeout"   // the health timeout has passed
	eventDelete          Event = "delete"           // the machine has a deletion timestamp
	eventNotDeleted      Event = "not deleted"      // Terminating without a deletion timestamp
	eventRestart         Event = "restart"          // the stored state is unknown; in all tables
)

// Events of an in-place update. Most move the phase and the stage at once.
const (
	eventSelected     Event = "selected"      // the machine is selected for its update
	eventWithdrawn    Event = "withdrawn"     // the update is no longer wanted
	eventUpdated      Event = "updated"       // the agent has succeeded
	eventUpdateFailed Event = "update failed" // the agent has failed, or the update timeout has passed
	eventOutdated     Event = "outdated"      // the agent has succeeded after the update was withdrawn
	eventReturned     Event = "returned"      // the machine is in its new set, and healthy
)

// Events of the deletion table.
const (
	eventLocated      Event = "located" // it is known whether there is a node
	EventDrained      Event = "drained"
	EventForced       Event = "forced"
	eventDetached     Event = "detached"
	eventVMDeleted    Event = "vm deleted"
	eventNeverCreated Event = "never created"
	eventNodeDeleted  Event = "node deleted"
	eventNoNode       Event = "no node"
	eventNodeFound    Event = "node found"
	EventReleased     Event = "released"
	eventStageFailed  Event = "failed"
)

// StageGone is the end of a deletion: the finalizer is removed. It is never stored.
const StageGone Stage = "Gone"

// Unrecognized is the state of every stored value that a table does not know. It is never stored.
const Unrecognized = "Unrecognized"

// Edge is one transition of a state machine.
type Edge struct {
	From string
	On   Event
	To   string
	Why  string // why the transition exists, for documentation
}

// Table is a state machine as data. Create it with NewTable.
type Table struct {
	Name    string
	Initial string
	Final   []string // states without a transition to another one
	Edges   []Edge

	index map[string]map[Event]string
}

// Next returns the state that an event leads to. It returns false if the table has no such edge.
func (t *Table) Next(from string, on Event) (string, bool) {
	to, ok := t.index[from][on]
	return to, ok
}

// Allows reports whether the table has the edge of a move.
func (t *Table) Allows(m Move) bool {
	to, ok := t.Next(m.From, m.On)
	return ok && to == m.To && m.Table == t.Name
}

// Knows reports whether the state occurs in the table.
func (t *Table) Knows(state string) bool {
	_, ok := t.index[state]
	return ok
}

// State returns the state of a stored value: the value itself, or Unrecognized if the table has no edge from
// it.
func (t *Table) State(stored string) string {
	if len(t.index[stored]) == 0 {
		return Unrecognized
	}
	return stored
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

// NewTable returns a table with these edges. If two edges have the same state and event, Next follows the
// later one; package machine/fsm refuses such a table.
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

// PhaseTable is the state machine of Status.Phase. It is shared; do not change it.
func PhaseTable() *Table { return phases }

// DeletionTable is the state machine of the stages of a deletion, kept in LastOperation.Stage while the phase
// is Terminating. It is shared; do not change it.
func DeletionTable() *Table { return deletions }

// UpdateTable is the state machine of the stages of an in-place update, kept in LastOperation.Stage while the
// operation is InPlaceUpdate. It is shared; do not change it.
func UpdateTable() *Table { return updates }

func newPhaseTable() *Table {
	var edges []Edge
	add := func(from Phase, on Event, to Phase, why string) {
		edges = append(edges, Edge{string(from), on, string(to), why})
	}
	for _, from := range []Phase{PhaseNew, PhasePending, PhaseCrashLoopBackOff} {
		add(from, eventCreate, PhasePending, "written before each create call, so that a stale reader's write fails before it calls")
		add(from, EventProvisioned, PhasePending, "the VM is there and waits to join")
		add(from, eventAvailable, PhaseAvailable, "without a cluster there is nothing to join")
		add(from, eventCreateFailed, PhaseCrashLoopBackOff, "to be tried again by the recovery table")
		add(from, eventCreateRefused, PhaseFailed, "the name is taken, or the node's name is: only another machine can succeed")
	}
	for _, from := range []Phase{PhasePending, PhaseCrashLoopBackOff} { // a new machine's time has not begun
		add(from, eventCreationTimeout, PhaseFailed, "not joined in time: a replacement has better chances")
	}
	add(PhasePending, EventJoined, PhaseRunning, "the node is healthy and ready for workload")
	add(PhaseAvailable, EventJoined, PhaseRunning, "there is a cluster now, and the node is healthy in it")
	add(PhaseRunning, eventUnhealthy, PhaseUnknown, "the health clock starts")
	add(PhaseUnknown, EventRecovered, PhaseRunning, "the node is healthy again")
	add(PhaseFailed, EventRecovered, PhaseRunning, "kept for inspection, and the node is healthy again")
	add(PhaseAvailable, eventUnhealthy, PhaseUnknown, "the provider says that its VM does not work: the health clock starts")
	add(PhaseUnknown, eventAvailable, PhaseAvailable, "without a cluster, and the provider says that its VM works again")
	for _, from := range []Phase{PhaseAvailable, PhaseRunning, PhaseUnknown} {
		add(from, eventLost, PhaseFailed, "without a cluster, nothing but its VM says that it is there")
	}
	add(PhaseUnknown, eventHealthTimeout, PhaseFailed, "unhealthy for too long")
	add(PhaseInPlaceUpdateFailed, eventHealthTimeout, PhaseFailed, "unhealthy for too long after a failed update")
	add(PhaseRunning, eventSelected, PhaseInPlaceUpdating, "the node is taken out of service, drained, and updated by an agent")
	add(PhaseInPlaceUpdating, eventWithdrawn, PhaseRunning, "the agent was not told yet: nothing has happened to the node")
	add(PhaseInPlaceUpdating, eventUpdated, PhaseInPlaceUpdateSuccessful, "the agent is done; the owner takes the machine over")
	add(PhaseInPlaceUpdating, eventUpdateFailed, PhaseInPlaceUpdateFailed, "the agent failed, did not answer in time, or answered for nothing")
	add(PhaseInPlaceUpdateFailed, eventUpdated, PhaseInPlaceUpdateSuccessful, "the agent tried again and is done")
	add(PhaseInPlaceUpdateFailed, eventWithdrawn, PhaseRunning, "nobody wants the update any more, and the node is healthy")
	add(PhaseInPlaceUpdateFailed, eventSelected, PhaseInPlaceUpdating, "its update came too late for its owner: it is updated once more")
	add(PhaseInPlaceUpdateSuccessful, eventReturned, PhaseRunning, "the owner has taken it over, and the node is in service again")
	add(PhaseInPlaceUpdateSuccessful, eventUnhealthy, PhaseUnknown, "the node did not become healthy again in time")
	add(PhaseTerminating, eventNotDeleted, PhaseFailed, "its VM may be half gone and no deletion will finish it: it must be replaced")
	for _, from := range []Phase{
		PhaseNew, PhasePending, PhaseAvailable, PhaseRunning, PhaseUnknown, PhaseFailed, PhaseCrashLoopBackOff,
		PhaseInPlaceUpdating, PhaseInPlaceUpdateSuccessful, PhaseInPlaceUpdateFailed, PhaseTerminating, Unrecognized,
	} {
		add(from, eventDelete, PhaseTerminating, "deletion can begin at any time")
	}
	add(Unrecognized, eventRestart, PhasePending, "what storage holds makes no sense: its VM is looked for again, and its node awaited")
	return NewTable("phase", string(PhaseNew), nil, edges)
}

func newDeletionTable() *Table {
	var edges []Edge
	add := func(from Stage, on Event, to Stage, why string) {
		edges = append(edges, Edge{string(from), on, string(to), why})
	}
	add(StageNone, eventDelete, StageGetVMStatus, "deletion was asked for")
	add(StageGetVMStatus, eventLocated, StageInitiateDrain, "a node carries workload that must leave first")
	add(StageInitiateDrain, EventDrained, StageInitiateVMDeletion, "the workload has left")
	add(StageInitiateDrain, EventForced, StageDeleteVolumeAttachments, "a forced drain does not wait for volumes")
	add(StageInitiateDrain, eventNoNode, StageInitiateVMDeletion, "nothing to drain")
	add(StageDeleteVolumeAttachments, eventDetached, StageInitiateVMDeletion, "no volume is held any more, or its time is up")
	add(StageDeleteVolumeAttachments, eventNoNode, StageInitiateVMDeletion, "nothing to detach")
	add(StageInitiateVMDeletion, eventNodeFound, StageInitiateDrain, "its node has joined after the drain, and its VM is still there: the node's pods leave first")
	add(StageInitiateVMDeletion, eventVMDeleted, StageInitiateNodeDeletion, "the provider said that the VM is gone")
	add(StageInitiateVMDeletion, eventNeverCreated, StageInitiateNodeDeletion, "it is recorded that no create was ever issued")
	add(StageInitiateNodeDeletion, eventNodeDeleted, StageInitiateFinalizerRemoval, "no node of it is left")
	add(StageInitiateNodeDeletion, eventNoNode, StageInitiateFinalizerRemoval, "it had none, or the node of that name is not its own")
	add(StageInitiateFinalizerRemoval, eventNodeFound, StageInitiateNodeDeletion, "its kubelet was slow to stop and has registered it again")
	add(StageInitiateFinalizerRemoval, EventReleased, StageGone, "VM and node are gone")
	for _, s := range []Stage{StageGetVMStatus, StageInitiateDrain, StageInitiateVMDeletion, StageInitiateNodeDeletion} {
		add(s, eventStageFailed, s, "a deletion is tried until it succeeds")
	}
	add(Unrecognized, eventRestart, StageGetVMStatus, "what storage holds makes no sense: every stage can be done again")
	return NewTable("deletion", string(StageNone), []string{string(StageGone)}, edges)
}

func newUpdateTable() *Table {
	var edges []Edge
	add := func(from Stage, on Event, to Stage, why string) {
		edges = append(edges, Edge{string(from), on, string(to), why})
	}
	add(StageCandidate, eventSelected, StageSelected, "its owner or a user says that it is its turn")
	add(StageSelected, eventWithdrawn, StageCandidate, "rolled back or deselected before the agent was told")
	add(StageSelected, eventStageFailed, StageSelected, "the node could not be drained or written, which is tried again")
	add(StageSelected, eventUpdateFailed, StageUpdateFailed, "the time was up before the node was empty")
	add(StageSelected, EventDrained, StageReady, "the workload has left: from here on the agent may be at work")
	add(StageReady, eventStageFailed, StageReady, "the node could not be written, which is tried again")
	add(StageReady, eventUpdated, StageUpdateSuccessful, "the agent says so")
	add(StageReady, eventUpdateFailed, StageUpdateFailed, "the agent says so, or it did not answer in time")
	add(StageReady, eventOutdated, StageCandidate, "withdrawn while the agent was at work: the node is not what the machine's owner says, and needs another update")
	add(StageUpdateFailed, eventUpdated, StageUpdateSuccessful, "the agent tried again and is done")
	add(StageUpdateFailed, eventWithdrawn, StageCandidate, "nobody wants the update any more, and the node is healthy")
	add(StageUpdateSuccessful, eventReturned, StageInService, "the owner has taken it over, and the node is healthy")
	add(StageUpdateSuccessful, eventUnhealthy, StageInService, "not healthy in time: the health clock decides")
	add(Unrecognized, eventRestart, StageSelected, "what storage holds makes no sense: the node says how far its update is")
	return NewTable("update", string(StageCandidate), []string{string(StageInService)}, edges)
}

// Guard returns why a move must not be made, from the observation that its plan was decided from. The zero Why
// allows the move. A guard is an interlock: it repeats a check of the decision right before the move is stored,
// so that a mistake in a decision costs no VM.
type Guard func(o *Observation, p *Policy) decision.Why

// GuardOf returns the guard of an edge of the tables of machines, or nil.
//
//   - A VM is created only if the fleet is not frozen, and the machine has no VM and is not being deleted.
//   - A machine fails for its health only with a grant of the replacement budget, if there is one, and not
//     while the fleet is frozen.
//   - The deletion passes the VM only if DeleteMachine has answered OK or NOT_FOUND, or if the status records
//     that no VM was ever created.
//   - The finalizer is removed only if the node is gone, or is not the machine's, or there is no cluster.
func GuardOf(table string, e Edge) Guard {
	switch {
	case table == phases.Name && e.On == eventCreate:
		return guardCreate
	case table == phases.Name && (e.On == eventHealthTimeout || e.On == eventLost):
		return guardFailure
	case table == deletions.Name && e.From == string(StageInitiateVMDeletion) && e.To == string(StageInitiateNodeDeletion):
		return guardVMDeleted
	case table == deletions.Name && e.From == string(StageInitiateFinalizerRemoval) && e.To == string(StageGone):
		return guardRelease
	}
	return nil
}

func guardCreate(o *Observation, _ *Policy) (why decision.Why) {
	switch {
	case o.Frozen:
		why.Reason = reasonGuardFrozen
	case o.Machine.Deleted():
		why.Reason = reasonGuardDeleted
	case o.Machine.Spec.ProviderID != "":
		why = decision.Why{Reason: reasonGuardHasVM, Name: o.Machine.Spec.ProviderID}
	}
	return why
}

func guardFailure(o *Observation, _ *Policy) (why decision.Why) {
	switch {
	case o.Frozen:
		why.Reason = reasonGuardFrozen
	case o.Budgeted && (o.Grant == nil || !o.Grant.Allowed):
		why.Reason = reasonGuardNotGranted
	}
	return why
}

func guardVMDeleted(o *Observation, _ *Policy) (why decision.Why) {
	deleted := o.VMDeleted != nil && (o.VMDeleted.Code == codes.OK || o.VMDeleted.Code == codes.NotFound)
	if never := o.Machine.Status.NeverCreated && o.Machine.Spec.ProviderID == ""; !deleted && !never {
		why.Reason = reasonGuardVM
	}
	return why
}

func guardRelease(o *Observation, p *Policy) (why decision.Why) {
	d := newDecider(o, p.WithDefaults(), time.Time{})
	deleted := o.NodeDeleted != nil && (o.NodeDeleted.Code == codes.OK || o.NodeDeleted.Code == codes.NotFound)
	switch {
	case o.NoCluster || deleted:
	case o.Node == nil || o.Node.cached() || o.Node.Failure != "":
		why.Reason = reasonGuardNodeUnknown
	case o.Node.Node != nil && d.ownsNode(o.Node.Node):
		why = decision.Why{Reason: reasonGuardNode, Name: o.Node.Node.Name}
	}
	return why
}
