package driver

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/codes"
)

// ValidateOptions says what Validate asks of a driver beyond what it always does.
type ValidateOptions struct {
	// NodeNames says that a cluster is attached, so that VMs become nodes: a VM
	// without a node name is not acceptable.
	NodeNames bool
	// Cut is told the whole of a message that is passed on changed or cut, its cause
	// included, without what is confidential; and the name and size of a part that
	// is left out of a response, nothing of what is in it. It must not block. Nil:
	// nobody is told.
	Cut func(ctx context.Context, s Subject, whole string)
}

// Validate returns a driver that passes on only what can be acted upon.
//
// Requests: without machine, machine name or class a call is INVALID_ARGUMENT
// and d is not called.
//
// Answers that claim OK become INTERNAL when CreateMachine or GetMachineStatus
// give no provider ID or a blank one (or, see ValidateOptions, no node name),
// and when there is no response to a call that asks for one. The response stays
// beside the error, so that what it does say is not lost.
//
// A part of a response that exceeds its bound (MaxID, MaxName, MaxNote,
// MaxAddresses) is left out, also beside an error, and Cut is told. Of addresses
// the long ones are left out, and those beyond MaxAddresses. OK stays OK, as if the
// driver had not given the part: the LastKnownState before it stays. Only a VM's
// provider ID, a node name and a volume ID are needed: without them an answer that
// claims OK becomes INTERNAL, with a message that names the part.
//
// Entries of a list without provider ID or machine name, with a blank one or with
// one beyond its bound (then it is cut) move from Machines to Dropped, since an
// empty ID must match nothing; the others are as good as without them.
//
// Where all of a response is optional, a missing one counts as an empty one:
// DeleteMachine, InitializeMachine, GenerateMachineClassForMigration,
// UpdateMachine. Empty volume IDs are left out, as volumes that the driver does
// not know, and so are repeated ones.
//
// Errors of d keep their code. A message is passed on
//
//   - without the values of the request's secret that have 8 bytes or more, as
//     they are, in base64, in hexadecimal, quoted, as JSON, as a list of bytes or
//     URL-encoded, unless the class's provider spec shows the value too; their keys
//     stand for them. The same holds for strings of 16 bytes or more within values
//     that are JSON; of values of several lines, lines of 16 bytes or more are
//     found as they are, quoted or as JSON;
//   - without control characters, see codes.Printable;
//   - up to codes.MaxMessage bytes, with the mark of a cut.
//
// Not found are other parts of a value, values from before the secret was changed,
// and other encodings (encrypted, compressed, base64 of a longer text). A driver
// must repeat no secret.
//
// An error that needs none of this is passed on as it is; of any other only code
// and message remain.
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
	ctx context.Context, v *validated, req Q, call func(context.Context, Q) (*R, error),
	bounds func(*R) []bound, rule func(*R) (*R, string),
) (*R, error) {
	c := req.content()
	if gap := c.gap(); gap != "" {
		return nil, codes.Newf(codes.InvalidArgument, "%s was not called: %s", c.method, gap)
	}
	response, err := call(ctx, req)
	return judged(answer[R]{
		method: c.method.String(), response: response, err: err, bounds: bounds, rule: rule,
		confidential: confidentialOf(ctx, c.class, c.secret),
		cut: func(whole string) {
			if v.options.Cut != nil {
				v.options.Cut(ctx, c.subject(), whole)
			}
		},
	})
}

// answer is what a driver has answered, and what it is held to.
type answer[R any] struct {
	method       string
	response     *R
	err          error
	bounds       func(*R) []bound
	rule         func(*R) (*R, string)
	confidential *confidential
	cut          func(whole string)
}

// judged is what is passed on of an answer.
func judged[R any](a answer[R]) (*R, error) {
	response, beyond := bounded(withNote(a.response, a.confidential), a.bounds)
	for _, b := range beyond {
		a.cut("the answer has " + b.String() + ": left out")
	}
	if a.err != nil {
		whole, err := heard(a.err, a.confidential)
		if whole != "" {
			a.cut(whole)
		}
		return response, err
	}
	fault := ""
	if i := slices.IndexFunc(beyond, func(b bound) bool { return b.needed }); i >= 0 {
		fault = "has " + beyond[i].String()
	} else {
		response, fault = a.rule(response)
	}
	if fault != "" {
		return response, codes.Newf(codes.Internal, "the driver's answer to %s %s", a.method, fault)
	}
	return response, nil
}

