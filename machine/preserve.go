package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A machine can be kept for inspection, for a time: it is not replaced though
// it failed, or though it may fail. A user asks for that by annotation
// Keys.Preserve on the machine or its node; a set says so of machines of its
// own that failed, up to a limit.
//
//	asked for -> recorded in the status, with its end -> on the node: record,
//	cordon, taint, annotation -> condition Preserved -> the node is drained
//
// and back: recorded as ended -> condition -> the rest of what is on the node.
// Each step is found again by looking at the status and the node, so that
// another process can continue from each of them.
//
// The end is a moment, not a wait: it was told to people, on the node and on the
// machine, and clocks that are restarted (ClockFrom) do not move it. It says
// nothing of how the machine fares, so no outage makes it unjust.

// preserveRequest is what is asked about keeping a machine.
type preserveRequest struct {
	value  string       // empty: nothing
	known  bool         // false: it can't be told, and what was decided stands
	byNode bool         // the node says so
	odd    decision.Why // a value that is not known; zero: none
}

// preservationRequest finds out what is asked. An unknown value is passed over, with a
// warning. Of a node that is missing, what it said last stands, unless the
// machine says something; and nonsense on one that never said anything else does
// not silence the machine, whose set would wait for it forever.
func (d *decider) preservationRequest() preserveRequest {
	key, asked := d.p.Keys.Preserve, d.m.Status.Preservation.NodeAsked
	if key == "" {
		return preserveRequest{known: true}
	}
	n := d.seenNode()
	var odd decision.Why
	if n != nil {
		text, says := n.Annotations[key]
		switch {
		case !says && asked:
			return preserveRequest{known: true}
		case says && text != PreserveAutomatically && knownPreserveRequest(text):
			return preserveRequest{value: text, known: true, byNode: true}
		case says:
			odd = decision.Why{Reason: reasonPreserveUnknown, Name: key + " of node " + n.Name, Detail: text}
			if asked {
				return preserveRequest{odd: odd}
			}
		}
	}
	text, says := d.m.Annotations[key]
	switch {
	case !says:
		return preserveRequest{known: n != nil || !asked, odd: odd}
	case knownPreserveRequest(text):
		return preserveRequest{value: text, known: true, odd: odd}
	}
	return preserveRequest{odd: decision.Why{Reason: reasonPreserveUnknown, Name: key, Detail: text}}
}

func knownPreserveRequest(text string) bool {
	switch text {
	case PreserveNow, PreserveWhenFailed, PreserveAutomatically, PreserveNever:
		return true
	}
	return false
}

// holds reports whether the request is to keep a machine that is in this phase.
func (w preserveRequest) holds(phase Phase) bool {
	switch w.value {
	case PreserveNow:
		return true
	case PreserveWhenFailed, PreserveAutomatically:
		return phase == PhaseFailed
	}
	return false
}

// preservable reports whether a machine in this phase may be kept.
func (p Phase) preservable() bool {
	switch p {
	case PhaseRunning, PhaseUnknown, PhaseFailed, PhaseAvailable:
		return true
	}
	return false
}

// preservationUnused reports whether keeping this machine was never asked for.
func (d *decider) preservationUnused() bool {
	return d.neverPreserved(d.seenNode())
}

// preserve records that the machine is kept for inspection from now on, or no longer.
// Neither is decided from a cached read of the node.
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

// nextPreservation is what the record should say of a machine in this phase,
// and why it changes.
func (d *decider) nextPreservation(phase Phase) (Preservation, decision.Why) {
	p, w := d.m.Status.Preservation, d.preservationRequest()
	p.NodeAsked = p.NodeAsked || w.byNode
	p.TakenOver = p.TakenOver && (!p.Since.IsZero() || d.leavesPreservationMarks())
	if !w.known {
		w.value, w.known = p.Request, true // what was decided stands
	}
	why := decision.Why{Reason: reasonPreserveNoted, Name: d.p.Keys.Preserve, Detail: w.value}
	changed := w.value != p.Request
	switch {
	case !p.Since.IsZero() && !p.Active(d.now):
		why = decision.Why{Reason: reasonPreserveExpired, For: p.Until.Sub(p.Since)}
		d.endPreservation(&p)
	case !p.Since.IsZero() && !w.holds(phase):
		why = decision.Why{Reason: reasonPreserveStopped, Detail: w.value}
		d.endPreservation(&p)
		p.Request = ""
	case w.holds(phase) && changed:
		timeout := d.p.preserveTimeout(d.m)
		p.Request, p.Since, p.Until, p.Ended = w.value, d.stamp(), wholeSecond(d.now.Add(timeout)), time.Time{}
		why = decision.Why{Reason: reasonPreserve, Detail: w.value, For: timeout}
	case p.Since.IsZero() && changed:
		p.Request = "" // it may be asked for again
	}
	return p, why
}

func (d *decider) endPreservation(p *Preservation) {
	p.Since, p.Until, p.Ended, p.Drained = time.Time{}, time.Time{}, d.stamp(), false
}

