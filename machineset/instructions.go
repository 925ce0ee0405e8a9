package machineset

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
)

// Instructions come from a set's deployment, in addition to the spec: what the set has to do for a rollout, a
// scale-down or a move of machines. A user writes none of them. A set without a deployment
// writes its Reservation itself and needs no other part.
//
// Reservation and Handover are written with the metadata. The other parts count as spec: if one
// of them changes, the set's generation changes too.
type Instructions struct {
	// Reservation holds which machine names were given out. The set writes it before it creates
	// machines. Its deployment may write it too, together with a larger size.
	Reservation Reservation
	// Handover names the machines that move from one set to another, and says whether the set is
	// closed to new ones. A set without a deployment ignores it.
	Handover Handover
	// Marks are the rollout marks for the nodes of all the set's machines. They are no part of the
	// template: the set replaces no machine because of them.
	Marks machine.RolloutMarks
	// DeletionCandidates are the machines that a scaler has chosen to be deleted when it scaled
	// down. The set deletes them first if it has too many machines. The deployment writes them
	// together with the smaller size, and removes those that the set did not delete. Names that no
	// machine has are ignored.
	DeletionCandidates []DeletionCandidate
	// PreviousClasses are classes that the template had before. The deployment has replaced them by
	// one that VMs can be updated to. The set gives machines of these classes the template's class,
	// and does not replace them. It does not change the class of other machines.
	PreviousClasses []string
	// SurgeAllowance is how far the set may leave its size to replace machines on request, or
	// because of their age.
	SurgeAllowance SurgeAllowance
}

// Clone returns a copy that shares nothing with i.
func (i *Instructions) Clone() Instructions {
	c := *i
	c.Handover = i.Handover.Clone()
	c.DeletionCandidates = slices.Clone(i.DeletionCandidates)
	c.PreviousClasses = slices.Clone(i.PreviousClasses)
	return c
}

// specEqual reports whether the parts that count as spec are the same.
func (i *Instructions) specEqual(j *Instructions) bool {
	return i.Marks == j.Marks && i.SurgeAllowance == j.SurgeAllowance &&
		slices.EqualFunc(i.DeletionCandidates, j.DeletionCandidates, DeletionCandidate.Equal) &&
		slices.Equal(i.PreviousClasses, j.PreviousClasses)
}

// Reservation counts the machine names that a set has given out, by ordinal, from 1. Names with
// ordinals up to Settled are never used again. Machines with the ordinals above it, up to Reserved,
// may or may not have been created, by this process or by one that died.
type Reservation struct {
	Settled  int64     // not negative
	Reserved int64     // at least Settled
	At       time.Time // of the last reservation, whole seconds
}

// Next returns the reservation that follows r when each name of r has become a machine, or can't any more. All
// names of r are settled, and n more are given out. at is when, in whole seconds. If n is zero, At stays as
// it is.
func (r Reservation) Next(n int64, at time.Time) Reservation {
	if n == 0 {
		at = r.At
	}
	return Reservation{Settled: r.Reserved, Reserved: r.Reserved + n, At: at}
}

// DeletionCandidate is a machine that a scaler has chosen to be deleted.
type DeletionCandidate struct {
	Name string
	// At is when the scaler chose it or, if the scaler's clock can't be used, when the deployment wrote this. Whole
	// seconds.
	At time.Time
}

// Equal reports whether both are the same. Times are compared as instants.
func (v DeletionCandidate) Equal(w DeletionCandidate) bool {
	return v.Name == w.Name && v.At.Equal(w.At)
}

// SurgeAllowance is how far the number of a set's machines may differ from its size while it replaces machines
// on request or because of their age. Neither field is negative. If both are zero, the set replaces none for
// these reasons, unless it has no owner: then its Surge is 1. A deployment gives its set the bounds of a
// rollout for such replacements, if no rollout is under way.
type SurgeAllowance struct {
	Surge       int32 // how many more may exist
	Unavailable int32 // how many may be missing
}

// Handover tells sets about machines that their deployment moves from one to
// another. That takes several writes: first the target set grows
// and names the machines as arriving; then the source set shrinks and names them as
// leaving; then each machine gets its new owner; then the names are removed.
// If that stops halfway, each machine still counts once, in one set. A set without an
// owner ignores the handover. So does one that is being deleted: it deletes
// all machines that it owns.
//
// Only the deployment writes it. The zero Handover moves nothing.
type Handover struct {
	// Arriving are the names of machines that count as the set's, even if another
	// set still owns them: none is created in their place.
	Arriving []string
	// Leaving are the names of machines that no longer count as the set's, even if it still
	// owns them: they are not deleted, released or changed.
	Leaving []string
	// Closed says that no machine is created, whatever the set's size. There are two uses. The
	// machines are being updated in place, and one that is lost is replaced in the set that they move
	// to. Or a scale-down was taken back, and the set's size was raised again to keep the machines that
	// it has not deleted yet; those that it has deleted are not to be created again.
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

// candidates are the names of machines that a scaler chose, with the time of the choice.
type candidates map[string]time.Time

// chosen returns DeletionCandidates as a map. Nil: there are none.
func (i *Instructions) chosen() candidates {
	if len(i.DeletionCandidates) == 0 {
		return nil
	}
	at := make(candidates, len(i.DeletionCandidates))
	for _, v := range i.DeletionCandidates {
		at[v.Name] = v.At
	}
	return at
}

// chosenAt returns when a scaler chose the machine with this name. False: no scaler did.
func (i *Instructions) chosenAt(name string) (at time.Time, chosen bool) {
	for _, v := range i.DeletionCandidates {
		if v.Name == name {
			return v.At, true
		}
	}
	return time.Time{}, false
}

// applies reports whether a scaler has chosen a machine, and the choice still puts it before all others. It does
// not if the machine has become available since: unavailable machines are deleted before it.
func (c candidates) applies(m *machine.Machine, available bool, minReady time.Duration) bool {
	at, chosen := c[m.Name]
	return chosen && (!available || !m.AvailableAt(minReady).After(at))
}
