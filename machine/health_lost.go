package machine

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// Where there is a cluster the health of its node says that a machine's VM is
// gone. Without one nothing would: so the listing of VMs (package safety) says
// which machines have none in the lists, and here the driver is asked for each.
// A list only raises the question. The answer NOT_FOUND settles it.

// watchVM decides about a machine that has joined once and has no cluster any more.
func (h health) watchVM() Plan {
	if h.m.Status.Phase == PhaseRunning {
		if plan, busy := h.lost(); busy {
			return plan
		}
	}
	return hotUpdate(h).refresh(Plan{Why: decision.Why{Reason: reasonHealthy, Name: h.m.Spec.NodeName}})
}

// lost marks a machine failed whose VM is gone. False: it is not missing, the driver
// knows it, or the driver can't tell.
func (h health) lost() (Plan, bool) {
	missing, vm := h.o.Missing, h.o.VM
	if missing == nil || !h.o.NoCluster || h.m.Spec.ProviderID == "" || h.o.Class == nil || h.preserved() {
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
