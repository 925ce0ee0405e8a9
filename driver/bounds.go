package driver

import (
	"fmt"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// How many bytes of what a driver answers Validate and ValidatePool pass on. All
// of it is stored, so all of it is bounded. The figures are this library's: far
// above what providers need, and far below what a store refuses.
const (
	// MaxID is for a provider ID, a group ID or a volume ID.
	MaxID = 1 << 10
	// MaxName is for a node name, a listed machine's name, and an address.
	MaxName = 253
	// MaxNote is for a LastKnownState.
	MaxNote = 32 << 10
	// MaxAddresses is how many addresses a VM may have.
	MaxAddresses = 64
)

// bound is one part of a response, and how large it may be.
type bound struct {
	name       string
	size, most int
	drop       func() // takes the part out of the response
}

func (b bound) exceeded() bool { return b.size > b.most }

func textBound(name string, text *string, most int) bound {
	return bound{name, len(*text), most, func() { *text = "" }}
}

// bounded is a response without what exceeds its bound, and what that is; empty:
// nothing does. The driver's own response is not changed.
func bounded[R any](r *R, bounds func(*R) []bound) (*R, string) {
	if r == nil || bounds == nil {
		return r, ""
	}
	all := bounds(r)
	i := slices.IndexFunc(all, bound.exceeded)
	if i < 0 {
		return r, ""
	}
	c := *r
	for _, b := range bounds(&c) {
		if b.exceeded() {
			b.drop()
		}
	}
	return &c, fmt.Sprintf("has %s of size %d, and %d is the most", all[i].name, all[i].size, all[i].most)
}

// vmBounds are those of what describes a VM.
func vmBounds(id, node *string, addresses *[]machine.Address) []bound {
	all := []bound{
		textBound("a provider ID", id, MaxID), textBound("a node name", node, MaxName),
		{"a number of addresses", len(*addresses), MaxAddresses, func() { *addresses = nil }},
	}
	for i := range *addresses {
		a := &(*addresses)[i]
		all = append(all, bound{"an address", max(len(a.Type), len(a.Value)), MaxName, func() { *addresses = nil }})
	}
	return all
}

func (r *CreateMachineResponse) bounds() []bound {
	return append(vmBounds(&r.ProviderID, &r.NodeName, &r.Addresses), noteBound(&r.LastKnownState))
}

func (r *InitializeMachineResponse) bounds() []bound {
	return vmBounds(&r.ProviderID, &r.NodeName, &r.Addresses)
}

func (r *GetMachineStatusResponse) bounds() []bound {
	return vmBounds(&r.ProviderID, &r.NodeName, &r.Addresses)
}

func noteBound(note *string) bound { return textBound("a last known state", note, MaxNote) }

func (r *DeleteMachineResponse) bounds() []bound { return []bound{noteBound(&r.LastKnownState)} }

func (r *UpdateMachineResponse) bounds() []bound { return []bound{noteBound(&r.LastKnownState)} }

func (r *ListMachinesResponse) bounds() []bound {
	var id, name int
	for i, n := range r.Machines {
		id, name = max(id, len(i)), max(name, len(n))
	}
	drop := func() { r.Machines = nil }
	return []bound{{"a provider ID", id, MaxID, drop}, {"a machine's name", name, MaxName, drop}}
}

func (r *GetVolumeIDsResponse) bounds() []bound {
	return []bound{{"a volume ID", longest(slices.Values(r.VolumeIDs)), MaxID, func() { r.VolumeIDs = nil }}}
}

func (r *PoolResponse) bounds() []bound {
	return []bound{textBound("a group ID", &r.GroupID, MaxID), noteBound(&r.LastKnownState)}
}

func (r *GetPoolStatusResponse) bounds() []bound {
	id := 0
	for i := range r.Instances {
		id = max(id, len(r.Instances[i].ProviderID))
	}
	return []bound{
		textBound("a group ID", &r.GroupID, MaxID), noteBound(&r.LastKnownState),
		{"an instance's provider ID", id, MaxID, func() { r.Instances = nil }},
	}
}

func (r *CreateMachineResponse) note() *string { return &r.LastKnownState }
func (r *DeleteMachineResponse) note() *string { return &r.LastKnownState }
func (r *UpdateMachineResponse) note() *string { return &r.LastKnownState }
func (r *PoolResponse) note() *string          { return &r.LastKnownState }
func (r *GetPoolStatusResponse) note() *string { return &r.LastKnownState }

// longest is the length of the longest of some texts.
func longest(texts func(func(string) bool)) (n int) {
	for text := range texts {
		n = max(n, len(text))
	}
	return n
}

// heard is an error as it is passed on: of at most codes.MaxMessage bytes, on one
// line, and without what is confidential. whole is the text of one that was cut;
// otherwise it is empty. An error that is fine is returned as it is.
func heard(err error, c *confidential) (whole string, passed error) {
	message, text := codes.Message(err), codes.Message(err)
	if own, typed := err.(*codes.Error); typed { //nolint:errorlint // what codes.Message does
		text = own.Error()
	}
	shown, cut := codes.Bounded(codes.Printable(c.hidden(message)))
	told := c.hidden(text)
	if told == text && len(text) <= codes.MaxMessage && codes.Printable(text) == text {
		return "", err
	}
	if !cut {
		told = ""
	}
	return told, codes.New(codes.Of(err), shown)
}
