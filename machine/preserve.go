package machine

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

// A machine can be kept for inspection, for a time: it is not replaced though
// it failed, or though it may fail. Whoever wants that says so by annotation
// Keys.Preserve on the machine or its node; a set says so of machines of its
// own that failed, up to a limit.
//
//	asked for -> recorded in the status, with its end -> on the node: record,
//	cordon, taint, annotation -> condition Preserved -> the node is drained
//
// and back: recorded as ended -> condition -> the rest of what is on the node.
// Each step is found again by looking at the status and the node, so that the
// way goes on from wherever a process died.
//
// The end is a moment, not a wait: it was told to people, on the node and on the
// machine, and clocks that are restarted (ClockFrom) do not move it. It says
// nothing of how the machine fares, so no outage makes it unjust.

// preserved tells whether the machine is kept for inspection.
func (d *decider) preserved() bool { return d.m.Status.Preservation.Active(d.now) }

// ordinary tells whether nobody ever asked to keep this machine.
func (d *decider) ordinary(n *Node) bool {
	key := d.p.Keys.Preserve
	return d.m.Status.Preservation == (Preservation{}) && (n == nil || n.Applied.Preserved == (PreservedMarks{})) &&
		(key == "" || !has(d.m.Annotations, key) && (n == nil || !has(n.Annotations, key)))
}

// wish is what is asked about keeping a machine.
type wish struct {
	value  string       // empty: nothing
	known  bool         // false: it can't be told, and what was decided stands
	byNode bool         // the node says so
	odd    decision.Why // what nobody understands; zero: nothing
}

// wish finds out what is asked. What nobody knows is passed over, with a
// warning. Of a node that is missing, what it said last stands, unless the
// machine says something; and nonsense on one that never said anything else does
// not silence the machine, whose set would wait for it for ever.
func (d *decider) wish() wish {
	key, asked := d.p.Keys.Preserve, d.m.Status.Preservation.NodeAsked
	if key == "" {
		return wish{known: true}
	}
	n := d.seenNode()
	var odd decision.Why
	if n != nil {
		text, says := n.Annotations[key]
		switch {
		case !says && asked:
			return wish{known: true}
		case says && text != PreserveAutomatically && knownWish(text):
			return wish{value: text, known: true, byNode: true}
		case says:
			odd = decision.Why{Reason: reasonPreserveUnknown, Name: key + " of node " + n.Name, Detail: text}
			if asked {
				return wish{odd: odd}
			}
		}
	}
	text, says := d.m.Annotations[key]
	switch {
	case !says:
		return wish{known: n != nil || !asked, odd: odd}
	case knownWish(text):
		return wish{value: text, known: true, odd: odd}
	}
	return wish{odd: decision.Why{Reason: reasonPreserveUnknown, Name: key, Detail: text}}
}

func knownWish(text string) bool {
	switch text {
	case PreserveNow, PreserveWhenFailed, PreserveAutomatically, PreserveNever:
		return true
	}
	return false
}

// holds tells whether the wish is to keep a machine that is in this phase.
func (w wish) holds(phase Phase) bool {
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

// preserve records that the machine is kept from now on, or no longer. Nobody
// is kept or let go for what a cache remembers of the node.
func (d *decider) preserve() (Plan, bool) {
	if !d.m.Status.Phase.preservable() {
		return Plan{}, false
	}
	hasNode := !d.o.NoCluster && d.m.Spec.NodeName != ""
	if d.ordinary(d.seenNode()) {
		return Plan{}, false
	}
	if hasNode && !d.looked() {
		return d.look(false), true
	}
	next, why := d.nextPreservation(d.m.Status.Phase)
	switch {
	case next == d.m.Status.Preservation:
		return Plan{}, false
	case hasNode && d.o.Node.cached():
		return d.look(false), true
	}
	return d.setStatus(why, func(s *Status) { s.Preservation = next }), true
}

// nextPreservation is what the record should say of a machine in this phase,
// and why it changes.
func (d *decider) nextPreservation(phase Phase) (Preservation, decision.Why) {
	p, w := d.m.Status.Preservation, d.wish()
	p.NodeAsked = p.NodeAsked || w.byNode
	p.TakenOver = p.TakenOver && (!p.Since.IsZero() || d.carriesPreserved())
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

// alsoPreserve adds to the write that has a machine fail or recover what that
// means for its preservation: nobody ever sees a machine as failed that is to be
// kept and is not.
func (d *decider) alsoPreserve(plan Plan) Plan {
	write, ok := plan.Write.(*UpdateStatus)
	if !ok {
		return plan
	}
	was, is := d.m.Status.Phase, write.Status.Phase
	turns := is == PhaseFailed && was != PhaseFailed || is == PhaseRunning && was == PhaseFailed
	if !turns || d.ordinary(d.seenNode()) {
		return plan
	}
	write.Status.Preservation, _ = d.nextPreservation(is)
	if is == PhaseRunning {
		write.Status.Preservation.Drained = false
	}
	return plan
}

// seenNode is the machine's own node, if it was looked for and found. A machine that names
// none has none: what is found for it one time and not the next would turn its wish round.
func (d *decider) seenNode() *Node {
	if d.o.Node == nil || d.m.Spec.NodeName == "" || !d.looked() {
		return nil
	}
	return d.node()
}

// whilePreserved has a plan that ends the pass look again when the time is up,
// and tells of requests that nobody understands.
func (d *decider) whilePreserved(plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil {
		return plan
	}
	if d.preserved() {
		plan = within(plan, d.m.Status.Preservation.Until)
	}
	if plan.Warn == (decision.Why{}) && d.m.Status.Phase.preservable() {
		plan.Warn = d.wish().odd
	}
	return plan
}
