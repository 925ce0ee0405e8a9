package drivertest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

// find returns the VMs of a machine in a cluster: the one with the machine's ID, if one is recorded,
// else those with its name, oldest first, except those that are marked with another UID.
func (m *Memory) find(of *machine.Machine, cluster string) []*MemoryVM {
	if id := of.Spec.ProviderID; id != "" {
		if vm := m.vms[id]; vm != nil && vm.Cluster == cluster {
			return []*MemoryVM{vm}
		}
		return nil
	}
	return slices.DeleteFunc(m.named(of.Name, cluster), func(vm *MemoryVM) bool {
		return vm.UID != "" && of.UID != "" && vm.UID != of.UID
	})
}

func (m *Memory) named(name, cluster string) []*MemoryVM {
	var found []*MemoryVM
	for _, vm := range m.ordered {
		if vm.Name == name && vm.Cluster == cluster {
			found = append(found, vm)
		}
	}
	return found
}

// one returns the VM that find finds, or an error if there is none, or more than one.
func (m *Memory) one(of *machine.Machine, cluster string) (*MemoryVM, error) {
	found := m.find(of, cluster)
	switch len(found) {
	case 0:
		return nil, codes.Newf(codes.NotFound, "cluster %q has no VM of machine %s", cluster, of.Name)
	case 1:
		return found[0], nil
	}
	return nil, codes.Newf(codes.OutOfRange, "cluster %q has %d VMs of machine %s", cluster, len(found), of.Name)
}

func (vm *MemoryVM) addresses() []machine.Address {
	return []machine.Address{{Type: "Hostname", Value: vm.Name}}
}

// CreateMachine implements driver.Driver. Of several VMs of the name, it adopts
// the oldest, and marks it with the machine's UID.
func (m *Memory) CreateMachine(
	ctx context.Context, req *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	return serve(ctx, m, codes.CreateMachine, func() (*driver.CreateMachineResponse, error) {
		spec, err := m.admitMachine(req.Machine, req.Class, req.Secret)
		if err != nil {
			return nil, err
		}
		var vm *MemoryVM
		if found := m.named(req.Machine.Name, spec.Cluster); len(found) > 0 {
			vm = found[0]
		} else {
			vm = m.add(MemoryVM{
				Name: req.Machine.Name, Cluster: spec.Cluster, Size: spec.Size, Tags: maps.Clone(spec.Tags),
				Initialized: !m.options.NeedsInitialization,
			})
		}
		if vm.Size != spec.Size {
			return nil, codes.Newf(codes.AlreadyExists, "the VM of machine %s is %s, not %s", vm.Name, vm.Size, spec.Size)
		}
		vm.UID = cmp.Or(req.Machine.UID, vm.UID)
		return &driver.CreateMachineResponse{
			ProviderID: vm.ID, NodeName: vm.Name, Addresses: vm.addresses(), LastKnownState: "made",
		}, nil
	})
}

// InitializeMachine implements driver.Driver.
func (m *Memory) InitializeMachine(
	ctx context.Context, req *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	return serve(ctx, m, codes.InitializeMachine, func() (*driver.InitializeMachineResponse, error) {
		spec, err := m.admitMachine(req.Machine, req.Class, req.Secret)
		if err != nil {
			return nil, err
		}
		vm, err := m.one(req.Machine, spec.Cluster)
		if err != nil {
			return nil, err
		}
		vm.Initialized = true
		return &driver.InitializeMachineResponse{ProviderID: vm.ID, NodeName: vm.Name, Addresses: vm.addresses()}, nil
	})
}

// DeleteMachine implements driver.Driver. Without a provider ID it deletes
// every VM of the name that is not marked with another UID.
func (m *Memory) DeleteMachine(
	ctx context.Context, req *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	return serve(ctx, m, codes.DeleteMachine, func() (*driver.DeleteMachineResponse, error) {
		spec, err := m.admitMachine(req.Machine, req.Class, req.Secret)
		if err != nil {
			return nil, err
		}
		for _, vm := range m.find(req.Machine, spec.Cluster) {
			m.remove(vm.ID)
		}
		return &driver.DeleteMachineResponse{LastKnownState: "deleted"}, nil
	})
}

