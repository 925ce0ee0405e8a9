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

// selected tells whether it is the machine's turn: by its owner's request, or
// by a user's label on the node of a candidate.
func (d *decider) selected(n *Node) bool {
	switch d.m.Spec.InPlace {
	case InPlaceSelected:
		return true
	case InPlaceCandidate:
		return !n.Applied.Update.Selected && n.says(d.p.Keys.SelectedForUpdate)
	}
	return false
}

// over tells whether an update that the agent is not at work at is not wanted
// any more.
func (d *decider) over(n *Node) bool {
	switch d.m.Status.Phase {
	case PhaseInPlaceUpdating:
		return d.m.Status.LastOperation.Stage != StageReady && !d.selected(n)
	case PhaseInPlaceUpdateFailed:
		return !d.outdated() && !d.selected(n) && !d.unclaimed(n)
	}
	return false
}

// outdated tells whether the node was updated after that had been withdrawn.
func (d *decider) outdated() bool {
	op := &d.m.Status.LastOperation
	return d.m.Status.Phase == PhaseInPlaceUpdateFailed && op.Kind == OperationInPlaceUpdate && op.Stage == StageCandidate
}

// updateStep looks at what an in-place update wants of a machine that is
// watched, before anything else is done about its node.
func (d *decider) updateStep(n *Node, healthy bool) (Plan, bool) {
	switch d.m.Status.Phase {
	case PhaseRunning:
		if healthy && d.selected(n) && !d.preserved() && n.Applied.Preserved == (PreservedMarks{}) {
			return d.begin(n), true
		}
	case PhaseInPlaceUpdateFailed:
		return d.tryAgain(n, healthy)
	}
	return d.announce(n)
}

// announce has the node of a machine that is in no update say whether it is to
// be updated. What another program announced for its own labels is left alone.
func (d *decider) announce(n *Node) (Plan, bool) {
	have := &n.Applied.Update
	switch {
	case n.underWay() && !have.Since.IsZero():
		return d.say(n, d.restReason(n))
	case d.m.Status.Phase != PhaseRunning || n.underWay():
		return Plan{}, false
	case d.m.Spec.InPlace != InPlaceNone && !d.adopts(n) && d.announces(n):
		return d.say(n, ReasonCandidateForUpdate)
	case d.misleads(n):
		return d.say(n, ReasonUpdateSuccessful)
	}
	return Plan{}, false
}

// announces reports whether a node has yet to say that it is a candidate. After a
// success it says so before it is labelled, else once it is.
func (d *decider) announces(n *Node) bool {
	if n.announced() {
		return n.Applied.Update.Candidate && n.unsaid(ReasonCandidateForUpdate)
	}
	return n.Applied.Update.Candidate || !n.says(d.p.Keys.CandidateForUpdate)
}

// misleads reports whether a node of which no update is wanted says that it
// awaits one, or something at which no other program begins one. What another
// program has announced for its own label does not count; ours is taken off first.
func (d *decider) misleads(n *Node) bool {
	if d.m.Spec.InPlace != InPlaceNone || n.Applied.Update.Candidate {
		return false
	}
	return n.formerEnd() || n.awaitsTurn() && !n.says(d.p.Keys.CandidateForUpdate)
}

func (d *decider) begin(n *Node) Plan {
	return d.advance(EventSelected, StageCandidate, EventSelected, decision.Why{Reason: reasonSelected, Name: n.Name},
		d.operation(OperationInPlaceUpdate, StateProcessing, StageSelected))
}

// tryAgain looks whether the agent of a failed update has succeeded at last,
// whether the machine is to be updated once more, or not at all.
func (d *decider) tryAgain(n *Node, healthy bool) (Plan, bool) {
	selected, outdated := d.selected(n), d.outdated()
	again := selected && outdated && healthy
	answered := selected && !outdated && n.result(&d.p.Keys) == UpdateSuccessful
	switch {
	case (again || answered) && d.o.Node.cached():
		return d.look(false), true
	case again:
		return d.begin(n), true
	case answered:
		return d.succeeded(n, StageUpdateFailed), true
	case n.underWay() && (outdated || !selected):
		return d.say(n, d.restReason(n))
	case n.told() && n.result(&d.p.Keys) == UpdateFailed:
		return d.say(n, ReasonNodeUpdateFailed)
	}
	return Plan{}, false
}

// say has the node say where its update stands; false: that was tried in this
// pass, and holds nothing else up, or another program's marks are recorded first.
func (d *decider) say(n *Node, reason string) (Plan, bool) {
	switch {
	case d.o.NodeMarked != nil || d.strange(n):
		return Plan{}, false
	case d.behind(n):
		return d.fence(n), true
	}
	return d.tell(n, reason), true
}

// restReason is what a node says that no agent is to work on: that its turn will
// come, or that there is nothing to do.
func (d *decider) restReason(n *Node) string {
	if d.m.Spec.InPlace != InPlaceNone && n.Applied.Update.Candidate && !d.outdated() {
		return ReasonCandidateForUpdate
	}
	return ReasonUpdateSuccessful
}

