package machinepool

import (
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// report plans a write of the status if it has changed. One write holds everything learned: how
// calls ended, the state of group and nodes, and the resulting phase. It allocates nothing while
// the status stays as it is.
func (d *state) report() (Plan, bool) {
	next := d.s.Status
	next.ObservedGeneration = d.s.Generation
	why, unmatched := decision.Why{Reason: ReasonStatus}, decision.Why{}
	if d.bad == nil {
		if note := d.recordCalls(&next); note != (decision.Why{}) {
			why = note
		}
		d.recordGroup(&next)
		d.recordNodes(&next)
		d.recordHeld(&next)
		unmatched = d.recordUnmatched(&next)
	}
	d.recordSpec(&next)
	d.recordFailure(&next)
	move := d.recordPhase(&next)
	if next.Equal(&d.s.Status) {
		return Plan{}, false
	}
	plan := Plan{Write: &UpdateStatus{next.Clone()}, Move: move, Why: why, Warn: unmatched}
	if why.Reason == ReasonStatus {
		plan.Why = d.tally(&next)
	}
	if next.FailureMessage != d.s.Status.FailureMessage && next.FailureReason != "" {
		plan.Warn = decision.Why{Reason: reasonFailed, Name: string(next.FailureReason), Detail: next.FailureMessage}
	}
	return plan, true
}

// tally returns the state of a pool in numbers.
func (d *state) tally(s *Status) decision.Why {
	return decision.Why{Reason: ReasonStatus, Name: string(s.Phase), Count: int64(s.Ready), All: int64(d.wanted())}
}

// call is a call of this pass, with its answer. Nil: it was not made.
type call struct {
	call   Call
	answer *Group
}

// changeAnswers returns the answers to the changing effects of this pass.
func (d *state) changeAnswers() [6]call {
	o := d.o
	return [...]call{
		{CreatePool, o.Created},
		{UpdatePool, o.Updated},
		{ScalePool, o.Scaled},
		{DeleteInstances, o.Deleted},
		{ReplaceInstance, o.Replaced},
		{InstancesDrained, o.Reported},
	}
}

// recordCalls records how calls ended. It returns the Why of the last one that was not recorded yet.
func (d *state) recordCalls(next *Status) (why decision.Why) {
	for _, c := range d.changeAnswers() {
		if c.answer == nil {
			continue
		}
		recordMessage(next, c.answer)
		if note := d.recordChange(next, c); note != (decision.Why{}) {
			why = note
		}
	}
	if g := d.o.Group; g != nil && d.o.Looked {
		recordMessage(next, g)
		if g.Code != codes.OK && g.Code != codes.NotFound {
			if failed := d.recordFailedCall(next, GetPoolStatus, g.Outcome); failed != (decision.Why{}) {
				why = failed
			}
		} else if next.LastOperation.Call == GetPoolStatus && next.LastOperation.State == machine.StateFailed {
			next.LastOperation = d.operation(GetPoolStatus, machine.StateSuccessful)
		}
	}
	if r := d.o.Renewed; r != nil && r.Code != codes.OK {
		if failed := d.recordFailedCall(next, RenewToken, *r); failed != (decision.Why{}) {
			why = failed
		}
	}
	return why
}

// recordMessage records the group ID and the last known state that a driver returned.
func recordMessage(next *Status, g *Group) {
	if g.ID != "" {
		next.GroupID = g.ID
	}
	if g.LastKnown != "" {
		next.LastKnown = g.LastKnown
	}
}

// recordChange records how a changing call ended. Its announcement has set the state Processing, so
// Successful means that the end is recorded already.
func (d *state) recordChange(next *Status, c call) decision.Why {
	if c.answer.Code != codes.OK {
		if c.call == UpdatePool && changesNothing(c.answer.Code) {
			next.Applied = next.Applied.certain()
		}
		return d.recordFailedCall(next, c.call, c.answer.Outcome)
	}
	if next.LastOperation.Call == c.call && next.LastOperation.State == machine.StateSuccessful {
		return decision.Why{}
	}
	replicas := next.LastOperation.Replicas
	next.LastOperation = d.operation(c.call, machine.StateSuccessful)
	next.LastOperation.Replicas = replicas
	if c.call == UpdatePool {
		next.Applied = d.current()
	}
	return decision.Why{Reason: reasonDone, Name: string(c.call)}
}

// recordFailedCall records a failure, unless it has recorded the same one in this pass: that one still holds
// back the next attempt, and after an earlier one no call is made until its wait is over.
func (d *state) recordFailedCall(next *Status, call Call, how machine.Outcome) decision.Why {
	failed := d.operation(call, machine.StateFailed)
	failed.Replicas, failed.Code, failed.Message, failed.Against = d.wanted(), how.Code, how.Message, d.inputs()
	op := &next.LastOperation
	if op.Call == call && op.State == machine.StateFailed && op.Code == how.Code && op.Message == how.Message &&
		!d.retryAt(call).IsZero() {
		return decision.Why{}
	}
	*op = failed
	return decision.Why{Reason: reasonCallFailed, Name: string(call), Code: how.Code, Detail: how.Message}
}

// recordGroup records what the provider says of the group.
func (d *state) recordGroup(next *Status) {
	next.BootstrapReady = d.bootstrapReady()
	switch {
	case d.found():
		next.InfrastructureReady = d.o.Group.Ready
		next.Replicas = int32(min(len(d.instances)-len(d.unlisted), maxReplicas))
	case d.absent():
		next.InfrastructureReady, next.Replicas = false, 0
	}
}

const maxReplicas = 1<<31 - 1

// recordNodes counts the nodes of the instances that the spec names. They are the instances of the group,
// if the group is known.
func (d *state) recordNodes(next *Status) {
	ids := d.s.Spec.ProviderIDs
	if d.o.Nodes == nil && !d.o.NoCluster || !strictlySorted(ids) {
		return
	}
	next.Ready, next.Available = 0, 0
	at, same := 0, true
	for _, id := range ids {
		n := d.node(id)
		if n == nil {
			continue
		}
		d.joined++
		ref := d.nodeRef(id, n)
		same = same && at < len(next.NodeRefs) && next.NodeRefs[at] == ref
		at++
		if !ref.ReadySince.IsZero() {
			next.Ready++
			d.recordAvailable(next, ref.ReadySince)
		}
	}
	next.Unavailable = max(0, d.wanted()-next.Available)
	if !same || at != len(next.NodeRefs) {
		next.NodeRefs = d.nodeRefs(ids, at)
	}
}

// recordAvailable counts a node that has been ready since then as available, or notes when it will be.
func (d *state) recordAvailable(next *Status, since time.Time) {
	at := since.Add(d.s.Spec.MinReady).Add(time.Second) // since lost its fraction of a second
	switch {
	case d.s.Spec.MinReady <= 0 || !d.now.Before(at):
		next.Available++
	case d.next.IsZero() || at.Before(d.next):
		d.next = at
	}
}

func strictlySorted(ids []string) bool {
	last := ""
	for _, id := range ids {
		if id <= last {
			return false
		}
		last = id
	}
	return true
}

// nodeRef returns what the status says of a node. ReadySince is the time of the first decision that finds
// the node ready, because the time in the node's condition is from another clock.
func (d *state) nodeRef(id string, n *machine.Node) NodeRef {
	ref := NodeRef{ProviderID: id, Name: n.Name, UID: n.UID}
	ready := object.FindCondition(n.Conditions, machine.NodeReady)
	if ready == nil || ready.Status != object.True || n.Deleted() {
		return ref
	}
	i, known := slices.BinarySearchFunc(d.s.Status.NodeRefs, id, func(r NodeRef, id string) int { return strings.Compare(r.ProviderID, id) })
	if known {
		if have := &d.s.Status.NodeRefs[i]; have.Name == n.Name && have.UID == n.UID && !have.ReadySince.After(d.now) {
			ref.ReadySince = have.ReadySince
		}
	}
	if ref.ReadySince.IsZero() {
		ref.ReadySince = d.stamp()
	}
	return ref
}

// nodeRefs returns what the status says of the n nodes that are known.
func (d *state) nodeRefs(ids []string, n int) []NodeRef {
	refs := make([]NodeRef, 0, n)
	for _, id := range ids {
		if n := d.node(id); n != nil {
			refs = append(refs, d.nodeRef(id, n))
		}
	}
	return refs
}

// recordSpec records which field can't be acted upon, or that all can.
func (d *state) recordSpec(next *Status) {
	have := object.FindCondition(next.Conditions, ConditionSpecValid)
	if d.bad == nil {
		if have != nil {
			next.Conditions = object.DropCondition(next.Conditions, ConditionSpecValid)
		}
		return
	}
	want := object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: reasonSpecInvalid.String(),
		Message: d.bad.Error(), Since: d.stamp(),
	}
	if have == nil || have.Status != want.Status || have.Message != want.Message {
		next.Conditions = object.SetCondition(next.Conditions, want)
	}
}

