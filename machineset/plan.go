package machineset

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// Observation is the input of a decision about one set. The caller fills
// in Set, Machines and Orphans from its caches before the first Decide of a
// pass, and brings them up to date with every plan it carries out, as the
// fields of Plan say.
type Observation struct {
	Set *Set
	// Machines are those whose owner has the set's UID, in any order, each
	// once, also those being deleted. They are shared and only read, as are
	// Orphans; nil entries and other sets' machines are passed over.
	Machines []*machine.Machine
	// Orphans are machines of the set's namespace without an owner. Those
	// whose labels don't match are ignored, so the caller may leave them out.
	Orphans []*machine.Machine
	// Read says how Set, Machines and Orphans were read in this pass, the machines after the set.
	// The caller keeps them up to date afterwards. When the reads began matters, too: only a read
	// made after the last moment at which a create could take effect shows that it did not.
	Read decision.Freshness
	// Frozen prevents creations, and deletions to replace machines on request or for their age; not others.
	Frozen bool

	// ClassBackoff says that creations of the template's class are slowed. Nil: they
	// are not.
	ClassBackoff *machine.ClassBackoff
	// Inputs are the versions of the template's class and its secrets. They are
	// needed only while Set.Status.CrashLoop is not zero, or machines have failed. A caller
	// may leave them out: then a new version does not end the crash-loop backoff.
	Inputs machine.Inputs

	// Created is an ordinal of the open reservation: this process knows that all names up to it
	// became machines, because its creates were answered OK or with "already exists". Some
	// of these machines may be gone. Zero: it knows of none. The caller may keep it from pass to pass
	// while the set's UID, Reservation.Reserved and Reservation.At stay the same.
	Created int64
	// Refused holds the refused orders of this pass.
	Refused Refused
	// Failures counts the consecutive passes before this one in which an order was
	// refused. A pass in which orders were carried out and none was refused resets it to zero.
	// It only lengthens waits, so that a process may lose it.
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
// again. If none is filled, the pass is over: decide again at At.
//
// A conflict or a "not found" about the set itself ends the pass; the next one
// begins with fresh reads.
type Plan struct {
	// Write compares and swaps under the version of Observation.Set. The set
	// that the store answers with replaces it; Read stays as it is. After an
	// UpdateStatus, StatusWritten becomes the present.
	Write Write

	// ReadLive asks for the set, then its machines and the orphans, all read
	// live. They replace what is in the observation, and Observation.Read says when they were read. A
	// set that is gone, or has another UID, ends the pass. The set is read once more at the
	// end; if its version has changed by then, the pass ends as after a conflict. Otherwise a
	// machine that the owner moved to the set meanwhile could look like a surplus one, and the
	// size would be older than Read says.
	ReadLive bool

	// Create orders come by rising ordinal. Carry them out in this order, in
	// batches of 1, 2, 4 and so on. After a batch with a refusal, drop the rest.
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

	// Delete orders may be carried out in any order or at once. If one is
	// refused (Refused.Delete), the others are still carried out. Those not
	// issued before Until are dropped: that is no refusal, and the next decision
	// reads live again, see DeleteWithin. If a deletion was accepted, replace the
	// machine in Machines by the one that the store answered with, or by a copy with DeletedAt
	// set to the present. If the machine is gone, or its name now has another
	// UID, remove it from Machines.
	Delete []Order

	// Adopt, Release and Push are carried out like Delete, but not limited by Until; a
	// refusal goes to Refused.Change. What the store answered with replaces the
	// old machine: an adopted one moves from Orphans to Machines, a released
	// one is removed from Machines, a pushed one stays there. Machines that are gone are removed.
	Adopt   []Order
	Release []Order
	Push    []Order

	// At is when to decide again even if nothing has changed; zero: never.
	At  time.Time
	Why decision.Why
	// Warn is something that the set's owner should know; zero: nothing.
	Warn decision.Why
}

// The reasons of decisions about one set. Those of refused orders are also the
// reason of ConditionReplicaFailure.
var (
	reasonSpecInvalid            = decision.NewReason("SpecInvalid", "{name} {detail}; waiting for a change")
	reasonFinalizer              = decision.NewReason("FinalizerAdded", "finalizer added, so that the set outlives its machines")
	reasonReadLive               = decision.NewReason("ReadLive", "reading live before {detail}")
	reasonRelease                = decision.NewReason("Release", "its labels no longer match the selector: releasing it")
	reasonAdopt                  = decision.NewReason("Adopt", "its labels match the selector and it has no owner: adopting it")
	reasonPush                   = decision.NewReason("SyncTemplate", "its {detail} differs from the template: updating it without replacement")
	reasonReplace                = decision.NewReason("ReplaceFailed", "failed, replacing it: {detail}")
	reasonFailedBeforeReady      = decision.NewReason("NeverRan", "machines failed before they ran, {count} times in a row: replacements wait {for}")
	reasonFailedBeforeReadyFirst = decision.NewReason("NeverRanFirst", "machines failed before they ran: replacing once immediately, then with backoff")
	reasonReplacementSlowed      = decision.NewReason("ReplacementSlowed", "{have} of {want} machines: {count|replacement waits|replacements wait} another {for}, because machines failed {number} times in a row before they ran")
	reasonReserve                = decision.NewReason("Reserve", "{have} of {want} machines: reserving {count|name|names}, up to number {number}")
	reasonCreate                 = decision.NewReason("Create", "{have} of {want} machines: creating {count}")
	reasonSettle                 = decision.NewReason("ReservationSettled", "all names up to number {number} are used: closing the reservation")
	reasonSettleLost             = decision.NewReason("ReservationLapsed", "no machine appeared for {count|name|names} up to number {number}, reserved {for} ago: giving up the reservation")
	reasonUnanswered             = decision.NewReason("CreatesUnanswered", "{have} of {want} machines: creation of {count|machine|machines} up to number {number} is unconfirmed, for {for} at most")
	reasonSurplus                = decision.NewReason("Surplus", "surplus of {count}: priority {have}, {name}, {detail}")
	reasonChosen                 = decision.NewReason("ChosenByScaler", "surplus of {count}: chosen by a scaler at {detail}")
	ReasonReleasing              = decision.NewReason("Releasing", "releasing {count|machine|machines} that no longer match the selector")
	reasonAdopting               = decision.NewReason("Adopting", "adopting {count|machine|machines} that match the selector and have no owner")
	reasonPushing                = decision.NewReason("SyncingTemplate", "updating {count|machine|machines} to the template without replacement")
	ReasonDeleteSurplus          = decision.NewReason("DeleteSurplus", "{have} of {want} machines: deleting {count}")
	ReasonDeleteFailed           = decision.NewReason("DeleteFailed", "{have} of {want} machines: deleting {count} that failed")
	reasonDeleteRequested        = decision.NewReason("DeleteRequested", "{have} of {want} machines: deleting {count} whose replacement was requested")
	ReasonDeleteAll              = decision.NewReason("DeleteAll", "deleting {count|machine|machines} with their set")
	reasonFrozen                 = decision.NewReason("Frozen", "{have} of {want} machines; frozen: no machine is created")
	reasonQuota                  = decision.NewReason("StrictQuota", "{have} of {want} machines; {count|terminating machine counts|terminating machines count} towards the strict quota: waiting for deletion")
	reasonPaused                 = decision.NewReason("Paused", "{have} of {want} machines; paused by annotation {name}: no machine is created or deleted")
	reasonOddPause               = decision.NewReason("PauseUnreadable", "annotation {name} says {detail}, which is neither true nor false: not paused")
	reasonMachinePaused          = decision.NewReason("MachinePaused", "{have} of {want} machines: {count} surplus, kept while machines such as {name} are paused")
	reasonExpiring               = decision.NewReason("ReplacingForAge", "{have} of {want} machines, {available} available: replacing {count} for age, each when a new machine is available")
	reasonExpired                = decision.NewReason("TooOld", "it is {for} old, over its maximum age")
	reasonDeleteExpired          = decision.NewReason("DeleteExpired", "{have} of {want} machines: deleting {count} that are too old")
	reasonReplacing              = decision.NewReason("ReplacingOnRequest", "{have} of {want} machines, {available} available: replacing {count} on request, each when a new machine is available")
	reasonRequested              = decision.NewReason("ReplaceRequested", "its replacement was requested; phase {name}")
	reasonClosed                 = decision.NewReason("Closed", "{have} of {want} machines; the deployment has closed the set: no machine is created")
	reasonDisabled               = decision.NewReason("ScaleUpDisabled", "{have} of {want} machines; scale-up is disabled by label {name}: no machine is created")
	reasonPreserve               = decision.NewReason("PreserveFailed", "failed: preserving it for inspection, as one of at most {want}")
	reasonUnpreserve             = decision.NewReason("PreserveNoLonger", "no longer preserved by its set, which may preserve {want}")
	reasonPreserving             = decision.NewReason("Preserving", "{have} of at most {want} failed machines are preserved: preserving {count} more")
	reasonUnpreserving           = decision.NewReason("PreservingNoLonger", "{have} machines are preserved by the set, which may preserve {want}: ending it for {count}")
	reasonStatus                 = decision.NewReason("Status", "{have} of {want} machines, {ready} ready, {available} available")
	reasonStatusLater            = decision.NewReason("StatusLater", "{have} of {want} machines, {ready} ready, {available} available; writing the status in {for}")
	reasonSettled                = decision.NewReason("Settled", "{have} of {want} machines, {ready} ready, {available} available; nothing to do")
	reasonFailedCreate           = decision.NewReason("FailedCreate", "a machine could not be created: {code}: {detail}")
	reasonFailedDelete           = decision.NewReason("FailedDelete", "a machine could not be deleted: {code}: {detail}")
	reasonFailedUpdate           = decision.NewReason("FailedUpdate", "a machine could not be changed: {code}: {detail}")
	reasonRetryAt                = decision.NewReason("RetryLater", "{detail}; next attempt in {for}, or when the set changes")
	reasonNotOurs                = decision.NewReason("NoFinalizerOfOurs", "being deleted without our finalizer: nothing to do")
	reasonSetDeleted             = decision.NewReason("SetDeleted", "its set is being deleted")
	reasonTerminating            = decision.NewReason("MachinesTerminating", "being deleted: waiting for {count|machine|machines} to be deleted")
	reasonOrphaning              = decision.NewReason("Orphaning", "being deleted, its machines stay: waiting until they have no owner")
	reasonLateCreates            = decision.NewReason("CreatesInFlight", "being deleted: {count|create|creates} may still take effect for {for}")
	reasonSetReleased            = decision.NewReason("Deleted", "no machine is left: removing the finalizer")
)
