package deployment

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// Children are a set and the machines it owns, in any order. Machines of
// another owner are not counted.
type Children struct {
	Set      *machineset.Set
	Machines []*machine.Machine
}

// Observation is what a decision about one deployment is made from. The caller
// fills in Deployment, Sets and Orphans from its caches before the first
// Decide of a pass, and keeps them up to date with what it carries out: each
// order and write says how, see Plan. Everything in it is read-only.
type Observation struct {
	Deployment *Deployment
	// Sets are the sets that this deployment owns, also those that are being
	// deleted, in any order. Others are left alone.
	Sets []Children
	// Orphans are the sets of its namespace that nobody owns.
	Orphans []*machineset.Set

	// HotUpdate says to what VMs of this deployment can be brought without
	// being replaced; nil: to nothing.
	HotUpdate *HotUpdate

	// Read says how everything above was read in this pass, in this order: the deployment; its sets
	// and the orphans; the machines. Longer than machineset.DeleteWithin after it ended, no set is
	// resized or deleted and no machine marked because of it.
	Read decision.Freshness
	// Frozen has no set created and none grow. The rest goes on.
	Frozen bool
	// Taken is what the name of a new set turned out to belong to, after its
	// creation was answered "already exists". Nil: it was not.
	Taken *Taken
	// Failed is the first refusal of an order in this pass. "Already exists"
	// of a create, a set that is gone on a delete and a conflict are none.
	Failed *machine.Outcome
	// Refused is what this process remembers of the last refusal in an earlier
	// pass, as long as the deployment's generation is still the same: no order
	// is given before its time. Nil: there was none. Losing it is harmless.
	Refused *Refusal
	// Failures counts this process's consecutive passes with a refusal; it
	// only lengthens waits.
	Failures int
	// StatusWritten is when this process last wrote this deployment's status;
	// zero: it has not yet.
	StatusWritten time.Time
	// Gathering is Plan.Gathering of this process's last decision about the
	// deployment; zero: there was none. Losing it lengthens a wait.
	Gathering time.Time
}

// Refusal is an order that was refused, and when one may be given again.
type Refusal struct {
	machine.Outcome
	Until time.Time
}

// Taken is the answer to the question who holds a name.
type Taken struct {
	Name string
	// Set holds the name, read live. Nil: it was asked, and the name is free
	// by now.
	Set *machineset.Set
}

// Write is one change of the deployment in the store: *Update or *UpdateStatus.
// The object that the store returns replaces Observation.Deployment.
//
//sumtype:decl
type Write interface{ write() }

// Update stores metadata, revision and spec.
type Update struct {
	Deployment *Deployment
	// News says that the plan's Why is an event once the update is stored, each
	// time: the owner's request has been answered. Empty: it is none.
	News News
}

// News is the type of an event, in the usual spelling.
type News string

// The types of events.
const (
	NewsNormal  News = "Normal"
	NewsWarning News = "Warning"
)

// UpdateStatus stores the status; the caller notes when, as
// Observation.StatusWritten.
type UpdateStatus struct{ Status Status }

func (*Update) write()       {}
func (*UpdateStatus) write() {}

// Order is one thing to do to one set.
type Order struct {
	Set *machineset.Set
	Why decision.Why
}

// MachineOrder is one change of one machine: a changed copy, for an update
// under the version it carries.
type MachineOrder struct {
	Machine *machine.Machine
	Why     decision.Why
}

// Plan is what to do next: carry out Write, or ReadLive, or the orders of the
// one slice that is filled, bring the observation up to date, and decide
// again; with none of them, look again at At.
//
// Orders of one slice are carried out first to last. At the first refusal the
// rest is dropped, Observation.Failed is set, and it is decided again. A
// conflict, and a set that is gone where it should be updated, end the pass: a
// new one begins with fresh reads.
type Plan struct {
	Write Write
	// ReadLive asks for a live read of the whole observation, see
	// Observation.Read.
	// It comes once in a pass, and again when that read has got too old for the
	// orders to come; Taken stays then as it is. A deployment that is gone, or
	// has another UID, ends the pass.
	ReadLive bool

	// Create holds a whole set; what the store returns is added to
	// Observation.Sets, without machines. "Already exists": Observation.Taken.
	Create []Order
	// Push and Scale hold changed copies for an update under the version they
	// carry; what the store returns takes the place of the set observed.
	Push, Scale []Order
	// Delete holds sets to be deleted under their UID. Each is read again
	// live: it takes the place of the set observed or, when it is gone, is
	// taken out.
	Delete []Order
	// Adopt holds changed copies for an update, as Scale; the set moves from
	// Orphans to Sets, with its machines, read live.
	Adopt []Order
	// Release holds changed copies for an update, as Scale; the set moves
	// from Sets to Orphans.
	Release []Order
	// Handover holds changed copies for an update, as Scale: machines are about
	// to move from set to set, or have. A set that machines come to is before
	// those that they leave.
	Handover []Order

	// Mark holds machines of which another request is made than before. What
	// the store returns takes the place of the machine observed; one that is
	// gone is taken out. The orders may be carried out at once. A refusal stops
	// none of the others. A conflict ends the pass.
	Mark []MachineOrder
	// Move holds machines that get another set, carried out as Mark: what the
	// store returns joins the machines of its new owner.
	Move []MachineOrder

	// Until is the moment from which on no order of Scale, Delete and Mark may be
	// issued. Those that were not issued before are dropped: that is no refusal,
	// and the next decision reads live again. Zero without these orders.
	Until time.Time

	// Gathering is since when orders wait for others to join them, see
	// Policy.Gather, until they are seen to be carried out; zero: none do. The
	// caller keeps it, as Observation.Gathering of all decisions to come.
	Gathering time.Time

	// At is when to look again though nothing has changed; zero: never.
	At time.Time
	// Why of a plan with orders is that of the first.
	Why decision.Why
	// Warn is something its owner should know; zero: nothing. It comes with
	// each pass; telling it once is the caller's part.
	Warn decision.Why
}
