package machine

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Write is one change of the machine in the store: *Update, *UpdateStatus or *Delete.
//
//sumtype:decl
type Write interface{ write() }

// Update stores metadata and spec.
type Update struct{ Machine *Machine }

// UpdateStatus stores the status.
type UpdateStatus struct{ Status Status }

// Delete asks for the deletion of the machine itself.
type Delete struct{}

func (*Update) write()       {}
func (*UpdateStatus) write() {}
func (*Delete) write()       {}

// Move is one step of a state machine that a write carries out.
type Move = decision.Move

// Plan is what to do next: carry out Write, or Effect, put the answer into
// the observation, and decide again; with neither, look again at At.
type Plan struct {
	Write  Write
	Moves  [6]Move // state changes that Write makes, in their order; unused ones, at the end, are zero
	Effect Effect  // only when Write is nil
	// At is when to look again though nothing has changed; zero: never.
	At  time.Time
	Why decision.Why
	// Warn is something tolerated that its owner should know; zero: nothing.
	Warn decision.Why
}

// Effect is one call to provider or cluster; its answer goes into the
// observation's field of the same name. Effects carry no secrets.
//
//sumtype:decl
type Effect interface{ effect() }

// GetVM asks the driver for the machine's VM (Observation.VM).
type GetVM struct{}

// CreateVM has the driver create the VM (Observation.Created).
type CreateVM struct{}

// InitializeVM has the driver initialize the VM (Observation.Initialized).
type InitializeVM struct{}

// UpdateVM asks the driver to change the VM to the spec of the class
// (Observation.Updated). LastApplied is the provider spec that the VM is known
// to have, with what calls have asked for since whose success is not known.
type UpdateVM struct{ LastApplied string }

// DeleteVM has the driver delete the VM (Observation.VMDeleted). ProviderID,
// unless empty, overrides the one recorded on the machine.
type DeleteVM struct{ ProviderID string }

// FindNode reads a node, live (Observation.Node). An empty Name looks for a
// node that carries the machine's name.
type FindNode struct {
	Name string
	Gone bool // goes into the answer
	// Forced has a failed read answered as NodeAnswer.Failure. Otherwise it ends the pass, which
	// is repeated.
	Forced bool
}

// SyncNode writes Node, a changed copy of the node observed, under its
// version (Observation.NodeSynced; the written node replaces Observation.Node).
// Capacity is written before the rest: Applied, which is written with the rest, is
// the only record of what to remove again.
type SyncNode struct {
	Node     *Node
	Spec     bool // metadata, taints and Applied differ
	Capacity bool // Capacity differs
	// Rest is what to write instead if the server refuses Node (INVALID_ARGUMENT, PERMISSION_DENIED):
	// each in turn until it accepts one. It has less and less of what a user's template asks for. The code and the
	// message of the first refusal go into Applied.Refused of what is written, and the answer is
	// that of the last write.
	Rest []*Node
	// Changes are what differs from the node observed, for NodeWrites.With.
	Changes []NodeChange
}

// MarkNode sets a condition on the node, under its version
// (Observation.NodeMarked; the written node replaces Observation.Node).
type MarkNode struct {
	Node      *Node
	Condition object.Condition
}

// DeleteNode takes our finalizer off the node and deletes it, if it still has
// this UID (Observation.NodeDeleted). A node that is gone counts as deleted.
type DeleteNode struct{ Name, UID string }

// DrainNode has a node emptied of its workload, or asks how far that has come
// (Observation.Drain). The node is this machine's, and is told of its deletion
// or taken out of service already; to cordon it is the drain's matter otherwise.
type DrainNode struct {
	Node *Node
	// Forced says that no budget and no volume is to be waited for.
	Forced bool
	// Stays says that the VM keeps running: it must not be declared out
	// of service.
	Stays bool
	// Since is the persisted beginning of this drain; what a former drain has
	// recorded is older.
	Since time.Time
	// Until is when this drain is forced or, if it is forced or for an
	// in-place update, given up; a last attempt may come later. A node that
	// does not answer may get force before, but only by an order of its own:
	// no caller can know beforehand how long it stays silent.
	Until time.Time
}

