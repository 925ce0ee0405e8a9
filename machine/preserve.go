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

// request finds out what is asked. An unknown value is passed over, with a
// warning. Of a node that is missing, what it said last stands, unless the
// machine says something; and nonsense on one that never said anything else does
// not silence the machine, whose set would wait for it forever.
func (k preservation) request() preserveRequest {
	key, asked := k.p.Keys.Preserve, k.m.Status.Preservation.NodeAsked
	if key == "" {
		return preserveRequest{known: true}
	}
	n := k.seenNode()
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
	text, says := k.m.Annotations[key]
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

// untouched reports whether keeping this machine was never asked for.
func (k preservation) untouched() bool {
	return nodePreservation{k.situation, k.seenNode()}.ordinary()
}

// preserve records that the machine is kept for inspection from now on, or no longer.
// Neither is decided from a cached read of the node.
func (k preservation) preserve() (Plan, bool) {
	if !k.m.Status.Phase.preservable() {
		return Plan{}, false
	}
	hasNode := !k.o.NoCluster && k.m.Spec.NodeName != ""
	if k.untouched() {
		return Plan{}, false
	}
	if hasNode && !k.looked() {
		return k.look(false), true
	}
	next, why := k.next(k.m.Status.Phase)
	switch {
	case next == k.m.Status.Preservation:
		return Plan{}, false
	case hasNode && k.o.Node.cached():
		return k.look(false), true
	}
	return k.setStatus(why, func(s *Status) { s.Preservation = next }), true
}

// next is what the record should say of a machine in this phase,
// and why it changes.
func (k preservation) next(phase Phase) (Preservation, decision.Why) {
	p, w := k.m.Status.Preservation, k.request()
	p.NodeAsked = p.NodeAsked || w.byNode
	p.TakenOver = p.TakenOver && (!p.Since.IsZero() || k.leavesMarks())
	if !w.known {
		w.value, w.known = p.Request, true // what was decided stands
	}
	why := decision.Why{Reason: reasonPreserveNoted, Name: k.p.Keys.Preserve, Detail: w.value}
	changed := w.value != p.Request
	switch {
	case !p.Since.IsZero() && !p.Active(k.now):
		why = decision.Why{Reason: reasonPreserveExpired, For: p.Until.Sub(p.Since)}
		k.end(&p)
	case !p.Since.IsZero() && !w.holds(phase):
		why = decision.Why{Reason: reasonPreserveStopped, Detail: w.value}
		k.end(&p)
		p.Request = ""
	case w.holds(phase) && changed:
		timeout := k.p.preserveTimeout(k.m)
		p.Request, p.Since, p.Until, p.Ended = w.value, k.stamp(), wholeSecond(k.now.Add(timeout)), time.Time{}
		why = decision.Why{Reason: reasonPreserve, Detail: w.value, For: timeout}
	case p.Since.IsZero() && changed:
		p.Request = "" // it may be asked for again
	}
	return p, why
}

func (k preservation) end(p *Preservation) {
	p.Since, p.Until, p.Ended, p.Drained = time.Time{}, time.Time{}, k.stamp(), false
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
func (k preservation) alsoPreserve(plan Plan) Plan {
	write, ok := plan.Write.(*UpdateStatus)
	if !ok {
		return plan
	}
	was, is := k.m.Status.Phase, write.Status.Phase
	turns := is == PhaseFailed && was != PhaseFailed || is == PhaseRunning && was == PhaseFailed
	if !turns || k.untouched() {
		return plan
	}
	write.Status.Preservation, _ = k.next(is)
	if is == PhaseRunning {
		write.Status.Preservation.Drained = false
	}
	return plan
}

// whilePreserved has a plan that ends the pass look again when the time is up,
// and warns about requests that are not known.
func (k preservation) whilePreserved(plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil {
		return plan
	}
	if k.preserved() {
		plan = within(plan, k.m.Status.Preservation.Until)
	}
	if plan.Warn == (decision.Why{}) && k.m.Status.Phase.preservable() {
		plan.Warn = k.request().odd
	}
	return plan
}

// leavesMarks reports whether the machine's node may still carry something of a preservation
// that ended.
func (k preservation) leavesMarks() bool {
	switch {
	case k.o.NoCluster || k.m.Spec.NodeName == "":
		return false
	case !k.looked() || k.o.Node.cached():
		return true
	}
	n := k.node()
	return n != nil && k.ours(n) && nodePreservation{k.situation, n}.marks() != (PreservedMarks{})
}

// failed decides about a machine that failed: it waits to be replaced, unless it
// is kept for inspection.
func (k preservation) failed() Plan {
	rest := Plan{Why: decision.Why{Reason: reasonFailed}}
	if k.preserved() {
		p := &k.m.Status.Preservation
		rest = Plan{At: p.Until, Why: decision.Why{Reason: reasonPreserved, Detail: p.Request, For: p.Until.Sub(k.now)}}
	}
	if k.o.NoCluster || k.m.Spec.NodeName == "" {
		return rest
	}
	seen := nodePreservation{k.situation, k.seenNode()}
	if !k.preserved() && (seen.n == nil || seen.marks() == (PreservedMarks{})) {
		return rest
	}
	if !k.looked() {
		return k.look(false)
	}
	n := k.node()
	switch {
	case (n == nil || !k.ours(n)) && k.o.Node.cached():
		return k.look(false)
	case n == nil || !k.ours(n):
		rest.Warn = k.foreign()
		return rest
	}
	return k.failedNode(n, rest)
}

// failedNode decides about the node of a machine that failed and is kept, or was.
func (k preservation) failedNode(n *Node, rest Plan) Plan {
	recorded := !nodePreservation{k.situation, n}.unrecorded() || k.o.NodeSynced != nil // while failed: then the cordon is told from a user's
	if k.preserved() && recorded && k.recovers(n) {
		if k.o.Node.cached() {
			return k.look(false)
		}
		return k.rejoin(n)
	}
	if plan, busy := k.retract(n); busy {
		return plan
	}
	sync := nodeSync{k.situation, n, false}
	out := sync.outOfLine()
	if out && !sync.rests() {
		return sync.sync()
	}
	if plan, busy := k.tell(n); busy {
		return plan
	}
	plan := rest
	if k.preserved() && !out {
		plan = k.empty(n, rest)
	}
	if out {
		plan = sync.syncLater(plan)
	}
	return k.tellLater(plan, n)
}

// recovers reports whether a machine that failed for its health is well
// again. One whose creation failed, or whose update, is not what it should be,
// healthy or not.
func (k preservation) recovers(n *Node) bool {
	op := &k.m.Status.LastOperation
	return op.Kind == OperationHealthCheck && op.Stage == StageNone && n.judge(k.p.nodeConditions(k.m)).healthy()
}

// rejoin takes a machine that was kept back into service.
func (k preservation) rejoin(n *Node) Plan {
	return k.move(EventRecovered, decision.Why{Reason: reasonRejoined, Name: n.Name}, func(s *Status) {
		s.LastOperation = k.operation(OperationHealthCheck, StateSuccessful, StageNone)
		s.LastOperation.Message = "node " + n.Name + " is healthy again"
		takeOver(s, n)
	})
}

// empty has the node of a machine drained that failed and is kept.
// Nothing is forced unless a user asks for it: at the latest, that comes with the
// machine's deletion.
func (k preservation) empty(n *Node, rest Plan) Plan {
	p, answer := &k.m.Status.Preservation, k.o.Drain
	if p.Drained || k.o.NoDrain {
		return rest
	}
	since := p.Since
	if k.m.Status.Since.After(since) {
		since = k.past(k.m.Status.Since)
	}
	switch {
	case answer == nil && k.o.Node.cached():
		return k.look(false)
	case answer == nil:
		return k.drainStaying(n, since, p.Until)
	case answer.Code != codes.OK:
		why := decision.Why{Reason: reasonPreserveDrain, Name: n.Name, Code: answer.Code, Detail: answer.Message}
		return Plan{At: k.sooner(k.now.Add(preserveRetry), p.Until), Why: why, Warn: why}
	case answer.Done:
		plan := k.setStatus(drained(n, answer), func(s *Status) { s.Preservation.Drained = true })
		return toldOfLeft(plan, n, answer)
	}
	why := decision.Why{Reason: reasonPreserveDraining, Name: n.Name, Detail: answer.Why, For: p.Until.Sub(k.now)}
	plan := Plan{At: k.sooner(answer.At, p.Until), Why: why}
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

// tell has the node say whether its machine is kept. false: it says
// so, or that was tried in this pass.
func (k preservation) tell(n *Node) (Plan, bool) {
	c, say := nodePreservation{k.situation, n}.condition()
	mark := &MarkNode{n, c}
	if !say || k.o.NodeMarked != nil || !k.heldUntil(n, mark.change()).IsZero() {
		return Plan{}, false
	}
	return Plan{Effect: mark, Why: decision.Why{Reason: reasonTellPreserved, Name: n.Name, Detail: string(c.Status)}}, true
}

// retract is tell of a machine that is not kept any more. It
// comes first, so that one write takes all the rest off the node.
func (k preservation) retract(n *Node) (Plan, bool) {
	if k.preserved() {
		return Plan{}, false
	}
	return k.tell(n)
}

// tellLater has a plan that ends the pass look again soon at a node
// that still does not say what it was to say.
func (k preservation) tellLater(plan Plan, n *Node) Plan {
	c, say := nodePreservation{k.situation, n}.condition()
	if plan.Write != nil || plan.Effect != nil || !say {
		return plan
	}
	change := (&MarkNode{n, c}).change()
	switch until := k.heldUntil(n, change); {
	case k.o.NodeMarked != nil:
		plan = within(plan, k.now.Add(nodeRetry))
		plan.Warn = decision.Why{Reason: reasonPreserveUntold, Name: n.Name, Code: k.o.NodeMarked.Code, Detail: k.o.NodeMarked.Message}
	case !until.IsZero():
		plan = within(plan, until)
		plan.Warn = decision.Why{Reason: reasonSyncUndone, Name: n.Name, Detail: change.What}
	}
	return plan
}
