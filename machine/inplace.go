package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// An in-place update takes a machine's node out of service, drains it, and tells an agent on it to update the
// node. The agent answers by a label on the node:
//
//	selected -> labels, cordon -> drain -> stage ReadyForUpdate -> condition InPlaceUpdate ->
//	the agent's answer -> the owner moves the machine to its new set -> condition, labels and
//	cordon removed -> Running
//
// The update can be withdrawn until stage ReadyForUpdate is stored, which is before the agent is told. After
// that the agent may be at work, and only its answer or the deadline ends the update.
//
//   - The status of condition InPlaceUpdate is always True; its reason is the stage. The condition
//     stays on the node, and the next update begins at UpdateSuccessful.
//   - An update that is withdrawn before stage ReadyForUpdate ends in Running. One that is withdrawn
//     later and then succeeds ends in InPlaceUpdateFailed with stage CandidateForUpdate, because the
//     node is not what its owner wants. It is updated again when it is selected, or deleted.
//   - A failed update stays open, because the agent may succeed later. If its owner withdraws it and the
//     node is healthy, the machine is Running again.
//   - If the node is missing, or is another machine's, the update waits for it until the deadline. If a
//     user deletes the node, the machine is deleted too.
//   - The write that uncordons the node adds the critical-components taint again, if the node has had it
//     before. On other nodes no program would remove it.
//   - Answers are read live. Answers from before the update are removed when it begins. A user's
//     selection is removed on success.
//   - Some writes of the node follow a write of the status in the same pass: those that add marks, that
//     tell the agent, or that remove marks newer than the status. So a process with a stale status fails
//     before them.

// reconcileUpdate decides about a machine in an in-place update. Its deadline counts from the selection. Its
// health is not judged meanwhile, even if the node is NotReady.
//
// After Policy.InPlaceTimeout the machine is InPlaceUpdateFailed. It stays cordoned and does not count as
// available. After the health timeout it is Failed, if the replacement budget grants that, and replaced: see
// healthTimedOut.
func (d *decider) reconcileUpdate() Plan {
	deadline := d.verdictAt(d.m.Status.Since, d.p.inPlaceTimeout(d.m))
	unknown := d.m.Status.UpdateStage() == Unrecognized
	if d.o.NoCluster {
		switch {
		case unknown:
			return d.restoreUpdateStage(nil)
		case !d.now.Before(deadline):
			return d.updateTimedOut()
		}
		return Plan{At: deadline, Why: decision.Why{Reason: reasonUpdating}}
	}
	if !d.nodeRead() {
		return d.readNode(false)
	}
	n := d.node()
	if unknown {
		return d.restoreUpdateStage(n)
	}
	switch {
	case d.updateUnclaimed(n):
		return Plan{At: deadline, Why: decision.Why{Reason: reasonUnclaimed, Name: n.Name, For: deadline.Sub(d.now)}}
	case d.updateOverOrNoNode(n):
		if d.o.Node.cached() {
			return d.readNode(false)
		}
		return d.withdrawUpdate(n, deadline)
	case n == nil:
		return d.awaitNodeForUpdate(deadline)
	case d.m.Status.LastOperation.Stage == StageReady:
		return d.awaitAgent(n, deadline)
	}
	return d.prepareUpdate(n, deadline)
}

// updateOverOrNoNode is updateOver if there is a node. Without one the update is over only if nothing
// requests it: a user's selection may still be on the missing node.
func (d *decider) updateOverOrNoNode(n *Node) bool {
	if n != nil {
		return d.updateOver(n)
	}
	return d.m.Spec.InPlace == InPlaceNone && d.m.Status.LastOperation.Stage != StageReady
}

// restoreUpdateStage replaces an unknown stored stage of an update by the one that the node's condition shows.
func (d *decider) restoreUpdateStage(n *Node) Plan {
	if !d.o.NoCluster && d.o.Node.cached() {
		return d.readNode(false)
	}
	stage, moves := StageSelected, stageMoves(Unrecognized, eventRestart)
	if n != nil && (n.agentTold() || n.concluded(&d.p.Keys) && (d.updateByOther(n) || !n.Applied.Update.Since.IsZero())) {
		stage, moves = StageReady, append(moves, stageMoves(StageSelected, EventDrained)...)
	}
	why := decision.Why{Reason: reasonUpdateRestart, Name: string(d.m.Status.LastOperation.Stage)}
	plan := d.setStatus(why, func(s *Status) {
		s.LastOperation = d.operation(OperationInPlaceUpdate, StateProcessing, stage)
	})
	plan.Moves = moves
	return plan
}

