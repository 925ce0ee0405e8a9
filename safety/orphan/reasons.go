package orphan

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
	// reasonNotListed tells of a machine whose VM is not in the last listing.
	reasonNotListed = decision.NewReason("VMNotListed", "machine {name}: the list of its class does not name its VM {detail}; once that has been so for {for}, the provider is asked for it")
	// reasonSpelled and reasonStrangersOnly tell of VMs that may be a machine's by another spelling.
	reasonSpelled = decision.NewReason("SpelledOtherwise", "class {name} lists {have} VMs whose ID or name is a machine's but for case, a prefix or a slash: they are left alone; "+
		"its driver must list the IDs and names that CreateMachine answers, else no orphan of these is found")
	reasonStrangersOnly = decision.NewReason("StrangersOnly", "{have} VMs that class {name} lists are no machine's and are left alone, because class {detail} lists none of its available machines: "+
		"does its driver list other IDs and names than CreateMachine answers, or does its secret point to another account?")
	reasonBraked = decision.NewReason("TooManyOrphans", "{have} more VMs are nobody's and held back, since only {want} may go in {for}: if they are in use, stop this "+
		"manager and see whether it has the right store; if not, they go little by little")
	reasonEmptyStore = decision.NewReason("StoreIsEmpty", "{have} VMs are no machine's, but the store holds no machine, set or deployment: none is deleted; "+
		"if the store is the right one, set OrphansOfEmptyStore in the policy")
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
	reasonGroupsSpelled = decision.NewReason("GroupsSpelledOtherwise", "class {name} lists {have} groups whose ID or name is a pool's but for case, a prefix or a slash: they are left alone; "+
		"its driver must list the IDs and names that CreatePool answers, else no orphan of these is found")
	reasonOtherGroupsOnly = decision.NewReason("OtherGroupsOnly", "{have} groups that class {name} lists are of no pool and are left alone, because class {detail} lists none of its pools' groups: "+
		"does its driver list other IDs and names than CreatePool answers, or does its secret point to another account?")
	reasonNoPoolInStore = decision.NewReason("StoreIsEmptyForGroups", "{have} groups are of no pool, but the store holds no pool, machine, set or deployment: none is deleted; "+
		"if the store is the right one, set OrphansOfEmptyStore in the policy")
)
