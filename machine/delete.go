package machine

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// remove takes a machine that is being deleted through the stages of its deletion:
// find the node, drain it, detach volumes, delete the VM, delete the node, remove
// the finalizer. Each is stored before the first call that it makes. One that has
// nothing to do is passed over, see skip.
func (d deletion) remove() Plan {
	if !d.m.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	stage := d.m.Status.DeletionStage()
	if stage == StageNone {
		return d.terminate()
	}
	if plan, wait := d.removeGate(); wait {
		return plan
	}
	switch stage {
	case StageGetVMStatus:
		return d.locate()
	case StageInitiateDrain:
		return d.drain()
	case StageDeleteVolumeAttachments:
		return d.detach()
	case StageInitiateVMDeletion:
		return d.deleteVM()
	case StageInitiateNodeDeletion:
		return d.deleteNode()
	case StageInitiateFinalizerRemoval:
		return d.release()
	}
	return d.stage(eventRestart, decision.Why{Reason: reasonRestart, Name: string(d.m.Status.LastOperation.Stage)})
}

// terminate begins a deletion.
func (d deletion) terminate() Plan {
	from := d.m.Status.Phase
	why := decision.Why{Reason: reasonTerminating, Detail: string(from)}
	if from == PhaseNew {
		why.Detail = "new"
	}
	never := d.m.untouched()
	var moves [len(Plan{}.Moves)]Move
	at, drained := d.pass(StageNone, eventDelete, moves[1:])
	plan := d.move(eventDelete, why, func(s *Status) {
		s.NeverCreated = never
		if from != PhaseTerminating {
			s.DeletedFrom = from
		}
		if drained {
			d.noteDrained(s)
		}
		d.enter(s, at)
	})
	moves[0] = plan.Moves[0]
	plan.Moves = moves
	return plan
}

// removeGate holds a failed stage back until it may be tried again. A stage
// that force may skip does not wait once force is due.
func (d deletion) removeGate() (Plan, bool) {
	op := &d.m.Status.LastOperation
	at := d.retryAt(removeCall(op.Stage))
	if at.IsZero() {
		return Plan{}, false
	}
	var due time.Time
	if op.Stage == StageGetVMStatus || op.Stage == StageInitiateDrain {
		if d.forced() {
			return Plan{}, false
		}
		due = d.forceAt()
	}
	return d.retryLater(string(op.Stage), at, due), true
}

// removeCall is the driver call whose recovery governs a failed stage; the
// cluster's answers recover as an unknown error of DeleteMachine.
func removeCall(stage Stage) codes.Call {
	if stage == StageGetVMStatus {
		return codes.GetMachineStatus
	}
	return codes.DeleteMachine
}

// locate finds out whether there is a node to drain: under the recorded name,
// else by the machine's name on it, else under the name the driver gives.
func (d deletion) locate() Plan {
	if d.o.NoCluster {
		return d.stage(eventLocated, decision.Why{Reason: reasonNoNode})
	}
	if !d.looked() || d.unseen() {
		return d.find()
	}
	node := d.node()
	if node != nil && d.ours(node) {
		return d.stage(eventLocated, decision.Why{Reason: reasonDrain, Name: node.Name})
	}
	if d.m.Spec.NodeName == "" && !d.neverCreated() {
		if plan, busy := d.askForNode(); busy {
			return plan
		}
	}
	out := d.withoutNode(eventLocated)
	if d.isForeign() {
		out.Warn = d.foreign()
	}
	return out
}

// askForNode asks the driver for the node's name, and records it: when the VM is
// gone, the driver can't say it any more. The VM's ID is recorded with it, because
// a node of that name may be another VM's.
func (d deletion) askForNode() (Plan, bool) {
	vm := d.o.VM
	if vm == nil {
		if d.o.Class == nil {
			return d.withoutClass(), !d.forced()
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}, true
	}
	switch vm.Code {
	case codes.OK, codes.NotFound, codes.Uninitialized, codes.Unimplemented, codes.OutOfRange:
	default:
		return d.stageFailed(vm.Outcome), !d.forced()
	}
	if vm.NodeName == "" || vm.Of != "" {
		return Plan{}, false
	}
	changed := d.m.Clone()
	changed.Spec.NodeName = vm.NodeName
	if changed.Spec.ProviderID == "" {
		changed.Spec.ProviderID = vm.ProviderID
	}
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonNodeNamed, Name: vm.NodeName}}, true
}