// awaitNodeForUpdate waits for a node that is missing during its update, until the update's deadline. It may
// come back, as the same object or another.
func (d *decider) awaitNodeForUpdate(deadline time.Time) Plan {
	switch {
	case d.o.Node.cached():
		return d.readNode(false)
	case !d.now.Before(deadline):
		return d.updateTimedOut()
	}
	why := decision.Why{Reason: reasonAwaitNode, Name: d.m.Spec.NodeName, For: deadline.Sub(d.now)}
	return Plan{At: deadline, Why: why, Warn: d.foreignNode()}
}

// withdrawUpdate ends an update whose agent was not told yet, and returns the node to service. n is nil if
// the node is missing.
func (d *decider) withdrawUpdate(n *Node, deadline time.Time) Plan {
	if n == nil {
		return d.updateWithdrawn(d.m.Spec.NodeName, StageSelected)
	}
	plan, found := d.syncForUpdate(n, d.idleReason(n))
	switch {
	case !found:
		return d.updateWithdrawn(n.Name, StageSelected)
	case plan.Write == nil && plan.Effect == nil && !d.now.Before(deadline):
		return d.updateTimedOut()
	}
	return lookAgainBy(plan, deadline)
}

// prepareUpdate takes a node out of service and drains it.
func (d *decider) prepareUpdate(n *Node, deadline time.Time) Plan {
	if !d.now.Before(deadline) {
		return d.updateTimedOut()
	}
	if plan, found := d.updateStepBackoff(); found {
		return lookAgainBy(plan, deadline)
	}
	if d.concludedByOther(n) {
		return d.readyForUpdate(n)
	}
	if plan, found := d.syncForUpdate(n, ReasonSelectedForUpdate); found {
		return lookAgainBy(plan, deadline)
	}
	if plan, found := d.drainForUpdate(n, deadline); found {
		return plan
	}
	if answer := d.o.Drain; answer != nil {
		return warnLeftover(d.readyForUpdate(n), n, answer)
	}
	return d.readyForUpdate(n)
}

// drainForUpdate drains the node. It finds no plan once the node is empty.
func (d *decider) drainForUpdate(n *Node, deadline time.Time) (Plan, bool) {
	answer := d.o.Drain
	switch {
	case d.o.NoDrain:
		return Plan{}, false
	case answer == nil:
		return d.drainStaying(d.node(), d.restarted(d.m.Status.Since), deadline), true
	case answer.Code != codes.OK:
		return d.updateStepFailed(n, answer.Outcome), true
	case answer.Done:
		return Plan{}, false
	}
	if plan, found := d.recordDrainProgress(n, d.operation(OperationInPlaceUpdate, StateProcessing, d.m.Status.LastOperation.Stage)); found {
		return plan, true
	}
	why := decision.Why{Reason: reasonUpdateDraining, Name: n.Name, Detail: answer.Why, For: deadline.Sub(d.now)}
	return Plan{At: d.earlierOf(answer.At, deadline), Why: why}, true
}

// drainAgain drains a node that has registered again since its drain: it has lost its cordon, and pods may have
// been scheduled to it.
func (d *decider) drainAgain(n *Node, deadline time.Time) (Plan, bool) {
	if n.agentTold() || !n.Applied.Update.Since.IsZero() {
		return Plan{}, false
	}
	if d.o.Node.cached() {
		return d.readNode(false), true
	}
	if plan, found := d.updateStepBackoff(); found {
		return lookAgainBy(plan, deadline), true
	}
	plan, found := d.drainForUpdate(n, deadline)
	return lookAgainBy(plan, deadline), found
}

