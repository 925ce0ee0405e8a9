package drain

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

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
	// forecasts ask for this and NotReady; false for both counts as running and ready.
	Pending bool
	// NotReady: the pod's condition Ready is missing or not True. No budget counts it as healthy.
	NotReady bool
	// Mirror: the pod is the image of a static one, which only its node can remove.
	Mirror bool
	// CreatedAt is when the pod was created, by the cluster's clock, in whole seconds. Zero: not
	// known; then the drain can't see that a pod came back, and tells it to go as any other.
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
