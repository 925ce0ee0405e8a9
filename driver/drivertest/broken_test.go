package drivertest

import (
	"context"
	"sync"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

// broken is a Memory with some calls done differently.
type broken struct {
	*Memory
	// around, if set, is asked about each call before any of those below.
	around     func(ctx context.Context, call codes.Call, next func(context.Context) error) error
	create     func(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error)
	initialize func(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error)
	remove     func(context.Context, *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error)
	status     func(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error)
	list       func(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error)
	volumes    func(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error)
	update     func(context.Context, *driver.UpdateMachineRequest) (*driver.UpdateMachineResponse, error)
	migrate    func(
		context.Context, *driver.GenerateMachineClassForMigrationRequest,
	) (*driver.GenerateMachineClassForMigrationResponse, error)
	failAfter func(codes.Call, error)

	asked sync.Map
	end   <-chan struct{} // of the test
}

func newBroken(m *Memory) *broken {
	return &broken{
		Memory: m,
		around: func(ctx context.Context, _ codes.Call, next func(context.Context) error) error { return next(ctx) },
		create: m.CreateMachine, initialize: m.InitializeMachine, remove: m.DeleteMachine, status: m.GetMachineStatus,
		list: m.ListMachines, volumes: m.GetVolumeIDs, update: m.UpdateMachine,
		migrate: m.GenerateMachineClassForMigration, failAfter: m.FailAfter,
	}
}

func aside[Q, R any](
	ctx context.Context, b *broken, call codes.Call, req *Q, do func(context.Context, *Q) (*R, error),
) (response *R, err error) {
	err = b.around(ctx, call, func(ctx context.Context) (err error) {
		response, err = do(ctx, req)
		return err
	})
	return response, err
}

func (b *broken) CreateMachine(
	ctx context.Context, req *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	return aside(ctx, b, codes.CreateMachine, req, b.create)
}

func (b *broken) InitializeMachine(
	ctx context.Context, req *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	return aside(ctx, b, codes.InitializeMachine, req, b.initialize)
}

func (b *broken) DeleteMachine(
	ctx context.Context, req *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	return aside(ctx, b, codes.DeleteMachine, req, b.remove)
}

func (b *broken) GetMachineStatus(
	ctx context.Context, req *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	return aside(ctx, b, codes.GetMachineStatus, req, b.status)
}

func (b *broken) ListMachines(
	ctx context.Context, req *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	return aside(ctx, b, codes.ListMachines, req, b.list)
}

func (b *broken) GetVolumeIDs(
	ctx context.Context, req *driver.GetVolumeIDsRequest,
) (*driver.GetVolumeIDsResponse, error) {
	return aside(ctx, b, codes.GetVolumeIDs, req, b.volumes)
}

func (b *broken) GenerateMachineClassForMigration(
	ctx context.Context, req *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return aside(ctx, b, codes.GenerateMachineClassForMigration, req, b.migrate)
}

func (b *broken) UpdateMachine(
	ctx context.Context, req *driver.UpdateMachineRequest,
) (*driver.UpdateMachineResponse, error) {
	return aside(ctx, b, codes.UpdateMachine, req, b.update)
}

func (b *broken) FailAfter(call codes.Call, err error) { b.failAfter(call, err) }

// spec reads the cluster of a request, for what a variant does by itself.
func spec(text []byte) MemorySpec {
	s, _ := decodeSpec(text)
	return s
}

// existing returns the VMs of a name in a cluster.
func (b *broken) existing(name string, s MemorySpec) []MemoryVM {
	var found []MemoryVM
	for _, vm := range b.VMs() {
		if vm.Name == name && vm.Cluster == s.Cluster {
			found = append(found, vm)
		}
	}
	return found
}

// seen reports whether it was asked about an ID before.
func (b *broken) seen(id string) bool {
	_, loaded := b.asked.LoadOrStore(id, true)
	return loaded
}
