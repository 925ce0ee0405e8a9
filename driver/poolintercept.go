package driver

import (
	"context"
	"slices"

	"github.com/millwright-go/millwright/machinepool"
)

// InterceptPool returns a pool driver that takes each call of d through the
// interceptors, as Intercept does.
func InterceptPool(d PoolDriver, with ...Interceptor) PoolDriver {
	return &interceptedPool{inner: d, with: slices.Clone(with)}
}

// interceptedPool is every decorator that needs no look at requests and responses.
type interceptedPool struct {
	inner PoolDriver
	with  []Interceptor
}

// Unwrap returns the driver that is decorated.
func (i *interceptedPool) Unwrap() PoolDriver { return i.inner }

// invokePool makes one call of a PoolDriver.
func invokePool[Q poolRequest, R any](
	ctx context.Context, i *interceptedPool, method machinepool.Call, req Q, call func(context.Context, Q) (*R, error),
) (*R, error) {
	return Invoke(ctx, i.with, poolInfo(method, baseOf(req)), req, call)
}

// CreatePool implements PoolDriver.
func (i *interceptedPool) CreatePool(ctx context.Context, req *CreatePoolRequest) (*PoolResponse, error) {
	return invokePool(ctx, i, machinepool.CreatePool, req, i.inner.CreatePool)
}

// UpdatePool implements PoolDriver.
func (i *interceptedPool) UpdatePool(ctx context.Context, req *UpdatePoolRequest) (*PoolResponse, error) {
	return invokePool(ctx, i, machinepool.UpdatePool, req, i.inner.UpdatePool)
}

// ScalePool implements PoolDriver.
func (i *interceptedPool) ScalePool(ctx context.Context, req *ScalePoolRequest) (*PoolResponse, error) {
	return invokePool(ctx, i, machinepool.ScalePool, req, i.inner.ScalePool)
}

// GetPoolStatus implements PoolDriver.
func (i *interceptedPool) GetPoolStatus(ctx context.Context, req *GetPoolStatusRequest) (*GetPoolStatusResponse, error) {
	return invokePool(ctx, i, machinepool.GetPoolStatus, req, i.inner.GetPoolStatus)
}

// DeletePool implements PoolDriver.
func (i *interceptedPool) DeletePool(ctx context.Context, req *DeletePoolRequest) (*PoolResponse, error) {
	return invokePool(ctx, i, machinepool.DeletePool, req, i.inner.DeletePool)
}

// DeleteInstances implements PoolDriver.
func (i *interceptedPool) DeleteInstances(ctx context.Context, req *DeleteInstancesRequest) (*PoolResponse, error) {
	return invokePool(ctx, i, machinepool.DeleteInstances, req, i.inner.DeleteInstances)
}

// ReplaceInstance implements PoolDriver.
func (i *interceptedPool) ReplaceInstance(ctx context.Context, req *ReplaceInstanceRequest) (*PoolResponse, error) {
	return invokePool(ctx, i, machinepool.ReplaceInstance, req, i.inner.ReplaceInstance)
}

// InstancesDrained implements PoolDriver.
func (i *interceptedPool) InstancesDrained(ctx context.Context, req *InstancesDrainedRequest) (*PoolResponse, error) {
	return invokePool(ctx, i, machinepool.InstancesDrained, req, i.inner.InstancesDrained)
}

// ListPools implements PoolLister.
func (i *interceptedPool) ListPools(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
	return invokePool(ctx, i, machinepool.ListPools, req, func(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
		return listPools(ctx, i.inner, req)
	})
}
