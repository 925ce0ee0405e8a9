package drain

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Reason is the kind of a decision, one word for programs.
type Reason string

// The reasons of decisions about a drain.
const (
	ReasonCordon        Reason = "Cordon"
	ReasonBegin         Reason = "Begin"
	ReasonAgain         Reason = "BeginAgain"
	ReasonRecordInvalid Reason = "RecordInvalid"
	ReasonCordonAgain   Reason = "CordonAgain"
	ReasonUncordoned    Reason = "UncordonedByOthers"
	ReasonNotStored     Reason = "RecordNotStored"
	ReasonIncomplete    Reason = "Incomplete"
	ReasonNodeGone      Reason = "NodeGone"
	ReasonHook          Reason = "PreDrainHook"
	ReasonEvict         Reason = "Evict"
	ReasonEvictVolumes  Reason = "EvictWithVolumes"
	ReasonFinished      Reason = "Finished"
	ReasonNoEviction    Reason = "NoEvictionAPI"
	ReasonSlotsUsed     Reason = "SlotsUsed"
	ReasonTimeUp        Reason = "TimeUp"
	ReasonForce         Reason = "Force"
	ReasonForceBegins   Reason = "ForceBegins"
	ReasonFence         Reason = "Fence"
	ReasonUnfence       Reason = "Unfence"
	ReasonForced        Reason = "Forced"
	ReasonForceEnded    Reason = "ForceEnded"
	ReasonLeaving       Reason = "Leaving"
	ReasonGoing         Reason = "StillGoing"
	ReasonOverdue       Reason = "Overdue"
	ReasonRefused       Reason = "Refused"
	ReasonBudget        Reason = "BudgetRefuses"
	ReasonBudgetStale   Reason = "BudgetStale"
	ReasonMisconfigured Reason = "BudgetMisconfigured"
	ReasonBudgets       Reason = "SeveralBudgets"
	ReasonFailed        Reason = "CallFailed"
	ReasonProtected     Reason = "DoNotDisrupt"
	ReasonCompleting    Reason = "WaitCompleted"
	ReasonOrder         Reason = "LaterOrder"
	ReasonNotYet        Reason = "NotYet"
	ReasonInTurn        Reason = "WaitingForTurn"
	ReasonNoUID         Reason = "NoUID"
	ReasonLook          Reason = "ReadLive"
	ReasonLookPods      Reason = "ReadPodsLive"
	ReasonTurn          Reason = "Turn"
	ReasonDetaching     Reason = "Detaching"
	ReasonDetachLate    Reason = "DetachTimeout"
	ReasonUnclaimed     Reason = "VolumeOfNobody"
	ReasonDetached      Reason = "Detached"
	ReasonReattaching   Reason = "Reattaching"
	ReasonWaiting       Reason = "Waiting"
	ReasonDrained       Reason = "Drained"
	ReasonNoProgress    Reason = "NoProgress"
	ReasonLeft          Reason = "EndedWithPodsLeft"
	ReasonMirror        Reason = "Mirror"
	ReasonDaemonSet     Reason = "DaemonSet"
	ReasonSkipped       Reason = "Skipped"
	ReasonLeftAlone     Reason = "LeftAtTimeout"
	ReasonDetach        Reason = "DetachVolume"
	ReasonNoneAttached  Reason = "NoneAttached"
	ReasonDetachWait    Reason = "WaitingForDetach"
	ReasonDetachFailed  Reason = "DetachFailed"
	ReasonDetachEnded   Reason = "DetachEnded"
	ReasonUncordon      Reason = "Uncordon"
	ReasonForget        Reason = "RecordRemoved"
	ReasonNothingToUndo Reason = "NothingToUndo"
)

// Why is the reason of one decision with what it was seen in. Values are
// comparable; making one allocates nothing.
type Why struct {
	Reason Reason
	Pod    object.Key // what the sentence is about
	Budget object.Key
	Name   string // a node, a volume, an annotation, an attachment
	Detail string // an answer or a kind, quoted
	Have   int64  // what there is: healthy pods, pods left
	Want   int64  // what is wanted: healthy pods, orders
	All    int64  // what is expected at all
	For    time.Duration
}

