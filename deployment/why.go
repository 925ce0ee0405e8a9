package deployment

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/object"
)

// Reason is the kind of a decision, one word for programs.
type Reason string

// The reasons of decisions about one deployment.
const (
	ReasonSpecInvalid   Reason = "SpecInvalid"
	ReasonSelectsAll    Reason = "SelectingAll"
	ReasonOver100       Reason = "MoreThan100Percent"
	ReasonBothZero      Reason = "NeitherSurgeNorUnavailable"
	ReasonFinalizer     Reason = "FinalizerAdded"
	ReasonReadLive      Reason = "ReadLive"
	ReasonAdopt         Reason = "AdoptSet"
	ReasonRelease       Reason = "ReleaseSet"
	ReasonCreate        Reason = "CreateSet"
	ReasonSeen          Reason = "SetSeen"
	ReasonNameTaken     Reason = "NameTaken"
	ReasonNameFree      Reason = "NameFreeAgain"
	ReasonPush          Reason = "PushToSet"
	ReasonMark          Reason = "MarkSet"
	ReasonSlack         Reason = "ReplaceOnRequest"
	ReasonNoSlack       Reason = "ReplacedOnRequest"
	ReasonPreserveShare Reason = "PreserveShare"
	ReasonForget        Reason = "ForgetChosen"
	ReasonPauseCopied   Reason = "PauseCopied"
	ReasonTidied        Reason = "ChoicesTidied"
	ReasonScale         Reason = "ScaleSet"
	ReasonRepair        Reason = "RepairSize"
	ReasonStatus        Reason = "StatusChanged"
	ReasonThrottled     Reason = "StatusThrottled"
	ReasonGathering     Reason = "OrdersGather"
	ReasonRollout       Reason = "Rollout"
	ReasonOrderRefused  Reason = "OrderRefused"
	ReasonNotOurs       Reason = "NoFinalizerOfOurs"
	ReasonDelete        Reason = "DeleteSet"
	ReasonGoing         Reason = "WaitingForSets"
	ReasonLeaving       Reason = "SetsStayBehind"
	ReasonReleased      Reason = "Deleted"
	ReasonPaused        Reason = "Paused"
	ReasonFrozen        Reason = "Frozen"
	ReasonRevision      Reason = "SetRevision"
	ReasonRecord        Reason = "RevisionRecorded"
	ReasonPrune         Reason = "DeleteOldSet"
	ReasonClose         Reason = "CloseSet"
	ReasonOpen          Reason = "OpenSet"
	ReasonMoveTo        Reason = "MachinesArrive"
	ReasonMoveFrom      Reason = "MachinesLeave"
	ReasonMoveBack      Reason = "MachinesStay"
	ReasonMoveDone      Reason = "MovesDone"
	ReasonMoveOff       Reason = "MovesOff"
	ReasonMove          Reason = "MoveMachine"
	ReasonCandidate     Reason = "Candidate"
	ReasonSelect        Reason = "Select"
	ReasonTarget        Reason = "NoteTarget"
	ReasonWithdraw      Reason = "Withdraw"
	ReasonExchange      Reason = "ExchangeClass"

	// The answers to a rollback request, in the established spelling.
	ReasonRollbackDone              Reason = "DeploymentRollback"
	ReasonRollbackRevisionNotFound  Reason = "DeploymentRollbackRevisionNotFound"
	ReasonRollbackTemplateUnchanged Reason = "DeploymentRollbackTemplateUnchanged"
	// ReasonRollbackInvalid: with that template the deployment could not be
	// acted upon.
	ReasonRollbackInvalid Reason = "DeploymentRollbackInvalid"
)

// Why is the reason of one decision with what it was seen in. Values are
// comparable; making one allocates nothing.
type Why struct {
	Reason Reason
	Name   string        // what the sentence is about: a set, a field, an intention
	Detail string        // an answer or a problem, quoted
	Code   codes.Code    // of a refusal
	For    time.Duration // a wait
	From   int32         // a set's size so far
	To     int32         // a set's size from now on
	Count  int32         // machines available, or sets
	Of     int32         // machines wanted, or sets kept
	// Revision of a set.
	Revision int64
	// Rollout is why a set is resized, or what a rollout waits for.
	Rollout rollout.Why
}

