package machine

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// reconcileDeletion takes a machine through the stages of its deletion: find the node, drain it, detach
// volumes, delete the VM, delete the node, remove the finalizer. Each stage is stored before its first call.
// A stage with nothing to do is skipped, see skipEvent.
func (d *decider) reconcileDeletion() Plan {
	if !d.m.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	stage := d.m.Status.DeletionStage()
	if stage == StageNone {
		return d.beginDeletion()
	}
	if plan, found := d.deletionBackoff(); found {
		return plan
	}
	switch stage {
	case StageGetVMStatus:
		return d.locateNode()
	case StageInitiateDrain:
		return d.drainStage()
	case StageDeleteVolumeAttachments:
		return d.detachVolumes()
	case StageInitiateVMDeletion:
		return d.deleteVM()
	case StageInitiateNodeDeletion:
		return d.deleteNode()
	case StageInitiateFinalizerRemoval:
		return d.removeFinalizer()
	}
	return d.advanceDeletion(eventRestart, decision.Why{Reason: reasonRestart, Name: string(d.m.Status.LastOperation.Stage)})
}

// beginDeletion stores phase Terminating and the first stage with work to do.
func (d *decider) beginDeletion() Plan {
	from := d.m.Status.Phase
	why := decision.Why{Reason: reasonTerminating, Detail: string(from)}
	if from == PhaseNew {
		why.Detail = "new"
	}
	neverCreated := d.m.certainlyNoVM()
	first, moves, drained := d.advanceStages(StageNone, eventDelete)
	plan := d.move(eventDelete, why, func(s *Status) {
		s.NeverCreated = neverCreated
		if from != PhaseTerminating {
			s.DeletedFrom = from
		}
		if drained {
			d.recordDrained(s)
		}
		d.enterStage(s, first)
	})
	plan.Moves = append(plan.Moves, moves...)
	return plan
}

// deletionBackoff waits for the next attempt of a failed stage. A stage that force may skip does not wait
// once force is due.
func (d *decider) deletionBackoff() (Plan, bool) {
	op := &d.m.Status.LastOperation
	at := d.retryAt(deletionCallOf(op.Stage))
	if at.IsZero() {
		return Plan{}, false
	}
	var due time.Time
	if op.Stage == StageGetVMStatus || op.Stage == StageInitiateDrain {
		if d.forceDue() {
			return Plan{}, false
		}
		due = d.forceAt()
	}
	return d.retryLater(string(op.Stage), at, due), true
}

// deletionCallOf returns the driver call whose rows in the recovery table apply to a failed stage. A failure
// of the cluster is retried as one of DeleteMachine with the same code.
func deletionCallOf(stage Stage) codes.Call {
	if stage == StageGetVMStatus {
		return codes.GetMachineStatus
	}
	return codes.DeleteMachine
}

// locateNode finds the node to drain: by the recorded name, by the machine's label on it, or by the name that
// the driver returns.
func (d *decider) locateNode() Plan {
	if d.o.NoCluster {
		return d.advanceDeletion(eventLocated, decision.Why{Reason: reasonNoNode})
	}
	if !d.nodeRead() || d.missingFromCache() {
		return d.findNode()
	}
	node := d.node()
	if node != nil && d.ownsNode(node) {
		return d.advanceDeletion(eventLocated, decision.Why{Reason: reasonDrain, Name: node.Name})
	}
	if d.m.Spec.NodeName == "" && !d.neverCreated() {
		if plan, found := d.nodeFromDriver(); found {
			return plan
		}
	}
	plan := d.continueWithoutNode(eventLocated)
	if d.nodeIsForeign() {
		plan.Warn = d.foreignNode()
	}
	return plan
}

// nodeFromDriver asks the driver for the node's name and records it, because the driver can't tell once the VM
// is gone. It records the VM's ID too, because a node of that name may belong to another VM. If the driver can't
// be called or fails, the deletion waits until force is due, and then continues without the name.
func (d *decider) nodeFromDriver() (Plan, bool) {
	vm := d.o.VM
	if vm == nil {
		if d.o.Class == nil {
			return d.classMissing(), !d.forceDue()
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}, true
	}
	switch vm.Code {
	case codes.OK, codes.NotFound, codes.Uninitialized, codes.Unimplemented, codes.OutOfRange:
	default:
		return d.deletionFailed(vm.Outcome), !d.forceDue()
	}
	if vm.NodeName == "" || vm.ClaimedBy != "" {
		return Plan{}, false
	}
	changed := d.m.Clone()
	changed.Spec.NodeName = vm.NodeName
	if changed.Spec.ProviderID == "" {
		changed.Spec.ProviderID = vm.ProviderID
	}
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonNodeNamed, Name: vm.NodeName}}, true
}