// forgive lets a machine run again whose failed update nobody wants any more
// and whose node is healthy.
func (d *decider) forgive(n *Node) Plan {
	switch {
	case d.o.Node.cached():
		return d.look(false)
	case n.underWay():
		return d.later(d.unmarked(n))
	case d.outOfLine(n, false):
		return Plan{Why: d.notInLine(n)}
	}
	return d.settleStatus(d.giveUp(n.Name, StageUpdateFailed), n)
}

// update looks after a machine that is being updated. Its time counts from
// when it was selected. No verdict is passed on its health meanwhile.
func (d *decider) update() Plan {
	deadline := d.verdictAt(d.m.Status.Since, d.p.inPlaceTimeout(d.m))
	if d.o.NoCluster {
		if !d.now.Before(deadline) {
			return d.updateTimedOut()
		}
		return Plan{At: deadline, Why: decision.Why{Reason: reasonUpdating}}
	}
	if !d.looked() {
		return d.look(false)
	}
	n := d.node()
	if n != nil && leaving(n) {
		return d.followDeletion(n)
	}
	op := &d.m.Status.LastOperation
	if op.Kind != OperationInPlaceUpdate || op.Stage != StageSelected && op.Stage != StageReady {
		return d.reorient(n)
	}
	switch {
	case d.unclaimed(n):
		return Plan{At: deadline, Why: decision.Why{Reason: reasonUnclaimed, Name: n.Name, For: deadline.Sub(d.now)}}
	case d.overWithout(n):
		if d.o.Node.cached() {
			return d.look(false)
		}
		return d.withdraw(n, deadline)
	case n == nil:
		return d.awaitNode(deadline)
	case op.Stage == StageReady:
		return d.awaitAgent(n, deadline)
	}
	return d.prepare(n, deadline)
}

// overWithout is over where the node may be missing: a user's selection may
// still be on it.
func (d *decider) overWithout(n *Node) bool {
	if n != nil {
		return d.over(n)
	}
	return d.m.Spec.InPlace == InPlaceNone && d.m.Status.LastOperation.Stage != StageReady
}

// reorient finds out from the node where an update stands of which storage
// says nothing that makes sense.
func (d *decider) reorient(n *Node) Plan {
	if d.o.Node.cached() {
		return d.look(false)
	}
	stage := StageSelected
	if n != nil && (n.told() || n.concluded(&d.p.Keys) && (d.adopts(n) || !n.Applied.Update.Since.IsZero())) {
		stage = StageReady
	}
	why := decision.Why{Reason: reasonUpdateRestart, Name: string(d.m.Status.LastOperation.Stage)}
	return d.setStatus(why, func(s *Status) {
		s.LastOperation = d.operation(OperationInPlaceUpdate, StateProcessing, stage)
	})
}

// awaitNode waits for a node that is missing during its update. It may come
// back, as another object or the same; else the update has failed, and then
// its health is judged.
func (d *decider) awaitNode(deadline time.Time) Plan {
	switch {
	case d.o.Node.cached():
		return d.look(false)
	case !d.now.Before(deadline):
		return d.updateTimedOut()
	}
	why := decision.Why{Reason: reasonAwaitNode, Name: d.m.Spec.NodeName, For: deadline.Sub(d.now)}
	return Plan{At: deadline, Why: why, Warn: d.foreign()}
}

// withdraw brings a node that no agent was told of back into service. n is nil
// where it is missing.
func (d *decider) withdraw(n *Node, deadline time.Time) Plan {
	if n == nil {
		return d.giveUp(d.m.Spec.NodeName, StageSelected)
	}
	plan, busy := d.adjust(n, d.restReason(n))
	switch {
	case !busy:
		return d.giveUp(n.Name, StageSelected)
	case plan.Write == nil && plan.Effect == nil && !d.now.Before(deadline):
		return d.updateTimedOut()
	}
	return within(plan, deadline)
}

func (d *decider) giveUp(name string, from Stage) Plan {
	op := d.operation(OperationInPlaceUpdate, StateSuccessful, StageCandidate)
	op.Message = "the in-place update was withdrawn"
	return d.advance(EventWithdrawn, from, EventWithdrawn, decision.Why{Reason: reasonWithdrawn, Name: name}, op)
}

// prepare takes a node out of service and has it drained.
func (d *decider) prepare(n *Node, deadline time.Time) Plan {
	if !d.now.Before(deadline) {
		return d.updateTimedOut()
	}
	if plan, wait := d.updateGate(); wait {
		return within(plan, deadline)
	}
	if d.answeredElsewhere(n) {
		return d.emptied(n)
	}
	if plan, busy := d.adjust(n, ReasonSelectedForUpdate); busy {
		return within(plan, deadline)
	}
	answer := d.o.Drain
	switch {
	case d.o.NoDrain:
		return d.emptied(n)
	case answer == nil:
		return d.drainStaying(n, d.since(d.m.Status.Since), deadline)
	case answer.Code != codes.OK:
		return d.updateStepFailed(n, answer.Outcome)
	case answer.Done:
		return d.emptied(n)
	}
	if plan, unsaid := d.noteDrain(n, d.operation(OperationInPlaceUpdate, StateProcessing, StageSelected)); unsaid {
		return plan
	}
	why := decision.Why{Reason: reasonUpdateDraining, Name: n.Name, Detail: answer.Why, For: deadline.Sub(d.now)}
	return Plan{At: d.sooner(answer.At, deadline), Why: why}
}