// deleteVM calls DeleteMachine until it answers OK or NOT_FOUND; one such answer is enough. Only a
// machine for which it is recorded that no VM was ever made does without. Before each call the node is
// looked for, because it may have joined while an earlier call failed or a hook held the VM.
//
// If no provider ID is recorded, since the answer to a create was lost, and askForNode has found no
// VM either, DeleteMachine is called with the machine's name alone. After ALREADY_EXISTS it is not,
// unless an earlier create may have made a VM: the VM of that name is another's. A create that takes effect after
// that leaves a VM that no machine owns: package safety/orphan finds and deletes it.
func (d deletion) deleteVM() Plan {
	if on := d.skip(StageInitiateVMDeletion); on != "" {
		return d.stage(on, decision.Why{Reason: reasonNoVM})
	}
	answer := d.o.VMDeleted
	if answer == nil {
		if plan, late := d.drainLate(); late {
			return plan
		}
		if plan, held := d.hold(d.p.Keys.PreTerminateHook); held {
			return plan
		}
		if plan, asks := d.nameLate(); asks { // not while a hook holds the VM: a change of the machine ends each wait
			return plan
		}
		if d.o.Class == nil {
			return d.withoutClass()
		}
		return Plan{Effect: DeleteVM{}, Why: decision.Why{Reason: reasonDeleteVM, Name: vmName(d.m)}}
	}
	if answer.Code != codes.OK && answer.Code != codes.NotFound {
		return d.stageFailed(answer.Outcome)
	}
	return d.stage(eventVMDeleted, decision.Why{Reason: reasonVMDeleted, Name: vmName(d.m)})
}

// vmName is what a sentence calls a machine's VM.
func vmName(m *Machine) string {
	if id := m.Spec.ProviderID; id != "" {
		return id
	}
	return "of machine " + m.Name
}

// deleteNode removes the node of a VM that is gone, also one that joined while
// the VM was being deleted. A node that is another machine's is left alone.
func (d deletion) deleteNode() Plan {
	if answer := d.o.NodeDeleted; answer != nil {
		if !d.nodeDeleted() {
			return d.stageFailed(*answer)
		}
		name := d.m.Spec.NodeName
		if d.o.Node != nil && d.o.Node.Node != nil {
			name = d.o.Node.Node.Name
		}
		return d.stage(eventNodeDeleted, decision.Why{Reason: reasonNodeDeleted, Name: name})
	}
	if on := d.skip(StageInitiateNodeDeletion); on != "" {
		return d.stage(on, decision.Why{Reason: reasonNodeGone})
	}
	if !d.knowsNode() {
		return d.look(true)
	}
	node := d.node()
	return Plan{Effect: DeleteNode{node.Name, node.UID}, Why: decision.Why{Reason: reasonDeleteNode, Name: node.Name}}
}

// nodeDeleted reports whether this pass has deleted the node.
func (d deletion) nodeDeleted() bool {
	answer := d.o.NodeDeleted
	return answer != nil && (answer.Code == codes.OK || answer.Code == codes.NotFound)
}

// knowsNode reports whether the node was read live, after the VM was gone: no node of it can
// come any more. A machine that never had a VM has no node to come.
func (d deletion) knowsNode() bool {
	return d.looked() && !d.o.Node.cached() && d.o.Node.Failure == "" && (d.o.Node.Gone || d.neverCreated())
}

// release removes the finalizer, and with it the record. The node is looked for once more where
// that was done by an earlier pass: a kubelet that was slow to stop may have registered it again.
func (d deletion) release() Plan {
	switch {
	case d.o.NoCluster || d.nodeDeleted():
	case !d.knowsNode():
		return d.look(true)
	case d.hasNode():
		return d.stage(eventNodeFound, decision.Why{Reason: reasonNodeAgain, Name: d.o.Node.Node.Name})
	}
	bootstrap := token(d)
	if plan, busy := bootstrap.remove(); busy && (!d.neverCreated() || d.m.Status.OnlyRefused) {
		return plan
	}
	changed := d.m.Clone()
	changed.RemoveFinalizer(Finalizer)
	plan := Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonReleased}, Warn: bootstrap.left()}
	plan.Moves[0] = deletionMove(StageInitiateFinalizerRemoval, EventReleased, StageGone)
	return plan
}

