package simulated

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

var (
	_ pooldriver.Driver   = (*Provider)(nil)
	_ pooldriver.Featured = (*Provider)(nil)
	_ pooldriver.Lister   = (*Provider)(nil)
)

// PoolFeatures implements pooldriver.Featured.
func (p *Provider) PoolFeatures() machinepool.Features {
	return machinepool.Features{DeleteInstances: true, ReplaceInstance: true, RollingUpdate: true}
}

// CreatePool implements pooldriver.Driver.
func (p *Provider) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	if err := p.takeTime(ctx, &req.Request, false, p.options.Create); err != nil {
		return nil, err
	}
	return p.serve(ctx, &req.Request, func(spec *Spec, g *group) (*group, error) {
		if g != nil {
			return g, p.work(g)
		}
		if err := p.roomForPool(spec, req.Pool.Key, req.Replicas); err != nil {
			return nil, err
		}
		g = &group{ID: newID(spec.Cluster), Cluster: spec.Cluster, Pool: req.Pool.Key, Target: req.Replicas}
		g.setTemplate(spec, req.Pool)
		return g, errors.Join(p.disk.save(g), p.work(g))
	})
}

// UpdatePool implements pooldriver.Driver. Instances are replaced while Run runs, one after the other
// or within the pool's bounds.
func (p *Provider) UpdatePool(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return p.change(ctx, &req.Request, func(spec *Spec, g *group) error {
		g.setTemplate(spec, req.Pool)
		return nil
	})
}

// ScalePool implements pooldriver.Driver. On scale-down the youngest instances are removed.
func (p *Provider) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return p.change(ctx, &req.Request, func(spec *Spec, g *group) error {
		if req.To > g.Target {
			if err := p.roomForPool(spec, req.Pool.Key, req.To); err != nil {
				return err
			}
		}
		g.Target = req.To
		return nil
	})
}

// GetPoolStatus implements pooldriver.Driver.
func (p *Provider) GetPoolStatus(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
	answer := &pooldriver.GetPoolStatusResponse{Ready: true}
	_, err := p.serve(ctx, &req.Request, func(_ *Spec, g *group) (*group, error) {
		if g == nil {
			return nil, noGroup(req.Pool.Key)
		}
		answer.GroupID, answer.Target = g.ID, g.Target
		all, err := p.disk.members(g)
		for _, v := range all {
			answer.Instances = append(answer.Instances, machinepool.Instance{
				ProviderID: v.ID, Terminating: slices.Contains(g.Removing, v.ID), AwaitsDrain: slices.Contains(g.Draining, v.ID),
			})
		}
		return g, err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// DeletePool implements pooldriver.Driver.
func (p *Provider) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	if err := p.takeTime(ctx, &req.Request, true, p.options.Delete); err != nil {
		return nil, err
	}
	return p.serve(ctx, &req.Request, func(spec *Spec, g *group) (*group, error) {
		if id := req.Pool.Status.GroupID; g == nil || id != "" && id != g.ID {
			return nil, nil
		}
		all, err := p.disk.members(g)
		for _, v := range all {
			p.nodes.forget(v)
		}
		return nil, errors.Join(err, p.disk.drop(spec.Cluster, req.Pool.Key))
	})
}

// ListPools implements pooldriver.Lister.
func (p *Provider) ListPools(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
	spec, err := read(req.Class)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, 0); err != nil {
		return nil, err
	}
	answer := &pooldriver.ListPoolsResponse{Groups: make(map[string]object.Key)}
	err = p.disk.locked(func() error {
		all, err := p.disk.groups()
		for _, g := range all {
			if g.Cluster == spec.Cluster {
				answer.Groups[g.ID] = g.Pool
			}
		}
		return err
	})
	if err != nil {
		return nil, failed("list groups", err)
	}
	return answer, nil
}

// DeleteInstances implements pooldriver.Driver.
func (p *Provider) DeleteInstances(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	return p.change(ctx, &req.Request, func(_ *Spec, g *group) error {
		marked, err := p.markForRemoval(g, req.ProviderIDs)
		g.Target = max(0, g.Target-marked)
		return err
	})
}

// ReplaceInstance implements pooldriver.Driver.
func (p *Provider) ReplaceInstance(ctx context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	return p.change(ctx, &req.Request, func(_ *Spec, g *group) error {
		_, err := p.markForRemoval(g, []string{req.ProviderID})
		return err
	})
}

// InstancesDrained implements pooldriver.Driver.
func (p *Provider) InstancesDrained(ctx context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	return p.change(ctx, &req.Request, func(_ *Spec, g *group) error {
		_, err := p.markForRemoval(g, slices.DeleteFunc(slices.Clone(req.ProviderIDs), func(id string) bool { return !slices.Contains(g.Draining, id) }))
		return err
	})
}

// markForRemoval marks instances of the group for removal, and returns how many were not marked already.
func (p *Provider) markForRemoval(g *group, ids []string) (n int32, err error) {
	all, err := p.disk.members(g)
	for _, v := range all {
		if slices.Contains(ids, v.ID) && !slices.Contains(g.Removing, v.ID) {
			g.Removing = append(g.Removing, v.ID)
			n++
		}
	}
	return n, err
}

// setTemplate sets what instances are created from: the spec of the class, and the pool's template.
func (g *group) setTemplate(spec *Spec, pool *machinepool.Pool) {
	g.Size, g.Node, g.Zones = spec.Size, pool.Spec.Template.NodeTemplate.Clone(), slices.Clone(pool.Spec.FailureDomains)
	g.Rolling = pool.Clone().Spec.RollingUpdate
	if len(g.Zones) == 0 && spec.Zone != "" {
		g.Zones = []string{spec.Zone}
	}
}

// serve calls the function do with the pool's group, or nil if there is none, while it holds the lock.
// do returns the changed group.
func (p *Provider) serve(ctx context.Context, req *pooldriver.Request, do func(*Spec, *group) (*group, error)) (*pooldriver.Response, error) {
	spec, err := read(req.Class)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, 0); err != nil {
		return nil, err
	}
	if key := req.Pool.Key; !plain(key.Name) || key.Namespace != "" && !plain(key.Namespace) {
		return nil, codes.Newf(codes.InvalidArgument, "pool name %q can't be that of a group", key)
	}
	answer := &pooldriver.Response{}
	err = p.disk.locked(func() error {
		g, err := p.disk.group(spec.Cluster, req.Pool.Key)
		if errors.Is(err, fs.ErrNotExist) {
			g, err = nil, nil
		}
		if err == nil {
			g, err = do(spec, g)
		}
		if g != nil {
			answer.GroupID = g.ID
		}
		return err
	})
	if err != nil {
		return nil, failed("change a group", err)
	}
	return answer, nil
}

