package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// forcedDrain bounds how long a drain by force may take until the deletion
// goes on without it.
const forcedDrain = time.Minute

// drainStage empties the node of a machine that is being deleted. Without a drainer there
// is nothing to wait for: the node is marked and the VM is deleted.
func (d *decider) drainStage() Plan {
	if plan, busy := d.awaitHooks(d.p.Keys.PreDrainHook); busy {
		return plan
	}
	if on := d.skipEvent(StageInitiateDrain); on != "" {
		return d.continueWithoutNode(on)
	}
	if !d.nodeRead() || d.missingFromCache() {
		return d.findNode()
	}
	node := d.node()
	if plan, busy := d.setTerminatingCondition(node); busy {
		return plan
	}
	return d.warnTerminatingUndone(d.drainAfterMark(node), node)
}

func (d *decider) drainAfterMark(node *Node) Plan {
	if d.o.NoDrain {
		return d.advanceDeletion(EventDrained, decision.Why{Reason: reasonDrained, Name: node.Name})
	}
	if d.forceDueByCacheOnly() {
		return d.readNode(false)
	}
	return d.awaitDrain(node)
}

// drainLateNode leads back to the drain if a node of this VM has joined since the last drain ended (P53).
// Each node is drained once, in a drain's time of its own. Once force is due, or was, no node is.
func (d *decider) drainLateNode() (Plan, bool) {
	switch status := &d.m.Status; {
	case d.o.NoCluster || status.DrainForced || d.forcedByLabel():
	case !d.nodeRead() || d.missingFromCache():
		return d.findNode(), true
	case d.hasOwnNode() && d.node().UID != status.DrainedNode:
		return d.advanceDeletion(eventNodeFound, decision.Why{Reason: reasonNodeLate, Name: d.node().Name}), true
	}
	return Plan{}, false
}

// lateNodeName asks the driver for the node's name, if none is recorded: a create that had not ended when the
// drain was passed over may have made a VM since.
func (d *decider) lateNodeName() (Plan, bool) {
	status := &d.m.Status
	if d.o.NoCluster || status.DrainForced || d.forcedByLabel() || status.DrainedNode != "" || d.m.Spec.NodeName != "" {
		return Plan{}, false
	}
	return d.nodeFromDriver()
}

// awaitDrain has the node drained until it is empty, or force has had its time.
//
// A drain that fails, as it does while the cluster's API server is down, is tried again after 5 s,
// later every 3 min. The drain timeout runs on meanwhile. Once force is due, a drain that fails is
// given up: the VM is deleted though its pods were not evicted. The record stays until the node can
// be read, see deleteNode. If the API server answers again before that, the clock begins again
// (Status.ClockFrom).
func (d *decider) awaitDrain(n *Node) Plan {
	answer, forced := d.o.Drain, d.forceDue()
	if answer == nil {
		return d.drainEffect(n, forced)
	}
	switch {
	case answer.Code != codes.OK && forced:
		return d.drainedByForce(decision.Why{Reason: reasonDrainGivenUp, Name: n.Name, Detail: answer.Message})
	case answer.Code != codes.OK:
		return d.deletionFailed(answer.Outcome)
	case answer.Done && answer.Forced:
		return d.drainedByForce(decision.Why{Reason: reasonDrainedByForce, Name: n.Name})
	case answer.Done:
		return toldOfLeft(d.advanceDeletion(EventDrained, drained(n, answer)), n, answer)
	case forced:
		return d.awaitForcedDrain(n, answer)
	}
	if plan, busy := d.recordDrainProgress(n, d.operation(OperationDelete, StateProcessing, StageInitiateDrain)); busy {
		return plan
	}
	until := d.forceAt()
	why := decision.Why{Reason: reasonDraining, Name: n.Name, Detail: answer.Why, For: until.Sub(d.now)}
	return Plan{At: d.earlierOf(answer.At, until), Why: why}
}

// drainedByForce goes on to the volumes, and records whether force was due regardless of the node,
// which may answer again.
func (d *decider) drainedByForce(why decision.Why) Plan {
	plan := d.advanceDeletion(EventForced, why)
	if status, ok := plan.Write.(*UpdateStatus); ok {
		status.Status.LastOperation.Forced = !d.now.Before(d.forceDeadline())
	}
	return plan
}

func (d *decider) drainEffect(n *Node, forced bool) Plan {
	if !forced {
		return Plan{
			Effect: &DrainNode{Node: n, Since: d.m.DeletedAt, Until: d.forceDeadline()},
			Why:    decision.Why{Reason: reasonDrainNode, Name: n.Name},
		}
	}
	until := d.now.Add(forcedDrain)
	if op := &d.m.Status.LastOperation; op.Forced {
		until = d.deadlineAfter(d.validPast(op.Time), forcedDrain)
	}
	return Plan{
		Effect: &DrainNode{Node: n, Forced: true, Since: d.m.DeletedAt, Until: until},
		Why:    decision.Why{Reason: reasonForceDrain, Name: n.Name},
	}
}