func (d deletion) neverCreated() bool {
	return d.m.Status.NeverCreated && d.m.Spec.ProviderID == ""
}

// hasNode reports whether the node that was looked for is this machine's.
func (d deletion) hasNode() bool {
	node := d.node()
	return node != nil && d.ours(node)
}

// stage plans the write that takes the deletion along an edge of the table, and on along the
// edges of stages that have nothing to do, to the first that has. Only that one is stored.
func (d deletion) stage(on Event, why decision.Why) Plan {
	var moves [len(Plan{}.Moves)]Move
	at, drained := d.pass(d.m.Status.DeletionStage(), on, moves[:])
	plan := d.setStatus(why, func(s *Status) {
		d.noteVM(s)
		if drained {
			d.noteDrained(s)
		}
		d.enter(s, at)
	})
	plan.Moves = moves
	return plan
}

// pass moves on from a stage, over those that have nothing to do. It returns where that leads, and whether
// a drain is behind it.
func (d deletion) pass(at Stage, on Event, moves []Move) (to Stage, drained bool) {
	for i := 0; on != ""; i++ {
		drained = drained || at == StageInitiateDrain
		next, _ := deletions.Next(string(at), on)
		moves[i] = deletionMove(at, on, Stage(next))
		at = Stage(next)
		on = d.skip(at)
	}
	return at, drained
}

// noteDrained records which node a drain has ended with, and whether force was due.
func (d deletion) noteDrained(s *Status) {
	s.DrainedNode = ""
	if d.o.Node != nil && d.hasNode() {
		s.DrainedNode = d.o.Node.Node.UID
	}
	s.DrainForced = s.DrainForced || !d.now.Before(d.forceAnyway())
}

// enter begins a stage, and its clock.
func (d deletion) enter(s *Status, stage Stage) {
	s.LastOperation = d.operation(OperationDelete, StateProcessing, stage)
	s.StageSince, s.HeldSince = d.stamp(), time.Time{}
}

// begun is when the present stage began its own work. What an earlier version or another program
// has begun counts from the deletion.
func (d deletion) begun() time.Time {
	if since := d.past(d.m.Status.StageSince); since.After(d.m.DeletedAt) {
		return since
	}
	return d.m.DeletedAt
}

// skip returns the event that passes over a stage that has nothing to do. Empty: it has, or
// that is not known yet.
func (d deletion) skip(stage Stage) Event {
	switch stage {
	case StageGetVMStatus:
		if d.o.NoCluster {
			return eventLocated
		}
	case StageInitiateDrain, StageDeleteVolumeAttachments:
		if d.o.NoCluster || d.looked() && !d.unseen() && !d.hasNode() {
			return eventNoNode
		}
	case StageInitiateVMDeletion:
		if d.neverCreated() {
			return eventNeverCreated
		}
	case StageInitiateNodeDeletion:
		if d.o.NoCluster || d.knowsNode() && !d.hasNode() {
			return eventNoNode
		}
	}
	return ""
}

// stageFailed records a failure in a stage, which is tried again.
func (d deletion) stageFailed(answer Outcome) Plan {
	stage := d.m.Status.DeletionStage()
	why := decision.Why{Reason: reasonDeleteFailed, Name: string(stage), Code: answer.Code, Detail: answer.Message}
	plan := d.setStatus(why, func(s *Status) {
		d.noteVM(s)
		s.LastOperation = d.failure(OperationDelete, stage, answer.Code, answer.Message)
	})
	plan.Moves[0] = deletionMove(stage, eventStageFailed, stage)
	return plan
}

// withoutClass says that a provider call can't be made.
func (d deletion) withoutClass() Plan {
	why := decision.Why{Reason: reasonClassGone, Name: d.m.Spec.Class.Name}
	return d.stageFailed(Outcome{codes.PreconditionFailed, why.String()})
}

func deletionMove(from Stage, on Event, to Stage) Move {
	return Move{Table: deletions.Name, From: string(from), On: on, To: string(to)}
}

