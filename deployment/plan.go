package deployment

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// Children are a set and the machines it owns, in any order. Machines of another owner are ignored.
type Children struct {
	Set      *machineset.Set
	Machines []*machine.Machine
}

// Observation is the input of a decision about one deployment. The caller fills in Deployment,
// Sets and Orphans from its caches before the first Decide of a pass. It keeps them up to date with
// what it carries out: each order and write says how, see Plan. Decide changes nothing in it.
type Observation struct {
	Deployment *Deployment
	// Sets are the sets that this deployment owns, including those being deleted, in any order. Sets of
	// another owner are ignored.
	Sets []Children
	// Orphans are the sets of its namespace without an owner.
	Orphans []*machineset.Set

	// HotUpdate says what VMs of this deployment can be updated to without being replaced. Nil:
	// nothing.
	HotUpdate *HotUpdate

	// ClassMissing: the class that the template names does not exist, by a live read.
	ClassMissing bool
	// ClassInvalid is why no machine could be created from the template's class: what is wrong with
	// the class, or which of its secrets is missing or not allowed. Empty: nothing, or the strategy is
	// not InPlaceUpdate.
	ClassInvalid string

	// Read says how everything above was read in this pass, in this order: the deployment; its sets
	// and the orphans; the machines. Once machineset.DeleteWithin has passed after the read ended, it no
	// longer allows resizing or deleting a set or marking a machine.
	Read decision.Freshness
	// Frozen: no set is created and none grows. Everything else continues.
	Frozen bool
	// ClockFrom is when the last outage of an API server ended, as far as this process knows. During an
	// outage it is the present time. Spec.ProgressDeadline counts from it if no progress came later.
	// Zero: there was no outage. After a restart of the process, the machines' own
	// machine.Status.ClockFrom replace it.
	ClockFrom time.Time
	// Taken says which set has the name of the set to be created, after the create was answered with
	// "already exists". Nil: it was not answered so.
	Taken *Taken
	// Failed is the first refusal of an order in this pass. Not a refusal: "already exists" of a
	// create, "not found" of a delete, and a conflict.
	Failed *machine.Outcome
	// Refused is the last refusal in an earlier pass of this process, as long as the deployment's
	// generation is the same. No order is given before its Until. Nil: there was none. Losing it is
	// harmless.
	Refused *Refusal
	// Failures counts this process's consecutive passes with a refusal. It only lengthens waits.
	Failures int
	// StatusWritten is when this process last wrote this deployment's status. Zero: it has not yet.
	StatusWritten time.Time
	// Gathering is Plan.Gathering of this process's last decision about the deployment. Zero: there
	// was none. Losing it lengthens a wait.
	Gathering time.Time
}

// Refusal is an order that was refused, and when one may be given again.
type Refusal struct {
	machine.Outcome
	Until time.Time
}

// Taken is a name that was found to be taken.
type Taken struct {
	Name string
	// Set has the name, read live. Nil: the name was free when it was read.
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
	// Event is the type of an event with the plan's Why, to be emitted once the update is stored,
	// because it answers the owner's request. Empty: no event.
	Event EventType
}

// EventType is the type of an event, in the spelling of Kubernetes.
type EventType string

// The types of events.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// UpdateStatus stores the status. The caller records when, as Observation.StatusWritten.
type UpdateStatus struct {
	Status Status
	// Event is the type of an event with the plan's Why, to be emitted once the status is stored:
	// then no other pass emits it. Empty: no event.
	Event EventType
}

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

// HeldUpEvery is the time between two reports of Plan.HeldUp.
const HeldUpEvery = 10 * time.Minute

