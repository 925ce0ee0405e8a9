package machineset

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Reason is the kind of a decision, one word for programs.
type Reason string

// The reasons of decisions about one set. Those of refused orders are also the
// reason of ConditionReplicaFailure.
const (
	ReasonSpecInvalid     Reason = "SpecInvalid"
	ReasonFinalizer       Reason = "FinalizerAdded"
	ReasonReadLive        Reason = "ReadLive"
	ReasonRelease         Reason = "Release"
	ReasonAdopt           Reason = "Adopt"
	ReasonPush            Reason = "Push"
	ReasonReplace         Reason = "ReplaceFailed"
	ReasonStillborn       Reason = "NeverRan"
	ReasonStillbornFirst  Reason = "NeverRanFirst"
	ReasonUnhurried       Reason = "ReplacementSlowed"
	ReasonReserve         Reason = "Reserve"
	ReasonCreate          Reason = "Create"
	ReasonSettle          Reason = "Settle"
	ReasonSettleLost      Reason = "SettleUnanswered"
	ReasonUnanswered      Reason = "CreatesUnanswered"
	ReasonSurplus         Reason = "Surplus"
	ReasonChosen          Reason = "ChosenByScaler"
	ReasonReleasing       Reason = "Releasing"
	ReasonAdopting        Reason = "Adopting"
	ReasonPushing         Reason = "Pushing"
	ReasonDeleteSurplus   Reason = "DeleteSurplus"
	ReasonDeleteFailed    Reason = "DeleteFailed"
	ReasonDeleteRequested Reason = "DeleteRequested"
	ReasonDeleteAll       Reason = "DeleteAll"
	ReasonFrozen          Reason = "Frozen"
	ReasonQuota           Reason = "StrictQuota"
	ReasonPaused          Reason = "Paused"
	ReasonOddPause        Reason = "PauseUnreadable"
	ReasonSpared          Reason = "MachinePaused"
	ReasonExpiring        Reason = "ReplacingForAge"
	ReasonExpired         Reason = "TooOld"
	ReasonDeleteExpired   Reason = "DeleteExpired"
	ReasonReplacing       Reason = "ReplacingOnRequest"
	ReasonRequested       Reason = "ReplaceRequested"
	ReasonClosed          Reason = "Closed"
	ReasonDisabled        Reason = "ScaleUpDisabled"
	ReasonPreserve        Reason = "PreserveFailed"
	ReasonUnpreserve      Reason = "PreserveNoLonger"
	ReasonPreserving      Reason = "Preserving"
	ReasonUnpreserving    Reason = "PreservingNoLonger"
	ReasonStatus          Reason = "Status"
	ReasonStatusLater     Reason = "StatusLater"
	ReasonSettled         Reason = "Settled"
	ReasonFailedCreate    Reason = "FailedCreate"
	ReasonFailedDelete    Reason = "FailedDelete"
	ReasonFailedUpdate    Reason = "FailedUpdate"
	ReasonRetryAt         Reason = "RetryLater"
	ReasonNotOurs         Reason = "NoFinalizerOfOurs"
	ReasonSetDeleted      Reason = "SetDeleted"
	ReasonTerminating     Reason = "MachinesTerminating"
	ReasonLeaving         Reason = "MachinesStayBehind"
	ReasonLateCreates     Reason = "CreatesInFlight"
	ReasonSetReleased     Reason = "Deleted"
)

// Why is the reason of one decision with what it was seen in. Values are
// comparable; making one allocates nothing.
type Why struct {
	Reason Reason
	Name   string     // what the sentence is about: a field
	Detail string     // a problem or an answer, quoted
	Code   codes.Code // of a refusal

	Have  int64 // machines there are, not counting those on their way out
	Want  int64 // machines there should be
	Count int64 // machines, or names, that the decision is about
	Ready int64 // machines that are ready
	Avail int64 // machines that are available
	Last  int64 // highest ordinal concerned

	Phase    machine.Phase // of a victim
	Priority int           // of a victim
	For      time.Duration // a limit, a wait or an age
}

