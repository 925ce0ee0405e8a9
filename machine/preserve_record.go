package machine

import "time"

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