// awaitAgent tells the agent to update the node, and waits for its answer. It acts on an answer, or on the
// deadline, only after a live read, because a cache may still have the answer to an earlier update.
func (d *decider) awaitAgent(n *Node, deadline time.Time) Plan {
	result, late := n.result(&d.p.Keys), !d.now.Before(deadline)
	known := result == UpdateSuccessful || result == UpdateFailed
	switch {
	case (known || late) && d.o.Node.cached():
		return d.readNode(false)
	case result == UpdateSuccessful && d.m.Spec.InPlace == InPlaceNone:
		return d.updatedTooLate(n)
	case result == UpdateSuccessful:
		return d.updateSucceeded(n, StageReady)
	case result == UpdateFailed:
		detail := n.failedReason(&d.p.Keys)
		return d.copyNodeStatus(n, d.updateFailed(decision.Why{Reason: reasonUpdateFailed, Name: n.Name, Detail: detail}, codes.Internal, detail))
	case late:
		return d.copyNodeStatus(n, d.updateTimedOut())
	}
	if plan, found := d.drainAgain(n, deadline); found {
		return plan
	}
	if plan, found := d.syncForUpdate(n, ReasonReadyForUpdate); found {
		return lookAgainBy(plan, deadline)
	}
	if d.m.Status.LastOperation.State == StateFailed { // the failed step has succeeded
		return d.setStatus(decision.Why{Reason: reasonReady, Name: n.Name}, func(s *Status) {
			s.LastOperation = d.operation(OperationInPlaceUpdate, StateProcessing, StageReady)
		})
	}
	plan := Plan{At: deadline, Why: decision.Why{Reason: reasonAwaitAgent, Name: n.Name, For: deadline.Sub(d.now)}}
	if result != "" {
		plan.Warn = decision.Why{Reason: reasonUpdateResult, Name: n.Name, Detail: result}
	}
	return plan
}

// InPlaceRequest is what an in-place rollout requests of a machine. The machine's owner writes it.
type InPlaceRequest string

// The requests.
const (
	// InPlaceNone requests nothing. If the machine's update is done, the machine is in its new set and
	// returns to service. If its update is in progress, the update is withdrawn.
	InPlaceNone InPlaceRequest = ""
	// InPlaceCandidate says that the machine will be updated: its node is labeled as a candidate, and a
	// user may select it by a label on the node.
	InPlaceCandidate InPlaceRequest = "Candidate"
	// InPlaceWaiting is InPlaceCandidate, except that only the owner selects: a user's label starts no
	// update, and a warning says so. An update that has begun continues.
	InPlaceWaiting InPlaceRequest = "Waiting"
	// InPlaceSelected says to update the machine now.
	InPlaceSelected InPlaceRequest = "Selected"
)

func (r InPlaceRequest) known() bool {
	return r == InPlaceNone || r == InPlaceCandidate || r == InPlaceWaiting || r == InPlaceSelected
}

// The answers of an update agent, values of the label Keys.UpdateResult.
const (
	UpdateSuccessful = "successful"
	UpdateFailed     = "failed"
)

// NodeInPlaceUpdate is the node condition for the stage of an in-place update. Its status is always True, and
// its reason is the stage. An update agent works at ReasonReadyForUpdate only. The condition stays on the
// node: the next update begins at ReasonUpdateSuccessful, or without the condition.
const (
	NodeInPlaceUpdate = "InPlaceUpdate"

	ReasonCandidateForUpdate = "CandidateForUpdate"
	ReasonSelectedForUpdate  = "SelectedForUpdate"
	// ReasonDrainSuccessful is never written: this library continues with ReasonReadyForUpdate at once.
	ReasonDrainSuccessful = "DrainSuccessful"
	ReasonReadyForUpdate  = "ReadyForUpdate"
	// ReasonUpdateSuccessful is also set when an update was withdrawn: the agent has nothing to do.
	ReasonUpdateSuccessful = "UpdateSuccessful"
	ReasonNodeUpdateFailed = "UpdateFailed"
)

// UpdateMarks is the record of what an in-place update has changed on a node, so that nothing else is reverted
// at its end.
type UpdateMarks struct {
	// Since is when the update that has taken the node out of service began, whole seconds. Zero: there
	// is none.
	Since     time.Time
	Candidate bool // the label Keys.CandidateForUpdate is ours
	Selected  bool // the label Keys.SelectedForUpdate is ours, not a user's
	Cordoned  bool // the node was schedulable before
}