// withNote is a response without what the caller named as confidential.
func withNote[R any](r *R, c *confidential) *R {
	if r == nil {
		return nil
	}
	copied := *r
	n, has := any(&copied).(interface{ note() *string })
	if !has {
		return r
	}
	note := n.note()
	if said := c.noted(*note); said != *note {
		*note = said
		return &copied
	}
	return r
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
	case blank(providerID):
		return "has no provider ID"
	case blank(nodeName) && v.options.NodeNames:
		return "has no node name"
	}
	return ""
}

// CreateMachine implements Driver.
func (v *validated) CreateMachine(ctx context.Context, req *CreateMachineRequest) (*CreateMachineResponse, error) {
	return ruled(ctx, v, req, v.inner.CreateMachine, (*CreateMachineResponse).bounds, func(r *CreateMachineResponse) (*CreateMachineResponse, string) {
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
	return ruled(ctx, v, req, v.inner.InitializeMachine, (*InitializeMachineResponse).bounds, orEmpty)
}

// DeleteMachine implements Driver.
func (v *validated) DeleteMachine(ctx context.Context, req *DeleteMachineRequest) (*DeleteMachineResponse, error) {
	return ruled(ctx, v, req, v.inner.DeleteMachine, (*DeleteMachineResponse).bounds, orEmpty)
}

// GetMachineStatus implements Driver.
func (v *validated) GetMachineStatus(
	ctx context.Context, req *GetMachineStatusRequest,
) (*GetMachineStatusResponse, error) {
	return ruled(ctx, v, req, v.inner.GetMachineStatus, (*GetMachineStatusResponse).bounds,
		func(r *GetMachineStatusResponse) (*GetMachineStatusResponse, string) {
			if r == nil {
				return nil, noResponse
			}
			return r, v.named(r.ProviderID, r.NodeName)
		})
}

// ListMachines implements Driver.
func (v *validated) ListMachines(ctx context.Context, req *ListMachinesRequest) (*ListMachinesResponse, error) {
	return ruled(ctx, v, req, v.inner.ListMachines, (*ListMachinesResponse).bounds, listed)
}

// listed divides a list into what can be acted upon and what can't.
func listed(r *ListMachinesResponse) (*ListMachinesResponse, string) {
	if r == nil {
		return nil, noResponse
	}
	whole, dropped, changed := divided(r.Machines, r.Dropped, func(id, name string) bool { return blank(id) || blank(name) })
	if !changed {
		return r, ""
	}
	return &ListMachinesResponse{Machines: whole, Dropped: dropped}, ""
}

// divided moves the bad entries of a list to those that were dropped before, in
// copies, and reports whether there are any.
func divided[V any](listed, before map[string]V, bad func(id string, of V) bool) (good, dropped map[string]V, changed bool) {
	dropped = maps.Clone(listed)
	maps.DeleteFunc(dropped, func(id string, of V) bool { return !bad(id, of) })
	if len(dropped) == 0 {
		return listed, before, false
	}
	maps.Copy(dropped, before)
	good = maps.Clone(listed)
	maps.DeleteFunc(good, bad)
	return good, dropped, true
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// GetVolumeIDs implements Driver.
func (v *validated) GetVolumeIDs(ctx context.Context, req *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error) {
	return ruled(ctx, v, req, v.inner.GetVolumeIDs, (*GetVolumeIDsResponse).bounds, func(r *GetVolumeIDsResponse) (*GetVolumeIDsResponse, string) {
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
	return ruled(ctx, v, req, v.inner.GenerateMachineClassForMigration, nil, orEmpty)
}

// UpdateMachine implements Driver.
func (v *validated) UpdateMachine(ctx context.Context, req *UpdateMachineRequest) (*UpdateMachineResponse, error) {
	return ruled(ctx, v, req, v.inner.UpdateMachine, (*UpdateMachineResponse).bounds, orEmpty)
}
