package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// preserveRetry is after how long a failed drain of a preserved machine's node
// is tried again.
const preserveRetry = 30 * time.Second

// preservedMarks is the record of what the preservation has put on the node. Another manager leaves
// none: of a preservation that it began, everything that such a manager puts on a node counts. It
// marks its annotation with Keys.KeptByUs; one without is a user's. It cordons a node, or taints it,
// never both: a cordon beside the taint is a user's.
func (d *decider) preservedMarks(n *Node) PreservedMarks {
	have, p := n.Applied.Preserved, &d.m.Status.Preservation
	others := p.TakenOver || d.preserved() && n.saysPreserved() // we say so after the record is stored
	if have != (PreservedMarks{}) || !others {
		return have
	}
	keys, t := &d.p.Keys, &d.m.Spec.NodeTemplate
	taint := d.preservedTaint()
	have.Tainted = taint.Key != "" && slices.Contains(n.Taints, taint) && !slices.ContainsFunc(t.Taints, taint.Same)
	have.Cordoned = n.Unschedulable && !have.Tainted && !n.Applied.Update.Cordoned && d.m.Status.Phase == PhaseFailed
	have.Kept = keeps(n.Annotations, keys.keptByUs()) && !d.recorded(n).kept && !has(t.Annotations, keys.KeepNode)
	if p.Since.IsZero() && n.saysPreserved() {
		have.Since = p.Ended // the node is to say that it ended, whatever else there is
	}
	return have
}

// unrecorded reports whether the node carries marks of another manager that are to be recorded as
// ours.
func (d *decider) unrecorded(n *Node) bool {
	return n.Applied.Preserved == (PreservedMarks{}) && d.preservedMarks(n) != (PreservedMarks{})
}

// carriesPreserved reports whether the machine's node may still carry something of a preservation
// that ended.
func (d *decider) carriesPreserved() bool {
	switch {
	case d.o.NoCluster || d.m.Spec.NodeName == "":
		return false
	case !d.looked() || d.o.Node.cached():
		return true
	}
	n := d.node()
	return n != nil && d.ours(n) && d.preservedMarks(n) != (PreservedMarks{})
}

// preservedWanted is what should be on the node. What has ended goes after the
// condition that tells of it, so that the record outlives it. From the node of a machine
// that stays failed, workload is kept away until it is replaced.
func (d *decider) preservedWanted(n *Node, have PreservedMarks) PreservedMarks {
	failed := d.m.Status.Phase == PhaseFailed
	keys, t := &d.p.Keys, &d.m.Spec.NodeTemplate
	switch {
	case d.preserved():
		return PreservedMarks{
			Since: d.m.Status.Preservation.Since, Cordoned: failed,
			Tainted: failed && keys.PreservedTaint != "" && !slices.ContainsFunc(t.Taints, d.preservedTaint().Same),
			Kept:    keys.KeepNode != "" && !has(t.Annotations, keys.KeepNode),
		}
	case n.saysPreserved():
		return have
	case failed && (have.Cordoned || have.Tainted):
		return PreservedMarks{Since: have.Since, Cordoned: have.Cordoned, Tainted: have.Tainted}
	}
	return PreservedMarks{}
}

func (d *decider) preservedTaint() object.Taint {
	return object.Taint{Key: d.p.Keys.PreservedTaint, Effect: object.NoSchedule}
}

// preservedInLine tells whether the node carries what applyPreserved would put
// there and nothing that it would take off.
func (d *decider) preservedInLine(n *Node) bool {
	have := d.preservedMarks(n)
	if have == (PreservedMarks{}) && !d.preserved() {
		return true
	}
	w := d.preservedWanted(n, have)
	return have.Since.Equal(w.Since) &&
		(w.Cordoned && n.Unschedulable || !w.Cordoned && !have.Cordoned) &&
		(w.Tainted && slices.ContainsFunc(n.Taints, d.preservedTaint().Same) || !w.Tainted && !have.Tainted) &&
		(w.Kept && d.keptInLine(n, have) || !w.Kept && !have.Kept)
}

// keptInLine reports whether the node is kept from autoscalers, and says so if it is our doing.
func (d *decider) keptInLine(n *Node, have PreservedMarks) bool {
	return has(n.Annotations, d.p.Keys.KeepNode) && (!have.Kept || d.saysKeptByUs(n))
}

