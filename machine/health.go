package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// watchNode decides about a machine whose node has joined before.
func (d *decider) watchNode() Plan {
	if d.o.NoCluster {
		return d.watchVM()
	}
	if !d.nodeRead() {
		return d.readNode(false)
	}
	node := d.node()
	if node == nil {
		if foreign := d.foreignNode(); foreign != (decision.Why{}) {
			return Plan{Why: foreign, Warn: foreign}
		}
		return d.nodeUnhealthy(decision.Why{Reason: reasonNodeMissing, Name: d.m.Spec.NodeName}, nil)
	}
	health := node.judge(d.p.nodeConditions(d.m))
	if plan, found := d.retractPreservedCondition(node); found {
		return plan
	}
	if plan, found := d.stepUpdate(node, health.healthy()); found {
		return plan
	}
	out := d.outOfSync(node)
	if out && !d.syncDone(node) {
		return d.syncNode(node)
	}
	plan := d.judgeNode(node, health)
	if out {
		plan = d.retrySync(node, plan)
	}
	if plan.Write == nil && plan.Effect == nil {
		if next, found := d.setPreservedCondition(node); found {
			return next
		}
		if next, found := d.recordRefused(node); found {
			return next
		}
	}
	d.retryRefused(&plan, node)
	d.retryUpdateCondition(&plan, node)
	d.retryPreservedCondition(&plan, node)
	return d.thenUpdateVM(plan)
}

// judgeNode decides by the health of the node: the machine is Running or Unknown, or its failed update is
// over.
func (d *decider) judgeNode(node *Node, health verdict) Plan {
	if !health.healthy() {
		return d.nodeUnhealthy(decision.Why{Reason: reasonNodeUnhealthy, Name: node.Name, Detail: health.String()}, node)
	}
	if d.m.Status.Phase == PhaseUnknown {
		return d.move(EventRecovered, decision.Why{Reason: reasonRejoined, Name: node.Name}, func(s *Status) {
			s.LastOperation = d.operation(OperationHealthCheck, StateSuccessful, StageNone)
			s.LastOperation.Message = "node " + node.Name + " is healthy again"
			copyFromNode(s, node)
		})
	}
	if d.m.Status.Phase == PhaseInPlaceUpdateFailed && d.updateOver(node) {
		return d.markRecovered(node)
	}
	if !sameConditions(d.m.Status.Conditions, node.Conditions) {
		return d.copyConditions(node)
	}
	if d.m.Status.Phase == PhaseInPlaceUpdateFailed {
		return d.nodeUnhealthy(decision.Why{Reason: reasonUpdateOpen, Name: node.Name}, node)
	}
	plan := Plan{Why: decision.Why{Reason: reasonHealthy, Name: node.Name}}
	if d.m.Spec.InPlace == InPlaceWaiting && d.selectionWaits(node) {
		plan.Warn = decision.Why{Reason: reasonSelectionWaits, Name: node.Name}
	}
	return plan
}

// nodeUnhealthy decides about a machine whose node is unhealthy or missing (nil), or whose in-place update
// failed (reasonUpdateOpen). A Running machine becomes Unknown, and its health timeout starts. At the end of
// the timeout the machine is marked Failed.
func (d *decider) nodeUnhealthy(why decision.Why, node *Node) Plan {
	if node == nil && d.o.Node.cached() {
		return d.readNode(false)
	}
	if d.m.Status.Phase == PhaseRunning {
		return d.move(eventUnhealthy, why, func(s *Status) {
			s.LastOperation = d.operation(OperationHealthCheck, StateProcessing, StageNone)
			s.LastOperation.Message = why.String()
			if node != nil {
				copyFromNode(s, node)
			}
		})
	}
	if node != nil && !sameConditions(d.m.Status.Conditions, node.Conditions) {
		return d.copyConditions(node)
	}
	if d.m.Spec.Config.DisableHealthTimeout {
		if why.Reason == reasonUpdateOpen {
			return Plan{Why: why}
		}
		return Plan{Why: decision.Why{Reason: reasonUnhealthyForever, Name: d.m.Spec.NodeName}}
	}
	return d.healthTimedOut(why)
}

