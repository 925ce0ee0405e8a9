package drains

import (
	"context"
	"iter"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// Workload is what runs on the nodes of a cluster, as far as a drain needs to
// know it. Pods is needed; the others may be nil: there is nothing of the kind.
// Reads may come from caches; what they return is shared and is not changed.
type Workload struct {
	Pods    Pods
	Budgets Budgets
	Volumes Volumes
}

// Pods are those of a cluster.
type Pods interface {
	// On returns the pods bound to a node. complete says that these are all,
	// as far as is known: false until the caches were filled once.
	On(ctx context.Context, node string) (pods []*drain.Pod, complete bool, err error)
	// Evict asks for the eviction of one pod, with its UID as a precondition.
	// Result, RetryAfter and Message of the answer are the cluster's; the rest
	// is filled in by the caller. An error means that there is no answer.
	Evict(ctx context.Context, order drain.Order) (drain.Answer, error)
	// Delete deletes one pod, with grace 0 if order.Now says so, else with the
	// pod's own. It answers as Evict does.
	Delete(ctx context.Context, order drain.Order) (drain.Answer, error)
	// Watch yields the name of a node whenever its pods have changed. It may
	// repeat and merge; it ends with an error, or when ctx does.
	Watch(ctx context.Context) iter.Seq2[string, error]
}

// LivePods is what Pods implement that answer On from a cache. A drain ends on the live
// answer: a pod that was bound to the node just before its cordon may be missing in the other.
type LivePods interface {
	// Live returns all pods that are bound to a node now.
	Live(ctx context.Context, node string) ([]*drain.Pod, error)
}

// Budgets are the disruption budgets of a cluster.
type Budgets interface {
	// In returns the budgets of some namespaces; complete as for Pods.On.
	In(ctx context.Context, namespaces []string) (budgets []*drain.Budget, complete bool, err error)
}

// Volumes are the persistent volumes of a cluster.
type Volumes interface {
	// Bound returns the volumes bound to claims; complete as for Pods.On.
	Bound(ctx context.Context, claims []object.Key) (volumes []*drain.Volume, complete bool, err error)
	// Attachments returns those of some volumes to any node, and all of one
	// node. Nil: the cluster has no such objects; empty: there is none.
	Attachments(ctx context.Context, node string, volumes []string) ([]*drain.Attachment, error)
	// Attached returns the volumes that a node itself says are attached to it.
	// Nil: it is not known; empty: none is.
	Attached(ctx context.Context, node string) ([]string, error)
	// Detach deletes an attachment; it answers as Pods.Evict does.
	Detach(ctx context.Context, attachment string) (drain.Answer, error)
}