// DetachVolumes has the volumes of a node detached that a forced drain did not
// wait for, or asks how far that has come (Observation.Detach).
type DetachVolumes struct {
	Node *Node
	// Forced says that they are to be taken off. Without it force is not due any
	// more, as for a node that answers again: its pods may still write to them, and
	// they have to come off by themselves.
	Forced bool
	// Until is when the deletion goes on without it.
	Until time.Time
}

// AskCreate asks whether this machine may be tried next of its class
// (Observation.CreateTurn). A turn that was given lasts until CreateVM is answered, or
// until the pass has ended without.
type AskCreate struct{}

// AskGrant asks whether this machine may be given up now (Observation.Grant): marked failed or,
// with NodeLeaves, deleted because others delete its node.
// The answer is read live: it must take into account every grant that was ever
// given.
type AskGrant struct{ NodeLeaves bool }

// AskUpdate asks whether this machine's VM may be changed now (Observation.UpdateTurn).
// It protects the provider, and a fleet from a change that fails everywhere; it
// is not asked for safety.
type AskUpdate struct{}

// EnsureToken makes sure that the machine has a bootstrap token which lasts
// until then, whole seconds (Observation.TokenEnsured). In the rest of the pass
// it is in the user data that drivers are given.
type EnsureToken struct{ Until time.Time }

// RenewToken is EnsureToken for a token that exists: it makes none, and the
// answer is NOT_FOUND where there is none (Observation.TokenEnsured).
type RenewToken struct{ Until time.Time }

// RemoveToken deletes the machine's bootstrap token (Observation.TokenRemoved).
// One that does not exist counts as deleted.
type RemoveToken struct{}

func (GetVM) effect() {}

func (CreateVM) effect() {}

func (InitializeVM) effect() {}

func (UpdateVM) effect() {}

func (DeleteVM) effect() {}

func (FindNode) effect() {}

func (*SyncNode) effect() {}

func (*MarkNode) effect() {}

func (DeleteNode) effect() {}

func (*DrainNode) effect() {}

func (*DetachVolumes) effect() {}

func (AskCreate) effect() {}

func (AskGrant) effect() {}

func (AskUpdate) effect() {}

func (EnsureToken) effect() {}

func (RenewToken) effect() {}

func (RemoveToken) effect() {}

