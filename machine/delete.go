package machine

import (
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
