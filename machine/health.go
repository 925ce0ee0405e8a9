package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// nodeRetry is how long after a failed write of a node the next is made.
const nodeRetry = 5 * time.Second

// join looks after a Pending machine whose VM is there, until its node is
// healthy and ready for workload.
func (d *decision) join() Plan {
	node, plan, busy := d.node()
	if busy {
		return plan
	}
	deadline := d.creationDeadline()
	why := Why{Reason: ReasonNotJoined, Name: d.m.Spec.NodeName}
	if node != nil {
		if plan, done := d.followDeletion(node); done {
			return plan
		}
		bad := node.judge(d.p.nodeConditions(d.m))
		if plan, busy := d.sync(node, bad.healthy()); busy {
			return plan
		}
		critical := node.hasTaint(d.p.Keys.CriticalComponents)
		if bad.healthy() && !critical {
			return d.joined(node)
		}
		if plan, changed := d.copyConditions(node); changed {
			return plan
		}
		why = Why{Reason: ReasonCritical, Name: node.Name}
		if !bad.healthy() {
			why = Why{Reason: ReasonNotHealthyYet, Name: node.Name, Detail: bad.String()}
		}
	}
	if !d.now.Before(deadline) {
		return d.timedOut(why.String())
	}
	if plan, unsaid := d.noteState(); unsaid {
		return plan
	}
	why.For = deadline.Sub(d.now)
	return Plan{At: deadline, Why: why, Warn: d.foreign()}
}

// noteState stores what drivers said in this pass where no other status write
// is about to carry it.
func (d *decision) noteState() (Plan, bool) {
	said := d.m.Status
	d.noteVM(&said)
	if said.LastKnown == d.m.Status.LastKnown && slices.Equal(said.Addresses, d.m.Status.Addresses) {
		return Plan{}, false
	}
	return d.setStatus(Why{Reason: ReasonLastKnown}, d.noteVM), true
}

func (d *decision) joined(node *Node) Plan {
	return d.move(EventJoined, Why{Reason: ReasonJoined, Name: node.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationCreate, StateSuccessful, StageInitialized)
		s.LastOperation.Message = "the machine joined as node " + node.Name
		s.JoinedAfter = d.now.Sub(d.m.CreatedAt).Truncate(time.Second)
		d.takeOver(s, node)
	})
}

// watch looks after a machine that has joined once.
func (d *decision) watch() Plan {
	if d.o.NoCluster {
		return Plan{Why: Why{Reason: ReasonHealthy, Name: d.m.Spec.NodeName}}
	}
	node, plan, busy := d.node()
	if busy {
		return plan
	}
	if node == nil {
		if foreign := d.foreign(); foreign != (Why{}) {
			return Plan{Why: foreign, Warn: foreign}
		}
		return d.unwell(Why{Reason: ReasonNodeMissing, Name: d.m.Spec.NodeName}, nil)
	}
	if plan, done := d.followDeletion(node); done {
		return plan
	}
	if plan, busy := d.sync(node, false); busy {
		return plan
	}
	if bad := node.judge(d.p.nodeConditions(d.m)); !bad.healthy() {
		return d.unwell(Why{Reason: ReasonNodeUnhealthy, Name: node.Name, Detail: bad.String()}, node)
	}
	if d.m.Status.Phase == PhaseUnknown {
		return d.move(EventRecovered, Why{Reason: ReasonRejoined, Name: node.Name}, func(s *Status) {
			s.LastOperation = d.operation(OperationHealthCheck, StateSuccessful, StageNone)
			s.LastOperation.Message = "node " + node.Name + " is healthy again"
			d.takeOver(s, node)
		})
	}
	if plan, changed := d.copyConditions(node); changed {
		return plan
	}
	return Plan{Why: Why{Reason: ReasonHealthy, Name: node.Name}}
}

// unwell starts the health clock of a machine, or lets it run out. node is nil
// where it is missing.
func (d *decision) unwell(why Why, node *Node) Plan {
	if d.m.Status.Phase == PhaseRunning {
		return d.move(EventUnhealthy, why, func(s *Status) {
			s.LastOperation = d.operation(OperationHealthCheck, StateProcessing, StageNone)
			s.LastOperation.Message = why.String()
			if node != nil {
				d.takeOver(s, node)
			}
		})
	}
	if node != nil {
		if plan, changed := d.copyConditions(node); changed {
			return plan
		}
	}
	if d.m.Spec.Config.DisableHealthTimeout {
		return Plan{Why: Why{Reason: ReasonUnhealthyForever, Name: d.m.Spec.NodeName}}
	}
	timeout := d.p.healthTimeout(d.m)
	at := d.after(d.m.Status.Since, timeout)
	if d.now.Before(at) {
		return Plan{At: at, Why: Why{Reason: ReasonUnhealthyWait, Name: d.m.Spec.NodeName, For: at.Sub(d.now)}}
	}
	failed := Why{Reason: ReasonHealthTimeout, Name: d.m.Spec.NodeName, For: timeout}
	return d.move(EventHealthTimeout, failed, func(s *Status) {
		s.LastOperation = d.failure(OperationHealthCheck, StageNone, codes.DeadlineExceeded, failed.String())
	})
}

// node is the machine's own node; nil: there is none, or it is another
// machine's. busy: the plan has to be carried out first.
func (d *decision) node() (node *Node, plan Plan, busy bool) {
	name := d.m.Spec.NodeName
	if d.o.Node == nil || d.o.Node.Name != name {
		return nil, Plan{Effect: FindNode{name}, Why: Why{Reason: ReasonFindNode, Name: name}}, true
	}
	n := d.o.Node.Node
	if n == nil || d.foreignTo(n) {
		return nil, Plan{}, false
	}
	return n, Plan{}, false
}

// foreignTo tells whether a node carries another machine's name.
func (d *decision) foreignTo(n *Node) bool {
	owner := n.Labels[d.p.Keys.NodeMachine]
	return owner != "" && owner != d.m.Name
}

// foreign is the warning about a node of our name that is another machine's.
func (d *decision) foreign() Why {
	if d.o.Node == nil || d.o.Node.Node == nil || !d.foreignTo(d.o.Node.Node) {
		return Why{}
	}
	n := d.o.Node.Node
	return Why{Reason: ReasonForeignNode, Name: n.Name, Detail: n.Labels[d.p.Keys.NodeMachine]}
}

// followDeletion deletes the machine of a node that somebody deletes. A node
// without our finalizer may be anybody's leftover and decides nothing.
func (d *decision) followDeletion(n *Node) (Plan, bool) {
	if !n.Deleted() || !n.HasFinalizer(Finalizer) {
		return Plan{}, false
	}
	return Plan{Write: &Delete{}, Why: Why{Reason: ReasonNodeDeletion, Name: n.Name}}, true
}

// copyConditions keeps the machine's conditions equal to its node's.
func (d *decision) copyConditions(n *Node) (Plan, bool) {
	if slices.Equal(d.m.Status.Conditions, n.Conditions) {
		return Plan{}, false
	}
	return d.setStatus(Why{Reason: ReasonConditions, Name: n.Name}, func(s *Status) { d.takeOver(s, n) }), true
}

// takeOver copies what a node says of itself.
func (d *decision) takeOver(s *Status, n *Node) {
	s.Conditions = append([]object.Condition(nil), n.Conditions...)
	if len(n.Addresses) > 0 {
		s.Addresses = append([]Address(nil), n.Addresses...)
	}
}

func (v verdict) String() string { return v.condition + " is " + string(v.status) }
