package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// join decides about a Pending machine whose VM is there, until its node is
// healthy and ready for workload.
func (c creation) join() Plan {
	if !c.looked() {
		return c.look(false)
	}
	node := c.node()
	if node == nil {
		return c.awaitRegistration()
	}
	bad := node.judge(c.p.nodeConditions(c.m))
	sync := nodeSync{c.situation, node, bad.healthy()}
	out := sync.outOfLine()
	if out && !sync.rests() {
		return sync.sync()
	}
	critical := node.hasTaint(c.p.Keys.CriticalComponents)
	if bad.healthy() && !critical && (!out || sync.undone()) {
		return c.joined(node)
	}
	if !sameConditions(c.m.Status.Conditions, node.Conditions) {
		return c.copyConditions(node)
	}
	why, problem := decision.Why{Reason: reasonCritical, Name: node.Name}, "its critical components are not ready"
	switch {
	case !bad.healthy():
		problem = bad.String()
		why = decision.Why{Reason: reasonNotHealthyYet, Name: node.Name, Detail: problem}
	case !critical:
		why = sync.notInLine()
		problem = why.String()
	}
	plan := c.awaitJoin(why, problem)
	if out {
		plan = sync.syncLater(plan)
	}
	return plan
}

// appear is about a machine that was made without a cluster, or whose phase was written by another
// program. Its node counts from when it is healthy. Until then nothing is held against the machine: its
// VM may be none that joins.
func (c creation) appear() Plan {
	if !c.looked() {
		return c.look(false)
	}
	node := c.node()
	if node == nil || !node.judge(c.p.nodeConditions(c.m)).healthy() {
		why := decision.Why{Reason: reasonAvailableAlone, Name: c.m.Spec.ProviderID}
		return hotUpdate(c).refresh(Plan{Why: why, Warn: why})
	}
	return c.joined(node)
}

// awaitRegistration waits for a node that has not registered, with a token that lasts.
func (c creation) awaitRegistration() Plan {
	bootstrap := token(c)
	if plan, busy := bootstrap.renew(); busy && bootstrap.prolonged() {
		return plan
	}
	return c.renewLater(c.awaitJoin(decision.Why{Reason: reasonNotJoined, Name: c.m.Spec.NodeName}, "its node has not joined"))
}

// awaitJoin waits for a node until the creation's time is up; problem is what
// there is to say of it then.
func (c creation) awaitJoin(why decision.Why, problem string) Plan {
	deadline := c.creationDeadline()
	if !c.now.Before(deadline) {
		if c.o.Node.cached() {
			return c.look(false)
		}
		return c.timedOut(problem)
	}
	if plan, unsaid := c.noteState(); unsaid {
		return plan
	}
	why.For = deadline.Sub(c.now)
	return Plan{At: deadline, Why: why, Warn: c.foreign()}
}

// noteState stores what drivers said in this pass where no other status write
// is about to carry it.
func (c creation) noteState() (Plan, bool) {
	said := c.m.Status
	c.noteVM(&said)
	if said.LastKnown == c.m.Status.LastKnown && slices.Equal(said.Addresses, c.m.Status.Addresses) {
		return Plan{}, false
	}
	return c.setStatus(decision.Why{Reason: reasonLastKnown}, c.noteVM), true
}

// renewLater has a plan that ends the pass try again soon where the token could
// not be prolonged. One that does not exist never can.
func (c creation) renewLater(plan Plan) Plan {
	answer := c.o.TokenEnsured
	if answer == nil || answer.Code == codes.OK || plan.At.IsZero() {
		return plan
	}
	if answer.Code != codes.NotFound {
		plan = sooner(plan, c.now.Add(nodeRetry))
	}
	plan.Warn = decision.Why{Reason: reasonTokenNotRenewed, Code: answer.Code, Detail: answer.Message}
	return plan
}

func (c creation) joined(node *Node) Plan {
	bootstrap := token(c)
	if plan, busy := bootstrap.remove(); busy {
		return plan
	}
	plan := c.move(EventJoined, decision.Why{Reason: reasonJoined, Name: node.Name}, func(s *Status) {
		s.LastOperation = c.operation(OperationCreate, StateSuccessful, StageInitialized)
		s.LastOperation.Message = "the machine joined as node " + node.Name
		if s.JoinedAfter == 0 {
			s.JoinedAfter = c.now.Sub(c.m.CreatedAt).Truncate(time.Second)
		}
		takeOver(s, node)
	})
	plan.Warn = bootstrap.left()
	return plan
}
