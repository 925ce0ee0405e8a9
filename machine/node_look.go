package machine

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

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
