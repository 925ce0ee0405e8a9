package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// adjust brings a node to where its update stands: labels, cordon, and what it
// says to the agent. Before an agent is told, the rest is in line; before the
// rest is taken off, it is told that there is nothing to do.
func (d *decision) adjust(n *Node, ready bool) (Plan, bool) {
	say, out := n.told() != ready, d.outOfLine(n, false)
	if !say && !out {
		return Plan{}, false
	}
	updating := d.m.Status.Phase == PhaseInPlaceUpdating
	if updating {
		if plan, wait := d.updateGate(); wait {
			return plan, true
		}
	}
	if d.o.Node.Cached {
		return d.look(false), true
	}
	first, answer := say && !(ready && out), d.o.NodeSynced
	if first {
		answer = d.o.NodeMarked
	}
	switch {
	case answer != nil:
		return d.adjustLater(n, first, *answer), true
	case updating && !d.o.Fenced || d.behind(n):
		return d.fence(n), true
	case first:
		return d.tell(n, ready), true
	}
	return d.sync(n, false), true
}

// adjustLater deals with a node that is not as it should be though it was
// written in this pass: a failure during an update is recorded, so that it is
// tried again ever more rarely.
func (d *decision) adjustLater(n *Node, told bool, answer Outcome) Plan {
	switch {
	case answer.Code != codes.OK && d.m.Status.Phase == PhaseInPlaceUpdating:
		return d.updateStepFailed(n, answer)
	case told:
		return d.later(d.unmarked(n))
	}
	return d.syncLater(Plan{Why: d.notInLine(n)}, n)
}

// tell has the node say whether an agent may update it.
func (d *decision) tell(n *Node, ready bool) Plan {
	c := object.Condition{
		Type: NodeInPlaceUpdate, Status: object.True, Reason: ReasonReadyForUpdate,
		Message: "machine " + d.m.Name + " may be updated", Since: d.stamp(),
	}
	why := Why{Reason: ReasonAnnounce, Name: n.Name}
	if !ready {
		c.Status, c.Reason, why.Reason = object.False, ReasonNotReadyForUpdate, ReasonRetract
		c.Message = "no update of machine " + d.m.Name + " is wanted"
	}
	return Plan{Effect: &MarkNode{n, c}, Why: why}
}

// tellLater has a plan that ends the pass look again soon at a node that still
// says, though it was to say otherwise, that an agent may work.
func (d *decision) tellLater(plan Plan, n *Node) Plan {
	if plan.Write != nil || plan.Effect != nil || d.o.NodeMarked == nil || !n.told() {
		return plan
	}
	plan = within(plan, d.now.Add(nodeRetry))
	plan.Warn = d.unmarked(n)
	return plan
}

// unmarked says that a condition of the node is not what was just written.
func (d *decision) unmarked(n *Node) Why {
	why := Why{Reason: ReasonMarkFailed, Name: n.Name}
	if answer := d.o.NodeMarked; answer != nil {
		why.Code, why.Detail = answer.Code, answer.Message
	}
	return why
}

// behind tells whether the node knows of an update that began after what the
// machine's record knows of. The record may then be an old one, and the node
// must not be brought back to it.
func (d *decision) behind(n *Node) bool {
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
func (d *decision) fence(n *Node) Plan {
	return d.setStatus(Why{Reason: ReasonUpdateFence, Name: n.Name}, func(s *Status) {
		if op := &s.LastOperation; s.Phase == PhaseInPlaceUpdating && op.State == StateFailed {
			*op = d.operation(OperationInPlaceUpdate, StateProcessing, op.Stage)
		}
	})
}

// told tells whether the node says that it may be updated.
func (n *Node) told() bool {
	for i := range n.Conditions {
		if n.Conditions[i].Type == NodeInPlaceUpdate {
			return n.Conditions[i].Status == object.True
		}
	}
	return false
}

// later is a plan that looks again soon at a node that could not be written.
func (d *decision) later(why Why) Plan {
	return Plan{At: d.now.Add(nodeRetry), Why: why, Warn: why}
}

// within bounds the wait of a plan by the end of an update's time.
func within(plan Plan, until time.Time) Plan {
	if plan.Write == nil && plan.Effect == nil && (plan.At.IsZero() || until.Before(plan.At)) {
		plan.At = until
	}
	return plan
}
