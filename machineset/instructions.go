package machineset

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
)

// Instructions are what a set's deployment has told the set, beside the spec: what a rollout, a
// scale-down or a move of machines means for it. A user writes none of them. A set without a
// deployment writes its Reservation itself and needs no other part.
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
	// DeletionCandidates are the machines that a scaler has chosen to go with the replicas that it
	// took away. The set deletes them first if it has too many machines. The deployment writes them
	// together with the smaller size, and removes those that the set did not delete. Names that no
	// machine has do no harm.
	DeletionCandidates []DeletionCandidate
	// PreviousClasses are the classes that the template named before the deployment exchanged its
	// class for one that VMs can be updated to. The set gives their machines the template's class,
	// and replaces none for it. It does not change the class of other machines.
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

// specEqual reports whether the parts are the same that count as spec.
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

// Next is the reservation that follows one whose names all became machines,
// or can't any more: n more names are given out at the time at, in whole seconds.
// With n zero, none is, and all that was given out is settled.
func (r Reservation) Next(n int64, at time.Time) Reservation {
	if n == 0 {
		at = r.At
	}
	return Reservation{Settled: r.Reserved, Reserved: r.Reserved + n, At: at}
}

// DeletionCandidate is a machine that a scaler has chosen to go.
type DeletionCandidate struct {
	Name string
	At   time.Time // when the scaler said so or, where its clock is another one, when the set was told; whole seconds
}

// Equal reports whether both say the same, the same instant in any location.
func (v DeletionCandidate) Equal(w DeletionCandidate) bool {
	return v.Name == w.Name && v.At.Equal(w.At)
}

// SurgeAllowance is how far a set may leave its size to replace machines on request or because of
// their age: so many more may exist, and so many may be missing. Neither is negative. If both are
// zero, the set replaces no machine on request, unless it has no owner: then one more may exist.
// A deployment gives its set the bounds of a rollout while such a replacement takes place, if no
// rollout is under way.
type SurgeAllowance struct {
	Surge       int32
	Unavailable int32
}

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

// candidates are the machines that a scaler chose, and when; nil: not needed.
type candidates map[string]time.Time

// chosen says when each of DeletionCandidates was chosen; nil: there are none.
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

// chosenAt is when a scaler chose the machine of this name; false: none did.
func (i *Instructions) chosenAt(name string) (at time.Time, chosen bool) {
	for _, v := range i.DeletionCandidates {
		if v.Name == name {
			return v.At, true
		}
	}
	return time.Time{}, false
}

// still reports whether a machine that a scaler has chosen to go still is what it
// was then. One that has become available since is expected to stay longer than
// those that are not: it is first among its equals only.
func (c candidates) still(m *machine.Machine, available bool, minReady time.Duration) bool {
	at, chosen := c[m.Name]
	return chosen && (!available || !m.AvailableAt(minReady).After(at))
}
