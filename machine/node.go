package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Node is a machine as the target cluster sees it. Metadata, taints and what
// follows them are its spec; Conditions, Capacity and Addresses its status.
type Node struct {
	object.Meta
	ProviderID    string // as the node itself says; may be empty
	Unschedulable bool
	Taints        []object.Taint
	// Applied is what this library applied last, so that what the owner has
	// removed since can be told from what others have added.
	Applied Applied
	// Drain is the record of a drain of this node. Nil: it is not drained.
	Drain *DrainRecord

	Conditions []object.Condition
	Capacity   map[string]string
	Addresses  []Address
}

// Applied is a record of what this library put on a node.
type Applied struct {
	NodeTemplate
	VirtualCapacity map[string]string
	// Generation of the machine whose template this is. While it is the
	// machine's, the template can't have changed and need not be compared.
	// Zero: not known; it is compared.
	Generation int64
	// Update is what an in-place update has put on the node.
	Update UpdateMarks
	// Critical is the critical-components taint as it was last seen on the
	// node; after an in-place update it is put on again. Zero: never seen.
	Critical object.Taint
	// Preserved is what the machine's preservation has put on the node.
	Preserved PreservedMarks
	// Refused says what of the template the API server has refused, so that it is not on the node.
	Refused RefusedTemplate
}

// RefusedTemplate is the record of a write of a node that the API server refused. The zero value:
// nothing was refused.
type RefusedTemplate struct {
	// Generation of the machine whose template was refused. The write is tried again when the
	// machine has another.
	Generation int64
	Code       codes.Code
	At         time.Time // whole seconds; it is tried again 10 min later
	Message    string    // the server's, at most 1,024 bytes
}

// Condition types of a node that decisions look at.
const (
	NodeReady              = "Ready"
	NodeReadonlyFilesystem = "ReadonlyFilesystem"
	// NodeTerminating is set before a node is drained; its reason is one of
	// ReasonUnhealthy and ReasonScaleDown.
	NodeTerminating = "Terminating"
	ReasonUnhealthy = "Unhealthy"
	ReasonScaleDown = "ScaleDown"
)

// Clone implements object.Object.
func (n *Node) Clone() *Node {
	c := &Node{Meta: n.CloneMeta(), ProviderID: n.ProviderID, Unschedulable: n.Unschedulable}
	c.Taints = slices.Clone(n.Taints)
	c.Applied = n.Applied
	c.Applied.NodeTemplate = n.Applied.Clone()
	c.Applied.VirtualCapacity = maps.Clone(n.Applied.VirtualCapacity)
	c.Drain = n.Drain.Clone()
	c.CopyStatus(n)
	return c
}

// CopyStatus implements object.Object.
func (n *Node) CopyStatus(from *Node) {
	n.Conditions = slices.Clone(from.Conditions)
	n.Capacity = maps.Clone(from.Capacity)
	n.Addresses = slices.Clone(from.Addresses)
}

// SpecEqual implements object.Object.
func (n *Node) SpecEqual(o *Node) bool {
	return n.ProviderID == o.ProviderID && n.Unschedulable == o.Unschedulable &&
		slices.Equal(n.Taints, o.Taints) && n.Applied.Equal(&o.Applied.NodeTemplate) &&
		n.Applied.Generation == o.Applied.Generation && n.Applied.Critical == o.Applied.Critical &&
		n.Applied.Refused == o.Applied.Refused &&
		n.Applied.Update.equal(&o.Applied.Update) && n.Applied.Preserved.equal(&o.Applied.Preserved) && n.Drain.Equal(o.Drain) &&
		maps.Equal(n.Applied.VirtualCapacity, o.Applied.VirtualCapacity)
}

// taint returns the first taint of that key; an empty key is on none.
func (n *Node) taint(key string) (object.Taint, bool) {
	if key == "" {
		return object.Taint{}, false
	}
	for i := range n.Taints {
		if n.Taints[i].Key == key {
			return n.Taints[i], true
		}
	}
	return object.Taint{}, false
}

// hasTaint reports whether a taint of that key is on the node; an empty key is on none.
func (n *Node) hasTaint(key string) bool {
	_, has := n.taint(key)
	return has
}

// unresponsiveSince returns since when the node has been not Ready or
// read-only, the earlier if both, and false if it is neither.
func (n *Node) unresponsiveSince() (since time.Time, yes bool) {
	for i := range n.Conditions {
		c := &n.Conditions[i]
		bad := c.Type == NodeReady && c.Status != object.True ||
			c.Type == NodeReadonlyFilesystem && c.Status == object.True
		if bad && (!yes || c.Since.Before(since)) {
			since, yes = c.Since, true
		}
	}
	return since, yes
}

