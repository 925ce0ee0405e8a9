package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

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