var sentences = map[Reason]string{
	ReasonSpecInvalid:   "{name} {detail}; waiting for a change",
	ReasonSelectsAll:    "{name} is empty and would select everything; waiting for a change",
	ReasonOver100:       "{name}: more than 100% ({detail})",
	ReasonBothZero:      "neither surge nor unavailable is allowed; taken as one machine unavailable",
	ReasonFinalizer:     "finalizer added, so that the record outlives the sets",
	ReasonReadLive:      "reading everything afresh before acting: {name}",
	ReasonAdopt:         "set {name} has no owner and is selected",
	ReasonRelease:       "set {name} is no longer selected",
	ReasonCreate:        "no set has the wanted template: creating {name}",
	ReasonSeen:          "set {name} appeared meanwhile; looking again in {for}",
	ReasonNameTaken:     "the name {name} is taken{detail}: trying the next one",
	ReasonNameFree:      "the name {name} was taken and is free by now; trying again in {for}",
	ReasonPush:          "set {name} gets the {detail} of the deployment; no machine is replaced for it",
	ReasonMark:          "the nodes of set {name} {detail}",
	ReasonSlack:         "set {name} is asked to replace {count} of its machines: it may make {to} more and miss {of}",
	ReasonNoSlack:       "set {name} has no machine to replace now",
	ReasonPreserveShare: "set {name} may keep {to} failed machines for inspection, {from} before; {of} in all sets",
	ReasonPauseCopied:   "set {name} is paused by a copy of the deployment's annotation, which means nothing: taken off",
	ReasonForget:        "set {name} has no surplus left: {count} chosen by a scaler need not go any more",
	ReasonTidied:        "annotation {name}: {count} of {of} names are of no use any more and go",
	ReasonScale:         "set {name} from {from} to {to}: {rollout}",
	ReasonRepair:        "set {name} has size {from}, which means nothing; set to the {to} machines it has",
	ReasonStatus:        "status changed; machines available: {count}, wanted: {of}",
	ReasonThrottled:     "status changed again; to be written in {for}",
	ReasonGathering:     "orders wait for others to join them; to be given in {for}",
	ReasonRollout:       "{rollout}{detail}",
	ReasonOrderRefused:  "an order was refused: {code}: {detail}; trying again in {for}",
	ReasonNotOurs:       "being deleted without our finalizer: nothing is touched",
	ReasonDelete:        "the deployment is being deleted, and set {name} with it",
	ReasonLeaving:       "being deleted without its sets: waiting until they have no owner any more",
	ReasonGoing:         "being deleted; waiting for {count} {sets} to go{detail}",
	ReasonReleased:      "no set is left: letting the record go",
	ReasonPaused:        "paused: {rollout}{detail}",
	ReasonFrozen:        "frozen: no set is created, and none grows: {rollout}{detail}",
	ReasonRevision:      "set {name} has the wanted template: it is revision {revision} from now on",
	ReasonRecord:        "revision {revision} is being rolled out, by set {name}",
	ReasonClose:         "set {name} creates no machines while its machines are updated in place",
	ReasonOpen:          "set {name} may create machines again",
	ReasonMoveTo:        "set {name} from {from} to {to}: {detail} moving here, updated",
	ReasonMoveFrom:      "set {name} from {from} to {to}: {detail} moving away, updated",
	ReasonMoveBack:      "set {name} from {from} to {to}: the set that {detail} moving to is gone",
	ReasonMoveDone:      "set {name}: {detail} moved, or gone",
	ReasonMoveOff:       "set {name} from {from} to {to}: {detail} gone, before it left the set it was in",
	ReasonMove:          "machine {name} is updated and moves to set {detail}",
	ReasonCandidate:     "machine {name} is to be updated in place",
	ReasonSelect:        "machine {name} is to be updated in place now: {rollout}",
	ReasonTarget:        "machine {name} was selected, for the template of set {detail}",
	ReasonWithdraw:      "machine {name} is not to be updated in place: {detail}",
	ReasonExchange:      "set {name} gets class {detail}, to which its VMs can be updated: revision {revision}, and no machine is replaced for it",
	ReasonPrune:         "set {name} of revision {revision} is empty, and no more than {of} old {sets} may stay: deleting it",

	ReasonRollbackDone:              "rolled back to revision {revision}, the template of set {name}",
	ReasonRollbackRevisionNotFound:  "not rolled back: no set has {detail}",
	ReasonRollbackTemplateUnchanged: "not rolled back: revision {revision}, set {name}, has the template that is wanted already",
	ReasonRollbackInvalid:           "not rolled back to revision {revision}, set {name}: {detail}",
}

// String is the sentence a person can act on.
func (w Why) String() string {
	sentence, ok := sentences[w.Reason]
	if !ok {
		return string(w.Reason)
	}
	sets := "sets"
	if w.Count == 1 || w.Reason == ReasonPrune && w.Of == 1 {
		sets = "set"
	}
	return object.Sentence(sentence, "name", w.Name, "detail", w.Detail, "code", w.Code.Contract(),
		"for", w.For.Round(time.Millisecond).String(),
		"from", decimal(w.From), "to", decimal(w.To), "count", decimal(w.Count), "of", decimal(w.Of),
		"sets", sets, "revision", strconv.FormatInt(w.Revision, 10), "rollout", w.Rollout.String())
}

func decimal(n int32) string { return strconv.FormatInt(int64(n), 10) }
