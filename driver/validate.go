package driver

import (
	"context"
	"slices"

	"github.com/millwright-go/millwright/machine"
)

// ValidateOptions says what Validate asks of a driver beyond what it always does.
type ValidateOptions struct {
	// NodeNames: a cluster is attached, so VMs become nodes, and a VM without a node name is not
	// acceptable.
	NodeNames bool
	// Cut is called if a message is passed on changed or cut. It gets the whole message, including
	// its cause, without what is confidential. It also gets the name and size of a part that is
	// left out of a response, and nothing of its contents. It must not block. It may be nil.
	Cut func(ctx context.Context, call CallInfo, whole string)
}

// Validate returns a driver that passes on only what can be acted upon.
//
// Requests: if the machine, its name or the class is missing, the answer is INVALID_ARGUMENT and d
// is not called.
//
// An OK answer becomes INTERNAL if CreateMachine or GetMachineStatus returns no provider ID or a
// blank one (or, see ValidateOptions, no node name), or if a required response is missing. The
// response stays beside the error, so that its contents are not lost.
//
// A part of a response that exceeds its bound (MaxID, MaxName, MaxNote, MaxAddresses) is left out,
// also beside an error, and Validate calls Cut. Addresses that are too long are left out, and those
// beyond MaxAddresses. OK stays OK, as if the driver had not given the part, so an earlier
// LastKnownState stays. Only a VM's provider ID, a node name and a volume ID are required: without
// them an OK answer becomes INTERNAL, with a message that names the part.
//
// Entries of a list whose provider ID or machine name is missing, blank, or beyond its bound (then it
// is shortened) move from Machines to Dropped. The others are passed on.
//
// For calls whose response is optional, a missing one counts as an empty one: DeleteMachine,
// InitializeMachine, GenerateMachineClassForMigration, UpdateMachine. Empty volume IDs, for volumes
// that the driver does not know, are left out, and so are repeated ones.
//
// Errors of d keep their code. A message, and the text of Unhealthy, is passed on
//
//   - without the values of the request's secret that have 8 bytes or more, unless
//     the class's provider spec or the machine's name shows the value too; their
//     keys stand for them. The same holds for parts of 16 bytes or more: strings
//     within values that are JSON, also JSON in JSON, lines, and values in lines of
//     YAML or of settings (KEY=value). They are found as they are, percent-encoded,
//     with entities of HTML or XML, behind backslashes as in Go and JSON, in base64
//     of either alphabet, in hexadecimal and as a list of bytes; also within a
//     longer text in that form, in lines, and in up to four of them one in another.
//     docs/concepts/safety.md has the table. 128 KiB of a message are searched;
//   - without control characters, see codes.Printable;
//   - up to codes.MaxMessage bytes, with the mark of a cut.
//
// A node name or an address that shows a value or a part of 16 bytes or more is left
// out, as if it were too long. A provider ID is not searched: without it the VM would
// be lost.
//
// Not found are other parts of a value, values from before the secret was changed,
// and other forms (encrypted, compressed). A driver must repeat no secret.
//
// An error that needs no change is passed on as it is. Of any other error only code and message
// remain.
func Validate(d Driver, o ValidateOptions) Driver { return &validated{inner: d, options: o} }

type validated struct {
	inner   Driver
	options ValidateOptions
}

// Unwrap returns the driver that is decorated.
func (v *validated) Unwrap() Driver { return v.inner }

// validate makes one call, if the request is valid, and checks its answer.
func validate[Q request, R any](
	ctx context.Context, v *validated, req Q, call func(context.Context, Q) (*R, error), rules Validation[R],
) (*R, error) {
	c := req.content()
	rules.Call, rules.Invalid, rules.Cut = c.info(), c.missingField(), v.options.Cut
	rules.Class, rules.Secrets = c.class, []*machine.Secret{c.secret}
	return rules.Do(ctx, func(ctx context.Context) (*R, error) { return call(ctx, req) })
}

// lacking returns what is missing in the description of a VM. Empty: nothing.
func (v *validated) lacking(providerID, nodeName string) string {
	switch {
	case blank(providerID):
		return "has no provider ID"
	case blank(nodeName) && v.options.NodeNames:
		return "has no node name"
	}
	return ""
}

