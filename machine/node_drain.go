package machine

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

// drainStaying has the node of a machine drained that is not being deleted. The
// label Keys.ForceDrain forces it.
func (s *situation) drainStaying(n *Node, since, until time.Time) Plan {
	order := &DrainNode{Node: n, Stays: true, Forced: s.labelled(s.p.Keys.ForceDrain), Since: since, Until: until}
	why := decision.Why{Reason: reasonDrainNode, Name: n.Name}
	if order.Forced {
		why.Reason = reasonForceDrain
	}
	return Plan{Effect: order, Why: why}
}

// noteDrain stores what a drain waits for, once it changes.
func (s *situation) noteDrain(n *Node, op Operation) (Plan, bool) {
	last, answer := &s.m.Status.LastOperation, s.o.Drain
	if last.State == op.State && last.Message == answer.Why && !last.Forced {
		return Plan{}, false
	}
	op.Message = answer.Why
	why := decision.Why{Reason: reasonDrainNoted, Name: n.Name, Detail: answer.Why}
	plan := s.setStatus(why, func(status *Status) { status.LastOperation = op })
	if answer.Blocked {
		plan.Warn = why
	}
	return plan, true
}
