package machine

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// leaving tells whether somebody deletes the node of a machine. A node without
// our finalizer may be anybody's leftover and decides nothing.
func leaving(n *Node) bool { return n.Deleted() && n.HasFinalizer(NodeFinalizer) }

// sameConditions tells whether a machine has its node's conditions already.
// Times are the same if their seconds are: store and cluster may differ in
// zones and fractions.
func sameConditions(machines, nodes []object.Condition) bool {
	seen := 0
	for i := range nodes {
		n := &nodes[i]
		if ownCondition(n.Type) {
			continue
		}
		if seen == len(machines) {
			return false
		}
		m := &machines[seen]
		if m.Status != n.Status || m.Type != n.Type || m.Reason != n.Reason || m.Message != n.Message ||
			m.Since != n.Since && m.Since.Unix() != n.Since.Unix() {
			return false
		}
		seen++
	}
	return seen == len(machines)
}

// takeOver copies what a node says of itself. ConditionSpecValid and
// ConditionPaused are a machine's own and are never taken from a node.
func takeOver(s *Status, n *Node) {
	s.Conditions = object.DropCondition(object.DropCondition(n.Conditions, ConditionSpecValid), ConditionPaused)
	for i := range s.Conditions {
		s.Conditions[i].Since = s.Conditions[i].Since.Truncate(time.Second)
	}
	if len(n.Addresses) > 0 {
		s.Addresses = append([]Address(nil), n.Addresses...)
	}
}

// ownCondition tells whether a condition is never taken over from a node.
func ownCondition(typ string) bool { return typ == ConditionSpecValid || typ == ConditionPaused }

// ConditionPaused is True while a machine is left alone; its message names the
// annotation that asks for it. It is the machine's own, whatever its node says.
const ConditionPaused = "Paused"