func (u *UpdateMarks) equal(v *UpdateMarks) bool {
	return u.Since.Equal(v.Since) && u.Candidate == v.Candidate && u.Selected == v.Selected && u.Cordoned == v.Cordoned
}

func (u *UpdateMarks) none() bool {
	return !u.Candidate && !u.Selected && !u.Cordoned && u.Since.IsZero()
}

func (d *decider) beginUpdate(n *Node) Plan {
	return d.moveUpdate(eventSelected, StageCandidate, eventSelected, decision.Why{Reason: reasonSelected, Name: n.Name},
		d.operation(OperationInPlaceUpdate, StateProcessing, StageSelected))
}

// readyForUpdate stores stage ReadyForUpdate, before the agent is told.
func (d *decider) readyForUpdate(n *Node) Plan {
	plan := d.setStatus(decision.Why{Reason: reasonReady, Name: n.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationInPlaceUpdate, StateProcessing, StageReady)
	})
	plan.Moves = stageMoves(StageSelected, EventDrained)
	return plan
}

func (d *decider) updateSucceeded(n *Node, from Stage) Plan {
	op := d.operation(OperationInPlaceUpdate, StateSuccessful, StageUpdateSuccessful)
	op.Message = "node " + n.Name + " is updated"
	return d.moveUpdate(eventUpdated, from, eventUpdated, decision.Why{Reason: reasonUpdated, Name: n.Name}, op)
}

// updatedTooLate ends an update that succeeded after it was withdrawn. The node is not what the machine's
// owner wants. The machine is InPlaceUpdateFailed, without workload, until it is selected again or deleted.
func (d *decider) updatedTooLate(n *Node) Plan {
	why := decision.Why{Reason: reasonOutdated, Name: n.Name}
	op := d.failure(OperationInPlaceUpdate, StageCandidate, codes.Aborted, why.String())
	return d.copyNodeStatus(n, d.moveUpdate(eventUpdateFailed, StageReady, eventOutdated, why, op))
}

func (d *decider) updateWithdrawn(name string, from Stage) Plan {
	op := d.operation(OperationInPlaceUpdate, StateSuccessful, StageCandidate)
	op.Message = "the in-place update was withdrawn"
	return d.moveUpdate(eventWithdrawn, from, eventWithdrawn, decision.Why{Reason: reasonWithdrawn, Name: name}, op)
}

func (d *decider) updateTimedOut() Plan {
	why := decision.Why{Reason: reasonUpdateTimeout, Name: d.m.Spec.NodeName, For: d.p.inPlaceTimeout(d.m)}
	return d.updateFailed(why, codes.DeadlineExceeded, why.String())
}

func (d *decider) updateFailed(why decision.Why, code codes.Code, message string) Plan {
	return d.moveUpdate(eventUpdateFailed, d.m.Status.LastOperation.Stage, eventUpdateFailed, why,
		d.failure(OperationInPlaceUpdate, StageUpdateFailed, code, message))
}

// updateStepBackoff waits for the next attempt of a failed step. A failure of the cluster is retried as one
// of DeleteMachine with the same code.
func (d *decider) updateStepBackoff() (Plan, bool) {
	at := d.retryAt(codes.DeleteMachine)
	if at.IsZero() {
		return Plan{}, false
	}
	return d.retryLater(string(d.m.Status.LastOperation.Stage), at, time.Time{}), true
}

// updateStepFailed records that a node could not be drained or written. The step is retried.
func (d *decider) updateStepFailed(n *Node, answer Outcome) Plan {
	stage := d.m.Status.LastOperation.Stage
	why := decision.Why{Reason: reasonUpdateStep, Name: n.Name, Code: answer.Code, Detail: answer.Message}
	plan := d.setStatus(why, func(s *Status) {
		s.LastOperation = d.failure(OperationInPlaceUpdate, stage, answer.Code, answer.Message)
	})
	plan.Moves = stageMoves(stage, eventStageFailed)
	return plan
}