// hold waits for the hooks that others have put on a machine that is being
// deleted: annotations that begin with prefix. The program that put one there takes it
// off when the deletion may go on. Once hooks have held a stage back for Policy.HookTimeout, they do
// so no more, whether it was one hook or several; nor do they with the label that forces a deletion.
//
// The clock of the stage's own work begins when the hooks are off.
func (d deletion) hold(prefix string) (Plan, bool) {
	if d.forcedByLabel() {
		return Plan{}, false
	}
	status := &d.m.Status
	since, until := d.past(status.HeldSince), time.Time{}
	held := status.StageSince.IsZero() && !since.IsZero()
	if since.IsZero() {
		since = d.stamp()
	}
	hook := d.hook(prefix)
	why := decision.Why{Reason: reasonHook, Name: hook}
	if timeout := d.p.HookTimeout; timeout > 0 {
		until = d.after(since, timeout)
		why.For = until.Sub(d.now)
	}
	op := d.operation(OperationDelete, StateProcessing, status.DeletionStage())
	if hook == "" || !until.IsZero() && !d.now.Before(until) {
		if !held {
			return Plan{}, false
		}
		return d.setStatus(decision.Why{Reason: reasonUnheld, Name: string(op.Stage)}, func(s *Status) {
			d.noteVM(s)
			s.LastOperation, s.StageSince = op, d.stamp()
		}), true
	}
	op.Message = "waiting for hook " + strconv.Quote(hook) + " to be taken off"
	if last := &status.LastOperation; !held || last.State != op.State || last.Message != op.Message {
		return d.setStatus(why, func(s *Status) {
			d.noteVM(s)
			s.LastOperation, s.StageSince, s.HeldSince = op, time.Time{}, since
		}), true
	}
	return Plan{At: until, Why: why}, true
}

// hook is the first annotation with a prefix, by name; empty: there is none.
func (d deletion) hook(prefix string) (first string) {
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

// forcedByLabel reports whether somebody wants the machine gone without regard.
func (d deletion) forcedByLabel() bool { return d.labelled(d.p.Keys.ForceDeletion) }

// forceAnyway returns when force becomes due, regardless of the node. To detach volumes by force is
// due where the drain has ended so.
func (d deletion) forceAnyway() time.Time {
	op := &d.m.Status.LastOperation
	switch {
	case d.forcedByLabel():
		return d.m.DeletedAt
	case op.Stage == StageDeleteVolumeAttachments && op.Forced:
		return d.past(op.Time)
	}
	return d.after(d.begun(), d.p.drainTimeout(d.m))
}

// forceAt returns when force becomes due: at once with the label; else when the stage has
// worked for the drain timeout, or the node has not answered for
// Policy.Unresponsive. A node that was read before that time may have answered
// since, and is read again.
func (d deletion) forceAt() time.Time {
	at := d.forceAnyway()
	if d.o.Node == nil || d.o.Node.Node == nil || d.isForeign() {
		return at
	}
	since, unresponsive := d.o.Node.Node.unresponsiveSince()
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

// forced reports whether this deletion may disregard what would hold it back.
func (d deletion) forced() bool { return !d.now.Before(d.forceAt()) }

// find looks for the node. A read that fails holds the deletion until force is due, by label or by
// the drain timeout: a cluster that does not answer must not keep a VM.
func (d deletion) find() Plan {
	plan := d.look(false)
	if find, ok := plan.Effect.(FindNode); ok && !d.now.Before(d.forceAnyway()) {
		find.Forced = true
		plan.Effect = find
	}
	return plan
}

// withoutNode takes the deletion on without a node. It warns if that is by force.
func (d deletion) withoutNode(on Event) Plan {
	plan := d.stage(on, decision.Why{Reason: reasonNoNode})
	if node := d.o.Node; node != nil && node.Failure != "" {
		plan.Warn = decision.Why{Reason: reasonNodeUnread, Name: d.m.Name, Detail: node.Failure}
	}
	return plan
}

// forcedByCacheOnly reports whether force is due only by what a cache says of the node. One
// that answers again may run its pods, and write to its volumes.
func (d deletion) forcedByCacheOnly() bool {
	return d.o.Node.cached() && d.forced() && d.now.Before(d.forceAnyway())
}
