package mcm_test

import (
	"context"
	"encoding/json"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-go/millwright/adapters/mcm"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// cloud is a provider of machine-controller-manager with VMs in memory.
type cloud struct {
	*drivertest.Memory
	blind bool // GetMachineStatus is not implemented
}

// theirError converts an error of a driver to one of a provider.
func theirError(err error) error {
	if err == nil {
		return nil
	}
	return &theirStatus{code: int32(codes.Of(err)), message: codes.Message(err)}
}

func (q *machineRequest) machine() *machine.Machine {
	return &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: q.Machine.Namespace, Name: q.Machine.Name}},
		Spec: machine.Spec{ProviderID: q.Machine.Spec.ProviderID},
	}
}

func ourClass(c *theirClass) *machine.Class {
	return &machine.Class{Meta: object.Meta{Key: object.Key{Name: c.Name}}, Provider: c.Provider, ProviderSpec: c.ProviderSpec.Raw}
}

func ourSecret(s *corev1.Secret) *machine.Secret { return &machine.Secret{Data: s.Data} }

func theirAddresses(list []machine.Address) (out []corev1.NodeAddress) {
	for _, a := range list {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeAddressType(a.Type), Address: a.Value})
	}
	return out
}

func (c *cloud) CreateMachine(ctx context.Context, r *createRequest) (*createResponse, error) {
	q := machineRequest(*r)
	a, err := c.Memory.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: q.machine(), Class: ourClass(q.MachineClass), Secret: ourSecret(q.Secret)})
	if a == nil {
		return nil, theirError(err)
	}
	return &createResponse{a.ProviderID, a.NodeName, a.LastKnownState, theirAddresses(a.Addresses)}, theirError(err)
}

func (c *cloud) InitializeMachine(ctx context.Context, r *initRequest) (*initResponse, error) {
	q := machineRequest(*r)
	a, err := c.Memory.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: q.machine(), Class: ourClass(q.MachineClass), Secret: ourSecret(q.Secret)})
	if a == nil {
		return nil, theirError(err)
	}
	return &initResponse{a.ProviderID, a.NodeName, theirAddresses(a.Addresses)}, theirError(err)
}

// DeleteMachine returns NotFound if there is no VM, as many providers do.
func (c *cloud) DeleteMachine(ctx context.Context, r *deleteRequest) (*deleteResponse, error) {
	q := machineRequest(*r)
	before := c.Count()
	a, err := c.Memory.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: q.machine(), Class: ourClass(q.MachineClass), Secret: ourSecret(q.Secret)})
	if err == nil && c.Count() == before {
		return &deleteResponse{"nothing to delete"}, &theirStatus{code: int32(codes.NotFound), message: "there is no such VM"}
	}
	if a == nil {
		return nil, theirError(err)
	}
	return &deleteResponse{a.LastKnownState}, theirError(err)
}

func (c *cloud) GetMachineStatus(ctx context.Context, r *statusRequest) (*statusResponse, error) {
	if c.blind {
		return nil, &theirStatus{code: int32(codes.Unimplemented), message: "GetMachineStatus is not implemented"}
	}
	q := machineRequest(*r)
	a, err := c.Memory.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: q.machine(), Class: ourClass(q.MachineClass), Secret: ourSecret(q.Secret)})
	if a == nil {
		return nil, theirError(err)
	}
	return &statusResponse{a.ProviderID, a.NodeName, theirAddresses(a.Addresses)}, theirError(err)
}

func (c *cloud) ListMachines(ctx context.Context, q *listRequest) (*listResponse, error) {
	a, err := c.Memory.ListMachines(ctx, &driver.ListMachinesRequest{Class: ourClass(q.MachineClass), Secret: ourSecret(q.Secret)})
	if a == nil {
		return nil, theirError(err)
	}
	return &listResponse{a.Machines}, theirError(err)
}

func (c *cloud) GetVolumeIDs(ctx context.Context, q *volumesRequest) (*volumesResponse, error) {
	r := &driver.GetVolumeIDsRequest{}
	for _, spec := range q.PVSpecs {
		if spec.CSI != nil {
			r.Volumes = append(r.Volumes, driver.Volume{Type: spec.CSI.Driver, Handle: spec.CSI.VolumeHandle})
		}
	}
	a, err := c.Memory.GetVolumeIDs(ctx, r)
	if a == nil {
		return nil, theirError(err)
	}
	return &volumesResponse{a.VolumeIDs}, theirError(err)
}

// duplicating is a cloud whose CreateMachine creates another VM each time.
type duplicating struct {
	cloud
	mu   sync.Mutex
	lost []error // errors that later creates return after they have created a VM
}

func (c *duplicating) CreateMachine(ctx context.Context, r *createRequest) (*createResponse, error) {
	q := machineRequest(*r)
	if _, err := c.ListMachines(ctx, &listRequest{q.MachineClass, q.Secret}); err != nil {
		return nil, err
	}
	if q.Machine.Name == "" {
		return nil, &theirStatus{code: int32(codes.InvalidArgument), message: "the machine has no name"}
	}
	var spec drivertest.MemorySpec
	if err := json.Unmarshal(q.MachineClass.ProviderSpec.Raw, &spec); err != nil {
		return nil, &theirStatus{code: int32(codes.Internal), message: "the spec can't be read"}
	}
	id := c.Add(drivertest.MemoryVM{Name: q.Machine.Name, Cluster: spec.Cluster, Size: spec.Size})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lost) > 0 {
		err := c.lost[0]
		c.lost = c.lost[1:]
		return nil, theirError(err)
	}
	return &createResponse{ProviderID: id, NodeName: q.Machine.Name, LastKnownState: "made"}, nil
}

// FailAfter makes the next call return err after it has taken effect.
func (c *duplicating) FailAfter(call codes.Call, err error) {
	if call != codes.CreateMachine {
		c.Memory.FailAfter(call, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = append(c.lost, err)
}

// bridged returns the driver for a provider.
func bridged(d theirDriver) driver.Driver {
	return mcm.Driver(d.CreateMachine, d.InitializeMachine, d.DeleteMachine, d.GetMachineStatus, d.ListMachines, d.GetVolumeIDs)
}
