package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// forcedDrain is how long a forced drain may take. After that the deletion continues.
const forcedDrain = time.Minute

// drainStage drains the node of a machine that is being deleted. If this process drains no nodes, it only
// sets the Terminating condition.
func (d *decider) drainStage() Plan {
	if plan, found := d.awaitHooks(d.p.Keys.PreDrainHook); found {
		return plan
	}
	if on := d.skipEvent(StageInitiateDrain); on != "" {
		return d.continueWithoutNode(on)
	}
	if !d.nodeRead() || d.missingFromCache() {
		return d.findNode()
	}
	node := d.node()
	if plan, found := d.setTerminatingCondition(node); found {
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

// drainLateNode returns to the drain if a node of this VM has joined since the last drain ended (invariant
// P53). Each node is drained once, with a drain timeout of its own. Once force was due, by the label or by
// the drain timeout, no further node is drained.
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

// lateNodeName asks the driver for the node's name if none is recorded: a create that was in progress when the
// drain was skipped may have created a VM since.
func (d *decider) lateNodeName() (Plan, bool) {
	status := &d.m.Status
	if d.o.NoCluster || status.DrainForced || d.forcedByLabel() || status.DrainedNode != "" || d.m.Spec.NodeName != "" {
		return Plan{}, false
	}
	return d.nodeFromDriver()
}

// awaitDrain drains the node until it is empty, or until a forced drain has taken forcedDrain.
//
// A drain that fails, as it does while the cluster's API server is down, is retried after 5 s, later every
// 3 min. The drain timeout continues to run. Once force is due, a failed drain is given up, and the VM is
// deleted although its pods were not evicted. The machine object stays until the node can be read, see
// deleteNode. If the API server answers again before force is due, the clock restarts (Status.ClockFrom).
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
		return warnLeftover(d.advanceDeletion(EventDrained, drained(n, answer)), n, answer)
	case forced:
		return d.awaitForcedDrain(n, answer)
	}
	if plan, found := d.recordDrainProgress(n, d.operation(OperationDelete, StateProcessing, StageInitiateDrain)); found {
		return plan
	}
	until := d.forceAt()
	why := decision.Why{Reason: reasonDraining, Name: n.Name, Detail: answer.Why, For: until.Sub(d.now)}
	return Plan{At: d.earlierOf(answer.At, until), Why: why}
}

// drainedByForce continues with the volumes. Operation.Forced records whether force was due by label or
// timeout. If it was due only because the node was unresponsive, it ends when the node responds again.
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

// awaitForcedDrain records when force began, and waits for the drain until forcedDrain has passed.
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

// detachVolumes detaches the volumes that a forced drain left. All volumes of the machine together have
// Policy.DetachTimeout, from when this stage was stored. After that the VM is deleted with volumes attached,
// and a warning says so.
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

// detachFrom detaches the volumes of a node.
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

// detachTimedOut continues the deletion with volumes attached.
func (d *decider) detachTimedOut(n *Node) Plan {
	plan := d.advanceDeletion(eventDetached, decision.Why{Reason: reasonDetachTimeout, Name: n.Name, For: d.p.DetachTimeout})
	plan.Warn = plan.Why
	return plan
}

// terminatingCondition returns the write of condition Terminating on the node. Nil: it is set already, or the
// machine never worked, so that it is not needed.
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

// warnTerminatingUndone warns if another program keeps removing condition Terminating. The drain continues.
func (d *decider) warnTerminatingUndone(plan Plan, n *Node) Plan {
	mark := d.terminatingCondition(n)
	if mark == nil || plan.Write != nil || plan.Effect != nil || plan.Warn != (decision.Why{}) || d.changeBackoffUntil(n, mark.change()).IsZero() {
		return plan
	}
	plan.Warn = decision.Why{Reason: reasonSyncUndone, Name: n.Name, Detail: mark.change().What}
	return plan
}

