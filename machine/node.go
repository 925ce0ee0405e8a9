package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Node is the node of a machine in the target cluster. Conditions, Capacity and Addresses are its status, the
// rest is its spec.
type Node struct {
	object.Meta
	ProviderID    string // as the node reports it; may be empty
	Unschedulable bool
	Taints        []object.Taint
	// Applied is what this library applied last. An entry that the template no longer has is removed
	// from the node only if it is in here.
	Applied Applied
	// Drain is the record of a drain of this node. Nil: there is no drain.
	Drain *DrainRecord

	Conditions []object.Condition
	Capacity   map[string]string
	Addresses  []Address
}

// Applied is the record of what this library applied to a node.
type Applied struct {
	NodeTemplate
	VirtualCapacity map[string]string
	// Generation is that of the machine whose template was applied. While the machine has the same one,
	// the template is not compared with the record. Zero: it is compared.
	Generation int64
	// Update is what an in-place update has changed on the node.
	Update UpdateMarks
	// Critical is the critical-components taint as last seen on the node. After an in-place update it is
	// added again. Zero: never seen.
	Critical object.Taint
	// Preserved is what the machine's preservation has changed on the node.
	Preserved PreservedMarks
	// Refused says why parts of the template are not on the node: the API server rejected them.
	Refused RefusedTemplate
}

// RefusedTemplate is the record of a write of a node that the API server rejected. The zero value: none was.
type RefusedTemplate struct {
	// Generation is that of the machine whose template was rejected. A change of the machine ends the
	// wait.
	Generation int64
	Code       codes.Code
	At         time.Time // whole seconds; the write is retried 10 min later
	Message    string    // the server's, at most 1,024 bytes
}

// Types of node conditions that decisions read, and the reasons of NodeTerminating.
const (
	NodeReady              = "Ready"
	NodeReadonlyFilesystem = "ReadonlyFilesystem"
	// NodeTerminating is set before a node is drained; its reason is ReasonUnhealthy or ReasonScaleDown.
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

// taint returns the first taint with that key. No taint has an empty key.
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

// hasTaint reports whether the node has a taint with that key. No taint has an empty key.
func (n *Node) hasTaint(key string) bool {
	_, has := n.taint(key)
	return has
}

// verdict is the condition that makes a node unhealthy. The zero verdict: the node is healthy.
type verdict struct {
	condition string
	status    object.ConditionStatus
}

func (v verdict) healthy() bool { return v.condition == "" }

// judge returns whether a node is healthy: Ready must be True, and the given conditions must be False or
// absent.
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

// UnresponsiveSince returns since when the node is not Ready or is read-only, the earlier of both, and false
// if it is neither.
func (n *Node) UnresponsiveSince() (since time.Time, yes bool) {
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

func (v verdict) String() string { return v.condition + " is " + string(v.status) }

// The node of a machine may be deleted by a person who wants the machine gone with it, or by a program that
// deletes all nodes by mistake. The two can't be distinguished, so the machine follows its node within the
// replacement budget (invariant P45). Until then our finalizer keeps the node, which continues to work, and
// everything else is decided as usual.

// nodeDeleting reports whether a node with our finalizer has a deletion timestamp. A node without the
// finalizer may be a leftover, and decides nothing.
func nodeDeleting(n *Node) bool { return n.Deleted() && n.HasFinalizer(NodeFinalizer) }

// nodeBeingDeleted returns the machine's node if somebody is deleting it, else nil. It returns nil for a
// machine that has no node, or that is replaced anyway.
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
	if n := d.node(); n != nil && nodeDeleting(n) && d.ownsNode(n) {
		return n
	}
	return nil
}

// followNodeDeletion deletes the machine of a node that is being deleted, once the replacement budget grants it.
func (d *decider) followNodeDeletion() (Plan, bool) {
	n := d.nodeBeingDeleted()
	if n == nil {
		return Plan{}, false
	}
	if d.o.Node.cached() {
		return d.readNode(false), true
	}
	if plan, found := d.awaitNodeDeletionGrant(n); found {
		return plan, plan.Effect != nil
	}
	return Plan{Write: &Delete{}, Why: decision.Why{Reason: ReasonNodeDeletion, Name: n.Name}}, true
}

func (d *decider) awaitNodeDeletionGrant(n *Node) (Plan, bool) {
	ask := decision.Why{Reason: reasonAskDeletedNode, Name: n.Name}
	return d.awaitGrant(AskGrant{NodeLeaves: true}, ask, decision.Why{Reason: reasonDeletedNodeRefused, Name: n.Name})
}

// retryNodeDeletionGrant makes a plan that ends the pass ask for the grant of followNodeDeletion again, and
// warn that the machine stays until then.
func (d *decider) retryNodeDeletionGrant(plan *Plan) {
	n := d.nodeBeingDeleted()
	if n == nil || plan.Write != nil || plan.Effect != nil {
		return
	}
	wait, _ := d.awaitNodeDeletionGrant(n)
	plan.Warn = wait.Warn
	*plan = lookAgainBy(*plan, wait.At)
}

// merge removes the entries of last from a copy of have, unless another program has changed their value
// since. Then it adds the entries of want.
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

// without returns a copy of taints without those that match.
func without(taints []object.Taint, match func(object.Taint) bool) []object.Taint {
	return slices.DeleteFunc(slices.Clone(taints), match)
}

// mergeTaints is merge for taints, which are identified by key and effect.
func mergeTaints(have, last, want []object.Taint) []object.Taint {
	out := slices.DeleteFunc(slices.Clone(have), func(t object.Taint) bool {
		return slices.Contains(last, t) || slices.ContainsFunc(want, t.Same)
	})
	return append(out, want...)
}
