package drain

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Order is one call about one pod. UID is its precondition.
type Order struct {
	Pod object.Key
	UID string
	// Now is for deletions: with grace 0. False: with the pod's own grace.
	Now bool
	// Turn is what the record of the drain will say about a pod whose volumes the drain waits for;
	// pass it to Memory.Begin. Nil: the drain does not wait for them. Shared, must not be changed.
	Turn *machine.DrainTurn
	Why  decision.Why
}

// DetachOrder is the deletion of one attachment.
type DetachOrder struct {
	Name string // of the attachment
	Why  decision.Why
}

// Blocked is a pod that the drain waits for longer than for its grace, or no longer waits for.
type Blocked struct {
	Pod object.Key
	UID string
	Why decision.Why
	// Budgets that apply to a pod whose eviction was refused. Shared, must not be changed.
	Budgets []*Budget
}

// InTurn reports whether the pod waits only for its turn: for pods that go first, for the volumes of
// the pod before it, or for the end of a slot that an earlier process may have used.
func (b *Blocked) InTurn() bool {
	switch b.Why.Reason {
	case reasonInTurn, reasonOrder, reasonNotYet:
		return true
	}
	return false
}

// Plan is what to do next. Store Write, or carry out the orders of the one slice that is filled,
// record the answers in the memory, and decide again. Or read live, and decide again. With none of
// these, decide again at At.
type Plan struct {
	// Write is a changed copy of the node: the cordon and the record, or the uncordon. Store it
	// under its version.
	Write *machine.Node
	// Begins: Write begins the drain of a node that was not being drained. Call Memory.Begun once
	// it was stored.
	Begins bool
	// Look asks for the current node and its pods, in the observation without Cached and
	// PodsCached.
	Look bool

	Evict  []Order
	Delete []Order
	Detach []DetachOrder

	// Done: the drain has nothing left to wait for. If Blocked is not empty, not all pods are gone.
	Done bool
	// At is when to decide again even if nothing has changed. Zero: never.
	At  time.Time
	Why decision.Why
	// Blocked is filled in plans that wait, and in the last one; by namespace and name.
	Blocked []Blocked
	// Warn is a tolerated problem that an operator should know of. Zero: none.
	Warn decision.Why
}

// busy reports whether the plan has something to carry out.
func (p *Plan) busy() bool {
	return p.Write != nil || p.Look || len(p.Evict) > 0 || len(p.Delete) > 0 || len(p.Detach) > 0
}

