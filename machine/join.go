package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// join decides about a Pending machine whose VM is there, until its node is
// healthy and ready for workload.
func (d *decider) join() Plan {
	if !d.nodeRead() {
		return d.readNode(false)
	}
	node := d.node()
	if node == nil {
		return d.awaitRegistration()
	}
	bad := node.judge(d.p.nodeConditions(d.m))
	out := d.outOfSync(node)
	if out && !d.syncDone(node) {
		return d.syncNode(node)
	}
	critical := node.hasTaint(d.p.Keys.CriticalComponents)
	if bad.healthy() && !critical && (!out || d.syncUndone(node)) {
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
		why = d.whyOutOfSync(node)
		problem = why.String()
	}
	plan := d.awaitJoin(why, problem)
	if out {
		plan = d.retrySync(node, plan)
	}
	return plan
}

// joinAvailable is about a machine that was made without a cluster, or whose phase was written by another
// program. Its node counts from when it is healthy. Until then nothing is held against the machine: its
// VM may be none that joins.
func (d *decider) joinAvailable() Plan {
	if !d.nodeRead() {
		return d.readNode(false)
	}
	node := d.node()
	if node == nil || !node.judge(d.p.nodeConditions(d.m)).healthy() {
		why := decision.Why{Reason: reasonAvailableAlone, Name: d.m.Spec.ProviderID}
		return d.thenUpdateVM(Plan{Why: why, Warn: why})
	}
	return d.joined(node)
}

// awaitRegistration waits for a node that has not registered, with a token that lasts.
func (d *decider) awaitRegistration() Plan {
	if plan, busy := d.renewToken(); busy && d.joinTimeProlonged() {
		return plan
	}
	return d.retryTokenRenewal(d.awaitJoin(decision.Why{Reason: reasonNotJoined, Name: d.m.Spec.NodeName}, "its node has not joined"))
}

// awaitJoin waits for a node until the creation's time is up; problem is what
// there is to say of it then.
func (d *decider) awaitJoin(why decision.Why, problem string) Plan {
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		if d.o.Node.cached() {
			return d.readNode(false)
		}
		return d.creationTimedOut(problem)
	}
	if plan, busy := d.recordVMState(); busy {
		return plan
	}
	why.For = deadline.Sub(d.now)
	return Plan{At: deadline, Why: why, Warn: d.foreignNode()}
}

// recordVMState stores what drivers said in this pass where no other status write
// is about to carry it.
func (d *decider) recordVMState() (Plan, bool) {
	said := d.m.Status
	d.copyVMState(&said)
	if said.LastKnown == d.m.Status.LastKnown && slices.Equal(said.Addresses, d.m.Status.Addresses) {
		return Plan{}, false
	}
	return d.setStatus(decision.Why{Reason: reasonLastKnown}, d.copyVMState), true
}

// retryTokenRenewal has a plan that ends the pass try again soon where the token could
// not be prolonged. One that does not exist never can.
func (d *decider) retryTokenRenewal(plan Plan) Plan {
	answer := d.o.TokenEnsured
	if answer == nil || answer.Code == codes.OK || plan.At.IsZero() {
		return plan
	}
	if answer.Code != codes.NotFound {
		plan = lookAgainBy(plan, d.now.Add(nodeRetry))
	}
	plan.Warn = decision.Why{Reason: reasonTokenNotRenewed, Code: answer.Code, Detail: answer.Message}
	return plan
}

func (d *decider) joined(node *Node) Plan {
	if plan, busy := d.removeToken(); busy {
		return plan
	}
	plan := d.move(EventJoined, decision.Why{Reason: reasonJoined, Name: node.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationCreate, StateSuccessful, StageInitialized)
		s.LastOperation.Message = "the machine joined as node " + node.Name
		if s.JoinedAfter == 0 {
			s.JoinedAfter = d.now.Sub(d.m.CreatedAt).Truncate(time.Second)
		}
		takeOver(s, node)
	})
	plan.Warn = d.tokenNotDeleted()
	return plan
}

// sameConditions reports whether a machine has its node's conditions already.
// Times are the same if their seconds are: store and cluster may differ in
// zones and fractions.
func sameConditions(machines, nodes []object.Condition) bool {
	i, j := 0, 0
	for {
		i, j = nextForeign(machines, i), nextForeign(nodes, j)
		if i == len(machines) || j == len(nodes) {
			return i == len(machines) && j == len(nodes)
		}
		m, n := &machines[i], &nodes[j]
		if m.Status != n.Status || m.Type != n.Type || m.Reason != n.Reason || m.Message != n.Message ||
			m.Since != n.Since && m.Since.Unix() != n.Since.Unix() {
			return false
		}
		i, j = i+1, j+1
	}
}

// nextForeign returns the index of the first condition from i on that is a node's.
func nextForeign(conditions []object.Condition, i int) int {
	for i < len(conditions) && ownCondition(conditions[i].Type) {
		i++
	}
	return i
}

