package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A machine can be preserved for inspection for some time: it is not replaced although it failed. A user
// requests that by annotation Keys.Preserve on the machine or its node; a set requests it for some of its
// failed machines.
//
//	request -> status, with its end -> on the node: record, cordon, taint, annotation ->
//	condition Preserved -> drain of the node
//
// and at the end: status -> condition -> the rest of what is on the node. Each step reads from the status and
// the node which steps are done, so that another process can continue.
//
// The end is a fixed time, because it was announced on the node and on the machine. It does not move when
// clocks restart (ClockFrom).

// preserveRequest is what machine and node request.
type preserveRequest struct {
	value   string       // empty: nothing
	known   bool         // false: the request can't be read now, and the last one stays in force
	byNode  bool         // the request is on the node
	invalid decision.Why // an unknown value of the annotation; zero: none
}

// preservationRequest reads what is requested. The node's annotation takes precedence; while the node is
// missing, its last request stays in force unless the machine has one. An unknown value is ignored with a
// warning. If the node never had a valid value, an unknown one does not override the machine's annotation:
// otherwise the machine's set would wait forever for that annotation to take effect.
func (d *decider) preservationRequest() preserveRequest {
	key, nodeAsked := d.p.Keys.Preserve, d.m.Status.Preservation.NodeAsked
	if key == "" {
		return preserveRequest{known: true}
	}
	n := d.seenNode()
	var invalid decision.Why
	if n != nil {
		text, annotated := n.Annotations[key]
		switch {
		case !annotated && nodeAsked:
			return preserveRequest{known: true}
		case annotated && text != PreserveAutomatically && knownPreserveRequest(text):
			return preserveRequest{value: text, known: true, byNode: true}
		case annotated:
			invalid = decision.Why{Reason: reasonPreserveUnknown, Name: key + " of node " + n.Name, Detail: text}
			if nodeAsked {
				return preserveRequest{invalid: invalid}
			}
		}
	}
	text, annotated := d.m.Annotations[key]
	switch {
	case !annotated:
		return preserveRequest{known: n != nil || !nodeAsked, invalid: invalid}
	case knownPreserveRequest(text):
		return preserveRequest{value: text, known: true, invalid: invalid}
	}
	return preserveRequest{invalid: decision.Why{Reason: reasonPreserveUnknown, Name: key, Detail: text}}
}

func knownPreserveRequest(text string) bool {
	switch text {
	case PreserveNow, PreserveWhenFailed, PreserveAutomatically, PreserveNever:
		return true
	}
	return false
}

// appliesIn reports whether the request preserves a machine in this phase.
func (w preserveRequest) appliesIn(phase Phase) bool {
	switch w.value {
	case PreserveNow:
		return true
	case PreserveWhenFailed, PreserveAutomatically:
		return phase == PhaseFailed
	}
	return false
}

// preservable reports whether a machine in this phase may be preserved.
func (p Phase) preservable() bool {
	switch p {
	case PhaseRunning, PhaseUnknown, PhaseFailed, PhaseAvailable:
		return true
	}
	return false
}

// preservationUnused reports whether the preservation of this machine was never requested.
func (d *decider) preservationUnused() bool {
	return d.neverPreserved(d.seenNode())
}

// preserve records that preservation begins or ends. It decides neither on a cached read of the node.
func (d *decider) preserve() (Plan, bool) {
	if !d.m.Status.Phase.preservable() {
		return Plan{}, false
	}
	hasNode := !d.o.NoCluster && d.m.Spec.NodeName != ""
	if d.preservationUnused() {
		return Plan{}, false
	}
	if hasNode && !d.nodeRead() {
		return d.readNode(false), true
	}
	next, why := d.nextPreservation(d.m.Status.Phase)
	switch {
	case next == d.m.Status.Preservation:
		return Plan{}, false
	case hasNode && d.o.Node.cached():
		return d.readNode(false), true
	}
	return d.setStatus(why, func(s *Status) { s.Preservation = next }), true
}

