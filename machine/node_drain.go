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

// drained says that a drain of a node has ended, and what it has left there.
func drained(n *Node, answer *DrainAnswer) decision.Why {
	if answer.Blocked {
		return decision.Why{Reason: reasonDrainedBut, Name: n.Name, Detail: answer.Why}
	}
	return decision.Why{Reason: reasonDrained, Name: n.Name}
}

// toldOfLeft returns a plan that warns of what a drain has left on its node.
func toldOfLeft(p Plan, n *Node, answer *DrainAnswer) Plan {
	if answer.Blocked {
		p.Warn = drained(n, answer)
	}
	return p
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
