package driver

import (
	"context"

	"github.com/millwright-go/millwright/machinepool"
)

// PoolStep is what a decorator does around one call, as a Step is for a Driver.
type PoolStep func(ctx context.Context, s PoolSubject, next func(context.Context) error) error

// AroundPool returns a pool driver that takes each call of d through step, as
// Around does.
func AroundPool(d PoolDriver, step PoolStep) PoolDriver { return &aroundPool{inner: d, step: step} }

// aroundPool is every decorator that needs no look at requests and responses.
type aroundPool struct {
	inner PoolDriver
	step  PoolStep
}

// Unwrap returns the driver that is decorated.
func (a *aroundPool) Unwrap() PoolDriver { return a.inner }

func (a *aroundPool) passesPoolsOn() {}

// throughPool makes one call by way of the step.
func throughPool[Q poolRequest, R any](
	ctx context.Context, a *aroundPool, method machinepool.Call, req Q, call func(context.Context, Q) (*R, error),
) (*R, error) {
	var response *R
	err := a.step(ctx, poolSubject(method, req), func(ctx context.Context) (err error) {
		response, err = call(ctx, req)
		return err
	})
	return response, err
}

// CreatePool implements PoolDriver.
func (a *aroundPool) CreatePool(ctx context.Context, req *CreatePoolRequest) (*PoolResponse, error) {
	return throughPool(ctx, a, machinepool.CreatePool, req, a.inner.CreatePool)
}

// UpdatePool implements PoolDriver.
func (a *aroundPool) UpdatePool(ctx context.Context, req *UpdatePoolRequest) (*PoolResponse, error) {
	return throughPool(ctx, a, machinepool.UpdatePool, req, a.inner.UpdatePool)
}

// ScalePool implements PoolDriver.
func (a *aroundPool) ScalePool(ctx context.Context, req *ScalePoolRequest) (*PoolResponse, error) {
	return throughPool(ctx, a, machinepool.ScalePool, req, a.inner.ScalePool)
}

// GetPoolStatus implements PoolDriver.
func (a *aroundPool) GetPoolStatus(ctx context.Context, req *GetPoolStatusRequest) (*GetPoolStatusResponse, error) {
	return throughPool(ctx, a, machinepool.GetPoolStatus, req, a.inner.GetPoolStatus)
}

// DeletePool implements PoolDriver.
func (a *aroundPool) DeletePool(ctx context.Context, req *DeletePoolRequest) (*PoolResponse, error) {
	return throughPool(ctx, a, machinepool.DeletePool, req, a.inner.DeletePool)
}

// DeleteInstances implements PoolDriver.
func (a *aroundPool) DeleteInstances(ctx context.Context, req *DeleteInstancesRequest) (*PoolResponse, error) {
	return throughPool(ctx, a, machinepool.DeleteInstances, req, a.inner.DeleteInstances)
}

// ReplaceInstance implements PoolDriver.
func (a *aroundPool) ReplaceInstance(ctx context.Context, req *ReplaceInstanceRequest) (*PoolResponse, error) {
	return throughPool(ctx, a, machinepool.ReplaceInstance, req, a.inner.ReplaceInstance)
}

// InstancesDrained implements PoolDriver.
func (a *aroundPool) InstancesDrained(ctx context.Context, req *InstancesDrainedRequest) (*PoolResponse, error) {
	return throughPool(ctx, a, machinepool.InstancesDrained, req, a.inner.InstancesDrained)
}

// ListPools implements PoolLister.
func (a *aroundPool) ListPools(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
	return throughPool(ctx, a, machinepool.ListPools, req, func(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
		return listPools(ctx, a.inner, req)
	})
}