// CreateMachine implements Driver.
func (v *validated) CreateMachine(ctx context.Context, req *CreateMachineRequest) (*CreateMachineResponse, error) {
	return validate(ctx, v, req, v.inner.CreateMachine, Validation[CreateMachineResponse]{
		Bounds: func(r *CreateMachineResponse) []Bound { return vmBounds(&r.ProviderID, &r.NodeName, &r.Addresses) },
		Note:   func(r *CreateMachineResponse) *string { return &r.LastKnownState },
		Check:  func(r *CreateMachineResponse) string { return v.lacking(r.ProviderID, r.NodeName) },
	})
}

// InitializeMachine implements Driver.
func (v *validated) InitializeMachine(
	ctx context.Context, req *InitializeMachineRequest,
) (*InitializeMachineResponse, error) {
	return validate(ctx, v, req, v.inner.InitializeMachine, Validation[InitializeMachineResponse]{
		Optional: true,
		Bounds:   func(r *InitializeMachineResponse) []Bound { return vmBounds(&r.ProviderID, &r.NodeName, &r.Addresses) },
	})
}

// DeleteMachine implements Driver.
func (v *validated) DeleteMachine(ctx context.Context, req *DeleteMachineRequest) (*DeleteMachineResponse, error) {
	return validate(ctx, v, req, v.inner.DeleteMachine, Validation[DeleteMachineResponse]{
		Optional: true,
		Note:     func(r *DeleteMachineResponse) *string { return &r.LastKnownState },
	})
}

// GetMachineStatus implements Driver.
func (v *validated) GetMachineStatus(
	ctx context.Context, req *GetMachineStatusRequest,
) (*GetMachineStatusResponse, error) {
	return validate(ctx, v, req, v.inner.GetMachineStatus, Validation[GetMachineStatusResponse]{
		Bounds:  func(r *GetMachineStatusResponse) []Bound { return vmBounds(&r.ProviderID, &r.NodeName, &r.Addresses) },
		Check:   func(r *GetMachineStatusResponse) string { return v.lacking(r.ProviderID, r.NodeName) },
		Failure: func(r *GetMachineStatusResponse) *string { return &r.Unhealthy },
	})
}

// ListMachines implements Driver.
func (v *validated) ListMachines(ctx context.Context, req *ListMachinesRequest) (*ListMachinesResponse, error) {
	return validate(ctx, v, req, v.inner.ListMachines, Validation[ListMachinesResponse]{
		Bounds: func(r *ListMachinesResponse) []Bound { return r.list().Bounds() },
		Tidy:   func(r *ListMachinesResponse) bool { return r.list().DropBlank() },
	})
}

func (r *ListMachinesResponse) list() List[string] {
	return List[string]{
		ID: "a provider ID", Owner: "a machine's name", Entries: &r.Machines, Dropped: &r.Dropped,
		Name:  func(machine string) string { return machine },
		Texts: func(machine string, each func(string) string) string { return each(machine) },
	}
}

// GetVolumeIDs implements Driver. A drain does not wait for a volume without an ID, so all of their
// IDs are required.
func (v *validated) GetVolumeIDs(ctx context.Context, req *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error) {
	return validate(ctx, v, req, v.inner.GetVolumeIDs, Validation[GetVolumeIDsResponse]{
		Bounds: func(r *GetVolumeIDsResponse) []Bound {
			longest := 0
			for _, id := range r.VolumeIDs {
				longest = max(longest, len(id))
			}
			return []Bound{{Name: "a volume ID", Size: longest, Most: MaxID, Needed: true, Drop: func() { r.VolumeIDs = nil }}}
		},
		Tidy: func(r *GetVolumeIDsResponse) bool {
			before := len(r.VolumeIDs)
			r.VolumeIDs = distinct(r.VolumeIDs)
			return len(r.VolumeIDs) < before
		},
	})
}

// distinct returns a list without blank and repeated IDs, in a copy.
func distinct(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again || blank(id)
	})
}

// GenerateMachineClassForMigration implements Driver.
func (v *validated) GenerateMachineClassForMigration(
	ctx context.Context, req *GenerateMachineClassForMigrationRequest,
) (*GenerateMachineClassForMigrationResponse, error) {
	return validate(ctx, v, req, v.inner.GenerateMachineClassForMigration,
		Validation[GenerateMachineClassForMigrationResponse]{Optional: true})
}

// UpdateMachine implements Driver.
func (v *validated) UpdateMachine(ctx context.Context, req *UpdateMachineRequest) (*UpdateMachineResponse, error) {
	return validate(ctx, v, req, v.inner.UpdateMachine, Validation[UpdateMachineResponse]{
		Optional: true,
		Note:     func(r *UpdateMachineResponse) *string { return &r.LastKnownState },
	})
}
