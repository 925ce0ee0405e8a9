package machinepool

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// The node of an instance is found by its provider ID. A cluster may spell it otherwise than the
// provider does, or learn it late. An instance without a known node does not count as empty while there
// is a node that may be its own.

// controlPlane are labels of nodes of a control plane. Instances are workers, so none is such a node.
var controlPlane = [...]string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// MatchNodes finds nodes that carry the ID of an instance in another spelling. The map nodes has, by an
// instance's ID, the node with exactly that ID. The slice free has the nodes without a known owner.
//
// It adds a free node to nodes if its ID is alike (object.Alike) to that of one instance only, and if
// that instance has no node and no other free node is alike to it. It returns the other free nodes,
// except those of a control plane. Any instance without a node may have one of them: see
// Observation.Unmatched.
func MatchNodes(ids []string, nodes map[string]*machine.Node, free []*machine.Node) []*machine.Node {
	var instances object.Spellings
	for _, id := range ids {
		instances.Add(id)
	}
	alike := make(map[string]int) // free nodes, by the instance that they are alike to
	for _, n := range free {
		for _, id := range instances.Alike(n.ProviderID) {
			alike[id]++
		}
	}
	var rest []*machine.Node
	for _, n := range free {
		switch of := instances.Alike(n.ProviderID); {
		case len(of) == 1 && alike[of[0]] == 1 && nodes[of[0]] == nil:
			nodes[of[0]] = n
		case !slices.ContainsFunc(controlPlane[:], func(label string) bool { _, is := n.Labels[label]; return is }):
			rest = append(rest, n)
		}
	}
	return rest
}

// node returns the node of an instance. Nil: it has none, or none is known.
func (d *state) node(id string) *machine.Node {
	n := d.o.Nodes[id]
	if n == nil || n.ProviderID != id && !object.Alike(n.ProviderID, id) {
		return nil
	}
	return n
}

// nodeless reports whether an instance certainly has no node: none is known, and no unmatched node may be
// its own.
func (d *state) nodeless(id string) bool {
	return d.o.Nodes != nil && d.o.Nodes[id] == nil && len(d.o.Unmatched) == 0
}

// unmatchedIDs are the provider IDs of the nodes without a known owner.
type unmatchedIDs struct {
	unset bool // a node has no provider ID yet
	ids   object.Spellings
}

func (d *state) unmatchedIDs() (all unmatchedIDs) {
	for _, n := range d.o.Unmatched {
		all.ids.Add(n.ProviderID)
		all.unset = all.unset || n.ProviderID == ""
	}
	return all
}

// unsure reports whether an instance without a known node may have one of the nodes without a known
// owner.
func (d *state) unsure(id string, free *unmatchedIDs) bool {
	return d.o.Nodes[id] == nil && (free.unset || len(free.ids.Alike(id)) > 0)
}

// recordUnmatched records if nodes were found by another spelling only, or if no node was found for an
// instance that may have one. It returns a warning if that is new, and allocates nothing if there is
// nothing to record.
func (d *state) recordUnmatched(next *Status) decision.Why {
	if d.o.Nodes == nil && !d.o.NoCluster {
		return decision.Why{}
	}
	have, why := object.FindCondition(next.Conditions, ConditionNodesUnmatched), d.unmatchedWhy()
	switch {
	case why == decision.Why{}:
		if have != nil {
			next.Conditions = object.DropCondition(next.Conditions, ConditionNodesUnmatched)
		}
		return why
	case have != nil && have.Status == object.True && have.Message == why.String():
		return decision.Why{}
	}
	known := have != nil && have.Reason == why.Reason.String()
	next.Conditions = object.SetCondition(next.Conditions, object.Condition{
		Type: ConditionNodesUnmatched, Status: object.True, Reason: why.Reason.String(), Message: why.String(), Since: d.stamp(),
	})
	if known {
		return decision.Why{}
	}
	return why
}

// unmatchedWhy returns a warning about nodes that are not found by their instances' IDs. Zero: none.
func (d *state) unmatchedWhy() decision.Why {
	all := int64(len(d.s.Spec.ProviderIDs))
	unknown := decision.Why{Reason: reasonNodeUnknown, All: all, For: d.p.DrainTimeout}
	spelled := decision.Why{Reason: reasonNodesSpelled, All: all}
	free := d.unmatchedIDs()
	for _, id := range d.s.Spec.ProviderIDs {
		switch n := d.node(id); {
		case n != nil && n.ProviderID != id:
			spelled.Count++
			if spelled.Name == "" {
				spelled.Name, spelled.Detail = id, n.ProviderID
			}
		case n == nil && len(d.o.Unmatched) > 0 && (d.unsure(id, &free) || contains(d.s.Status.Leaving, id)):
			unknown.Count++
			if unknown.Name == "" {
				unknown.Name, unknown.Detail = id, d.o.Unmatched[0].Name
			}
		}
	}
	switch {
	case unknown.Count > 0:
		return unknown
	case spelled.Count > 0:
		return spelled
	}
	return decision.Why{}
}

// heldFor is how long no further instance is chosen after the provider has replaced one that was
// removed. Each attempt costs a drain and a machine.
const heldFor = time.Hour

// holdScaleDown records that the provider undoes a scale-down: it removed instances, kept the size and
// created others. Without that, one instance after the other would be drained and replaced without end.
func (d *state) holdScaleDown() (Plan, bool) {
	if !d.scaleDownUndone() || d.scaleDownHeld() {
		return Plan{}, false
	}
	why := d.whyHeld()
	c := object.Condition{
		Type: ConditionScaleDownHeld, Status: object.True, Reason: why.Reason.String(), Message: why.String(), Since: d.stamp(),
	}
	plan := d.setStatus(why, func(s *Status) {
		s.Conditions = object.SetCondition(object.DropCondition(s.Conditions, c.Type), c)
	})
	plan.Warn = why
	return plan, true
}

// scaleDownUndone reports whether DeleteInstances has succeeded for the wanted size, but the group has as
// many instances as before, with a new one in place of a removed one. A group that had the wanted size in
// between is larger for another reason.
func (d *state) scaleDownUndone() bool {
	op, known := &d.s.Status.LastOperation, d.s.Spec.ProviderIDs
	if !d.found() || op.Call != DeleteInstances || op.State != machine.StateSuccessful || op.Replicas != d.wanted() {
		return false
	}
	if d.surplus() == 0 || len(known) <= int(d.wanted()) || int(d.notGoing()) < len(known) {
		return false
	}
	return slices.ContainsFunc(d.instances, func(i Instance) bool { return !i.Terminating && !slices.Contains(known, i.ProviderID) })
}

// scaleDownHeld reports whether the recorded hold is for the size wanted now, and not over yet.
func (d *state) scaleDownHeld() bool {
	c := object.FindCondition(d.s.Status.Conditions, ConditionScaleDownHeld)
	return c != nil && c.Status == object.True && c.Message == d.whyHeld().String() &&
		!c.Since.After(d.now) && d.now.Before(c.Since.Add(heldFor))
}

func (d *state) whyHeld() decision.Why {
	return decision.Why{Reason: reasonHeld, All: int64(d.wanted()), For: heldFor}
}

// recordHeld removes the condition of a hold that is over: its time has passed, another size is wanted,
// or there is no surplus.
func (d *state) recordHeld(next *Status) {
	if object.FindCondition(next.Conditions, ConditionScaleDownHeld) == nil || !d.found() || d.surplus() > 0 && d.scaleDownHeld() {
		return
	}
	next.Conditions = object.DropCondition(next.Conditions, ConditionScaleDownHeld)
}
