package drains

import (
	"context"
	"errors"
	"slices"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// observe reads what a decision about a node is made from.
func (d *Drainer) observe(ctx context.Context, n *machine.Node) (*drain.Observation, error) {
	o := &drain.Observation{Node: n, Cached: true, Memory: d.remember(n)}
	if err := d.see(ctx, o); err != nil {
		return nil, err
	}
	return o, nil
}

// see reads what is on the node, and what holds it there.
func (d *Drainer) see(ctx context.Context, o *drain.Observation) (err error) {
	if o.Pods, o.Complete, err = d.options.Workload.Pods.On(ctx, o.Node.Name); err != nil {
		return err
	}
	_, o.PodsCached = d.options.Workload.Pods.(LivePods)
	o.Memory.See(o.Pods, o.Complete, d.options.Now())
	return d.seeWhatHolds(ctx, o)
}

// seeWhatHolds reads what holds the pods of the node there.
func (d *Drainer) seeWhatHolds(ctx context.Context, o *drain.Observation) error {
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
	if o.Attachments, err = d.options.Workload.Volumes.Attachments(ctx, o.Node.Name, names); err != nil {
		return err
	}
	if o.Attached, err = d.options.Workload.Volumes.Attached(ctx, o.Node.Name); err != nil {
		return err
	}
	if d.options.Known != nil && len(volumes) > 0 {
		o.Known, err = d.options.Known(ctx, volumes)
	}
	return err
}

// look reads the node and its pods as they are now.
func (d *Drainer) look(ctx context.Context, o *drain.Observation) error {
	n, err := d.options.Nodes.Live().Get(ctx, o.Node.Key)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && n.UID != o.Node.UID:
		o.Node = nil
		return nil
	case err != nil:
		return err
	}
	o.Node, o.Cached = n, false
	live, ok := d.options.Workload.Pods.(LivePods)
	if !ok {
		return nil
	}
	if o.Pods, err = live.Live(ctx, n.Name); err != nil {
		return err
	}
	o.PodsCached = false
	o.Memory.See(o.Pods, true, d.options.Now())
	return d.seeWhatHolds(ctx, o)
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
