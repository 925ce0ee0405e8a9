package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// Reason is the kind of a decision, one word for programs.
type Reason string

// The reasons of decisions about one machine.
const (
	ReasonSpecInvalid      Reason = "SpecInvalid"
	ReasonSpecValid        Reason = "SpecValid"
	ReasonFrozen           Reason = "Frozen"
	ReasonPaused           Reason = "Paused"
	ReasonResumed          Reason = "Resumed"
	ReasonOddPause         Reason = "PauseUnreadable"
	ReasonFinalizer        Reason = "FinalizerAdded"
	ReasonAskVM            Reason = "AskVM"
	ReasonFence            Reason = "CreateAnnounced"
	ReasonCreate           Reason = "Create"
	ReasonHeld             Reason = "CreationHeld"
	ReasonHeldNoted        Reason = "CreationHeldNoted"
	ReasonAskCreate        Reason = "AskCreate"
	ReasonFound            Reason = "VMFound"
	ReasonCreated          Reason = "VMCreated"
	ReasonNodeNamed        Reason = "NodeNamed"
	ReasonStaleNode        Reason = "StaleNode"
	ReasonStaleNodeVM      Reason = "StaleNodeVMDeletion"
	ReasonInitialize       Reason = "Initialize"
	ReasonInitialized      Reason = "Initialized"
	ReasonLastKnown        Reason = "StateNoted"
	ReasonPending          Reason = "Pending"
	ReasonAvailable        Reason = "Available"
	ReasonCreateFailed     Reason = "CreateFailed"
	ReasonCreateRefused    Reason = "CreateRefused"
	ReasonCreationTimeout  Reason = "CreationTimeout"
	ReasonRetryAt          Reason = "RetryLater"
	ReasonFindNode         Reason = "FindNode"
	ReasonFindByName       Reason = "FindNodeByMachine"
	ReasonNotJoined        Reason = "NotJoined"
	ReasonNotHealthyYet    Reason = "NotHealthyYet"
	ReasonCritical         Reason = "CriticalComponentsNotReady"
	ReasonSyncNode         Reason = "SyncNode"
	ReasonSyncFailed       Reason = "SyncNodeFailed"
	ReasonSyncUndone       Reason = "SyncNodeUndone"
	ReasonJoined           Reason = "Joined"
	ReasonConditions       Reason = "ConditionsChanged"
	ReasonNodeMissing      Reason = "NodeMissing"
	ReasonNodeUnhealthy    Reason = "NodeUnhealthy"
	ReasonRejoined         Reason = "Rejoined"
	ReasonUnhealthyWait    Reason = "WaitingForHealth"
	ReasonUnhealthyForever Reason = "HealthTimeoutDisabled"
	ReasonHealthTimeout    Reason = "HealthTimeout"
	ReasonGrace            Reason = "GraceAfterStart"
	ReasonAskMissing       Reason = "AskMissingVM"
	ReasonLost             Reason = "VMLost"
	ReasonAskGrantLost     Reason = "AskGrantForLostVM"
	ReasonLostNotGranted   Reason = "ReplacementOfLostBlocked"
	ReasonAskGrant         Reason = "AskGrant"
	ReasonNotGranted       Reason = "ReplacementBlocked"
	ReasonHealthy          Reason = "Healthy"
	ReasonForeignNode      Reason = "NodeOfAnotherMachine"
	ReasonNodeDeletion     Reason = "NodeBeingDeleted"
	ReasonFailed           Reason = "AwaitingReplacement"
	ReasonPreserve         Reason = "Preserved"
	ReasonPreserved        Reason = "KeptForInspection"
	ReasonPreserveExpired  Reason = "PreservationExpired"
	ReasonPreserveStopped  Reason = "PreservationStopped"
	ReasonPreserveNoted    Reason = "PreservationNoted"
	ReasonPreserveUnknown  Reason = "PreservationUnknown"
	ReasonPreserveDrain    Reason = "DrainOfPreservedFailed"
	ReasonPreserveDraining Reason = "DrainingPreserved"
	ReasonTellPreserved    Reason = "TellPreserved"
	ReasonPreserveUntold   Reason = "TellPreservedFailed"
	ReasonUpdating         Reason = "InPlaceUpdate"
	ReasonSelected         Reason = "SelectedForUpdate"
	ReasonUpdateFence      Reason = "RecordConfirmed"
	ReasonUpdateRestart    Reason = "UpdateStageUnknown"
	ReasonUpdateDraining   Reason = "DrainingForUpdate"
	ReasonUpdateStep       Reason = "UpdateStepFailed"
	ReasonUnclaimed        Reason = "UpdateBegunElsewhere"
	ReasonReady            Reason = "EmptyForUpdate"
	ReasonStage            Reason = "AnnounceUpdateStage"
	ReasonAnnounce         Reason = "AnnounceUpdate"
	ReasonRetract          Reason = "RetractUpdate"
	ReasonMarkFailed       Reason = "MarkNodeFailed"
	ReasonAwaitAgent       Reason = "AwaitUpdate"
	ReasonAwaitNode        Reason = "AwaitNode"
	ReasonUpdateResult     Reason = "UpdateResultUnknown"
	ReasonUpdated          Reason = "Updated"
	ReasonUpdateFailed     Reason = "UpdateFailed"
	ReasonUpdateOpen       Reason = "UpdateOpen"
	ReasonUpdateAbandoned  Reason = "UpdateAbandoned"
	ReasonUpdateTimeout    Reason = "UpdateTimeout"
	ReasonOutdated         Reason = "UpdatedTooLate"
	ReasonWithdrawn        Reason = "UpdateWithdrawn"
	ReasonAwaitOwner       Reason = "AwaitOwner"
	ReasonReturning        Reason = "NotHealthyAfterUpdate"
	ReasonReturnCritical   Reason = "CriticalComponentsAfterUpdate"
	ReasonReturned         Reason = "BackInService"
	ReasonNotDeleted       Reason = "TerminatingWithoutDeletion"
	ReasonNotOurs          Reason = "NoFinalizerOfOurs"
	ReasonTerminating      Reason = "Terminating"
	ReasonRestart          Reason = "DeletionRestarted"
	ReasonDrain            Reason = "Drain"
	ReasonMarkNode         Reason = "MarkNode"
	ReasonNoNode           Reason = "NothingToDrain"
	ReasonDrained          Reason = "Drained"
	ReasonDrainNode        Reason = "DrainNode"
	ReasonForceDrain       Reason = "ForceDrain"
	ReasonDraining         Reason = "Draining"
	ReasonHook             Reason = "WaitingForHook"
	ReasonForceDraining    Reason = "ForceDraining"
	ReasonDrainNoted       Reason = "DrainProgress"
	ReasonDrainedByForce   Reason = "DrainedByForce"
	ReasonDrainGivenUp     Reason = "DrainGivenUp"
	ReasonDetach           Reason = "DetachVolumes"
	ReasonDetaching        Reason = "Detaching"
	ReasonNoForce          Reason = "NoForce"
	ReasonDetached         Reason = "VolumesDetached"
	ReasonDetachFailed     Reason = "DetachFailed"
	ReasonDetachBlocked    Reason = "DetachBlocked"
	ReasonDetachTimeout    Reason = "DetachTimeout"
	ReasonDeleteVM         Reason = "DeleteVM"
	ReasonDeleteNode       Reason = "DeleteNode"
	ReasonDeleteFailed     Reason = "DeleteFailed"
	ReasonReleased         Reason = "Deleted"
	ReasonClassGone        Reason = "ClassMissing"
	ReasonSpecTaken        Reason = "VMSpecTaken"
	ReasonSpecNoted        Reason = "VMSpecNoted"
	ReasonSpecFixed        Reason = "ClassChangedOtherwise"
	ReasonAskUpdate        Reason = "AskUpdate"
	ReasonAwaitTurn        Reason = "AwaitTurn"
	ReasonUpdateAnnounced  Reason = "VMUpdateAnnounced"
	ReasonUpdateVM         Reason = "UpdateVM"
	ReasonVMUpdated        Reason = "VMUpdated"
	ReasonVMUpdateFailed   Reason = "VMUpdateFailed"
	ReasonUpdateNoVM       Reason = "VMToUpdateMissing"
	ReasonUpdateRefused    Reason = "VMUpdateRefused"
	ReasonUpdateReplace    Reason = "ReplaceInsteadOfUpdate"
	ReasonEnsureToken      Reason = "EnsureToken"
	ReasonRenewToken       Reason = "RenewToken"
	ReasonRemoveToken      Reason = "RemoveToken"
	ReasonTokenLeft        Reason = "TokenNotDeleted"
	ReasonTokenNotRenewed  Reason = "TokenNotRenewed"
)

