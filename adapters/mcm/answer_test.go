package mcm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-go/millwright/adapters/mcm"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

// answering is a provider that answers each call with the same.
type answering struct {
	cloud
	err  error
	with bool // a response comes beside the error
}

func response[R any](a *answering, r *R) (*R, error) {
	if a.with {
		return r, a.err
	}
	return nil, a.err
}

var (
	theirs = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	ours   = []machine.Address{{Type: "InternalIP", Value: "10.0.0.1"}}
)

func (a *answering) CreateMachine(context.Context, *createQ) (*createA, error) {
	return response(a, &createA{"vm-1", "node-1", "note", theirs})
}

func (a *answering) InitializeMachine(context.Context, *initQ) (*initA, error) {
	return response(a, &initA{"vm-1", "node-1", theirs})
}

func (a *answering) DeleteMachine(context.Context, *deleteQ) (*deleteA, error) {
	return response(a, &deleteA{"note"})
}

func (a *answering) GetMachineStatus(context.Context, *statusQ) (*statusA, error) {
	return response(a, &statusA{"vm-1", "node-1", theirs})
}

func (a *answering) ListMachines(context.Context, *aboutClass) (*listA, error) {
	return response(a, &listA{map[string]string{"vm-1": "web-1"}})
}

func (a *answering) GetVolumeIDs(context.Context, *aboutVolumes) (*volumesA, error) {
	return response(a, &volumesA{[]string{"vol-1"}})
}

// answersOf makes all calls, and returns their responses and errors.
func answersOf(ctx context.Context, d driver.Driver) (all []any, errs []error) {
	m, c := &machine.Machine{}, &machine.Class{}
	add := func(r any, err error) { all, errs = append(all, r), append(errs, err) }
	create, err := d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, Class: c})
	add(create, err)
	initialize, err := d.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, Class: c})
	add(initialize, err)
	remove, err := d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, Class: c})
	add(remove, err)
	status, err := d.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, Class: c})
	add(status, err)
	list, err := d.ListMachines(ctx, &driver.ListMachinesRequest{Class: c})
	add(list, err)
	volumes, err := d.GetVolumeIDs(ctx, &driver.GetVolumeIDsRequest{})
	add(volumes, err)
	return all, errs
}

var whole = []any{
	&driver.CreateMachineResponse{ProviderID: "vm-1", NodeName: "node-1", Addresses: ours, LastKnownState: "note"},
	&driver.InitializeMachineResponse{ProviderID: "vm-1", NodeName: "node-1", Addresses: ours},
	&driver.DeleteMachineResponse{LastKnownState: "note"},
	&driver.GetMachineStatusResponse{ProviderID: "vm-1", NodeName: "node-1", Addresses: ours},
	&driver.ListMachinesResponse{Machines: map[string]string{"vm-1": "web-1"}},
	&driver.GetVolumeIDsResponse{VolumeIDs: []string{"vol-1"}},
}

var nothing = []any{
	(*driver.CreateMachineResponse)(nil), (*driver.InitializeMachineResponse)(nil), (*driver.DeleteMachineResponse)(nil),
	(*driver.GetMachineStatusResponse)(nil), (*driver.ListMachinesResponse)(nil), (*driver.GetVolumeIDsResponse)(nil),
}

// TestAnswers: all fields of all answers arrive, even beside an error, and none if there is no
// answer.
func TestAnswers(t *testing.T) {
	for _, err := range []error{nil, &theirStatus{code: 17, message: "not yet"}} {
		all, errs := answersOf(t.Context(), bridged(&answering{with: true, err: err}))
		require.Equal(t, whole, all)
		require.Equal(t, []error{err, err, err, err, err, err}, errs)
		all, errs = answersOf(t.Context(), bridged(&answering{err: err}))
		require.Equal(t, nothing, all)
		require.Equal(t, []error{err, err, err, err, err, err}, errs)
	}
}