// wholeSecond is the first whole second not before t: stores would cut it.
func wholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// alsoPreserve updates the preservation in the write that changes the phase, so that no reader sees a
// Failed machine that should be preserved but is not yet.
func (d *decider) alsoPreserve(plan Plan) Plan {
	write, ok := plan.Write.(*UpdateStatus)
	if !ok {
		return plan
	}
	was, is := d.m.Status.Phase, write.Status.Phase
	turns := is == PhaseFailed && was != PhaseFailed || is == PhaseRunning && was == PhaseFailed
	if !turns || d.preservationUnused() {
		return plan
	}
	write.Status.Preservation, _ = d.nextPreservation(is)
	if is == PhaseRunning {
		write.Status.Preservation.Drained = false
	}
	return plan
}

// whilePreserved has a plan that ends the pass look again when the time is up,
// and warns about requests that are not known.
func (d *decider) whilePreserved(plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil {
		return plan
	}
	if d.preserved() {
		plan = lookAgainBy(plan, d.m.Status.Preservation.Until)
	}
	if plan.Warn == (decision.Why{}) && d.m.Status.Phase.preservable() {
		plan.Warn = d.preservationRequest().odd
	}
	return plan
}

// leavesPreservationMarks reports whether the machine's node may still carry something of a preservation
// that ended.
func (d *decider) leavesPreservationMarks() bool {
	switch {
	case d.o.NoCluster || d.m.Spec.NodeName == "":
		return false
	case !d.nodeRead() || d.o.Node.cached():
		return true
	}
	n := d.node()
	return n != nil && d.ownsNode(n) && d.preservationMarks(n) != (PreservedMarks{})
}

// reconcileFailed decides about a machine that failed: it waits to be replaced, unless it
// is kept for inspection.
func (d *decider) reconcileFailed() Plan {
	rest := Plan{Why: decision.Why{Reason: reasonFailed}}
	if d.preserved() {
		p := &d.m.Status.Preservation
		rest = Plan{At: p.Until, Why: decision.Why{Reason: reasonPreserved, Detail: p.Request, For: p.Until.Sub(d.now)}}
	}
	if d.o.NoCluster || d.m.Spec.NodeName == "" {
		return rest
	}
	if !d.preserved() && (d.seenNode() == nil || d.preservationMarks(d.seenNode()) == (PreservedMarks{})) {
		return rest
	}
	if !d.nodeRead() {
		return d.readNode(false)
	}
	n := d.node()
	switch {
	case (n == nil || !d.ownsNode(n)) && d.o.Node.cached():
		return d.readNode(false)
	case n == nil || !d.ownsNode(n):
		rest.Warn = d.foreignNode()
		return rest
	}
	return d.reconcileFailedNode(n, rest)
}

// reconcileFailedNode decides about the node of a machine that failed and is kept, or was.
func (d *decider) reconcileFailedNode(n *Node, rest Plan) Plan {
	recorded := !d.preservationUnrecorded(n) || d.o.NodeSynced != nil // while failed: then the cordon is told from a user's
	if d.preserved() && recorded && d.recoveredWhilePreserved(n) {
		if d.o.Node.cached() {
			return d.readNode(false)
		}
		return d.rejoin(n)
	}
	if plan, busy := d.retractPreservedCondition(n); busy {
		return plan
	}
	out := d.outOfSync(n)
	if out && !d.syncDone(n) {
		return d.syncNode(n)
	}
	if plan, busy := d.setPreservedCondition(n); busy {
		return plan
	}
	plan := rest
	if d.preserved() && !out {
		plan = d.drainPreserved(n, rest)
	}
	if out {
		plan = d.retrySync(n, plan)
	}
	return d.retryPreservedCondition(plan, n)
}

// recoveredWhilePreserved reports whether a machine that failed for its health is well
// again. One whose creation failed, or whose update, is not what it should be,
// healthy or not.
func (d *decider) recoveredWhilePreserved(n *Node) bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationHealthCheck && op.Stage == StageNone && n.judge(d.p.nodeConditions(d.m)).healthy()
}

// rejoin takes a machine that was kept back into service.
func (d *decider) rejoin(n *Node) Plan {
	return d.move(EventRecovered, decision.Why{Reason: reasonRejoined, Name: n.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationHealthCheck, StateSuccessful, StageNone)
		s.LastOperation.Message = "node " + n.Name + " is healthy again"
		takeOver(s, n)
	})
}

// drainPreserved has the node of a machine drained that failed and is kept.
// Nothing is forced unless a user asks for it: at the latest, that comes with the
// machine's deletion.
func (d *decider) drainPreserved(n *Node, rest Plan) Plan {
	p, answer := &d.m.Status.Preservation, d.o.Drain
	if p.Drained || d.o.NoDrain {
		return rest
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
		return toldOfLeft(plan, n, answer)
	}
	why := decision.Why{Reason: reasonPreserveDraining, Name: n.Name, Detail: answer.Why, For: p.Until.Sub(d.now)}
	plan := Plan{At: d.earlierOf(answer.At, p.Until), Why: why}
	if answer.Blocked {
		plan.Warn = decision.Why{Reason: reasonDrainNoted, Name: n.Name, Detail: answer.Why}
	}
	return plan
}