// Why is the reason of one decision with what it was seen in. Values are
// comparable; making one allocates nothing.
type Why struct {
	Reason Reason
	Name   string        // what the sentence is about: a node, a condition, a stage, a field
	Detail string        // an answer or a problem, quoted
	Code   codes.Code    // of a failure
	For    time.Duration // a limit or a wait
}

var sentences = map[Reason]string{
	ReasonSpecInvalid:      "{name} {detail}; waiting for a change",
	ReasonSpecValid:        "the spec is valid again",
	ReasonFrozen:           "frozen: nothing is created or judged",
	ReasonPaused:           "paused by annotation {name}: nothing is done, judged or deleted",
	ReasonResumed:          "paused no more: all waits begin anew",
	ReasonOddPause:         "annotation {name} says {detail}, which is neither true nor false: not paused",
	ReasonFinalizer:        "finalizer added, so that the record outlives the VM",
	ReasonAskVM:            "asking the provider whether the VM exists",
	ReasonFence:            "about to create the VM",
	ReasonCreate:           "the provider has no VM of this name: creating it",
	ReasonHeldNoted:        "{detail}: the machine waits for its turn",
	ReasonHeld:             "{detail}: not tried before its turn; looking again in {for}",
	ReasonAskCreate:        "{detail}: asking whether this machine may be tried next",
	ReasonFound:            "adopting VM {name}, which the provider has already",
	ReasonCreated:          "created VM {name}",
	ReasonNodeNamed:        "the name of its node is {name}",
	ReasonStaleNode:        "the VM came up under node name {name}, which is another node's: to be replaced",
	ReasonStaleNodeVM:      "node {name} is not this VM's: deleting the VM just made",
	ReasonInitialize:       "initializing VM {name}",
	ReasonInitialized:      "VM {name} is initialized",
	ReasonLastKnown:        "noting what the driver said of the VM's state",
	ReasonPending:          "VM {name} is there; waiting for its node",
	ReasonAvailable:        "VM {name} is there, and no cluster to join",
	ReasonCreateFailed:     "creation failed in {name}: {code}: {detail}",
	ReasonCreateRefused:    "creation refused for good in {name}: {code}: {detail}",
	ReasonCreationTimeout:  "not running within {for} of its creation: {detail}",
	ReasonRetryAt:          "{name} failed with {code}; trying again in {for}, or when machine, class or secret change",
	ReasonFindNode:         "looking for node {name}",
	ReasonFindByName:       "looking for a node that carries the name of machine {name}",
	ReasonNotJoined:        "node {name} has not joined yet; {for} left",
	ReasonNotHealthyYet:    "node {name} joined but {detail}; {for} left",
	ReasonCritical:         "node {name} waits for its critical components; {for} left",
	ReasonSyncNode:         "bringing node {name} in line with its template",
	ReasonSyncFailed:       "node {name} could not be written: {code}: {detail}",
	ReasonSyncUndone:       "node {name} is not as it was just written: something else changes it too",
	ReasonJoined:           "node {name} joined and is healthy",
	ReasonConditions:       "conditions of node {name} changed",
	ReasonNodeMissing:      "node {name} is missing",
	ReasonNodeUnhealthy:    "node {name} is unhealthy: {detail}",
	ReasonRejoined:         "node {name} is healthy again",
	ReasonUnhealthyWait:    "node {name} is missing or unhealthy; {for} left before the machine fails",
	ReasonUnhealthyForever: "node {name} is missing or unhealthy, and the health timeout is disabled",
	ReasonHealthTimeout:    "node {name} was missing or unhealthy for {for}: to be replaced",
	ReasonGrace:            "its time is up, but no machine is given up before this process has watched for {for}: {detail}",
	ReasonAskMissing:       "two listings did not name VM {name}: asking the provider for it",
	ReasonLost:             "VM {name} is gone: the provider does not know it, and has not listed it for {for}: to be replaced",
	ReasonAskGrantLost:     "VM {name} is gone: asking whether the machine may be replaced now",
	ReasonLostNotGranted:   "VM {name} is gone, but its machine is not replaced yet: {detail}",
	ReasonAskGrant:         "node {name} was missing or unhealthy for too long: asking whether the machine may be replaced now",
	ReasonNotGranted:       "node {name} was missing or unhealthy for too long, but its machine is not replaced yet: {detail}",
	ReasonHealthy:          "node {name} is healthy",
	ReasonForeignNode:      "node {name} carries the name of machine {detail}: left alone",
	ReasonNodeDeletion:     "node {name} is being deleted, and its machine with it",
	ReasonFailed:           "failed; waiting to be replaced",
	ReasonPreserve:         "kept for inspection for {for}, as {detail} asks",
	ReasonPreserved:        "failed, and kept for inspection as {detail} asks; {for} left",
	ReasonPreserveExpired:  "was kept for inspection for {for}: that is over",
	ReasonPreserveStopped:  "not kept for inspection any more: asked for now is {detail}",
	ReasonPreserveNoted:    "noting that annotation {name} says {detail}",
	ReasonPreserveUnknown:  "annotation {name} is unknown: {detail}; it changes nothing",
	ReasonPreserveDrain:    "node {name}, kept for inspection, could not be drained: {code}: {detail}",
	ReasonPreserveDraining: "node {name}, kept for inspection, is not empty yet: {detail}; {for} left",
	ReasonTellPreserved:    "telling on node {name} whether it is kept for inspection: {detail}",
	ReasonPreserveUntold:   "what is said of its preservation on node {name} could not be written, or did not stay: {code} {detail}",
	ReasonUpdating:         "an in-place update is under way: no verdict",
	ReasonSelected:         "its turn for an in-place update: node {name} is taken out of service",
	ReasonUpdateFence:      "making sure that this record is not an old one before node {name} is changed",
	ReasonUpdateRestart:    "stage {name} of an in-place update makes no sense: going on from what the node says",
	ReasonUpdateDraining:   "node {name} is not empty yet: {detail}; {for} left for its update",
	ReasonUpdateStep:       "node {name} could not be drained or written for its update: {code}: {detail}",
	ReasonUnclaimed:        "another program has begun an update of node {name}: waiting for the machine's owner to ask for it; {for} left",
	ReasonReady:            "node {name} is empty and ready for its update",
	ReasonStage:            "telling on node {name} where its update stands: {detail}",
	ReasonAnnounce:         "telling on node {name} that it may be updated",
	ReasonRetract:          "telling on node {name} that no update is wanted",
	ReasonMarkFailed:       "what is said of its update on node {name} could not be written, or did not stay: {code} {detail}",
	ReasonAwaitAgent:       "node {name} may be updated; {for} left for the agent",
	ReasonAwaitNode:        "node {name} is missing, or another machine's; {for} left for its update",
	ReasonUpdateResult:     "the agent's answer on node {name} is unknown: {detail}",
	ReasonUpdated:          "node {name} is updated",
	ReasonUpdateFailed:     "the update of node {name} failed: {detail}",
	ReasonUpdateOpen:       "node {name} is healthy, but its update failed: open until the agent succeeds or its owner decides",
	ReasonUpdateAbandoned:  "the update of node {name} failed {for} ago and nobody has made it good: giving the machine up",
	ReasonUpdateTimeout:    "node {name} was not updated within {for}",
	ReasonOutdated:         "node {name} was updated after the update had been withdrawn: it is not what the machine's owner says",
	ReasonWithdrawn:        "the update of node {name} was withdrawn",
	ReasonAwaitOwner:       "node {name} is updated; its machine waits for its owner to take it over",
	ReasonReturning:        "node {name} is updated, but {detail}; {for} left",
	ReasonReturnCritical:   "node {name} is updated and waits for its critical components",
	ReasonReturned:         "node {name} is updated and in service again",
	ReasonNotDeleted:       "Terminating although nobody asked for deletion: to be replaced",
	ReasonNotOurs:          "being deleted without our finalizer: nothing is touched",
	ReasonTerminating:      "deletion asked for while {detail}",
	ReasonRestart:          "deletion stage {name} makes no sense: starting again",
	ReasonDrain:            "draining node {name}",
	ReasonMarkNode:         "telling on node {name} that it is about to go",
	ReasonNoNode:           "no node to drain",
	ReasonDrained:          "node {name} is drained",
	ReasonDrainNode:        "emptying node {name}",
	ReasonForceDrain:       "emptying node {name} by force",
	ReasonHook:             "annotation {name} holds the deletion back; {for} left for it",
	ReasonDraining:         "node {name} is not empty yet: {detail}; {for} left before force",
	ReasonForceDraining:    "node {name} is not empty yet in spite of force: {detail}; {for} left",
	ReasonDrainNoted:       "draining node {name}: {detail}",
	ReasonDrainedByForce:   "node {name} is drained by force",
	ReasonDrainGivenUp:     "node {name} could not be emptied even by force: {detail}; going on",
	ReasonDetach:           "detaching the volumes of node {name}",
	ReasonNoForce:          "force is not due any more: waiting for the volumes of node {name} to come off by themselves",
	ReasonDetaching:        "volumes are still attached to node {name}: {detail}; {for} left",
	ReasonDetached:         "no volume is attached to node {name} any more",
	ReasonDetachFailed:     "volumes of node {name} could not be detached: {code}: {detail}",
	ReasonDetachBlocked:    "volumes are still attached to node {name}: {detail}",
	ReasonDetachTimeout:    "volumes are still attached to node {name} after {for}; going on",
	ReasonDeleteVM:         "deleting VM {name}",
	ReasonDeleteNode:       "deleting node {name}",
	ReasonDeleteFailed:     "deletion failed in {name}: {code}: {detail}",
	ReasonReleased:         "VM and node are gone: letting the record go",
	ReasonSpecTaken:        "nothing is known of what the VM was made from: taking it to be as class {name} says now",
	ReasonSpecNoted:        "the VM is as class {name} says: noting it in terms of what can be updated now",
	ReasonSpecFixed:        "class {name} has changed in what can't be changed on a VM that exists: the VM stays as it was made",
	ReasonAskUpdate:        "VM {name} is not as its class says: asking whether it may be changed now",
	ReasonAwaitTurn:        "VM {name} is to be changed, but {detail}",
	ReasonUpdateAnnounced:  "about to change VM {name}",
	ReasonUpdateVM:         "changing VM {name} to what its class says",
	ReasonVMUpdated:        "VM {name} is changed",
	ReasonVMUpdateFailed:   "VM {name} could not be changed: {code}: {detail}",
	ReasonUpdateNoVM:       "VM {name}, which was to be changed, is gone: the machine's health decides",
	ReasonUpdateRefused:    "VM {name} can't be changed, and nobody would replace its machine: it stays as it is",
	ReasonUpdateReplace:    "VM {name} can't be changed: asking for its machine to be replaced",
	ReasonEnsureToken:      "making sure of a bootstrap token for the next {for}",
	ReasonRenewToken:       "making sure that its bootstrap token, if it has one, lasts for the next {for}",
	ReasonRemoveToken:      "its bootstrap token is not needed any more: deleting it",
	ReasonTokenLeft:        "its bootstrap token could not be deleted and is left to expire: {code}: {detail}",
	ReasonTokenNotRenewed:  "its bootstrap token could not be prolonged: {code}: {detail}",
	ReasonClassGone:        "class {name} is gone, and the provider can't be called without it",
}

// String is the sentence a person can act on.
func (w Why) String() string {
	sentence, ok := sentences[w.Reason]
	if !ok {
		return string(w.Reason)
	}
	return object.Sentence(sentence, "name", quoteEmpty(w.Name), "detail", quoteEmpty(w.Detail),
		"code", w.Code.Contract(), "for", w.For.Round(time.Second).String())
}

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