// The reasons of decisions about one machine.
var (
	reasonSpecInvalid      = decision.NewReason("SpecInvalid", "{name} {detail}; waiting for a change")
	reasonSpecValid        = decision.NewReason("SpecValid", "the spec is valid again")
	reasonFrozen           = decision.NewReason("Frozen", "frozen: nothing is created or judged")
	reasonPaused           = decision.NewReason("Paused", "paused by annotation {name}: nothing is done, judged or deleted")
	reasonResumed          = decision.NewReason("Resumed", "no longer paused: all waits start again")
	reasonOddPause         = decision.NewReason("PauseUnreadable", "annotation {name} says {detail}, which is neither true nor false: not paused")
	reasonFinalizer        = decision.NewReason("FinalizerAdded", "finalizer added, so that the record outlives the VM")
	reasonAskVM            = decision.NewReason("AskVM", "asking the provider whether the VM exists")
	reasonFence            = decision.NewReason("CreateAnnounced", "about to create the VM")
	reasonCreate           = decision.NewReason("Create", "the provider has no VM of this name: creating it")
	reasonHeld             = decision.NewReason("CreationHeld", "{detail}: not tried before its turn; looking again in {for}")
	reasonHeldNoted        = decision.NewReason("CreationHeldNoted", "{detail}: the machine waits for its turn")
	reasonAskCreate        = decision.NewReason("AskCreate", "{detail}: asking whether this machine may be tried next")
	reasonFound            = decision.NewReason("VMFound", "adopting VM {name}, which the provider has already")
	reasonCreated          = decision.NewReason("VMCreated", "created VM {name}")
	reasonNodeNamed        = decision.NewReason("NodeNamed", "the name of its node is {name}")
	reasonStaleNode        = decision.NewReason("StaleNode", "the VM came up under node name {name}, which is another node's: to be replaced")
	reasonStaleNodeVM      = decision.NewReason("StaleNodeVMDeletion", "node {name} is not this VM's: deleting the VM just made")
	reasonInitialize       = decision.NewReason("Initialize", "initializing VM {name}")
	reasonInitialized      = decision.NewReason("Initialized", "VM {name} is initialized")
	reasonLastKnown        = decision.NewReason("StateNoted", "noting what the driver said of the VM's state")
	reasonPending          = decision.NewReason("Pending", "VM {name} is there; waiting for its node")
	reasonAvailable        = decision.NewReason("Available", "VM {name} is there, and no cluster to join")
	reasonAvailableAlone   = decision.NewReason("AvailableWithoutNode", "VM {name} is available as without a cluster; there is one, and no healthy node of this machine in it")
	reasonCreateFailed     = decision.NewReason("CreateFailed", "creation failed in {name}: {code}: {detail}")
	reasonCreateRefused    = decision.NewReason("CreateRefused", "creation refused for good in {name}: {code}: {detail}")
	reasonCreationTimeout  = decision.NewReason("CreationTimeout", "not running within {for} of its creation: {detail}")
	reasonWaitForChange    = decision.NewReason("WaitForChange", "{name} failed with {code}; not tried again until machine, class or secret change")
	reasonRetryAt          = decision.NewReason("RetryLater", "{name} failed with {code}; trying again in {for}, or when machine, class or secret change")
	reasonFindNode         = decision.NewReason("FindNode", "looking for node {name}")
	reasonFindByName       = decision.NewReason("FindNodeByMachine", "looking for a node that carries the name of machine {name}")
	reasonNotJoined        = decision.NewReason("NotJoined", "node {name} has not joined yet; {for} left")
	reasonNotHealthyYet    = decision.NewReason("NotHealthyYet", "node {name} joined but {detail}; {for} left")
	reasonCritical         = decision.NewReason("CriticalComponentsNotReady", "node {name} waits for its critical components; {for} left")
	reasonSyncNode         = decision.NewReason("SyncNode", "bringing node {name} in line with its template")
	reasonSyncFailed       = decision.NewReason("SyncNodeFailed", "node {name} could not be written: {code}: {detail}")
	reasonSyncRefused      = decision.NewReason("SyncNodeRefused", "the API server refuses what the template says of node {name}, which has the rest: {code}: {detail}")
	reasonSyncAccepted     = decision.NewReason("SyncNodeAccepted", "node {name} is as its template says")
	reasonSyncUndone       = decision.NewReason("SyncNodeUndone", "another program keeps changing {detail} on node {name}; it is put back ever more rarely, in the end every 10 min")
	reasonSyncAgain        = decision.NewReason("SyncNodeAgain", "node {name} is brought in line in the next pass: its machine changed after it was written")
	reasonJoined           = decision.NewReason("Joined", "node {name} joined and is healthy")
	reasonConditions       = decision.NewReason("ConditionsChanged", "conditions of node {name} changed")
	reasonNodeMissing      = decision.NewReason("NodeMissing", "node {name} is missing")
	reasonNodeUnhealthy    = decision.NewReason("NodeUnhealthy", "node {name} is unhealthy: {detail}")
	reasonRejoined         = decision.NewReason("Rejoined", "node {name} is healthy again")
	reasonUnhealthyWait    = decision.NewReason("WaitingForHealth", "node {name} is missing or unhealthy; {for} left before the machine fails")
	reasonUnhealthyForever = decision.NewReason("HealthTimeoutDisabled", "node {name} is missing or unhealthy, and the health timeout is disabled")
	reasonHealthTimeout    = decision.NewReason("HealthTimeout", "node {name} was missing or unhealthy for {for}: to be replaced")
	reasonGrace            = decision.NewReason("GraceAfterStart", "its time is up, but no machine is given up before this process has watched for {for}: {detail}")
	reasonAskMissing       = decision.NewReason("AskMissingVM", "two listings did not name VM {name}: asking the provider for it")
	reasonLost             = decision.NewReason("VMLost", "VM {name} is gone: the provider does not know it, and has not listed it for {for}: to be replaced")
	reasonAskGrantLost     = decision.NewReason("AskGrantForLostVM", "VM {name} is gone: asking whether the machine may be replaced now")
	reasonLostNotGranted   = decision.NewReason("ReplacementOfLostBlocked", "VM {name} is gone, but its machine is not replaced yet: {detail}")
	reasonAskGrant         = decision.NewReason("AskGrant", "node {name} was missing or unhealthy for too long: asking whether the machine may be replaced now")
	reasonNotGranted       = decision.NewReason("ReplacementBlocked", "node {name} was missing or unhealthy for too long, but its machine is not replaced yet: {detail}")
	reasonHealthy          = decision.NewReason("Healthy", "node {name} is healthy")
	reasonForeignNode      = decision.NewReason("NodeOfAnotherMachine", "node {name} carries the name of machine {detail}: left alone")
	reasonNodeOfOtherVM    = decision.NewReason("NodeOfAnotherVM", "node {name} has provider ID {detail}, which is another VM's: left alone, and not drained if the machine goes")
	reasonAskLeave         = decision.NewReason("AskGrantForLeavingNode", "somebody deletes node {name}: asking whether its machine may be replaced now")
	reasonLeaveRefused     = decision.NewReason("ReplacementOfLeavingBlocked", "somebody deletes node {name}, but machine and node stay for now: {detail}")
	ReasonNodeDeletion     = decision.NewReason("NodeBeingDeleted", "node {name} is being deleted, and its machine with it")
	reasonFailed           = decision.NewReason("AwaitingReplacement", "failed; waiting to be replaced")
	reasonPreserve         = decision.NewReason("Preserved", "kept for inspection for {for}, as {detail} asks")
	reasonPreserved        = decision.NewReason("KeptForInspection", "failed, and kept for inspection as {detail} asks; {for} left")
	reasonPreserveExpired  = decision.NewReason("PreservationExpired", "was kept for inspection for {for}: that is over")
	reasonPreserveStopped  = decision.NewReason("PreservationStopped", "not kept for inspection any more: asked for now is {detail}")
	reasonPreserveNoted    = decision.NewReason("PreservationNoted", "noting that annotation {name} says {detail}")
	reasonPreserveUnknown  = decision.NewReason("PreservationUnknown", "annotation {name} is unknown: {detail}; it changes nothing")
	reasonPreserveDrain    = decision.NewReason("DrainOfPreservedFailed", "node {name}, kept for inspection, could not be drained: {code}: {detail}")
	reasonPreserveDraining = decision.NewReason("DrainingPreserved", "node {name}, kept for inspection, is not empty yet: {detail}; {for} left")
	reasonTellPreserved    = decision.NewReason("TellPreserved", "telling on node {name} whether it is kept for inspection: {detail}")
	reasonPreserveUntold   = decision.NewReason("TellPreservedFailed", "what is said of its preservation on node {name} could not be written, or did not stay: {code} {detail}")
	reasonUpdating         = decision.NewReason("InPlaceUpdate", "an in-place update is under way: no verdict")
	reasonSelectionWaits   = decision.NewReason("SelectionWaits", "node {name} is selected for its update by a label, but the rollout decides when: it waits until maxUnavailable allows it")
	reasonSelected         = decision.NewReason("SelectedForUpdate", "its turn for an in-place update: node {name} is taken out of service")
	reasonUpdateFence      = decision.NewReason("RecordConfirmed", "making sure that this record is not an old one before node {name} is changed")
	reasonUpdateRestart    = decision.NewReason("UpdateStageUnknown", "stage {name} of an in-place update makes no sense: going on from what the node says")
	reasonUpdateDraining   = decision.NewReason("DrainingForUpdate", "node {name} is not empty yet: {detail}; {for} left for its update")
	reasonUpdateStep       = decision.NewReason("UpdateStepFailed", "node {name} could not be drained or written for its update: {code}: {detail}")
	reasonUnclaimed        = decision.NewReason("UpdateBegunElsewhere", "another program has begun an update of node {name}: waiting for the machine's owner to ask for it; {for} left")
	reasonReady            = decision.NewReason("EmptyForUpdate", "node {name} is empty and ready for its update")
	reasonStage            = decision.NewReason("AnnounceUpdateStage", "telling on node {name} where its update stands: {detail}")
	reasonAnnounce         = decision.NewReason("AnnounceUpdate", "telling on node {name} that it may be updated")
	reasonRetract          = decision.NewReason("RetractUpdate", "telling on node {name} that no update is wanted")
	reasonMarkFailed       = decision.NewReason("MarkNodeFailed", "what is said of its update on node {name} could not be written, or did not stay: {code} {detail}")
	reasonAwaitAgent       = decision.NewReason("AwaitUpdate", "node {name} may be updated; {for} left for the agent")
	reasonAwaitNode        = decision.NewReason("AwaitNode", "node {name} is missing, or another machine's; {for} left for its update")
	reasonUpdateResult     = decision.NewReason("UpdateResultUnknown", "the agent's answer on node {name} is unknown: {detail}")
	reasonUpdated          = decision.NewReason("Updated", "node {name} is updated")
	reasonUpdateFailed     = decision.NewReason("UpdateFailed", "the update of node {name} failed: {detail}")
	reasonUpdateOpen       = decision.NewReason("UpdateOpen", "node {name} is healthy, but its update failed: open until the agent succeeds or its owner decides")
	reasonUpdateAbandoned  = decision.NewReason("UpdateAbandoned", "the update of node {name} failed {for} ago and nobody has made it good: giving the machine up")
	reasonUpdateTimeout    = decision.NewReason("UpdateTimeout", "node {name} was not updated within {for}")
	reasonOutdated         = decision.NewReason("UpdatedTooLate", "node {name} was updated after the update had been withdrawn: it is not what the machine's owner says")
	reasonWithdrawn        = decision.NewReason("UpdateWithdrawn", "the update of node {name} was withdrawn")
	reasonAwaitOwner       = decision.NewReason("AwaitOwner", "node {name} is updated; its machine waits for its owner to take it over")
	reasonReturning        = decision.NewReason("NotHealthyAfterUpdate", "node {name} is updated, but {detail}; {for} left")
	reasonReturnCritical   = decision.NewReason("CriticalComponentsAfterUpdate", "node {name} is updated and waits for its critical components")
	reasonReturned         = decision.NewReason("BackInService", "node {name} is updated and in service again")
	reasonPhaseRestart     = decision.NewReason("PhaseUnknown", "phase {name} makes no sense: looking for its VM and its node again")
	reasonNotDeleted       = decision.NewReason("TerminatingWithoutDeletion", "Terminating although nobody asked for deletion: to be replaced")
	reasonNotOurs          = decision.NewReason("NoFinalizerOfOurs", "being deleted without our finalizer: nothing is touched")
	reasonTerminating      = decision.NewReason("Terminating", "deletion asked for while {detail}")
	reasonRestart          = decision.NewReason("DeletionRestarted", "deletion stage {name} makes no sense: starting again")
	reasonDrain            = decision.NewReason("Drain", "draining node {name}")
	reasonMarkNode         = decision.NewReason("MarkNode", "telling on node {name} that it is about to go")
	reasonNoNode           = decision.NewReason("NothingToDrain", "no node to drain")
	reasonNodeUnread       = decision.NewReason("NodeNotRead", "the node of machine {name} could not be read, and is not drained, because the deletion is forced: {detail}")
	reasonDrained          = decision.NewReason("Drained", "node {name} is drained")
	reasonDrainedBut       = decision.NewReason("DrainedButNotEmpty", "node {name} is drained, and not empty: {detail}")
	reasonDrainNode        = decision.NewReason("DrainNode", "emptying node {name}")
	reasonForceDrain       = decision.NewReason("ForceDrain", "emptying node {name} by force")
	reasonDraining         = decision.NewReason("Draining", "node {name} is not empty yet: {detail}; {for} left before force")
	reasonHook             = decision.NewReason("WaitingForHook", "annotation {name} holds the deletion back; {for} left for it")
	reasonUnheld           = decision.NewReason("HookOver", "no hook holds {name} back any more")
	reasonForceDraining    = decision.NewReason("ForceDraining", "node {name} is not empty yet in spite of force: {detail}; {for} left")
	reasonDrainNoted       = decision.NewReason("DrainProgress", "draining node {name}: {detail}")
	reasonDrainedByForce   = decision.NewReason("DrainedByForce", "node {name} is drained by force")
	reasonDrainGivenUp     = decision.NewReason("DrainGivenUp", "node {name} could not be emptied even by force: {detail}; going on")
	reasonDetach           = decision.NewReason("DetachVolumes", "detaching the volumes of node {name}")
	reasonDetaching        = decision.NewReason("Detaching", "volumes are still attached to node {name}: {detail}; {for} left")
	reasonNoForce          = decision.NewReason("NoForce", "force is not due any more: waiting for the volumes of node {name} to come off by themselves")
	reasonDetached         = decision.NewReason("VolumesDetached", "no volume is attached to node {name} any more")
	reasonDetachFailed     = decision.NewReason("DetachFailed", "volumes of node {name} could not be detached: {code}: {detail}")
	reasonDetachBlocked    = decision.NewReason("DetachBlocked", "volumes are still attached to node {name}: {detail}")
	reasonDetachTimeout    = decision.NewReason("DetachTimeout", "volumes are still attached to node {name} after {for}; going on")
	reasonDeleteVM         = decision.NewReason("DeleteVM", "deleting VM {name}")
	reasonVMDeleted        = decision.NewReason("VMDeleted", "VM {name} is deleted")
	reasonNoVM             = decision.NewReason("NoVMToDelete", "no VM was ever created: there is none to delete")
	reasonDeleteNode       = decision.NewReason("DeleteNode", "deleting node {name}")
	reasonNodeDeleted      = decision.NewReason("NodeDeleted", "node {name} is deleted")
	reasonNodeGone         = decision.NewReason("NoNodeToDelete", "no node of it is left")
	reasonNodeLate         = decision.NewReason("NodeJoinedLate", "node {name} has joined after the drain: draining it before the VM is deleted")
	reasonNodeAgain        = decision.NewReason("NodeRegisteredAgain", "node {name} has registered again: deleting it")
	reasonDeleteFailed     = decision.NewReason("DeleteFailed", "deletion failed in {name}: {code}: {detail}")
	reasonReleased         = decision.NewReason("Deleted", "VM and node are gone: letting the record go")
	reasonClassGone        = decision.NewReason("ClassMissing", "class {name} is gone, and the provider can't be called without it")
	reasonSpecTaken        = decision.NewReason("VMSpecTaken", "nothing is known of what the VM was made from: taking it to be as class {name} says now")
	reasonSpecNoted        = decision.NewReason("VMSpecNoted", "the VM is as class {name} says: noting it in terms of what can be updated now")
	reasonSpecFixed        = decision.NewReason("ClassChangedOtherwise", "class {name} has changed in what can't be changed on a VM that exists: the VM stays as it was made")
	reasonUpdateClass      = decision.NewReason("UpdateClassInvalid", "VM {name} is not changed to what its class says: {detail}")
	reasonAskUpdate        = decision.NewReason("AskUpdate", "VM {name} is not as its class says: asking whether it may be changed now")
	reasonAwaitTurn        = decision.NewReason("AwaitTurn", "VM {name} is to be changed, but {detail}")
	reasonUpdateAnnounced  = decision.NewReason("VMUpdateAnnounced", "about to change VM {name}")
	reasonUpdateVM         = decision.NewReason("UpdateVM", "changing VM {name} to what its class says")
	ReasonVMUpdated        = decision.NewReason("VMUpdated", "VM {name} is changed")
	reasonVMUpdateFailed   = decision.NewReason("VMUpdateFailed", "VM {name} could not be changed: {code}: {detail}")
	reasonUpdateNoVM       = decision.NewReason("VMToUpdateMissing", "VM {name}, which was to be changed, is gone: the machine's health decides")
	reasonUpdateRefused    = decision.NewReason("VMUpdateRefused", "VM {name} can't be changed, and nobody would replace its machine: it stays as it is")
	reasonUpdateReplace    = decision.NewReason("ReplaceInsteadOfUpdate", "VM {name} can't be changed: asking for its machine to be replaced")
	reasonEnsureToken      = decision.NewReason("EnsureToken", "making sure of a bootstrap token for the next {for}")
	reasonRenewToken       = decision.NewReason("RenewToken", "making sure that its bootstrap token, if it has one, lasts for the next {for}")
	reasonRemoveToken      = decision.NewReason("RemoveToken", "its bootstrap token is not needed any more: deleting it")
	reasonTokenLeft        = decision.NewReason("TokenNotDeleted", "its bootstrap token could not be deleted and is left to expire: {code}: {detail}")
	reasonTokenNotRenewed  = decision.NewReason("TokenNotRenewed", "its bootstrap token could not be prolonged: {code}: {detail}")
)

