package pooldriver

import (
	"context"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
)

// UnimplementedPools answers every call with UNIMPLEMENTED. A pool driver embeds it and adds the
// calls that it supports.
type UnimplementedPools struct{}

var _ Driver = UnimplementedPools{}

func unimplemented(call machinepool.Call) (*Response, error) {
	return nil, codes.New(codes.Unimplemented, "this driver has no "+call.String())
}

// CreatePool implements Driver.
func (UnimplementedPools) CreatePool(context.Context, *CreatePoolRequest) (*Response, error) {
	return unimplemented(machinepool.CreatePool)
}

// UpdatePool implements Driver.
func (UnimplementedPools) UpdatePool(context.Context, *UpdatePoolRequest) (*Response, error) {
	return unimplemented(machinepool.UpdatePool)
}

// ScalePool implements Driver.
func (UnimplementedPools) ScalePool(context.Context, *ScalePoolRequest) (*Response, error) {
	return unimplemented(machinepool.ScalePool)
}

// GetPoolStatus implements Driver.
func (UnimplementedPools) GetPoolStatus(context.Context, *GetPoolStatusRequest) (*GetPoolStatusResponse, error) {
	_, err := unimplemented(machinepool.GetPoolStatus)
	return nil, err
}

// DeletePool implements Driver.
func (UnimplementedPools) DeletePool(context.Context, *DeletePoolRequest) (*Response, error) {
	return unimplemented(machinepool.DeletePool)
}

// DeleteInstances implements Driver.
func (UnimplementedPools) DeleteInstances(context.Context, *DeleteInstancesRequest) (*Response, error) {
	return unimplemented(machinepool.DeleteInstances)
}

// ReplaceInstance implements Driver.
func (UnimplementedPools) ReplaceInstance(context.Context, *ReplaceInstanceRequest) (*Response, error) {
	return unimplemented(machinepool.ReplaceInstance)
}

// InstancesDrained implements Driver.
func (UnimplementedPools) InstancesDrained(context.Context, *InstancesDrainedRequest) (*Response, error) {
	return unimplemented(machinepool.InstancesDrained)
}
