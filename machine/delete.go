package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// remove takes a machine that is being deleted through the stages of its
// deletion. A stage is stored before a call that must not be reached by two
// ways, and wherever a pass ends; the two last ones only then.
func (d *decider) remove() Plan {
	if !d.m.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	op := &d.m.Status.LastOperation
	if d.m.Status.Phase != PhaseTerminating || op.Kind != OperationDelete {
		return d.terminate()
	}
	if plan, wait := d.removeGate(); wait {
		return plan
	}
	switch op.Stage {
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
	return d.restart()
}

// terminate begins a deletion.
func (d *decider) terminate() Plan {
	from := d.m.Status.Phase
	why := decision.Why{Reason: reasonTerminating, Detail: string(from)}
	if from == PhaseNew {
		why.Detail = "new"
	}
	never := d.m.untouched()
	plan := d.move(EventDelete, why, func(s *Status) {
		s.Phase = PhaseTerminating // also from a phase that no table knows
		s.NeverCreated = never
		if from != PhaseTerminating {
			s.DeletedFrom, s.Since = from, d.stamp()
		}
		s.LastOperation = d.operation(OperationDelete, StateProcessing, StageGetVMStatus)
	})
	plan.Moves[1] = Move{deletions.Name, string(StageNone), EventDelete, string(StageGetVMStatus)}
	if !phases.Knows(string(from)) {
		plan.Moves[0] = Move{} // no table leads out of an unknown phase; deletion does
	}
	return plan
}

// restart begins again where storage holds a stage that is none.
func (d *decider) restart() Plan {
	why := decision.Why{Reason: reasonRestart, Name: string(d.m.Status.LastOperation.Stage)}
	return d.setStatus(why, func(s *Status) {
		s.LastOperation = d.operation(OperationDelete, StateProcessing, StageGetVMStatus)
	})
}

// removeGate holds a failed stage back until it may be tried again. A stage
// that force may skip does not wait once force is due.
func (d *decider) removeGate() (Plan, bool) {
	op := &d.m.Status.LastOperation
	at := d.retryAt(removeCall(op.Stage))
	if at.IsZero() {
		return Plan{}, false
	}
	if op.Stage == StageGetVMStatus || op.Stage == StageInitiateDrain {
		if d.forced() {
			return Plan{}, false
		}
		if due := d.forceAt(); due.Before(at) {
			at = due
		}
	}
	why := decision.Why{Reason: reasonRetryAt, Name: string(op.Stage), Code: op.Code, For: at.Sub(d.now)}
	return Plan{At: at, Why: why}, true
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
func (d *decider) locate() Plan {
	if d.o.NoCluster {
		return d.stage(EventNoNode, decision.Why{Reason: reasonNoNode})
	}
	if !d.looked() || d.unseen() {
		return d.look(false)
	}
	node := d.node()
	if node != nil && d.ours(node) {
		return d.stage(EventNodeFound, decision.Why{Reason: reasonDrain, Name: node.Name})
	}
	if d.m.Spec.NodeName == "" && !d.neverCreated() {
		if plan, busy := d.askForNode(); busy {
			return plan
		}
	}
	out := d.stage(EventNoNode, decision.Why{Reason: reasonNoNode})
	out.Warn = d.foreign()
	return out
}

// askForNode has the driver name the node, and records it: once the VM is
// gone, nobody can. The VM's ID goes with it, since a node of that name may be
// another VM's.
func (d *decider) askForNode() (Plan, bool) {
	vm := d.o.VM
	if vm == nil {
		if d.o.Class == nil {
			return d.withoutClass(StageGetVMStatus), !d.forced()
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}, true
	}
	switch vm.Code {
	case codes.OK, codes.NotFound, codes.Uninitialized, codes.Unimplemented, codes.OutOfRange:
	default:
		return d.stageFailed(StageGetVMStatus, vm.Outcome), !d.forced()
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

// ours tells whether a node may be drained and deleted with this machine: it
// carries its name, or nobody's and was not there before.
func (d *decider) ours(n *Node) bool {
	if d.owner != "" {
		return d.owner == d.m.Name
	}
	return !d.stale(n, d.m.Spec.ProviderID)
}

// mark tells on the node, before it is drained, that it is about to go.
func (d *decider) mark(n *Node) (Plan, bool) {
	from := d.m.Status.DeletedFrom
	have := object.FindCondition(n.Conditions, NodeTerminating)
	if from == PhaseNew || from == PhaseCrashLoopBackOff || have != nil && have.Status == object.True {
		return Plan{}, false
	}
	if answer := d.o.NodeMarked; answer != nil {
		failed := answer.Code != codes.OK && answer.Code != codes.NotFound
		return d.stageFailed(StageInitiateDrain, *answer), failed && !d.forced()
	}
	reason := ReasonScaleDown
	if from == PhaseFailed {
		reason = ReasonUnhealthy
	}
	return Plan{
		Effect: &MarkNode{n, object.Condition{
			Type: NodeTerminating, Status: object.True, Reason: reason,
			Message: "machine " + d.m.Name + " is being deleted", Since: d.stamp(),
		}},
		Why: decision.Why{Reason: reasonMarkNode, Name: n.Name},
	}, true
}

// deleteVM calls DeleteMachine until it answers OK or NOT_FOUND. Only a
// machine for which it is recorded that no create was ever issued does without.
func (d *decider) deleteVM() Plan {
	if d.neverCreated() {
		return d.deleteNode()
	}
	answer := d.o.VMDeleted
	if answer == nil {
		if plan, held := d.hold(d.p.Keys.PreTerminateHook, StageInitiateVMDeletion); held {
			return plan
		}
		if d.o.Class == nil {
			return d.withoutClass(StageInitiateVMDeletion)
		}
		return Plan{Effect: DeleteVM{}, Why: decision.Why{Reason: reasonDeleteVM, Name: d.vmName()}}
	}
	if answer.Code != codes.OK && answer.Code != codes.NotFound {
		return d.stageFailed(StageInitiateVMDeletion, answer.Outcome)
	}
	return d.deleteNode()
}

// vmName is what a sentence calls the machine's VM.
func (d *decider) vmName() string {
	if id := d.m.Spec.ProviderID; id != "" {
		return id
	}
	return "of machine " + d.m.Name
}

func (d *decider) neverCreated() bool {
	return d.m.Status.NeverCreated && d.m.Spec.ProviderID == ""
}

// deleteNode removes the node of a VM that is gone, also one that joined while
// the VM was being deleted. A node that is another machine's is left alone.
func (d *decider) deleteNode() Plan {
	if d.o.NoCluster {
		return d.release()
	}
	if answer := d.o.NodeDeleted; answer != nil {
		if answer.Code != codes.OK && answer.Code != codes.NotFound {
			return d.stageFailed(StageInitiateNodeDeletion, *answer)
		}
		return d.release()
	}
	gone := d.o.VMDeleted != nil
	if !d.looked() || d.o.Node.cached() || gone && !d.o.Node.Gone {
		return d.look(gone)
	}
	node := d.node()
	if node == nil || !d.ours(node) {
		return d.release()
	}
	return Plan{Effect: DeleteNode{node.Name, node.UID}, Why: decision.Why{Reason: reasonDeleteNode, Name: node.Name}}
}

// release lets the record go.
func (d *decider) release() Plan {
	if plan, busy := d.removeToken(); busy && !d.neverCreated() {
		return plan
	}
	changed := d.m.Clone()
	changed.RemoveFinalizer(Finalizer)
	plan := Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonReleased}, Warn: d.tokenLeft()}
	from := string(d.m.Status.LastOperation.Stage)
	to, _ := deletions.Next(from, EventReleased)
	plan.Moves[0] = Move{deletions.Name, from, EventReleased, to}
	return plan
}

// stage plans the write that takes the deletion along an edge of the table.
func (d *decider) stage(on Event, why decision.Why) Plan {
	from := string(d.m.Status.LastOperation.Stage)
	to, _ := deletions.Next(from, on)
	plan := d.setStatus(why, func(s *Status) {
		d.noteVM(s)
		s.LastOperation = d.operation(OperationDelete, StateProcessing, Stage(to))
	})
	plan.Moves[0] = Move{deletions.Name, from, on, to}
	return plan
}

// stageFailed records a failure in a stage. Coming from an earlier one in the
// same pass, it is stored as reached first.
func (d *decider) stageFailed(stage Stage, answer Outcome) Plan {
	from := d.m.Status.LastOperation.Stage
	on := EventStageFailed
	if from != stage {
		on = EventVMDeleted // the one stage that a pass goes through without storing it
	}
	why := decision.Why{Reason: reasonDeleteFailed, Name: string(stage), Code: answer.Code, Detail: answer.Message}
	plan := d.setStatus(why, func(s *Status) {
		d.noteVM(s)
		s.LastOperation = d.failure(OperationDelete, stage, answer.Code, answer.Message)
	})
	plan.Moves[0] = Move{deletions.Name, string(from), on, string(stage)}
	return plan
}

// withoutClass says that a provider call can't be made.
func (d *decider) withoutClass(stage Stage) Plan {
	why := decision.Why{Reason: reasonClassGone, Name: d.m.Spec.Class.Name}
	return d.stageFailed(stage, Outcome{codes.PreconditionFailed, why.String()})
}

// forceAnyway is when force becomes due whatever the node says.
func (d *decider) forceAnyway() time.Time {
	if d.forcedByLabel() {
		return d.m.DeletedAt
	}
	return d.after(d.m.DeletedAt, d.p.drainTimeout(d.m))
}

// hearsay tells whether force is due only by what a cache says of the node. One
// that answers again may run its pods, and write to its volumes.
func (d *decider) hearsay() bool {
	return d.o.Node.cached() && d.forced() && d.now.Before(d.forceAnyway())
}

// forced tells whether this deletion may disregard what would hold it back.
func (d *decider) forced() bool { return !d.now.Before(d.forceAt()) }

// forceAt is when force becomes due: at once by label, else when the deletion
// is older than the drain timeout or the node has not answered for long. A node
// that was read before that time may have answered since, and is read again.
func (d *decider) forceAt() time.Time {
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
