package drain

import (
	"strings"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Observation is what a decision about the drain of one node is made from. The caller fills it from
// its caches at the beginning of a pass. A decision changes nothing in it. A nil field was not
// asked for, unless said otherwise.
type Observation struct {
	// Node to be drained. Nil: the caller looked for it, and there is none. The caller must make
	// sure that it is not another machine's.
	Node *machine.Node
	// Cached: Node came from a cache, and the record of its drain may be newer. False: it was read
	// live, or written in this pass.
	Cached bool
	// Pods bound to the node, in any order.
	Pods []*Pod
	// PodsCached: Pods came from a cache, and can be read live. A pod that was bound just before
	// the cordon may be missing. A drain ends on a live list.
	PodsCached bool
	// Budgets of the pods' namespaces at least. Not needed if all pods have resolved budgets.
	Budgets []*Budget
	// Volumes bound to the pods' claims at least.
	Volumes []*Volume
	// Attachments of the volumes to any node. Nil: the cluster has no such
	// objects; empty: there is none.
	Attachments []*Attachment
	// Attached are the volumes that the node's own status lists as attached. Nil: not known. Empty:
	// there are none.
	Attached []string
	// Known are the IDs by which the provider knows volumes (GetVolumeIDs). Nil: it was not asked,
	// or does not say. The drain does not wait for volumes that the provider does not know.
	Known []string
	// Complete: all of the above is complete, as far as caches can tell: they were filled at least
	// once. False: a missing object proves nothing.
	Complete bool

	// Asked is when this drain was asked for, or for Detach when the stage began. The caller
	// persists it. A record on the node from before it belongs to an earlier drain. Zero: any
	// record counts, and Detach has no deadline.
	Asked time.Time
	// Deadline is when the drain ends in any case. The caller persists it, or computes it from
	// persisted times. Zero: Policy.Timeout after the drain's start.
	Deadline time.Time
	// MaxEvictRetries takes the place of Policy.MaxEvictRetries for this drain. Zero or less: the
	// policy's.
	MaxEvictRetries int
	// Forced: force is due.
	Forced bool
	// Stays: the node's VM keeps running, so the node is never declared out of service.
	Stays bool

	// Memory of this process about this node. Nil: the zero Memory.
	Memory *Memory
	// WriteFailed: a write of an earlier plan of this pass was not stored, for a reason other than
	// a conflict. Force continues without it.
	WriteFailed bool
}

// DaemonSet is the kind of owner whose pods a drain leaves alone, because they would come back to
// the same node at once. A kind of that name in another API group than apps is another one: an
// adapter appends the group, as in "DaemonSet.apps.kruise.io".
const DaemonSet = "DaemonSet"

// statefulSet is the kind of owner that makes another pod only when the last one is gone.
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
	// (node.kubernetes.io/unschedulable, NoSchedule), so that another of its controller may be bound
	// to this node when it goes.
	ToleratesCordon bool
	// Priority of scheduling. Pods with volumes leave in its order, the higher first. A missing
	// priority is zero.
	Priority int32
	// Finished says that all containers have ended for good.
	Finished bool
	// Pending: no container has run yet. An API server evicts such a pod in spite of any budget. Only
	// forecasts, and the texts of refused evictions, use this and NotReady. False for both: running and ready.
	Pending bool
	// NotReady: the pod's condition Ready is missing or not True. No budget counts it as healthy.
	NotReady bool
	// Mirror: the pod is the image of a static one, which only its node can remove.
	Mirror bool
	// CreatedAt is when the pod was created, by the cluster's clock, in whole seconds. Zero: not
	// known; then the drain can't see that a pod came back, and tells it to terminate as any other.
	CreatedAt time.Time
	// Grace is the pod's own termination grace period, or the one that it was given if it is being
	// deleted. Zero: none; a negative one counts as a second, as it does for an API server.
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

// mostDisrupted is how many evicted pods an API server keeps in a budget's status that are not gone.
const mostDisrupted = 2000

// admits returns what an API server answers to the eviction of a pod that runs and that this budget
// alone selects, by the documentation of the eviction API. counts: the eviction takes one off
// DisruptionsAllowed.
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

// count updates a status as the controller of budgets does, which sees by then which pods go.
func (b *Budget) count() {
	b.DisruptionsAllowed, b.Disrupted = max(b.CurrentHealthy-b.DesiredHealthy, 0), 0
}

// Volume is a persistent volume that is bound to a claim.
type Volume struct {
	Name   string     // of the persistent volume
	Claim  object.Key // that it is bound to
	Driver string     // that attaches it
	Handle string     // the driver's own name of it; opaque
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

// sameHandle reports whether an ID of a node or a provider for a volume means the handle of that
// tail. They must be equal after the last '^' or '/', because nodes and providers put other text
// around the handle. Neither is a pattern, and an empty one matches nothing.
func sameHandle(id, tail string) bool {
	if tail == "" || !strings.HasSuffix(id, tail) {
		return false
	}
	before := len(id) - len(tail)
	return before == 0 || id[before-1] == '^' || id[before-1] == '/'
}

func tailOf(handle string) string { return handle[strings.LastIndexAny(handle, "^/")+1:] }