// deleteVM calls DeleteMachine until it answers OK or NOT_FOUND once. It skips the call only if the status
// records that no VM was ever created. Before each call it looks for the node, which may have joined while an
// earlier call failed or a hook held the VM.
//
// The answer to a create may be lost, so that no provider ID is recorded. If nodeFromDriver has found no VM
// either, DeleteMachine is called with the machine's name alone. After ALREADY_EXISTS the VM of that name
// belongs to somebody else: DeleteMachine is not called, unless an earlier create may have created a VM. A
// create that takes effect later leaves a VM without a machine, which package safety/orphan finds and
// deletes.
func (d *decider) deleteVM() Plan {
	if on := d.skipEvent(StageInitiateVMDeletion); on != "" {
		return d.advanceDeletion(on, decision.Why{Reason: reasonNoVM})
	}
	answer := d.o.VMDeleted
	if answer == nil {
		if plan, found := d.drainLateNode(); found {
			return plan
		}
		if plan, found := d.awaitHooks(d.p.Keys.PreTerminateHook); found {
			return plan
		}
		if plan, found := d.lateNodeName(); found { // after the hooks: recording the name changes the machine, which wakes it up
			return plan
		}
		if d.o.Class == nil {
			return d.classMissing()
		}
		return Plan{Effect: DeleteVM{}, Why: decision.Why{Reason: reasonDeleteVM, Name: vmName(d.m)}}
	}
	if answer.Code != codes.OK && answer.Code != codes.NotFound {
		return d.deletionFailed(answer.Outcome)
	}
	return d.advanceDeletion(eventVMDeleted, decision.Why{Reason: reasonVMDeleted, Name: vmName(d.m)})
}

// vmName returns the name of a machine's VM for messages.
func vmName(m *Machine) string {
	if id := m.Spec.ProviderID; id != "" {
		return id
	}
	return "of machine " + m.Name
}

// deleteNode deletes the node of a VM that is gone, also one that joined while the VM was being deleted. It
// leaves a node of another machine alone.
func (d *decider) deleteNode() Plan {
	if answer := d.o.NodeDeleted; answer != nil {
		if !d.nodeDeleted() {
			return d.deletionFailed(*answer)
		}
		name := d.m.Spec.NodeName
		if d.o.Node != nil && d.o.Node.Node != nil {
			name = d.o.Node.Node.Name
		}
		return d.advanceDeletion(eventNodeDeleted, decision.Why{Reason: reasonNodeDeleted, Name: name})
	}
	if on := d.skipEvent(StageInitiateNodeDeletion); on != "" {
		return d.advanceDeletion(on, decision.Why{Reason: reasonNodeGone})
	}
	if !d.nodeReadAfterVM() {
		return d.readNode(true)
	}
	node := d.node()
	return Plan{Effect: DeleteNode{node.Name, node.UID}, Why: decision.Why{Reason: reasonDeleteNode, Name: node.Name}}
}

// nodeDeleted reports whether this pass has deleted the node.
func (d *decider) nodeDeleted() bool {
	answer := d.o.NodeDeleted
	return answer != nil && (answer.Code == codes.OK || answer.Code == codes.NotFound)
}

// nodeReadAfterVM reports whether the node was read live after the VM was gone, when no node of it can join any
// more. For a machine that never had a VM any live read is enough.
func (d *decider) nodeReadAfterVM() bool {
	return d.nodeRead() && !d.o.Node.cached() && d.o.Node.Failure == "" && (d.o.Node.Gone || d.neverCreated())
}

// removeFinalizer removes the finalizer, and with it the object. If an earlier pass deleted the node, the node is
// looked for once more, because a kubelet that stops slowly may have registered it again.
func (d *decider) removeFinalizer() Plan {
	switch {
	case d.o.NoCluster || d.nodeDeleted():
	case !d.nodeReadAfterVM():
		return d.readNode(true)
	case d.hasOwnNode():
		return d.advanceDeletion(eventNodeFound, decision.Why{Reason: reasonNodeAgain, Name: d.o.Node.Node.Name})
	}
	createAnnounced := !d.neverCreated() || d.m.Status.OnlyRefused // otherwise there never was a token
	if plan, found := d.removeToken(); found && createAnnounced {
		return plan
	}
	changed := d.m.Clone()
	changed.RemoveFinalizer(Finalizer)
	plan := Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonReleased}, Warn: d.tokenNotDeleted()}
	plan.Moves = []Move{deletionMove(StageInitiateFinalizerRemoval, EventReleased, StageGone)}
	return plan
}

