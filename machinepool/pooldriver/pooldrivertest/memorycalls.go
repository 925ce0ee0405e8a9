package pooldrivertest

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// takeFault returns the next error for a call. Nil: there is none.
func takeFault(faults map[machinepool.Call][]error, call machinepool.Call) error {
	if len(faults[call]) == 0 {
		return nil
	}
	err := faults[call][0]
	faults[call] = faults[call][1:]
	return err
}

// serve carries out a call as admitted does, one at a time. do gets the group, or nil if there is none.
func serve[R any](
	ctx context.Context, m *Memory, call machinepool.Call, req pooldriver.Request,
	do func(key groupKey, spec drivertest.MemorySpec, g *memoryGroup) (*R, error),
) (*R, error) {
	return admitted(ctx, m, call, req.Class, req.Secret, func() error {
		if req.Pool == nil || req.Pool.Name == "" {
			return codes.New(codes.InvalidArgument, "the pool has no name")
		}
		return nil
	}, func(spec drivertest.MemorySpec) (*R, error) {
		key := groupKey{spec.Cluster, req.Pool.Key}
		return do(key, spec, m.groups[key])
	})
}

// admitted carries out a call, unless its context has ended, there is a fault for it before it takes effect, or fit or
// drivertest.Memory.Admit refuses it. With a fault after it took effect, the fault is returned instead of the response.
func admitted[R any](
	ctx context.Context, m *Memory, call machinepool.Call, class *machine.Class, secret *machine.Secret,
	fit func() error, do func(drivertest.MemorySpec) (*R, error),
) (*R, error) {
	if err := ctx.Err(); err != nil {
		return nil, codes.Wrap(codes.Of(err), err, call.String()+" was given up before it began")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := takeFault(m.before, call); err != nil {
		return nil, err
	}
	if err := fit(); err != nil {
		return nil, err
	}
	spec, err := m.memory.Admit(class, secret)
	if err != nil {
		return nil, err
	}
	response, err := do(spec)
	if err != nil {
		return response, err
	}
	if err := takeFault(m.after, call); err != nil {
		return nil, err
	}
	return response, nil
}

// change carries out a call that changes an existing group.
func change(
	ctx context.Context, m *Memory, call machinepool.Call, req pooldriver.Request,
	do func(spec drivertest.MemorySpec, g *memoryGroup),
) (*pooldriver.Response, error) {
	return serve(ctx, m, call, req, func(key groupKey, spec drivertest.MemorySpec, g *memoryGroup) (*pooldriver.Response, error) {
		if g == nil {
			return nil, codes.Newf(codes.NotFound, "cluster %q has no group of pool %s", key.cluster, key.pool)
		}
		do(spec, g)
		if !m.slow {
			m.work(g)
		}
		return &pooldriver.Response{GroupID: g.id, LastKnownState: "changed"}, nil
	})
}

// CreatePool implements pooldriver.Driver.
func (m *Memory) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	return serve(ctx, m, machinepool.CreatePool, req.Request,
		func(key groupKey, spec drivertest.MemorySpec, g *memoryGroup) (*pooldriver.Response, error) {
			if g == nil {
				m.number++
				g = &memoryGroup{
					id: fmt.Sprintf("%s-%d", key.pool.Name, m.number), size: spec.Size, target: req.Replicas,
					instances: map[string]*memoryInstance{},
				}
				m.groups[key] = g
				if !m.slow {
					m.work(g)
				}
			}
			return &pooldriver.Response{GroupID: g.id, LastKnownState: "made"}, nil
		})
}

// UpdatePool implements pooldriver.Driver. It replaces no instance.
func (m *Memory) UpdatePool(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return change(ctx, m, machinepool.UpdatePool, req.Request, func(spec drivertest.MemorySpec, g *memoryGroup) { g.size = spec.Size })
}

// ScalePool implements pooldriver.Driver. See work for which instances are removed.
func (m *Memory) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return change(ctx, m, machinepool.ScalePool, req.Request, func(_ drivertest.MemorySpec, g *memoryGroup) { g.target = req.To })
}

// GetPoolStatus implements pooldriver.Driver.
func (m *Memory) GetPoolStatus(
	ctx context.Context, req *pooldriver.GetPoolStatusRequest,
) (*pooldriver.GetPoolStatusResponse, error) {
	return serve(ctx, m, machinepool.GetPoolStatus, req.Request,
		func(key groupKey, _ drivertest.MemorySpec, g *memoryGroup) (*pooldriver.GetPoolStatusResponse, error) {
			if g == nil {
				return nil, codes.Newf(codes.NotFound, "cluster %q has no group of pool %s", key.cluster, key.pool)
			}
			a := &pooldriver.GetPoolStatusResponse{GroupID: g.id, Target: g.target, Ready: true, Failure: g.failure}
			for _, i := range g.sorted() {
				a.Instances = append(a.Instances, i.Instance)
			}
			return a, nil
		})
}

// DeletePool implements pooldriver.Driver.
func (m *Memory) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	return serve(ctx, m, machinepool.DeletePool, req.Request,
		func(key groupKey, _ drivertest.MemorySpec, g *memoryGroup) (*pooldriver.Response, error) {
			if id := req.Pool.Status.GroupID; g != nil && (id == "" || id == g.id) {
				delete(m.groups, key)
			}
			return &pooldriver.Response{LastKnownState: "deleted"}, nil
		})
}

// DeleteInstances implements pooldriver.Driver.
func (m *Memory) DeleteInstances(
	ctx context.Context, req *pooldriver.DeleteInstancesRequest,
) (*pooldriver.Response, error) {
	return change(ctx, m, machinepool.DeleteInstances, req.Request, func(_ drivertest.MemorySpec, g *memoryGroup) {
		for _, id := range req.ProviderIDs {
			if i := g.instances[id]; i != nil && !i.Terminating {
				i.Terminating = true
				g.target = max(g.target-1, 0)
			}
		}
	})
}

// ReplaceInstance implements pooldriver.Driver.
func (m *Memory) ReplaceInstance(
	ctx context.Context, req *pooldriver.ReplaceInstanceRequest,
) (*pooldriver.Response, error) {
	return change(ctx, m, machinepool.ReplaceInstance, req.Request, func(_ drivertest.MemorySpec, g *memoryGroup) {
		if i := g.instances[req.ProviderID]; i != nil {
			i.Terminating = true
		}
	})
}

// InstancesDrained implements pooldriver.Driver.
func (m *Memory) InstancesDrained(
	ctx context.Context, req *pooldriver.InstancesDrainedRequest,
) (*pooldriver.Response, error) {
	return change(ctx, m, machinepool.InstancesDrained, req.Request, func(_ drivertest.MemorySpec, g *memoryGroup) {
		for _, id := range req.ProviderIDs {
			if i := g.instances[id]; i != nil && i.AwaitsDrain {
				i.Terminating = true
			}
		}
	})
}

// ListPools implements pooldriver.Lister.
func (m *Memory) ListPools(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
	fit := func() error { return nil }
	return admitted(ctx, m, machinepool.ListPools, req.Class, req.Secret, fit, func(spec drivertest.MemorySpec) (*pooldriver.ListPoolsResponse, error) {
		groups := map[string]object.Key{}
		for key, g := range m.groups {
			if key.cluster == spec.Cluster {
				groups[g.id] = key.pool
			}
		}
		return &pooldriver.ListPoolsResponse{Groups: groups}, nil
	})
}