// awaitForcedDrain records since when force is used, so that it ends.
func (d *decider) awaitForcedDrain(n *Node, answer *DrainAnswer) Plan {
	op := &d.m.Status.LastOperation
	if !op.Forced {
		why := decision.Why{Reason: reasonDrainNoted, Name: n.Name, Detail: answer.Why}
		return d.setStatus(why, func(s *Status) {
			s.LastOperation = d.operation(OperationDelete, StateProcessing, StageInitiateDrain)
			s.LastOperation.Forced, s.LastOperation.Message = true, answer.Why
		})
	}
	until := d.deadlineAfter(d.validPast(op.Time), forcedDrain)
	if !d.now.Before(until) {
		return d.drainedByForce(decision.Why{Reason: reasonDrainGivenUp, Name: n.Name, Detail: answer.Why})
	}
	why := decision.Why{Reason: reasonForceDraining, Name: n.Name, Detail: answer.Why, For: until.Sub(d.now)}
	return Plan{At: d.earlierOf(answer.At, until), Why: why}
}

// detachVolumes has the volumes detached that a forced drain left behind. All volumes of the machine
// together have Policy.DetachTimeout, from the time that this stage was stored. Then the VM is
// deleted with the others attached, and a warning says so.
func (d *decider) detachVolumes() Plan {
	if on := d.skipEvent(StageDeleteVolumeAttachments); on != "" {
		return d.continueWithoutNode(on)
	}
	if d.o.NoDrain {
		return d.advanceDeletion(eventDetached, decision.Why{Reason: reasonNoNode})
	}
	if !d.nodeRead() || d.missingFromCache() {
		return d.findNode()
	}
	n := d.node()
	until := d.deadlineAfter(d.validPast(d.m.Status.LastOperation.Time), d.p.DetachTimeout)
	switch {
	case !d.forceDueByCacheOnly():
		return d.detachFrom(n, until)
	case d.now.Before(until):
		return d.readNode(false)
	}
	return d.detachTimedOut(n)
}

// detachFrom has the volumes of a node detached.
func (d *decider) detachFrom(n *Node, until time.Time) Plan {
	answer := d.o.Detach
	switch {
	case answer == nil && d.forceDue():
		return Plan{Effect: &DetachVolumes{Node: n, Forced: true, Until: until}, Why: decision.Why{Reason: reasonDetach, Name: n.Name}}
	case answer == nil:
		return Plan{Effect: &DetachVolumes{Node: n, Until: until}, Why: decision.Why{Reason: reasonNoForce, Name: n.Name}}
	case answer.Code == codes.OK && answer.Done:
		return d.advanceDeletion(eventDetached, decision.Why{Reason: reasonDetached, Name: n.Name})
	case !d.now.Before(until):
		return d.detachTimedOut(n)
	}
	why := decision.Why{Reason: reasonDetaching, Name: n.Name, Detail: answer.Why, For: until.Sub(d.now)}
	if answer.Code == codes.OK {
		plan := Plan{At: d.earlierOf(answer.At, until), Why: why}
		if answer.Blocked {
			plan.Warn = decision.Why{Reason: reasonDetachBlocked, Name: n.Name, Detail: answer.Why}
		}
		return plan
	}
	why.Detail = answer.Message
	warn := decision.Why{Reason: reasonDetachFailed, Name: n.Name, Code: answer.Code, Detail: answer.Message}
	return Plan{At: d.earlierOf(d.now.Add(nodeRetry), until), Why: why, Warn: warn}
}

// detachTimedOut goes on with volumes attached.
func (d *decider) detachTimedOut(n *Node) Plan {
	plan := d.advanceDeletion(eventDetached, decision.Why{Reason: reasonDetachTimeout, Name: n.Name, For: d.p.DetachTimeout})
	plan.Warn = plan.Why
	return plan
}

