package sim

import (
	"context"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
)

// Provider is the simulated provider, and the driver for it. The calls of a driver that Options.Driver
// makes around it fail as often as Faults say, see World.Request. Its VMs join the cluster.
type Provider struct {
	*drivertest.Memory
	calls driver.Driver // to Memory, through all that may happen to them
}

func newProvider(d *ownCalls, c *machineCalls) *Provider {
	memory := c.vms.provider
	through := func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		return d.request(ctx, &request{
			what:     s.Method.String(),
			carryOut: func() error { return c.provide(ctx, next) },
			refusal:  func() error { return c.refusal(s) },
			lost:     func() error { return codes.New(codes.DeadlineExceeded, "the answer was lost") },
			late:     func() { c.late(ctx, s, next) },
		})
	}
	return &Provider{memory, driver.Intercept(watchedMachines{memory, c.vms}, through)}
}

// CreateMachine implements driver.Driver.
func (p *Provider) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return p.calls.CreateMachine(ctx, req)
}

// InitializeMachine implements driver.Driver.
func (p *Provider) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return p.calls.InitializeMachine(ctx, req)
}

// DeleteMachine implements driver.Driver.
func (p *Provider) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return p.calls.DeleteMachine(ctx, req)
}

// GetMachineStatus implements driver.Driver.
func (p *Provider) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return p.calls.GetMachineStatus(ctx, req)
}

// ListMachines implements driver.Driver.
func (p *Provider) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return p.calls.ListMachines(ctx, req)
}

// GetVolumeIDs implements driver.Driver.
func (p *Provider) GetVolumeIDs(ctx context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return p.calls.GetVolumeIDs(ctx, req)
}

// GenerateMachineClassForMigration implements driver.Driver.
func (p *Provider) GenerateMachineClassForMigration(
	ctx context.Context, req *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return p.calls.GenerateMachineClassForMigration(ctx, req)
}

// UpdateMachine implements driver.Driver.
func (p *Provider) UpdateMachine(ctx context.Context, req *driver.UpdateMachineRequest) (*driver.UpdateMachineResponse, error) {
	return p.calls.UpdateMachine(ctx, req)
}
