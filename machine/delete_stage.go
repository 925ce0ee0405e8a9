package machine

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

func (d deletion) neverCreated() bool {
	return d.m.Status.NeverCreated && d.m.Spec.ProviderID == ""
}

// stage plans the write that takes the deletion along an edge of the table.
func (d deletion) stage(on Event, why decision.Why) Plan {
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
func (d deletion) stageFailed(stage Stage, answer Outcome) Plan {
	from := d.m.Status.LastOperation.Stage
	on := eventStageFailed
	if from != stage {
		on = eventVMDeleted // the one stage that a pass goes through without storing it
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
func (d deletion) withoutClass(stage Stage) Plan {
	why := decision.Why{Reason: reasonClassGone, Name: d.m.Spec.Class.Name}
	return d.stageFailed(stage, Outcome{codes.PreconditionFailed, why.String()})
}
