package safety

import "github.com/millwright-go/millwright/decision"

// The reasons of decisions about orphan VMs.
var (
	reasonFrozen       = decision.NewReason("Frozen", "frozen: nothing is judged")
	reasonList         = decision.NewReason("ListVMs", "asking for the VMs of class {name}")
	reasonReadMachines = decision.NewReason("ReadMachines", "{have} VMs seem to be nobody's: reading all machines live")
	reasonOrphan       = decision.NewReason("OrphanVM", "VM {name} was made for machine {detail}, which is gone")
	reasonExtra        = decision.NewReason("ExtraVM", "VM {name} carries the name of machine {detail}, whose VM is another one")
	reasonSeveral      = decision.NewReason("SeveralVMs", "VM {name} is one of several of machine {detail}, and not the recorded one")
	reasonSecondLook   = decision.NewReason("SecondLook", "{have} VMs are nobody's: looking again in {for} before any is deleted")
	ReasonDeleteFailed = decision.NewReason("OrphanDeleteFailed", "{have} orphan VMs could not be deleted, the last one with {code}; trying again in {for}")
	reasonListFailed   = decision.NewReason("ListVMsFailed", "the VMs of class {name} could not be listed: {code}: {detail}")
	reasonNoID         = decision.NewReason("VMWithoutID", "class {name} lists a VM without provider ID, made for machine {detail}: it can't be deleted")
	reasonNoName       = decision.NewReason("VMWithoutName", "class {name} lists VM {detail} without the name of a machine: left alone")
	reasonOtherPrefix  = decision.NewReason("VMOfOthers", "VM {name} of machine {detail} is not of this fleet, by its name: left alone")
	reasonNoOrphans    = decision.NewReason("NoOrphans", "every VM that was listed is some machine's")
	reasonUnlisted     = decision.NewReason("OwnVMNotListed", "VM {name} carries the name of machine {detail}, whose own VM is not listed: it may be that one under another ID, and is left alone")
	reasonNoneListed   = decision.NewReason("NoVMListed", "class {name} lists no VM of its {have} machines: does it, or its secret, point to another account? They count as missing after {for}")
	reasonBraked       = decision.NewReason("TooManyOrphans", "{have} more VMs are nobody's and held back, since only {want} may go in {for}: if they are in use, stop this "+
		"manager and see whether it has the right store; if not, they go little by little")
	reasonEmptyStore = decision.NewReason("StoreIsEmpty", "{have} VMs are no machine's, but the store holds no machine, set or deployment: none is deleted; "+
		"if the store is the right one, set OrphansOfEmptyStore in the policy")
)

// The reasons of decisions about overshoot.
var (
	ReasonFreeze       = decision.NewReason("Overshoot", "{name} has {have} machines, and {want} or more freeze it")
	reasonFollowFreeze = decision.NewReason("FrozenWithDeployment", "{name} freezes with its deployment")
	ReasonThaw         = decision.NewReason("OvershootOver", "no set has more than {want} machines any more: thawed")
	reasonFollowThaw   = decision.NewReason("ThawedWithDeployment", "{name} thaws with its deployment")
	ReasonUnfreeze     = decision.NewReason("UnfrozenByUser", "{name} has {have} machines, and {want} or more freeze it, but an annotation forbids that")
	ReasonUnfreezeDone = decision.NewReason("UnfreezeDone", "the overshoot of {name} is over: the annotation that kept it from freezing goes")
	reasonCondition    = decision.NewReason("FrozenCondition", "telling in the status of {name} whether it is frozen")
	reasonInBounds     = decision.NewReason("InBounds", "the largest set has {have} machines; {want} would freeze it")
	reasonScalingDown  = decision.NewReason("ScalingDown", "the largest set has {have} machines, ordered before its size went down; {want} would freeze it if one was new")
	reasonStayFrozen   = decision.NewReason("StaysFrozen", "frozen: the largest set has {have} machines; at {want} or less it thaws")
	reasonNotWatched   = decision.NewReason("NotWatched", "being deleted, or overshoot is not watched: nothing to freeze")
)

// The reasons of decisions about reachability.
var (
	reasonCheck       = decision.NewReason("Check", "checking that the API servers answer")
	reasonUnproven    = decision.NewReason("NotAnsweredYet", "frozen until both API servers have answered: {detail}")
	ReasonReachable   = decision.NewReason("Reachable", "both API servers answer")
	reasonDown        = decision.NewReason("Down", "{name} does not answer, {code}: {detail}; the fleet freezes in {for}")
	ReasonUnreachable = decision.NewReason("Unreachable", "frozen: {name} has not answered for {for}: {code}: {detail}")
	reasonBack        = decision.NewReason("Back", "both API servers answer again: looking for clocks to restart")
	ReasonRestart     = decision.NewReason("ClockRestarted", "clocks restarted: nothing could be judged until now")
	reasonSettling    = decision.NewReason("Settling", "both API servers answer again; frozen for another {for}, so that nodes can say how they are")
)

