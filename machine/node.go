package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
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
