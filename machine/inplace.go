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

// update decides about a machine that is being updated. Its time counts from
// when it was selected. No verdict is passed on its health meanwhile, even if its node is NotReady.
//
// At the end of Policy.InPlaceTimeout the machine is InPlaceUpdateFailed. It stays cordoned and
// counts as not available. After the health timeout it is Failed, if the replacement budget allows
// that, and replaced: see outOfTime.
func (u inPlace) update() Plan {
	deadline := u.verdictAt(u.m.Status.Since, u.p.inPlaceTimeout(u.m))
	unknown := u.m.Status.UpdateStage() == Unrecognized
	if u.o.NoCluster {
		switch {
		case unknown:
			return u.retarget()
		case !u.now.Before(deadline):
			return u.timedOut()
		}
		return Plan{At: deadline, Why: decision.Why{Reason: reasonUpdating}}
	}
	if !u.looked() {
		return u.look(false)
	}
	u.n = u.node()
	if unknown {
		return u.retarget()
	}
	switch {
	case nodeUpdate(u).unclaimed():
		return Plan{At: deadline, Why: decision.Why{Reason: reasonUnclaimed, Name: u.n.Name, For: deadline.Sub(u.now)}}
	case u.overWithout():
		if u.o.Node.cached() {
			return u.look(false)
		}
		return u.withdraw(deadline)
	case u.n == nil:
		return u.awaitNode(deadline)
	case u.m.Status.LastOperation.Stage == StageReady:
		return u.awaitAgent(deadline)
	}
	return u.prepare(deadline)
}

// overWithout is over where the node may be missing: a user's selection may
// still be on it.
func (u inPlace) overWithout() bool {
	if u.n != nil {
		return nodeUpdate(u).over()
	}
	return u.m.Spec.InPlace == InPlaceNone && u.m.Status.LastOperation.Stage != StageReady
}

// retarget finds out from the node where an update stands of which storage
// says nothing that makes sense.
func (u inPlace) retarget() Plan {
	if !u.o.NoCluster && u.o.Node.cached() {
		return u.look(false)
	}
	stage, moves := StageSelected, [len(Plan{}.Moves)]Move{stageMove(Unrecognized, eventRestart)}
	if u.n != nil && (u.n.told() || u.n.concluded(&u.p.Keys) && (nodeUpdate(u).adopts() || !u.n.Applied.Update.Since.IsZero())) {
		stage, moves[1] = StageReady, stageMove(StageSelected, EventDrained)
	}
	why := decision.Why{Reason: reasonUpdateRestart, Name: string(u.m.Status.LastOperation.Stage)}
	plan := u.setStatus(why, func(s *Status) {
		s.LastOperation = u.operation(OperationInPlaceUpdate, StateProcessing, stage)
	})
	plan.Moves = moves
	return plan
}

// awaitNode waits for a node that is missing during its update. It may come
// back, as another object or the same; else the update has failed, and then
// its health is judged.
func (u inPlace) awaitNode(deadline time.Time) Plan {
	switch {
	case u.o.Node.cached():
		return u.look(false)
	case !u.now.Before(deadline):
		return u.timedOut()
	}
	why := decision.Why{Reason: reasonAwaitNode, Name: u.m.Spec.NodeName, For: deadline.Sub(u.now)}
	return Plan{At: deadline, Why: why, Warn: u.foreign()}
}

// withdraw brings a node that no agent was told of back into service. n is nil
// where it is missing.
func (u inPlace) withdraw(deadline time.Time) Plan {
	if u.n == nil {
		return u.withdrawn(u.m.Spec.NodeName, StageSelected)
	}
	plan, busy := u.adjust(u.restReason())
	switch {
	case !busy:
		return u.withdrawn(u.n.Name, StageSelected)
	case plan.Write == nil && plan.Effect == nil && !u.now.Before(deadline):
		return u.timedOut()
	}
	return within(plan, deadline)
}

// prepare takes a node out of service and has it drained.
func (u inPlace) prepare(deadline time.Time) Plan {
	if !u.now.Before(deadline) {
		return u.timedOut()
	}
	if plan, wait := u.gate(); wait {
		return within(plan, deadline)
	}
	if nodeUpdate(u).concludedByOther() {
		return u.emptied()
	}
	if plan, busy := u.adjust(ReasonSelectedForUpdate); busy {
		return within(plan, deadline)
	}
	if plan, done := u.empty(deadline); !done {
		return plan
	}
	if answer := u.o.Drain; answer != nil {
		return toldOfLeft(u.emptied(), u.n, answer)
	}
	return u.emptied()
}

