package sim

import (
	"context"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/clock"
	"github.com/millwright-go/millwright/sim/preview"
)

// modelDriver is the driver of a preview. Its calls take the times of the model, and it makes VMs
// from any class: what a provider spec says means nothing to it.
type modelDriver struct {
	*drivertest.Memory
	clock *clock.Clock
	model *preview.Model
	class *machine.Class // what the simulated provider sees instead
}

func newModelDriver(w *World, m *preview.Model) modelDriver {
	return modelDriver{w.provider, w.clock, m, w.provider.Class(object.Key{Name: "any"}, drivertest.MemorySpec{Cluster: clusterName, Size: "any"})}
}

// UpdatableFields implements driver.FieldUpdater.
func (d modelDriver) UpdatableFields() []string { return d.model.Updatable }

// CreateMachine implements driver.Driver.
func (d modelDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	r := *req
	r.Class = d.class
	return d.Memory.CreateMachine(ctx, &r)
}

// InitializeMachine implements driver.Driver.
func (d modelDriver) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	r := *req
	r.Class = d.class
	return d.Memory.InitializeMachine(ctx, &r)
}

// DeleteMachine implements driver.Driver.
func (d modelDriver) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	r := *req
	r.Class = d.class
	d.clock.Pause(d.model.Delete)
	return d.Memory.DeleteMachine(ctx, &r)
}

// GetMachineStatus implements driver.Driver.
func (d modelDriver) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	r := *req
	r.Class = d.class
	return d.Memory.GetMachineStatus(ctx, &r)
}

// ListMachines implements driver.Driver.
func (d modelDriver) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	r := *req
	r.Class = d.class
	return d.Memory.ListMachines(ctx, &r)
}

// UpdateMachine implements driver.Driver.
func (d modelDriver) UpdateMachine(context.Context, *driver.UpdateMachineRequest) (*driver.UpdateMachineResponse, error) {
	d.clock.Pause(d.model.UpdateVM)
	return &driver.UpdateMachineResponse{}, nil
}