var sentences = map[Reason]string{
	ReasonCordon:        "cordoning node {name}, so that no pod comes any more",
	ReasonBegin:         "node {name} is cordoned already: noting that the drain begins",
	ReasonAgain:         "the drain record of node {name} is from an earlier drain: beginning anew",
	ReasonRecordInvalid: "the drain record of node {name} holds a time that has not come yet: beginning anew",
	ReasonCordonAgain:   "node {name} was uncordoned in the middle of its drain: cordoning it again",
	ReasonUncordoned:    "somebody else uncordons node {name} while it is drained; next cordon in {for}",
	ReasonNotStored:     "the drain record of node {name} could not be stored: nothing is done without it",
	ReasonIncomplete:    "not all of the cluster was read yet: nothing is concluded from what is missing",
	ReasonNodeGone:      "the node is gone: nothing to drain",
	ReasonHook:          "annotation {name} of the node holds the drain back",
	ReasonEvict:         "evicting {pod}",
	ReasonEvictVolumes:  "evicting {pod}, next in turn of those with volumes (priority {have})",
	ReasonFinished:      "{pod} has finished: deleting it",
	ReasonNoEviction:    "the cluster has no eviction API: deleting {pod} with its own grace",
	ReasonSlotsUsed:     "the attempts to evict {pod} are used up ({want} slots of 20s): deleting it with its own grace",
	ReasonTimeUp:        "the drain's time is over: deleting {pod} with its own grace",
	ReasonForce:         "force: deleting {pod} with grace 0",
	ReasonForceBegins:   "force is due on node {name}",
	ReasonUnfence:       "node {name} answers again: it is not marked out of service any more",
	ReasonFence:         "node {name} has not answered for {for}: marking it out of service",
	ReasonForced:        "force: all deletions were accepted",
	ReasonForceEnded:    "force was tried for {for}; deletions that were not accepted: {have}",
	ReasonLeaving:       "{pod} is going{until}",
	ReasonGoing:         "{pod} is still going, and the drain's time is over{until}",
	ReasonOverdue:       "{pod} should have gone{ago}: no longer waited for",
	ReasonRefused:       "eviction of {pod} was refused, and no budget of it is known; {again}",
	ReasonBudget:        "budget {budget} refuses to have {pod} evicted: {have} of {all} pods healthy, {want} wanted; {again}",
	ReasonBudgetStale:   "eviction of {pod} was refused, and the status of budget {budget} is out of date; {again}",
	ReasonMisconfigured: "budget {budget} is misconfigured: all {have} of {all} pods are healthy and it never lets {pod} go",
	ReasonBudgets:       "several budgets apply to {pod} ({have}, the first is {budget}): the cluster evicts no such pod; {again}",
	ReasonFailed:        "{pod} could not be told to go: {detail}; {again}",
	ReasonProtected:     "annotation {name} protects {pod}{until}",
	ReasonCompleting:    "{pod} is to complete first{until}",
	ReasonOrder:         "{pod} has order {want}: waits until the pods of order {have} have gone",
	ReasonNotYet:        "{pod} may have been tried just before this process began; first attempt in {for}",
	ReasonInTurn:        "{pod} waits for the volumes of the pod before it",
	ReasonNoUID:         "{pod} has no UID, so that it can't be told from others: not touched{until}",
	ReasonLook:          "reading node {name} as it is: its drain may have recorded more than a cache knows",
	ReasonLookPods:      "reading the pods of node {name} as they are: one may have been bound to it that a cache does not know",
	ReasonTurn:          "{pod} is going: following its volumes until they are attached elsewhere ({have})",
	ReasonDetaching:     "volume {name} of {pod} is still attached here{until}",
	ReasonUnclaimed:     "volume {name} is still attached here, and the drain began before this process: its pod may have left unrecorded{until}",
	ReasonDetachLate:    "volume {name} of {pod} should have been detached{ago}: no longer waited for",
	ReasonDetached:      "the volumes of {pod} are detached: waiting for them to be attached elsewhere",
	ReasonReattaching:   "volume {name} of {pod} is not attached elsewhere yet{until}",
	ReasonWaiting:       "waiting for pods on node {name}: {have} left",
	ReasonDrained:       "node {name} is drained",
	ReasonNoProgress:    "the forecast for node {name} makes no progress, its last decision: {detail}",
	ReasonLeft:          "the drain of node {name} has ended; pods left: {have}",
	ReasonMirror:        "{pod} is a static pod: left alone",
	ReasonDaemonSet:     "{pod} belongs to daemon set {detail}: left alone",
	ReasonSkipped:       "a rule has {pod} skipped",
	ReasonLeftAlone:     "the drain's time is over: {pod} is left, by policy",
	ReasonDetach:        "detaching volume {name} from the node",
	ReasonNoneAttached:  "no volume is attached to the node",
	ReasonDetachFailed:  "attachment {name} could not be deleted: {detail}",
	ReasonDetachWait:    "volumes still attached to the node: {have}{until}",
	ReasonDetachEnded:   "volumes still attached after {for}: {have}; no longer waited for",
	ReasonUncordon:      "uncordoning node {name}, which the drain cordoned",
	ReasonForget:        "node {name} was cordoned before its drain: it stays so, and the record goes",
	ReasonNothingToUndo: "node {name} has no drain to undo",
}

// String is the sentence a person can act on. With a zero For, which is a way to
// have it without what changes by itself, it names no time.
func (w Why) String() string {
	sentence, ok := sentences[w.Reason]
	if !ok {
		return string(w.Reason)
	}
	until, ago, again := "", "", "again when its turn comes"
	if w.For > 0 {
		ago = " " + span(w.For) + " ago"
		again = "again in " + span(w.For)
		until = "; waited for at most " + span(w.For)
	}
	return object.Sentence(sentence, "pod", quoteEmpty(w.Pod.String()), "budget", quoteEmpty(w.Budget.String()),
		"name", quoteEmpty(w.Name), "detail", quoteEmpty(w.Detail), "have", strconv.FormatInt(w.Have, 10),
		"want", strconv.FormatInt(w.Want, 10), "all", strconv.FormatInt(w.All, 10), "for", span(w.For), "until", until, "ago", ago, "again", again)
}

func span(d time.Duration) string { return d.Round(time.Second).String() }

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