// What guards say, see GuardOf.
var (
	reasonGuardFrozen      = decision.NewReason("GuardFrozen", "the fleet is frozen")
	reasonGuardDeleted     = decision.NewReason("GuardBeingDeleted", "it is being deleted")
	reasonGuardHasVM       = decision.NewReason("GuardHasVM", "it has VM {name} already")
	reasonGuardNotGranted  = decision.NewReason("GuardNotGranted", "no budget has granted it")
	reasonGuardVM          = decision.NewReason("GuardVMNotDeleted", "DeleteMachine has answered neither OK nor NOT_FOUND, and a create may have been issued")
	reasonGuardNodeUnknown = decision.NewReason("GuardNodeUnknown", "whether it has a node is not known")
	reasonGuardNode        = decision.NewReason("GuardNodeNotDeleted", "node {name} is still there")
)

// The reasons of verdicts on VMs, without a cluster.
var (
	reasonAskUnhealthy       = decision.NewReason("AskUnhealthyVM", "VM {name} is or was said to be unhealthy: asking the provider for it")
	reasonVMUnhealthy        = decision.NewReason("VMUnhealthy", "the provider says that VM {name} is unhealthy: {detail}")
	reasonVMWell             = decision.NewReason("VMHealthy", "the provider says that VM {name} is healthy again")
	reasonVMNotTold          = decision.NewReason("VMHealthUnknown", "the provider does not say whether VM {name} is healthy again: {code}")
	reasonVMUnhealthyWait    = decision.NewReason("WaitingForVM", "VM {name} is unhealthy: {detail}; {for} left before the machine fails")
	reasonVMUnhealthyForever = decision.NewReason("VMHealthTimeoutDisabled", "VM {name} is unhealthy: {detail}; the health timeout is disabled")
	reasonVMTimeout          = decision.NewReason("VMHealthTimeout", "VM {name} was unhealthy for {for}: {detail}: to be replaced")
	reasonAskGrantVM         = decision.NewReason("AskGrantForUnhealthyVM", "VM {name} was unhealthy for too long: asking whether the machine may be replaced now")
	reasonVMNotGranted       = decision.NewReason("ReplacementOfUnhealthyBlocked", "VM {name} was unhealthy for too long, but its machine is not replaced yet: {detail}")
)
