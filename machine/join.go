package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// join waits until the node of a Pending machine has joined, is healthy, and is ready for workload.
func (d *decider) join() Plan {
	if !d.nodeRead() {
		return d.readNode(false)
	}
	node := d.node()
	if node == nil {
		return d.awaitRegistration()
	}
	health := node.judge(d.p.nodeConditions(d.m))
	out := d.outOfSync(node)
	if out && !d.syncDone(node) {
		return d.syncNode(node)
	}
	critical := node.hasTaint(d.p.Keys.CriticalComponents)
	if health.healthy() && !critical && (!out || d.syncUndone(node)) {
		return d.joined(node)
	}
	if !sameConditions(d.m.Status.Conditions, node.Conditions) {
		return d.copyConditions(node)
	}
	why, problem := decision.Why{Reason: reasonCritical, Name: node.Name}, "its critical components are not ready"
	switch {
	case !health.healthy():
		problem = health.String()
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

// joinAvailable decides about an Available machine if there is a cluster: it was created without one, or
// another program wrote the phase. The machine is Running once its node is healthy. No deadline applies
// before that, because its VM may never join.
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

// awaitRegistration waits for a node that has not registered, and renews the token if it may expire earlier.
func (d *decider) awaitRegistration() Plan {
	if plan, found := d.renewToken(); found && d.joinTimeProlonged() {
		return plan
	}
	return d.retryTokenRenewal(d.awaitJoin(decision.Why{Reason: reasonNotJoined, Name: d.m.Spec.NodeName}, "its node has not joined"))
}

// awaitJoin waits for a node until the creation deadline. problem is the reason of the failure then.
func (d *decider) awaitJoin(why decision.Why, problem string) Plan {
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		if d.o.Node.cached() {
			return d.readNode(false)
		}
		return d.creationTimedOut(problem)
	}
	if plan, found := d.recordVMState(); found {
		return plan
	}
	why.For = deadline.Sub(d.now)
	return Plan{At: deadline, Why: why, Warn: d.foreignNode()}
}

// recordVMState stores VM state and addresses that the driver returned in this pass, if no other status
// write of the pass does.
func (d *decider) recordVMState() (Plan, bool) {
	next := d.m.Status
	d.copyVMState(&next)
	if next.LastKnown == d.m.Status.LastKnown && slices.Equal(next.Addresses, d.m.Status.Addresses) {
		return Plan{}, false
	}
	return d.setStatus(decision.Why{Reason: reasonDriverState}, d.copyVMState), true
}

// retryTokenRenewal makes a plan that ends the pass retry a failed renewal of the token soon. A token that
// does not exist is not retried.
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
	if plan, found := d.removeToken(); found {
		return plan
	}
	plan := d.move(EventJoined, decision.Why{Reason: reasonJoined, Name: node.Name}, func(s *Status) {
		s.LastOperation = d.operation(OperationCreate, StateSuccessful, StageInitialized)
		s.LastOperation.Message = "the machine joined as node " + node.Name
		if s.JoinedAfter == 0 {
			s.JoinedAfter = d.now.Sub(d.m.CreatedAt).Truncate(time.Second)
		}
		copyFromNode(s, node)
	})
	plan.Warn = d.tokenNotDeleted()
	return plan
}

// sameConditions reports whether the conditions of a machine equal those of its node, apart from the
// machine's own. Times are compared in whole seconds.
func sameConditions(ofMachine, ofNode []object.Condition) bool {
	i, j := 0, 0
	for {
		i, j = nextForeign(ofMachine, i), nextForeign(ofNode, j)
		if i == len(ofMachine) || j == len(ofNode) {
			return i == len(ofMachine) && j == len(ofNode)
		}
		m, n := &ofMachine[i], &ofNode[j]
		if m.Status != n.Status || m.Type != n.Type || m.Reason != n.Reason || m.Message != n.Message ||
			m.Since != n.Since && m.Since.Unix() != n.Since.Unix() {
			return false
		}
		i, j = i+1, j+1
	}
}

// nextForeign returns the index of the first condition from i on that is copied from a node.
func nextForeign(conditions []object.Condition, i int) int {
	for i < len(conditions) && ownCondition(conditions[i].Type) {
		i++
	}
	return i
}

