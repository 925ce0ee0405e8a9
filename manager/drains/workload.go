package drains

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Workload is what runs on the nodes of a cluster, as far as a drain needs to
// know it. Pods is required. Budgets and Volumes may be nil: the cluster has none.
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

// LivePods is implemented by Pods that answer On from a cache. A drain ends on the live
// answer: a pod that was bound to the node just before its cordon may be missing in the cache.
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
	// VolumeAttachments returns the objects that attach one of the volumes to any node, or any volume
	// to one node. Nil: the cluster has no such objects; empty: there is none.
	VolumeAttachments(ctx context.Context, node string, volumes []string) ([]*drain.Attachment, error)
	// VolumesAttached returns the volumes that a node itself reports as attached to it. Nil: it is not
	// known; empty: none is.
	VolumesAttached(ctx context.Context, node string) ([]string, error)
	// Detach deletes an attachment; it answers as Pods.Evict does.
	Detach(ctx context.Context, attachment string) (drain.Answer, error)
}

// observe reads what a decision about a node is made from.
func (d *Drainer) observe(ctx context.Context, n *machine.Node) (*drain.Observation, error) {
	o := &drain.Observation{Node: n, Cached: true, Memory: d.remember(n)}
	if err := d.see(ctx, o); err != nil {
		return nil, err
	}
	return o, nil
}

// see reads the pods on the node, with their budgets and volumes.
func (d *Drainer) see(ctx context.Context, o *drain.Observation) (err error) {
	if o.Pods, o.Complete, err = d.options.Workload.Pods.On(ctx, o.Node.Name); err != nil {
		return err
	}
	_, o.PodsCached = d.options.Workload.Pods.(LivePods)
	o.Memory.See(o.Pods, o.Complete, d.options.Now())
	return d.readConstraints(ctx, o)
}

// readConstraints reads the budgets and volumes of the node's pods.
func (d *Drainer) readConstraints(ctx context.Context, o *drain.Observation) error {
	if d.options.Workload.Budgets != nil {
		budgets, complete, err := d.options.Workload.Budgets.In(ctx, namespacesOf(o.Pods))
		if err != nil {
			return err
		}
		o.Budgets, o.Complete = budgets, o.Complete && complete
	}
	if d.options.Workload.Volumes == nil {
		o.Attachments = []*drain.Attachment{}
		return nil
	}
	return d.observeVolumes(ctx, o)
}

func (d *Drainer) observeVolumes(ctx context.Context, o *drain.Observation) (err error) {
	volumes, complete, err := d.options.Workload.Volumes.Bound(ctx, claimsOf(o.Pods))
	if err != nil {
		return err
	}
	o.Volumes, o.Complete = volumes, o.Complete && complete
	names := make([]string, len(volumes))
	for i, v := range volumes {
		names[i] = v.Name
	}
	if o.Attachments, err = d.options.Workload.Volumes.VolumeAttachments(ctx, o.Node.Name, names); err != nil {
		return err
	}
	if o.Attached, err = d.options.Workload.Volumes.VolumesAttached(ctx, o.Node.Name); err != nil {
		return err
	}
	if d.options.Known != nil && len(volumes) > 0 {
		o.Known, err = d.options.Known(ctx, volumes)
	}
	return err
}

// look reads the node and its pods as they are now. The answer to a write of this pass is as good as a read of the
// node.
func (d *Drainer) look(ctx context.Context, o *drain.Observation) error {
	if o.Cached {
		n, err := d.options.Nodes.Live().Get(ctx, o.Node.Key)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && n.UID != o.Node.UID:
			o.Node = nil
			return nil
		case err != nil:
			return err
		}
		o.Node, o.Cached = n, false
	}
	live, ok := d.options.Workload.Pods.(LivePods)
	if !ok {
		return nil
	}
	var err error
	if o.Pods, err = live.Live(ctx, o.Node.Name); err != nil {
		return err
	}
	o.PodsCached = false
	o.Memory.See(o.Pods, true, d.options.Now())
	return d.readConstraints(ctx, o)
}

func namespacesOf(pods []*drain.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func claimsOf(pods []*drain.Pod) []object.Key {
	var out []object.Key
	for _, p := range pods {
		for _, claim := range p.Claims {
			out = append(out, object.Key{Namespace: p.Namespace, Name: claim})
		}
	}
	return out
}