// preserveRetry is after how long a failed drain of a preserved machine's node
// is tried again.
const preserveRetry = 30 * time.Second

// Values of annotation Keys.Preserve.
const (
	// PreserveNow keeps a machine at once, in any health.
	PreserveNow = "now"
	// PreserveWhenFailed keeps a machine while it is Failed.
	PreserveWhenFailed = "when-failed"
	// PreserveAutomatically is PreserveWhenFailed, said by a machine's set. On
	// a node it is unknown.
	PreserveAutomatically = "auto-preserved"
	// PreserveNever ends it, and keeps the set from saying otherwise.
	PreserveNever = "false"
)

// Preservation is what is known of a machine's being kept for inspection. The
// zero value: it was never asked for.
type Preservation struct {
	// Request is the value that is followed or, where Since is zero, was the
	// last to be: it is not followed again before it has changed. Empty: none.
	Request string
	// Since and Until are when it began and when it ends, whole seconds. Since
	// zero: the machine is not kept.
	Since, Until time.Time
	// Ended is when the last one ended, whole seconds; zero: none has, or
	// another has begun.
	Ended time.Time
	// NodeAsked says that the node once carried the annotation: what the
	// machine's own says does not count any more, while there is a node.
	NodeAsked bool
	// Drained says that the node of the failed machine was emptied.
	Drained bool
	// TakenOver says that another manager began it. That one left no record of what it put on the
	// node: until there is one, its taint, its cordon and its annotations count as ours, and they
	// are taken off when the preservation ends. False again once nothing of it is left.
	TakenOver bool
}

// Active reports whether a machine is kept at this moment.
func (p *Preservation) Active(now time.Time) bool {
	return !p.Since.IsZero() && now.Before(p.Until)
}

// Equal reports whether both say the same, the same instants in any location.
func (p *Preservation) Equal(q *Preservation) bool {
	return p.Request == q.Request && p.NodeAsked == q.NodeAsked && p.Drained == q.Drained && p.TakenOver == q.TakenOver &&
		p.Since.Equal(q.Since) && p.Until.Equal(q.Until) && p.Ended.Equal(q.Ended)
}

// Automatic reports whether a set asked for it, and no user.
func (p *Preservation) Automatic() bool { return p.Request == PreserveAutomatically }

// NodePreserved is the condition of a node that says whether, by whom and until
// when its machine is kept for inspection.
const (
	NodePreserved                = "Preserved"
	ReasonPreservedByUser        = "PreservedByUser"
	ReasonPreservedAutomatically = "PreservedAutomatically"
	ReasonPreservationEnded      = "PreservationEnded"
)

// PreservedMarks is the record of what the preservation of a machine has put on
// its node, so that nothing else is taken off again.
type PreservedMarks struct {
	// Since is that of the preservation. Zero: there is nothing of one.
	Since    time.Time
	Cordoned bool // the node was schedulable before
	Tainted  bool // the taint Keys.PreservedTaint is ours
	Kept     bool // the annotations Keys.KeepNode and Keys.KeptByUs are ours, and no rollout's
}

func (p *PreservedMarks) equal(q *PreservedMarks) bool {
	return p.Since.Equal(q.Since) && p.Cordoned == q.Cordoned && p.Tainted == q.Tainted && p.Kept == q.Kept
}

// setPreservedCondition has the node say whether its machine is kept. false: it says
// so, or that was tried in this pass.
func (d *decider) setPreservedCondition(n *Node) (Plan, bool) {
	c, say := d.preservedCondition(n)
	if !say || d.o.NodeMarked != nil {
		return Plan{}, false
	}
	mark := &MarkNode{n, c}
	if !d.changeBackoffUntil(n, mark.change()).IsZero() {
		return Plan{}, false
	}
	return Plan{Effect: mark, Why: decision.Why{Reason: reasonTellPreserved, Name: n.Name, Detail: string(c.Status)}}, true
}

// retractPreservedCondition is tell of a machine that is not kept any more. It
// comes first, so that one write takes all the rest off the node.
func (d *decider) retractPreservedCondition(n *Node) (Plan, bool) {
	if d.preserved() {
		return Plan{}, false
	}
	return d.setPreservedCondition(n)
}

// retryPreservedCondition has a plan that ends the pass look again soon at a node
// that still does not say what it was to say.
func (d *decider) retryPreservedCondition(plan Plan, n *Node) Plan {
	c, say := d.preservedCondition(n)
	if plan.Write != nil || plan.Effect != nil || !say {
		return plan
	}
	change := (&MarkNode{n, c}).change()
	switch until := d.changeBackoffUntil(n, change); {
	case d.o.NodeMarked != nil:
		plan = lookAgainBy(plan, d.now.Add(nodeRetry))
		plan.Warn = decision.Why{Reason: reasonPreserveUntold, Name: n.Name, Code: d.o.NodeMarked.Code, Detail: d.o.NodeMarked.Message}
	case !until.IsZero():
		plan = lookAgainBy(plan, until)
		plan.Warn = decision.Why{Reason: reasonSyncUndone, Name: n.Name, Detail: change.What}
	}
	return plan
}
