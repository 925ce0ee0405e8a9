package pooldriver

import (
	"context"
	"slices"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
)

// Intercept returns a pool driver that takes each call of d through the
// interceptors, as driver.Intercept does.
func Intercept(d Driver, with ...driver.Interceptor) Driver {
	return &intercepted{inner: d, with: slices.Clone(with)}
}

// Track returns a pool driver whose calls are those of c, as driver.Track does. The set may be the
// one of a driver of machines.
func Track(d Driver, c *driver.Calls) Driver { return &intercepted{inner: d, calls: c} }

// intercepted is the driver that Intercept and Track return. It has either interceptors or calls.
type intercepted struct {
	inner Driver
	with  []driver.Interceptor
	calls *driver.Calls // of Track; nil: of Intercept
}

// Unwrap returns the driver that is decorated.
func (i *intercepted) Unwrap() Driver { return i.inner }

// invoke makes one call.
func invoke[Q request, R any](
	ctx context.Context, i *intercepted, method machinepool.Call, req Q, call func(context.Context, Q) (*R, error),
) (*R, error) {
	base := baseOf(req)
	if i.calls == nil {
		return driver.Invoke(ctx, i.with, infoOf(method, base), req, call)
	}
	uid := ""
	if base != nil && base.Pool != nil {
		uid = base.Pool.UID
	}
	return driver.Tracked(ctx, i.calls, infoOf(method, base), uid, method == machinepool.CreatePool, req, call)
}

// CreatePool implements Driver.
func (i *intercepted) CreatePool(ctx context.Context, req *CreatePoolRequest) (*Response, error) {
	return invoke(ctx, i, machinepool.CreatePool, req, i.inner.CreatePool)
}

// UpdatePool implements Driver.
func (i *intercepted) UpdatePool(ctx context.Context, req *UpdatePoolRequest) (*Response, error) {
	return invoke(ctx, i, machinepool.UpdatePool, req, i.inner.UpdatePool)
}

// ScalePool implements Driver.
func (i *intercepted) ScalePool(ctx context.Context, req *ScalePoolRequest) (*Response, error) {
	return invoke(ctx, i, machinepool.ScalePool, req, i.inner.ScalePool)
}

// GetPoolStatus implements Driver.
func (i *intercepted) GetPoolStatus(ctx context.Context, req *GetPoolStatusRequest) (*GetPoolStatusResponse, error) {
	return invoke(ctx, i, machinepool.GetPoolStatus, req, i.inner.GetPoolStatus)
}

// DeletePool implements Driver.
func (i *intercepted) DeletePool(ctx context.Context, req *DeletePoolRequest) (*Response, error) {
	return invoke(ctx, i, machinepool.DeletePool, req, i.inner.DeletePool)
}

// DeleteInstances implements Driver.
func (i *intercepted) DeleteInstances(ctx context.Context, req *DeleteInstancesRequest) (*Response, error) {
	return invoke(ctx, i, machinepool.DeleteInstances, req, i.inner.DeleteInstances)
}

// ReplaceInstance implements Driver.
func (i *intercepted) ReplaceInstance(ctx context.Context, req *ReplaceInstanceRequest) (*Response, error) {
	return invoke(ctx, i, machinepool.ReplaceInstance, req, i.inner.ReplaceInstance)
}

// InstancesDrained implements Driver.
func (i *intercepted) InstancesDrained(ctx context.Context, req *InstancesDrainedRequest) (*Response, error) {
	return invoke(ctx, i, machinepool.InstancesDrained, req, i.inner.InstancesDrained)
}

// ListPools implements Lister.
func (i *intercepted) ListPools(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
	return invoke(ctx, i, machinepool.ListPools, req, func(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
		return list(ctx, i.inner, req)
	})
}
