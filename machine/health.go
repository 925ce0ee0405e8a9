package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// join looks after a Pending machine whose VM is there, until its node is
// healthy and ready for workload.
func (d *decider) join() Plan {
	if !d.looked() {
		return d.look(false)
	}
	node := d.node()
	if node == nil {
		return d.awaitRegistration()
	}
	if leaving(node) {
		return d.followDeletion(node)
	}
	bad := node.judge(d.p.nodeConditions(d.m))
	out := d.outOfLine(node, bad.healthy())
	if out && d.o.NodeSynced == nil {
		return d.sync(node, bad.healthy())
	}
	critical := node.hasTaint(d.p.Keys.CriticalComponents)
	if bad.healthy() && !critical && (!out || d.undone(node)) {
		return d.joined(node)
	}
	if !sameConditions(d.m.Status.Conditions, node.Conditions) {
		return d.copyConditions(node)
	}
	why, problem := decision.Why{Reason: reasonCritical, Name: node.Name}, "its critical components are not ready"
	switch {
	case !bad.healthy():
		problem = bad.String()
		why = decision.Why{Reason: reasonNotHealthyYet, Name: node.Name, Detail: problem}
	case !critical:
		why = d.notInLine(node)
		problem = why.String()
	}
	plan := d.awaitJoin(why, problem)
	if out {
		plan = d.syncLater(plan, node)
	}
	return plan
}

// awaitJoin waits for a node until the creation's time is up; problem is what
// there is to say of it then.
func (d *decider) awaitJoin(why decision.Why, problem string) Plan {
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		if d.o.Node.cached() {
			return d.look(false)
		}
		return d.timedOut(problem)
	}
	if plan, unsaid := d.noteState(); unsaid {
		return plan
	}
	why.For = deadline.Sub(d.now)
	return Plan{At: deadline, Why: why, Warn: d.foreign()}
}

// noteState stores what drivers said in this pass where no other status write
// is about to carry it.
func (d *decider) noteState() (Plan, bool) {
	said := d.m.Status
	d.noteVM(&said)
	if said.LastKnown == d.m.Status.LastKnown && slices.Equal(said.Addresses, d.m.Status.Addresses) {
		return Plan{}, false
	}
	return d.setStatus(decision.Why{Reason: reasonLastKnown}, d.noteVM), true
}

func (d *decider) joined(node *Node) Plan {
	if plan, busy := d.removeToken(); busy {
		return plan
	}
	plan := d.move(EventJoined, decision.Why{Reason: reasonJoined, Name: node.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationCreate, StateSuccessful, StageInitialized)
		s.LastOperation.Message = "the machine joined as node " + node.Name
		s.JoinedAfter = d.now.Sub(d.m.CreatedAt).Truncate(time.Second)
		takeOver(s, node)
	})
	plan.Warn = d.tokenLeft()
	return plan
}

// watch looks after a machine that has joined once.
func (d *decider) watch() Plan {
	if d.o.NoCluster {
		return d.watchVM()
	}
	if !d.looked() {
		return d.look(false)
	}
	node := d.node()
	if node == nil {
		if foreign := d.foreign(); foreign != (decision.Why{}) {
			return Plan{Why: foreign, Warn: foreign}
		}
		return d.unwell(decision.Why{Reason: reasonNodeMissing, Name: d.m.Spec.NodeName}, nil)
	}
	if leaving(node) {
		return d.followDeletion(node)
	}
	bad := node.judge(d.p.nodeConditions(d.m))
	if plan, busy := d.retractPreserved(node); busy {
		return plan
	}
	if plan, busy := d.updateStep(node, bad.healthy()); busy {
		return plan
	}
	out := d.outOfLine(node, false)
	if out && d.o.NodeSynced == nil {
		return d.sync(node, false)
	}
	plan := d.judged(node, bad)
	if out {
		plan = d.syncLater(plan, node)
	}
	if plan.Write == nil && plan.Effect == nil {
		if tell, busy := d.tellPreserved(node); busy {
			return tell
		}
	}
	return d.refresh(d.tellPreservedLater(d.tellLater(plan, node), node))
}

// settled tells whether a machine runs and all is as it should be. It is the
// way through keep and watch that ends without anything to do, taken first
// because a fleet spends its time there; a test holds both ways to each other.
func (d *decider) settled() bool {
	m := d.m
	if m.Deleted() || m.Status.Phase != PhaseRunning || d.o.Frozen || d.o.NoCluster || !d.looked() || !d.hasSpec() {
		return false
	}
	n := d.o.Node.Node
	return n != nil && d.undisturbed(n) && m.HasFinalizer(Finalizer) && m.invalidField() == nil &&
		sameConditions(m.Status.Conditions, n.Conditions) &&
		n.judge(d.p.nodeConditions(m)).healthy() && !d.outOfLine(n, false) // nor another machine's
}

// undisturbed tells whether nothing is done with a machine and its node: no
// update, no deletion, and neither is kept for inspection.
func (d *decider) undisturbed(n *Node) bool {
	return d.m.Spec.InPlace == InPlaceNone && n.Applied.Update.none() && d.ordinary(n) && !n.Deleted() && !d.misleads(n)
}