// takeOver copies what a node says of itself. ConditionSpecValid and
// ConditionPaused are a machine's own and are never taken from a node.
func takeOver(s *Status, n *Node) {
	invalid := object.FindCondition(s.Conditions, ConditionSpecValid)
	s.Conditions = object.DropCondition(object.DropCondition(n.Conditions, ConditionSpecValid), ConditionPaused)
	for i := range s.Conditions {
		s.Conditions[i].Since = s.Conditions[i].Since.Truncate(time.Second)
	}
	if invalid != nil {
		s.Conditions = object.SetCondition(s.Conditions, *invalid)
	}
	if len(n.Addresses) > 0 {
		s.Addresses = append([]Address(nil), n.Addresses...)
	}
}

// ownCondition reports whether a condition is never taken over from a node.
func ownCondition(typ string) bool { return typ == ConditionSpecValid || typ == ConditionPaused }

// ConditionPaused is True while a machine is left alone; its message names the
// annotation that asks for it. It is the machine's own: conditions of its node never replace it.
const ConditionPaused = "Paused"

// nodeRead reports whether the machine's node was looked for under the name it
// has now.
func (d *decider) nodeRead() bool {
	return d.o.Node != nil && d.o.Node.Name == d.m.Spec.NodeName
}

// readNode plans a live read of the node; gone: after the VM went.
func (d *decider) readNode(gone bool) Plan {
	name := d.m.Spec.NodeName
	if name == "" {
		return Plan{Effect: FindNode{Gone: gone}, Why: decision.Why{Reason: reasonFindByName, Name: d.m.Name}}
	}
	return Plan{Effect: FindNode{Name: name, Gone: gone}, Why: decision.Why{Reason: reasonFindNode, Name: name}}
}

// node is the machine's own node, once it was looked for; nil: there is none,
// or it is another machine's.
func (d *decider) node() *Node {
	if d.nodeIsForeign() {
		return nil
	}
	return d.o.Node.Node
}

// nodeIsForeign reports whether the node carries another machine's name, or is surely that of another VM,
// though it carries this one's.
func (d *decider) nodeIsForeign() bool {
	return d.owner != "" && d.owner != d.m.Name || d.o.Node != nil && d.ofAnotherVM(d.o.Node.Node, d.m.Spec.ProviderID)
}

// ofAnotherVM reports whether a node is surely not that of the VM with this provider ID. An ID in
// another spelling proves nothing, nor does any other unless it is another machine's, or the driver
// declares that IDs match.
func (d *decider) ofAnotherVM(n *Node, providerID string) bool {
	if n == nil || n.ProviderID == "" || n.ProviderID == providerID || object.Alike(n.ProviderID, providerID) {
		return false
	}
	return d.o.Node.Of != "" || d.p.ProviderIDsMatch && providerID != ""
}

// foreignNode returns the warning about a node with our name that is another machine's, or another VM's.
// Zero: there is none.
func (d *decider) foreignNode() decision.Why {
	if !d.nodeIsForeign() {
		return decision.Why{}
	}
	why := decision.Why{Reason: reasonForeignNode, Name: d.o.Node.Node.Name, Detail: d.owner}
	if d.owner == "" || d.owner == d.m.Name {
		why.Reason, why.Detail = reasonNodeOfOtherVM, d.o.Node.Node.ProviderID
	}
	return why
}

// seenNode is the machine's own node, if it was looked for and found. A machine that names
// none has none: what is found for it one time and not the next would turn its request round.
func (d *decider) seenNode() *Node {
	if d.o.Node == nil || d.m.Spec.NodeName == "" || !d.nodeRead() {
		return nil
	}
	return d.node()
}

// missingFromCache reports whether a node is missing from a cache only: no machine is
// deleted undrained for that.
func (d *decider) missingFromCache() bool { return d.o.Node.cached() && d.o.Node.Node == nil }

// ownsNode reports whether a node may be drained and deleted with this machine: it
// carries its name, or carries none and was not there before, and is not surely another VM's.
func (d *decider) ownsNode(n *Node) bool {
	if d.owner != "" {
		return !d.nodeIsForeign()
	}
	return !d.staleNode(n, d.m.Spec.ProviderID)
}

// staleNode reports whether a node was there before the VM with this provider ID
// and only shares its name.
func (d *decider) staleNode(n *Node, providerID string) bool {
	if n.ProviderID != "" && n.ProviderID == providerID {
		return false
	}
	return d.ofAnotherVM(n, providerID) || n.CreatedAt.Before(d.m.CreatedAt)
}

// copyConditions keeps the machine's conditions equal to its node's.
func (d *decider) copyConditions(n *Node) Plan {
	return d.setStatus(decision.Why{Reason: reasonConditions, Name: n.Name}, func(status *Status) { takeOver(status, n) })
}