// recordFailure records what an operator must act on. It follows from the spec, the last operation
// and the provider's answer, and disappears with them.
func (d *state) recordFailure(next *Status) {
	op := &next.LastOperation
	switch {
	case d.bad != nil:
		next.FailureReason, next.FailureMessage = FailureSpec, d.bad.Error()
	case op.State == machine.StateFailed && op.Call.Terminal(op.Code):
		next.FailureReason, next.FailureMessage = op.Call.failure(), op.Message
	case op.State == machine.StateProcessing && next.FailureReason == op.Call.failure():
		// it is tried again: the failure lasts until that call has ended
	case d.found() && d.o.Group.Failure != "":
		next.FailureReason, next.FailureMessage = FailureProvider, d.o.Group.Failure
	case !d.found() && !d.absent() && next.FailureReason == FailureProvider:
		// not asked since: the failure may last
	default:
		next.FailureReason, next.FailureMessage = "", ""
	}
}

// recordPhase moves the phase to the strongest one whose condition holds.
func (d *state) recordPhase(next *Status) machine.Move {
	from := Phase(phases.State(string(next.Phase)))
	on := d.strongest(from, next)
	to, ok := phases.Next(string(from), on)
	if !ok {
		return machine.Move{}
	}
	next.Phase, next.Since = Phase(to), d.stamp()
	return machine.Move{Table: phases.Name, From: string(from), On: on, To: to}
}