// updateGate holds a failed step of an update back until it may be tried again;
// the cluster's answers recover as an unknown error of DeleteMachine.
func (d *decider) updateGate() (Plan, bool) {
	at := d.retryAt(codes.DeleteMachine)
	if at.IsZero() {
		return Plan{}, false
	}
	op := &d.m.Status.LastOperation
	return Plan{At: at, Why: decision.Why{Reason: reasonRetryAt, Name: string(op.Stage), Code: op.Code, For: at.Sub(d.now)}}, true
}

// updateStepFailed records that a node could not be drained or written.
func (d *decider) updateStepFailed(n *Node, answer Outcome) Plan {
	stage := d.m.Status.LastOperation.Stage
	why := decision.Why{Reason: reasonUpdateStep, Name: n.Name, Code: answer.Code, Detail: answer.Message}
	plan := d.setStatus(why, func(s *Status) {
		s.LastOperation = d.failure(OperationInPlaceUpdate, stage, answer.Code, answer.Message)
	})
	plan.Moves[0] = stageMove(stage, EventStageFailed)
	return plan
}

// emptied stores that the agent may be told, before it is.
func (d *decider) emptied(n *Node) Plan {
	plan := d.setStatus(decision.Why{Reason: reasonReady, Name: n.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationInPlaceUpdate, StateProcessing, StageReady)
	})
	plan.Moves[0] = stageMove(StageSelected, EventDrained)
	return plan
}

// awaitAgent tells the agent that it may go to work, and waits for its answer.
// No answer and no end of the time is taken from a cache, which may remember
// the answer to a former update.
func (d *decider) awaitAgent(n *Node, deadline time.Time) Plan {
	result, late := n.result(&d.p.Keys), !d.now.Before(deadline)
	known := result == UpdateSuccessful || result == UpdateFailed
	switch {
	case (known || late) && d.o.Node.cached():
		return d.look(false)
	case result == UpdateSuccessful && d.m.Spec.InPlace == InPlaceNone:
		return d.tooLate(n)
	case result == UpdateSuccessful:
		return d.succeeded(n, StageReady)
	case result == UpdateFailed:
		detail := n.failedReason(&d.p.Keys)
		return d.settleStatus(d.updateFailed(decision.Why{Reason: reasonUpdateFailed, Name: n.Name, Detail: detail}, codes.Internal, detail), n)
	case late:
		return d.settleStatus(d.updateTimedOut(), n)
	}
	if plan, busy := d.adjust(n, ReasonReadyForUpdate); busy {
		return within(plan, deadline)
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

func (d *decider) succeeded(n *Node, from Stage) Plan {
	op := d.operation(OperationInPlaceUpdate, StateSuccessful, StageUpdateSuccessful)
	op.Message = "node " + n.Name + " is updated"
	return d.advance(EventUpdated, from, EventUpdated, decision.Why{Reason: reasonUpdated, Name: n.Name}, op)
}

// tooLate ends an update that succeeded though it had been withdrawn. What is
// on the node now is not what its owner says, and must not pass for it: the
// machine stays visible as failed, without workload, until it is selected
// again or deleted.
func (d *decider) tooLate(n *Node) Plan {
	why := decision.Why{Reason: reasonOutdated, Name: n.Name}
	op := d.failure(OperationInPlaceUpdate, StageCandidate, codes.Aborted, why.String())
	return d.settleStatus(d.advance(EventUpdateFailed, StageReady, EventOutdated, why, op), n)
}

func (d *decider) updateTimedOut() Plan {
	why := decision.Why{Reason: reasonUpdateTimeout, Name: d.m.Spec.NodeName, For: d.p.inPlaceTimeout(d.m)}
	return d.updateFailed(why, codes.DeadlineExceeded, why.String())
}

func (d *decider) updateFailed(why decision.Why, code codes.Code, message string) Plan {
	return d.advance(EventUpdateFailed, d.m.Status.LastOperation.Stage, EventUpdateFailed, why,
		d.failure(OperationInPlaceUpdate, StageUpdateFailed, code, message))
}

// advance moves the phase, and with it the stage, if storage holds the stage
// that this phase has. A candidate's is not stored.
func (d *decider) advance(on Event, from Stage, stageOn Event, why decision.Why, op Operation) Plan {
	plan := d.move(on, why, func(s *Status) { s.LastOperation = op })
	was := &d.m.Status.LastOperation
	if from == StageCandidate || was.Kind == OperationInPlaceUpdate && was.Stage == from {
		plan.Moves[1] = stageMove(from, stageOn)
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
