package machineset

import "slices"

// Handover is what a deployment notes on its sets while it moves machines from
// one to another, which takes several writes: first the set they come to grows
// and names them as arriving; then the set they leave shrinks and names them as
// leaving; then each machine gets its new owner; then the names are taken off.
// Wherever that stops, each machine counts once, in one set. A set without an
// owner disregards all of it, and so does one that is being deleted: it takes
// with it what it owns.
//
// Only the deployment writes it. The zero Handover moves nothing.
type Handover struct {
	// Arriving are the names of machines that count as here though another
	// set may own them still: none is created in their place.
	Arriving []string
	// Leaving are the names of machines that count as gone though this set
	// may own them still: they are neither deleted nor released nor changed.
	Leaving []string
	// Closed says that no machine is created, for any size. Either
	// the machines are being updated in place, and one that is lost is replaced
	// in the set that they go to; or the set was raised to keep machines that it
	// was to delete, and those that it has deleted are not to be made again.
	Closed bool
}

// Clone returns a copy that shares nothing with h.
func (h *Handover) Clone() Handover {
	return Handover{Arriving: slices.Clone(h.Arriving), Leaving: slices.Clone(h.Leaving), Closed: h.Closed}
}

func nameSet(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