func (d *state) strongest(from Phase, s *Status) machine.Event {
	switch {
	case from == PhaseNew:
		return eventAccepted
	case from == machine.Unrecognized:
		return eventRestart
	case from == PhaseDeleting:
		return eventNotDeleted
	case s.FailureReason != "" || s.FailureMessage != "":
		return eventFailed
	case s.InfrastructureReady && d.running(from, s):
		return eventNodesReady
	case s.InfrastructureReady:
		return eventGroupReady
	case s.BootstrapReady:
		return eventBootstrapReady
	}
	return eventAccepted
}

// running reports whether as many nodes are ready as are wanted. While no nodes are known, the
// answer stays as it was.
func (d *state) running(from Phase, s *Status) bool {
	if d.o.Nodes == nil && !d.o.NoCluster {
		return from == PhaseRunning
	}
	return s.Ready == d.wanted()
}

// Applied is what a group was made from, or is being made from. Its zero value: not known. A
// ClassGeneration of -1: made by one of several different orders.
type Applied struct {
	Template        Template
	FailureDomains  []string
	RollingUpdate   *RollingUpdate
	ClassUID        string
	ClassGeneration int64
	// Doubted: an update is under way, or its outcome is not known. The group may follow that
	// update.
	Doubted bool
}

// Equal reports whether both are the same to a provider.
func (a *Applied) Equal(b *Applied) bool {
	return a.Doubted == b.Doubted && a.ClassUID == b.ClassUID && a.ClassGeneration == b.ClassGeneration &&
		slices.Equal(a.FailureDomains, b.FailureDomains) && samePointer(a.RollingUpdate, b.RollingUpdate) && a.Template.Equal(&b.Template)
}

// Clone returns a copy that shares nothing changeable with a.
func (a *Applied) Clone() Applied {
	c := *a
	c.Template = a.Template.Clone()
	c.FailureDomains = slices.Clone(a.FailureDomains)
	c.RollingUpdate = copied(a.RollingUpdate)
	return c
}

// current returns what a group made or updated now is made from.
func (d *state) current() Applied {
	spec := &d.s.Spec
	a := Applied{Template: spec.Template.Clone(), FailureDomains: spec.FailureDomains, RollingUpdate: spec.RollingUpdate}
	if d.o.Class != nil {
		a.ClassUID, a.ClassGeneration = d.o.Class.UID, d.o.Class.Generation
	}
	return a
}

// ordered returns what a group can be made from once one more create is sent. An earlier create may
// have been carried out without an answer, or may still be, and the driver adopts the group it
// made. If the orders differ, it is not known which of them the group follows until it is updated.
func (d *state) ordered(before *Applied) Applied {
	now := d.current()
	if before.Equal(&Applied{}) || before.Equal(&now) {
		return now
	}
	return Applied{ClassGeneration: severalOrders}
}

// severalOrders is a generation that no class has.
const severalOrders = -1

// uncertain returns what a group follows while an update of it is under way: what it followed before, or
// what the update brings. The pool may be changed back before there is an answer. After a second update
// without an answer nothing is known.
func (a *Applied) uncertain() Applied {
	if a.Doubted {
		return Applied{ClassGeneration: severalOrders}
	}
	b := a.Clone()
	b.Doubted = true
	return b
}

// certain returns what the group follows after an update that changed nothing.
func (a *Applied) certain() Applied {
	b := a.Clone()
	b.Doubted = false
	return b
}

// changesNothing reports whether a code says that a call was rejected before anything was done.
func changesNothing(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.OutOfRange:
		return true
	case codes.OK, codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.NotFound, codes.AlreadyExists, codes.ResourceExhausted,
		codes.PreconditionFailed, codes.Aborted, codes.Internal, codes.Unavailable, codes.DataLoss, codes.Uninitialized:
	}
	return false
}

// asApplied reports whether the group has the pool's current template.
func (d *state) asApplied() bool {
	a, c, spec := &d.s.Status.Applied, d.o.Class, &d.s.Spec
	want := Applied{
		Template: spec.Template, FailureDomains: spec.FailureDomains, RollingUpdate: spec.RollingUpdate,
		ClassUID: c.UID, ClassGeneration: c.Generation,
	}
	return a.Equal(&want)
}
