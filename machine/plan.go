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

// Plan is what to do next: carry out Write or Effect, put the answer into the observation, and decide
// again. A plan with neither ends the pass: decide again at At.
type Plan struct {
	Write  Write
	Moves  []Move // state changes that Write makes, in order
	Effect Effect // only when Write is nil
	// At is when to decide again even if nothing changes. Zero: only after a change.
	At  time.Time
	Why decision.Why
	// Warn is for a Warning event: a problem that the machine's owner should know about. Zero: none.
	Warn decision.Why
}

// Effect is one call to the provider or the cluster, or a question to the caller (AskCreate, AskGrant,
// AskUpdate). The comment of each names the field of the observation that its answer goes into. Effects
// carry no secrets.
//
//sumtype:decl
type Effect interface{ effect() }

// GetVM asks the driver for the machine's VM (Observation.VM).
type GetVM struct{}

// CreateVM asks the driver to create the VM (Observation.Created).
type CreateVM struct{}

// InitializeVM asks the driver to initialize the VM (Observation.Initialized).
type InitializeVM struct{}

// UpdateVM asks the driver to update the VM to the spec of the class (Observation.Updated).
// LastApplied is the provider spec that the VM is known to have, together with the values of earlier
// calls whose result is not known.
type UpdateVM struct{ LastApplied string }

// DeleteVM asks the driver to delete the VM (Observation.VMDeleted). A ProviderID overrides the one
// recorded on the machine.
type DeleteVM struct{ ProviderID string }

// FindNode reads a node live (Observation.Node). An empty Name looks for a node that is labeled with the
// machine's name.
type FindNode struct {
	Name string
	Gone bool // to be copied to NodeAnswer.Gone
	// Forced says to answer a failed read with NodeAnswer.Failure. Otherwise a failed read ends the
	// pass, and the caller retries it.
	Forced bool
}

// SyncNode writes Node, a changed copy of the observed node, under its version (Observation.NodeSynced; the
// written node replaces Observation.Node). Capacity is written first, and then all else: that includes
// Applied, the only record of what to remove again.
type SyncNode struct {
	Node     *Node
	Spec     bool // metadata, taints and Applied differ
	Capacity bool // Capacity differs
	// Rest holds nodes to write if the server rejects Node (INVALID_ARGUMENT, PERMISSION_DENIED): try
	// each in order until one is accepted. Each leaves out another part of the template. Put the code
	// and the message of the first rejection into Applied.Refused of the node that is written; the
	// answer is that of the last write.
	Rest []*Node
	// Changes are the entries that differ from the observed node, for NodeWrites.With.
	Changes []NodeChange
}

// MarkNode sets a condition on the node, under its version (Observation.NodeMarked; the written node
// replaces Observation.Node).
type MarkNode struct {
	Node      *Node
	Condition object.Condition
}

// DeleteNode removes our finalizer from the node and deletes it, if it still has this UID
// (Observation.NodeDeleted). A node that does not exist counts as deleted.
type DeleteNode struct{ Name, UID string }

// DrainNode drains a node, or continues its drain and returns the progress (Observation.Drain). The node
// is this machine's own. It has the Terminating condition or is out of service already; otherwise the
// drain cordons it.
type DrainNode struct {
	Node *Node
	// Forced says not to wait for budgets and volumes.
	Forced bool
	// Stays says that the VM keeps running: do not add the out-of-service taint.
	Stays bool
	// Since is the stored start of this drain. An older record on the node is of an earlier drain.
	Since time.Time
	// Until is when this drain is forced or, if it is forced already or for an in-place update, ends.
	// It is only a forecast: the next DrainNode may be forced earlier, because the node has become
	// unresponsive.
	Until time.Time
}

// DetachVolumes detaches the volumes that a forced drain left on a node, or returns the progress
// (Observation.Detach).
type DetachVolumes struct {
	Node *Node
	// Forced says to delete the attachments. Without it force is no longer due, because the node
	// responds again and its pods may still write to the volumes: only wait until they are detached.
	Forced bool
	// Until is when the deletion continues with volumes attached.
	Until time.Time
}

