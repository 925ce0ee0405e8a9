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
			return u.reorient()
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
		return u.reorient()
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

// reorient finds out from the node where an update stands of which storage
// says nothing that makes sense.
func (u inPlace) reorient() Plan {
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
	if nodeUpdate(u).answeredElsewhere() {
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
