package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// forcedDrain bounds how long a drain by force may take until the deletion
// goes on without it.
const forcedDrain = time.Minute

// drain empties the node of a machine that is being deleted. Without a drainer there
// is nothing to wait for: the node is marked and the VM is deleted.
func (d deletion) drain() Plan {
	if plan, held := d.hold(d.p.Keys.PreDrainHook); held {
		return plan
	}
	if on := d.skip(StageInitiateDrain); on != "" {
		return d.withoutNode(on)
	}
	if !d.looked() || d.unseen() {
		return d.find()
	}
	node := d.node()
	if plan, busy := d.mark(node); busy {
		return plan
	}
	return d.unsaid(d.drainMarked(node), node)
}

func (d deletion) drainMarked(node *Node) Plan {
	if d.o.NoDrain {
		return d.stage(EventDrained, decision.Why{Reason: reasonDrained, Name: node.Name})
	}
	if d.hearsay() {
		return d.look(false)
	}
	return d.empty(node)
}

// drainLate leads back to the drain if a node of this VM has joined since the last drain ended (P53).
// Each node is drained once, in a drain's time of its own. Once force is due, or was, no node is.
func (d deletion) drainLate() (Plan, bool) {
	switch status := &d.m.Status; {
	case d.o.NoCluster || status.DrainForced || d.forcedByLabel():
	case !d.looked() || d.unseen():
		return d.find(), true
	case d.hasNode() && d.node().UID != status.DrainedNode:
		return d.stage(eventNodeFound, decision.Why{Reason: reasonNodeLate, Name: d.node().Name}), true
	}
	return Plan{}, false
}

// nameLate asks the driver for the node's name, if none is recorded: a create that had not ended when the
// drain was passed over may have made a VM since.
func (d deletion) nameLate() (Plan, bool) {
	status := &d.m.Status
	if d.o.NoCluster || status.DrainForced || d.forcedByLabel() || status.DrainedNode != "" || d.m.Spec.NodeName != "" {
		return Plan{}, false
	}
	return d.askForNode()
}

// empty has the node drained until it is empty, or force has had its time.
//
// A drain that fails, as it does while the cluster's API server is down, is tried again after 5 s,
// later every 3 min. The drain timeout runs on meanwhile. Once force is due, a drain that fails is
// given up: the VM is deleted though its pods were not evicted. The record stays until the node can
// be read, see deleteNode. If the API server answers again before that, the clock begins again
// (Status.ClockFrom).
func (d deletion) empty(n *Node) Plan {
	answer, forced := d.o.Drain, d.forced()
	if answer == nil {
		return d.drainNode(n, forced)
	}
	switch {
	case answer.Code != codes.OK && forced:
		return d.drainedByForce(decision.Why{Reason: reasonDrainGivenUp, Name: n.Name, Detail: answer.Message})
	case answer.Code != codes.OK:
		return d.stageFailed(answer.Outcome)
	case answer.Done && answer.Forced:
		return d.drainedByForce(decision.Why{Reason: reasonDrainedByForce, Name: n.Name})
	case answer.Done:
		return toldOfLeft(d.stage(EventDrained, drained(n, answer)), n, answer)
	case forced:
		return d.emptyByForce(n, answer)
	}
	if plan, unsaid := d.noteDrain(n, d.operation(OperationDelete, StateProcessing, StageInitiateDrain)); unsaid {
		return plan
	}
	until := d.forceAt()
	why := decision.Why{Reason: reasonDraining, Name: n.Name, Detail: answer.Why, For: until.Sub(d.now)}
	return Plan{At: d.sooner(answer.At, until), Why: why}
}

// drainedByForce goes on to the volumes, and records whether force was due regardless of the node,
// which may answer again.
func (d deletion) drainedByForce(why decision.Why) Plan {
	plan := d.stage(EventForced, why)
	if status, ok := plan.Write.(*UpdateStatus); ok {
		status.Status.LastOperation.Forced = !d.now.Before(d.forceAnyway())
	}
	return plan
}

func (d deletion) drainNode(n *Node, forced bool) Plan {
	if !forced {
		return Plan{
			Effect: &DrainNode{Node: n, Since: d.m.DeletedAt, Until: d.forceAnyway()},
			Why:    decision.Why{Reason: reasonDrainNode, Name: n.Name},
		}
	}
	until := d.now.Add(forcedDrain)
	if op := &d.m.Status.LastOperation; op.Forced {
		until = d.after(d.past(op.Time), forcedDrain)
	}
	return Plan{
		Effect: &DrainNode{Node: n, Forced: true, Since: d.m.DeletedAt, Until: until},
		Why:    decision.Why{Reason: reasonForceDrain, Name: n.Name},
	}
}