// AskCreate asks whether this machine may make the next attempt of its class, while the class is backing
// off (Observation.CreatePermit). The permission lasts until CreateVM is answered or the pass ends.
type AskCreate struct{}

// AskGrant asks the replacement budget (package safety/replacement) whether this machine may be given up now
// (Observation.Grant): marked Failed or, with NodeLeaves, deleted because its node is being deleted. The
// answer must count all grants given before, from a live read.
type AskGrant struct{ NodeLeaves bool }

// AskUpdate asks whether this machine's VM may be updated now (Observation.UpdateTurn). The answer limits
// the load on the provider, and stops an update that fails everywhere. Safety does not depend on it.
type AskUpdate struct{}

// EnsureToken makes sure that the machine has a bootstrap token that is valid to Until, in whole seconds
// (Observation.TokenEnsured). For the rest of the pass it is in the user data that drivers get.
type EnsureToken struct{ Until time.Time }

// RenewToken is EnsureToken for a token that exists. It creates none; the answer is NOT_FOUND if there is
// none (Observation.TokenEnsured).
type RenewToken struct{ Until time.Time }

// RemoveToken deletes the machine's bootstrap token (Observation.TokenRemoved). A token that does not
// exist counts as deleted.
type RemoveToken struct{}

func (GetVM) effect()          {}
func (CreateVM) effect()       {}
func (InitializeVM) effect()   {}
func (UpdateVM) effect()       {}
func (DeleteVM) effect()       {}
func (FindNode) effect()       {}
func (*SyncNode) effect()      {}
func (*MarkNode) effect()      {}
func (DeleteNode) effect()     {}
func (*DrainNode) effect()     {}
func (*DetachVolumes) effect() {}
func (AskCreate) effect()      {}
func (AskGrant) effect()       {}
func (AskUpdate) effect()      {}
func (EnsureToken) effect()    {}
func (RenewToken) effect()     {}
func (RemoveToken) effect()    {}

