package driver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
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
	needed     bool   // there is no going on without it
	drop       func() // takes what is too large out of the response
}

func (b bound) exceeded() bool { return b.size > b.most }

// String shows nothing of what the part holds.
func (b bound) String() string {
	return fmt.Sprintf("%s of size %d, and %d is the most", b.name, b.size, b.most)
}

func textBound(name string, text *string, most int) bound {
	return bound{name: name, size: len(*text), most: most, drop: func() { *text = "" }}
}

func needed(b bound) bound {
	b.needed = true
	return b
}

// bounded is a response without what exceeds its bound, and what that is. The
// driver's own response is not changed.
func bounded[R any](r *R, bounds func(*R) []bound) (*R, []bound) {
	if r == nil || bounds == nil || !slices.ContainsFunc(bounds(r), bound.exceeded) {
		return r, nil
	}
	c := *r
	var cut []bound
	for _, b := range bounds(&c) {
		if b.exceeded() {
			b.drop()
			cut = append(cut, b)
		}
	}
	return &c, cut
}

// vmBounds are those of what describes a VM.
func vmBounds(id, node *string, addresses *[]machine.Address) []bound {
	size := func(a machine.Address) int { return max(len(a.Type), len(a.Value)) }
	longest := 0
	for _, a := range *addresses {
		longest = max(longest, size(a))
	}
	return []bound{
		needed(textBound("a provider ID", id, MaxID)), needed(textBound("a node name", node, MaxName)),
		{name: "an address", size: longest, most: MaxName, drop: func() {
			*addresses = without(*addresses, func(a machine.Address) bool { return size(a) > MaxName })
		}},
		{name: "a number of addresses", size: len(*addresses), most: MaxAddresses, drop: func() {
			*addresses = slices.Clip((*addresses)[:min(len(*addresses), MaxAddresses)])
		}},
	}
}

// without is a copy of a list without some entries; nil: none is left.
func without[E any](all []E, unwanted func(E) bool) []E {
	kept := slices.DeleteFunc(slices.Clone(all), unwanted)
	if len(kept) == 0 {
		return nil
	}
	return kept
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

// bounds: an entry that is too long goes to Dropped.
func (r *ListMachinesResponse) bounds() []bound {
	id, name := longest(maps.Keys(r.Machines)), longest(maps.Values(r.Machines))
	return []bound{
		{name: "a provider ID", size: id, most: MaxID, drop: r.dropLong},
		{name: "a machine's name", size: name, most: MaxName, drop: r.dropLong},
	}
}

func (r *ListMachinesResponse) dropLong() {
	long := func(id, name string) bool { return len(id) > MaxID || len(name) > MaxName }
	dropped := maps.Clone(r.Dropped)
	if dropped == nil {
		dropped = make(map[string]string)
	}
	for id, name := range r.Machines {
		if long(id, name) {
			dropped[shortened(id, MaxID)] = shortened(name, MaxName)
		}
	}
	r.Machines, r.Dropped = maps.Clone(r.Machines), dropped
	maps.DeleteFunc(r.Machines, long)
}

// bounds are those of ListMachines' answer, of a namespace too.
func (r *ListPoolsResponse) bounds() []bound {
	name := 0
	for _, pool := range r.Groups {
		name = max(name, len(pool.Namespace), len(pool.Name))
	}
	return []bound{
		{name: "a group ID", size: longest(maps.Keys(r.Groups)), most: MaxID, drop: r.dropLong},
		{name: "a pool's name", size: name, most: MaxName, drop: r.dropLong},
	}
}

func (r *ListPoolsResponse) dropLong() {
	long := func(id string, pool object.Key) bool {
		return len(id) > MaxID || len(pool.Namespace) > MaxName || len(pool.Name) > MaxName
	}
	dropped := maps.Clone(r.Dropped)
	if dropped == nil {
		dropped = make(map[string]object.Key)
	}
	for id, pool := range r.Groups {
		if long(id, pool) {
			dropped[shortened(id, MaxID)] = object.Key{Namespace: shortened(pool.Namespace, MaxName), Name: shortened(pool.Name, MaxName)}
		}
	}
	r.Groups, r.Dropped = maps.Clone(r.Groups), dropped
	maps.DeleteFunc(r.Groups, long)
}

// shortened is a text of at most most bytes, with a mark where it was cut: so it
// is nobody's name.
func shortened(text string, most int) string {
	const mark = " … (cut)"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}

// bounds: a volume that is left out is one that nobody waits for, so there is no
// going on without it.
func (r *GetVolumeIDsResponse) bounds() []bound {
	return []bound{{"a volume ID", longest(slices.Values(r.VolumeIDs)), MaxID, true, func() { r.VolumeIDs = nil }}}
}

// bounds: where a group is known already, what is known stays.
func (r *PoolResponse) bounds() []bound {
	return []bound{textBound("a group ID", &r.GroupID, MaxID), noteBound(&r.LastKnownState)}
}

// createdBounds are those of CreatePool's answer.
func (r *PoolResponse) createdBounds() []bound {
	return []bound{needed(textBound("a group ID", &r.GroupID, MaxID)), noteBound(&r.LastKnownState)}
}

func (r *GetPoolStatusResponse) bounds() []bound {
	id := 0
	for i := range r.Instances {
		id = max(id, len(r.Instances[i].ProviderID))
	}
	return []bound{
		needed(textBound("a group ID", &r.GroupID, MaxID)), noteBound(&r.LastKnownState),
		{name: "an instance's provider ID", size: id, most: MaxID, drop: func() {
			r.Instances = without(r.Instances, func(i machinepool.Instance) bool { return len(i.ProviderID) > MaxID })
		}},
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
// line, and without what is confidential. whole is the text, with the cause, of one
// of which something is changed or cut; otherwise it is empty, and the error is
// returned as it is.
func heard(err error, c *confidential) (whole string, passed error) {
	message, text := codes.Message(err), codes.Message(err)
	if own, typed := err.(*codes.Error); typed { //nolint:errorlint // what codes.Message does
		text = own.Error()
	}
	whole = c.hidden(text)
	if whole == text && len(text) <= codes.MaxMessage && codes.Printable(text) == text {
		return "", err
	}
	shown, _ := codes.Bounded(codes.Printable(c.hidden(message)))
	return whole, codes.New(codes.Of(err), shown)
}
