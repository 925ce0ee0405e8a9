package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

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
