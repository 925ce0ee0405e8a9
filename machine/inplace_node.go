package machine

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// adjust brings a node to where its update stands: labels, cordon, and the
// reason of its condition. Before an agent is told, the rest is in line; before
// the rest is taken off, it is told that there is nothing to do.
func (u inPlace) adjust(reason string) (Plan, bool) {
	sync := nodeSync{u.situation, u.n, false}
	say, out := u.n.unsaid(reason), sync.outOfLine()
	if !say && !out {
		return Plan{}, false
	}
	updating := u.m.Status.Phase == PhaseInPlaceUpdating
	if updating {
		if plan, wait := u.gate(); wait {
			return plan, true
		}
	}
	if u.o.Node.cached() {
		return u.look(false), true
	}
	first := say && !(out && u.marksFirst(reason))
	return u.write(sync, reason, first, updating), true
}

// write tells the agent a reason, first, or brings the rest of a node in line.
func (u inPlace) write(sync nodeSync, reason string, first, updating bool) Plan {
	answer := u.o.NodeSynced
	if first {
		answer = u.said(reason)
	}
	switch {
	case answer != nil:
		return u.adjustLater(first, *answer)
	case !first && sync.held():
		return sync.syncLater(Plan{Why: sync.notInLine()})
	case updating && !u.o.Fenced || sync.behind():
		return sync.fence()
	case first:
		return u.tell(reason)
	}
	return sync.sync()
}

// said is the answer to this pass's attempt to say a reason; nil: there was
// none. A pass may say first that a node is drained, and then that it is ready.
func (u inPlace) said(reason string) *Outcome {
	answer := u.o.NodeMarked
	if answer != nil && answer.Code == codes.OK && reason == ReasonReadyForUpdate && u.n.updateReason() == ReasonSelectedForUpdate {
		return nil
	}
	return answer
}

// marksFirst reports whether labels and cordon are written before a reason.
// Otherwise an agent that may be at work is told first.
func (u inPlace) marksFirst(reason string) bool {
	switch reason {
	case ReasonReadyForUpdate:
		return true
	case ReasonSelectedForUpdate:
		return !u.n.told()
	}
	return u.n.Applied.Update.Since.IsZero()
}

// adjustLater deals with a node that is not as it should be though it was
// written in this pass: a failure during an update is recorded, so that it is
// tried again ever more rarely.
func (u inPlace) adjustLater(told bool, answer Outcome) Plan {
	switch {
	case answer.Code != codes.OK && u.m.Status.Phase == PhaseInPlaceUpdating:
		return u.stepFailed(answer)
	case told:
		return u.later(u.unmarked())
	}
	sync := nodeSync{u.situation, u.n, false}
	return sync.syncLater(Plan{Why: sync.notInLine()})
}

// tell has the node say where its update stands.
func (u inPlace) tell(reason string) Plan {
	c := object.Condition{Type: NodeInPlaceUpdate, Status: object.True, Reason: reason, Since: u.stamp()}
	why := decision.Why{Reason: reasonStage, Name: u.n.Name, Detail: reason}
	switch reason {
	case ReasonCandidateForUpdate:
		c.Message = "machine " + u.m.Name + " is to be updated"
	case ReasonSelectedForUpdate:
		c.Message = "machine " + u.m.Name + " is drained for its update"
	case ReasonReadyForUpdate:
		c.Message, why = "machine "+u.m.Name+" may be updated", decision.Why{Reason: reasonAnnounce, Name: u.n.Name}
	case ReasonNodeUpdateFailed:
		c.Message = "the update of machine " + u.m.Name + " failed: " + u.n.failedReason(&u.p.Keys)
	default:
		c.Message, why = "no update of machine "+u.m.Name+" is wanted", decision.Why{Reason: reasonRetract, Name: u.n.Name}
		if u.m.Status.Phase == PhaseInPlaceUpdateSuccessful {
			c.Message = "machine " + u.m.Name + " is updated"
		}
	}
	return Plan{Effect: &MarkNode{u.node(), c}, Why: why}
}

// tellLater has a plan that ends the pass look again soon at a node that still
// says, though it was to say otherwise, that an agent may work.
func (u inPlace) tellLater(plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil || u.o.NodeMarked == nil || u.o.NodeMarked.Code == codes.OK && !u.n.told() {
		return plan
	}
	plan = within(plan, u.now.Add(nodeRetry))
	plan.Warn = u.unmarked()
	return plan
}

// unmarked says that a condition of the node is not what was just written.
func (u inPlace) unmarked() decision.Why {
	why := decision.Why{Reason: reasonMarkFailed, Name: u.n.Name}
	if answer := u.o.NodeMarked; answer != nil {
		why.Code, why.Detail = answer.Code, answer.Message
	}
	return why
}

// say has the node say where its update stands; false: that was tried in this
// pass, and holds nothing else up, or another program's marks are recorded first.
func (u inPlace) say(reason string) (Plan, bool) {
	sync := nodeSync{u.situation, u.n, false}
	switch {
	case u.o.NodeMarked != nil || nodeUpdate(u).strange():
		return Plan{}, false
	case sync.behind():
		return sync.fence(), true
	}
	return u.tell(reason), true
}

// restReason is what a node says that no agent is to work on: that its turn will
// come, or that there is nothing to do.
func (u inPlace) restReason() string {
	if u.m.Spec.InPlace != InPlaceNone && u.n.Applied.Update.Candidate && !nodeUpdate(u).outdated() {
		return ReasonCandidateForUpdate
	}
	return ReasonUpdateSuccessful
}
