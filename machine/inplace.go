package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// An in-place update takes a machine's node out of service, has it drained,
// and tells an agent on it that it may go to work; the agent answers by a label
// on the node:
//
//	selected -> labels, cordon -> drain -> stage ReadyForUpdate -> condition
//	InPlaceUpdate -> the agent's answer -> its owner takes the machine over ->
//	condition, labels and cordon off -> Running
//
// Until stage ReadyForUpdate is stored, which is before the agent is told, the
// update can be withdrawn. From there on the agent may be at work, and only its
// answer or the end of the time decides.
//
//   - The status of condition InPlaceUpdate is always True; its reason is the stage. The condition
//     stays on the node, and the next update begins at UpdateSuccessful.
//   - An update that is withdrawn before stage ReadyForUpdate ends in Running. One that is withdrawn
//     later and then succeeds ends in InPlaceUpdateFailed with stage CandidateForUpdate, because the
//     node is not what its owner says. It is updated again when it is selected, or deleted.
//   - A failed update stays open, because the agent may succeed later. If its owner withdraws it, a
//     healthy machine runs again.
//   - A missing node, or one of another machine, is waited for until the time is up. If a user
//     deletes the node, the machine is deleted too.
//   - The critical-components taint is put on again, with the end of the cordon, if this library has
//     seen it on the node before: elsewhere nothing would remove it.
//   - Answers are believed after a live read only. Answers from before the update are removed when
//     it begins. A user's selection is removed on success.
//   - What puts marks on the node, announces the update, or removes marks that are newer than the
//     record follows a status write of the same pass. A reader of an old record fails there.