// Plan is what to do next. Carry out Write, or ReadLive, or the orders of the one slice that is
// filled, update the observation, and decide again. With none of them, decide again at At.
//
// Carry out the orders of one slice from first to last. At the first refusal drop the rest, set
// Observation.Failed, and decide again. A conflict ends the pass, and so does an update of a set
// that is gone. A new pass begins with fresh reads.
type Plan struct {
	Write Write
	// ReadLive asks for a live read of the whole observation, see Observation.Read. It comes once
	// in a pass, and again when that read has become too old for the next orders; Taken then stays
	// as it is. A deployment that is gone, or has another UID, ends the pass.
	ReadLive bool

	// Create holds a whole set. Add what the store returns to Observation.Sets, without machines.
	// "Already exists": Observation.Taken.
	Create []Order
	// Push and Scale hold changed copies for an update under the version they carry. What the store
	// returns replaces the set observed.
	Push, Scale []Order
	// Delete holds sets to be deleted under their UID. Read each again live afterwards. It replaces
	// the set observed or, if it is gone, the set is removed.
	Delete []Order
	// Adopt holds changed copies for an update, as Scale. The set moves from Orphans to Sets, with
	// its machines, read live.
	Adopt []Order
	// Release holds changed copies for an update, as Scale. The set moves from Sets to Orphans.
	Release []Order
	// Handover holds changed copies for an update, as Scale: machines are about to move from set to
	// set, or have moved. A set that machines come to is before those that they leave.
	Handover []Order

	// Mark holds machines whose request changes. What the store returns replaces the machine
	// observed. A machine that is gone is removed. The orders may be carried out in parallel. A
	// refusal stops none of the others. A conflict ends the pass.
	Mark []MachineOrder
	// Move holds machines that get another set, carried out as Mark. What the store returns joins
	// the machines of its new owner.
	Move []MachineOrder

	// Until is the moment from which on no order of Scale, Delete and Mark may be issued. Drop the
	// orders that were not issued before. That is no refusal, and the next decision reads live
	// again. Zero without these orders.
	Until time.Time

	// Gathering is the time since which orders wait for others to join them, see Policy.Gather. It stays
	// until a decision sees that they were carried out. Zero: no orders wait. The caller passes it to the
	// next decision, as Observation.Gathering.
	Gathering time.Time

	// At is when to decide again even if nothing has changed. Zero: never.
	At time.Time
	// Why is the reason. If there are orders, it is the first one's.
	Why decision.Why
	// HeldUp says which machines fail, or wait in a drain, and why. Zero: none. Each plan that waits has
	// it. The caller must report it when it first occurs, and again every HeldUpEvery while it lasts,
	// because it may be the only report of these machines.
	HeldUp decision.Why
	// Warn is a warning for its owner. Zero: none. It comes with each pass; the caller must report
	// it only once.
	Warn decision.Why
}