func (d *decider) neverCreated() bool {
	return d.m.Status.NeverCreated && d.m.Spec.ProviderID == ""
}

// hasOwnNode reports whether the node that was read belongs to this machine.
func (d *decider) hasOwnNode() bool {
	node := d.node()
	return node != nil && d.ownsNode(node)
}

// advanceDeletion plans the write that moves the deletion along an edge of the table, and on over stages with
// nothing to do. Only the stage that it ends in is stored.
func (d *decider) advanceDeletion(on Event, why decision.Why) Plan {
	to, moves, drained := d.advanceStages(d.m.Status.DeletionStage(), on)
	plan := d.setStatus(why, func(s *Status) {
		d.copyVMState(s)
		if drained {
			d.recordDrained(s)
		}
		d.enterStage(s, to)
	})
	plan.Moves = moves
	return plan
}

// advanceStages follows an event from a stage, and skips stages with nothing to do. It returns the
// stage that it ends in, the moves there, and whether they pass the drain.
func (d *decider) advanceStages(at Stage, on Event) (to Stage, moves []Move, drained bool) {
	for on != "" {
		drained = drained || at == StageInitiateDrain
		next, _ := deletions.Next(string(at), on)
		moves = append(moves, deletionMove(at, on, Stage(next)))
		at = Stage(next)
		on = d.skipEvent(at)
	}
	return at, moves, drained
}

// recordDrained records which node a drain has emptied, and whether force was due.
func (d *decider) recordDrained(s *Status) {
	s.DrainedNode = ""
	if d.o.Node != nil && d.hasOwnNode() {
		s.DrainedNode = d.o.Node.Node.UID
	}
	s.DrainForced = s.DrainForced || !d.now.Before(d.forceDeadline())
}

// enterStage begins a stage, and its clock.
func (d *decider) enterStage(s *Status, stage Stage) {
	s.LastOperation = d.operation(OperationDelete, StateProcessing, stage)
	s.StageSince, s.HeldSince = d.stamp(), time.Time{}
}

// stageBegan returns when the current stage began its own work. If hooks block the stage, or another program
// began it, its clock counts from the deletion.
func (d *decider) stageBegan() time.Time {
	if since := d.validPast(d.m.Status.StageSince); since.After(d.m.DeletedAt) {
		return since
	}
	return d.m.DeletedAt
}

// skipEvent returns the event that skips a stage with nothing to do. It is empty if the stage has work to do, or
// if that is not known yet.
func (d *decider) skipEvent(stage Stage) Event {
	switch stage {
	case StageGetVMStatus:
		if d.o.NoCluster {
			return eventLocated
		}
	case StageInitiateDrain, StageDeleteVolumeAttachments:
		if d.o.NoCluster || d.nodeRead() && !d.missingFromCache() && !d.hasOwnNode() {
			return eventNoNode
		}
	case StageInitiateVMDeletion:
		if d.neverCreated() {
			return eventNeverCreated
		}
	case StageInitiateNodeDeletion:
		if d.o.NoCluster || d.nodeReadAfterVM() && !d.hasOwnNode() {
			return eventNoNode
		}
	}
	return ""
}

// deletionFailed records a failed stage, which is retried.
func (d *decider) deletionFailed(answer Outcome) Plan {
	stage := d.m.Status.DeletionStage()
	why := decision.Why{Reason: reasonDeleteFailed, Name: string(stage), Code: answer.Code, Detail: answer.Message}
	plan := d.setStatus(why, func(s *Status) {
		d.copyVMState(s)
		s.LastOperation = d.failure(OperationDelete, stage, answer.Code, answer.Message)
	})
	plan.Moves = []Move{deletionMove(stage, eventStageFailed, stage)}
	return plan
}

// classMissing records that the driver can't be called without the class.
func (d *decider) classMissing() Plan {
	why := decision.Why{Reason: reasonClassGone, Name: d.m.Spec.Class.Name}
	return d.deletionFailed(Outcome{codes.PreconditionFailed, why.String()})
}

func deletionMove(from Stage, on Event, to Stage) Move {
	return Move{Table: deletions.Name, From: string(from), On: on, To: string(to)}
}

