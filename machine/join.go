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
func (c creation) join() Plan {
	if !c.looked() {
		return c.look(false)
	}
	node := c.node()
	if node == nil {
		return c.awaitRegistration()
	}
	bad := node.judge(c.p.nodeConditions(c.m))
	sync := nodeSync{c.situation, node, bad.healthy()}
	out := sync.outOfLine()
	if out && !sync.rests() {
		return sync.sync()
	}
	critical := node.hasTaint(c.p.Keys.CriticalComponents)
	if bad.healthy() && !critical && (!out || sync.undone()) {
		return c.joined(node)
	}
	if !sameConditions(c.m.Status.Conditions, node.Conditions) {
		return c.copyConditions(node)
	}
	why, problem := decision.Why{Reason: reasonCritical, Name: node.Name}, "its critical components are not ready"
	switch {
	case !bad.healthy():
		problem = bad.String()
		why = decision.Why{Reason: reasonNotHealthyYet, Name: node.Name, Detail: problem}
	case !critical:
		why = sync.notInLine()
		problem = why.String()
	}
	plan := c.awaitJoin(why, problem)
	if out {
		plan = sync.syncLater(plan)
	}
	return plan
}

// appear is about a machine that was made without a cluster, or whose phase was written by another
// program. Its node counts from when it is healthy. Until then nothing is held against the machine: its
// VM may be none that joins.
func (c creation) appear() Plan {
	if !c.looked() {
		return c.look(false)
	}
	node := c.node()
	if node == nil || !node.judge(c.p.nodeConditions(c.m)).healthy() {
		why := decision.Why{Reason: reasonAvailableAlone, Name: c.m.Spec.ProviderID}
		return hotUpdate(c).refresh(Plan{Why: why, Warn: why})
	}
	return c.joined(node)
}

// awaitRegistration waits for a node that has not registered, with a token that lasts.
func (c creation) awaitRegistration() Plan {
	bootstrap := token(c)
	if plan, busy := bootstrap.renew(); busy && bootstrap.prolonged() {
		return plan
	}
	return c.renewLater(c.awaitJoin(decision.Why{Reason: reasonNotJoined, Name: c.m.Spec.NodeName}, "its node has not joined"))
}

// awaitJoin waits for a node until the creation's time is up; problem is what
// there is to say of it then.
func (c creation) awaitJoin(why decision.Why, problem string) Plan {
	deadline := c.creationDeadline()
	if !c.now.Before(deadline) {
		if c.o.Node.cached() {
			return c.look(false)
		}
		return c.timedOut(problem)
	}
	if plan, unsaid := c.noteState(); unsaid {
		return plan
	}
	why.For = deadline.Sub(c.now)
	return Plan{At: deadline, Why: why, Warn: c.foreign()}
}

// noteState stores what drivers said in this pass where no other status write
// is about to carry it.
func (c creation) noteState() (Plan, bool) {
	said := c.m.Status
	c.noteVM(&said)
	if said.LastKnown == c.m.Status.LastKnown && slices.Equal(said.Addresses, c.m.Status.Addresses) {
		return Plan{}, false
	}
	return c.setStatus(decision.Why{Reason: reasonLastKnown}, c.noteVM), true
}

// renewLater has a plan that ends the pass try again soon where the token could
// not be prolonged. One that does not exist never can.
func (c creation) renewLater(plan Plan) Plan {
	answer := c.o.TokenEnsured
	if answer == nil || answer.Code == codes.OK || plan.At.IsZero() {
		return plan
	}
	if answer.Code != codes.NotFound {
		plan = sooner(plan, c.now.Add(nodeRetry))
	}
	plan.Warn = decision.Why{Reason: reasonTokenNotRenewed, Code: answer.Code, Detail: answer.Message}
	return plan
}