// The reasons of decisions about one machine. Other packages match on the exported ones.
var (
	reasonSpecInvalid          = decision.NewReason("SpecInvalid", "{name} {detail}; waiting for a change")
	reasonSpecValid            = decision.NewReason("SpecValid", "the spec is valid again")
	reasonFrozen               = decision.NewReason("Frozen", "the fleet is frozen: no machine is created or marked Failed")
	reasonPaused               = decision.NewReason("Paused", "paused by annotation {name}: nothing is created, updated, marked Failed or deleted")
	reasonResumed              = decision.NewReason("Resumed", "no longer paused: all timeouts start again")
	reasonInvalidPause         = decision.NewReason("PauseUnreadable", "annotation {name} must be true or false, and is {detail}: not paused")
	reasonFinalizer            = decision.NewReason("FinalizerAdded", "finalizer added, so that the machine object outlives its VM")
	reasonAskVM                = decision.NewReason("AskVM", "asking the provider whether the VM exists")
	reasonCreateAnnounced      = decision.NewReason("CreateAnnounced", "recording that the VM is about to be created")
	reasonCreate               = decision.NewReason("Create", "the provider has no VM of this name: creating it")
	reasonClassBackoff         = decision.NewReason("ClassBackoff", "{detail}: backing off; next attempt in {for}")
	reasonClassBackoffRecorded = decision.NewReason("ClassBackoffRecorded", "{detail}: backing off")
	reasonAskCreate            = decision.NewReason("AskCreate", "{detail}: asking whether this machine may make the next attempt")
	reasonFound                = decision.NewReason("VMFound", "the provider already has VM {name}: adopting it")
	reasonCreated              = decision.NewReason("VMCreated", "created VM {name}")
	reasonNodeNamed            = decision.NewReason("NodeNamed", "the machine's node is {name}")
	reasonStaleNode            = decision.NewReason("StaleNode", "the VM came up with node name {name}, which belongs to another node: the machine is replaced")
	reasonStaleNodeVM          = decision.NewReason("StaleNodeVMDeletion", "node {name} belongs to another VM: deleting the new VM")
	reasonInitialize           = decision.NewReason("Initialize", "initializing VM {name}")
	reasonInitialized          = decision.NewReason("Initialized", "VM {name} is initialized")
	reasonDriverState          = decision.NewReason("DriverStateRecorded", "recording the VM state that the driver returned")
	reasonPending              = decision.NewReason("Pending", "VM {name} exists; waiting for its node")
	reasonAvailable            = decision.NewReason("Available", "VM {name} exists, and there is no cluster to join")
	reasonAvailableAlone       = decision.NewReason("AvailableWithoutNode", "VM {name} is Available, as without a cluster, but there is a cluster and the machine has no healthy node in it")
	reasonCreateFailed         = decision.NewReason("CreateFailed", "creation failed in {name}: {code}: {detail}")
	reasonCreateRefused        = decision.NewReason("CreateRefused", "creation failed in {name} and is not retried: {code}: {detail}")
	reasonCreationTimeout      = decision.NewReason("CreationTimeout", "not running {for} after its creation: {detail}")
	reasonWaitForChange        = decision.NewReason("WaitForChange", "{name} failed with {code}; next attempt when the machine, its class or its secrets change")
	reasonRetryAt              = decision.NewReason("RetryLater", "{name} failed with {code}; next attempt in {for}, or when the machine, its class or its secrets change")
	reasonFindNode             = decision.NewReason("FindNode", "reading node {name}")
	reasonFindByName           = decision.NewReason("FindNodeByMachine", "looking for a node labeled with machine {name}")
	reasonNotJoined            = decision.NewReason("NotJoined", "node {name} has not joined yet; {for} left")
	reasonNotHealthyYet        = decision.NewReason("NotHealthyYet", "node {name} joined but {detail}; {for} left")
	reasonCritical             = decision.NewReason("CriticalComponentsNotReady", "the critical components of node {name} are not ready; {for} left")
	reasonSyncNode             = decision.NewReason("SyncNode", "updating node {name} to match its template")
	reasonSyncFailed           = decision.NewReason("SyncNodeFailed", "node {name} could not be updated: {code}: {detail}")
	reasonSyncRefused          = decision.NewReason("SyncNodeRefused", "the API server rejects part of the template of node {name}; the rest is applied: {code}: {detail}")
	reasonSyncAccepted         = decision.NewReason("SyncNodeAccepted", "node {name} matches its template")
	reasonSyncUndone           = decision.NewReason("SyncNodeUndone", "another program keeps changing {detail} on node {name}; it is restored with backoff, at most every 10 min")
	reasonSyncAgain            = decision.NewReason("SyncNodeAgain", "the machine changed after node {name} was updated: the next pass updates it again")
	reasonJoined               = decision.NewReason("Joined", "node {name} joined and is healthy")
	reasonConditions           = decision.NewReason("ConditionsChanged", "conditions of node {name} changed")
	reasonNodeMissing          = decision.NewReason("NodeMissing", "node {name} is missing")
	reasonNodeUnhealthy        = decision.NewReason("NodeUnhealthy", "node {name} is unhealthy: {detail}")
	reasonRejoined             = decision.NewReason("Rejoined", "node {name} is healthy again")
	reasonUnhealthyWait        = decision.NewReason("WaitingForHealth", "node {name} is missing or unhealthy; {for} left before the machine fails")
	reasonUnhealthyForever     = decision.NewReason("HealthTimeoutDisabled", "node {name} is missing or unhealthy, and the health timeout is disabled")
	reasonHealthTimeout        = decision.NewReason("HealthTimeout", "node {name} was missing or unhealthy for {for}: the machine is replaced")
	reasonGrace                = decision.NewReason("GraceAfterStart", "the deadline has passed, but no machine fails in the first {for} after this process started: {detail}")
	reasonAskMissing           = decision.NewReason("AskMissingVM", "VM {name} was missing from two listings: asking the provider for it")
	reasonLost                 = decision.NewReason("VMLost", "VM {name} is gone: GetMachineStatus returned NOT_FOUND, and it has not been listed for {for}: the machine is replaced")
	reasonAskGrantLost         = decision.NewReason("AskGrantForLostVM", "VM {name} is gone: asking whether the machine may be replaced now")
	reasonLostNotGranted       = decision.NewReason("ReplacementOfLostBlocked", "VM {name} is gone, but its machine is not replaced yet: {detail}")
	reasonAskGrant             = decision.NewReason("AskGrant", "node {name} was missing or unhealthy for too long: asking whether the machine may be replaced now")
	reasonNotGranted           = decision.NewReason("ReplacementBlocked", "node {name} was missing or unhealthy for too long, but its machine is not replaced yet: {detail}")
	reasonHealthy              = decision.NewReason("Healthy", "node {name} is healthy")
	reasonForeignNode          = decision.NewReason("NodeOfAnotherMachine", "node {name} is labeled with machine {detail}: left alone")
	reasonNodeOfOtherVM        = decision.NewReason("NodeOfAnotherVM", "node {name} has provider ID {detail}, which is another VM's: left alone, and not drained when the machine is deleted")
	reasonAskDeletedNode       = decision.NewReason("AskGrantForDeletedNode", "node {name} is being deleted: asking whether its machine may be replaced now")
	reasonDeletedNodeRefused   = decision.NewReason("ReplacementOfDeletedBlocked", "node {name} is being deleted, but machine and node stay for now: {detail}")
	ReasonNodeDeletion         = decision.NewReason("NodeBeingDeleted", "node {name} is being deleted, and its machine with it")
	reasonFailed               = decision.NewReason("AwaitingReplacement", "failed; waiting to be replaced")
	reasonPreserve             = decision.NewReason("Preserved", "preserved for {for}: annotation says {detail}")
	reasonPreservedFailed      = decision.NewReason("PreservedFailed", "failed and preserved: annotation says {detail}; {for} left")
	reasonPreserveExpired      = decision.NewReason("PreservationExpired", "preservation ended after {for}")
	reasonPreserveStopped      = decision.NewReason("PreservationStopped", "no longer preserved: annotation now says {detail}")
	reasonPreserveRequested    = decision.NewReason("PreservationRequested", "annotation {name} says {detail}")
	reasonPreserveUnknown      = decision.NewReason("PreservationUnknown", "annotation {name} has unknown value {detail}: ignored")
	reasonPreserveDrain        = decision.NewReason("DrainOfPreservedFailed", "preserved node {name} could not be drained: {code}: {detail}")
	reasonPreserveDraining     = decision.NewReason("DrainingPreserved", "preserved node {name} is not empty yet: {detail}; {for} left")
	reasonSetPreserved         = decision.NewReason("SetPreservedCondition", "setting the preservation condition of node {name} to {detail}")
	reasonSetPreservedFailed   = decision.NewReason("SetPreservedConditionFailed", "could not update the preservation condition of node {name}: {code}: {detail}")
	reasonUpdating             = decision.NewReason("InPlaceUpdate", "an in-place update is in progress: health is not judged")
	reasonSelectionWaits       = decision.NewReason("SelectionWaits", "node {name} is labeled for its update, but the rollout decides when: it waits until maxUnavailable allows it")
	reasonSelected             = decision.NewReason("SelectedForUpdate", "selected for an in-place update: taking node {name} out of service")
	reasonStatusConfirmed      = decision.NewReason("StatusConfirmed", "writing the status before node {name} is changed, so that a stale read fails here")
	reasonUpdateRestart        = decision.NewReason("UpdateStageUnknown", "unknown in-place update stage {name}: continuing from what the node says")
	reasonUpdateDraining       = decision.NewReason("DrainingForUpdate", "node {name} is not empty yet: {detail}; {for} left for its update")
	reasonUpdateStep           = decision.NewReason("UpdateStepFailed", "node {name} could not be drained or written for its update: {code}: {detail}")
	reasonUnclaimed            = decision.NewReason("UpdateBegunElsewhere", "another program started an update of node {name}: waiting for the machine's owner to request it; {for} left")
	reasonReady                = decision.NewReason("EmptyForUpdate", "node {name} is drained and ready for its update")
	reasonSetUpdateCondition   = decision.NewReason("SetUpdateCondition", "setting the update condition of node {name} to {detail}")
	reasonSetUpdateReady       = decision.NewReason("SetUpdateConditionReady", "setting the update condition of node {name}: the agent may update it")
	reasonClearUpdateCondition = decision.NewReason("ClearUpdateCondition", "setting the update condition of node {name}: no update is wanted")
	reasonSetUpdateFailed      = decision.NewReason("SetUpdateConditionFailed", "could not update the update condition of node {name}: {code}: {detail}")
	reasonAwaitAgent           = decision.NewReason("AwaitUpdate", "waiting for the agent to update node {name}; {for} left")
	reasonAwaitNode            = decision.NewReason("AwaitNode", "node {name} is missing, or another machine's; {for} left for its update")
	reasonUpdateResult         = decision.NewReason("UpdateResultUnknown", "the agent's result on node {name} is unknown: {detail}")
	reasonUpdated              = decision.NewReason("Updated", "node {name} is updated")
	reasonUpdateFailed         = decision.NewReason("UpdateFailed", "the update of node {name} failed: {detail}")
	reasonUpdateOpen           = decision.NewReason("UpdateOpen", "node {name} is healthy, but its update failed: waiting until the agent succeeds or the machine's owner decides")
	reasonUpdateAbandoned      = decision.NewReason("UpdateAbandoned", "the update of node {name} failed {for} ago and was not repaired: the machine is replaced")
	reasonUpdateTimeout        = decision.NewReason("UpdateTimeout", "node {name} was not updated within {for}")
	reasonOutdated             = decision.NewReason("UpdatedTooLate", "node {name} was updated after the update was withdrawn: it does not match what the machine's owner wants")
	reasonWithdrawn            = decision.NewReason("UpdateWithdrawn", "the update of node {name} was withdrawn")
	reasonAwaitOwner           = decision.NewReason("AwaitOwner", "node {name} is updated; waiting for the machine's owner to move it to its new set")
	reasonReturning            = decision.NewReason("NotHealthyAfterUpdate", "node {name} is updated, but {detail}; {for} left")
	reasonReturnCritical       = decision.NewReason("CriticalComponentsAfterUpdate", "node {name} is updated; its critical components are not ready")
	reasonReturned             = decision.NewReason("BackInService", "node {name} is updated and in service again")
	reasonPhaseRestart         = decision.NewReason("PhaseUnknown", "unknown phase {name}: reading the VM and the node again")
	reasonNotDeleted           = decision.NewReason("TerminatingWithoutDeletion", "phase is Terminating without a deletion timestamp: marked Failed")
	reasonNotOurs              = decision.NewReason("NoFinalizerOfOurs", "being deleted without our finalizer: nothing to do")
	reasonTerminating          = decision.NewReason("Terminating", "deletion requested in phase {detail}")
	reasonRestart              = decision.NewReason("DeletionRestarted", "unknown deletion stage {name}: starting again")
	reasonDrain                = decision.NewReason("Drain", "draining node {name}")
	reasonSetTerminating       = decision.NewReason("SetTerminatingCondition", "setting the Terminating condition of node {name}")
	reasonNoNode               = decision.NewReason("NothingToDrain", "no node to drain")
	reasonNodeUnread           = decision.NewReason("NodeNotRead", "the node of machine {name} could not be read and is not drained, because the deletion is forced: {detail}")
	reasonDrained              = decision.NewReason("Drained", "node {name} is drained")
	reasonDrainedBut           = decision.NewReason("DrainedButNotEmpty", "node {name} is drained but not empty: {detail}")
	reasonDrainNode            = decision.NewReason("DrainNode", "draining node {name}")
	reasonForceDrain           = decision.NewReason("ForceDrain", "force-draining node {name}")
	reasonDraining             = decision.NewReason("Draining", "node {name} is not empty yet: {detail}; {for} left before force")
	reasonAwaitHook            = decision.NewReason("WaitingForHook", "hook annotation {name} blocks the deletion[; {for} left]")
	reasonHookReleased         = decision.NewReason("HookReleased", "no hook blocks {name} any longer")
	reasonForceDraining        = decision.NewReason("ForceDraining", "node {name} is not empty yet despite force: {detail}; {for} left")
	reasonDrainNoted           = decision.NewReason("DrainProgress", "draining node {name}: {detail}")
	reasonDrainedByForce       = decision.NewReason("DrainedByForce", "node {name} is drained by force")
	reasonDrainGivenUp         = decision.NewReason("DrainGivenUp", "node {name} could not be emptied even by force: {detail}; continuing")
	reasonDetach               = decision.NewReason("DetachVolumes", "detaching the volumes of node {name}")
	reasonDetaching            = decision.NewReason("Detaching", "volumes are still attached to node {name}: {detail}; {for} left")
	reasonNoForce              = decision.NewReason("NoForce", "force is no longer due: waiting for the volumes of node {name} to detach")
	reasonDetached             = decision.NewReason("VolumesDetached", "no volume is attached to node {name} any longer")
	reasonDetachFailed         = decision.NewReason("DetachFailed", "volumes of node {name} could not be detached: {code}: {detail}")
	reasonDetachBlocked        = decision.NewReason("DetachBlocked", "volumes are still attached to node {name}: {detail}")
	reasonDetachTimeout        = decision.NewReason("DetachTimeout", "volumes are still attached to node {name} after {for}; continuing")
	reasonDeleteVM             = decision.NewReason("DeleteVM", "deleting VM {name}")
	reasonVMDeleted            = decision.NewReason("VMDeleted", "VM {name} is deleted")
	reasonNoVM                 = decision.NewReason("NoVMToDelete", "no VM was ever created: nothing to delete")
	reasonDeleteNode           = decision.NewReason("DeleteNode", "deleting node {name}")
	reasonNodeDeleted          = decision.NewReason("NodeDeleted", "node {name} is deleted")
	reasonNodeGone             = decision.NewReason("NoNodeToDelete", "no node to delete")
	reasonNodeLate             = decision.NewReason("NodeJoinedLate", "node {name} joined after the drain: draining it before the VM is deleted")
	reasonNodeAgain            = decision.NewReason("NodeRegisteredAgain", "node {name} registered again: deleting it")
	reasonDeleteFailed         = decision.NewReason("DeleteFailed", "deletion failed in {name}: {code}: {detail}")
	reasonReleased             = decision.NewReason("Deleted", "VM and node are gone: finalizer removed")
	reasonClassGone            = decision.NewReason("ClassMissing", "class {name} does not exist, and the provider can't be called without it")
	reasonSpecAssumed          = decision.NewReason("VMSpecAssumed", "the spec that the VM was created from is not recorded: assuming that of class {name}")
	reasonSpecRecorded         = decision.NewReason("VMSpecRecorded", "the VM matches class {name}: recording its spec by the fields that can be updated now")
	reasonSpecFixed            = decision.NewReason("ClassChangedOtherwise", "class {name} changed in fields that can't be updated on an existing VM: left unchanged")
	reasonUpdateClass          = decision.NewReason("UpdateClassInvalid", "VM {name} is not updated to its class: {detail}")
	reasonAskUpdate            = decision.NewReason("AskUpdate", "VM {name} differs from its class: asking whether it may be updated now")
	reasonUpdateDelayed        = decision.NewReason("UpdateDelayed", "VM {name} is to be updated, but {detail}")
	reasonUpdateAnnounced      = decision.NewReason("VMUpdateAnnounced", "recording that VM {name} is about to be updated")
	reasonUpdateVM             = decision.NewReason("UpdateVM", "updating VM {name} to its class")
	ReasonVMUpdated            = decision.NewReason("VMUpdated", "VM {name} is updated")
	reasonVMUpdateFailed       = decision.NewReason("VMUpdateFailed", "VM {name} could not be updated: {code}: {detail}")
	reasonUpdateNoVM           = decision.NewReason("VMToUpdateMissing", "VM {name}, which was to be updated, is gone: the machine's health decides")
	reasonUpdateRefused        = decision.NewReason("VMUpdateRefused", "VM {name} can't be updated and no set owns its machine: left unchanged")
	reasonUpdateReplace        = decision.NewReason("ReplaceInsteadOfUpdate", "VM {name} can't be updated: requesting the replacement of its machine")
	reasonEnsureToken          = decision.NewReason("EnsureToken", "ensuring a bootstrap token that is valid for {for}")
	reasonRenewToken           = decision.NewReason("RenewToken", "renewing the bootstrap token, if there is one, for {for}")
	reasonRemoveToken          = decision.NewReason("RemoveToken", "the bootstrap token is no longer needed: deleting it")
	reasonTokenLeft            = decision.NewReason("TokenNotDeleted", "the bootstrap token could not be deleted and is left to expire: {code}: {detail}")
	reasonTokenNotRenewed      = decision.NewReason("TokenNotRenewed", "the bootstrap token could not be renewed: {code}: {detail}")
)