// reconcileUpdate decides about a machine that is being updated. Its time counts from
// when it was selected. No verdict is passed on its health meanwhile, even if its node is NotReady.
//
// At the end of Policy.InPlaceTimeout the machine is InPlaceUpdateFailed. It stays cordoned and
// counts as not available. After the health timeout it is Failed, if the replacement budget allows
// that, and replaced: see outOfTime.
func (d *decider) reconcileUpdate() Plan {
	deadline := d.verdictAt(d.m.Status.Since, d.p.inPlaceTimeout(d.m))
	unknown := d.m.Status.UpdateStage() == Unrecognized
	if d.o.NoCluster {
		switch {
		case unknown:
			return d.retarget(nil)
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
		return d.retarget(n)
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

// updateOverOrNoNode is over where the node may be missing: a user's selection may
// still be on it.
func (d *decider) updateOverOrNoNode(n *Node) bool {
	if n != nil {
		return d.updateOver(n)
	}
	return d.m.Spec.InPlace == InPlaceNone && d.m.Status.LastOperation.Stage != StageReady
}

// retarget finds out from the node where an update stands of which storage
// says nothing that makes sense.
func (d *decider) retarget(n *Node) Plan {
	if !d.o.NoCluster && d.o.Node.cached() {
		return d.readNode(false)
	}
	stage, moves := StageSelected, [len(Plan{}.Moves)]Move{stageMove(Unrecognized, eventRestart)}
	if n != nil && (n.told() || n.concluded(&d.p.Keys) && (d.adoptsUpdate(n) || !n.Applied.Update.Since.IsZero())) {
		stage, moves[1] = StageReady, stageMove(StageSelected, EventDrained)
	}
	why := decision.Why{Reason: reasonUpdateRestart, Name: string(d.m.Status.LastOperation.Stage)}
	plan := d.setStatus(why, func(s *Status) {
		s.LastOperation = d.operation(OperationInPlaceUpdate, StateProcessing, stage)
	})
	plan.Moves = moves
	return plan
}

// awaitNodeForUpdate waits for a node that is missing during its update. It may come
// back, as another object or the same; else the update has failed, and then
// its health is judged.
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

// withdrawUpdate brings a node that no agent was told of back into service. n is nil
// where it is missing.
func (d *decider) withdrawUpdate(n *Node, deadline time.Time) Plan {
	if n == nil {
		return d.updateWithdrawn(d.m.Spec.NodeName, StageSelected)
	}
	plan, busy := d.syncForUpdate(n, d.idleReason(n))
	switch {
	case !busy:
		return d.updateWithdrawn(n.Name, StageSelected)
	case plan.Write == nil && plan.Effect == nil && !d.now.Before(deadline):
		return d.updateTimedOut()
	}
	return lookAgainBy(plan, deadline)
}

// prepareUpdate takes a node out of service and has it drained.
func (d *decider) prepareUpdate(n *Node, deadline time.Time) Plan {
	if !d.now.Before(deadline) {
		return d.updateTimedOut()
	}
	if plan, busy := d.updateStepBackoff(); busy {
		return lookAgainBy(plan, deadline)
	}
	if d.concludedByOther(n) {
		return d.readyForUpdate(n)
	}
	if plan, busy := d.syncForUpdate(n, ReasonSelectedForUpdate); busy {
		return lookAgainBy(plan, deadline)
	}
	if plan, busy := d.drainForUpdate(n, deadline); busy {
		return plan
	}
	if answer := d.o.Drain; answer != nil {
		return toldOfLeft(d.readyForUpdate(n), n, answer)
	}
	return d.readyForUpdate(n)
}

// drainForUpdate drains the node. It is not busy once the node is drained.
func (d *decider) drainForUpdate(n *Node, deadline time.Time) (Plan, bool) {
	answer := d.o.Drain
	switch {
	case d.o.NoDrain:
		return Plan{}, false
	case answer == nil:
		return d.drainStaying(d.node(), d.waitBase(d.m.Status.Since), deadline), true
	case answer.Code != codes.OK:
		return d.updateStepFailed(n, answer.Outcome), true
	case answer.Done:
		return Plan{}, false
	}
	if plan, busy := d.recordDrainProgress(n, d.operation(OperationInPlaceUpdate, StateProcessing, d.m.Status.LastOperation.Stage)); busy {
		return plan, true
	}
	why := decision.Why{Reason: reasonUpdateDraining, Name: n.Name, Detail: answer.Why, For: deadline.Sub(d.now)}
	return Plan{At: d.earlierOf(answer.At, deadline), Why: why}, true
}

// drainAgain has a node drained that was registered again since it was: it lost its cordon with all
// else, and pods may have come to it.
func (d *decider) drainAgain(n *Node, deadline time.Time) (Plan, bool) {
	if n.told() || !n.Applied.Update.Since.IsZero() {
		return Plan{}, false
	}
	if d.o.Node.cached() {
		return d.readNode(false), true
	}
	if plan, busy := d.updateStepBackoff(); busy {
		return lookAgainBy(plan, deadline), true
	}
	plan, busy := d.drainForUpdate(n, deadline)
	return lookAgainBy(plan, deadline), busy
}

// awaitAgent tells the agent that it may go to work, and waits for its answer.
// No answer and no end of the time is taken from a cache, which may remember
// the answer to a former update.
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
	if plan, busy := d.drainAgain(n, deadline); busy {
		return plan
	}
	if plan, busy := d.syncForUpdate(n, ReasonReadyForUpdate); busy {
		return lookAgainBy(plan, deadline)
	}
	if d.m.Status.LastOperation.State == StateFailed { // what failed before has not now
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

// InPlaceRequest is what a rollout that updates machines in place asks of one
// of them. The machine's owner writes it.
type InPlaceRequest string

// The requests.
const (
	// InPlaceNone asks for nothing. To a machine whose update is done it says
	// that it is where it belongs and may work again; to one whose update is
	// under way, that it was withdrawn.
	InPlaceNone InPlaceRequest = ""
	// InPlaceCandidate says that the machine is to be updated at some time:
	// its node is labelled, and a user may select it by a label on the node.
	InPlaceCandidate InPlaceRequest = "Candidate"
	// InPlaceWaiting says the same, but that the owner decides when: a label on
	// the node begins no update, and is told. One that has begun goes on.
	InPlaceWaiting InPlaceRequest = "Waiting"
	// InPlaceSelected says that it is the machine's turn.
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

// NodeInPlaceUpdate is the condition of a node that says where its update
// stands. Its status is always True, and its reason says the stage. An update
// agent works at ReasonReadyForUpdate only. The condition
// stays on the node: the next update begins at ReasonUpdateSuccessful, or where
// the condition is missing.
const (
	NodeInPlaceUpdate = "InPlaceUpdate"

	ReasonCandidateForUpdate = "CandidateForUpdate"
	ReasonSelectedForUpdate  = "SelectedForUpdate"
	// ReasonDrainSuccessful is read only: this library goes on to
	// ReasonReadyForUpdate at once.
	ReasonDrainSuccessful = "DrainSuccessful"
	ReasonReadyForUpdate  = "ReadyForUpdate"
	// ReasonUpdateSuccessful also stands for an update that was withdrawn: there
	// is nothing for an agent to do.
	ReasonUpdateSuccessful = "UpdateSuccessful"
	ReasonNodeUpdateFailed = "UpdateFailed"
)

// UpdateMarks is the record of what an in-place update has put on a node, so
// that nothing else is taken off again.
type UpdateMarks struct {
	// Since is when the update began that took the node out of service,
	// whole seconds. Zero: none did.
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

// readyForUpdate stores that the agent may be told, before it is.
func (d *decider) readyForUpdate(n *Node) Plan {
	plan := d.setStatus(decision.Why{Reason: reasonReady, Name: n.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationInPlaceUpdate, StateProcessing, StageReady)
	})
	plan.Moves[0] = stageMove(StageSelected, EventDrained)
	return plan
}

func (d *decider) updateSucceeded(n *Node, from Stage) Plan {
	op := d.operation(OperationInPlaceUpdate, StateSuccessful, StageUpdateSuccessful)
	op.Message = "node " + n.Name + " is updated"
	return d.moveUpdate(eventUpdated, from, eventUpdated, decision.Why{Reason: reasonUpdated, Name: n.Name}, op)
}

// updatedTooLate ends an update that succeeded though it had been withdrawn. What is
// on the node now is not what its owner says, and must not pass for it: the
// machine stays visible as failed, without workload, until it is selected
// again or deleted.
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

// updateStepBackoff holds a failed step of an update back until it may be tried again;
// the cluster's answers recover as an unknown error of DeleteMachine.
func (d *decider) updateStepBackoff() (Plan, bool) {
	at := d.retryAt(codes.DeleteMachine)
	if at.IsZero() {
		return Plan{}, false
	}
	return d.retryLater(string(d.m.Status.LastOperation.Stage), at, time.Time{}), true
}

// updateStepFailed records that a node could not be drained or written.
func (d *decider) updateStepFailed(n *Node, answer Outcome) Plan {
	stage := d.m.Status.LastOperation.Stage
	why := decision.Why{Reason: reasonUpdateStep, Name: n.Name, Code: answer.Code, Detail: answer.Message}
	plan := d.setStatus(why, func(s *Status) {
		s.LastOperation = d.failure(OperationInPlaceUpdate, stage, answer.Code, answer.Message)
	})
	plan.Moves[0] = stageMove(stage, eventStageFailed)
	return plan
}

// moveUpdate moves the phase, and with it the stage, if storage holds the stage
// that this phase has. A candidate's is not stored.
func (d *decider) moveUpdate(on Event, from Stage, stageOn Event, why decision.Why, op Operation) Plan {
	plan := d.move(on, why, func(s *Status) { s.LastOperation = op })
	if d.m.Status.UpdateStage() == from {
		plan.Moves[1] = stageMove(from, stageOn)
	}
	return plan
}

// copyNodeStatus lets what the node says of itself ride on a write of the status.
func (d *decider) copyNodeStatus(n *Node, plan Plan) Plan {
	if status, ok := plan.Write.(*UpdateStatus); ok && n != nil {
		takeOver(&status.Status, n)
	}
	return plan
}

// stageMove is a step of the update table; zero where storage holds a stage
// that no edge leads out of.
func stageMove(from Stage, on Event) Move {
	to, ok := updates.Next(string(from), on)
	if !ok {
		return Move{}
	}
	return Move{Table: updates.Name, From: string(from), On: on, To: to}
}

// stepUpdate looks at what an in-place update wants of a machine that is
// watched, before anything else is done about its node.
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

// retryFailedUpdate looks whether the agent of a failed update has succeeded at last,
// whether the machine is to be updated once more, or not at all.
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
	case n.underWay() && (outdated || !selected):
		return d.setUpdateCondition(n, d.idleReason(n))
	case n.told() && n.result(&d.p.Keys) == UpdateFailed:
		return d.setUpdateCondition(n, ReasonNodeUpdateFailed)
	}
	return Plan{}, false
}

// announceCandidate has the node of a machine that is in no update say whether it is to
// be updated. What another program announced for its own labels is left alone.
func (d *decider) announceCandidate(n *Node) (Plan, bool) {
	have := &n.Applied.Update
	switch {
	case n.underWay() && !have.Since.IsZero():
		return d.setUpdateCondition(n, d.idleReason(n))
	case d.m.Status.Phase != PhaseRunning || n.underWay():
		return Plan{}, false
	case d.m.Spec.InPlace != InPlaceNone && !d.adoptsUpdate(n) && d.candidateUnannounced(n):
		return d.setUpdateCondition(n, ReasonCandidateForUpdate)
	case d.hasStaleMarks(n):
		return d.setUpdateCondition(n, ReasonUpdateSuccessful)
	}
	return Plan{}, false
}

// candidateUnannounced reports whether a node has yet to say that it is a candidate. After a
// success it says so before it is labelled, else once it is.
func (d *decider) candidateUnannounced(n *Node) bool {
	if n.announced() {
		return n.Applied.Update.Candidate && n.unsaid(ReasonCandidateForUpdate)
	}
	return n.Applied.Update.Candidate || !n.says(d.p.Keys.CandidateForUpdate)
}

// markRecovered lets a machine run again whose failed update is not wanted any more
// and whose node is healthy.
func (d *decider) markRecovered(n *Node) Plan {
	switch {
	case d.o.Node.cached():
		return d.readNode(false)
	case n.underWay():
		return d.retrySoon(d.updateConditionFailed(n))
	case d.outOfSync(n):
		return Plan{Why: d.whyOutOfSync(n)}
	}
	return d.copyNodeStatus(n, d.updateWithdrawn(n.Name, StageUpdateFailed))
}

// finishUpdate returns a machine to service whose update is done and whose owner has taken
// it over. It removes what the update has put on the node. When the node is healthy
// and its critical components are ready, the machine runs. Until the owner has taken
// it over, the machine waits, without a limit.
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
	ill := decision.Why{Reason: reasonNodeMissing, Name: name}
	if n != nil {
		bad := n.judge(d.p.nodeConditions(d.m))
		if bad.healthy() {
			return d.backInService(n)
		}
		ill = decision.Why{Reason: reasonNodeUnhealthy, Name: n.Name, Detail: bad.String()}
	}
	return d.awaitRecovery(n, ill)
}

// backInService lets workload back to a healthy node. For its critical
// components it waits for as long as they take: the machine counts as not
// available meanwhile, and is seen to.
func (d *decider) backInService(n *Node) Plan {
	if plan, busy := d.syncForUpdate(n, ReasonUpdateSuccessful); busy {
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

// awaitRecovery waits for an updated node to become healthy, for as long as a
// machine may be unhealthy; then its health is judged as any other's. n is nil
// where it is missing.
func (d *decider) awaitRecovery(n *Node, ill decision.Why) Plan {
	timeout := d.p.healthTimeout(d.m)
	at := d.verdictAt(d.m.Status.Since, timeout)
	forever := d.m.Spec.Config.DisableHealthTimeout
	if !forever && !d.now.Before(at) {
		op := d.operation(OperationHealthCheck, StateProcessing, StageNone)
		op.Message = ill.String()
		return d.copyNodeStatus(n, d.recordAgentUpdate(d.moveUpdate(eventUnhealthy, StageUpdateSuccessful, eventUnhealthy, ill, op)))
	}
	if n != nil {
		if plan, busy := d.syncForUpdate(n, ReasonUpdateSuccessful); busy {
			if forever {
				return plan
			}
			return lookAgainBy(plan, at)
		}
	}
	if forever {
		return Plan{Why: decision.Why{Reason: reasonUnhealthyForever, Name: d.m.Spec.NodeName}, Warn: d.foreignNode()}
	}
	detail := ill.String()
	return Plan{At: at, Why: decision.Why{Reason: reasonReturning, Name: d.m.Spec.NodeName, Detail: detail, For: at.Sub(d.now)}, Warn: d.foreignNode()}
}

// Another program, or an earlier version of it, may have begun an update of a
// node before this library manages the machine. The node's labels and the
// reason of its condition say where that update stands.

// adoptsUpdate reports whether another program has begun an update of the node, or has
// led on one that was announced here: the label of a candidate and a condition are
// there, and no record of when it began. An update that begins here is recorded
// before the condition tells of it, and for as long as it does (sinceTold); and the
// record of a candidate never meets a success (announced). What the other program
// put there is taken off when the update is over.
func (d *decider) adoptsUpdate(n *Node) bool {
	have := &n.Applied.Update
	if !have.Since.IsZero() || !n.says(d.p.Keys.CandidateForUpdate) {
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
	return n.underWay()
}

// leftByOther reports whether another program has moved the machine to its new
// owner after its update, and has yet to clean its node up. It says so by the
// agent's answer on the machine.
func (d *decider) leftByOther(n *Node) bool {
	k := &d.p.Keys
	return d.m.Spec.InPlace == InPlaceNone && d.m.Status.Phase == PhaseRunning &&
		k.UpdateResult != "" && d.m.Labels[k.UpdateResult] == UpdateSuccessful &&
		n.updateReason() == ReasonUpdateSuccessful && n.result(k) == UpdateSuccessful
}

// inUpdate reports whether the machine's phase is one of an update.
func (d *decider) inUpdate() bool {
	phase := d.m.Status.Phase
	return phase == PhaseInPlaceUpdating || phase == PhaseInPlaceUpdateFailed || phase == PhaseInPlaceUpdateSuccessful
}

// updateMarks is what an update has put on the node: as recorded, or as another
// program that began the update left it. A cordon is the update's from the
// drain on. A selection is ours if the owner selects: a user's stays.
func (d *decider) updateMarks(n *Node) UpdateMarks {
	if !d.adoptsUpdate(n) {
		return n.Applied.Update
	}
	have, drained := &n.Applied.Update, n.updateReason() != ReasonCandidateForUpdate
	return UpdateMarks{
		Candidate: true, Cordoned: have.Cordoned || drained && n.Unschedulable,
		Selected: have.Selected || d.m.Spec.InPlace == InPlaceSelected && n.says(d.p.Keys.SelectedForUpdate),
	}
}

// concludedByOther reports whether another program has begun the update or has
// led it on, and the agent has answered to it.
func (d *decider) concludedByOther(n *Node) bool {
	return d.adoptsUpdate(n) && n.concluded(&d.p.Keys)
}

// updateUnclaimed reports whether another program has begun the update of a machine
// of which nothing is requested. That is no withdrawal: the machine's owner has
// not seen it yet. It has the time of an update for that.
func (d *decider) updateUnclaimed(n *Node) bool {
	s := &d.m.Status
	return n != nil && d.m.Spec.InPlace == InPlaceNone && (s.Phase == PhaseInPlaceUpdating || s.Phase == PhaseInPlaceUpdateFailed) &&
		d.adoptsUpdate(n) && d.now.Before(d.verdictAt(s.Since, d.p.inPlaceTimeout(d.m)))
}

// recordsOthersMarks reports whether the marks that another program has left are recorded as
// they are: before anything else is done with them, and until the update goes on here.
func (d *decider) recordsOthersMarks(n *Node) bool {
	switch {
	case d.m.Status.Phase == PhaseInPlaceUpdating || !d.adoptsUpdate(n) || d.leftByOther(n):
		return false
	case d.inUpdate():
		return d.unrecordedMarks(n)
	}
	return true
}

// unrecordedMarks reports whether another program has left marks that are not on record.
func (d *decider) unrecordedMarks(n *Node) bool {
	if !d.adoptsUpdate(n) {
		return false
	}
	marks := d.updateMarks(n)
	return !n.Applied.Update.equal(&marks)
}
