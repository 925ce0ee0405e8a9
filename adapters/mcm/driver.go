package mcm

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

// Driver returns a driver that calls a provider of machine-controller-manager 0.53 or later. The compiler
// infers the type parameters from the methods of the provider, here d:
//
//	mcm.Driver(d.CreateMachine, d.InitializeMachine, d.DeleteMachine, d.GetMachineStatus, d.ListMachines, d.GetVolumeIDs)
//
// Mind the order: InitializeMachine and GetMachineStatus may have the same types. If a provider is older
// and has no InitializeMachine, pass a function that returns UNIMPLEMENTED.
// GenerateMachineClassForMigration and UpdateMachine return UNIMPLEMENTED, because providers don't have
// them.
//
// If a request can't be translated, the error is a *TranslationError, and the provider is not called. The
// manager checks answers as driver.Validate does.
func Driver[
	M, C any, CQ, IQ, DQ, SQ machineRequest[M, C], LQ listRequest[C], VQ volumesRequest,
	CR createAnswer, IR, SR statusAnswer, DR deleteAnswer, LR listAnswer, VR volumesAnswer,
](
	createMachine call[CQ, CR], initializeMachine call[IQ, IR], deleteMachine call[DQ, DR],
	getMachineStatus call[SQ, SR], listMachines call[LQ, LR], getVolumeIDs call[VQ, VR],
) driver.Driver {
	return &bridge{
		create:     ofMachine[M, C](codes.CreateMachine, createMachine),
		initialize: ofMachine[M, C](codes.InitializeMachine, initializeMachine),
		remove:     ofMachine[M, C](codes.DeleteMachine, deleteMachine),
		status:     ofMachine[M, C](codes.GetMachineStatus, getMachineStatus),
		list:       ofClass[C](listMachines),
		identify:   ofVolumes(getVolumeIDs),
	}
}

// machineCall is a call for one machine, without the types of the provider. The answer is nil if the
// provider returns nil.
type machineCall func(context.Context, *machine.Machine, *machine.Class, *machine.Secret) (*vmAnswer, error)

// bridge is the driver that Driver returns.
type bridge struct {
	driver.Unimplemented
	create, initialize, remove, status machineCall

	list     func(context.Context, *machine.Class, *machine.Secret) (*driver.ListMachinesResponse, error)
	identify func(context.Context, []*corev1.PersistentVolumeSpec) (*driver.GetVolumeIDsResponse, error)
}

// ofMachine returns a method of the provider as a machineCall.
func ofMachine[M, C any, Q machineRequest[M, C], R any](name codes.Call, do call[Q, R]) machineCall {
	return func(ctx context.Context, m *machine.Machine, c *machine.Class, s *machine.Secret) (*vmAnswer, error) {
		theirs, err := translate[M](name, "machine", m, asMachine)
		if err != nil {
			return nil, err
		}
		class, err := translate[C](name, "class", c, asClass)
		if err != nil {
			return nil, err
		}
		q := Q(struct {
			Machine      *M
			MachineClass *C
			Secret       *corev1.Secret
		}{theirs, class, asSecret(s)})
		r, err := do(ctx, &q)
		return vmAnswerOf(r), withCode(err)
	}
}

// ofClass returns ListMachines of the provider without its types.
func ofClass[C any, Q listRequest[C], R listAnswer](
	do call[Q, R],
) func(context.Context, *machine.Class, *machine.Secret) (*driver.ListMachinesResponse, error) {
	return func(ctx context.Context, c *machine.Class, s *machine.Secret) (*driver.ListMachinesResponse, error) {
		class, err := translate[C](codes.ListMachines, "class", c, asClass)
		if err != nil {
			return nil, err
		}
		q := Q(struct {
			MachineClass *C
			Secret       *corev1.Secret
		}{class, asSecret(s)})
		r, err := do(ctx, &q)
		if r == nil {
			return nil, withCode(err)
		}
		return &driver.ListMachinesResponse{Machines: (struct{ MachineList map[string]string })(*r).MachineList}, withCode(err)
	}
}

// ofVolumes returns GetVolumeIDs of the provider without its types.
func ofVolumes[Q volumesRequest, R volumesAnswer](
	do call[Q, R],
) func(context.Context, []*corev1.PersistentVolumeSpec) (*driver.GetVolumeIDsResponse, error) {
	return func(ctx context.Context, specs []*corev1.PersistentVolumeSpec) (*driver.GetVolumeIDsResponse, error) {
		q := Q(struct {
			PVSpecs []*corev1.PersistentVolumeSpec
		}{specs})
		r, err := do(ctx, &q)
		if r == nil {
			return nil, withCode(err)
		}
		return &driver.GetVolumeIDsResponse{VolumeIDs: (struct{ VolumeIDs []string })(*r).VolumeIDs}, withCode(err)
	}
}

// CreateMachine implements driver.Driver.
func (b *bridge) CreateMachine(ctx context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	r, err := b.create(ctx, q.Machine, q.Class, q.Secret)
	if r == nil {
		return nil, err
	}
	return &driver.CreateMachineResponse{
		ProviderID: r.ProviderID, NodeName: r.NodeName, Addresses: r.addresses(), LastKnownState: r.LastKnownState,
	}, err
}

// InitializeMachine implements driver.Driver.
func (b *bridge) InitializeMachine(ctx context.Context, q *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	r, err := b.initialize(ctx, q.Machine, q.Class, q.Secret)
	if r == nil {
		return nil, err
	}
	return &driver.InitializeMachineResponse{ProviderID: r.ProviderID, NodeName: r.NodeName, Addresses: r.addresses()}, err
}

// DeleteMachine implements driver.Driver. NOT_FOUND counts as success.
func (b *bridge) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	r, err := b.remove(ctx, q.Machine, q.Class, q.Secret)
	if codes.Of(err) == codes.NotFound {
		err = nil
	}
	if r == nil {
		return nil, err
	}
	return &driver.DeleteMachineResponse{LastKnownState: r.LastKnownState}, err
}

// GetMachineStatus implements driver.Driver.
func (b *bridge) GetMachineStatus(ctx context.Context, q *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	r, err := b.status(ctx, q.Machine, q.Class, q.Secret)
	if r == nil {
		return nil, err
	}
	return &driver.GetMachineStatusResponse{ProviderID: r.ProviderID, NodeName: r.NodeName, Addresses: r.addresses()}, err
}

// ListMachines implements driver.Driver.
func (b *bridge) ListMachines(ctx context.Context, q *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return b.list(ctx, q.Class, q.Secret)
}

// GenerateMachineClassForMigration implements driver.Driver. It returns UNIMPLEMENTED, because the
// providers that this package runs have no such call any more.
func (b *bridge) GenerateMachineClassForMigration(
	_ context.Context, q *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return nil, codes.New(codes.Unimplemented, "a provider of machine-controller-manager converts no class of kind "+
		q.ClassRef.GroupKind()+": write a MachineClass of the same name, and change the references")
}

// GetVolumeIDs implements driver.Driver.
func (b *bridge) GetVolumeIDs(ctx context.Context, q *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	specs := make([]*corev1.PersistentVolumeSpec, 0, len(q.Volumes))
	for i := range q.Volumes {
		spec, err := asSpec(&q.Volumes[i])
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return b.identify(ctx, specs)
}