// terminatingCondition is the condition that says on the node that it is about to go. Nil: it says so, or need not.
func (d *decider) terminatingCondition(n *Node) *MarkNode {
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

// warnTerminatingUndone warns that something else keeps taking that condition off the node. The drain goes on.
func (d *decider) warnTerminatingUndone(plan Plan, n *Node) Plan {
	mark := d.terminatingCondition(n)
	if mark == nil || plan.Write != nil || plan.Effect != nil || plan.Warn != (decision.Why{}) || d.changeBackoffUntil(n, mark.change()).IsZero() {
		return plan
	}
	plan.Warn = decision.Why{Reason: reasonSyncUndone, Name: n.Name, Detail: mark.change().What}
	return plan
}

// setTerminatingCondition tells on the node, before it is drained, that it is about to go.
func (d *decider) setTerminatingCondition(n *Node) (Plan, bool) {
	mark := d.terminatingCondition(n)
	if mark == nil || !d.changeBackoffUntil(n, mark.change()).IsZero() {
		return Plan{}, false
	}
	if answer := d.o.NodeMarked; answer != nil {
		failed := answer.Code != codes.OK && answer.Code != codes.NotFound
		return d.deletionFailed(*answer), failed && !d.forceDue()
	}
	return Plan{Effect: mark, Why: decision.Why{Reason: reasonMarkNode, Name: n.Name}}, true
}

// drainStaying has the node of a machine drained that is not being deleted. The
// label Keys.ForceDrain forces it.
func (d *decider) drainStaying(n *Node, since, until time.Time) Plan {
	order := &DrainNode{Node: n, Stays: true, Forced: d.labelTrue(d.p.Keys.ForceDrain), Since: since, Until: until}
	why := decision.Why{Reason: reasonDrainNode, Name: n.Name}
	if order.Forced {
		why.Reason = reasonForceDrain
	}
	return Plan{Effect: order, Why: why}
}

// drained says that a drain of a node has ended, and what it has left there.
func drained(n *Node, answer *DrainAnswer) decision.Why {
	if answer.Blocked {
		return decision.Why{Reason: reasonDrainedBut, Name: n.Name, Detail: answer.Why}
	}
	return decision.Why{Reason: reasonDrained, Name: n.Name}
}

// toldOfLeft returns a plan that warns of what a drain has left on its node.
func toldOfLeft(p Plan, n *Node, answer *DrainAnswer) Plan {
	if answer.Blocked {
		p.Warn = drained(n, answer)
	}
	return p
}

// recordDrainProgress stores what a drain waits for, once it changes.
func (d *decider) recordDrainProgress(n *Node, op Operation) (Plan, bool) {
	last, answer := &d.m.Status.LastOperation, d.o.Drain
	if last.State == op.State && last.Message == answer.Why && !last.Forced {
		return Plan{}, false
	}
	op.Message = answer.Why
	why := decision.Why{Reason: reasonDrainNoted, Name: n.Name, Detail: answer.Why}
	plan := d.setStatus(why, func(status *Status) { status.LastOperation = op })
	if answer.Blocked {
		plan.Warn = why
	}
	return plan, true
}

// DrainRecord is what must outlive a process that drains a node. It is kept on
// the node, written together with the cordon, and removed with the node or with
// the uncordon. All times have whole seconds. Package drain alone reads and
// writes it.
type DrainRecord struct {
	// Since is when the drain began. Slots of attempts and, where the caller
	// names no deadline, the drain timeout count from it. Zero: no drain.
	Since time.Time
	// Cordoned is when this drain last cordoned the node. Zero: the node was
	// cordoned already, and stays so when the drain is undone.
	Cordoned time.Time
	// Forced is when force began; its bound counts from here. Zero: no force.
	Forced time.Time
	// Fenced says that this drain put the out-of-service taint there.
	Fenced bool
	// Turn is the pod with volumes that left last. The zero Turn: none did.
	Turn DrainTurn
	// Youngest is when the youngest of the pods was created that were on the node when the drain
	// began, by the cluster's clock. Pods that were created later came in spite of the cordon. Zero:
	// there was no pod.
	Youngest time.Time
	// Returns are the rounds in which such later pods were told to go, by controller.
	Returns []DrainReturn
	// Emptied is when the drain found that it had nothing more to wait for than volumes that are
	// attached to the node. Zero: it has not come so far.
	Emptied time.Time
}

// DrainReturn counts the rounds in which the later pods of a controller were told to go.
type DrainReturn struct {
	Controller string // its UID, or a namespace of pods without one
	Rounds     int32
	// Youngest is when the youngest pod of the last round was created, by the cluster's clock.
	Youngest time.Time
}

func (r DrainReturn) equal(o DrainReturn) bool {
	return r.Controller == o.Controller && r.Rounds == o.Rounds && r.Youngest.Equal(o.Youngest)
}

// DrainTurn is a pod whose volumes are followed from its eviction on.
type DrainTurn struct {
	Pod   object.Key
	UID   string        // decides; empty: no turn
	Since time.Time     // when the pod was told to go
	Grace time.Duration // the pod's own termination grace, zero or more
	// Volumes are those attached here when the pod was told to go.
	Volumes []string
	// Detached is when none of them was attached here any more. Zero: some were.
	Detached time.Time
}

// Clone returns a copy that shares nothing with r; nil of nil.
func (r *DrainRecord) Clone() *DrainRecord {
	if r == nil {
		return nil
	}
	c := *r
	c.Turn.Volumes = slices.Clone(r.Turn.Volumes)
	c.Returns = slices.Clone(r.Returns)
	return &c
}

// Equal reports whether both say the same. Two nil records do.
func (r *DrainRecord) Equal(o *DrainRecord) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Since.Equal(o.Since) && r.Cordoned.Equal(o.Cordoned) && r.Forced.Equal(o.Forced) &&
		r.Fenced == o.Fenced && r.Turn.equal(&o.Turn) && r.Youngest.Equal(o.Youngest) &&
		slices.EqualFunc(r.Returns, o.Returns, DrainReturn.equal) && r.Emptied.Equal(o.Emptied)
}

func (t *DrainTurn) equal(o *DrainTurn) bool {
	return t.Pod == o.Pod && t.UID == o.UID && t.Since.Equal(o.Since) && t.Grace == o.Grace &&
		slices.Equal(t.Volumes, o.Volumes) && t.Detached.Equal(o.Detached)
}