// The reasons of guards, see GuardOf.
var (
	reasonGuardFrozen      = decision.NewReason("GuardFrozen", "the fleet is frozen")
	reasonGuardDeleted     = decision.NewReason("GuardBeingDeleted", "the machine is being deleted")
	reasonGuardHasVM       = decision.NewReason("GuardHasVM", "the machine already has VM {name}")
	reasonGuardNotGranted  = decision.NewReason("GuardNotGranted", "the replacement budget has not granted it")
	reasonGuardVM          = decision.NewReason("GuardVMNotDeleted", "DeleteMachine has returned neither OK nor NOT_FOUND, and a VM may have been created")
	reasonGuardNodeUnknown = decision.NewReason("GuardNodeUnknown", "the machine's node has not been read live")
	reasonGuardNode        = decision.NewReason("GuardNodeNotDeleted", "node {name} still exists")
)

// The reasons of decisions about the health of VMs, without a cluster.
var (
	reasonAskUnhealthy       = decision.NewReason("AskUnhealthyVM", "VM {name} is or was listed as unhealthy: asking the provider for it")
	reasonVMUnhealthy        = decision.NewReason("VMUnhealthy", "the provider reports VM {name} as unhealthy: {detail}")
	reasonVMWell             = decision.NewReason("VMHealthy", "the provider reports VM {name} as healthy again")
	reasonVMNotTold          = decision.NewReason("VMHealthUnknown", "the provider does not report whether VM {name} is healthy again: {code}")
	reasonVMUnhealthyWait    = decision.NewReason("WaitingForVM", "VM {name} is unhealthy: {detail}; {for} left before the machine fails")
	reasonVMUnhealthyForever = decision.NewReason("VMHealthTimeoutDisabled", "VM {name} is unhealthy: {detail}; the health timeout is disabled")
	reasonVMTimeout          = decision.NewReason("VMHealthTimeout", "VM {name} was unhealthy for {for}: {detail}: the machine is replaced")
	reasonAskGrantVM         = decision.NewReason("AskGrantForUnhealthyVM", "VM {name} was unhealthy for too long: asking whether the machine may be replaced now")
	reasonVMNotGranted       = decision.NewReason("ReplacementOfUnhealthyBlocked", "VM {name} was unhealthy for too long, but its machine is not replaced yet: {detail}")
)
