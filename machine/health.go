package machine

import (
	"time"

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
	return h.m.Spec.InPlace == InPlaceNone && n.Applied.Update.none() && nodePreservation{h.situation, n}.ordinary() && !n.Deleted() && !nodeUpdate{h.situation, n}.hasStaleMarks()
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
		return update.markRecovered()
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

// A machine that has been unhealthy for too long is marked failed, and replaced.
// Where many are unhealthy at a time that can take a whole fleet down, so its
// owner may set a budget of replacements. The budget is kept elsewhere (package
// safety): a machine cannot see the others. What is decided here is when it is
// asked for, and that no machine is marked failed without it.

// grantRetry is after how long a verdict that was refused is asked for again.
const grantRetry = 30 * time.Second

// awaitGrant holds a verdict back until the budget of replacements allows it: ask is
// asked for the reason why, refused says what becomes of it while that is refused. Without a
// budget nothing is held back.
func (h health) awaitGrant(ask AskGrant, why, refused decision.Why) (Plan, bool) {
	if !h.o.Budgeted {
		return Plan{}, false
	}
	grant := h.o.Grant
	switch {
	case grant == nil:
		return Plan{Effect: ask, Why: why}, true
	case grant.Allowed && (grant.Until.IsZero() || h.now.Before(grant.Until)):
		return Plan{}, false
	}
	refused.Detail = grant.Detail
	if grant.Allowed {
		refused.Detail = "the grant has lapsed"
	}
	return Plan{At: h.now.Add(grantRetry), Why: refused, Warn: refused}, true
}

// Where there is a cluster the health of its node says that a machine's VM is
// gone, or does not work. Without one nothing would: so the listing of VMs
// (package safety) says which machines have none in the lists, or one that is
// unhealthy, and here the driver is asked for each. A list only raises the
// question. The answer of GetMachineStatus settles it.

// vmRetry is after how long the driver is asked again for the VM of a machine that is Unknown.
const vmRetry = time.Minute

// watchVM decides about a machine that is up, or was, and has no cluster.
func (h health) watchVM() Plan {
	if plan, busy := h.lost(); busy {
		return plan
	}
	if plan, busy := h.ill(); busy {
		return plan
	}
	why := decision.Why{Reason: reasonHealthy, Name: h.m.Spec.NodeName}
	if h.m.Status.Phase == PhaseAvailable {
		why = decision.Why{Reason: reasonAvailable, Name: h.m.Spec.ProviderID}
	}
	return hotUpdate(h).refresh(Plan{Why: why})
}

// rests reports whether the health of a machine rests on what the driver says of its VM.
func (h health) rests() bool {
	_, lost := phases.Next(string(h.m.Status.Phase), eventLost)
	return lost && h.o.NoCluster && h.m.Spec.ProviderID != "" && h.o.Class != nil && !h.preserved()
}

// lost marks a machine failed whose VM is gone. False: it is not missing, the driver
// knows it, or the driver can't tell.
func (h health) lost() (Plan, bool) {
	missing, vm := h.o.Missing, h.o.VM
	if missing == nil || !h.rests() {
		return Plan{}, false
	}
	ask := Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskMissing, Name: h.m.Spec.ProviderID}}
	switch {
	case vm != nil && vm.Code != codes.NotFound:
		return Plan{}, false
	case vm == nil && !missing.NotFound:
		return ask, true
	}
	why := decision.Why{Reason: reasonLost, Name: h.m.Spec.ProviderID, For: h.now.Sub(missing.Since)}
	if plan, wait := h.awaitGrant(AskGrant{}, decision.Why{Reason: reasonAskGrantLost, Name: why.Name}, decision.Why{Reason: reasonLostNotGranted, Name: why.Name}); wait {
		return plan, true
	}
	if vm == nil {
		return ask, true
	}
	return h.move(eventLost, why, func(s *Status) {
		s.LastOperation = h.failure(OperationHealthCheck, StageNone, codes.NotFound, why.String())
	}), true
}

// ill decides about a machine whose VM is there and does not work, or did not: like one with a node
// that is unhealthy, it becomes Unknown, and its health timeout starts. False: nothing is known of
// that.
func (h health) ill() (Plan, bool) {
	id, vm, unknown := h.m.Spec.ProviderID, h.o.VM, h.m.Status.Phase == PhaseUnknown
	switch {
	case !h.rests() || !unknown && !h.o.VMUnhealthy:
		return Plan{}, false
	case vm == nil:
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskUnhealthy, Name: id}}, true
	case vm.Code == codes.OK && vm.Unhealthy != "":
		return h.vmUnhealthy(decision.Why{Reason: reasonVMUnhealthy, Name: id, Detail: vm.Unhealthy}), true
	case !unknown:
		return Plan{}, false
	case vm.Code != codes.OK: // an outage of the provider is no answer, and one NOT_FOUND is not enough
		return Plan{At: h.now.Add(vmRetry), Why: decision.Why{Reason: reasonVMNotTold, Name: id, Code: vm.Code}}, true
	}
	why := decision.Why{Reason: reasonVMWell, Name: id}
	return h.move(eventAvailable, why, func(s *Status) {
		s.LastOperation = h.operation(OperationHealthCheck, StateSuccessful, StageNone)
		s.LastOperation.Message = why.String()
	}), true
}

// vmUnhealthy starts the health timeout of a machine whose VM does not work, and marks the machine
// failed when that has passed.
func (h health) vmUnhealthy(why decision.Why) Plan {
	if h.m.Status.Phase != PhaseUnknown {
		return h.move(eventUnhealthy, why, func(s *Status) {
			s.LastOperation = h.operation(OperationHealthCheck, StateProcessing, StageNone)
			s.LastOperation.Message = why.String()
		})
	}
	again := h.now.Add(vmRetry)
	if h.m.Spec.Config.DisableHealthTimeout {
		return Plan{At: again, Why: decision.Why{Reason: reasonVMUnhealthyForever, Name: why.Name, Detail: why.Detail}}
	}
	timeout := h.p.healthTimeout(h.m)
	if at := h.verdictAt(h.m.Status.Since, timeout); h.now.Before(at) {
		wait := decision.Why{Reason: reasonVMUnhealthyWait, Name: why.Name, Detail: why.Detail, For: at.Sub(h.now)}
		if again.Before(at) {
			at = again
		}
		return Plan{At: at, Why: wait}
	}
	ask, refused := decision.Why{Reason: reasonAskGrantVM, Name: why.Name}, decision.Why{Reason: reasonVMNotGranted, Name: why.Name}
	if plan, wait := h.awaitGrant(AskGrant{}, ask, refused); wait {
		return plan
	}
	failed := decision.Why{Reason: reasonVMTimeout, Name: why.Name, Detail: why.Detail, For: timeout}
	return h.move(eventHealthTimeout, failed, func(s *Status) {
		s.LastOperation = h.failure(OperationHealthCheck, StageNone, codes.DeadlineExceeded, failed.String())
	})
}