// saysKeptByUs reports whether the node carries Keys.KeptByUs, as far as it is to.
func (d *decider) saysKeptByUs(n *Node) bool {
	key := d.p.Keys.keptByUs()
	return key == "" || has(d.m.Spec.NodeTemplate.Annotations, key) || keeps(n.Annotations, key)
}

// dropKept takes the annotations that keep autoscalers off a changed copy of a
// node, before anybody looks whether their place is free.
func (d *decider) dropKept(n *Node, have PreservedMarks) {
	if !have.Kept || d.preservedWanted(n, have).Kept {
		return
	}
	n.Annotations = maps.Clone(n.Annotations)
	for _, key := range [...]string{d.p.Keys.KeepNode, d.p.Keys.keptByUs()} {
		if keeps(n.Annotations, key) && !has(d.m.Spec.NodeTemplate.Annotations, key) {
			delete(n.Annotations, key)
		}
	}
}

// applyPreserved changes a copy of a node into what the machine's preservation
// wants it to be, and records what of it is ours.
func (d *decider) applyPreserved(n *Node, have PreservedMarks) {
	w := d.preservedWanted(n, have)
	taint, now := d.preservedTaint(), PreservedMarks{Since: w.Since}
	switch {
	case w.Cordoned:
		now.Cordoned = have.Cordoned || !n.Unschedulable
		n.Unschedulable = true
	case have.Cordoned && !n.Applied.Update.Cordoned:
		n.Unschedulable = false
	}
	switch there := slices.ContainsFunc(n.Taints, taint.Same); {
	case w.Tainted && there:
		now.Tainted = have.Tainted
	case w.Tainted:
		n.Taints, now.Tainted = append(n.Taints, taint), true
	case have.Tainted:
		n.Taints = without(n.Taints, func(t object.Taint) bool { return t == taint })
	}
	if w.Kept {
		if now.Kept = have.Kept; !has(n.Annotations, d.p.Keys.KeepNode) {
			n.Annotations[d.p.Keys.KeepNode], now.Kept = keepValue, true
		}
		if now.Kept && !d.saysKeptByUs(n) {
			n.Annotations[d.p.Keys.KeptByUs] = keepValue
		}
	}
	n.Applied.Preserved = now
}

// saysPreserved tells whether the node says that its machine is kept.
func (n *Node) saysPreserved() bool {
	c := object.FindCondition(n.Conditions, NodePreserved)
	return c != nil && c.Status == object.True
}

// tellPreserved has the node say whether its machine is kept. false: it says
// so, or that was tried in this pass.
func (d *decider) tellPreserved(n *Node) (Plan, bool) {
	c, say := d.preservedCondition(n)
	if !say || d.o.NodeMarked != nil {
		return Plan{}, false
	}
	return Plan{Effect: &MarkNode{n, c}, Why: decision.Why{Reason: reasonTellPreserved, Name: n.Name, Detail: string(c.Status)}}, true
}

// retractPreserved is tellPreserved of a machine that is not kept any more. It
// comes first, so that one write takes all the rest off the node.
func (d *decider) retractPreserved(n *Node) (Plan, bool) {
	if d.preserved() {
		return Plan{}, false
	}
	return d.tellPreserved(n)
}

// tellPreservedLater has a plan that ends the pass look again soon at a node
// that still does not say what it was to say.
func (d *decider) tellPreservedLater(plan Plan, n *Node) Plan {
	if plan.Write != nil || plan.Effect != nil || d.o.NodeMarked == nil {
		return plan
	}
	if _, say := d.preservedCondition(n); say {
		plan = within(plan, d.now.Add(nodeRetry))
		plan.Warn = decision.Why{Reason: reasonPreserveUntold, Name: n.Name, Code: d.o.NodeMarked.Code, Detail: d.o.NodeMarked.Message}
	}
	return plan
}

// preservedCondition is what the node is to say; false: it says so.
func (d *decider) preservedCondition(n *Node) (c object.Condition, say bool) {
	have := object.FindCondition(n.Conditions, NodePreserved)
	c = object.Condition{Type: NodePreserved, Status: object.True, Reason: ReasonPreservedByUser, Since: d.stamp()}
	p := &d.m.Status.Preservation
	switch {
	case d.preservedMarks(n) == (PreservedMarks{}): // without the record nobody would take it back
		return c, false
	case d.preserved():
		c.Message = "machine " + d.m.Name + " is kept until " + p.Until.UTC().Format(time.RFC3339)
		if p.Automatic() {
			c.Reason = ReasonPreservedAutomatically
		}
	case have == nil || have.Status != object.True:
		return c, false
	default:
		c.Status, c.Reason = object.False, ReasonPreservationEnded
		c.Message = "machine " + d.m.Name + " is not kept any more"
	}
	return c, have == nil || have.Status != c.Status || have.Reason != c.Reason || have.Message != c.Message
}

