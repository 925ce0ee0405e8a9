package safety

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// Reason is the kind of a decision, one word for programs.
type Reason string

// The reasons of decisions about orphan VMs.
const (
	ReasonFrozen       Reason = "Frozen"
	ReasonList         Reason = "ListVMs"
	ReasonReadMachines Reason = "ReadMachines"
	ReasonOrphan       Reason = "OrphanVM"
	ReasonExtra        Reason = "ExtraVM"
	ReasonSeveral      Reason = "SeveralVMs"
	ReasonSecondLook   Reason = "SecondLook"
	ReasonDeleteFailed Reason = "OrphanDeleteFailed"
	ReasonListFailed   Reason = "ListVMsFailed"
	ReasonNoID         Reason = "VMWithoutID"
	ReasonNoName       Reason = "VMWithoutName"
	ReasonOtherPrefix  Reason = "VMOfOthers"
	ReasonNoOrphans    Reason = "NoOrphans"
	ReasonUnlisted     Reason = "OwnVMNotListed"
	ReasonNoneListed   Reason = "NoVMListed"
	ReasonBraked       Reason = "TooManyOrphans"
	ReasonEmptyStore   Reason = "StoreIsEmpty"
)

// The reasons of decisions about overshoot.
const (
	ReasonFreeze       Reason = "Overshoot"
	ReasonFollowFreeze Reason = "FrozenWithDeployment"
	ReasonThaw         Reason = "OvershootOver"
	ReasonFollowThaw   Reason = "ThawedWithDeployment"
	ReasonUnfreeze     Reason = "UnfrozenByUser"
	ReasonUnfreezeDone Reason = "UnfreezeDone"
	ReasonCondition    Reason = "FrozenCondition"
	ReasonInBounds     Reason = "InBounds"
	ReasonScalingDown  Reason = "ScalingDown"
	ReasonStayFrozen   Reason = "StaysFrozen"
	ReasonNotWatched   Reason = "NotWatched"
)

// The reasons of decisions about reachability.
const (
	ReasonCheck       Reason = "Check"
	ReasonUnproven    Reason = "NotAnsweredYet"
	ReasonReachable   Reason = "Reachable"
	ReasonDown        Reason = "Down"
	ReasonUnreachable Reason = "Unreachable"
	ReasonBack        Reason = "Back"
	ReasonRestart     Reason = "ClockRestarted"
	ReasonSettling    Reason = "Settling"
)

// The reasons of decisions about the replacement budget.
const (
	ReasonReadFleet   Reason = "ReadFleet"
	ReasonTakeSlot    Reason = "SlotTaken"
	ReasonGranted     Reason = "Granted"
	ReasonBudgetSpent Reason = "BudgetSpent"
	ReasonZoneFails   Reason = "ZoneFails"
	ReasonNotAsking   Reason = "NotAsking"
	ReasonSlotLost    Reason = "SlotLost"
)

// The reasons of decisions about nodes.
const (
	ReasonReadOwners Reason = "ReadOwners"
	ReasonNotManaged Reason = "NotManaged"
	ReasonManaged    Reason = "ManagedAgain"
	ReasonTwoOwners  Reason = "SeveralMachines"
	ReasonNodesDone  Reason = "NodesLookedThrough"
)

// The reasons of decisions about machines and sets whose owner is gone.
const (
	ReasonReadAll        Reason = "ReadAll"
	ReasonSetGone        Reason = "SetGone"
	ReasonDeploymentGone Reason = "DeploymentGone"
	ReasonOwnerSecond    Reason = "SecondLookForOwner"
	ReasonOwnersBraked   Reason = "TooManyOwnerless"
	ReasonAllOwned       Reason = "AllOwned"
)

// Why is the reason of one decision with what it was seen in. Values are
// comparable; making one allocates nothing.
type Why struct {
	Reason Reason
	Name   string        // what the sentence is about: a VM, a set, a machine, a node
	Detail string        // a name or an answer, quoted
	Code   codes.Code    // of a failure
	Have   int64         // machines there are, or orders there are to give
	Want   int64         // machines there should be, or a limit
	For    time.Duration // a limit or a wait
}