// moveUpdate moves the phase on one event, and the stage on another, if the machine is in the given stage.
// The stage of a candidate is not stored.
func (d *decider) moveUpdate(on Event, from Stage, stageOn Event, why decision.Why, op Operation) Plan {
	plan := d.move(on, why, func(s *Status) { s.LastOperation = op })
	if d.m.Status.UpdateStage() == from {
		plan.Moves = append(plan.Moves, stageMoves(from, stageOn)...)
	}
	return plan
}

// copyNodeStatus adds the node's conditions and addresses to a plan that writes the status.
func (d *decider) copyNodeStatus(n *Node, plan Plan) Plan {
	if status, ok := plan.Write.(*UpdateStatus); ok && n != nil {
		copyFromNode(&status.Status, n)
	}
	return plan
}

// stageMoves returns the move of the update table, or none if the table has no such edge.
func stageMoves(from Stage, on Event) []Move {
	to, ok := updates.Next(string(from), on)
	if !ok {
		return nil
	}
	return []Move{{Table: updates.Name, From: string(from), On: on, To: to}}
}

// stepUpdate returns the next step of an in-place update for a machine whose health is watched. It comes
// before the other steps for the node.
func (d *decider) stepUpdate(n *Node, healthy bool) (Plan, bool) {
	switch d.m.Status.Phase {
	case PhaseRunning:
		if healthy && d.selectedForUpdate(n) && !d.selectionWaits(n) && !d.preserved() && n.Applied.Preserved == (PreservedMarks{}) {
			return d.beginUpdate(n), true
		}
	case PhaseInPlaceUpdateFailed:
		return d.retryFailedUpdate(n, healthy)
	}
	return d.announceCandidate(n)
}

// retryFailedUpdate handles a failed update: the agent may have succeeded later, the machine may be selected
// again, or the update may no longer be wanted.
func (d *decider) retryFailedUpdate(n *Node, healthy bool) (Plan, bool) {
	selected, outdated := d.selectedForUpdate(n), d.updatedAfterWithdrawal()
	again := selected && outdated && healthy
	answered := selected && !outdated && n.result(&d.p.Keys) == UpdateSuccessful
	switch {
	case (again || answered) && d.o.Node.cached():
		return d.readNode(false), true
	case again:
		return d.beginUpdate(n), true
	case answered:
		return d.updateSucceeded(n, StageUpdateFailed), true
	case n.updateInProgress() && (outdated || !selected):
		return d.setUpdateCondition(n, d.idleReason(n))
	case n.agentTold() && n.result(&d.p.Keys) == UpdateFailed:
		return d.setUpdateCondition(n, ReasonNodeUpdateFailed)
	}
	return Plan{}, false
}

// announceCandidate sets the condition of a node without an update, by whether it is a candidate. It leaves what
// another program announced with its own labels.
func (d *decider) announceCandidate(n *Node) (Plan, bool) {
	have := &n.Applied.Update
	switch {
	case n.updateInProgress() && !have.Since.IsZero():
		return d.setUpdateCondition(n, d.idleReason(n))
	case d.m.Status.Phase != PhaseRunning || n.updateInProgress():
		return Plan{}, false
	case d.m.Spec.InPlace != InPlaceNone && !d.updateByOther(n) && d.candidateUnannounced(n):
		return d.setUpdateCondition(n, ReasonCandidateForUpdate)
	case d.hasStaleMarks(n):
		return d.setUpdateCondition(n, ReasonUpdateSuccessful)
	}
	return Plan{}, false
}

// candidateUnannounced reports whether a candidate's node lacks the condition. After a successful update the
// condition comes before the label, otherwise after it.
func (d *decider) candidateUnannounced(n *Node) bool {
	if n.mayRecordCandidate() {
		return n.Applied.Update.Candidate && n.conditionDue(ReasonCandidateForUpdate)
	}
	return n.Applied.Update.Candidate || !n.labelTrue(d.p.Keys.CandidateForUpdate)
}