// setTerminatingCondition sets condition Terminating on the node before it is drained.
func (d *decider) setTerminatingCondition(n *Node) (Plan, bool) {
	mark := d.terminatingCondition(n)
	if mark == nil || !d.changeBackoffUntil(n, mark.change()).IsZero() {
		return Plan{}, false
	}
	if answer := d.o.NodeMarked; answer != nil {
		failed := answer.Code != codes.OK && answer.Code != codes.NotFound
		return d.deletionFailed(*answer), failed && !d.forceDue()
	}
	return Plan{Effect: mark, Why: decision.Why{Reason: reasonSetTerminating, Name: n.Name}}, true
}

// drainStaying drains the node of a machine that is not being deleted. The label Keys.ForceDrain forces the
// drain.
func (d *decider) drainStaying(n *Node, since, until time.Time) Plan {
	order := &DrainNode{Node: n, Stays: true, Forced: d.labelTrue(d.p.Keys.ForceDrain), Since: since, Until: until}
	why := decision.Why{Reason: reasonDrainNode, Name: n.Name}
	if order.Forced {
		why.Reason = reasonForceDrain
	}
	return Plan{Effect: order, Why: why}
}

// drained says that the drain of a node has ended, and what is left there.
func drained(n *Node, answer *DrainAnswer) decision.Why {
	if answer.Blocked {
		return decision.Why{Reason: reasonDrainedBut, Name: n.Name, Detail: answer.Why}
	}
	return decision.Why{Reason: reasonDrained, Name: n.Name}
}

// warnLeftover makes a plan warn about what a drain has left on its node.
func warnLeftover(p Plan, n *Node, answer *DrainAnswer) Plan {
	if answer.Blocked {
		p.Warn = drained(n, answer)
	}
	return p
}

// recordDrainProgress stores what a drain waits for, when that changes.
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

// DrainRecord is the state of a drain that must survive a restart. It is stored on the node, in the same
// write as the cordon, and removed with the node or the cordon. Only package drain reads and writes it.
// All times have whole seconds.
type DrainRecord struct {
	// Since is when the drain began. Eviction slots count from it, and the drain timeout if the caller
	// gives no deadline. Zero: no drain.
	Since time.Time
	// Cordoned is when this drain last cordoned the node. Zero: the node was cordoned before, and stays
	// so when the drain is undone.
	Cordoned time.Time
	// Forced is when force began. Zero: no force.
	Forced time.Time
	// Fenced says that this drain added the out-of-service taint.
	Fenced bool
	// Turn is the last pod with volumes that was evicted. The zero Turn: none was.
	Turn DrainTurn
	// Youngest is when the youngest pod was created that was on the node when the drain began, by the
	// cluster's clock. Younger pods were scheduled despite the cordon. Zero: there was no pod.
	Youngest time.Time
	// Returns counts, by controller, the rounds in which such younger pods were evicted.
	Returns []DrainReturn
	// Emptied is when the drain had nothing left to wait for but attached volumes. Zero: not yet.
	Emptied time.Time
}

// DrainReturn counts the rounds in which the younger pods of a controller were evicted.
type DrainReturn struct {
	Controller string // its UID; the namespace for pods without a controller
	Rounds     int32
	// Youngest is when the youngest pod of the last round was created, by the cluster's clock.
	Youngest time.Time
}

func (r DrainReturn) equal(o DrainReturn) bool {
	return r.Controller == o.Controller && r.Rounds == o.Rounds && r.Youngest.Equal(o.Youngest)
}

// DrainTurn is an evicted pod whose volumes the drain follows.
type DrainTurn struct {
	Pod   object.Key
	UID   string        // identifies the pod; empty: no turn
	Since time.Time     // when the pod was evicted or deleted
	Grace time.Duration // the pod's termination grace period, zero or more
	// Volumes are those that were attached here when the pod was evicted.
	Volumes []string
	// Detached is when none of them was attached here any longer. Zero: some are.
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
