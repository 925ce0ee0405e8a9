package machine

import "github.com/millwright-go/millwright/decision"

// Somebody may delete the node of a machine: a person, who wants the machine gone with it, or a
// program that is mistaken, and then it may delete all nodes at once. Which it is can't be seen, so
// the machine follows its node within the budget of replacements (P45). Until then our finalizer
// keeps the node, which does its work, and everything else is decided as before.

// leaving reports whether somebody deletes the node of a machine. A node without
// our finalizer may be anybody's leftover and decides nothing.
func leaving(n *Node) bool { return n.Deleted() && n.HasFinalizer(NodeFinalizer) }

// leavingNode returns the machine's node if somebody deletes it, else nil. The node of a machine
// that has none yet, or that is to be replaced anyway, decides nothing.
func (d decider) leavingNode() *Node {
	switch d.m.Status.Phase {
	case PhasePending, PhaseRunning, PhaseUnknown, PhaseInPlaceUpdating, PhaseInPlaceUpdateSuccessful, PhaseInPlaceUpdateFailed:
	case PhaseFailed:
		if !d.preserved() {
			return nil
		}
	default:
		return nil
	}
	if d.o.NoCluster || d.m.Spec.ProviderID == "" || !d.looked() {
		return nil
	}
	if n := d.node(); n != nil && leaving(n) && d.ours(n) {
		return n
	}
	return nil
}

// followDeletion deletes the machine of a node that others delete, once the budget of replacements
// allows it. Busy is false if it does not, and for any other machine.
func (d decider) followDeletion() (Plan, bool) {
	n := d.leavingNode()
	if n == nil {
		return Plan{}, false
	}
	if d.o.Node.cached() {
		return d.look(false), true
	}
	if plan, wait := d.awaitLeave(n); wait {
		return plan, plan.Effect != nil
	}
	return Plan{Write: &Delete{}, Why: decision.Why{Reason: ReasonNodeDeletion, Name: n.Name}}, true
}

func (d decider) awaitLeave(n *Node) (Plan, bool) {
	ask := decision.Why{Reason: reasonAskLeave, Name: n.Name}
	return health(d).awaitGrant(AskGrant{NodeLeaves: true}, ask, decision.Why{Reason: reasonLeaveRefused, Name: n.Name})
}

// stayLater has a plan that ends the pass ask again for the machine of a node that others delete,
// and say that it stays.
func (d decider) stayLater(plan Plan) Plan {
	n := d.leavingNode()
	if n == nil || plan.Write != nil || plan.Effect != nil {
		return plan
	}
	held, _ := d.awaitLeave(n)
	plan.Warn = held.Warn
	return sooner(plan, held.At)
}
