package machine

import "github.com/millwright-go/millwright/decision"

// tell has the node say whether its machine is kept. false: it says
// so, or that was tried in this pass.
func (k preservation) tell(n *Node) (Plan, bool) {
	c, say := nodePreservation{k.situation, n}.condition()
	mark := &MarkNode{n, c}
	if !say || k.o.NodeMarked != nil || !k.heldUntil(n, mark.change()).IsZero() {
		return Plan{}, false
	}
	return Plan{Effect: mark, Why: decision.Why{Reason: reasonTellPreserved, Name: n.Name, Detail: string(c.Status)}}, true
}

// retract is tell of a machine that is not kept any more. It
// comes first, so that one write takes all the rest off the node.
func (k preservation) retract(n *Node) (Plan, bool) {
	if k.preserved() {
		return Plan{}, false
	}
	return k.tell(n)
}

// tellLater has a plan that ends the pass look again soon at a node
// that still does not say what it was to say.
func (k preservation) tellLater(plan Plan, n *Node) Plan {
	c, say := nodePreservation{k.situation, n}.condition()
	if plan.Write != nil || plan.Effect != nil || !say {
		return plan
	}
	change := (&MarkNode{n, c}).change()
	switch until := k.heldUntil(n, change); {
	case k.o.NodeMarked != nil:
		plan = within(plan, k.now.Add(nodeRetry))
		plan.Warn = decision.Why{Reason: reasonPreserveUntold, Name: n.Name, Code: k.o.NodeMarked.Code, Detail: k.o.NodeMarked.Message}
	case !until.IsZero():
		plan = within(plan, until)
		plan.Warn = decision.Why{Reason: reasonSyncUndone, Name: n.Name, Detail: change.What}
	}
	return plan
}