// healthTimedOut waits for the end of the health timeout, and then marks the machine Failed, once the
// replacement budget grants it. A machine whose in-place update failed counts as unhealthy even if its node
// is healthy, because it gets no workload and is not what its owner wants.
func (d *decider) healthTimedOut(why decision.Why) Plan {
	base, timeout := d.phaseTimeout()
	at := d.verdictAt(base, timeout)
	wait := decision.Why{Reason: reasonUnhealthyWait, Name: d.m.Spec.NodeName, For: at.Sub(d.now)}
	failed, stage := decision.Why{Reason: reasonHealthTimeout, Name: d.m.Spec.NodeName, For: timeout}, StageNone
	if why.Reason == reasonUpdateOpen {
		wait.Reason, failed.Reason, stage = reasonUpdateOpen, reasonUpdateAbandoned, StageUpdateFailed
		if d.p.ReplaceFailedUpdates {
			at = base
		}
	}
	if d.now.Before(at) {
		return Plan{At: at, Why: wait}
	}
	if d.o.Node.cached() {
		return d.readNode(false)
	}
	name := d.m.Spec.NodeName
	if plan, found := d.awaitGrant(AskGrant{}, decision.Why{Reason: reasonAskGrant, Name: name}, decision.Why{Reason: reasonNotGranted, Name: name}); found {
		return plan
	}
	return d.move(eventHealthTimeout, failed, func(s *Status) {
		s.LastOperation = d.failure(OperationHealthCheck, stage, codes.DeadlineExceeded, failed.String())
	})
}

// If many machines are unhealthy at once, replacing all of them can take down a whole fleet. So the fleet may
// have a replacement budget (package safety/replacement). A decision about one machine only asks for a grant,
// and marks no machine Failed for its health without one.

// grantRetry is how long to wait before a refused grant is asked for again.
const grantRetry = 30 * time.Second

// awaitGrant asks the replacement budget for a grant, and finds a plan until there is one. why is the reason
// of a plan that asks, and refused that of a plan that waits. Without a budget it finds no plan.
func (d *decider) awaitGrant(ask AskGrant, why, refused decision.Why) (Plan, bool) {
	if !d.o.Budgeted {
		return Plan{}, false
	}
	grant := d.o.Grant
	switch {
	case grant == nil:
		return Plan{Effect: ask, Why: why}, true
	case grant.Allowed && (grant.Until.IsZero() || d.now.Before(grant.Until)):
		return Plan{}, false
	}
	refused.Detail = grant.Detail
	if grant.Allowed {
		refused.Detail = "the grant has lapsed"
	}
	return Plan{At: d.now.Add(grantRetry), Why: refused, Warn: refused}, true
}

// In a cluster, the health of the node shows that a VM is gone or broken. Without a cluster the caller lists
// the VMs, and the observation says if the list lacks the machine's VM or reports it as unhealthy. The list
// only raises the question: GetMachineStatus decides.

// vmRetry is how long to wait before the driver is asked again for the VM of an Unknown machine.
const vmRetry = time.Minute

// watchVM decides about a machine without a cluster that has run before.
func (d *decider) watchVM() Plan {
	if plan, found := d.checkVMLost(); found {
		return plan
	}
	if plan, found := d.checkVMHealth(); found {
		return plan
	}
	why := decision.Why{Reason: reasonHealthy, Name: d.m.Spec.NodeName}
	if d.m.Status.Phase == PhaseAvailable {
		why = decision.Why{Reason: reasonAvailable, Name: d.m.Spec.ProviderID}
	}
	return d.thenUpdateVM(Plan{Why: why})
}

// judgedByVM reports whether the machine is judged by its VM now. A preserved machine is not.
func (d *decider) judgedByVM() bool {
	_, mayBeLost := phases.Next(string(d.m.Status.Phase), eventLost)
	return mayBeLost && d.o.NoCluster && d.m.Spec.ProviderID != "" && d.o.Class != nil && !d.preserved()
}