// failed looks after a machine that failed: it waits to be replaced, unless it
// is kept for inspection.
func (d *decider) failed() Plan {
	rest := Plan{Why: decision.Why{Reason: reasonFailed}}
	if d.preserved() {
		p := &d.m.Status.Preservation
		rest = Plan{At: p.Until, Why: decision.Why{Reason: reasonPreserved, Detail: p.Request, For: p.Until.Sub(d.now)}}
	}
	if d.o.NoCluster || d.m.Spec.NodeName == "" {
		return rest
	}
	if !d.preserved() && (d.seenNode() == nil || d.preservedMarks(d.seenNode()) == (PreservedMarks{})) {
		return rest
	}
	if !d.looked() {
		return d.look(false)
	}
	n := d.node()
	switch {
	case (n == nil || !d.ours(n)) && d.o.Node.cached():
		return d.look(false)
	case n == nil || !d.ours(n):
		rest.Warn = d.foreign()
		return rest
	case leaving(n):
		return d.followDeletion(n)
	}
	return d.failedNode(n, rest)
}

// failedNode looks after the node of a machine that failed and is kept, or was.
func (d *decider) failedNode(n *Node, rest Plan) Plan {
	recorded := !d.unrecorded(n) || d.o.NodeSynced != nil // while failed: then the cordon is told from a user's
	if d.preserved() && recorded && d.recovers(n) {
		if d.o.Node.cached() {
			return d.look(false)
		}
		return d.recover(n)
	}
	if plan, busy := d.retractPreserved(n); busy {
		return plan
	}
	out := d.outOfLine(n, false)
	if out && d.o.NodeSynced == nil {
		return d.sync(n, false)
	}
	if plan, busy := d.tellPreserved(n); busy {
		return plan
	}
	plan := rest
	if d.preserved() && !out {
		plan = d.emptyPreserved(n, rest)
	}
	if out {
		plan = d.syncLater(plan, n)
	}
	return d.tellPreservedLater(plan, n)
}

// recovers tells whether a machine that was given up for its health is well
// again. One whose creation failed, or whose update, is not what it should be,
// healthy or not.
func (d *decider) recovers(n *Node) bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationHealthCheck && op.Stage == StageNone && n.judge(d.p.nodeConditions(d.m)).healthy()
}

// recover takes a machine that was kept back into service.
func (d *decider) recover(n *Node) Plan {
	return d.move(EventRecovered, decision.Why{Reason: reasonRejoined, Name: n.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationHealthCheck, StateSuccessful, StageNone)
		s.LastOperation.Message = "node " + n.Name + " is healthy again"
		takeOver(s, n)
	})
}

// emptyPreserved has the node of a machine drained that failed and is kept.
// Nothing is forced unless a user asks for it: at the latest, that comes with the
// machine's deletion.
func (d *decider) emptyPreserved(n *Node, rest Plan) Plan {
	p, answer := &d.m.Status.Preservation, d.o.Drain
	if p.Drained || d.o.NoDrain {
		return rest
	}
	since := p.Since
	if d.m.Status.Since.After(since) {
		since = d.past(d.m.Status.Since)
	}
	switch {
	case answer == nil && d.o.Node.cached():
		return d.look(false)
	case answer == nil:
		return d.drainStaying(n, since, p.Until)
	case answer.Code != codes.OK:
		why := decision.Why{Reason: reasonPreserveDrain, Name: n.Name, Code: answer.Code, Detail: answer.Message}
		return Plan{At: d.sooner(d.now.Add(preserveRetry), p.Until), Why: why, Warn: why}
	case answer.Done:
		return d.setStatus(decision.Why{Reason: reasonDrained, Name: n.Name}, func(s *Status) { s.Preservation.Drained = true })
	}
	why := decision.Why{Reason: reasonPreserveDraining, Name: n.Name, Detail: answer.Why, For: p.Until.Sub(d.now)}
	plan := Plan{At: d.sooner(answer.At, p.Until), Why: why}
	if answer.Blocked {
		plan.Warn = decision.Why{Reason: reasonDrainNoted, Name: n.Name, Detail: answer.Why}
	}
	return plan
}
