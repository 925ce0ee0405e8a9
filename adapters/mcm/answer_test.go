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

// fixed is a provider that always gives the same answers.
type fixed struct {
	cloud
	err          error
	withResponse bool // each call returns a response and err; otherwise only err
}

func response[R any](a *fixed, r *R) (*R, error) {
	if a.withResponse {
		return r, a.err
	}
	return nil, a.err
}

var (
	theirs = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	ours   = []machine.Address{{Type: "InternalIP", Value: "10.0.0.1"}}
)

func (f *fixed) CreateMachine(context.Context, *createRequest) (*createResponse, error) {
	return response(f, &createResponse{"vm-1", "node-1", "note", theirs})
}

func (f *fixed) InitializeMachine(context.Context, *initRequest) (*initResponse, error) {
	return response(f, &initResponse{"vm-1", "node-1", theirs})
}

func (f *fixed) DeleteMachine(context.Context, *deleteRequest) (*deleteResponse, error) {
	return response(f, &deleteResponse{"note"})
}

func (f *fixed) GetMachineStatus(context.Context, *statusRequest) (*statusResponse, error) {
	return response(f, &statusResponse{"vm-1", "node-1", theirs})
}

func (f *fixed) ListMachines(context.Context, *listRequest) (*listResponse, error) {
	return response(f, &listResponse{map[string]string{"vm-1": "web-1"}})
}

func (f *fixed) GetVolumeIDs(context.Context, *volumesRequest) (*volumesResponse, error) {
	return response(f, &volumesResponse{[]string{"vol-1"}})
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

// whole has the response to each call, with all fields.
var whole = []any{
	&driver.CreateMachineResponse{ProviderID: "vm-1", NodeName: "node-1", Addresses: ours, LastKnownState: "note"},
	&driver.InitializeMachineResponse{ProviderID: "vm-1", NodeName: "node-1", Addresses: ours},
	&driver.DeleteMachineResponse{LastKnownState: "note"},
	&driver.GetMachineStatusResponse{ProviderID: "vm-1", NodeName: "node-1", Addresses: ours},
	&driver.ListMachinesResponse{Machines: map[string]string{"vm-1": "web-1"}},
	&driver.GetVolumeIDsResponse{VolumeIDs: []string{"vol-1"}},
}

// nothing has a nil response to each call.
var nothing = []any{
	(*driver.CreateMachineResponse)(nil), (*driver.InitializeMachineResponse)(nil), (*driver.DeleteMachineResponse)(nil),
	(*driver.GetMachineStatusResponse)(nil), (*driver.ListMachinesResponse)(nil), (*driver.GetVolumeIDsResponse)(nil),
}

// TestAnswers: all fields of answers are passed on, also if there is an error. A nil answer stays nil.
func TestAnswers(t *testing.T) {
	for _, err := range []error{nil, &theirStatus{code: 17, message: "not yet"}} {
		all, errs := answersOf(t.Context(), bridged(&fixed{withResponse: true, err: err}))
		require.Equal(t, whole, all)
		require.Equal(t, []error{err, err, err, err, err, err}, errs)
		all, errs = answersOf(t.Context(), bridged(&fixed{err: err}))
		require.Equal(t, nothing, all)
		require.Equal(t, []error{err, err, err, err, err, err}, errs)
	}
}

// TestAnswersBeforeAddresses: answers of providers before release 0.60 have no addresses.
func TestAnswersBeforeAddresses(t *testing.T) {
	type createResponse struct{ ProviderID, NodeName, LastKnownState string }
	type statusWithoutAddresses struct{ ProviderID, NodeName string }
	c := &fixed{withResponse: true}
	d := mcm.Driver(
		func(context.Context, *createRequest) (*createResponse, error) {
			return &createResponse{"vm-1", "node-1", "note"}, nil
		},
		func(context.Context, *initRequest) (*statusWithoutAddresses, error) {
			return &statusWithoutAddresses{"vm-1", "node-1"}, nil
		},
		c.DeleteMachine,
		func(context.Context, *statusRequest) (*statusWithoutAddresses, error) {
			return &statusWithoutAddresses{"vm-1", "node-1"}, nil
		},
		c.ListMachines, c.GetVolumeIDs,
	)
	all, _ := answersOf(t.Context(), d)
	require.Equal(t, &driver.CreateMachineResponse{ProviderID: "vm-1", NodeName: "node-1", LastKnownState: "note"}, all[0])
	require.Equal(t, &driver.InitializeMachineResponse{ProviderID: "vm-1", NodeName: "node-1"}, all[1])
	require.Equal(t, &driver.GetMachineStatusResponse{ProviderID: "vm-1", NodeName: "node-1"}, all[3])
}

// numericError is an error whose code is a number without a name.
type numericError[C any] struct{ code C }

func (n *numericError[C]) Code() C     { return n.code }
func (*numericError[C]) Error() string { return "it failed" }

// TestCodes: an error has the code that machine-controller-manager finds.
func TestCodes(t *testing.T) {
	for code := range codes.All() {
		if code == codes.OK {
			continue
		}
		status := &theirStatus{code: int32(code), message: "it [failed] in zone [b]"}
		for name, err := range map[string]error{
			"by name": status, "by name, wrapped": fmt.Errorf("create: %w", status),
			"by number": &numericError[uint32]{uint32(code)}, "by signed number, wrapped": fmt.Errorf("create: %w", &numericError[int]{int(code)}),
			"by text": errors.New(status.Error()), "by text, wrapped": fmt.Errorf("create: %v", status),
			"by the outermost text": errors.New((&theirStatus{code: int32(code), message: (&theirStatus{code: 16}).Error()}).Error()),
		} {
			_, errs := answersOf(t.Context(), bridged(&fixed{err: err}))
			for i, got := range errs {
				if want := code; codes.Call(i) == codes.DeleteMachine && want == codes.NotFound {
					require.NoError(t, got, "NOT_FOUND of a deletion is success")
				} else {
					require.Equal(t, want, codes.Of(got), name)
					require.Equal(t, err.Error(), codes.Message(got), name)
				}
			}
		}
	}
}

// TestUnknownCodes: an error without a valid code is UNKNOWN.
func TestUnknownCodes(t *testing.T) {
	for _, err := range []error{
		errors.New("NotFound"), errors.New("code = [NotFound] message = [x]"), errors.New("machine codes error: code = [Nothing] message = [x]"),
		errors.New("machine codes error: code = [OK] message = [x]"), errors.New("machine codes error: code = [NotFound"),
		&numericError[int]{-1}, &numericError[int]{18}, &numericError[uint64]{1 << 40}, &numericError[string]{"5"}, &numericError[uint8]{0}, (*numericError[int])(nil),
	} {
		_, errs := answersOf(t.Context(), bridged(&fixed{err: err}))
		for _, got := range errs {
			require.Equal(t, codes.Unknown, codes.Of(got), "%v", got)
		}
	}
}

// TestOldKindsAreRefused: classes of older kinds are not converted. The error names the kind.
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
