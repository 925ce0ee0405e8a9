package machine

import "github.com/millwright-go/millwright/decision"

// takeBack brings a machine whose update is done back into service, once its
// owner has taken it over: what the update has put on the node comes off, and
// when the node is healthy and its critical components are ready, the machine
// runs. Until its owner does so it waits, for as long as that takes.
func (d *decider) takeBack() Plan {
	name := d.m.Spec.NodeName
	if d.o.NoCluster {
		if d.m.Spec.InPlace != InPlaceNone {
			return Plan{Why: decision.Why{Reason: reasonAwaitOwner, Name: name}}
		}
		return d.returned(name, nil)
	}
	if !d.looked() {
		return d.look(false)
	}
	n := d.node()
	if n != nil && leaving(n) {
		return d.followDeletion(n)
	}
	if d.m.Spec.InPlace != InPlaceNone {
		return Plan{Why: decision.Why{Reason: reasonAwaitOwner, Name: name}, Warn: d.foreign()}
	}
	if d.o.Node.cached() {
		return d.look(false)
	}
	ill := decision.Why{Reason: reasonNodeMissing, Name: name}
	if n != nil {
		bad := n.judge(d.p.nodeConditions(d.m))
		if bad.healthy() {
			return d.backInService(n)
		}
		ill = decision.Why{Reason: reasonNodeUnhealthy, Name: n.Name, Detail: bad.String()}
	}
	return d.awaitRecovery(n, ill)
}

// backInService lets workload back to a healthy node. For its critical
// components it waits for as long as they take: the machine counts as not
// available meanwhile, and is seen to.
func (d *decider) backInService(n *Node) Plan {
	if plan, busy := d.adjust(n, ReasonUpdateSuccessful); busy {
		return plan
	}
	if n.hasTaint(d.p.Keys.CriticalComponents) {
		return Plan{Why: decision.Why{Reason: reasonReturnCritical, Name: n.Name}}
	}
	return d.returned(n.Name, n)
}

func (d *decider) returned(name string, n *Node) Plan {
	op := d.operation(OperationInPlaceUpdate, StateSuccessful, StageInService)
	op.Message = "node " + name + " is updated and in service"
	plan := d.advance(EventReturned, StageUpdateSuccessful, EventReturned, decision.Why{Reason: reasonReturned, Name: name}, op)
	return d.settleStatus(d.noteAgent(plan), n)
}

// awaitRecovery waits for an updated node to become healthy, for as long as a
// machine may be unhealthy; then its health is judged as any other's. n is nil
// where it is missing.
func (d *decider) awaitRecovery(n *Node, ill decision.Why) Plan {
	timeout := d.p.healthTimeout(d.m)
	at := d.verdictAt(d.m.Status.Since, timeout)
	forever := d.m.Spec.Config.DisableHealthTimeout
	if !forever && !d.now.Before(at) {
		op := d.operation(OperationHealthCheck, StateProcessing, StageNone)
		op.Message = ill.String()
		return d.settleStatus(d.noteAgent(d.advance(EventUnhealthy, StageUpdateSuccessful, EventUnhealthy, ill, op)), n)
	}
	if n != nil {
		if plan, busy := d.adjust(n, ReasonUpdateSuccessful); busy {
			if forever {
				return plan
			}
			return within(plan, at)
		}
	}
	if forever {
		return Plan{Why: decision.Why{Reason: reasonUnhealthyForever, Name: d.m.Spec.NodeName}, Warn: d.foreign()}
	}
	detail := ill.String()
	return Plan{At: at, Why: decision.Why{Reason: reasonReturning, Name: d.m.Spec.NodeName, Detail: detail, For: at.Sub(d.now)}, Warn: d.foreign()}
}

// settleStatus lets what the node says of itself ride on a write of the status.
func (d *decider) settleStatus(plan Plan, n *Node) Plan {
	if status, ok := plan.Write.(*UpdateStatus); ok && n != nil {
		takeOver(&status.Status, n)
	}
	return plan
}