// The reasons of decisions about one deployment.
var (
	reasonSpecInvalid       = decision.NewReason("SpecInvalid", "{name} {detail}; waiting for a change")
	reasonSelectsAll        = decision.NewReason("SelectingAll", "{name} is empty and would select everything; waiting for a change")
	reasonOver100           = decision.NewReason("MoreThan100Percent", "{name}: more than 100% ({detail})")
	reasonBothZero          = decision.NewReason("NeitherSurgeNorUnavailable", "maxSurge and maxUnavailable are both 0: one machine may be unavailable")
	reasonFinalizer         = decision.NewReason("FinalizerAdded", "finalizer added, so that the deployment outlives its sets")
	reasonReadLive          = decision.NewReason("ReadLive", "reading live before acting: {name}")
	reasonAdopt             = decision.NewReason("AdoptSet", "set {name} has no owner and matches the selector: adopting it")
	ReasonRelease           = decision.NewReason("ReleaseSet", "set {name} no longer matches the selector: released with {count|machine|machines}, which the deployment no longer counts")
	ReasonCreate            = decision.NewReason("CreateSet", "no set has the wanted template: creating {name}")
	reasonSeen              = decision.NewReason("SetSeen", "set {name} appeared meanwhile; next attempt in {wait}")
	reasonNameTaken         = decision.NewReason("NameTaken", "the name {name} is taken[{detail}]: trying the next one")
	reasonNameFree          = decision.NewReason("NameFreeAgain", "the name {name} was taken and is free now; next attempt in {wait}")
	reasonSyncTemplate      = decision.NewReason("SyncTemplate", "set {name} gets the {detail} of the deployment; no machine is replaced")
	reasonMark              = decision.NewReason("MarkSet", "the nodes of set {name} {detail}")
	reasonSurgeAllowed      = decision.NewReason("SurgeAllowed", "set {name} may replace {count|machine|machines}: surge {want}, unavailable {all}")
	reasonSurgeRevoked      = decision.NewReason("SurgeRevoked", "set {name} has no machine to replace now: no surge, none unavailable")
	reasonPreserveShare     = decision.NewReason("PreserveShare", "set {name} may preserve {want} failed machines, {have} before; limit for all sets: {all}")
	reasonCandidatesDropped = decision.NewReason("DeletionCandidatesDropped", "set {name} has no surplus left: {count|machine that a scaler chose stays|machines that a scaler chose stay}")
	reasonPauseCopied       = decision.NewReason("PauseCopied", "set {name} has a copy of the deployment's pause annotation, which pauses no deployment: removing it from the set")
	reasonCandidatesPruned  = decision.NewReason("DeletionCandidatesPruned", "annotation {name}: removing {count} of {all} names, which no longer apply")
	ReasonScale             = decision.NewReason("ScaleSet", "set {name} from {have} to {want}: {cause}")
	ReasonRepair            = decision.NewReason("RepairSize", "set {name} has the invalid size {have}: set to the {want} machines it has")
	reasonHeldUp            = decision.NewReason("HeldUp", "not in the desired state, held up by {detail}")
	reasonStatus            = decision.NewReason("StatusChanged", "status changed; machines available: {count}, wanted: {all}")
	reasonCount             = decision.NewReason("FailuresCounted", "the rollout of revision {number} begins: it stops when {count|machine has|machines have} failed")
	reasonThrottled         = decision.NewReason("StatusThrottled", "status changed again; writing it in {wait}")
	reasonBatched           = decision.NewReason("OrdersBatched", "orders wait {wait} for others to join them")
	reasonRollout           = decision.NewReason("Rollout", "{cause}[{detail}]")
	reasonOrderRefused      = decision.NewReason("OrderRefused", "an order was refused: {code}: {detail}; next attempt in {wait}")
	reasonNoFinalizer       = decision.NewReason("NoFinalizerOfOurs", "being deleted without our finalizer: nothing to do")
	ReasonDelete            = decision.NewReason("DeleteSet", "the deployment is being deleted, and set {name} with it")
	reasonWaitingForSets    = decision.NewReason("WaitingForSets", "being deleted; waiting for {count|set|sets} to be deleted[{detail}]")
	reasonOrphaning         = decision.NewReason("Orphaning", "being deleted, its sets stay: waiting until they have no owner")
	reasonReleased          = decision.NewReason("Deleted", "no set is left: removing the finalizer")
	reasonPaused            = decision.NewReason("Paused", "paused: {cause}[{detail}]")
	reasonFrozen            = decision.NewReason("Frozen", "frozen: no set is created, and none grows: {cause}[{detail}]")
	reasonRevision          = decision.NewReason("SetRevision", "set {name} has the wanted template: it becomes revision {number}")
	reasonRecord            = decision.NewReason("RevisionRecorded", "recording revision {number}, which is rolled out with set {name}")
	ReasonPrune             = decision.NewReason("DeleteOldSet", "set {name} of revision {number} is empty, and the history limit is {all|old set|old sets}: deleting it")
	reasonClose             = decision.NewReason("CloseSet", "set {name} creates no machines while its machines are updated in place")
	reasonCloseStopped      = decision.NewReason("CloseStoppedSet", "set {name} creates no machines while the rollout is stopped")
	ReasonRolloutStopped    = decision.NewReason("RolloutStopped", "the rollout has stopped: {count|machine|machines} failed[{detail}], the limit is {all}; it continues with another template, when failed machines recover, or when the deployment is paused and resumed")
	reasonRolloutComplete   = decision.NewReason("RolloutComplete", "the rollout of revision {number} is complete[ after {for}]: {count|machine|machines} of set {name} available")
	reasonClassInvalid      = decision.NewReason("ClassInvalid", "no machine is selected for an update in place: {detail}")
	reasonOpen              = decision.NewReason("OpenSet", "set {name} may create machines again")
	ReasonMoveTo            = decision.NewReason("MachinesArrive", "set {name} from {have} to {want}: {detail} updated and moving here")
	ReasonMoveFrom          = decision.NewReason("MachinesLeave", "set {name} from {have} to {want}: {detail} updated and moving away")
	ReasonMoveBack          = decision.NewReason("MachinesStay", "set {name} from {have} to {want}: the set that {detail} moving to is gone")
	reasonMoveDone          = decision.NewReason("MovesDone", "set {name}: {detail} moved or gone")
	reasonMoveOff           = decision.NewReason("MovesOff", "set {name} from {have} to {want}: {detail} gone before the move")
	ReasonMove              = decision.NewReason("MoveMachine", "machine {name} is updated and moves to set {detail}")
	reasonCandidate         = decision.NewReason("Candidate", "machine {name} is a candidate for an update in place")
	ReasonSelect            = decision.NewReason("Select", "machine {name} is selected for an update in place: {cause}")
	reasonTarget            = decision.NewReason("RecordTarget", "machine {name} was selected: it is updated to the template of set {detail}")
	reasonWithdraw          = decision.NewReason("Withdraw", "machine {name} is no longer a candidate for an update in place: {detail}")
	ReasonExchange          = decision.NewReason("ExchangeClass", "set {name} gets class {detail}, to which its VMs can be updated: revision {number}, no machine is replaced")

	// The answers to a rollback request, in the established spelling.
	ReasonRollbackDone              = decision.NewReason("DeploymentRollback", "rolled back to revision {number}, the template of set {name}")
	ReasonRollbackRevisionNotFound  = decision.NewReason("DeploymentRollbackRevisionNotFound", "not rolled back: no set has {detail}")
	ReasonRollbackTemplateUnchanged = decision.NewReason("DeploymentRollbackTemplateUnchanged", "not rolled back: revision {number}, set {name}, already has the wanted template")
	// ReasonRollbackInvalid: with that template the deployment would be invalid.
	ReasonRollbackInvalid = decision.NewReason("DeploymentRollbackInvalid", "not rolled back to revision {number}, set {name}: {detail}")
)

// RolloutOf returns the rollout's reason in w: why a set is resized, or what a rollout waits for.
// It returns the zero value if w has another cause.
func RolloutOf(w decision.Why) rollout.Why {
	cause, _ := w.Cause.(rollout.Why)
	return cause
}
