package driver

import (
	"context"

	"github.com/millwright-go/millwright/codes"
)

// Unimplemented answers every call with UNIMPLEMENTED. A driver embeds it and adds the calls that
// it supports.
type Unimplemented struct{}

var _ Driver = Unimplemented{}

func unimplemented(call codes.Call) error {
	return codes.New(codes.Unimplemented, "this driver has no "+call.String())
}

// CreateMachine implements Driver.
func (Unimplemented) CreateMachine(context.Context, *CreateMachineRequest) (*CreateMachineResponse, error) {
	return nil, unimplemented(codes.CreateMachine)
}

// InitializeMachine implements Driver.
func (Unimplemented) InitializeMachine(context.Context, *InitializeMachineRequest) (*InitializeMachineResponse, error) {
	return nil, unimplemented(codes.InitializeMachine)
}

// DeleteMachine implements Driver.
func (Unimplemented) DeleteMachine(context.Context, *DeleteMachineRequest) (*DeleteMachineResponse, error) {
	return nil, unimplemented(codes.DeleteMachine)
}

// GetMachineStatus implements Driver.
func (Unimplemented) GetMachineStatus(context.Context, *GetMachineStatusRequest) (*GetMachineStatusResponse, error) {
	return nil, unimplemented(codes.GetMachineStatus)
}

// ListMachines implements Driver.
func (Unimplemented) ListMachines(context.Context, *ListMachinesRequest) (*ListMachinesResponse, error) {
	return nil, unimplemented(codes.ListMachines)
}

// GetVolumeIDs implements Driver.
func (Unimplemented) GetVolumeIDs(context.Context, *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error) {
	return nil, unimplemented(codes.GetVolumeIDs)
}

// GenerateMachineClassForMigration implements Driver.
func (Unimplemented) GenerateMachineClassForMigration(
	context.Context, *GenerateMachineClassForMigrationRequest,
) (*GenerateMachineClassForMigrationResponse, error) {
	return nil, unimplemented(codes.GenerateMachineClassForMigration)
}

// UpdateMachine implements Driver.
func (Unimplemented) UpdateMachine(context.Context, *UpdateMachineRequest) (*UpdateMachineResponse, error) {
	return nil, unimplemented(codes.UpdateMachine)
}