// awaitHooks waits while the machine has annotations that begin with prefix. Such a hook blocks a stage of the
// deletion; the program that added it removes it again. Hooks block a stage no longer than
// Policy.HookTimeout altogether, and not at all if the label forces the deletion.
//
// The stage's own clock starts when no hook blocks it any longer.
func (d *decider) awaitHooks(prefix string) (Plan, bool) {
	if d.forcedByLabel() {
		return Plan{}, false
	}
	status := &d.m.Status
	since, until := d.validPast(status.HeldSince), time.Time{}
	blockedBefore := status.StageSince.IsZero() && !since.IsZero()
	if since.IsZero() {
		since = d.stamp()
	}
	hook := d.firstHook(prefix)
	why := decision.Why{Reason: reasonAwaitHook, Name: hook}
	if timeout := d.p.HookTimeout; timeout > 0 {
		until = d.deadlineAfter(since, timeout)
		why.For = until.Sub(d.now)
	}
	op := d.operation(OperationDelete, StateProcessing, status.DeletionStage())
	if hook == "" || !until.IsZero() && !d.now.Before(until) {
		if !blockedBefore {
			return Plan{}, false
		}
		return d.setStatus(decision.Why{Reason: reasonHookReleased, Name: string(op.Stage)}, func(s *Status) {
			d.copyVMState(s)
			s.LastOperation, s.StageSince = op, d.stamp()
		}), true
	}
	op.Message = "waiting for hook " + strconv.Quote(hook) + " to be taken off"
	if last := &status.LastOperation; !blockedBefore || last.State != op.State || last.Message != op.Message {
		return d.setStatus(why, func(s *Status) {
			d.copyVMState(s)
			s.LastOperation, s.StageSince, s.HeldSince = op, time.Time{}, since
		}), true
	}
	return Plan{At: until, Why: why}, true
}

// firstHook returns the first annotation with a prefix, in the order of names. Empty: there is none.
func (d *decider) firstHook(prefix string) (first string) {
	if prefix == "" {
		return ""
	}
	for key := range d.m.Annotations {
		if strings.HasPrefix(key, prefix) && (first == "" || key < first) {
			first = key
		}
	}
	return first
}

// forcedByLabel reports whether the label Keys.ForceDeletion forces the deletion.
func (d *decider) forcedByLabel() bool { return d.labelTrue(d.p.Keys.ForceDeletion) }

// forceDeadline returns when force becomes due regardless of the node's health. Force on volumes is due from the
// end of a forced drain on.
func (d *decider) forceDeadline() time.Time {
	op := &d.m.Status.LastOperation
	switch {
	case d.forcedByLabel():
		return d.m.DeletedAt
	case op.Stage == StageDeleteVolumeAttachments && op.Forced:
		return d.validPast(op.Time)
	}
	return d.deadlineAfter(d.stageBegan(), d.p.drainTimeout(d.m))
}

// forceAt returns when force becomes due: at once with the label, after the drain timeout of the stage, or once
// the node was unresponsive for Policy.Unresponsive. A node that was read before that moment is read again,
// because it may respond again.
func (d *decider) forceAt() time.Time {
	at := d.forceDeadline()
	if d.o.Node == nil || d.o.Node.Node == nil || d.nodeIsForeign() {
		return at
	}
	since, unresponsive := d.o.Node.Node.UnresponsiveSince()
	if !unresponsive {
		return at
	}
	due := since.Add(d.p.Unresponsive).Add(time.Second)
	if d.o.Node.Read.Live() && !d.o.Node.Read.Covers(due) && !d.now.Before(due) {
		due = d.now.Add(time.Second) // the next pass reads it
	}
	if due.Before(at) {
		at = due
	}
	return at
}

// forceDue reports whether force is due now.
func (d *decider) forceDue() bool { return !d.now.Before(d.forceAt()) }

// findNode reads the node. Until forceDeadline a failed read delays the deletion. After that the deletion continues
// without the node, because a cluster that does not answer must not keep a VM forever.
func (d *decider) findNode() Plan {
	plan := d.readNode(false)
	if find, ok := plan.Effect.(FindNode); ok && !d.now.Before(d.forceDeadline()) {
		find.Forced = true
		plan.Effect = find
	}
	return plan
}

// continueWithoutNode continues the deletion without a node. It warns if the node could not be read.
func (d *decider) continueWithoutNode(on Event) Plan {
	plan := d.advanceDeletion(on, decision.Why{Reason: reasonNoNode})
	if node := d.o.Node; node != nil && node.Failure != "" {
		plan.Warn = decision.Why{Reason: reasonNodeUnread, Name: d.m.Name, Detail: node.Failure}
	}
	return plan
}

// forceDueByCacheOnly reports whether force is due only because a cache shows the node as unresponsive. A node
// that responds again may run its pods, which write to their volumes.
func (d *decider) forceDueByCacheOnly() bool {
	return d.o.Node.cached() && d.forceDue() && d.now.Before(d.forceDeadline())
}
