package driver

import (
	"context"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
)

// UnimplementedPool answers every call with UNIMPLEMENTED. A pool driver embeds
// it and brings the calls that it supports.
type UnimplementedPool struct{}

var _ PoolDriver = UnimplementedPool{}

func noSuchCall(call machinepool.Call) (*PoolResponse, error) {
	return nil, codes.New(codes.Unimplemented, "this driver has no "+call.String())
}

// CreatePool implements PoolDriver.
func (UnimplementedPool) CreatePool(context.Context, *CreatePoolRequest) (*PoolResponse, error) {
	return noSuchCall(machinepool.CreatePool)
}

// UpdatePool implements PoolDriver.
func (UnimplementedPool) UpdatePool(context.Context, *UpdatePoolRequest) (*PoolResponse, error) {
	return noSuchCall(machinepool.UpdatePool)
}

// ScalePool implements PoolDriver.
func (UnimplementedPool) ScalePool(context.Context, *ScalePoolRequest) (*PoolResponse, error) {
	return noSuchCall(machinepool.ScalePool)
}

// GetPoolStatus implements PoolDriver.
func (UnimplementedPool) GetPoolStatus(context.Context, *GetPoolStatusRequest) (*GetPoolStatusResponse, error) {
	_, err := noSuchCall(machinepool.GetPoolStatus)
	return nil, err
}

// DeletePool implements PoolDriver.
func (UnimplementedPool) DeletePool(context.Context, *DeletePoolRequest) (*PoolResponse, error) {
	return noSuchCall(machinepool.DeletePool)
}

// DeleteInstances implements PoolDriver.
func (UnimplementedPool) DeleteInstances(context.Context, *DeleteInstancesRequest) (*PoolResponse, error) {
	return noSuchCall(machinepool.DeleteInstances)
}

// ReplaceInstance implements PoolDriver.
func (UnimplementedPool) ReplaceInstance(context.Context, *ReplaceInstanceRequest) (*PoolResponse, error) {
	return noSuchCall(machinepool.ReplaceInstance)
}

// InstancesDrained implements PoolDriver.
func (UnimplementedPool) InstancesDrained(context.Context, *InstancesDrainedRequest) (*PoolResponse, error) {
	return noSuchCall(machinepool.InstancesDrained)
}
