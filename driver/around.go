package driver

import "context"

// Step is what a decorator does around one call. next makes the call, with the
// context that it should have, and returns its error; the response passes by
// unseen. A step that returns nil must have called next. It may call next
// again; the last response counts. next must have returned before the step
// does.
type Step func(ctx context.Context, s Subject, next func(context.Context) error) error

// Around returns a driver that takes each call of d through step. Several calls
// may be in it at the same time.
func Around(d Driver, step Step) Driver { return &around{inner: d, step: step} }

// around is every decorator that needs no look at requests and responses.
type around struct {
	inner Driver
	step  Step
}

// Unwrap returns the driver that is decorated.
func (a *around) Unwrap() Driver { return a.inner }

// through makes one call by way of the step.
func through[Q request, R any](
	ctx context.Context, a *around, req Q, call func(context.Context, Q) (*R, error),
) (*R, error) {
	var response *R
	err := a.step(ctx, req.content().subject(), func(ctx context.Context) (err error) {
		response, err = call(ctx, req)
		return err
	})
	return response, err
}

// CreateMachine implements Driver.
func (a *around) CreateMachine(ctx context.Context, req *CreateMachineRequest) (*CreateMachineResponse, error) {
	return through(ctx, a, req, a.inner.CreateMachine)
}

// InitializeMachine implements Driver.
func (a *around) InitializeMachine(
	ctx context.Context, req *InitializeMachineRequest,
) (*InitializeMachineResponse, error) {
	return through(ctx, a, req, a.inner.InitializeMachine)
}

// DeleteMachine implements Driver.
func (a *around) DeleteMachine(ctx context.Context, req *DeleteMachineRequest) (*DeleteMachineResponse, error) {
	return through(ctx, a, req, a.inner.DeleteMachine)
}

// GetMachineStatus implements Driver.
func (a *around) GetMachineStatus(
	ctx context.Context, req *GetMachineStatusRequest,
) (*GetMachineStatusResponse, error) {
	return through(ctx, a, req, a.inner.GetMachineStatus)
}

// ListMachines implements Driver.
func (a *around) ListMachines(ctx context.Context, req *ListMachinesRequest) (*ListMachinesResponse, error) {
	return through(ctx, a, req, a.inner.ListMachines)
}

// GetVolumeIDs implements Driver.
func (a *around) GetVolumeIDs(ctx context.Context, req *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error) {
	return through(ctx, a, req, a.inner.GetVolumeIDs)
}

// GenerateMachineClassForMigration implements Driver.
func (a *around) GenerateMachineClassForMigration(
	ctx context.Context, req *GenerateMachineClassForMigrationRequest,
) (*GenerateMachineClassForMigrationResponse, error) {
	return through(ctx, a, req, a.inner.GenerateMachineClassForMigration)
}

// UpdateMachine implements Driver.
func (a *around) UpdateMachine(ctx context.Context, req *UpdateMachineRequest) (*UpdateMachineResponse, error) {
	return through(ctx, a, req, a.inner.UpdateMachine)
}
