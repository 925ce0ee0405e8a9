package machinepool

import (
	"slices"

	"github.com/millwright-go/millwright/codes"
)

// Applied is what a group was made from, or is being made from. Its zero value: not known. A
// ClassGeneration of -1: made by one of several different orders.
type Applied struct {
	Template        Template
	FailureDomains  []string
	RollingUpdate   *RollingUpdate
	ClassUID        string
	ClassGeneration int64
	// Doubted: an update is under way, or its outcome is not known. The group may follow that
	// update.
	Doubted bool
}

// Equal reports whether both are the same to a provider.
func (a *Applied) Equal(b *Applied) bool {
	return a.Doubted == b.Doubted && a.ClassUID == b.ClassUID && a.ClassGeneration == b.ClassGeneration &&
		slices.Equal(a.FailureDomains, b.FailureDomains) && samePointer(a.RollingUpdate, b.RollingUpdate) && a.Template.Equal(&b.Template)
}

// Clone returns a copy that shares nothing changeable with a.
func (a *Applied) Clone() Applied {
	c := *a
	c.Template = a.Template.Clone()
	c.FailureDomains = slices.Clone(a.FailureDomains)
	c.RollingUpdate = copied(a.RollingUpdate)
	return c
}

// current returns what a group made or updated now is made from.
func (d *decider) current() Applied {
	spec := &d.s.Spec
	a := Applied{Template: spec.Template.Clone(), FailureDomains: spec.FailureDomains, RollingUpdate: spec.RollingUpdate}
	if d.o.Class != nil {
		a.ClassUID, a.ClassGeneration = d.o.Class.UID, d.o.Class.Generation
	}
	return a
}

// ordered returns what a group can be made from once one more create is sent. An earlier create may
// have been carried out without an answer, or may still be, and the driver adopts the group it
// made. If the orders differ, it is not known which of them the group follows until it is updated.
func (d *decider) ordered(before *Applied) Applied {
	now := d.current()
	if before.Equal(&Applied{}) || before.Equal(&now) {
		return now
	}
	return Applied{ClassGeneration: severalOrders}
}

// severalOrders is a generation that no class has.
const severalOrders = -1

// doubted returns what a group follows while an update of it is under way: a, or what the update
// brings. The wanted state may be a again before there is an answer. After a second update without
// an answer nothing is known.
func (a *Applied) doubted() Applied {
	if a.Doubted {
		return Applied{ClassGeneration: severalOrders}
	}
	b := a.Clone()
	b.Doubted = true
	return b
}

// undoubted returns what the group follows after an answer by which nothing was changed.
func (a *Applied) undoubted() Applied {
	b := a.Clone()
	b.Doubted = false
	return b
}

// changesNothing reports whether a code says that a call was rejected before anything was done.
func changesNothing(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.OutOfRange:
		return true
	case codes.OK, codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.NotFound, codes.AlreadyExists, codes.ResourceExhausted,
		codes.PreconditionFailed, codes.Aborted, codes.Internal, codes.Unavailable, codes.DataLoss, codes.Uninitialized:
	}
	return false
}

// asApplied reports whether the group was made from the pool's current template.
func (d *decider) asApplied() bool {
	a, c, spec := &d.s.Status.Applied, d.o.Class, &d.s.Spec
	want := Applied{
		Template: spec.Template, FailureDomains: spec.FailureDomains, RollingUpdate: spec.RollingUpdate,
		ClassUID: c.UID, ClassGeneration: c.Generation,
	}
	return a.Equal(&want)
}