// The reasons of decisions about a drain.
var (
	reasonCordon        = decision.NewReason("Cordon", "cordoning node {name}, so that no pod comes any more")
	reasonBegin         = decision.NewReason("Begin", "node {name} is cordoned already: noting that the drain begins")
	reasonAgain         = decision.NewReason("BeginAgain", "the drain record of node {name} is from an earlier drain: beginning again")
	reasonRecordInvalid = decision.NewReason("RecordInvalid", "the drain record of node {name} holds a time that has not come yet: beginning again")
	reasonCordonAgain   = decision.NewReason("CordonAgain", "node {name} was uncordoned in the middle of its drain: cordoning it again")
	reasonUncordoned    = decision.NewReason("UncordonedByOthers", "somebody else uncordons node {name} while it is drained; next cordon in {for}")
	reasonNotStored     = decision.NewReason("RecordNotStored", "the drain record of node {name} could not be stored: nothing is done without it")
	reasonIncomplete    = decision.NewReason("Incomplete", "not all of the cluster was read yet: nothing is concluded from what is missing")
	reasonNodeGone      = decision.NewReason("NodeGone", "the node is gone: nothing to drain")
	reasonHook          = decision.NewReason("PreDrainHook", "annotation {name} of the node holds the drain back")
	reasonEvict         = decision.NewReason("Evict", "evicting {object}")
	reasonEvictVolumes  = decision.NewReason("EvictWithVolumes", "evicting {object}, next in turn of those with volumes (priority {have})")
	reasonFinished      = decision.NewReason("Finished", "{object} has finished: deleting it")
	reasonNoEviction    = decision.NewReason("NoEvictionAPI", "the cluster has no eviction API: deleting {object} with its own grace")
	reasonSlotsUsed     = decision.NewReason("SlotsUsed", "the attempts to evict {object} are used up ({want} slots of 20s): deleting it with its own grace")
	reasonTimeUp        = decision.NewReason("TimeUp", "the drain's time is over: deleting {object} with its own grace")
	reasonForce         = decision.NewReason("Force", "force: deleting {object} with grace 0")
	reasonForceBegins   = decision.NewReason("ForceBegins", "force is due on node {name}")
	reasonFence         = decision.NewReason("Fence", "node {name} has not answered for {for}: marking it out of service")
	reasonUnfence       = decision.NewReason("Unfence", "node {name} answers again: it is not marked out of service any more")
	reasonForced        = decision.NewReason("Forced", "force: all deletions were accepted")
	reasonForceEnded    = decision.NewReason("ForceEnded", "force was tried for {for}; deletions that were not accepted: {have}")
	reasonLeaving       = decision.NewReason("Leaving", "{object} is going[; waited for at most {for}]")
	reasonGoing         = decision.NewReason("StillGoing", "{object} is still going, and the drain's time is over[; waited for at most {for}]")
	reasonOverdue       = decision.NewReason("Overdue", "{object} should have gone[ {for} ago]: no longer waited for")
	reasonRefused       = decision.NewReason("Refused", "eviction of {object} was refused, and no budget of it is known; [again in {for}|again when its turn comes]")
	reasonBudget        = decision.NewReason("BudgetRefuses", "budget {name} refuses to have {object} evicted: {have} of {all} pods healthy, {want} wanted; [again in {for}|again when its turn comes]")
	reasonUnhealthy     = decision.NewReason("BudgetRefusesUnhealthy", "budget {name} refuses to have {object} evicted, which is not ready: {have} of {all} pods healthy, {want} wanted; unhealthyPodEvictionPolicy AlwaysAllow would let it go; [again in {for}|again when its turn comes]")
	reasonBudgetStale   = decision.NewReason("BudgetStale", "eviction of {object} was refused, and the status of budget {name} is out of date; [again in {for}|again when its turn comes]")
	reasonMisconfigured = decision.NewReason("BudgetMisconfigured", "budget {name} is misconfigured: all {have} of {all} pods are healthy and it never lets {object} go")
	reasonBudgets       = decision.NewReason("SeveralBudgets", "several budgets apply to {object} ({have}, the first is {name}): the cluster evicts no such pod; [again in {for}|again when its turn comes]")
	reasonFailed        = decision.NewReason("CallFailed", "{object} could not be told to go: {detail}; [again in {for}|again when its turn comes]")
	reasonProtected     = decision.NewReason("DoNotDisrupt", "annotation {name} protects {object}[; waited for at most {for}]")
	// The value of the annotation is Detail.
	reasonProtectedUnclear = decision.NewReason("DoNotDisruptUnclear", "annotation {name} protects {object}: its value {detail} can't be read, and counts as protection[; waited for at most {for}]")
	reasonCompleting       = decision.NewReason("WaitCompleted", "{object} is to complete first[; waited for at most {for}]")
	reasonOrder            = decision.NewReason("LaterOrder", "{object} has order {want}: waits until the pods of order {have} have gone")
	reasonNotYet           = decision.NewReason("NotYet", "{object} may have been tried just before this process began; first attempt in {for}")
	reasonInTurn           = decision.NewReason("WaitingForTurn", "{object} waits for the volumes of the pod before it")
	reasonNoUID            = decision.NewReason("NoUID", "{object} has no UID, so that it can't be told from others: not touched[; waited for at most {for}]")
	reasonLook             = decision.NewReason("ReadLive", "reading node {name} as it is: its drain may have recorded more than a cache knows")
	reasonLookPods         = decision.NewReason("ReadPodsLive", "reading the pods of node {name} as they are: one may have been bound to it that a cache does not know")
	reasonTurn             = decision.NewReason("Turn", "{object} is going: following its volumes until they are attached elsewhere ({have})")
	reasonDetaching        = decision.NewReason("Detaching", "volume {name} of {object} is still attached here[; waited for at most {for}]")
	reasonDetachLate       = decision.NewReason("DetachTimeout", "volume {name} of {object} should have been detached[ {for} ago]: no longer waited for")
	reasonEmptied          = decision.NewReason("Emptied", "no pod is left on node {name} that the drain waits for: waiting for the volumes that are attached to it")
	reasonNotEmpty         = decision.NewReason("NotEmpty", "there are pods again on node {name}: its volumes have their time when these are gone")
	reasonAttached         = decision.NewReason("StillAttached", "volume {name} is still attached here, and no pod uses it[; waited for at most {for}]")
	reasonAttachedLate     = decision.NewReason("AttachedTooLong", "volume {name} should have been detached[ {for} ago]: no longer waited for")
	reasonAttachedHeld     = decision.NewReason("AttachedForGood", "volume {name} stays attached here: {object} uses it and is left alone")
	reasonDetached         = decision.NewReason("Detached", "the volumes of {object} are detached: waiting for them to be attached elsewhere")
	reasonReattaching      = decision.NewReason("Reattaching", "volume {name} of {object} is not attached elsewhere yet[; waited for at most {for}]")
	ReasonWaiting          = decision.NewReason("Waiting", "waiting for pods on node {name}: {have} left")
	reasonDrained          = decision.NewReason("Drained", "node {name} is drained")
	reasonNoProgress       = decision.NewReason("NoProgress", "the forecast for node {name} makes no progress, its last decision: {detail}")
	reasonLeft             = decision.NewReason("EndedWithPodsLeft", "the drain of node {name} has ended; pods left: {have}")
	reasonMirror           = decision.NewReason("Mirror", "{object} is a static pod: left alone")
	reasonDaemonSet        = decision.NewReason("DaemonSet", "{object} belongs to daemon set {detail}: left alone")
	reasonCame             = decision.NewReason("CameLate", "{object} came to the node after its drain began: noting that before it is told to go")
	reasonCameBack         = decision.NewReason("CameBack", "{object} came to the node in spite of the cordon, as others of its controller that were told to go: left alone, as those of a daemon set")
	reasonSkipped          = decision.NewReason("Skipped", "a rule has {object} skipped")
	reasonLeftAlone        = decision.NewReason("LeftAtTimeout", "the drain's time is over: {object} is left, by policy")
	reasonDetach           = decision.NewReason("DetachVolume", "detaching volume {name} from the node")
	reasonNoneAttached     = decision.NewReason("NoneAttached", "no volume is attached to the node")
	reasonDetachWait       = decision.NewReason("WaitingForDetach", "volumes still attached to the node: {have}[; waited for at most {for}]")
	ReasonDetachFailed     = decision.NewReason("DetachFailed", "attachment {name} could not be deleted: {detail}")
	reasonDetachEnded      = decision.NewReason("DetachEnded", "volumes still attached after {for}: {have}; no longer waited for")
	reasonUncordon         = decision.NewReason("Uncordon", "uncordoning node {name}, which the drain cordoned")
	reasonForget           = decision.NewReason("RecordRemoved", "node {name} was cordoned before its drain: it stays so, and the record goes")
	reasonNothingToUndo    = decision.NewReason("NothingToUndo", "node {name} has no drain to undo")
)