var sentences = map[Reason]string{
	ReasonSpecInvalid:     "{name} {detail}; waiting for a change",
	ReasonFinalizer:       "finalizer added, so that the set outlives its machines",
	ReasonReadLive:        "reading live before {detail}",
	ReasonRelease:         "its labels do not match the selector any more: releasing it",
	ReasonAdopt:           "its labels match and nobody owns it: adopting it",
	ReasonPush:            "its {detail} differs from the template: bringing it in line, in place",
	ReasonReplace:         "failed, to be replaced: {detail}",
	ReasonStillborn:       "machines failed before they ran, {count} times in a row: their replacements wait for {for}",
	ReasonStillbornFirst:  "machines failed before they ran: they are replaced at once, but not if that fails again",
	ReasonUnhurried:       "{have} of {want} machines: {count} wait for another {for}, since machines failed {last} times in a row before they ran",
	ReasonReserve:         "{have} of {want} machines: reserving {count} names, up to number {last}",
	ReasonCreate:          "{have} of {want} machines: creating {count}",
	ReasonSettle:          "all names up to number {last} are in use: done with them",
	ReasonSettleLost:      "nothing came of {count} names up to number {last}, reserved {for} ago: giving them up",
	ReasonUnanswered:      "{have} of {want} machines: what became of {count} names up to number {last} is known in {for} at the latest",
	ReasonSurplus:         "surplus of {count}: priority {priority}, {phase}, {detail}",
	ReasonChosen:          "surplus of {count}: a scaler chose it at {detail}",
	ReasonReleasing:       "releasing {count} machines that do not match any more",
	ReasonAdopting:        "adopting {count} machines that match and have no owner",
	ReasonPushing:         "bringing {count} machines in line with the template, in place",
	ReasonDeleteSurplus:   "{have} of {want} machines: deleting {count}",
	ReasonDeleteFailed:    "{have} of {want} machines: deleting {count} that failed",
	ReasonDeleteAll:       "deleting {count} machines with their set",
	ReasonFrozen:          "{have} of {want} machines; frozen: none is created",
	ReasonQuota:           "{have} of {want} machines; {count} on their way out count as well: others are made once they are gone",
	ReasonPaused:          "{have} of {want} machines; paused by annotation {name}: none is made or deleted",
	ReasonOddPause:        "annotation {name} says {detail}, which is neither true nor false: not paused",
	ReasonSpared:          "{have} of {want} machines: {count} too many, which stay while machines are paused, such as {name}",
	ReasonExpiring:        "{have} of {want} machines, {available} available: {count} too old are replaced, once another is available for each",
	ReasonExpired:         "it is {for} old, and too old",
	ReasonDeleteExpired:   "{have} of {want} machines: deleting {count} that are too old",
	ReasonReplacing:       "{have} of {want} machines, {available} available: {count} to be replaced on request, once another is available for it",
	ReasonRequested:       "it was asked to be replaced: {phase}",
	ReasonDeleteRequested: "{have} of {want} machines: deleting {count} that are to be replaced on request",
	ReasonClosed:          "{have} of {want} machines; the deployment has closed the set: none is created",
	ReasonDisabled:        "{have} of {want} machines; scale-up is disabled by label {name}: none is created",
	ReasonPreserve:        "failed: keeping it for inspection, one of {want} at most",
	ReasonUnpreserve:      "it is not to be kept for inspection by its set any more; {want} are at most",
	ReasonPreserving:      "{have} failed machines are kept for inspection, {want} at most: keeping {count} more",
	ReasonUnpreserving:    "{have} failed machines are to be kept for inspection, {want} at most: {count} no longer",
	ReasonStatus:          "{have} of {want} machines, {ready} ready, {available} available",
	ReasonStatusLater:     "{have} of {want} machines, {ready} ready, {available} available; to be written to the status in {for}",
	ReasonSettled:         "{have} of {want} machines, {ready} ready, {available} available; nothing to do",
	ReasonFailedCreate:    "a machine could not be created: {code}: {detail}",
	ReasonFailedDelete:    "a machine could not be deleted: {code}: {detail}",
	ReasonFailedUpdate:    "a machine could not be changed: {code}: {detail}",
	ReasonRetryAt:         "{detail}; trying again in {for}, or when the set changes",
	ReasonNotOurs:         "being deleted without our finalizer: nothing is touched",
	ReasonSetDeleted:      "its set is being deleted",
	ReasonLeaving:         "being deleted without its machines: waiting until they have no owner any more",
	ReasonTerminating:     "being deleted: waiting for {count} machines to go",
	ReasonLateCreates:     "being deleted: creates of {count} names may still come in for {for}",
	ReasonSetReleased:     "no machine is left: letting the set go",
}

// String is the sentence a person can act on.
func (w Why) String() string {
	sentence, ok := sentences[w.Reason]
	if !ok {
		return string(w.Reason)
	}
	return object.Sentence(sentence, "name", quoteEmpty(w.Name), "detail", quoteEmpty(w.Detail),
		"code", w.Code.Contract(), "have", number(w.Have), "want", number(w.Want),
		"count", number(w.Count), "ready", number(w.Ready), "available", number(w.Avail),
		"last", number(w.Last), "phase", phaseWord(w.Phase), "priority", strconv.Itoa(w.Priority),
		"for", w.For.Round(time.Second).String())
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func phaseWord(p machine.Phase) string {
	if p == machine.PhaseNew {
		return "new"
	}
	return string(p)
}

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
