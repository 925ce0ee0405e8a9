package machine

import (
	"time"

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

// alsoPreserve adds to the write that has a machine fail or recover what that
// means for its preservation: no reader ever sees a failed machine that is to be
// kept and is not.
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
