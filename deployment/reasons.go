package deployment

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
)

// The reasons of decisions about one deployment.
var (
	reasonSpecInvalid      = decision.NewReason("SpecInvalid", "{name} {detail}; waiting for a change")
	reasonSelectsAll       = decision.NewReason("SelectingAll", "{name} is empty and would select everything; waiting for a change")
	reasonOver100          = decision.NewReason("MoreThan100Percent", "{name}: more than 100% ({detail})")
	reasonBothZero         = decision.NewReason("NeitherSurgeNorUnavailable", "neither surge nor unavailable is allowed; taken as one machine unavailable")
	reasonFinalizer        = decision.NewReason("FinalizerAdded", "finalizer added, so that the record outlives the sets")
	reasonReadLive         = decision.NewReason("ReadLive", "reading everything afresh before acting: {name}")
	reasonAdopt            = decision.NewReason("AdoptSet", "set {name} has no owner and is selected")
	ReasonRelease          = decision.NewReason("ReleaseSet", "set {name} is no longer selected: released with {count|machine|machines}, which the set keeps and the deployment no longer counts")
	ReasonCreate           = decision.NewReason("CreateSet", "no set has the wanted template: creating {name}")
	reasonSeen             = decision.NewReason("SetSeen", "set {name} appeared meanwhile; looking again in {wait}")
	reasonNameTaken        = decision.NewReason("NameTaken", "the name {name} is taken[{detail}]: trying the next one")
	reasonNameFree         = decision.NewReason("NameFreeAgain", "the name {name} was taken and is free now; trying again in {wait}")
	reasonPush             = decision.NewReason("PushToSet", "set {name} gets the {detail} of the deployment; no machine is replaced for it")
	reasonMark             = decision.NewReason("MarkSet", "the nodes of set {name} {detail}")
	reasonSurgeAllowance   = decision.NewReason("ReplaceOnRequest", "set {name} is asked to replace {count} of its machines: it may make {want} more and miss {all}")
	reasonNoSurgeAllowance = decision.NewReason("ReplacedOnRequest", "set {name} has no machine to replace now")
	reasonPreserveShare    = decision.NewReason("PreserveShare", "set {name} may keep {want} failed machines for inspection, {have} before; {all} in all sets")
	reasonForget           = decision.NewReason("ForgetChosen", "set {name} has no surplus left: {count} chosen by a scaler need not go any more")
	reasonPauseCopied      = decision.NewReason("PauseCopied", "set {name} is paused by a copy of the deployment's annotation, which means nothing: taken off")
	reasonTidied           = decision.NewReason("ChoicesTidied", "annotation {name}: {count} of {all} names are of no use any more and go")
	ReasonScale            = decision.NewReason("ScaleSet", "set {name} from {have} to {want}: {cause}")
	ReasonRepair           = decision.NewReason("RepairSize", "set {name} has size {have}, which means nothing; set to the {want} machines it has")
	reasonHeldUp           = decision.NewReason("HeldUp", "not as wanted, held up by {detail}")
	reasonStatus           = decision.NewReason("StatusChanged", "status changed; machines available: {count}, wanted: {all}")
	reasonCount            = decision.NewReason("FailuresCounted", "the rollout of revision {number} begins: it stops once {count|machine|machines} failed in it")
	reasonThrottled        = decision.NewReason("StatusThrottled", "status changed again; to be written in {wait}")
	reasonGathering        = decision.NewReason("OrdersGather", "orders wait for others to join them; to be given in {wait}")
	reasonRollout          = decision.NewReason("Rollout", "{cause}[{detail}]")
	reasonOrderRefused     = decision.NewReason("OrderRefused", "an order was refused: {code}: {detail}; trying again in {wait}")
	reasonNotOurs          = decision.NewReason("NoFinalizerOfOurs", "being deleted without our finalizer: nothing is touched")
	ReasonDelete           = decision.NewReason("DeleteSet", "the deployment is being deleted, and set {name} with it")
	reasonGoing            = decision.NewReason("WaitingForSets", "being deleted; waiting for {count|set|sets} to go[{detail}]")
	reasonLeaving          = decision.NewReason("SetsStayBehind", "being deleted without its sets: waiting until they have no owner any more")
	reasonReleased         = decision.NewReason("Deleted", "no set is left: letting the record go")
	reasonPaused           = decision.NewReason("Paused", "paused: {cause}[{detail}]")
	reasonFrozen           = decision.NewReason("Frozen", "frozen: no set is created, and none grows: {cause}[{detail}]")
	reasonRevision         = decision.NewReason("SetRevision", "set {name} has the wanted template: it is revision {number} from now on")
	reasonRecord           = decision.NewReason("RevisionRecorded", "revision {number} is being rolled out, by set {name}")
	ReasonPrune            = decision.NewReason("DeleteOldSet", "set {name} of revision {number} is empty, and no more than {all|old set|old sets} may stay: deleting it")
	reasonClose            = decision.NewReason("CloseSet", "set {name} creates no machines while its machines are updated in place")
	reasonCloseStopped     = decision.NewReason("CloseStoppedSet", "set {name} creates no machines while the rollout is stopped")
	ReasonRolloutStopped   = decision.NewReason("RolloutStopped", "the rollout has stopped: {count|machine|machines} failed[{detail}], the limit is {all}; it goes on with another template, when failed machines recover, or when the deployment is paused and resumed")
	reasonRolloutComplete  = decision.NewReason("RolloutComplete", "the rollout of revision {number} is complete[ after {for}]: {count|machine|machines} of set {name} available")
	reasonClassInvalid     = decision.NewReason("ClassInvalid", "no machine is selected for an update in place: {detail}")
	reasonOpen             = decision.NewReason("OpenSet", "set {name} may create machines again")
	ReasonMoveTo           = decision.NewReason("MachinesArrive", "set {name} from {have} to {want}: {detail} moving here, updated")
	ReasonMoveFrom         = decision.NewReason("MachinesLeave", "set {name} from {have} to {want}: {detail} moving away, updated")
	ReasonMoveBack         = decision.NewReason("MachinesStay", "set {name} from {have} to {want}: the set that {detail} moving to is gone")
	reasonMoveDone         = decision.NewReason("MovesDone", "set {name}: {detail} moved, or gone")
	reasonMoveOff          = decision.NewReason("MovesOff", "set {name} from {have} to {want}: {detail} gone, before it left the set it was in")
	ReasonMove             = decision.NewReason("MoveMachine", "machine {name} is updated and moves to set {detail}")
	reasonCandidate        = decision.NewReason("Candidate", "machine {name} is to be updated in place")
	ReasonSelect           = decision.NewReason("Select", "machine {name} is to be updated in place now: {cause}")
	reasonTarget           = decision.NewReason("NoteTarget", "machine {name} was selected, for the template of set {detail}")
	reasonWithdraw         = decision.NewReason("Withdraw", "machine {name} is not to be updated in place: {detail}")
	ReasonExchange         = decision.NewReason("ExchangeClass", "set {name} gets class {detail}, to which its VMs can be updated: revision {number}, and no machine is replaced for it")

	// The answers to a rollback request, in the established spelling.
	ReasonRollbackDone              = decision.NewReason("DeploymentRollback", "rolled back to revision {number}, the template of set {name}")
	ReasonRollbackRevisionNotFound  = decision.NewReason("DeploymentRollbackRevisionNotFound", "not rolled back: no set has {detail}")
	ReasonRollbackTemplateUnchanged = decision.NewReason("DeploymentRollbackTemplateUnchanged", "not rolled back: revision {number}, set {name}, has the template that is wanted already")
	// ReasonRollbackInvalid: with that template the deployment could not be acted upon.
	ReasonRollbackInvalid = decision.NewReason("DeploymentRollbackInvalid", "not rolled back to revision {number}, set {name}: {detail}")
)

// RolloutOf returns the rollout's reason in w: why a set is resized, or what a rollout waits for.
// It returns the zero value if w has another cause.
func RolloutOf(w decision.Why) rollout.Why {
	cause, _ := w.Cause.(rollout.Why)
	return cause
}
