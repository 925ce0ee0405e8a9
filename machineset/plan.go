package machineset

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// Observation is what a decision about one set is made from. The caller fills
// in Set, Machines and Orphans from its caches before the first Decide of a
// pass, and brings them up to date with every plan it carries out, as the
// fields of Plan say.
type Observation struct {
	Set *Set
	// Machines are those whose owner has the set's UID, in any order, each
	// once, also those being deleted. They are shared and only read, as are
	// Orphans; nil entries and other sets' machines are passed over.
	Machines []*machine.Machine
	// Orphans are machines of the set's namespace without an owner. Only
	// those whose labels match matter; more do no harm.
	Orphans []*machine.Machine
	// Read says how Set, Machines and Orphans were read in this pass, the machines after the set.
	// The caller keeps them up to date afterwards. When the reads began matters, too: only reads
	// made after a create could come in show that it will not.
	Read decision.Freshness
	// Frozen holds back creations, not deletions.
	Frozen bool

	// Hold says that creations of the template's class are slowed. Nil: they
	// are not.
	Hold *machine.Hold
	// Inputs are the versions of the template's class and its secrets. They
	// are needed only while Set.Status.CrashLoop is not zero, or machines have
	// failed; a caller that never fills them in does no harm.
	Inputs machine.Inputs

	// Created is the highest ordinal such that this process knows of all names
	// of the open reservation up to it that they became machines, even if
	// those are gone: the creates that it ordered were answered OK or with
	// "already exists". Zero: it knows of none. It may be kept from pass to pass
	// for as long as the set has this UID, Reservation.Reserved and
	// Reservation.At.
	Created int64
	// Refused holds what went wrong with orders of this pass.
	Refused Refused
	// Failures counts this process's passes over the set, just before this
	// one, in which an order was refused; a pass without a refusal in which
	// orders were carried out makes it zero. It only lengthens waits, so
	// losing it is harmless.
	Failures int
	// StatusWritten is when this process last wrote the set's status; zero:
	// not yet.
	StatusWritten time.Time
}

// Refused holds the first refusal of each kind of order in a pass; nil: there
// was none. Orders of a kind that was refused are not given again in that pass.
//
// Not a refusal: a create answered with "already exists"; a delete, adoption,
// release or push of a machine that is gone, or that now has another UID
// (see Plan); and a conflict, which ends the pass.
type Refused struct {
	Change *machine.Outcome // of Adopt, Release or Push
	Delete *machine.Outcome
	Create *machine.Outcome
}

// Write is one change of the set in the store: *Update or *UpdateStatus.
//
//sumtype:decl
type Write interface{ write() }

// Update stores metadata, reservation and spec.
type Update struct{ Set *Set }

// UpdateStatus stores the status.
type UpdateStatus struct{ Status Status }

func (*Update) write()       {}
func (*UpdateStatus) write() {}

// Order is one thing to do to one machine.
type Order struct {
	// Machine is, for Create, the whole machine to create; for Adopt, Release
	// and Push, a changed copy to update under the version it was read with;
	// for Delete, the machine as observed, to be deleted if it still has this
	// UID.
	Machine *machine.Machine
	// Ordinal is that of a machine to create; zero in other orders.
	Ordinal int64
	Why     decision.Why
}

// Plan is what to do next. At most one of Write, ReadLive and the slices of
// orders is filled: carry it out, bring the observation up to date, and decide
// again. With none of them the pass is over: look again at At.
//
// A conflict or a "not found" about the set itself ends the pass; the next one
// begins with fresh reads.
type Plan struct {
	// Write compares and swaps under the version of Observation.Set. The set
	// that the store answers with replaces it; Read stays as it is. After an
	// UpdateStatus, StatusWritten becomes the present.
	Write Write

	// ReadLive asks for the set, then its machines and the orphans, all read
	// live, to replace what is in the observation; Observation.Read says when. A set that is
	// gone, or has another UID, ends the pass. The set is read once more at the
	// end; if its version is another one by then, the pass ends as after a
	// conflict. Else a machine that the owner moved to the set meanwhile could
	// look like one too many, and the size would be older than Read says.
	ReadLive bool

	// Create orders come by rising ordinal. Carry them out in this order, in
	// batches of 1, 2, 4 and so on; a refusal in a batch is the last batch.
	// None may be issued after Until. For each answer:
	//   - OK: the machine that the store answered with joins Machines.
	//   - "already exists": Read becomes zero; or that machine is read live
	//     and joins Machines if the set owns it.
	//   - anything else, also when its effect is unknown: Refused.Create.
	// Then Created becomes the Ordinal of the last order before the first
	// one that was not answered OK or "already exists".
	Create []Order
	// Until is the moment from which on no create and no delete of this plan may
	// be issued. Zero without Create and Delete.
	Until time.Time

	// Delete orders may be carried out in any order or at once, and a
	// refusal (Refused.Delete) stops none of the others. Those that were not
	// issued before Until are dropped: that is no refusal, and the next decision
	// reads live again, see DeleteWithin. A machine whose
	// deletion was accepted is replaced in Machines by one with DeletedAt set,
	// or leaves it if it is gone, as it does if it was gone before or its name
	// now has another UID. Where the store does not answer with the machine
	// as it is then, a copy with DeletedAt set to the present will do.
	Delete []Order

	// Adopt, Release and Push are carried out as Delete is, with a refusal
	// going to Refused.Change. What the store answered with takes the place of
	// the old machine: adopted ones move from Orphans to Machines, released
	// ones leave Machines, pushed ones stay. Machines that are gone leave.
	Adopt   []Order
	Release []Order
	Push    []Order

	// At is when to look again though nothing has changed; zero: never.
	At  time.Time
	Why decision.Why
	// Warn is something that the set's owner should know; zero: nothing.
	Warn decision.Why
}