// verdict says why a node counts as unhealthy; the zero verdict: it is healthy.
type verdict struct {
	condition string
	status    object.ConditionStatus
}

func (v verdict) healthy() bool { return v.condition == "" }

// judge looks at Ready, which must be True, and at each condition of the list,
// which must be absent or False.
func (n *Node) judge(conditions []string) verdict {
	ready := object.FindCondition(n.Conditions, NodeReady)
	if ready == nil {
		return verdict{NodeReady, object.Unknown}
	}
	if ready.Status != object.True {
		return verdict{NodeReady, ready.Status}
	}
	for i := range n.Conditions {
		c := &n.Conditions[i]
		if c.Status != object.False && slices.Contains(conditions, c.Type) {
			return verdict{c.Type, c.Status}
		}
	}
	return verdict{}
}

// UnresponsiveSince returns since when the node has been not Ready or
// read-only, the earlier if both, and false if it is neither.
func (n *Node) UnresponsiveSince() (since time.Time, yes bool) { return n.unresponsiveSince() }

func (v verdict) String() string { return v.condition + " is " + string(v.status) }

// Somebody may delete the node of a machine: a person, who wants the machine gone with it, or a
// program that is mistaken, and then it may delete all nodes at once. Which it is can't be seen, so
// the machine follows its node within the budget of replacements (P45). Until then our finalizer
// keeps the node, which does its work, and everything else is decided as before.

// leaving reports whether a node with our finalizer has a deletion timestamp. One without the
// finalizer may be a leftover, and decides nothing.
func leaving(n *Node) bool { return n.Deleted() && n.HasFinalizer(NodeFinalizer) }

// nodeBeingDeleted returns the machine's node if somebody deletes it, else nil. The node of a machine
// that has none yet, or that is to be replaced anyway, decides nothing.
func (d *decider) nodeBeingDeleted() *Node {
	switch d.m.Status.Phase {
	case PhasePending, PhaseRunning, PhaseUnknown, PhaseInPlaceUpdating, PhaseInPlaceUpdateSuccessful, PhaseInPlaceUpdateFailed:
	case PhaseFailed:
		if !d.preserved() {
			return nil
		}
	default:
		return nil
	}
	if d.o.NoCluster || d.m.Spec.ProviderID == "" || !d.nodeRead() {
		return nil
	}
	if n := d.node(); n != nil && leaving(n) && d.ownsNode(n) {
		return n
	}
	return nil
}

// followNodeDeletion deletes the machine of a node that others delete, once the budget of replacements
// allows it. Busy is false if it does not, and for any other machine.
func (d *decider) followNodeDeletion() (Plan, bool) {
	n := d.nodeBeingDeleted()
	if n == nil {
		return Plan{}, false
	}
	if d.o.Node.cached() {
		return d.readNode(false), true
	}
	if plan, busy := d.awaitNodeDeletionGrant(n); busy {
		return plan, plan.Effect != nil
	}
	return Plan{Write: &Delete{}, Why: decision.Why{Reason: ReasonNodeDeletion, Name: n.Name}}, true
}

func (d *decider) awaitNodeDeletionGrant(n *Node) (Plan, bool) {
	ask := decision.Why{Reason: reasonAskLeave, Name: n.Name}
	return d.awaitGrant(AskGrant{NodeLeaves: true}, ask, decision.Why{Reason: reasonLeaveRefused, Name: n.Name})
}

// retryNodeDeletionGrant has a plan that ends the pass ask again for the machine of a node that others delete,
// and say that it stays.
func (d *decider) retryNodeDeletionGrant(plan Plan) Plan {
	n := d.nodeBeingDeleted()
	if n == nil || plan.Write != nil || plan.Effect != nil {
		return plan
	}
	held, _ := d.awaitNodeDeletionGrant(n)
	plan.Warn = held.Warn
	return lookAgainBy(plan, held.At)
}

// merge removes from have what was applied last and is not wanted any more, unless
// another program has changed the value since. Then it adds what is wanted.
func merge(have, last, want map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = make(map[string]string, len(want))
	}
	for k, v := range last {
		if out[k] == v {
			delete(out, k)
		}
	}
	maps.Copy(out, want)
	return out
}

// without is a copy of taints without those that match.
func without(taints []object.Taint, match func(object.Taint) bool) []object.Taint {
	return slices.DeleteFunc(slices.Clone(taints), match)
}

// mergeTaints is merge for taints, which key and effect identify.
func mergeTaints(have, last, want []object.Taint) []object.Taint {
	out := slices.DeleteFunc(slices.Clone(have), func(t object.Taint) bool {
		return slices.Contains(last, t) || slices.ContainsFunc(want, t.Same)
	})
	return append(out, want...)
}
