package driver_test

import (
	"context"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

var aPool = &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}}}

// scriptedPool answers each call as it was told to.
type scriptedPool struct {
	answer func(ctx context.Context, call machinepool.Call, req any) (any, error)
}

func playPool[R any](ctx context.Context, s *scriptedPool, call machinepool.Call, req any) (*R, error) {
	response, err := s.answer(ctx, call, req)
	typed, _ := response.(*R)
	return typed, err
}

func (s *scriptedPool) CreatePool(ctx context.Context, req *driver.CreatePoolRequest) (*driver.PoolResponse, error) {
	return playPool[driver.PoolResponse](ctx, s, machinepool.CreatePool, req)
}

func (s *scriptedPool) UpdatePool(ctx context.Context, req *driver.UpdatePoolRequest) (*driver.PoolResponse, error) {
	return playPool[driver.PoolResponse](ctx, s, machinepool.UpdatePool, req)
}

func (s *scriptedPool) ScalePool(ctx context.Context, req *driver.ScalePoolRequest) (*driver.PoolResponse, error) {
	return playPool[driver.PoolResponse](ctx, s, machinepool.ScalePool, req)
}

func (s *scriptedPool) GetPoolStatus(ctx context.Context, req *driver.GetPoolStatusRequest) (*driver.GetPoolStatusResponse, error) {
	return playPool[driver.GetPoolStatusResponse](ctx, s, machinepool.GetPoolStatus, req)
}

func (s *scriptedPool) DeletePool(ctx context.Context, req *driver.DeletePoolRequest) (*driver.PoolResponse, error) {
	return playPool[driver.PoolResponse](ctx, s, machinepool.DeletePool, req)
}

func (s *scriptedPool) DeleteInstances(ctx context.Context, req *driver.DeleteInstancesRequest) (*driver.PoolResponse, error) {
	return playPool[driver.PoolResponse](ctx, s, machinepool.DeleteInstances, req)
}

func (s *scriptedPool) ReplaceInstance(ctx context.Context, req *driver.ReplaceInstanceRequest) (*driver.PoolResponse, error) {
	return playPool[driver.PoolResponse](ctx, s, machinepool.ReplaceInstance, req)
}

func (s *scriptedPool) InstancesDrained(ctx context.Context, req *driver.InstancesDrainedRequest) (*driver.PoolResponse, error) {
	return playPool[driver.PoolResponse](ctx, s, machinepool.InstancesDrained, req)
}

func (s *scriptedPool) ListPools(ctx context.Context, req *driver.ListPoolsRequest) (*driver.ListPoolsResponse, error) {
	return playPool[driver.ListPoolsResponse](ctx, s, machinepool.ListPools, req)
}

func (s *scriptedPool) PoolFeatures() machinepool.Features {
	return machinepool.Features{DeleteInstances: true}
}

// asked is what a call to a pool driver needs.
type asked struct {
	driver.PoolRequest
	n   int32
	ids []string
}

var wholeAsk = asked{PoolRequest: driver.PoolRequest{Pool: aPool, Class: aClass, Secret: aSecret}, n: 3, ids: []string{"a"}}

// askPool makes a call; no request at all if with is nil. The answer is nil
// where the driver's is.
func askPool(ctx context.Context, d driver.PoolDriver, call machinepool.Call, with *asked) (any, error) {
	if with == nil {
		return askNothing(ctx, d, call)
	}
	base := with.PoolRequest
	switch call {
	case machinepool.ListPools:
		return some(lister(d).ListPools(ctx, &driver.ListPoolsRequest{Class: base.Class, Secret: base.Secret}))
	case machinepool.CreatePool:
		return some(d.CreatePool(ctx, &driver.CreatePoolRequest{PoolRequest: base, Replicas: with.n, Bootstrap: &machine.Secret{}}))
	case machinepool.UpdatePool:
		return some(d.UpdatePool(ctx, &driver.UpdatePoolRequest{PoolRequest: base}))
	case machinepool.ScalePool:
		return some(d.ScalePool(ctx, &driver.ScalePoolRequest{PoolRequest: base, To: with.n}))
	case machinepool.GetPoolStatus:
		return some(d.GetPoolStatus(ctx, &driver.GetPoolStatusRequest{PoolRequest: base}))
	case machinepool.DeletePool:
		return some(d.DeletePool(ctx, &driver.DeletePoolRequest{PoolRequest: base}))
	case machinepool.DeleteInstances:
		return some(d.DeleteInstances(ctx, &driver.DeleteInstancesRequest{PoolRequest: base, ProviderIDs: with.ids}))
	case machinepool.ReplaceInstance:
		return some(d.ReplaceInstance(ctx, &driver.ReplaceInstanceRequest{PoolRequest: base, ProviderID: with.ids[0]}))
	default:
		return some(d.InstancesDrained(ctx, &driver.InstancesDrainedRequest{PoolRequest: base, ProviderIDs: with.ids}))
	}
}

func askNothing(ctx context.Context, d driver.PoolDriver, call machinepool.Call) (any, error) {
	switch call {
	case machinepool.ListPools:
		return some(lister(d).ListPools(ctx, nil))
	case machinepool.CreatePool:
		return some(d.CreatePool(ctx, nil))
	case machinepool.UpdatePool:
		return some(d.UpdatePool(ctx, nil))
	case machinepool.ScalePool:
		return some(d.ScalePool(ctx, nil))
	case machinepool.GetPoolStatus:
		return some(d.GetPoolStatus(ctx, nil))
	case machinepool.DeletePool:
		return some(d.DeletePool(ctx, nil))
	case machinepool.DeleteInstances:
		return some(d.DeleteInstances(ctx, nil))
	case machinepool.ReplaceInstance:
		return some(d.ReplaceInstance(ctx, nil))
	default:
		return some(d.InstancesDrained(ctx, nil))
	}
}

// lister is the outermost layer of d that lists pools, or one that says that there is none.
func lister(d driver.PoolDriver) driver.PoolLister {
	if l, ok := driver.AsPool[driver.PoolLister](d); ok {
		return l
	}
	return driver.ValidatePool(d, nil).(driver.PoolLister)
}

func some[R any](r *R, err error) (any, error) {
	if r == nil {
		return nil, err
	}
	return r, err
}

// wholePool is an answer with which nothing is wrong.
func wholePool(call machinepool.Call) any {
	if call == machinepool.GetPoolStatus {
		return &driver.GetPoolStatusResponse{GroupID: "g", Target: 2, Instances: []machinepool.Instance{{ProviderID: "a"}, {ProviderID: "b"}}}
	}
	if call == machinepool.ListPools {
		return &driver.ListPoolsResponse{Groups: map[string]object.Key{"g": aPool.Key}}
	}
	return &driver.PoolResponse{GroupID: "g"}
}

func answeringPool(answer func(machinepool.Call) any, err error) *scriptedPool {
	return &scriptedPool{answer: func(_ context.Context, call machinepool.Call, _ any) (any, error) { return answer(call), err }}
}
