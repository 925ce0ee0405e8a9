package driver

import (
	"context"
	"maps"
	"strings"

	"github.com/millwright-go/millwright/codes"
)

// ValidateOptions says what Validate asks of a driver beyond what it always does.
type ValidateOptions struct {
	// NodeNames says that a cluster is attached, so that VMs become nodes: a VM
	// without a node name is not acceptable.
	NodeNames bool
}

// Validate returns a driver that passes on only what can be acted upon.
//
// Requests: without machine, machine name or class a call is INVALID_ARGUMENT
// and d is not called.
//
// Answers that claim OK become INTERNAL when CreateMachine or GetMachineStatus
// give no provider ID (or, see ValidateOptions, no node name), and when there
// is no response to a call that asks for one. The response stays beside the
// error, so that what it does say is not lost.
//
// Entries of a list without provider ID or machine name, or with a blank one,
// move from Machines to Dropped, since an empty ID must match nothing; the
// others are as good as without them.
//
// Where all of a response is optional, a missing one counts as an empty one:
// DeleteMachine, InitializeMachine, GenerateMachineClassForMigration,
// UpdateMachine. Empty volume IDs are left out, as volumes that the driver does
// not know, and so are repeated ones.
//
// Errors of d are passed on as they are.
func Validate(d Driver, o ValidateOptions) Driver { return &validated{inner: d, options: o} }

type validated struct {
	inner   Driver
	options ValidateOptions
}

// Unwrap returns the driver that is decorated.
func (v *validated) Unwrap() Driver { return v.inner }

// ruled makes one call, if the request is fit for it, and holds its answer to
// rule, which is asked only about answers without error. rule returns the
// response to pass on, and what is wrong with it.
func ruled[Q request, R any](
	ctx context.Context, req Q, call func(context.Context, Q) (*R, error), rule func(*R) (*R, string),
) (*R, error) {
	c := req.content()
	if gap := c.gap(); gap != "" {
		return nil, codes.Newf(codes.InvalidArgument, "%s was not called: %s", c.method, gap)
	}
	response, err := call(ctx, req)
	if err != nil {
		return response, err
	}
	response, fault := rule(response)
	if fault != "" {
		return response, codes.Newf(codes.Internal, "the driver's answer to %s %s", c.method, fault)
	}
	return response, nil
}

const noResponse = "says OK, and nothing else"

// orEmpty is the rule for responses that may be empty.
func orEmpty[R any](response *R) (*R, string) {
	if response == nil {
		response = new(R)
	}
	return response, ""
}

// named says what a VM that was answered lacks; empty: nothing.
func (v *validated) named(providerID, nodeName string) string {
	switch {
	case providerID == "":
		return "has no provider ID"
	case nodeName == "" && v.options.NodeNames:
		return "has no node name"
	}
	return ""
}

// CreateMachine implements Driver.
func (v *validated) CreateMachine(ctx context.Context, req *CreateMachineRequest) (*CreateMachineResponse, error) {
	return ruled(ctx, req, v.inner.CreateMachine, func(r *CreateMachineResponse) (*CreateMachineResponse, string) {
		if r == nil {
			return nil, noResponse
		}
		return r, v.named(r.ProviderID, r.NodeName)
	})
}

// InitializeMachine implements Driver.
func (v *validated) InitializeMachine(
	ctx context.Context, req *InitializeMachineRequest,
) (*InitializeMachineResponse, error) {
	return ruled(ctx, req, v.inner.InitializeMachine, orEmpty)
}

// DeleteMachine implements Driver.
func (v *validated) DeleteMachine(ctx context.Context, req *DeleteMachineRequest) (*DeleteMachineResponse, error) {
	return ruled(ctx, req, v.inner.DeleteMachine, orEmpty)
}

// GetMachineStatus implements Driver.
func (v *validated) GetMachineStatus(
	ctx context.Context, req *GetMachineStatusRequest,
) (*GetMachineStatusResponse, error) {
	return ruled(ctx, req, v.inner.GetMachineStatus,
		func(r *GetMachineStatusResponse) (*GetMachineStatusResponse, string) {
			if r == nil {
				return nil, noResponse
			}
			return r, v.named(r.ProviderID, r.NodeName)
		})
}

// ListMachines implements Driver.
func (v *validated) ListMachines(ctx context.Context, req *ListMachinesRequest) (*ListMachinesResponse, error) {
	return ruled(ctx, req, v.inner.ListMachines, listed)
}

// listed divides a list into what can be acted upon and what can't.
func listed(r *ListMachinesResponse) (*ListMachinesResponse, string) {
	if r == nil {
		return nil, noResponse
	}
	bad := func(id, name string) bool { return blank(id) || blank(name) }
	good := func(id, name string) bool { return !bad(id, name) }
	dropped := maps.Clone(r.Machines)
	maps.DeleteFunc(dropped, good)
	if len(dropped) == 0 {
		return r, ""
	}
	whole := maps.Clone(r.Machines)
	maps.DeleteFunc(whole, bad)
	return &ListMachinesResponse{Machines: whole, Dropped: dropped}, ""
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// GetVolumeIDs implements Driver.
func (v *validated) GetVolumeIDs(ctx context.Context, req *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error) {
	return ruled(ctx, req, v.inner.GetVolumeIDs, func(r *GetVolumeIDsResponse) (*GetVolumeIDsResponse, string) {
		if r == nil {
			return nil, noResponse
		}
		known := make([]string, 0, len(r.VolumeIDs))
		seen := make(map[string]bool, len(r.VolumeIDs))
		for _, id := range r.VolumeIDs {
			if !blank(id) && !seen[id] {
				seen[id], known = true, append(known, id)
			}
		}
		if len(known) == len(r.VolumeIDs) {
			return r, ""
		}
		return &GetVolumeIDsResponse{VolumeIDs: known}, ""
	})
}

// GenerateMachineClassForMigration implements Driver.
func (v *validated) GenerateMachineClassForMigration(
	ctx context.Context, req *GenerateMachineClassForMigrationRequest,
) (*GenerateMachineClassForMigrationResponse, error) {
	return ruled(ctx, req, v.inner.GenerateMachineClassForMigration, orEmpty)
}

// UpdateMachine implements Driver.
func (v *validated) UpdateMachine(ctx context.Context, req *UpdateMachineRequest) (*UpdateMachineResponse, error) {
	return ruled(ctx, req, v.inner.UpdateMachine, orEmpty)
}
