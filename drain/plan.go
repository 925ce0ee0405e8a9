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
	// Turn is what the record of the drain will say about the pod, if the drain waits for its volumes;
	// Memory.Begin remembers it. Nil: the drain does not wait for them. Shared, must not be changed.
	Turn *machine.DrainTurn
	Why  decision.Why
}

// DetachOrder is the deletion of one attachment.
type DetachOrder struct {
	Name string // of the attachment
	Why  decision.Why
}

// Blocked is a pod that has not been told to terminate yet, or that still exists although the drain no longer
// waits for it. It may also say which volume of a pod the drain waits for.
type Blocked struct {
	Pod object.Key
	UID string
	Why decision.Why
	// Budgets are those that apply to a pod whose eviction was refused. Shared, must not be changed.
	Budgets []*Budget
}

// InTurn reports whether the pod waits only for its turn: for pods that are evicted first, for the volumes of
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
	// Blocked is filled in plans that wait, and in the last plan. It is sorted by namespace and name.
	Blocked []Blocked
	// Warn is a problem that does not stop the drain, but that an operator should know of. Zero: none.
	Warn decision.Why
}

// busy reports whether the plan has something to carry out.
func (p *Plan) busy() bool {
	return p.Write != nil || p.Look || len(p.Evict) > 0 || len(p.Delete) > 0 || len(p.Detach) > 0
}