func (c creation) joined(node *Node) Plan {
	bootstrap := token(c)
	if plan, busy := bootstrap.remove(); busy {
		return plan
	}
	plan := c.move(EventJoined, decision.Why{Reason: reasonJoined, Name: node.Name}, func(s *Status) {
		s.LastOperation = c.operation(OperationCreate, StateSuccessful, StageInitialized)
		s.LastOperation.Message = "the machine joined as node " + node.Name
		if s.JoinedAfter == 0 {
			s.JoinedAfter = c.now.Sub(c.m.CreatedAt).Truncate(time.Second)
		}
		takeOver(s, node)
	})
	plan.Warn = bootstrap.left()
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

// looked reports whether the machine's node was looked for under the name it
// has now.
func (s *situation) looked() bool {
	return s.o.Node != nil && s.o.Node.Name == s.m.Spec.NodeName
}

// look plans a live read of the node; gone: after the VM went.
func (s *situation) look(gone bool) Plan {
	name := s.m.Spec.NodeName
	if name == "" {
		return Plan{Effect: FindNode{Gone: gone}, Why: decision.Why{Reason: reasonFindByName, Name: s.m.Name}}
	}
	return Plan{Effect: FindNode{Name: name, Gone: gone}, Why: decision.Why{Reason: reasonFindNode, Name: name}}
}

// node is the machine's own node, once it was looked for; nil: there is none,
// or it is another machine's.
func (s *situation) node() *Node {
	if s.isForeign() {
		return nil
	}
	return s.o.Node.Node
}

// isForeign reports whether the node carries another machine's name, or is surely that of another VM,
// though it carries this one's.
func (s *situation) isForeign() bool {
	return s.owner != "" && s.owner != s.m.Name || s.o.Node != nil && s.ofAnotherVM(s.o.Node.Node, s.m.Spec.ProviderID)
}

// ofAnotherVM reports whether a node is surely not that of the VM with this provider ID. An ID in
// another spelling proves nothing, nor does any other unless it is another machine's, or the driver
// declares that IDs match.
func (s *situation) ofAnotherVM(n *Node, providerID string) bool {
	if n == nil || n.ProviderID == "" || n.ProviderID == providerID || object.Alike(n.ProviderID, providerID) {
		return false
	}
	return s.o.Node.Of != "" || s.p.ProviderIDsMatch && providerID != ""
}

// foreign returns the warning about a node with our name that is another machine's, or another VM's.
// Zero: there is none.
func (s *situation) foreign() decision.Why {
	if !s.isForeign() {
		return decision.Why{}
	}
	why := decision.Why{Reason: reasonForeignNode, Name: s.o.Node.Node.Name, Detail: s.owner}
	if s.owner == "" || s.owner == s.m.Name {
		why.Reason, why.Detail = reasonNodeOfOtherVM, s.o.Node.Node.ProviderID
	}
	return why
}

// seenNode is the machine's own node, if it was looked for and found. A machine that names
// none has none: what is found for it one time and not the next would turn its request round.
func (s *situation) seenNode() *Node {
	if s.o.Node == nil || s.m.Spec.NodeName == "" || !s.looked() {
		return nil
	}
	return s.node()
}

// unseen reports whether a node is missing from a cache only: no machine is
// deleted undrained for that.
func (s *situation) unseen() bool { return s.o.Node.cached() && s.o.Node.Node == nil }

// ours reports whether a node may be drained and deleted with this machine: it
// carries its name, or carries none and was not there before, and is not surely another VM's.
func (s *situation) ours(n *Node) bool {
	if s.owner != "" {
		return !s.isForeign()
	}
	return !s.stale(n, s.m.Spec.ProviderID)
}

// stale reports whether a node was there before the VM with this provider ID
// and only shares its name.
func (s *situation) stale(n *Node, providerID string) bool {
	if n.ProviderID != "" && n.ProviderID == providerID {
		return false
	}
	return s.ofAnotherVM(n, providerID) || n.CreatedAt.Before(s.m.CreatedAt)
}

// copyConditions keeps the machine's conditions equal to its node's.
func (s *situation) copyConditions(n *Node) Plan {
	return s.setStatus(decision.Why{Reason: reasonConditions, Name: n.Name}, func(status *Status) { takeOver(status, n) })
}