// GetMachineStatus implements driver.Driver.
func (m *Memory) GetMachineStatus(
	ctx context.Context, req *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	return serve(ctx, m, codes.GetMachineStatus, func() (*driver.GetMachineStatusResponse, error) {
		spec, err := m.admitMachine(req.Machine, req.Class, req.Secret)
		if err != nil {
			return nil, err
		}
		vm, err := m.one(req.Machine, spec.Cluster)
		if err != nil {
			return nil, err
		}
		found := &driver.GetMachineStatusResponse{
			ProviderID: vm.ID, NodeName: vm.Name, Addresses: vm.addresses(), Unhealthy: vm.Unhealthy,
		}
		if !vm.Initialized {
			return found, codes.Newf(codes.Uninitialized, "the VM of machine %s has to be initialized", vm.Name)
		}
		return found, nil
	})
}

// ListMachines implements driver.Driver.
func (m *Memory) ListMachines(
	ctx context.Context, req *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	return serve(ctx, m, codes.ListMachines, func() (*driver.ListMachinesResponse, error) {
		spec, err := m.Admit(req.Class, req.Secret)
		if err != nil {
			return nil, err
		}
		machines, unhealthy := map[string]string{}, map[string]bool{}
		for id, vm := range m.vms {
			if vm.Cluster != spec.Cluster {
				continue
			}
			machines[id] = vm.Name
			if vm.Unhealthy != "" {
				unhealthy[id] = true
			}
		}
		return &driver.ListMachinesResponse{Machines: machines, Unhealthy: unhealthy}, nil
	})
}

// GetVolumeIDs implements driver.Driver. It knows volumes of the type
// MemoryVolumes.
func (m *Memory) GetVolumeIDs(
	ctx context.Context, req *driver.GetVolumeIDsRequest,
) (*driver.GetVolumeIDsResponse, error) {
	return serve(ctx, m, codes.GetVolumeIDs, func() (*driver.GetVolumeIDsResponse, error) {
		known := &driver.GetVolumeIDsResponse{}
		for _, v := range req.Volumes {
			if v.Type == MemoryVolumes && v.Handle != "" && !slices.Contains(known.VolumeIDs, v.Handle) {
				known.VolumeIDs = append(known.VolumeIDs, v.Handle)
			}
		}
		return known, nil
	})
}

// GenerateMachineClassForMigration implements driver.Driver. The older kind of class that it converts is
// a plain MemorySpec.
func (m *Memory) GenerateMachineClassForMigration(
	ctx context.Context, req *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	call := codes.GenerateMachineClassForMigration
	return serve(ctx, m, call, func() (*driver.GenerateMachineClassForMigrationResponse, error) {
		spec, ok := req.ProviderSpecificClass.(MemorySpec)
		if !ok {
			return nil, codes.Newf(codes.Unimplemented, "no class of kind %q can be migrated", req.ClassRef.Kind)
		}
		req.Class.Provider, req.Class.ProviderSpec = MemoryProvider, spec.Encode()
		return &driver.GenerateMachineClassForMigrationResponse{}, nil
	})
}

// UpdateMachine implements driver.Driver. Tags can be changed, sizes not. Tags that neither spec
// names stay.
func (m *Memory) UpdateMachine(
	ctx context.Context, req *driver.UpdateMachineRequest,
) (*driver.UpdateMachineResponse, error) {
	return serve(ctx, m, codes.UpdateMachine, func() (*driver.UpdateMachineResponse, error) {
		spec, err := m.admitMachine(req.Machine, req.Class, req.Secret)
		if err != nil {
			return nil, err
		}
		last, err := decodeSpec(req.LastApplied)
		if err != nil {
			return nil, err
		}
		wanted, err := decodeSpec(req.Wanted)
		if err != nil {
			return nil, err
		}
		vm, err := m.one(req.Machine, spec.Cluster)
		switch {
		case err != nil:
			return nil, err
		case wanted.Cluster != vm.Cluster || wanted.Size != vm.Size:
			return nil, codes.Newf(codes.Unimplemented, "the VM of machine %s can change its tags only", vm.Name)
		}
		if vm.Tags == nil {
			vm.Tags = make(map[string]string, len(wanted.Tags))
		}
		maps.DeleteFunc(vm.Tags, func(key, _ string) bool { _, ours := last.Tags[key]; return ours })
		maps.Copy(vm.Tags, wanted.Tags)
		return &driver.UpdateMachineResponse{LastKnownState: "updated"}, nil
	})
}