// nextPreservation returns the record for a machine in this phase, and why it changes.
func (d *decider) nextPreservation(phase Phase) (Preservation, decision.Why) {
	p, request := d.m.Status.Preservation, d.preservationRequest()
	p.NodeAsked = p.NodeAsked || request.byNode
	p.TakenOver = p.TakenOver && (!p.Since.IsZero() || d.mayHavePreservationMarks())
	if !request.known {
		request.value, request.known = p.Request, true // the last request stays in force
	}
	why := decision.Why{Reason: reasonPreserveRequested, Name: d.p.Keys.Preserve, Detail: request.value}
	changed := request.value != p.Request
	switch {
	case !p.Since.IsZero() && !p.Active(d.now):
		why = decision.Why{Reason: reasonPreserveExpired, For: p.Until.Sub(p.Since)}
		d.endPreservation(&p)
	case !p.Since.IsZero() && !request.appliesIn(phase):
		why = decision.Why{Reason: reasonPreserveStopped, Detail: request.value}
		d.endPreservation(&p)
		p.Request = ""
	case request.appliesIn(phase) && changed:
		timeout := d.p.preserveTimeout(d.m)
		p.Request, p.Since, p.Until, p.Ended = request.value, d.stamp(), wholeSecond(d.now.Add(timeout)), time.Time{}
		why = decision.Why{Reason: reasonPreserve, Detail: request.value, For: timeout}
	case p.Since.IsZero() && changed:
		p.Request = "" // it may be requested again
	}
	return p, why
}

func (d *decider) endPreservation(p *Preservation) {
	p.Since, p.Until, p.Ended, p.Drained = time.Time{}, time.Time{}, d.stamp(), false
}

// wholeSecond rounds up to a whole second, because stores truncate.
func wholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// alsoPreserve updates the preservation in the write that changes the phase, so that no reader sees a
// Failed machine that should be preserved but is not yet.
func (d *decider) alsoPreserve(plan *Plan) {
	write, ok := plan.Write.(*UpdateStatus)
	if !ok {
		return
	}
	was, is := d.m.Status.Phase, write.Status.Phase
	failsOrRecovers := is == PhaseFailed && was != PhaseFailed || is == PhaseRunning && was == PhaseFailed
	if !failsOrRecovers || d.preservationUnused() {
		return
	}
	write.Status.Preservation, _ = d.nextPreservation(is)
	if is == PhaseRunning {
		write.Status.Preservation.Drained = false
	}
}

// whilePreserved makes a plan that ends the pass look again at the end of the preservation. It warns about an
// unknown value of the annotation.
func (d *decider) whilePreserved(plan *Plan) {
	if plan.Write != nil || plan.Effect != nil {
		return
	}
	if d.preserved() {
		*plan = lookAgainBy(*plan, d.m.Status.Preservation.Until)
	}
	if plan.Warn == (decision.Why{}) && d.m.Status.Phase.preservable() {
		plan.Warn = d.preservationRequest().invalid
	}
}

// mayHavePreservationMarks reports whether the machine's node may still have marks of a preservation that
// ended.
func (d *decider) mayHavePreservationMarks() bool {
	switch {
	case d.o.NoCluster || d.m.Spec.NodeName == "":
		return false
	case !d.nodeRead() || d.o.Node.cached():
		return true
	}
	n := d.node()
	return n != nil && d.ownsNode(n) && d.preservationMarks(n) != (PreservedMarks{})
}

// reconcileFailed waits for the replacement of a Failed machine, or preserves it.
func (d *decider) reconcileFailed() Plan {
	idle := Plan{Why: decision.Why{Reason: reasonFailed}}
	if d.preserved() {
		p := &d.m.Status.Preservation
		idle = Plan{At: p.Until, Why: decision.Why{Reason: reasonPreservedFailed, Detail: p.Request, For: p.Until.Sub(d.now)}}
	}
	if d.o.NoCluster || d.m.Spec.NodeName == "" {
		return idle
	}
	if !d.preserved() && (d.seenNode() == nil || d.preservationMarks(d.seenNode()) == (PreservedMarks{})) {
		return idle
	}
	if !d.nodeRead() {
		return d.readNode(false)
	}
	n := d.node()
	switch {
	case (n == nil || !d.ownsNode(n)) && d.o.Node.cached():
		return d.readNode(false)
	case n == nil || !d.ownsNode(n):
		idle.Warn = d.foreignNode()
		return idle
	}
	return d.reconcileFailedNode(n, idle)
}

