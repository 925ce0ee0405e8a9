package drain

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

// Undo decides how to end a drain after which the node stays. It removes the record, and the cordon
// and the taint that this drain made and recorded. A node that was cordoned before stays cordoned.
// Done: no record is left.
//
// Only a caller's mistake is an error, as for Decide.
func Undo(o *Observation, p *Policy, now time.Time) (Plan, error) {
	d, err := newDecision(o, p, now)
	if err != nil {
		return Plan{}, err
	}
	n := o.Node
	switch {
	case n == nil && !o.Complete:
		return Plan{Why: decision.Why{Reason: reasonIncomplete}}, nil
	case n == nil:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNodeGone}}, nil
	case n.Drain == nil && o.Cached: // one that has just begun may not show yet
		return Plan{Look: true, Why: decision.Why{Reason: reasonLook, Name: n.Name}}, nil
	case n.Drain == nil:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNothingToUndo, Name: n.Name}}, nil
	case o.WriteFailed:
		return Plan{At: d.now.Add(p.RetryDelete), Why: decision.Why{Reason: reasonNotStored, Name: n.Name}}, nil
	}
	changed := n.Clone()
	changed.Drain = nil
	why := decision.Why{Reason: reasonForget, Name: n.Name}
	if !n.Drain.Cordoned.IsZero() {
		changed.Unschedulable = false
		why.Reason = reasonUncordon
	}
	if n.Drain.Fenced {
		changed.Taints = unfenced(changed.Taints)
	}
	return Plan{Write: changed, Why: why}, nil
}
