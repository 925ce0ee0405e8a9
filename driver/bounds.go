package driver

import (
	"slices"

	"github.com/millwright-go/millwright/machine"
)

// These are the largest parts of a driver's answer that Validate passes on, in bytes except for
// MaxAddresses. Answers are stored, so they must be bounded. The bounds are this library's choice: far
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

// vmBounds returns the bounds of a VM's description.
func vmBounds(id, node *string, addresses *[]machine.Address) []Bound {
	size := func(a machine.Address) int { return max(len(a.Type), len(a.Value)) }
	longest := 0
	for _, a := range *addresses {
		longest = max(longest, size(a))
	}
	return []Bound{
		{Name: "a provider ID", Text: id, Most: MaxID, Needed: true},
		{Name: "a node name", Text: node, Most: MaxName, Needed: true, Unfit: func(shows func(string) bool) bool {
			if !shows(*node) {
				return false
			}
			*node = ""
			return true
		}},
		{Name: "an address", Size: longest, Most: MaxName, Drop: func() {
			*addresses = without(*addresses, func(a machine.Address) bool { return size(a) > MaxName })
		}, Unfit: func(shows func(string) bool) bool {
			all := len(*addresses)
			*addresses = without(*addresses, func(a machine.Address) bool { return shows(a.Type) || shows(a.Value) })
			return len(*addresses) < all
		}},
		{Name: "a number of addresses", Size: len(*addresses), Most: MaxAddresses, Drop: func() {
			*addresses = slices.Clip((*addresses)[:min(len(*addresses), MaxAddresses)])
		}},
	}
}

// without returns a copy of a list without some entries. Nil: none is left.
func without[E any](all []E, unwanted func(E) bool) []E {
	kept := slices.DeleteFunc(slices.Clone(all), unwanted)
	if len(kept) == 0 {
		return nil
	}
	return kept
}