// reconcileFailedNode decides about the node of a Failed machine that is, or was, preserved.
func (d *decider) reconcileFailedNode(n *Node, idle Plan) Plan {
	recorded := !d.preservationUnrecorded(n) || d.o.NodeSynced != nil // recorded first, so that our cordon can be distinguished from a user's
	if d.preserved() && recorded && d.recoveredWhilePreserved(n) {
		if d.o.Node.cached() {
			return d.readNode(false)
		}
		return d.rejoin(n)
	}
	if plan, found := d.retractPreservedCondition(n); found {
		return plan
	}
	out := d.outOfSync(n)
	if out && !d.syncDone(n) {
		return d.syncNode(n)
	}
	if plan, found := d.setPreservedCondition(n); found {
		return plan
	}
	plan := idle
	if d.preserved() && !out {
		plan = d.drainPreserved(n, idle)
	}
	if out {
		plan = d.retrySync(n, plan)
	}
	d.retryPreservedCondition(&plan, n)
	return plan
}

// recoveredWhilePreserved reports whether a machine that failed for its health is healthy again. A machine
// whose creation or update failed stays Failed even with a healthy node.
func (d *decider) recoveredWhilePreserved(n *Node) bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationHealthCheck && op.Stage == StageNone && n.judge(d.p.nodeConditions(d.m)).healthy()
}

// rejoin moves a preserved machine from Failed to Running.
func (d *decider) rejoin(n *Node) Plan {
	return d.move(EventRecovered, decision.Why{Reason: reasonRejoined, Name: n.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationHealthCheck, StateSuccessful, StageNone)
		s.LastOperation.Message = "node " + n.Name + " is healthy again"
		copyFromNode(s, n)
	})
}

// drainPreserved drains the node of a preserved Failed machine. It uses force only if a user requests it; the
// deletion of the machine uses force as always.
func (d *decider) drainPreserved(n *Node, idle Plan) Plan {
	p, answer := &d.m.Status.Preservation, d.o.Drain
	if p.Drained || d.o.NoDrain {
		return idle
	}
	since := p.Since
	if d.m.Status.Since.After(since) {
		since = d.validPast(d.m.Status.Since)
	}
	switch {
	case answer == nil && d.o.Node.cached():
		return d.readNode(false)
	case answer == nil:
		return d.drainStaying(n, since, p.Until)
	case answer.Code != codes.OK:
		why := decision.Why{Reason: reasonPreserveDrain, Name: n.Name, Code: answer.Code, Detail: answer.Message}
		return Plan{At: d.earlierOf(d.now.Add(preserveRetry), p.Until), Why: why, Warn: why}
	case answer.Done:
		plan := d.setStatus(drained(n, answer), func(s *Status) { s.Preservation.Drained = true })
		return warnLeftover(plan, n, answer)
	}
	why := decision.Why{Reason: reasonPreserveDraining, Name: n.Name, Detail: answer.Why, For: p.Until.Sub(d.now)}
	plan := Plan{At: d.earlierOf(answer.At, p.Until), Why: why}
	if answer.Blocked {
		plan.Warn = decision.Why{Reason: reasonDrainNoted, Name: n.Name, Detail: answer.Why}
	}
	return plan
}

// preserveRetry is how long to wait before a failed drain of a preserved node is retried.
const preserveRetry = 30 * time.Second

// Values of annotation Keys.Preserve.
const (
	// PreserveNow preserves a machine at once, healthy or not.
	PreserveNow = "now"
	// PreserveWhenFailed preserves a machine while it is Failed.
	PreserveWhenFailed = "when-failed"
	// PreserveAutomatically is PreserveWhenFailed, written by the machine's set. It is unknown on a node.
	PreserveAutomatically = "auto-preserved"
	// PreserveNever ends the preservation, and keeps the set from requesting it again.
	PreserveNever = "false"
)