// The reasons of decisions about the replacement budget.
var (
	reasonReadFleet   = decision.NewReason("ReadFleet", "reading the fleet live before machine {name} is given up")
	ReasonTakeSlot    = decision.NewReason("SlotTaken", "taking a slot for machine {name}: {have} of at most {want} in replacement with it")
	reasonGranted     = decision.NewReason("Granted", "machine {name} may be given up: {have} of at most {want} in replacement with it")
	reasonBudgetSpent = decision.NewReason("BudgetSpent", "machines in replacement: {have} of at most {want}")
	reasonZoneFails   = decision.NewReason("ZoneFails", "{have} of {want} machines in zone {detail} are Unknown: it is the zone that fails")
	reasonNotAsking   = decision.NewReason("NotAsking", "machine {name} is not one to be given up for its health")
	reasonSlotLost    = decision.NewReason("SlotLost", "the slot that was written for machine {name} is not there")
)

// The reasons of decisions about nodes.
var (
	reasonReadOwners = decision.NewReason("ReadOwners", "{have} nodes seem to need a change: reading all machines live")
	reasonNotManaged = decision.NewReason("NotManaged", "no machine owns node {name}, which is older than {for}")
	reasonManaged    = decision.NewReason("ManagedAgain", "node {name} has an owner, {detail}")
	reasonTwoOwners  = decision.NewReason("SeveralMachines", "node {name} is claimed by several machines, {detail} among them: left alone")
	reasonNodesDone  = decision.NewReason("NodesLookedThrough", "nodes looked through; {have} without a machine are too young to tell")
)

// The reasons of decisions about machines and sets whose owner is gone.
var (
	reasonReadAll        = decision.NewReason("ReadAll", "{have} machines or sets seem to have lost their owner: reading all live")
	reasonSetGone        = decision.NewReason("SetGone", "machine {name} belongs to set {detail}, which is gone")
	reasonDeploymentGone = decision.NewReason("DeploymentGone", "set {name} belongs to deployment {detail}, which is gone")
	reasonOwnerSecond    = decision.NewReason("SecondLookForOwner", "{have} machines or sets have lost their owner: looking again in {for} before any is deleted")
	reasonOwnersBraked   = decision.NewReason("TooManyOwnerless", "{have} more machines or sets whose owner is gone are held back, since only {want} may go in {for}: if they are in "+
		"use, stop this manager and see whether it reads all sets and deployments; if not, they go little by little")
	reasonAllOwned = decision.NewReason("AllOwned", "every machine and every set has its owner, or needs none")
)

// The reasons of decisions about groups whose pool is gone.
var (
	reasonListGroups        = decision.NewReason("ListGroups", "asking for the groups of class {name}")
	reasonReadPools         = decision.NewReason("ReadPools", "{have} groups seem to be of no pool: reading all pools live")
	reasonOrphanGroup       = decision.NewReason("OrphanGroup", "group {name} was made for pool {detail}, which is gone")
	reasonGroupSecondLook   = decision.NewReason("SecondLookAtGroups", "{have} groups are of no pool: looking again in {for} before any is deleted")
	ReasonGroupDeleteFailed = decision.NewReason("OrphanGroupDeleteFailed", "{have} orphan groups are not deleted yet, the last answer was {code}; trying again in {for}")
	reasonListGroupsFailed  = decision.NewReason("ListGroupsFailed", "the groups of class {name} could not be listed: {code}: {detail}")
	reasonGroupNoID         = decision.NewReason("GroupWithoutID", "class {name} lists a group without ID, made for pool {detail}: it can't be deleted")
	reasonGroupNoName       = decision.NewReason("GroupWithoutName", "class {name} lists group {detail} without the name of a pool: left alone")
	reasonGroupOfOthers     = decision.NewReason("GroupOfOthers", "group {name} of pool {detail} is not of this fleet, by its name: left alone")
	reasonNoOrphanGroups    = decision.NewReason("NoOrphanGroups", "every group that was listed is some pool's")
	reasonGroupsBraked      = decision.NewReason("TooManyOrphanGroups", "{have} more groups are of no pool and held back, since only {want} may go in {for}: if they are in use, stop this "+
		"manager and see whether it has the right store; if not, they go little by little")
	reasonNoPoolInStore = decision.NewReason("StoreIsEmptyForGroups", "{have} groups are of no pool, but the store holds no pool, machine, set or deployment: none is deleted; "+
		"if the store is the right one, set OrphansOfEmptyStore in the policy")
)
