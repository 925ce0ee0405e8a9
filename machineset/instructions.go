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
