package drivertest

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
)

// These are the calls of a trial. They go to a driver through conformance.Call.

func (r *trial) create(ctx context.Context, m *machine.Machine) (*driver.CreateMachineResponse, error) {
	return r.createOf(ctx, m, r.setup.Class)
}

func (r *trial) createOf(
	ctx context.Context, m *machine.Machine, c *machine.Class,
) (*driver.CreateMachineResponse, error) {
	return r.createBy(ctx, r.setup.Driver, m, c)
}

// createBy creates with d: the driver under test, or a second one.
func (r *trial) createBy(
	ctx context.Context, d driver.Driver, m *machine.Machine, c *machine.Class,
) (*driver.CreateMachineResponse, error) {
	return conformance.Call(ctx, r.Trial, codes.CreateMachine, d.CreateMachine,
		func() *driver.CreateMachineRequest {
			return &driver.CreateMachineRequest{Machine: m.Clone(), Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) initialize(ctx context.Context, m *machine.Machine) (*driver.InitializeMachineResponse, error) {
	return r.initializeOf(ctx, m, r.setup.Class)
}

func (r *trial) initializeOf(
	ctx context.Context, m *machine.Machine, c *machine.Class,
) (*driver.InitializeMachineResponse, error) {
	return conformance.Call(ctx, r.Trial, codes.InitializeMachine, r.setup.Driver.InitializeMachine,
		func() *driver.InitializeMachineRequest {
			return &driver.InitializeMachineRequest{Machine: m.Clone(), Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) delete(ctx context.Context, m *machine.Machine) (*driver.DeleteMachineResponse, error) {
	return r.deleteOf(ctx, m, r.setup.Class)
}

func (r *trial) deleteOf(
	ctx context.Context, m *machine.Machine, c *machine.Class,
) (*driver.DeleteMachineResponse, error) {
	return conformance.Call(ctx, r.Trial, codes.DeleteMachine, r.setup.Driver.DeleteMachine,
		func() *driver.DeleteMachineRequest {
			return &driver.DeleteMachineRequest{Machine: m.Clone(), Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) status(ctx context.Context, m *machine.Machine) (*driver.GetMachineStatusResponse, error) {
	return r.statusOf(ctx, m, r.setup.Class)
}

func (r *trial) statusOf(
	ctx context.Context, m *machine.Machine, c *machine.Class,
) (*driver.GetMachineStatusResponse, error) {
	return conformance.Call(ctx, r.Trial, codes.GetMachineStatus, r.setup.Driver.GetMachineStatus,
		func() *driver.GetMachineStatusRequest {
			return &driver.GetMachineStatusRequest{Machine: m.Clone(), Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) list(ctx context.Context, c *machine.Class) (*driver.ListMachinesResponse, error) {
	return conformance.Call(ctx, r.Trial, codes.ListMachines, r.setup.Driver.ListMachines,
		func() *driver.ListMachinesRequest {
			return &driver.ListMachinesRequest{Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) volumes(ctx context.Context, volumes []driver.Volume) (*driver.GetVolumeIDsResponse, error) {
	return conformance.Call(ctx, r.Trial, codes.GetVolumeIDs, r.setup.Driver.GetVolumeIDs,
		func() *driver.GetVolumeIDsRequest {
			q := &driver.GetVolumeIDsRequest{Volumes: slices.Clone(volumes)}
			for i := range q.Volumes {
				q.Volumes[i].Attributes = maps.Clone(q.Volumes[i].Attributes)
				q.Volumes[i].Spec = bytes.Clone(q.Volumes[i].Spec)
			}
			return q
		})
}

func (r *trial) update(
	ctx context.Context, m *machine.Machine, last, wanted []byte,
) (*driver.UpdateMachineResponse, error) {
	return conformance.Call(ctx, r.Trial, codes.UpdateMachine, r.setup.Driver.UpdateMachine,
		func() *driver.UpdateMachineRequest {
			return &driver.UpdateMachineRequest{
				Machine: m.Clone(), Class: r.setup.Class.Clone(), Secret: r.secret(),
				LastApplied: bytes.Clone(last), Wanted: bytes.Clone(wanted),
			}
		})
}

// migrate passes on a request as it is: the call may change its class.
func (r *trial) migrate(
	q *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return conformance.Call(r.Ctx, r.Trial, codes.GenerateMachineClassForMigration, r.setup.Driver.GenerateMachineClassForMigration,
		func() *driver.GenerateMachineClassForMigrationRequest { return q })
}

func (r *trial) secret() *machine.Secret {
	if r.setup.Secret == nil {
		return nil
	}
	return r.setup.Secret.Clone()
}