// TestAnswersBeforeAddresses: before release 0.60 VMs had no addresses.
func TestAnswersBeforeAddresses(t *testing.T) {
	type createA struct{ ProviderID, NodeName, LastKnownState string }
	type foundA struct{ ProviderID, NodeName string }
	c := &answering{with: true}
	d := mcm.Driver(
		func(context.Context, *createQ) (*createA, error) { return &createA{"vm-1", "node-1", "note"}, nil },
		func(context.Context, *initQ) (*foundA, error) { return &foundA{"vm-1", "node-1"}, nil },
		c.DeleteMachine,
		func(context.Context, *statusQ) (*foundA, error) { return &foundA{"vm-1", "node-1"}, nil },
		c.ListMachines, c.GetVolumeIDs,
	)
	all, _ := answersOf(t.Context(), d)
	require.Equal(t, &driver.CreateMachineResponse{ProviderID: "vm-1", NodeName: "node-1", LastKnownState: "note"}, all[0])
	require.Equal(t, &driver.InitializeMachineResponse{ProviderID: "vm-1", NodeName: "node-1"}, all[1])
	require.Equal(t, &driver.GetMachineStatusResponse{ProviderID: "vm-1", NodeName: "node-1"}, all[3])
}

// numbered is an error whose code has no name.
type numbered[C any] struct{ code C }

func (n *numbered[C]) Code() C     { return n.code }
func (*numbered[C]) Error() string { return "it failed" }

// TestCodes: an error has the code that machine-controller-manager finds.
func TestCodes(t *testing.T) {
	for code := range codes.All() {
		if code == codes.OK {
			continue
		}
		status := &theirStatus{code: int32(code), message: "it [failed] in zone [b]"}
		for name, err := range map[string]error{
			"by name": status, "by name, wrapped": fmt.Errorf("create: %w", status),
			"by number": &numbered[uint32]{uint32(code)}, "by signed number, wrapped": fmt.Errorf("create: %w", &numbered[int]{int(code)}),
			"by text": errors.New(status.Error()), "by text, wrapped": fmt.Errorf("create: %v", status),
			"by the outermost text": errors.New((&theirStatus{code: int32(code), message: (&theirStatus{code: 16}).Error()}).Error()),
		} {
			_, errs := answersOf(t.Context(), bridged(&answering{err: err}))
			for i, got := range errs {
				if want := code; codes.Call(i) == codes.DeleteMachine && want == codes.NotFound {
					require.NoError(t, got, "what is not there is deleted")
				} else {
					require.Equal(t, want, codes.Of(got), name)
					require.Equal(t, err.Error(), codes.Message(got), name)
				}
			}
		}
	}
}

// TestCodesThatAreNone: a text that is no code is UNKNOWN, and never OK.
func TestCodesThatAreNone(t *testing.T) {
	for _, err := range []error{
		errors.New("NotFound"), errors.New("code = [NotFound] message = [x]"), errors.New("machine codes error: code = [Nothing] message = [x]"),
		errors.New("machine codes error: code = [OK] message = [x]"), errors.New("machine codes error: code = [NotFound"),
		&numbered[int]{-1}, &numbered[int]{18}, &numbered[uint64]{1 << 40}, &numbered[string]{"5"}, &numbered[uint8]{0}, (*numbered[int])(nil),
	} {
		_, errs := answersOf(t.Context(), bridged(&answering{err: err}))
		for _, got := range errs {
			require.Equal(t, codes.Unknown, codes.Of(got), "%v", got)
		}
	}
}

// TestOldKindsAreRefused: no class of an older kind is converted. The answer names the kind, and says what
// to do.
func TestOldKindsAreRefused(t *testing.T) {
	d := mcm.Driver(
		(&cloud{}).CreateMachine, (&cloud{}).InitializeMachine, (&cloud{}).DeleteMachine,
		(&cloud{}).GetMachineStatus, (&cloud{}).ListMachines, (&cloud{}).GetVolumeIDs,
	)
	_, err := d.GenerateMachineClassForMigration(context.Background(), &driver.GenerateMachineClassForMigrationRequest{
		Class: &machine.Class{}, ClassRef: machine.ClassRef{APIGroup: "machine.sapcloud.io", Kind: "AWSMachineClass"},
	})
	require.Equal(t, codes.Unimplemented, codes.Of(err))
	require.Contains(t, codes.Message(err), "AWSMachineClass.machine.sapcloud.io")
}