// judged passes the verdict on a machine with a node.
func (d *decider) judged(node *Node, bad verdict) Plan {
	if !bad.healthy() {
		return d.unwell(decision.Why{Reason: reasonNodeUnhealthy, Name: node.Name, Detail: bad.String()}, node)
	}
	if d.m.Status.Phase == PhaseUnknown {
		return d.move(EventRecovered, decision.Why{Reason: reasonRejoined, Name: node.Name}, func(s *Status) {
			s.LastOperation = d.operation(OperationHealthCheck, StateSuccessful, StageNone)
			s.LastOperation.Message = "node " + node.Name + " is healthy again"
			takeOver(s, node)
		})
	}
	if d.m.Status.Phase == PhaseInPlaceUpdateFailed && d.over(node) {
		return d.forgive(node)
	}
	if !sameConditions(d.m.Status.Conditions, node.Conditions) {
		return d.copyConditions(node)
	}
	if d.m.Status.Phase == PhaseInPlaceUpdateFailed {
		return d.unwell(decision.Why{Reason: reasonUpdateOpen, Name: node.Name}, node)
	}
	return Plan{Why: decision.Why{Reason: reasonHealthy, Name: node.Name}}
}

// unwell starts the health clock of a machine, or lets it run out. node is nil
// where it is missing.
func (d *decider) unwell(why decision.Why, node *Node) Plan {
	if node == nil && d.o.Node.cached() {
		return d.look(false)
	}
	if d.m.Status.Phase == PhaseRunning {
		return d.move(EventUnhealthy, why, func(s *Status) {
			s.LastOperation = d.operation(OperationHealthCheck, StateProcessing, StageNone)
			s.LastOperation.Message = why.String()
			if node != nil {
				takeOver(s, node)
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
	return d.outOfTime(why)
}

// outOfTime gives a machine up whose health timeout has passed. The one of a
// failed update counts as unhealthy even with a healthy node: it is not what
// its owner wants, gets no workload, and nobody has made it good.
func (d *decider) outOfTime(why decision.Why) Plan {
	timeout := d.p.healthTimeout(d.m)
	at := d.verdictAt(d.m.Status.Since, timeout)
	wait := decision.Why{Reason: reasonUnhealthyWait, Name: d.m.Spec.NodeName, For: at.Sub(d.now)}
	failed, stage := decision.Why{Reason: reasonHealthTimeout, Name: d.m.Spec.NodeName, For: timeout}, StageNone
	if why.Reason == reasonUpdateOpen {
		wait.Reason, failed.Reason, stage = reasonUpdateOpen, reasonUpdateAbandoned, StageUpdateFailed
	}
	if d.now.Before(at) {
		return Plan{At: at, Why: wait}
	}
	if d.o.Node.cached() {
		return d.look(false)
	}
	name := d.m.Spec.NodeName
	if plan, wait := d.awaitGrant(decision.Why{Reason: reasonAskGrant, Name: name}, decision.Why{Reason: reasonNotGranted, Name: name}); wait {
		return plan
	}
	return d.move(EventHealthTimeout, failed, func(s *Status) {
		s.LastOperation = d.failure(OperationHealthCheck, stage, codes.DeadlineExceeded, failed.String())
	})
}

// looked tells whether the machine's node was looked for under the name it
// has by now.
func (d *decider) looked() bool {
	return d.o.Node != nil && d.o.Node.Name == d.m.Spec.NodeName
}

// look plans a live read of the node; gone: after the VM went.
func (d *decider) look(gone bool) Plan {
	name := d.m.Spec.NodeName
	if name == "" {
		return Plan{Effect: FindNode{Gone: gone}, Why: decision.Why{Reason: reasonFindByName, Name: d.m.Name}}
	}
	return Plan{Effect: FindNode{name, gone}, Why: decision.Why{Reason: reasonFindNode, Name: name}}
}

// node is the machine's own node, once it was looked for; nil: there is none,
// or it is another machine's.
func (d *decider) node() *Node {
	if d.isForeign() {
		return nil
	}
	return d.o.Node.Node
}

// isForeign tells whether the node carries another machine's name.
func (d *decider) isForeign() bool { return d.owner != "" && d.owner != d.m.Name }

// foreign is the warning about a node of our name that is another machine's.
func (d *decider) foreign() decision.Why {
	if !d.isForeign() {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonForeignNode, Name: d.o.Node.Node.Name, Detail: d.owner}
}

// followDeletion deletes the machine of a node that somebody deletes.
func (d *decider) followDeletion(n *Node) Plan {
	return Plan{Write: &Delete{}, Why: decision.Why{Reason: reasonNodeDeletion, Name: n.Name}}
}

// copyConditions keeps the machine's conditions equal to its node's.
func (d *decider) copyConditions(n *Node) Plan {
	return d.setStatus(decision.Why{Reason: reasonConditions, Name: n.Name}, func(status *Status) { takeOver(status, n) })
}
