package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// adjust brings a node to where its update stands: labels, cordon, and the
// reason of its condition. Before an agent is told, the rest is in line; before
// the rest is taken off, it is told that there is nothing to do.
func (d *decider) adjust(n *Node, reason string) (Plan, bool) {
	say, out := n.unsaid(reason), d.outOfLine(n, false)
	if !say && !out {
		return Plan{}, false
	}
	updating := d.m.Status.Phase == PhaseInPlaceUpdating
	if updating {
		if plan, wait := d.updateGate(); wait {
			return plan, true
		}
	}
	if d.o.Node.cached() {
		return d.look(false), true
	}
	first, answer := say && !(out && d.marksFirst(n, reason)), d.o.NodeSynced
	if first {
		answer = d.said(n, reason)
	}
	switch {
	case answer != nil:
		return d.adjustLater(n, first, *answer), true
	case updating && !d.o.Fenced || d.behind(n):
		return d.fence(n), true
	case first:
		return d.tell(n, reason), true
	}
	return d.sync(n, false), true
}

// said is the answer to this pass's attempt to say a reason; nil: there was
// none. A pass may say first that a node is drained, and then that it is ready.
func (d *decider) said(n *Node, reason string) *Outcome {
	answer := d.o.NodeMarked
	if answer != nil && answer.Code == codes.OK && reason == ReasonReadyForUpdate && n.updateReason() == ReasonSelectedForUpdate {
		return nil
	}
	return answer
}

// marksFirst reports whether labels and cordon are written before a reason.
// Otherwise an agent that may be at work is told first.
func (d *decider) marksFirst(n *Node, reason string) bool {
	switch reason {
	case ReasonReadyForUpdate:
		return true
	case ReasonSelectedForUpdate:
		return !n.told()
	}
	return n.Applied.Update.Since.IsZero()
}

// adjustLater deals with a node that is not as it should be though it was
// written in this pass: a failure during an update is recorded, so that it is
// tried again ever more rarely.
func (d *decider) adjustLater(n *Node, told bool, answer Outcome) Plan {
	switch {
	case answer.Code != codes.OK && d.m.Status.Phase == PhaseInPlaceUpdating:
		return d.updateStepFailed(n, answer)
	case told:
		return d.later(d.unmarked(n))
	}
	return d.syncLater(Plan{Why: d.notInLine(n)}, n)
}

// tell has the node say where its update stands.
func (d *decider) tell(n *Node, reason string) Plan {
	c := object.Condition{Type: NodeInPlaceUpdate, Status: object.True, Reason: reason, Since: d.stamp()}
	why := decision.Why{Reason: reasonStage, Name: n.Name, Detail: reason}
	switch reason {
	case ReasonCandidateForUpdate:
		c.Message = "machine " + d.m.Name + " is to be updated"
	case ReasonSelectedForUpdate:
		c.Message = "machine " + d.m.Name + " is drained for its update"
	case ReasonReadyForUpdate:
		c.Message, why = "machine "+d.m.Name+" may be updated", decision.Why{Reason: reasonAnnounce, Name: n.Name}
	case ReasonNodeUpdateFailed:
		c.Message = "the update of machine " + d.m.Name + " failed: " + n.failedReason(&d.p.Keys)
	default:
		c.Message, why = "no update of machine "+d.m.Name+" is wanted", decision.Why{Reason: reasonRetract, Name: n.Name}
		if d.m.Status.Phase == PhaseInPlaceUpdateSuccessful {
			c.Message = "machine " + d.m.Name + " is updated"
		}
	}
	return Plan{Effect: &MarkNode{n, c}, Why: why}
}

// tellLater has a plan that ends the pass look again soon at a node that still
// says, though it was to say otherwise, that an agent may work.
func (d *decider) tellLater(plan Plan, n *Node) Plan {
	if plan.Write != nil || plan.Effect != nil || d.o.NodeMarked == nil || d.o.NodeMarked.Code == codes.OK && !n.told() {
		return plan
	}
	plan = within(plan, d.now.Add(nodeRetry))
	plan.Warn = d.unmarked(n)
	return plan
}

// unmarked says that a condition of the node is not what was just written.
func (d *decider) unmarked(n *Node) decision.Why {
	why := decision.Why{Reason: reasonMarkFailed, Name: n.Name}
	if answer := d.o.NodeMarked; answer != nil {
		why.Code, why.Detail = answer.Code, answer.Message
	}
	return why
}

// behind tells whether the node knows of an update that began after what the
// machine's record knows of. The record may then be an old one, and the node
// must not be brought back to it.
func (d *decider) behind(n *Node) bool {
	since := n.Applied.Update.Since
	if d.o.Fenced || since.IsZero() {
		return false
	}
	if d.m.Status.Phase == PhaseInPlaceUpdating && since.Equal(d.m.Status.Since.Truncate(time.Second)) {
		return false
	}
	return !since.Before(d.m.Status.Since)
}

// fence writes the status as it is, but for a failed step that is tried again.
// A reader of an old record fails there, before it does to the node what nobody
// wants any more.
func (d *decider) fence(n *Node) Plan {
	return d.setStatus(decision.Why{Reason: reasonUpdateFence, Name: n.Name}, func(status *Status) {
		if op := &status.LastOperation; status.Phase == PhaseInPlaceUpdating && op.State == StateFailed {
			*op = d.operation(OperationInPlaceUpdate, StateProcessing, op.Stage)
		}
	})
}

// later is a plan that looks again soon at a node that could not be written.
func (d *decider) later(why decision.Why) Plan {
	return Plan{At: d.now.Add(nodeRetry), Why: why, Warn: why}
}
