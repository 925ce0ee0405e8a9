package drain

import (
	"strings"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Observation is the input of a decision about the drain of one node. The caller fills it from
// its caches at the beginning of a pass. A decision changes nothing in it.
type Observation struct {
	// Node is the node to be drained. Nil: the caller looked for it, and there is none. The caller must make
	// sure that it is not another machine's.
	Node *machine.Node
	// Cached: Node came from a cache, which may lack the latest record of the drain. False: it was read
	// live, or written in this pass.
	Cached bool
	// Pods are those bound to the node, in any order.
	Pods []*Pod
	// PodsCached: Pods came from a cache, and can be read live. A pod that was bound just before
	// the cordon may be missing. A drain ends on a live list.
	PodsCached bool
	// Budgets are at least those of the pods' namespaces. They are not needed if all pods have resolved
	// budgets.
	Budgets []*Budget
	// Volumes are at least those bound to the pods' claims.
	Volumes []*Volume
	// Attachments are those of the volumes to any node. Nil: the cluster has no such
	// objects; empty: there is none.
	Attachments []*Attachment
	// Attached are the volumes that the node's own status lists as attached. Nil: not known. Empty:
	// there are none.
	Attached []string
	// Known are the provider's IDs of volumes (GetVolumeIDs). Nil: they are not known. The drain does
	// not wait for volumes that the provider does not know.
	Known []string
	// Complete: all caches were filled at least once, so that no object of the above is missing. False:
	// objects may be missing.
	Complete bool

	// Asked is when this drain was requested; for Detach, when its stage began. The caller
	// persists it. A record on the node from before that time belongs to an earlier drain. Zero: any
	// record belongs to this drain, and Detach has no deadline.
	Asked time.Time
	// Deadline is when the drain ends in any case. The caller persists it, or computes it from
	// persisted times. Zero: Policy.Timeout after the drain's start.
	Deadline time.Time
	// MaxEvictRetries replaces Policy.MaxEvictRetries for this drain. Zero or less: the policy's
	// applies.
	MaxEvictRetries int
	// Forced: force is due.
	Forced bool
	// Stays: the node's VM is not to be deleted, so the node never gets the out-of-service taint.
	Stays bool

	// Memory is what this process remembers of this node. Nil: the zero Memory.
	Memory *Memory
	// WriteFailed: a write of an earlier plan of this pass was not stored, for a reason other than
	// a conflict. Force continues without it.
	WriteFailed bool
}

// DaemonSet is the kind of owner whose pods a drain leaves alone, because they would come back to the same node
// at once. A kind with this name in an API group other than apps is not meant: for that an adapter appends the
// group, as in "DaemonSet.apps.kruise.io".
const DaemonSet = "DaemonSet"

// statefulSet is the kind of owner that creates another pod only when the last one is gone.
const statefulSet = "StatefulSet"

// Pod is what a drain needs to know of a pod that is bound to the node. Readers share pods; a
// decision does not change them.
type Pod struct {
	object.Key
	// UID identifies the pod: a new pod of an old name is another pod.
	UID string
	// Owner is the controller. Nil: no controller will replace the pod. Its Kind has the API group
	// appended unless Kubernetes defines it; see DaemonSet.
	Owner       *object.Owner
	Labels      map[string]string
	Annotations map[string]string
	// ToleratesCordon: the pod tolerates the taint of cordoned nodes
	// (node.kubernetes.io/unschedulable, NoSchedule), so that another pod of its controller may be bound
	// to this node when it is gone.
	ToleratesCordon bool
	// Priority is that of scheduling. Pods with volumes are evicted in its order, the higher first. A missing
	// priority is zero.
	Priority int32
	// Finished says that all containers have ended for good.
	Finished bool
	// Pending: no container has run yet. An API server evicts such a pod whatever its budgets. Pending and
	// NotReady are used only by forecasts and for reasons of refused evictions. If both are false, the
	// pod is running and ready.
	Pending bool
	// NotReady: the pod's condition Ready is missing or not True. No budget counts it as healthy.
	NotReady bool
	// Mirror: the pod is the mirror of a static pod, which only the node itself can remove.
	Mirror bool
	// CreatedAt is when the pod was created, by the cluster's clock, in whole seconds. Zero: not
	// known. Then the drain can't see that the pod came late, and evicts it like any other.
	CreatedAt time.Time
	// Grace is the pod's own termination grace period or, if it is being deleted, that of the deletion.
	// Zero: none. A negative one counts as a second, as it does for an API server.
	Grace time.Duration
	// GraceEnds is when the grace of a pod that is being deleted ends, according to its deletion
	// timestamp. Zero: it is not being deleted.
	GraceEnds time.Time
	// Claims are the names of the persistent volume claims in the pod's namespace that it uses,
	// including those of generic ephemeral volumes (EphemeralClaim).
	Claims []string
	// Budgets are the budgets that select this pod. Nil: the drain looks for them in
	// Observation.Budgets.
	Budgets []*Budget
}

// EphemeralClaim returns the name of the persistent volume claim that Kubernetes creates for a
// generic ephemeral volume of a pod. The volume behind it is attached and detached like any other.
func EphemeralClaim(pod, volume string) string { return pod + "-" + volume }

// grace returns the pod's termination grace, never negative.
func (p *Pod) grace() time.Duration {
	if p.Grace < 0 {
		return time.Second
	}
	return p.Grace
}

// healthy reports whether budgets count the pod as healthy.
func (p *Pod) healthy() bool {
	return !p.Finished && !p.Pending && !p.NotReady && p.GraceEnds.IsZero()
}

// Budget is a PodDisruptionBudget of policy/v1.
type Budget struct {
	object.Key
	// Selector picks pods of the budget's namespace. Nil picks none, an empty
	// one picks all.
	Selector *object.Selector
	// AlwaysAllow is the unhealthyPodEvictionPolicy of that name. False: IfHealthyBudget, the default.
	AlwaysAllow bool

	Generation         int64 // of the spec
	ObservedGeneration int64 // of the spec that the numbers below belong to

	DisruptionsAllowed int32 // right now
	CurrentHealthy     int32
	DesiredHealthy     int32
	ExpectedPods       int32
	Disrupted          int32 // pods that are not gone yet after an accepted eviction
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

// mostDisrupted is how many evicted pods that are not gone an API server allows in a budget's status.
const mostDisrupted = 2000

// admits returns what an API server answers to the eviction of a running pod that only this budget selects, by
// the documentation of the eviction API. counts: the eviction lowers DisruptionsAllowed by one.
func (b *Budget) admits(p *Pod) (a Answer, counts bool) {
	healthy := b.CurrentHealthy >= b.DesiredHealthy && b.DesiredHealthy > 0
	switch {
	case p.NotReady && (b.AlwaysAllow || healthy):
		return Answer{Result: Accepted}, false
	case b.Stale():
		return Answer{Result: Refused, RetryAfter: 10 * time.Second}, false
	case b.DisruptionsAllowed < 0:
		return Answer{Result: Failed, Message: "pdb disruptions allowed is negative"}, false
	case b.Disrupted > mostDisrupted:
		return Answer{Result: Failed, Message: "too many evictions not confirmed by PDB controller"}, false
	case b.DisruptionsAllowed == 0:
		return Answer{Result: Refused}, false
	}
	return Answer{Result: Accepted}, true
}

// count updates a status as the controller of budgets does once it has seen which pods are terminating.
func (b *Budget) count() {
	b.DisruptionsAllowed, b.Disrupted = max(b.CurrentHealthy-b.DesiredHealthy, 0), 0
}

// Volume is a persistent volume that is bound to a claim.
type Volume struct {
	Name   string     // of the persistent volume
	Claim  object.Key // that it is bound to
	Driver string     // that attaches it
	Handle string     // the driver's own name of the volume; opaque
	// Local: the volume is part of the node. It can't be detached, and the drain does not wait for
	// it.
	Local bool
}

// Attachment is the attachment of a volume to a node, done or wanted (VolumeAttachment of
// storage.k8s.io/v1).
type Attachment struct {
	Name     string // of the attachment itself
	Volume   string // name of the persistent volume
	Node     string
	Attached bool // as the attacher last said
	// DeletedAt is when its deletion was asked for. Zero: it was not.
	DeletedAt time.Time
}

// sameHandle reports whether a node's or a provider's ID of a volume means the handle with this tail (see
// tailOf). Nodes and providers put other text before the handle, so only the parts after the last '^' or '/'
// must be equal. An empty tail matches nothing.
func sameHandle(id, tail string) bool {
	if tail == "" || !strings.HasSuffix(id, tail) {
		return false
	}
	before := len(id) - len(tail)
	return before == 0 || id[before-1] == '^' || id[before-1] == '/'
}

// tailOf returns the part of a handle after the last '^' or '/'.
func tailOf(handle string) string { return handle[strings.LastIndexAny(handle, "^/")+1:] }
