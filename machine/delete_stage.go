package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

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