// empty has the node drained, and reports whether it is.
func (u inPlace) empty(deadline time.Time) (Plan, bool) {
	answer := u.o.Drain
	switch {
	case u.o.NoDrain:
		return Plan{}, true
	case answer == nil:
		return u.drainStaying(u.node(), u.since(u.m.Status.Since), deadline), false
	case answer.Code != codes.OK:
		return u.stepFailed(answer.Outcome), false
	case answer.Done:
		return Plan{}, true
	}
	if plan, unsaid := u.noteDrain(u.n, u.operation(OperationInPlaceUpdate, StateProcessing, u.m.Status.LastOperation.Stage)); unsaid {
		return plan, false
	}
	why := decision.Why{Reason: reasonUpdateDraining, Name: u.n.Name, Detail: answer.Why, For: deadline.Sub(u.now)}
	return Plan{At: u.sooner(answer.At, deadline), Why: why}, false
}

// drainAnew has a node drained that was registered again since it was: it lost its cordon with all
// else, and pods may have come to it.
func (u inPlace) drainAnew(deadline time.Time) (Plan, bool) {
	if u.n.told() || !u.n.Applied.Update.Since.IsZero() {
		return Plan{}, false
	}
	if u.o.Node.cached() {
		return u.look(false), true
	}
	if plan, wait := u.gate(); wait {
		return within(plan, deadline), true
	}
	plan, done := u.empty(deadline)
	return within(plan, deadline), !done
}

