package drain

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// DaemonSet is the kind of owner whose pods a drain leaves alone, because they would come back to
// the same node at once.
const DaemonSet = "DaemonSet"

// statefulSet is the kind of owner that makes another pod only when the last one is gone.
const statefulSet = "StatefulSet"

// Pod is what a drain needs to know of a pod that is bound to the node. Readers share pods; a
// decision does not change them.
type Pod struct {
	object.Key
	// UID identifies the pod: a new pod of an old name is another pod.
	UID string
	// Owner is the controller. Nil: no controller will replace the pod.
	Owner       *object.Owner
	Labels      map[string]string
	Annotations map[string]string
	// ToleratesCordon: the pod tolerates the taint of cordoned nodes
	// (node.kubernetes.io/unschedulable, NoSchedule), so that another of its controller may be bound
	// to this node when it goes.
	ToleratesCordon bool
	// Priority of scheduling. Pods with volumes leave in its order, the higher first. A missing
	// priority is zero.
	Priority int32
	// Finished says that all containers have ended for good.
	Finished bool
	// Mirror: the pod is the image of a static one, which only its node can remove.
	Mirror bool
	// CreatedAt is when the pod was created, by the cluster's clock, in whole seconds. Zero: not
	// known; then the drain can't see that a pod came back, and tells it to go as any other.
	CreatedAt time.Time
	// Grace is the pod's own termination grace period, or the one that it was given if it is being
	// deleted. Zero: none; a negative one counts as none.
	Grace time.Duration
	// GraceEnds is when the grace of a pod that is being deleted ends, according to its deletion
	// timestamp. Zero: it is not being deleted.
	GraceEnds time.Time
	// Claims are the names of the persistent volume claims in the pod's namespace that it uses,
	// including those of generic ephemeral volumes (EphemeralClaim). Other volumes that go with the
	// pod have none.
	Claims []string
	// Budgets are the budgets that select this pod. Not nil: the caller resolved them. Nil: the
	// drain searches Observation.Budgets for them.
	Budgets []*Budget
}

// EphemeralClaim returns the name of the persistent volume claim that Kubernetes creates for a
// generic ephemeral volume of a pod. The volume behind it is attached and detached like any other.
func EphemeralClaim(pod, volume string) string { return pod + "-" + volume }

// grace returns the pod's termination grace, never negative.
func (p *Pod) grace() time.Duration { return max(p.Grace, 0) }

// Budget is a PodDisruptionBudget of policy/v1.
type Budget struct {
	object.Key
	// Selector picks pods of the budget's namespace. Nil picks none, an empty
	// one picks all.
	Selector *object.Selector

	Generation         int64 // of the spec
	ObservedGeneration int64 // of the spec that the numbers below belong to

	DisruptionsAllowed int32 // right now
	CurrentHealthy     int32
	DesiredHealthy     int32
	ExpectedPods       int32
	Disrupted          int32 // pods whose eviction was accepted and that are not gone yet
}

// Selects reports whether the budget applies to the pod.
func (b *Budget) Selects(p *Pod) bool {
	return b != nil && b.Selector != nil && b.Namespace == p.Namespace &&
		(b.Selector.Empty() || b.Selector.Matches(p.Labels))
}

// Stale reports whether the status belongs to an older spec. Its numbers then prove nothing.
func (b *Budget) Stale() bool { return b.ObservedGeneration < b.Generation }

// Misconfigured reports whether the budget can never be met: its status is current, all expected
// pods are healthy, none is being disrupted, and still no disruption is allowed.
func (b *Budget) Misconfigured() bool {
	return !b.Stale() && b.ExpectedPods > 0 && b.CurrentHealthy >= b.ExpectedPods &&
		b.Disrupted == 0 && b.DisruptionsAllowed <= 0
}