var sentences = map[Reason]string{
	ReasonFrozen:       "frozen: nothing is judged",
	ReasonList:         "asking for the VMs of class {name}",
	ReasonReadMachines: "{have} VMs seem to be nobody's: reading all machines live",
	ReasonOrphan:       "VM {name} was made for machine {detail}, which is gone",
	ReasonExtra:        "VM {name} carries the name of machine {detail}, whose VM is another one",
	ReasonSeveral:      "VM {name} is one of several of machine {detail}, and not the recorded one",
	ReasonSecondLook:   "{have} VMs are nobody's: looking again in {for} before any is deleted",
	ReasonDeleteFailed: "{have} orphan VMs could not be deleted, the last one with {code}; trying again in {for}",
	ReasonListFailed:   "the VMs of class {name} could not be listed: {code}: {detail}",
	ReasonNoID:         "class {name} lists a VM without provider ID, made for machine {detail}: it can't be deleted",
	ReasonNoName:       "class {name} lists VM {detail} without the name of a machine: left alone",
	ReasonOtherPrefix:  "VM {name} of machine {detail} is not of this fleet, by its name: left alone",
	ReasonUnlisted:     "VM {name} carries the name of machine {detail}, whose own VM is not listed: it may be that one under another ID, and is left alone",
	ReasonNoneListed:   "class {name} lists no VM of its {have} machines: does it, or its secret, point to another account? They count as missing after {for}",
	ReasonNoOrphans:    "every VM that was listed is some machine's",

	ReasonBraked: "{have} more VMs are nobody's and held back, since only {want} may go in {for}: if they are in use, stop this " +
		"manager and see whether it has the right store; if not, they go little by little",
	ReasonEmptyStore: "{have} VMs are no machine's, but the store holds no machine, set or deployment: none is deleted; " +
		"if the store is the right one, set OrphansOfEmptyStore in the policy",

	ReasonListGroups:        "asking for the groups of class {name}",
	ReasonReadPools:         "{have} groups seem to be of no pool: reading all pools live",
	ReasonOrphanGroup:       "group {name} was made for pool {detail}, which is gone",
	ReasonGroupSecondLook:   "{have} groups are of no pool: looking again in {for} before any is deleted",
	ReasonGroupDeleteFailed: "{have} orphan groups are not deleted yet, the last answer was {code}; trying again in {for}",
	ReasonListGroupsFailed:  "the groups of class {name} could not be listed: {code}: {detail}",
	ReasonGroupNoID:         "class {name} lists a group without ID, made for pool {detail}: it can't be deleted",
	ReasonGroupNoName:       "class {name} lists group {detail} without the name of a pool: left alone",
	ReasonGroupOfOthers:     "group {name} of pool {detail} is not of this fleet, by its name: left alone",
	ReasonNoOrphanGroups:    "every group that was listed is some pool's",
	ReasonGroupsBraked: "{have} more groups are of no pool and held back, since only {want} may go in {for}: if they are in use, stop this " +
		"manager and see whether it has the right store; if not, they go little by little",
	ReasonNoPoolInStore: "{have} groups are of no pool, but the store holds no pool, machine, set or deployment: none is deleted; " +
		"if the store is the right one, set OrphansOfEmptyStore in the policy",

	ReasonFreeze:       "{name} has {have} machines, and {want} or more freeze it",
	ReasonFollowFreeze: "{name} freezes with its deployment",
	ReasonThaw:         "no set has more than {want} machines any more: thawed",
	ReasonFollowThaw:   "{name} thaws with its deployment",
	ReasonUnfreeze:     "{name} has {have} machines, and {want} or more freeze it, but an annotation forbids that",
	ReasonUnfreezeDone: "the overshoot of {name} is over: the annotation that kept it from freezing goes",
	ReasonCondition:    "telling in the status of {name} whether it is frozen",
	ReasonInBounds:     "the largest set has {have} machines; {want} would freeze it",
	ReasonScalingDown:  "the largest set has {have} machines, ordered before its size went down; {want} would freeze it if one was new",
	ReasonNotWatched:   "being deleted, or overshoot is not watched: nothing to freeze",
	ReasonStayFrozen:   "frozen: the largest set has {have} machines; at {want} or less it thaws",

	ReasonCheck:       "checking that the API servers answer",
	ReasonUnproven:    "frozen until both API servers have answered: {detail}",
	ReasonReachable:   "both API servers answer",
	ReasonDown:        "{name} does not answer, {code}: {detail}; the fleet freezes in {for}",
	ReasonUnreachable: "frozen: {name} has not answered for {for}: {code}: {detail}",
	ReasonBack:        "both API servers answer again: looking for clocks to restart",
	ReasonRestart:     "clocks restarted: nothing could be judged until now",
	ReasonSettling:    "both API servers answer again; frozen for another {for}, so that nodes can say how they are",

	ReasonReadFleet:   "reading the fleet live before machine {name} is given up",
	ReasonTakeSlot:    "taking a slot for machine {name}: {have} of at most {want} in replacement with it",
	ReasonGranted:     "machine {name} may be given up: {have} of at most {want} in replacement with it",
	ReasonBudgetSpent: "machines in replacement: {have} of at most {want}",
	ReasonZoneFails:   "{have} of {want} machines in zone {detail} are Unknown: it is the zone that fails",
	ReasonSlotLost:    "the slot that was written for machine {name} is not there",
	ReasonNotAsking:   "machine {name} is not one to be given up for its health",

	ReasonReadOwners:     "{have} nodes seem to need a change: reading all machines live",
	ReasonNotManaged:     "no machine owns node {name}, which is older than {for}",
	ReasonManaged:        "node {name} has an owner, {detail}",
	ReasonTwoOwners:      "node {name} is claimed by several machines, {detail} among them: left alone",
	ReasonReadAll:        "{have} machines or sets seem to have lost their owner: reading all live",
	ReasonSetGone:        "machine {name} belongs to set {detail}, which is gone",
	ReasonDeploymentGone: "set {name} belongs to deployment {detail}, which is gone",
	ReasonOwnerSecond:    "{have} machines or sets have lost their owner: looking again in {for} before any is deleted",
	ReasonOwnersBraked: "{have} more machines or sets whose owner is gone are held back, since only {want} may go in {for}: if they are in " +
		"use, stop this manager and see whether it reads all sets and deployments; if not, they go little by little",
	ReasonAllOwned: "every machine and every set has its owner, or needs none",

	ReasonNodesDone: "nodes looked through; {have} without a machine are too young to tell",
}

// String is the sentence a person can act on.
func (w Why) String() string {
	sentence, ok := sentences[w.Reason]
	if !ok {
		return string(w.Reason)
	}
	return object.Sentence(sentence, "name", quoteEmpty(w.Name), "detail", quoteEmpty(w.Detail),
		"code", w.Code.Contract(), "have", strconv.FormatInt(w.Have, 10), "want", strconv.FormatInt(w.Want, 10),
		"for", w.For.Round(time.Second).String())
}

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
