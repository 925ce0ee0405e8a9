package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

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
