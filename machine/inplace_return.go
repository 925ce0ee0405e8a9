package machine

import "github.com/millwright-go/millwright/decision"

// finish returns a machine to service whose update is done and whose owner has taken
// it over. It removes what the update has put on the node. When the node is healthy
// and its critical components are ready, the machine runs. Until the owner has taken
// it over, the machine waits, without a limit.
func (u inPlace) finish() Plan {
	name := u.m.Spec.NodeName
	if u.o.NoCluster {
		if u.m.Spec.InPlace != InPlaceNone {
			return Plan{Why: decision.Why{Reason: reasonAwaitOwner, Name: name}}
		}
		return u.returned(name)
	}
	if !u.looked() {
		return u.look(false)
	}
	u.n = u.node()
	if u.m.Spec.InPlace != InPlaceNone {
		return Plan{Why: decision.Why{Reason: reasonAwaitOwner, Name: name}, Warn: u.foreign()}
	}
	if u.o.Node.cached() {
		return u.look(false)
	}
	ill := decision.Why{Reason: reasonNodeMissing, Name: name}
	if u.n != nil {
		bad := u.n.judge(u.p.nodeConditions(u.m))
		if bad.healthy() {
			return u.backInService()
		}
		ill = decision.Why{Reason: reasonNodeUnhealthy, Name: u.n.Name, Detail: bad.String()}
	}
	return u.awaitRecovery(ill)
}

// backInService lets workload back to a healthy node. For its critical
// components it waits for as long as they take: the machine counts as not
// available meanwhile, and is seen to.
func (u inPlace) backInService() Plan {
	if plan, busy := u.adjust(ReasonUpdateSuccessful); busy {
		return plan
	}
	if u.n.hasTaint(u.p.Keys.CriticalComponents) {
		return Plan{Why: decision.Why{Reason: reasonReturnCritical, Name: u.n.Name}}
	}
	return u.returned(u.n.Name)
}

func (u inPlace) returned(name string) Plan {
	op := u.operation(OperationInPlaceUpdate, StateSuccessful, StageInService)
	op.Message = "node " + name + " is updated and in service"
	plan := u.advance(eventReturned, StageUpdateSuccessful, eventReturned, decision.Why{Reason: reasonReturned, Name: name}, op)
	return u.settleStatus(hotUpdate{u.situation}.noteAgent(plan))
}

// awaitRecovery waits for an updated node to become healthy, for as long as a
// machine may be unhealthy; then its health is judged as any other's. n is nil
// where it is missing.
func (u inPlace) awaitRecovery(ill decision.Why) Plan {
	timeout := u.p.healthTimeout(u.m)
	at := u.verdictAt(u.m.Status.Since, timeout)
	forever := u.m.Spec.Config.DisableHealthTimeout
	if !forever && !u.now.Before(at) {
		op := u.operation(OperationHealthCheck, StateProcessing, StageNone)
		op.Message = ill.String()
		return u.settleStatus(hotUpdate{u.situation}.noteAgent(u.advance(eventUnhealthy, StageUpdateSuccessful, eventUnhealthy, ill, op)))
	}
	if u.n != nil {
		if plan, busy := u.adjust(ReasonUpdateSuccessful); busy {
			if forever {
				return plan
			}
			return within(plan, at)
		}
	}
	if forever {
		return Plan{Why: decision.Why{Reason: reasonUnhealthyForever, Name: u.m.Spec.NodeName}, Warn: u.foreign()}
	}
	detail := ill.String()
	return Plan{At: at, Why: decision.Why{Reason: reasonReturning, Name: u.m.Spec.NodeName, Detail: detail, For: at.Sub(u.now)}, Warn: u.foreign()}
}