// awaitAgent tells the agent that it may go to work, and waits for its answer.
// No answer and no end of the time is taken from a cache, which may remember
// the answer to a former update.
func (u inPlace) awaitAgent(deadline time.Time) Plan {
	result, late := u.n.result(&u.p.Keys), !u.now.Before(deadline)
	known := result == UpdateSuccessful || result == UpdateFailed
	switch {
	case (known || late) && u.o.Node.cached():
		return u.look(false)
	case result == UpdateSuccessful && u.m.Spec.InPlace == InPlaceNone:
		return u.tooLate()
	case result == UpdateSuccessful:
		return u.succeeded(StageReady)
	case result == UpdateFailed:
		detail := u.n.failedReason(&u.p.Keys)
		return u.settleStatus(u.failed(decision.Why{Reason: reasonUpdateFailed, Name: u.n.Name, Detail: detail}, codes.Internal, detail))
	case late:
		return u.settleStatus(u.timedOut())
	}
	if plan, busy := u.drainAnew(deadline); busy {
		return plan
	}
	if plan, busy := u.adjust(ReasonReadyForUpdate); busy {
		return within(plan, deadline)
	}
	if u.m.Status.LastOperation.State == StateFailed { // what failed before has not now
		return u.setStatus(decision.Why{Reason: reasonReady, Name: u.n.Name}, func(s *Status) {
			s.LastOperation = u.operation(OperationInPlaceUpdate, StateProcessing, StageReady)
		})
	}
	plan := Plan{At: deadline, Why: decision.Why{Reason: reasonAwaitAgent, Name: u.n.Name, For: deadline.Sub(u.now)}}
	if result != "" {
		plan.Warn = decision.Why{Reason: reasonUpdateResult, Name: u.n.Name, Detail: result}
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

func (u inPlace) begin() Plan {
	return u.advance(eventSelected, StageCandidate, eventSelected, decision.Why{Reason: reasonSelected, Name: u.n.Name},
		u.operation(OperationInPlaceUpdate, StateProcessing, StageSelected))
}

// emptied stores that the agent may be told, before it is.
func (u inPlace) emptied() Plan {
	plan := u.setStatus(decision.Why{Reason: reasonReady, Name: u.n.Name}, func(s *Status) {
		s.LastOperation = u.operation(OperationInPlaceUpdate, StateProcessing, StageReady)
	})
	plan.Moves[0] = stageMove(StageSelected, EventDrained)
	return plan
}

func (u inPlace) succeeded(from Stage) Plan {
	op := u.operation(OperationInPlaceUpdate, StateSuccessful, StageUpdateSuccessful)
	op.Message = "node " + u.n.Name + " is updated"
	return u.advance(eventUpdated, from, eventUpdated, decision.Why{Reason: reasonUpdated, Name: u.n.Name}, op)
}

// tooLate ends an update that succeeded though it had been withdrawn. What is
// on the node now is not what its owner says, and must not pass for it: the
// machine stays visible as failed, without workload, until it is selected
// again or deleted.
func (u inPlace) tooLate() Plan {
	why := decision.Why{Reason: reasonOutdated, Name: u.n.Name}
	op := u.failure(OperationInPlaceUpdate, StageCandidate, codes.Aborted, why.String())
	return u.settleStatus(u.advance(eventUpdateFailed, StageReady, eventOutdated, why, op))
}

func (u inPlace) withdrawn(name string, from Stage) Plan {
	op := u.operation(OperationInPlaceUpdate, StateSuccessful, StageCandidate)
	op.Message = "the in-place update was withdrawn"
	return u.advance(eventWithdrawn, from, eventWithdrawn, decision.Why{Reason: reasonWithdrawn, Name: name}, op)
}

func (u inPlace) timedOut() Plan {
	why := decision.Why{Reason: reasonUpdateTimeout, Name: u.m.Spec.NodeName, For: u.p.inPlaceTimeout(u.m)}
	return u.failed(why, codes.DeadlineExceeded, why.String())
}

func (u inPlace) failed(why decision.Why, code codes.Code, message string) Plan {
	return u.advance(eventUpdateFailed, u.m.Status.LastOperation.Stage, eventUpdateFailed, why,
		u.failure(OperationInPlaceUpdate, StageUpdateFailed, code, message))
}

// gate holds a failed step of an update back until it may be tried again;
// the cluster's answers recover as an unknown error of DeleteMachine.
func (u inPlace) gate() (Plan, bool) {
	at := u.retryAt(codes.DeleteMachine)
	if at.IsZero() {
		return Plan{}, false
	}
	return u.retryLater(string(u.m.Status.LastOperation.Stage), at, time.Time{}), true
}

// stepFailed records that a node could not be drained or written.
func (u inPlace) stepFailed(answer Outcome) Plan {
	stage := u.m.Status.LastOperation.Stage
	why := decision.Why{Reason: reasonUpdateStep, Name: u.n.Name, Code: answer.Code, Detail: answer.Message}
	plan := u.setStatus(why, func(s *Status) {
		s.LastOperation = u.failure(OperationInPlaceUpdate, stage, answer.Code, answer.Message)
	})
	plan.Moves[0] = stageMove(stage, eventStageFailed)
	return plan
}

// advance moves the phase, and with it the stage, if storage holds the stage
// that this phase has. A candidate's is not stored.
func (u inPlace) advance(on Event, from Stage, stageOn Event, why decision.Why, op Operation) Plan {
	plan := u.move(on, why, func(s *Status) { s.LastOperation = op })
	if u.m.Status.UpdateStage() == from {
		plan.Moves[1] = stageMove(from, stageOn)
	}
	return plan
}

// settleStatus lets what the node says of itself ride on a write of the status.
func (u inPlace) settleStatus(plan Plan) Plan {
	if status, ok := plan.Write.(*UpdateStatus); ok && u.n != nil {
		takeOver(&status.Status, u.n)
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

// step looks at what an in-place update wants of a machine that is
// watched, before anything else is done about its node.
func (u inPlace) step(healthy bool) (Plan, bool) {
	switch u.m.Status.Phase {
	case PhaseRunning:
		if healthy && nodeUpdate(u).selected() && !nodeUpdate(u).waits() && !u.preserved() && u.n.Applied.Preserved == (PreservedMarks{}) {
			return u.begin(), true
		}
	case PhaseInPlaceUpdateFailed:
		return u.tryAgain(healthy)
	}
	return u.announce()
}

// tryAgain looks whether the agent of a failed update has succeeded at last,
// whether the machine is to be updated once more, or not at all.
func (u inPlace) tryAgain(healthy bool) (Plan, bool) {
	marks := nodeUpdate(u)
	selected, outdated := marks.selected(), marks.outdated()
	again := selected && outdated && healthy
	answered := selected && !outdated && u.n.result(&u.p.Keys) == UpdateSuccessful
	switch {
	case (again || answered) && u.o.Node.cached():
		return u.look(false), true
	case again:
		return u.begin(), true
	case answered:
		return u.succeeded(StageUpdateFailed), true
	case u.n.underWay() && (outdated || !selected):
		return u.say(u.restReason())
	case u.n.told() && u.n.result(&u.p.Keys) == UpdateFailed:
		return u.say(ReasonNodeUpdateFailed)
	}
	return Plan{}, false
}

// announce has the node of a machine that is in no update say whether it is to
// be updated. What another program announced for its own labels is left alone.
func (u inPlace) announce() (Plan, bool) {
	have := &u.n.Applied.Update
	switch {
	case u.n.underWay() && !have.Since.IsZero():
		return u.say(u.restReason())
	case u.m.Status.Phase != PhaseRunning || u.n.underWay():
		return Plan{}, false
	case u.m.Spec.InPlace != InPlaceNone && !nodeUpdate(u).adopts() && u.announces():
		return u.say(ReasonCandidateForUpdate)
	case nodeUpdate(u).hasStaleMarks():
		return u.say(ReasonUpdateSuccessful)
	}
	return Plan{}, false
}

// announces reports whether a node has yet to say that it is a candidate. After a
// success it says so before it is labelled, else once it is.
func (u inPlace) announces() bool {
	if u.n.announced() {
		return u.n.Applied.Update.Candidate && u.n.unsaid(ReasonCandidateForUpdate)
	}
	return u.n.Applied.Update.Candidate || !u.n.says(u.p.Keys.CandidateForUpdate)
}

// markRecovered lets a machine run again whose failed update is not wanted any more
// and whose node is healthy.
func (u inPlace) markRecovered() Plan {
	sync := nodeSync{u.situation, u.n, false}
	switch {
	case u.o.Node.cached():
		return u.look(false)
	case u.n.underWay():
		return u.later(u.unmarked())
	case sync.outOfLine():
		return Plan{Why: sync.notInLine()}
	}
	return u.settleStatus(u.withdrawn(u.n.Name, StageUpdateFailed))
}

// finish returns a machine to service whose update is done and whose owner has taken
// it over. It removes what the update has put on the node. When the node is healthy
// and its critical components are ready, the machine runs. Until the owner has taken
// it over, the machine waits, without a limit.
func (u inPlace) finish() Plan {
	name := u.m.Spec.NodeName
	if u.o.NoCluster {
		if u.m.Spec.InPlace != InPlaceNone {
			return Plan{Why: decision.Why{Reason: reasonAwaitOwner, Name: name}}
		}
		return u.returned(name)
	}
	if !u.looked() {
		return u.look(false)
	}
	u.n = u.node()
	if u.m.Spec.InPlace != InPlaceNone {
		return Plan{Why: decision.Why{Reason: reasonAwaitOwner, Name: name}, Warn: u.foreign()}
	}
	if u.o.Node.cached() {
		return u.look(false)
	}
	ill := decision.Why{Reason: reasonNodeMissing, Name: name}
	if u.n != nil {
		bad := u.n.judge(u.p.nodeConditions(u.m))
		if bad.healthy() {
			return u.backInService()
		}
		ill = decision.Why{Reason: reasonNodeUnhealthy, Name: u.n.Name, Detail: bad.String()}
	}
	return u.awaitRecovery(ill)
}

// backInService lets workload back to a healthy node. For its critical
// components it waits for as long as they take: the machine counts as not
// available meanwhile, and is seen to.
func (u inPlace) backInService() Plan {
	if plan, busy := u.adjust(ReasonUpdateSuccessful); busy {
		return plan
	}
	if u.n.hasTaint(u.p.Keys.CriticalComponents) {
		return Plan{Why: decision.Why{Reason: reasonReturnCritical, Name: u.n.Name}}
	}
	return u.returned(u.n.Name)
}

func (u inPlace) returned(name string) Plan {
	op := u.operation(OperationInPlaceUpdate, StateSuccessful, StageInService)
	op.Message = "node " + name + " is updated and in service"
	plan := u.advance(eventReturned, StageUpdateSuccessful, eventReturned, decision.Why{Reason: reasonReturned, Name: name}, op)
	return u.settleStatus(hotUpdate{u.situation}.noteAgent(plan))
}

// awaitRecovery waits for an updated node to become healthy, for as long as a
// machine may be unhealthy; then its health is judged as any other's. n is nil
// where it is missing.
func (u inPlace) awaitRecovery(ill decision.Why) Plan {
	timeout := u.p.healthTimeout(u.m)
	at := u.verdictAt(u.m.Status.Since, timeout)
	forever := u.m.Spec.Config.DisableHealthTimeout
	if !forever && !u.now.Before(at) {
		op := u.operation(OperationHealthCheck, StateProcessing, StageNone)
		op.Message = ill.String()
		return u.settleStatus(hotUpdate{u.situation}.noteAgent(u.advance(eventUnhealthy, StageUpdateSuccessful, eventUnhealthy, ill, op)))
	}
	if u.n != nil {
		if plan, busy := u.adjust(ReasonUpdateSuccessful); busy {
			if forever {
				return plan
			}
			return within(plan, at)
		}
	}
	if forever {
		return Plan{Why: decision.Why{Reason: reasonUnhealthyForever, Name: u.m.Spec.NodeName}, Warn: u.foreign()}
	}
	detail := ill.String()
	return Plan{At: at, Why: decision.Why{Reason: reasonReturning, Name: u.m.Spec.NodeName, Detail: detail, For: at.Sub(u.now)}, Warn: u.foreign()}
}

// Another program, or an earlier version of it, may have begun an update of a
// node before this library manages the machine. The node's labels and the
// reason of its condition say where that update stands.

// adopts reports whether another program has begun an update of the node, or has
// led on one that was announced here: the label of a candidate and a condition are
// there, and no record of when it began. An update that begins here is recorded
// before the condition tells of it, and for as long as it does (sinceTold); and the
// record of a candidate never meets a success (announced). What the other program
// put there is taken off when the update is over.
func (u nodeUpdate) adopts() bool {
	have := &u.n.Applied.Update
	if !have.Since.IsZero() || !u.n.says(u.p.Keys.CandidateForUpdate) {
		return false
	}
	if u.m.Spec.InPlace == InPlaceNone && !u.inUpdate() {
		return u.leftOver()
	}
	switch u.n.updateReason() {
	case ReasonCandidateForUpdate:
		return have.none()
	case ReasonUpdateSuccessful:
		return u.n.result(&u.p.Keys) == UpdateSuccessful
	}
	return u.n.underWay()
}

// leftOver reports whether another program has moved the machine to its new
// owner after its update, and has yet to clean its node up. It says so by the
// agent's answer on the machine.
func (u nodeUpdate) leftOver() bool {
	k := &u.p.Keys
	return u.m.Spec.InPlace == InPlaceNone && u.m.Status.Phase == PhaseRunning &&
		k.UpdateResult != "" && u.m.Labels[k.UpdateResult] == UpdateSuccessful &&
		u.n.updateReason() == ReasonUpdateSuccessful && u.n.result(k) == UpdateSuccessful
}

// inUpdate reports whether the machine's phase is one of an update.
func (u nodeUpdate) inUpdate() bool {
	phase := u.m.Status.Phase
	return phase == PhaseInPlaceUpdating || phase == PhaseInPlaceUpdateFailed || phase == PhaseInPlaceUpdateSuccessful
}

// marks is what an update has put on the node: as recorded, or as another
// program that began the update left it. A cordon is the update's from the
// drain on. A selection is ours if the owner selects: a user's stays.
func (u nodeUpdate) marks() UpdateMarks {
	if !u.adopts() {
		return u.n.Applied.Update
	}
	have, drained := &u.n.Applied.Update, u.n.updateReason() != ReasonCandidateForUpdate
	return UpdateMarks{
		Candidate: true, Cordoned: have.Cordoned || drained && u.n.Unschedulable,
		Selected: have.Selected || u.m.Spec.InPlace == InPlaceSelected && u.n.says(u.p.Keys.SelectedForUpdate),
	}
}

// concludedByOther reports whether another program has begun the update or has
// led it on, and the agent has answered to it.
func (u nodeUpdate) concludedByOther() bool {
	return u.adopts() && u.n.concluded(&u.p.Keys)
}

// unclaimed reports whether another program has begun the update of a machine
// of which nothing is requested. That is no withdrawal: the machine's owner has
// not seen it yet. It has the time of an update for that.
func (u nodeUpdate) unclaimed() bool {
	s := &u.m.Status
	return u.n != nil && u.m.Spec.InPlace == InPlaceNone && (s.Phase == PhaseInPlaceUpdating || s.Phase == PhaseInPlaceUpdateFailed) &&
		u.adopts() && u.now.Before(u.verdictAt(s.Since, u.p.inPlaceTimeout(u.m)))
}

// records reports whether the marks that another program has left are recorded as
// they are: before anything else is done with them, and until the update goes on here.
func (u nodeUpdate) records() bool {
	switch {
	case u.m.Status.Phase == PhaseInPlaceUpdating || !u.adopts() || u.leftOver():
		return false
	case u.inUpdate():
		return u.strange()
	}
	return true
}

// strange reports whether another program has left marks that are not on record.
func (u nodeUpdate) strange() bool {
	if !u.adopts() {
		return false
	}
	marks := u.marks()
	return !u.n.Applied.Update.equal(&marks)
}
