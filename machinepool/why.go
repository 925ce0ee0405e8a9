package machinepool

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// Reason is the kind of a decision, one word for programs.
type Reason string

// The reasons of decisions about one pool.
const (
	ReasonSpecInvalid      Reason = "SpecInvalid"
	ReasonFrozen           Reason = "Frozen"
	ReasonFinalizer        Reason = "FinalizerAdded"
	ReasonInstances        Reason = "InstancesNoted"
	ReasonFollows          Reason = "ReplicasFollow"
	ReasonStatus           Reason = "StatusChanged"
	ReasonDone             Reason = "CallDone"
	ReasonCallFailed       Reason = "CallFailed"
	ReasonRetryAt          Reason = "RetryLater"
	ReasonFence            Reason = "Announced"
	ReasonReadPool         Reason = "ReadLive"
	ReasonTakesEffect      Reason = "TakesEffect"
	ReasonNoClass          Reason = "NoClass"
	ReasonClassMissing     Reason = "ClassMissing"
	ReasonAsk              Reason = "AskGroup"
	ReasonNoBootstrap      Reason = "NoBootstrapData"
	ReasonBootstrapMissing Reason = "BootstrapDataMissing"
	ReasonRenew            Reason = "RenewToken"
	ReasonCreate           Reason = "Create"
	ReasonGroupGone        Reason = "GroupGone"
	ReasonUpdate           Reason = "Update"
	ReasonScale            Reason = "Scale"
	ReasonLeaving          Reason = "LeavingChosen"
	ReasonLeft             Reason = "NoneLeaving"
	ReasonKeep             Reason = "Keep"
	ReasonKeepFailed       Reason = "KeepFailed"
	ReasonDrain            Reason = "Drain"
	ReasonDraining         Reason = "Draining"
	ReasonDismiss          Reason = "Dismiss"
	ReasonRunning          Reason = "Running"
	ReasonWaiting          Reason = "Waiting"
	ReasonGroupNotReady    Reason = "GroupNotReady"
	ReasonFailed           Reason = "Failed"
	ReasonNotOurs          Reason = "NotOurs"
	ReasonDeleting         Reason = "Deleting"
	ReasonClassGone        Reason = "ClassGone"
	ReasonDelete           Reason = "Delete"
	ReasonReleased         Reason = "Released"
)

// Why says why a plan is as it is. It is comparable, and made without
// allocating; String makes the sentence.
type Why struct {
	Reason    Reason
	Name      string // of what it is about
	Detail    string
	Code      codes.Code
	Count, Of int32
	For       time.Duration
}

var sentences = map[Reason]string{
	ReasonSpecInvalid:      "{name} {detail}",
	ReasonFrozen:           "the fleet is frozen: nothing is done",
	ReasonFinalizer:        "taking the pool on: our finalizer first",
	ReasonInstances:        "noting the {count} instances of the group; wanted are {of}",
	ReasonFollows:          "the provider owns the size: {of} are wanted by now, {count} instances are there",
	ReasonStatus:           "{name}: {count} of {of} nodes are ready",
	ReasonDone:             "{name} is done",
	ReasonCallFailed:       "{name} failed: {code}: {detail}",
	ReasonRetryAt:          "{name} failed: {code}: {detail}; tried again in {for}",
	ReasonFence:            "making sure that this record is not an old one before {name}",
	ReasonReadPool:         "making sure that this record is not an old one before anything is touched",
	ReasonTakesEffect:      "looking in {for} what has come of it",
	ReasonNoClass:          "no class is named yet",
	ReasonClassMissing:     "class {name} does not exist yet",
	ReasonAsk:              "asking the provider how the group stands",
	ReasonNoBootstrap:      "the name of the bootstrap data is not set yet",
	ReasonBootstrapMissing: "bootstrap data {name} are not ready yet",
	ReasonRenew:            "the bootstrap token lapses in {for} and machines may need it: renewing it",
	ReasonCreate:           "making the group with {count} instances",
	ReasonGroupGone:        "group {name} is gone, though nobody deleted the pool: it is made again",
	ReasonUpdate:           "bringing the group to what the pool and its class {name} say",
	ReasonScale:            "the group is to have {of} instances, not {count}",
	ReasonLeaving:          "{count} of {of} instances leave, the last chosen {name}: {detail}",
	ReasonLeft:             "those that were to leave have left, or stay",
	ReasonKeep:             "{count} instances stay after all, the first {name}: their nodes are taken into service again",
	ReasonKeepFailed:       "node of instance {name} could not be taken into service again: {code}: {detail}",
	ReasonDrain:            "emptying the nodes of {count} instances, the first {name}",
	ReasonDraining:         "{count} instances are not empty yet, the first {name}: {detail}; {for} left for it",
	ReasonDismiss:          "{count} instances go, the first {name}: {detail}",
	ReasonRunning:          "{count} of {of} nodes are ready",
	ReasonWaiting:          "{count} of {of} nodes are ready: waiting for the others",
	ReasonGroupNotReady:    "waiting for the provider to get the group ready",
	ReasonFailed:           "{name}: {detail}",
	ReasonNotOurs:          "being deleted without our finalizer: nothing is touched",
	ReasonDeleting:         "deletion asked for while {name}",
	ReasonClassGone:        "class {name} is gone, and the provider can't be called without it",
	ReasonDelete:           "{name}: the pool is being deleted",
	ReasonReleased:         "group and bootstrap data are gone: letting the record go",
}

// String is the sentence a person can act on.
func (w Why) String() string {
	sentence, ok := sentences[w.Reason]
	if !ok {
		return string(w.Reason)
	}
	return object.Sentence(sentence, "name", quoteEmpty(w.Name), "detail", quoteEmpty(w.Detail), "code", w.Code.Contract(),
		"count", strconv.Itoa(int(w.Count)), "of", strconv.Itoa(int(w.Of)), "for", w.For.Round(time.Second).String())
}

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
