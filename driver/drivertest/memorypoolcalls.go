package drivertest

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
)

// takeFault returns the next error in store for a call; nil: there is none.
func takeFault(store map[machinepool.Call][]error, call machinepool.Call) error {
	if len(store[call]) == 0 {
		return nil
	}
	err := store[call][0]
	store[call] = store[call][1:]
	return err
}

// servePool carries a call out, unless its context is over or a fault is in
// store. One call is carried out at a time. do gets the group, nil if there is
// none.
func servePool[R any](
	ctx context.Context, m *MemoryPools, call machinepool.Call, req driver.PoolRequest,
	do func(key groupKey, spec MemorySpec, g *memoryGroup) (*R, error),
) (*R, error) {
	if err := ctx.Err(); err != nil {
		return nil, codes.Wrap(codes.Of(err), err, call.String()+" was given up before it began")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := takeFault(m.before, call); err != nil {
		return nil, err
	}
	if req.Pool == nil || req.Pool.Name == "" {
		return nil, codes.New(codes.InvalidArgument, "the pool has no name")
	}
	spec, err := m.memory.admit(req.Class, req.Secret)
	if err != nil {
		return nil, err
	}
	key := groupKey{spec.Cluster, req.Pool.Key}
	response, err := do(key, spec, m.groups[key])
	if err != nil {
		return response, err
	}
	if err := takeFault(m.after, call); err != nil {
		return nil, err
	}
	return response, nil
}

// changePool carries out a call that changes a group that is there.
func changePool(
	ctx context.Context, m *MemoryPools, call machinepool.Call, req driver.PoolRequest,
	do func(spec MemorySpec, g *memoryGroup),
) (*driver.PoolResponse, error) {
	return servePool(ctx, m, call, req, func(key groupKey, spec MemorySpec, g *memoryGroup) (*driver.PoolResponse, error) {
		if g == nil {
			return nil, codes.Newf(codes.NotFound, "cluster %q has no group of pool %s", key.cluster, key.pool)
		}
		do(spec, g)
		if !m.slow {
			m.work(g)
		}
		return &driver.PoolResponse{GroupID: g.id, LastKnownState: "changed"}, nil
	})
}

// CreatePool implements driver.PoolDriver.
func (m *MemoryPools) CreatePool(ctx context.Context, req *driver.CreatePoolRequest) (*driver.PoolResponse, error) {
	return servePool(ctx, m, machinepool.CreatePool, req.PoolRequest,
		func(key groupKey, spec MemorySpec, g *memoryGroup) (*driver.PoolResponse, error) {
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
			return &driver.PoolResponse{GroupID: g.id, LastKnownState: "made"}, nil
		})
}

// UpdatePool implements driver.PoolDriver. Instances keep their size.
func (m *MemoryPools) UpdatePool(ctx context.Context, req *driver.UpdatePoolRequest) (*driver.PoolResponse, error) {
	return changePool(ctx, m, machinepool.UpdatePool, req.PoolRequest, func(spec MemorySpec, g *memoryGroup) { g.size = spec.Size })
}

// ScalePool implements driver.PoolDriver. The youngest go first.
func (m *MemoryPools) ScalePool(ctx context.Context, req *driver.ScalePoolRequest) (*driver.PoolResponse, error) {
	return changePool(ctx, m, machinepool.ScalePool, req.PoolRequest, func(_ MemorySpec, g *memoryGroup) { g.target = req.To })
}

// GetPoolStatus implements driver.PoolDriver.
func (m *MemoryPools) GetPoolStatus(
	ctx context.Context, req *driver.GetPoolStatusRequest,
) (*driver.GetPoolStatusResponse, error) {
	return servePool(ctx, m, machinepool.GetPoolStatus, req.PoolRequest,
		func(key groupKey, _ MemorySpec, g *memoryGroup) (*driver.GetPoolStatusResponse, error) {
			if g == nil {
				return nil, codes.Newf(codes.NotFound, "cluster %q has no group of pool %s", key.cluster, key.pool)
			}
			a := &driver.GetPoolStatusResponse{GroupID: g.id, Target: g.target, Ready: true, Failure: g.failure}
			for _, i := range g.sorted() {
				a.Instances = append(a.Instances, i.Instance)
			}
			return a, nil
		})
}

// DeletePool implements driver.PoolDriver.
func (m *MemoryPools) DeletePool(ctx context.Context, req *driver.DeletePoolRequest) (*driver.PoolResponse, error) {
	return servePool(ctx, m, machinepool.DeletePool, req.PoolRequest,
		func(key groupKey, _ MemorySpec, _ *memoryGroup) (*driver.PoolResponse, error) {
			delete(m.groups, key)
			return &driver.PoolResponse{LastKnownState: "deleted"}, nil
		})
}

// DeleteInstances implements driver.PoolDriver.
func (m *MemoryPools) DeleteInstances(
	ctx context.Context, req *driver.DeleteInstancesRequest,
) (*driver.PoolResponse, error) {
	return changePool(ctx, m, machinepool.DeleteInstances, req.PoolRequest, func(_ MemorySpec, g *memoryGroup) {
		for _, id := range req.ProviderIDs {
			if i := g.instances[id]; i != nil && !i.Going {
				i.Going = true
				g.target = max(g.target-1, 0)
			}
		}
	})
}

// ReplaceInstance implements driver.PoolDriver.
func (m *MemoryPools) ReplaceInstance(
	ctx context.Context, req *driver.ReplaceInstanceRequest,
) (*driver.PoolResponse, error) {
	return changePool(ctx, m, machinepool.ReplaceInstance, req.PoolRequest, func(_ MemorySpec, g *memoryGroup) {
		if i := g.instances[req.ProviderID]; i != nil {
			i.Going = true
		}
	})
}

// InstancesDrained implements driver.PoolDriver.
func (m *MemoryPools) InstancesDrained(
	ctx context.Context, req *driver.InstancesDrainedRequest,
) (*driver.PoolResponse, error) {
	return changePool(ctx, m, machinepool.InstancesDrained, req.PoolRequest, func(_ MemorySpec, g *memoryGroup) {
		for _, id := range req.ProviderIDs {
			if i := g.instances[id]; i != nil && i.AwaitsDrain {
				i.Going = true
			}
		}
	})
}
