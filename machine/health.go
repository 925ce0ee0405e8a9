package machine

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// watch decides about a machine that has joined once.
func (h health) watch() Plan {
	if h.o.NoCluster {
		return h.watchVM()
	}
	if !h.looked() {
		return h.look(false)
	}
	node := h.node()
	if node == nil {
		if foreign := h.foreign(); foreign != (decision.Why{}) {
			return Plan{Why: foreign, Warn: foreign}
		}
		return h.nodeUnhealthy(decision.Why{Reason: reasonNodeMissing, Name: h.m.Spec.NodeName}, nil)
	}
	bad := node.judge(h.p.nodeConditions(h.m))
	inspection, update, sync := preservation(h), inPlace{h.situation, node}, nodeSync{h.situation, node, bad.healthy()}
	if plan, busy := inspection.retract(node); busy {
		return plan
	}
	if plan, busy := update.step(bad.healthy()); busy {
		return plan
	}
	out := sync.outOfLine()
	if out && !sync.rests() {
		return sync.sync()
	}
	plan := h.judged(node, bad)
	if out {
		plan = sync.syncLater(plan)
	}
	if plan.Write == nil && plan.Effect == nil {
		if tell, busy := inspection.tell(node); busy {
			return tell
		}
		if note, busy := sync.noteRefused(); busy {
			return note
		}
	}
	return hotUpdate(h).refresh(inspection.tellLater(update.tellLater(sync.refusedLater(plan)), node))
}

// settled reports whether a machine runs and all is as it should be. It is the
// way through keep and watch that ends without anything to do, taken first
// because a fleet spends its time there; a test holds both ways to each other.
func (h health) settled() bool {
	m := h.m
	if m.Deleted() || m.Status.Phase != PhaseRunning || h.o.Frozen || h.o.NoCluster || !h.looked() || !hotUpdate(h).hasSpec() {
		return false
	}
	n := h.o.Node.Node
	return n != nil && !h.isForeign() && h.undisturbed(n) && m.HasFinalizer(Finalizer) && m.invalidField() == nil && h.accepted(n) &&
		sameConditions(m.Status.Conditions, n.Conditions) &&
		n.judge(h.p.nodeConditions(m)).healthy() && !nodeSync{h.situation, n, true}.outOfLine()
}

// undisturbed reports whether nothing is done with a machine and its node: no
// update, no deletion, and neither is kept for inspection.
func (h health) undisturbed(n *Node) bool {
	return h.m.Spec.InPlace == InPlaceNone && n.Applied.Update.none() && nodePreservation{h.situation, n}.ordinary() && !n.Deleted() && !nodeUpdate{h.situation, n}.misleads()
}

// accepted reports whether all of the machine's template is on its node, and nothing else is said.
func (h health) accepted(n *Node) bool {
	last, s := &n.Applied, &h.m.Status
	vouched := last.Generation != 0 && last.Generation == h.m.Generation
	return last.Refused.At.IsZero() && !(s.LastOperation.Stage == StageSyncNode && s.LastOperation.State == StateFailed) && (vouched || h.m.Spec.NodeTemplate.valid()) &&
		object.FindCondition(s.Conditions, ConditionSpecValid) == nil
}

// judged passes the verdict on a machine with a node.
func (h health) judged(node *Node, bad verdict) Plan {
	if !bad.healthy() {
		return h.nodeUnhealthy(decision.Why{Reason: reasonNodeUnhealthy, Name: node.Name, Detail: bad.String()}, node)
	}
	if h.m.Status.Phase == PhaseUnknown {
		return h.move(EventRecovered, decision.Why{Reason: reasonRejoined, Name: node.Name}, func(s *Status) {
			s.LastOperation = h.operation(OperationHealthCheck, StateSuccessful, StageNone)
			s.LastOperation.Message = "node " + node.Name + " is healthy again"
			takeOver(s, node)
		})
	}
	update := inPlace{h.situation, node}
	if h.m.Status.Phase == PhaseInPlaceUpdateFailed && nodeUpdate(update).over() {
		return update.forgive()
	}
	if !sameConditions(h.m.Status.Conditions, node.Conditions) {
		return h.copyConditions(node)
	}
	if h.m.Status.Phase == PhaseInPlaceUpdateFailed {
		return h.nodeUnhealthy(decision.Why{Reason: reasonUpdateOpen, Name: node.Name}, node)
	}
	plan := Plan{Why: decision.Why{Reason: reasonHealthy, Name: node.Name}}
	if h.m.Spec.InPlace == InPlaceWaiting && nodeUpdate(update).waits() {
		plan.Warn = decision.Why{Reason: reasonSelectionWaits, Name: node.Name}
	}
	return plan
}

// nodeUnhealthy decides about a machine whose node is unhealthy, or missing (node is
// nil): a running one becomes Unknown, and its health timeout starts. When that has
// passed, the machine is marked failed.
func (h health) nodeUnhealthy(why decision.Why, node *Node) Plan {
	if node == nil && h.o.Node.cached() {
		return h.look(false)
	}
	if h.m.Status.Phase == PhaseRunning {
		return h.move(eventUnhealthy, why, func(s *Status) {
			s.LastOperation = h.operation(OperationHealthCheck, StateProcessing, StageNone)
			s.LastOperation.Message = why.String()
			if node != nil {
				takeOver(s, node)
			}
		})
	}
	if node != nil && !sameConditions(h.m.Status.Conditions, node.Conditions) {
		return h.copyConditions(node)
	}
	if h.m.Spec.Config.DisableHealthTimeout {
		if why.Reason == reasonUpdateOpen {
			return Plan{Why: why}
		}
		return Plan{Why: decision.Why{Reason: reasonUnhealthyForever, Name: h.m.Spec.NodeName}}
	}
	return h.outOfTime(why)
}

// outOfTime marks a machine failed whose health timeout has passed. The machine of a
// failed update counts as unhealthy even with a healthy node: it is not what
// its owner wants, gets no workload, and was not updated since.
func (h health) outOfTime(why decision.Why) Plan {
	timeout := h.p.healthTimeout(h.m)
	at := h.verdictAt(h.m.Status.Since, timeout)
	wait := decision.Why{Reason: reasonUnhealthyWait, Name: h.m.Spec.NodeName, For: at.Sub(h.now)}
	failed, stage := decision.Why{Reason: reasonHealthTimeout, Name: h.m.Spec.NodeName, For: timeout}, StageNone
	if why.Reason == reasonUpdateOpen {
		wait.Reason, failed.Reason, stage = reasonUpdateOpen, reasonUpdateAbandoned, StageUpdateFailed
		if h.p.ReplaceFailedUpdates {
			at = h.m.Status.Since
		}
	}
	if h.now.Before(at) {
		return Plan{At: at, Why: wait}
	}
	if h.o.Node.cached() {
		return h.look(false)
	}
	name := h.m.Spec.NodeName
	if plan, wait := h.awaitGrant(AskGrant{}, decision.Why{Reason: reasonAskGrant, Name: name}, decision.Why{Reason: reasonNotGranted, Name: name}); wait {
		return plan
	}
	return h.move(eventHealthTimeout, failed, func(s *Status) {
		s.LastOperation = h.failure(OperationHealthCheck, stage, codes.DeadlineExceeded, failed.String())
	})
}
