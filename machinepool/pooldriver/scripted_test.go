package pooldriver_test

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

var aPool = &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}}}

// scriptedPool answers each call as its test says.
type scriptedPool struct {
	answer func(ctx context.Context, call machinepool.Call, req any) (any, error)
}

func answerOf[R any](ctx context.Context, s *scriptedPool, call machinepool.Call, req any) (*R, error) {
	response, err := s.answer(ctx, call, req)
	typed, _ := response.(*R)
	return typed, err
}

func (s *scriptedPool) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	return answerOf[pooldriver.Response](ctx, s, machinepool.CreatePool, req)
}

func (s *scriptedPool) UpdatePool(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return answerOf[pooldriver.Response](ctx, s, machinepool.UpdatePool, req)
}

func (s *scriptedPool) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return answerOf[pooldriver.Response](ctx, s, machinepool.ScalePool, req)
}

func (s *scriptedPool) GetPoolStatus(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
	return answerOf[pooldriver.GetPoolStatusResponse](ctx, s, machinepool.GetPoolStatus, req)
}

func (s *scriptedPool) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	return answerOf[pooldriver.Response](ctx, s, machinepool.DeletePool, req)
}

func (s *scriptedPool) DeleteInstances(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	return answerOf[pooldriver.Response](ctx, s, machinepool.DeleteInstances, req)
}

func (s *scriptedPool) ReplaceInstance(ctx context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	return answerOf[pooldriver.Response](ctx, s, machinepool.ReplaceInstance, req)
}

func (s *scriptedPool) InstancesDrained(ctx context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	return answerOf[pooldriver.Response](ctx, s, machinepool.InstancesDrained, req)
}

func (s *scriptedPool) ListPools(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
	return answerOf[pooldriver.ListPoolsResponse](ctx, s, machinepool.ListPools, req)
}

func (s *scriptedPool) PoolFeatures() machinepool.Features {
	return machinepool.Features{DeleteInstances: true}
}

// asked has the arguments of a call to a pool driver.
type asked struct {
	pooldriver.Request
	n   int32
	ids []string
}

var wholeAsk = asked{Request: pooldriver.Request{Pool: aPool, Class: aClass, Secret: aSecret}, n: 3, ids: []string{"a"}}

// askPool makes a call, without a request if with is nil. The answer is nil if the driver's is.
func askPool(ctx context.Context, d pooldriver.Driver, call machinepool.Call, with *asked) (any, error) {
	if with == nil {
		return askNothing(ctx, d, call)
	}
	base := with.Request
	switch call {
	case machinepool.ListPools:
		return some(lister(d).ListPools(ctx, &pooldriver.ListPoolsRequest{Class: base.Class, Secret: base.Secret}))
	case machinepool.CreatePool:
		return some(d.CreatePool(ctx, &pooldriver.CreatePoolRequest{Request: base, Replicas: with.n, Bootstrap: &machine.Secret{}}))
	case machinepool.UpdatePool:
		return some(d.UpdatePool(ctx, &pooldriver.UpdatePoolRequest{Request: base}))
	case machinepool.ScalePool:
		return some(d.ScalePool(ctx, &pooldriver.ScalePoolRequest{Request: base, To: with.n}))
	case machinepool.GetPoolStatus:
		return some(d.GetPoolStatus(ctx, &pooldriver.GetPoolStatusRequest{Request: base}))
	case machinepool.DeletePool:
		return some(d.DeletePool(ctx, &pooldriver.DeletePoolRequest{Request: base}))
	case machinepool.DeleteInstances:
		return some(d.DeleteInstances(ctx, &pooldriver.DeleteInstancesRequest{Request: base, ProviderIDs: with.ids}))
	case machinepool.ReplaceInstance:
		return some(d.ReplaceInstance(ctx, &pooldriver.ReplaceInstanceRequest{Request: base, ProviderID: with.ids[0]}))
	default:
		return some(d.InstancesDrained(ctx, &pooldriver.InstancesDrainedRequest{Request: base, ProviderIDs: with.ids}))
	}
}

func askNothing(ctx context.Context, d pooldriver.Driver, call machinepool.Call) (any, error) {
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

// lister returns the outermost layer of d that lists pools; if there is none, one that says so.
func lister(d pooldriver.Driver) pooldriver.Lister {
	if l, ok := pooldriver.As[pooldriver.Lister](d); ok {
		return l
	}
	return pooldriver.Validate(d, nil).(pooldriver.Lister)
}

func some[R any](r *R, err error) (any, error) {
	if r == nil {
		return nil, err
	}
	return r, err
}

// wholePool is a valid answer.
func wholePool(call machinepool.Call) any {
	if call == machinepool.GetPoolStatus {
		return &pooldriver.GetPoolStatusResponse{GroupID: "g", Target: 2, Instances: []machinepool.Instance{{ProviderID: "a"}, {ProviderID: "b"}}}
	}
	if call == machinepool.ListPools {
		return &pooldriver.ListPoolsResponse{Groups: map[string]object.Key{"g": aPool.Key}}
	}
	return &pooldriver.Response{GroupID: "g"}
}

func answeringPool(answer func(machinepool.Call) any, err error) *scriptedPool {
	return &scriptedPool{answer: func(_ context.Context, call machinepool.Call, _ any) (any, error) { return answer(call), err }}
}

var (
	aClass  = &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}}
	aSecret = &machine.Secret{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "boot"}},
		Data: map[string][]byte{"token": []byte("hush-hush"), machine.UserData: []byte("join --with hush-hush")},
	}
)