// markRecovered moves a machine with a failed update to Running, because the update is no longer wanted and
// the node is healthy. The node's condition and marks must have been taken back before.
func (d *decider) markRecovered(n *Node) Plan {
	switch {
	case d.o.Node.cached():
		return d.readNode(false)
	case n.updateInProgress():
		return d.retrySoon(d.updateConditionFailed(n))
	case d.outOfSync(n):
		return Plan{Why: d.whyOutOfSync(n)}
	}
	return d.copyNodeStatus(n, d.updateWithdrawn(n.Name, StageUpdateFailed))
}

// finishUpdate waits, without a limit, until the owner has moved an updated machine to its new set. Then it
// removes the marks of the update from the node. The machine is Running when the node is healthy and its
// critical components are ready.
func (d *decider) finishUpdate() Plan {
	name := d.m.Spec.NodeName
	if d.o.NoCluster {
		if d.m.Spec.InPlace != InPlaceNone {
			return Plan{Why: decision.Why{Reason: reasonAwaitOwner, Name: name}}
		}
		return d.returnToService(nil, name)
	}
	if !d.nodeRead() {
		return d.readNode(false)
	}
	n := d.node()
	if d.m.Spec.InPlace != InPlaceNone {
		return Plan{Why: decision.Why{Reason: reasonAwaitOwner, Name: name}, Warn: d.foreignNode()}
	}
	if d.o.Node.cached() {
		return d.readNode(false)
	}
	unhealthy := decision.Why{Reason: reasonNodeMissing, Name: name}
	if n != nil {
		health := n.judge(d.p.nodeConditions(d.m))
		if health.healthy() {
			return d.backInService(n)
		}
		unhealthy = decision.Why{Reason: reasonNodeUnhealthy, Name: n.Name, Detail: health.String()}
	}
	return d.awaitRecovery(n, unhealthy)
}

// backInService uncordons a healthy node. It waits for the critical components without a limit, because the
// machine does not count as available meanwhile.
func (d *decider) backInService(n *Node) Plan {
	if plan, found := d.syncForUpdate(n, ReasonUpdateSuccessful); found {
		return plan
	}
	if n.hasTaint(d.p.Keys.CriticalComponents) {
		return Plan{Why: decision.Why{Reason: reasonReturnCritical, Name: n.Name}}
	}
	return d.returnToService(n, n.Name)
}

func (d *decider) returnToService(n *Node, name string) Plan {
	op := d.operation(OperationInPlaceUpdate, StateSuccessful, StageInService)
	op.Message = "node " + name + " is updated and in service"
	plan := d.moveUpdate(eventReturned, StageUpdateSuccessful, eventReturned, decision.Why{Reason: reasonReturned, Name: name}, op)
	return d.copyNodeStatus(n, d.recordAgentUpdate(plan))
}

// awaitRecovery waits until an updated node is healthy. At the health timeout the machine becomes Unknown,
// and its health is judged like any other's. n is nil if the node is missing.
func (d *decider) awaitRecovery(n *Node, unhealthy decision.Why) Plan {
	base, timeout := d.phaseTimeout()
	at := d.verdictAt(base, timeout)
	forever := d.m.Spec.Config.DisableHealthTimeout
	if !forever && !d.now.Before(at) {
		op := d.operation(OperationHealthCheck, StateProcessing, StageNone)
		op.Message = unhealthy.String()
		return d.copyNodeStatus(n, d.recordAgentUpdate(d.moveUpdate(eventUnhealthy, StageUpdateSuccessful, eventUnhealthy, unhealthy, op)))
	}
	if n != nil {
		if plan, found := d.syncForUpdate(n, ReasonUpdateSuccessful); found {
			if forever {
				return plan
			}
			return lookAgainBy(plan, at)
		}
	}
	if forever {
		return Plan{Why: decision.Why{Reason: reasonUnhealthyForever, Name: d.m.Spec.NodeName}, Warn: d.foreignNode()}
	}
	detail := unhealthy.String()
	return Plan{At: at, Why: decision.Why{Reason: reasonReturning, Name: d.m.Spec.NodeName, Detail: detail, For: at.Sub(d.now)}, Warn: d.foreignNode()}
}

// Another program may have begun an update of a node before this library manages the machine. The labels of
// the node and the reason of its condition say how far that update is.