// checkVMLost marks a machine Failed whose VM is gone. It finds no plan if the VM was listed, or if the
// driver finds it or can't tell.
func (d *decider) checkVMLost() (Plan, bool) {
	missing, vm := d.o.Missing, d.o.VM
	if missing == nil || !d.judgedByVM() {
		return Plan{}, false
	}
	ask := Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskMissing, Name: d.m.Spec.ProviderID}}
	switch {
	case vm != nil && vm.Code != codes.NotFound:
		return Plan{}, false
	case vm == nil && !missing.NotFound:
		return ask, true
	}
	why := decision.Why{Reason: reasonLost, Name: d.m.Spec.ProviderID, For: d.now.Sub(missing.Since)}
	if plan, found := d.awaitGrant(AskGrant{}, decision.Why{Reason: reasonAskGrantLost, Name: why.Name}, decision.Why{Reason: reasonLostNotGranted, Name: why.Name}); found {
		return plan, true
	}
	if vm == nil {
		return ask, true
	}
	return d.move(eventLost, why, func(s *Status) {
		s.LastOperation = d.failure(OperationHealthCheck, StageNone, codes.NotFound, why.String())
	}), true
}

// checkVMHealth decides about a machine whose VM exists and is, or was, unhealthy. As with an unhealthy node,
// the machine becomes Unknown, and its health timeout starts. It finds no plan if no problem is reported.
func (d *decider) checkVMHealth() (Plan, bool) {
	id, vm, unknown := d.m.Spec.ProviderID, d.o.VM, d.m.Status.Phase == PhaseUnknown
	switch {
	case !d.judgedByVM() || !unknown && !d.o.VMUnhealthy:
		return Plan{}, false
	case vm == nil:
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskUnhealthy, Name: id}}, true
	case vm.Code == codes.OK && vm.Unhealthy != "":
		return d.vmUnhealthy(decision.Why{Reason: reasonVMUnhealthy, Name: id, Detail: vm.Unhealthy}), true
	case !unknown:
		return Plan{}, false
	case vm.Code != codes.OK: // an outage of the provider proves nothing, nor does a single NOT_FOUND
		return Plan{At: d.now.Add(vmRetry), Why: decision.Why{Reason: reasonVMNotTold, Name: id, Code: vm.Code}}, true
	}
	why := decision.Why{Reason: reasonVMWell, Name: id}
	return d.move(eventAvailable, why, func(s *Status) {
		s.LastOperation = d.operation(OperationHealthCheck, StateSuccessful, StageNone)
		s.LastOperation.Message = why.String()
	}), true
}

// vmUnhealthy starts the health timeout of a machine whose VM is unhealthy, and marks the machine Failed at
// the end, once the replacement budget grants it.
func (d *decider) vmUnhealthy(why decision.Why) Plan {
	if d.m.Status.Phase != PhaseUnknown {
		return d.move(eventUnhealthy, why, func(s *Status) {
			s.LastOperation = d.operation(OperationHealthCheck, StateProcessing, StageNone)
			s.LastOperation.Message = why.String()
		})
	}
	again := d.now.Add(vmRetry)
	if d.m.Spec.Config.DisableHealthTimeout {
		return Plan{At: again, Why: decision.Why{Reason: reasonVMUnhealthyForever, Name: why.Name, Detail: why.Detail}}
	}
	base, timeout := d.phaseTimeout()
	if at := d.verdictAt(base, timeout); d.now.Before(at) {
		wait := decision.Why{Reason: reasonVMUnhealthyWait, Name: why.Name, Detail: why.Detail, For: at.Sub(d.now)}
		if again.Before(at) {
			at = again
		}
		return Plan{At: at, Why: wait}
	}
	ask, refused := decision.Why{Reason: reasonAskGrantVM, Name: why.Name}, decision.Why{Reason: reasonVMNotGranted, Name: why.Name}
	if plan, found := d.awaitGrant(AskGrant{}, ask, refused); found {
		return plan
	}
	failed := decision.Why{Reason: reasonVMTimeout, Name: why.Name, Detail: why.Detail, For: timeout}
	return d.move(eventHealthTimeout, failed, func(s *Status) {
		s.LastOperation = d.failure(OperationHealthCheck, StageNone, codes.DeadlineExceeded, failed.String())
	})
}