// emptyByForce records since when force is used, so that it ends.
func (d deletion) emptyByForce(n *Node, answer *DrainAnswer) Plan {
	op := &d.m.Status.LastOperation
	if !op.Forced {
		why := decision.Why{Reason: reasonDrainNoted, Name: n.Name, Detail: answer.Why}
		return d.setStatus(why, func(s *Status) {
			s.LastOperation = d.operation(OperationDelete, StateProcessing, StageInitiateDrain)
			s.LastOperation.Forced, s.LastOperation.Message = true, answer.Why
		})
	}
	until := d.after(d.past(op.Time), forcedDrain)
	if !d.now.Before(until) {
		return d.drainedByForce(decision.Why{Reason: reasonDrainGivenUp, Name: n.Name, Detail: answer.Why})
	}
	why := decision.Why{Reason: reasonForceDraining, Name: n.Name, Detail: answer.Why, For: until.Sub(d.now)}
	return Plan{At: d.sooner(answer.At, until), Why: why}
}

// detach has the volumes detached that a forced drain left behind. All volumes of the machine
// together have Policy.DetachTimeout, from the time that this stage was stored. Then the VM is
// deleted with the others attached, and a warning says so.
func (d deletion) detach() Plan {
	if on := d.skip(StageDeleteVolumeAttachments); on != "" {
		return d.withoutNode(on)
	}
	if d.o.NoDrain {
		return d.stage(eventDetached, decision.Why{Reason: reasonNoNode})
	}
	if !d.looked() || d.unseen() {
		return d.find()
	}
	n := d.node()
	until := d.after(d.past(d.m.Status.LastOperation.Time), d.p.DetachTimeout)
	switch {
	case !d.hearsay():
		return d.detachFrom(n, until)
	case d.now.Before(until):
		return d.look(false)
	}
	return d.detachTimeout(n)
}

// detachFrom has the volumes of a node detached.
func (d deletion) detachFrom(n *Node, until time.Time) Plan {
	answer := d.o.Detach
	switch {
	case answer == nil && d.forced():
		return Plan{Effect: &DetachVolumes{Node: n, Forced: true, Until: until}, Why: decision.Why{Reason: reasonDetach, Name: n.Name}}
	case answer == nil:
		return Plan{Effect: &DetachVolumes{Node: n, Until: until}, Why: decision.Why{Reason: reasonNoForce, Name: n.Name}}
	case answer.Code == codes.OK && answer.Done:
		return d.stage(eventDetached, decision.Why{Reason: reasonDetached, Name: n.Name})
	case !d.now.Before(until):
		return d.detachTimeout(n)
	}
	why := decision.Why{Reason: reasonDetaching, Name: n.Name, Detail: answer.Why, For: until.Sub(d.now)}
	if answer.Code == codes.OK {
		plan := Plan{At: d.sooner(answer.At, until), Why: why}
		if answer.Blocked {
			plan.Warn = decision.Why{Reason: reasonDetachBlocked, Name: n.Name, Detail: answer.Why}
		}
		return plan
	}
	why.Detail = answer.Message
	warn := decision.Why{Reason: reasonDetachFailed, Name: n.Name, Code: answer.Code, Detail: answer.Message}
	return Plan{At: d.sooner(d.now.Add(nodeRetry), until), Why: why, Warn: warn}
}

// detachTimeout goes on with volumes attached.
func (d deletion) detachTimeout(n *Node) Plan {
	plan := d.stage(eventDetached, decision.Why{Reason: reasonDetachTimeout, Name: n.Name, For: d.p.DetachTimeout})
	plan.Warn = plan.Why
	return plan
}

// going is the condition that says on the node that it is about to go. Nil: it says so, or need not.
func (d deletion) going(n *Node) *MarkNode {
	from := d.m.Status.DeletedFrom
	have := object.FindCondition(n.Conditions, NodeTerminating)
	if from == PhaseNew || from == PhaseCrashLoopBackOff || have != nil && have.Status == object.True {
		return nil
	}
	reason := ReasonScaleDown
	if from == PhaseFailed {
		reason = ReasonUnhealthy
	}
	return &MarkNode{n, object.Condition{
		Type: NodeTerminating, Status: object.True, Reason: reason,
		Message: "machine " + d.m.Name + " is being deleted", Since: d.stamp(),
	}}
}

// unsaid warns that something else keeps taking that condition off the node. The drain goes on.
func (d deletion) unsaid(plan Plan, n *Node) Plan {
	mark := d.going(n)
	if mark == nil || plan.Write != nil || plan.Effect != nil || plan.Warn != (decision.Why{}) || d.heldUntil(n, mark.change()).IsZero() {
		return plan
	}
	plan.Warn = decision.Why{Reason: reasonSyncUndone, Name: n.Name, Detail: mark.change().What}
	return plan
}

// mark tells on the node, before it is drained, that it is about to go.
func (d deletion) mark(n *Node) (Plan, bool) {
	mark := d.going(n)
	if mark == nil || !d.heldUntil(n, mark.change()).IsZero() {
		return Plan{}, false
	}
	if answer := d.o.NodeMarked; answer != nil {
		failed := answer.Code != codes.OK && answer.Code != codes.NotFound
		return d.stageFailed(*answer), failed && !d.forced()
	}
	return Plan{Effect: mark, Why: decision.Why{Reason: reasonMarkNode, Name: n.Name}}, true
}