// updateByOther reports whether another program has begun the update of the node, or has continued one that was
// announced here. Then the node has a candidate's label and a condition, but no record of when the update
// began, and one of these holds:
//
//  1. The condition says CandidateForUpdate, and we have recorded no mark at all.
//  2. The condition says UpdateSuccessful, and so does the agent's answer. After an update of ours, a node with
//     this condition has no record of a candidate, see mayRecordCandidate.
//  3. The condition says that the update is in progress. An update of ours is recorded before its condition is
//     set, and stays recorded while the condition says so, see sinceInProgress.
//
// The marks of the other program are removed when the update is over.
func (d *decider) updateByOther(n *Node) bool {
	have := &n.Applied.Update
	if !have.Since.IsZero() || !n.labelTrue(d.p.Keys.CandidateForUpdate) {
		return false
	}
	if d.m.Spec.InPlace == InPlaceNone && !d.inUpdate() {
		return d.leftByOther(n)
	}
	switch n.updateReason() {
	case ReasonCandidateForUpdate:
		return have.none()
	case ReasonUpdateSuccessful:
		return n.result(&d.p.Keys) == UpdateSuccessful
	}
	return n.updateInProgress()
}

// leftByOther reports whether another program has moved the machine to its new owner after its update, and has not
// yet cleaned up the node. The agent's answer on the machine's own label says so.
func (d *decider) leftByOther(n *Node) bool {
	k := &d.p.Keys
	return d.m.Spec.InPlace == InPlaceNone && d.m.Status.Phase == PhaseRunning &&
		k.UpdateResult != "" && d.m.Labels[k.UpdateResult] == UpdateSuccessful &&
		n.updateReason() == ReasonUpdateSuccessful && n.result(k) == UpdateSuccessful
}

// inUpdate reports whether the machine is in a phase of an in-place update.
func (d *decider) inUpdate() bool {
	phase := d.m.Status.Phase
	return phase == PhaseInPlaceUpdating || phase == PhaseInPlaceUpdateFailed || phase == PhaseInPlaceUpdateSuccessful
}

// updateMarks returns what an update has changed on the node: as recorded, or as another program left it. A
// cordon belongs to that update from the drain on. A selection is ours if the owner selects, otherwise a
// user's.
func (d *decider) updateMarks(n *Node) UpdateMarks {
	if !d.updateByOther(n) {
		return n.Applied.Update
	}
	have, drained := &n.Applied.Update, n.updateReason() != ReasonCandidateForUpdate
	return UpdateMarks{
		Candidate: true, Cordoned: have.Cordoned || drained && n.Unschedulable,
		Selected: have.Selected || d.m.Spec.InPlace == InPlaceSelected && n.labelTrue(d.p.Keys.SelectedForUpdate),
	}
}

// concludedByOther reports whether another program began or continued the update, and the agent has answered.
func (d *decider) concludedByOther(n *Node) bool {
	return d.updateByOther(n) && n.concluded(&d.p.Keys)
}

// updateUnclaimed reports whether another program has begun the update of a machine without a request. Until
// the update's timeout the missing request is no withdrawal: the machine's owner may not have seen the update
// yet.
func (d *decider) updateUnclaimed(n *Node) bool {
	s := &d.m.Status
	return n != nil && d.m.Spec.InPlace == InPlaceNone && (s.Phase == PhaseInPlaceUpdating || s.Phase == PhaseInPlaceUpdateFailed) &&
		d.updateByOther(n) && d.now.Before(d.verdictAt(s.Since, d.p.inPlaceTimeout(d.m)))
}

// recordsOthersMarks reports whether the marks of another program are to be recorded and left unchanged. That
// is so until this library continues the update.
func (d *decider) recordsOthersMarks(n *Node) bool {
	switch {
	case d.m.Status.Phase == PhaseInPlaceUpdating || !d.updateByOther(n) || d.leftByOther(n):
		return false
	case d.inUpdate():
		return d.unrecordedMarks(n)
	}
	return true
}

// unrecordedMarks reports whether another program has left marks that are not recorded.
func (d *decider) unrecordedMarks(n *Node) bool {
	if !d.updateByOther(n) {
		return false
	}
	marks := d.updateMarks(n)
	return !n.Applied.Update.equal(&marks)
}