// takeTime waits for d if there is a group and exists is true, or if there is none and exists is false.
func (p *Provider) takeTime(ctx context.Context, req *pooldriver.Request, exists bool, d time.Duration) error {
	spec, err := read(req.Class)
	if err != nil {
		return err
	}
	if _, err := p.disk.group(spec.Cluster, req.Pool.Key); (err == nil) != exists {
		return nil
	}
	return sleep(ctx, d)
}

// change lets the function do change the target state of an existing group, stores it, and carries it
// out.
func (p *Provider) change(ctx context.Context, req *pooldriver.Request, do func(*Spec, *group) error) (*pooldriver.Response, error) {
	return p.serve(ctx, req, func(spec *Spec, g *group) (*group, error) {
		if g == nil {
			return nil, noGroup(req.Pool.Key)
		}
		err := do(spec, g)
		if err == nil {
			err = p.disk.save(g)
		}
		if err == nil {
			err = p.work(g)
		}
		return g, err
	})
}

func noGroup(pool object.Key) error {
	return codes.Newf(codes.NotFound, "there is no group of pool %s", pool)
}

// roomForPool returns an error if a group of this size would exceed the capacity.
func (p *Provider) roomForPool(spec *Spec, pool object.Key, size int32) error {
	if spec.Capacity == 0 {
		return nil
	}
	others, err := p.disk.count(spec.Cluster, pool)
	switch {
	case err != nil:
		return failed("count VMs", err)
	case others+int(size) > spec.Capacity:
		return codes.Newf(codes.ResourceExhausted, "cluster %s has room for %d VMs", spec.Cluster, spec.Capacity)
	}
	return nil
}

// Instances returns the instances of a pool's group, oldest first. Each is a file in the folder
// DIR/.groups/CLUSTER/NAMESPACE/POOL, with its Machine as the name.
func (p *Provider) Instances(cluster string, pool object.Key) ([]VM, error) {
	return membersIn(p.disk.groupPath(cluster, pool))
}

// Resize sets the target size of a pool's group, as the provider's autoscaler would.
func (p *Provider) Resize(cluster string, pool object.Key, target int32) error {
	return p.disk.locked(func() error {
		g, err := p.disk.group(cluster, pool)
		if err == nil {
			g.Target = target
			err = p.disk.save(g)
		}
		if err == nil {
			err = p.work(g)
		}
		return err
	})
}