// Preservation is the record of a machine's preservation for inspection. The zero value: never requested.
type Preservation struct {
	// Request is the value of the annotation that is in force or, if Since is zero, was the last in
	// force. It is not followed again before the annotation changes. Empty: none.
	Request string
	// Since and Until are when the preservation began and when it ends, whole seconds. Since is zero if
	// the machine is not preserved.
	Since, Until time.Time
	// Ended is when the last preservation ended, whole seconds. Zero: none has, or another has begun.
	Ended time.Time
	// NodeAsked says that the node has had the annotation: the machine's own is ignored from then on,
	// while there is a node.
	NodeAsked bool
	// Drained says that the node of the Failed machine was drained.
	Drained bool
	// TakenOver says that another manager began the preservation. It left no record of its marks on the
	// node, so its taint, cordon and annotations count as ours and are removed at the end. It is reset
	// when no mark is left.
	TakenOver bool
}

// Active reports whether the machine is preserved at this moment.
func (p *Preservation) Active(now time.Time) bool {
	return !p.Since.IsZero() && now.Before(p.Until)
}

// Equal reports whether both are the same. Times are compared as instants.
func (p *Preservation) Equal(q *Preservation) bool {
	return p.Request == q.Request && p.NodeAsked == q.NodeAsked && p.Drained == q.Drained && p.TakenOver == q.TakenOver &&
		p.Since.Equal(q.Since) && p.Until.Equal(q.Until) && p.Ended.Equal(q.Ended)
}

// Automatic reports whether a set requested it, and not a user.
func (p *Preservation) Automatic() bool { return p.Request == PreserveAutomatically }

// NodePreserved is the node condition that says whether, by whom and until when the machine is preserved.
const (
	NodePreserved                = "Preserved"
	ReasonPreservedByUser        = "PreservedByUser"
	ReasonPreservedAutomatically = "PreservedAutomatically"
	ReasonPreservationEnded      = "PreservationEnded"
)

// PreservedMarks is the record of what the preservation of a machine has changed on its node, so that
// nothing else is reverted at its end.
type PreservedMarks struct {
	// Since is the start of the preservation. Zero: nothing was changed.
	Since    time.Time
	Cordoned bool // the node was schedulable before
	Tainted  bool // the taint Keys.PreservedTaint is ours
	Kept     bool // the annotations Keys.KeepNode and Keys.KeptByUs are ours, and no rollout's
}

func (p *PreservedMarks) equal(q *PreservedMarks) bool {
	return p.Since.Equal(q.Since) && p.Cordoned == q.Cordoned && p.Tainted == q.Tainted && p.Kept == q.Kept
}

// setPreservedCondition sets condition Preserved on the node. It finds no plan if the condition is set, if
// this pass has tried, or if the write is delayed because another program keeps undoing it.
func (d *decider) setPreservedCondition(n *Node) (Plan, bool) {
	c, set := d.preservedCondition(n)
	if !set || d.o.NodeMarked != nil {
		return Plan{}, false
	}
	mark := &MarkNode{n, c}
	if !d.changeBackoffUntil(n, mark.change()).IsZero() {
		return Plan{}, false
	}
	return Plan{Effect: mark, Why: decision.Why{Reason: reasonSetPreserved, Name: n.Name, Detail: string(c.Status)}}, true
}

// retractPreservedCondition is setPreservedCondition for a machine that is no longer preserved. It comes
// before the other changes of the node, so that one write removes all the rest.
func (d *decider) retractPreservedCondition(n *Node) (Plan, bool) {
	if d.preserved() {
		return Plan{}, false
	}
	return d.setPreservedCondition(n)
}

// retryPreservedCondition makes a plan that ends the pass retry a failed write of condition Preserved soon.
func (d *decider) retryPreservedCondition(plan *Plan, n *Node) {
	c, set := d.preservedCondition(n)
	if plan.Write != nil || plan.Effect != nil || !set {
		return
	}
	change := (&MarkNode{n, c}).change()
	switch until := d.changeBackoffUntil(n, change); {
	case d.o.NodeMarked != nil:
		*plan = lookAgainBy(*plan, d.now.Add(nodeRetry))
		plan.Warn = decision.Why{Reason: reasonSetPreservedFailed, Name: n.Name, Code: d.o.NodeMarked.Code, Detail: d.o.NodeMarked.Message}
	case !until.IsZero():
		*plan = lookAgainBy(*plan, until)
		plan.Warn = decision.Why{Reason: reasonSyncUndone, Name: n.Name, Detail: change.What}
	}
}