// copyFromNode copies conditions and addresses of a node to a machine's status. It keeps the machine's own
// condition ConditionSpecValid.
func copyFromNode(s *Status, n *Node) {
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

// ownCondition reports whether a condition is the machine's own and never copied from a node.
func ownCondition(typ string) bool { return typ == ConditionSpecValid || typ == ConditionPaused }

// ConditionPaused is True while a machine is paused. Its message names the annotation. It is never copied
// from a node.
const ConditionPaused = "Paused"

// nodeRead reports whether the observation has the answer for the machine's current node name.
func (d *decider) nodeRead() bool {
	return d.o.Node != nil && d.o.Node.Name == d.m.Spec.NodeName
}

// readNode plans a live read of the node. gone says that the VM is gone already.
func (d *decider) readNode(gone bool) Plan {
	name := d.m.Spec.NodeName
	if name == "" {
		return Plan{Effect: FindNode{Gone: gone}, Why: decision.Why{Reason: reasonFindByName, Name: d.m.Name}}
	}
	return Plan{Effect: FindNode{Name: name, Gone: gone}, Why: decision.Why{Reason: reasonFindNode, Name: name}}
}

// node returns the machine's own node, once it was read. Nil: it does not exist, or is another machine's.
func (d *decider) node() *Node {
	if d.nodeIsForeign() {
		return nil
	}
	return d.o.Node.Node
}

// nodeIsForeign reports whether the observed node is labeled with another machine's name, or certainly
// belongs to another VM.
func (d *decider) nodeIsForeign() bool {
	return d.nodeOwner != "" && d.nodeOwner != d.m.Name || d.o.Node != nil && d.ofAnotherVM(d.o.Node.Node, d.m.Spec.ProviderID)
}

// ofAnotherVM reports whether a node certainly does not belong to the VM with this provider ID. A different
// ID proves that only if another machine has recorded it, or if the driver declares that IDs match; and
// never if it is the same ID in another spelling.
func (d *decider) ofAnotherVM(n *Node, providerID string) bool {
	if n == nil || n.ProviderID == "" || n.ProviderID == providerID || object.Alike(n.ProviderID, providerID) {
		return false
	}
	return d.o.Node.ClaimedBy != "" || d.p.ProviderIDsMatch && providerID != ""
}

// foreignNode returns a warning if the node of the machine's node name belongs to another machine or VM.
func (d *decider) foreignNode() decision.Why {
	if !d.nodeIsForeign() {
		return decision.Why{}
	}
	why := decision.Why{Reason: reasonForeignNode, Name: d.o.Node.Node.Name, Detail: d.nodeOwner}
	if d.nodeOwner == "" || d.nodeOwner == d.m.Name {
		why.Reason, why.Detail = reasonNodeOfOtherVM, d.o.Node.Node.ProviderID
	}
	return why
}

// seenNode returns the machine's own node, if it was read and exists. For a machine without a node name it
// returns nil, so that a request on the node is not followed in one pass and ignored in the next.
func (d *decider) seenNode() *Node {
	if d.o.Node == nil || d.m.Spec.NodeName == "" || !d.nodeRead() {
		return nil
	}
	return d.node()
}

// missingFromCache reports whether only a cache says that the node does not exist. That is not enough to
// delete a machine without a drain.
func (d *decider) missingFromCache() bool { return d.o.Node.cached() && d.o.Node.Node == nil }

// ownsNode reports whether a node may be drained and deleted with this machine: it is labeled with the
// machine's name, or it has no such label and is not older than the machine. A node that certainly belongs
// to another VM is never owned.
func (d *decider) ownsNode(n *Node) bool {
	if d.nodeOwner != "" {
		return !d.nodeIsForeign()
	}
	return !d.staleNode(n, d.m.Spec.ProviderID)
}

// staleNode reports whether a node only has the name of the machine's node: it certainly belongs to another
// VM than the one with this provider ID, or it is older than the machine and does not have that ID.
func (d *decider) staleNode(n *Node, providerID string) bool {
	if n.ProviderID != "" && n.ProviderID == providerID {
		return false
	}
	return d.ofAnotherVM(n, providerID) || n.CreatedAt.Before(d.m.CreatedAt)
}

// copyConditions copies the node's conditions to the machine.
func (d *decider) copyConditions(n *Node) Plan {
	return d.setStatus(decision.Why{Reason: reasonConditions, Name: n.Name}, func(status *Status) { copyFromNode(status, n) })
}