// The reasons of decisions about a drain.
var (
	reasonCordon           = decision.NewReason("Cordon", "cordoning node {name}, so that no new pods are scheduled")
	reasonBegin            = decision.NewReason("Begin", "node {name} is already cordoned: recording that the drain begins")
	reasonAgain            = decision.NewReason("BeginAgain", "the drain record of node {name} is from an earlier drain: starting again")
	reasonRecordInvalid    = decision.NewReason("RecordInvalid", "the drain record of node {name} has a time in the future: starting again")
	reasonCordonAgain      = decision.NewReason("CordonAgain", "node {name} was uncordoned during its drain: cordoning it again")
	reasonUncordoned       = decision.NewReason("UncordonedByOthers", "another program uncordons node {name} during its drain; next cordon in {for}")
	reasonNotStored        = decision.NewReason("RecordNotStored", "the drain record of node {name} could not be stored: the drain waits for it")
	reasonIncomplete       = decision.NewReason("Incomplete", "caches are not synced yet: waiting")
	reasonNodeGone         = decision.NewReason("NodeGone", "the node is gone: nothing to drain")
	reasonHook             = decision.NewReason("PreDrainHook", "hook annotation {name} of the node blocks the drain")
	reasonEvict            = decision.NewReason("Evict", "evicting {object}")
	reasonEvictVolumes     = decision.NewReason("EvictWithVolumes", "evicting {object}, next of the pods with volumes (priority {have})")
	reasonFinished         = decision.NewReason("Finished", "{object} has finished: deleting it")
	reasonNoEviction       = decision.NewReason("NoEvictionAPI", "the cluster has no eviction API: deleting {object} with its own grace period")
	reasonSlotsUsed        = decision.NewReason("SlotsUsed", "all {want} eviction attempts of 20s each are used up for {object}: deleting it with its own grace period")
	reasonTimeUp           = decision.NewReason("TimeUp", "the drain deadline has passed: deleting {object} with its own grace period")
	reasonForce            = decision.NewReason("Force", "force: deleting {object} with grace period 0")
	reasonForceBegins      = decision.NewReason("ForceBegins", "force is due on node {name}")
	reasonFence            = decision.NewReason("Fence", "node {name} has been unresponsive for {for}: adding the out-of-service taint")
	reasonUnfence          = decision.NewReason("Unfence", "node {name} responds again: removing the out-of-service taint")
	reasonForced           = decision.NewReason("Forced", "force: all deletions were accepted")
	reasonForceEnded       = decision.NewReason("ForceEnded", "force ended after {for}; deletions not accepted: {have}")
	reasonTerminating      = decision.NewReason("Leaving", "{object} is terminating[; waiting at most {for}]")
	reasonStillTerminating = decision.NewReason("StillGoing", "{object} is still terminating, and the drain deadline has passed[; waiting at most {for}]")
	reasonOverdue          = decision.NewReason("Overdue", "{object} should have terminated[ {for} ago]: no longer waiting for it")
	reasonRefused          = decision.NewReason("Refused", "eviction of {object} was refused without a matching budget; [next attempt in {for}|next attempt in its turn]")
	reasonBudget           = decision.NewReason("BudgetRefuses", "budget {name} does not allow the eviction of {object}: {have} of {all} pods healthy, {want} required; [next attempt in {for}|next attempt in its turn]")
	reasonUnhealthy        = decision.NewReason("BudgetRefusesUnhealthy", "budget {name} does not allow the eviction of {object}, which is not ready: {have} of {all} pods healthy, {want} required; unhealthyPodEvictionPolicy AlwaysAllow would allow it; [next attempt in {for}|next attempt in its turn]")
	reasonBudgetStale      = decision.NewReason("BudgetStale", "eviction of {object} was refused, and the status of budget {name} is out of date; [next attempt in {for}|next attempt in its turn]")
	reasonMisconfigured    = decision.NewReason("BudgetMisconfigured", "budget {name} is misconfigured: all {have} of {all} pods are healthy, and it never allows the eviction of {object}")
	reasonBudgets          = decision.NewReason("SeveralBudgets", "{have} budgets match {object}, {name} first, and the eviction API refuses such a pod; [next attempt in {for}|next attempt in its turn]")
	reasonFailed           = decision.NewReason("CallFailed", "eviction or deletion of {object} failed: {detail}; [next attempt in {for}|next attempt in its turn]")
	reasonProtected        = decision.NewReason("DoNotDisrupt", "annotation {name} protects {object}[; waiting at most {for}]")
	// The value of the annotation is Detail.
	reasonProtectedUnclear = decision.NewReason("DoNotDisruptUnclear", "annotation {name} protects {object}: its value {detail} is invalid and counts as protection[; waiting at most {for}]")
	reasonCompleting       = decision.NewReason("WaitCompleted", "waiting for {object} to complete[; at most {for}]")
	reasonOrder            = decision.NewReason("LaterOrder", "{object} has order {want}: waiting until the pods of order {have} are gone")
	reasonNotYet           = decision.NewReason("NotYet", "{object} may have been tried just before this process started; first attempt in {for}")
	reasonInTurn           = decision.NewReason("WaitingForTurn", "{object} waits for the volumes of the pod before it")
	reasonNoUID            = decision.NewReason("NoUID", "{object} has no UID and can't be identified: left alone[; waiting at most {for}]")
	reasonLook             = decision.NewReason("ReadLive", "reading node {name} live: the cache may lack a part of the drain record")
	reasonLookPods         = decision.NewReason("ReadPodsLive", "reading the pods of node {name} live: the cache may lack a new one")
	reasonTurn             = decision.NewReason("Turn", "{object} is terminating: following its volumes until they are attached elsewhere ({have})")
	reasonDetaching        = decision.NewReason("Detaching", "volume {name} of {object} is still attached here[; waiting at most {for}]")
	reasonDetachLate       = decision.NewReason("DetachTimeout", "volume {name} of {object} should have been detached[ {for} ago]: no longer waiting for it")
	reasonEmptied          = decision.NewReason("Emptied", "no pod is left to wait for on node {name}: waiting for its volumes to detach")
	reasonNotEmpty         = decision.NewReason("NotEmpty", "there are pods again on node {name}: its volumes are waited for after them")
	reasonAttached         = decision.NewReason("StillAttached", "volume {name} is still attached here, and no pod uses it[; waiting at most {for}]")
	reasonAttachedLate     = decision.NewReason("AttachedTooLong", "volume {name} should have been detached[ {for} ago]: no longer waiting for it")
	reasonAttachedHeld     = decision.NewReason("AttachedForGood", "volume {name} stays attached here: {object} uses it and is left alone")
	reasonDetached         = decision.NewReason("Detached", "the volumes of {object} are detached: waiting for them to be attached elsewhere")
	reasonReattaching      = decision.NewReason("Reattaching", "volume {name} of {object} is not attached elsewhere yet[; waiting at most {for}]")
	ReasonWaiting          = decision.NewReason("Waiting", "waiting for pods on node {name}: {have} left")
	reasonDrained          = decision.NewReason("Drained", "node {name} is drained")
	reasonNoProgress       = decision.NewReason("NoProgress", "the forecast for node {name} makes no progress; last decision: {detail}")
	reasonLeft             = decision.NewReason("EndedWithPodsLeft", "the drain of node {name} has ended; pods left: {have}")
	reasonMirror           = decision.NewReason("Mirror", "{object} is a static pod: left alone")
	reasonDaemonSet        = decision.NewReason("DaemonSet", "{object} belongs to daemon set {detail}: left alone")
	reasonCameLate         = decision.NewReason("CameLate", "{object} came to the node after its drain began: recording that before it is evicted")
	reasonCameBack         = decision.NewReason("CameBack", "{object} was scheduled despite the cordon, like evicted pods of the same controller: left alone, like pods of a daemon set")
	reasonSkipped          = decision.NewReason("Skipped", "a rule skips {object}")
	reasonLeftAlone        = decision.NewReason("LeftAtTimeout", "the drain deadline has passed: {object} is left, by policy")
	reasonDetach           = decision.NewReason("DetachVolume", "detaching volume {name} from the node")
	reasonNoneAttached     = decision.NewReason("NoneAttached", "no volume is attached to the node")
	reasonDetachWait       = decision.NewReason("WaitingForDetach", "volumes still attached to the node: {have}[; waiting at most {for}]")
	ReasonDetachFailed     = decision.NewReason("DetachFailed", "attachment {name} could not be deleted: {detail}")
	reasonDetachEnded      = decision.NewReason("DetachEnded", "volumes still attached after {for}: {have}; no longer waiting for them")
	reasonUncordon         = decision.NewReason("Uncordon", "uncordoning node {name}, which the drain cordoned")
	reasonForget           = decision.NewReason("RecordRemoved", "node {name} was cordoned before its drain: it stays cordoned, and the drain record is removed")
	reasonNothingToUndo    = decision.NewReason("NothingToUndo", "node {name} has no drain to undo")
)
