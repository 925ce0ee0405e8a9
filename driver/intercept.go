package driver

import (
	"context"
	"slices"

	"github.com/millwright-go/millwright/codes"
)

// Interceptor does something around each call. next makes the call, with the given context, and
// returns its error. The interceptor does not see the response. An interceptor that returns nil
// must have called next. It may call next again; the last response counts. next must have returned
// before the interceptor does. Several calls may be in it at the same time.
type Interceptor func(ctx context.Context, call CallInfo, next func(context.Context) error) error

// Intercept returns a driver that passes each call of d through the interceptors. The first is the
// outermost.
func Intercept(d Driver, with ...Interceptor) Driver {
	return &intercepted{inner: d, with: slices.Clone(with)}
}

// Invoke makes one call through interceptors, of which the first is the outermost. Intercept uses
// it, and so does pooldriver.Intercept.
func Invoke[Q, R any](
	ctx context.Context, with []Interceptor, info CallInfo, req Q, call func(context.Context, Q) (*R, error),
) (*R, error) {
	var response *R
	err := passed(ctx, with, info, func(ctx context.Context) (err error) {
		response, err = call(ctx, req)
		return err
	})
	return response, err
}

// passed makes a call through interceptors.
func passed(ctx context.Context, with []Interceptor, info CallInfo, call func(context.Context) error) error {
	if len(with) == 0 {
		return call(ctx)
	}
	return with[0](ctx, info, func(ctx context.Context) error { return passed(ctx, with[1:], info, call) })
}

// intercepted is the driver that Intercept and Track return. It has either interceptors or calls.
type intercepted struct {
	inner Driver
	with  []Interceptor
	calls *Calls // nil: they are not tracked
}

// Unwrap returns the driver that is decorated.
func (i *intercepted) Unwrap() Driver { return i.inner }

// invoke makes one call of a Driver.
func invoke[Q request, R any](
	ctx context.Context, i *intercepted, req Q, call func(context.Context, Q) (*R, error),
) (*R, error) {
	c := req.content()
	if i.calls == nil {
		return Invoke(ctx, i.with, c.info(), req, call)
	}
	uid := ""
	if c.machine != nil {
		uid = c.machine.UID
	}
	return Tracked(ctx, i.calls, c.info(), uid, c.method == codes.CreateMachine, req, call)
}

// CreateMachine implements Driver.
func (i *intercepted) CreateMachine(ctx context.Context, req *CreateMachineRequest) (*CreateMachineResponse, error) {
	return invoke(ctx, i, req, i.inner.CreateMachine)
}

// InitializeMachine implements Driver.
func (i *intercepted) InitializeMachine(
	ctx context.Context, req *InitializeMachineRequest,
) (*InitializeMachineResponse, error) {
	return invoke(ctx, i, req, i.inner.InitializeMachine)
}

// DeleteMachine implements Driver.
func (i *intercepted) DeleteMachine(ctx context.Context, req *DeleteMachineRequest) (*DeleteMachineResponse, error) {
	return invoke(ctx, i, req, i.inner.DeleteMachine)
}

// GetMachineStatus implements Driver.
func (i *intercepted) GetMachineStatus(
	ctx context.Context, req *GetMachineStatusRequest,
) (*GetMachineStatusResponse, error) {
	return invoke(ctx, i, req, i.inner.GetMachineStatus)
}

// ListMachines implements Driver.
func (i *intercepted) ListMachines(ctx context.Context, req *ListMachinesRequest) (*ListMachinesResponse, error) {
	return invoke(ctx, i, req, i.inner.ListMachines)
}

// GetVolumeIDs implements Driver.
func (i *intercepted) GetVolumeIDs(ctx context.Context, req *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error) {
	return invoke(ctx, i, req, i.inner.GetVolumeIDs)
}

// GenerateMachineClassForMigration implements Driver.
func (i *intercepted) GenerateMachineClassForMigration(
	ctx context.Context, req *GenerateMachineClassForMigrationRequest,
) (*GenerateMachineClassForMigrationResponse, error) {
	return invoke(ctx, i, req, i.inner.GenerateMachineClassForMigration)
}

// UpdateMachine implements Driver.
func (i *intercepted) UpdateMachine(ctx context.Context, req *UpdateMachineRequest) (*UpdateMachineResponse, error) {
	return invoke(ctx, i, req, i.inner.UpdateMachine)
}
