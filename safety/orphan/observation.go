package orphan

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// Observation is the input of a decision about orphan VMs. Classes and Machines come from
// caches at the beginning of a pass. The caller adds what the plans of the pass ask for.
type Observation struct {
	// Classes are all classes of the fleet. Entries without a name, and second entries of a name,
	// are ignored.
	Classes []Class
	// Machines are the machines of all classes, also those being deleted.
	Machines []*machine.Machine
	// Groups selects what is searched for: groups of pools instead of VMs. Listing.VMs, Delete and all
	// memories are then about groups: the ID is the group's, the name is the "namespace/name" of the pool
	// that it was created for, and Pools are the owners instead of Machines. VMs and groups are decided
	// separately, with separate memories.
	Groups bool
	// Pools are all pools, also those being deleted; read as Machines are. They count only if
	// Groups is set.
	Pools []*machinepool.Pool
	// Instances are the provider IDs of instances whose owner is not a machine, such as those of a
	// pool. A VM with such an ID, in any spelling (object.Alike), is left alone. Nil: there are none.
	Instances map[string]bool
	// Read says how Machines were read in this pass. It is zero if a listing was made since.
	Read decision.Freshness
	// Owners is how many sets and deployments there are, read with Machines; with Groups, the number of
	// machines is added. It only serves to show that the store is the right one: it may be left zero
	// if there are machines or, with Groups, pools.
	Owners int
	// Began is when this process made its first pass. For one OrphanPeriod after that it can't know
	// what an earlier process deleted. Zero: long ago.
	Began time.Time
	// Spent is the brake's memory: Plan.Spent of the last plan. If it is lost, the brake begins again.
	Spent []safety.Spent
	// Candidates is the memory of this process: Plan.Candidates of the last plan. Losing it costs
	// time.
	Candidates []Candidate
	// NoCluster: machines join no cluster. Then the listings are also used to find machines whose VMs
	// are gone. A class with machines that work is listed every VMPeriod. Machines must be filled in, from
	// caches, at the beginning of a pass.
	NoCluster bool
	// LookOnly: VMs are listed only to find machines whose VMs are gone. Machines may be a part of the
	// fleet's. No VM counts as an orphan. Classes without working machines among Machines are not listed.
	LookOnly bool
	// Unlisted is the memory of machines whose VMs listings lack: Plan.Unlisted of the last plan. Losing it
	// costs time.
	Unlisted []Unlisted
	// Unhealthy is the memory of machines with unhealthy VMs: Plan.Unhealthy of the last plan. Losing it
	// costs time.
	Unhealthy []Unhealthy
	// Sighted is the memory of VMs that a listing has named shortly after their machines became available:
	// Plan.Sighted of the last plan. Losing it costs time.
	Sighted []string
	// Tries are this process's failed or delayed deletes of orphans, the last one for each VM. A later
	// success removes the entry. Losing them shortens waits.
	Tries []Try
	// Hints ask for an early listing of a class.
	Hints []Hint
	// Deleted are the IDs of VMs whose deletion was ordered in this pass, whatever the answer.
	Deleted map[string]bool
	// Frozen: nothing is listed or deleted.
	Frozen bool
}

// Class is a class of machines, and the answers of the provider about its VMs.
type Class struct {
	Key object.Key
	// Asked is when this process last asked for its VMs. Zero: never.
	Asked time.Time
	// Code is the code of that answer.
	Code codes.Code
	// Failures counts failed answers in a row. It only lengthens waits.
	Failures int
	// NotBefore is when the class may be listed again at the earliest, if the provider limits the rate of
	// calls. Zero: at any time.
	NotBefore time.Time
	// Listed is how many VMs the last OK answer named. The process keeps it between passes.
	Listed int
	// Blind: the last OK answer named VMs without an owner, and none of the VMs of the class's available
	// machines. Plan.Blind says so; the process keeps it between passes.
	Blind bool
	// Listing is the answer of this pass. Nil: there is none.
	Listing *Listing
}

// Listing is the answer to ListMachines, or to ListPools.
type Listing struct {
	machine.Outcome
	Asked    time.Time // just before the call
	Answered time.Time // just after it
	// VMs has the name of each VM's machine, by provider ID. Names and IDs may be empty.
	VMs map[string]string
	// Unhealthy are the IDs of VMs that exist and do not work. Nil: there are none, or they are not known.
	Unhealthy map[string]bool
}

// Hint is why a class is listed early.
type Hint struct {
	Class object.Key
	At    time.Time
	// Several is the name of a machine for which GetMachineStatus answered OUT_OF_RANGE at that time:
	// the machine has several VMs. Empty: a machine of the class has disappeared.
	Several string
}

// Candidate is a VM that was found without an owner at least once.
type Candidate struct {
	Class      object.Key // the class whose listing had it
	ProviderID string
	Name       string // of the machine that it was created for
	// Since is when the live read of machines began that did not show its owner.
	Since time.Time
}

// Try is a delete of an orphan that failed.
type Try struct {
	ProviderID string
	At         time.Time // of the answer
	Code       codes.Code
	Failures   int // in a row
	// NotBefore is when the delete may be tried again at the earliest, if the provider limits the rate of
	// calls. If nothing else went wrong, Failures is zero. Zero: at any time.
	NotBefore time.Time
}

// Plan is what to do next: List, or ReadMachines, or Delete. With none of them, decide again at At.
type Plan struct {
	// List asks for the VMs of classes, in any order or in parallel. An answer becomes
	// Class.Listing. It also sets Asked, Code and Failures; Read becomes zero.
	List []ListVMs
	// ReadMachines asks for a live read of all machines, of all namespaces and classes; Read says
	// when it began.
	ReadMachines bool
	// Delete asks for the deletion of VMs. Call DeleteMachine of the class, with a machine that has the
	// order's name and provider ID. Just before each call, read the machines with this name live, and
	// drop the order unless StillOrphan returns true. Add each order's ID to Deleted. Add a failure to
	// Tries. An answer OK or NOT_FOUND removes the ID from Tries and from Candidates.
	//
	// With Groups, ReadMachines asks for the pools, and Delete for a call of DeletePool, with a pool that
	// has the order's name and ID. Just before the call, read all pools live, and ask StillOrphanGroup.
	Delete []Delete
	// Candidates replaces Observation.Candidates, with every plan.
	Candidates []Candidate
	// Unlisted replaces Observation.Unlisted, with every plan. If Missing is set, tell the machine's own
	// decision, by MissingVM of its observation.
	Unlisted []Unlisted
	// Unhealthy replaces Observation.Unhealthy, with every plan. Tell the machines' own decisions, by
	// VMUnhealthy of their observations.
	Unhealthy []Unhealthy
	// Sighted replaces Observation.Sighted, with every plan. It is sorted.
	Sighted []string
	// Blind are the classes whose Blind is true from now on; for all others it is false.
	Blind []object.Key
	// Spent replaces Observation.Spent, with every plan. It includes the orders of this plan.
	Spent []safety.Spent
	// Warn are warnings for the operator, sorted, at most Burst.
	Warn []decision.Why
	// At is when to decide again. It is zero if there are orders.
	At  time.Time
	Why decision.Why
}

// ListVMs is an order to ask for the VMs of a class.
type ListVMs struct {
	Class object.Key
	Why   decision.Why
}

// Delete is an order to delete one VM.
type Delete struct {
	Class      object.Key
	ProviderID string // never empty
	Name       string // of the machine that it was created for, never empty
	// Several: the machine has several VMs, see Hint.
	Several bool
	Why     decision.Why

	paused string // Keys.Paused of the policy
}

// StillOrphan reports whether the order is still right, given a machine as it is now: one with the
// order's name, or any other. Nil: there is no machine, and the order is right.
func (o *Delete) StillOrphan(m *machine.Machine) bool {
	if m == nil {
		return true
	}
	if m.Spec.ProviderID == o.ProviderID || object.Alike(m.Spec.ProviderID, o.ProviderID) {
		return false
	}
	return m.Name != o.Name || verdictOn(m, o.Several, o.paused) != inFlight
}

// StillOrphanGroup reports whether an order about a group is still right, given a pool as it is now. A
// pool owns the group that it has recorded. It also owns every group with its name, because it may
// be about to create or adopt one. Nil: there is no pool, and the order is right.
func (o *Delete) StillOrphanGroup(p *machinepool.Pool) bool {
	if p == nil {
		return true
	}
	return p.Key.String() != o.Name && p.Status.GroupID != o.ProviderID && !object.Alike(p.Status.GroupID, o.ProviderID)
}

// The reasons of decisions about orphan VMs.
var (
	reasonFrozen       = decision.NewReason("Frozen", "frozen: nothing is judged")
	reasonList         = decision.NewReason("ListVMs", "listing the VMs of class {name}")
	reasonReadMachines = decision.NewReason("ReadMachines", "{have} VMs seem to have no machine: reading all machines live")
	reasonOrphan       = decision.NewReason("OrphanVM", "VM {name} was made for machine {detail}, which is gone")
	reasonExtra        = decision.NewReason("ExtraVM", "VM {name} carries the name of machine {detail}, which has another VM")
	reasonSeveral      = decision.NewReason("SeveralVMs", "VM {name} is one of several of machine {detail}, and not the recorded one")
	reasonSecondLook   = decision.NewReason("SecondLook", "{have} VMs have no machine: checking again in {for} before any is deleted")
	ReasonDeleteFailed = decision.NewReason("OrphanDeleteFailed", "{have} orphan VMs could not be deleted, the last one with {code}; next attempt in {for}")
	reasonListFailed   = decision.NewReason("ListVMsFailed", "the VMs of class {name} could not be listed: {code}: {detail}")
	reasonNoID         = decision.NewReason("VMWithoutID", "class {name} lists a VM without provider ID, made for machine {detail}: it can't be deleted")
	reasonNoName       = decision.NewReason("VMWithoutName", "class {name} lists VM {detail} without the name of a machine: left alone")
	reasonOtherPrefix  = decision.NewReason("VMOfOthers", "VM {name} of machine {detail} is not of this fleet, by its name: left alone")
	reasonNoOrphans    = decision.NewReason("NoOrphans", "every listed VM has a machine")
	reasonUnlisted     = decision.NewReason("OwnVMNotListed", "VM {name} carries the name of machine {detail}, whose own VM is not listed: it may be that one under another ID, and is left alone")
	reasonNoneListed   = decision.NewReason("NoVMListed", "class {name} lists no VM of its {have} machines: does it, or its secret, point to another account? They count as missing after {for}")
	// reasonNotListed: the VM of a machine is not in the last listing.
	reasonNotListed = decision.NewReason("VMNotListed", "machine {name}: its VM {detail} is missing from the list of its class; if that lasts {for}, the provider is asked for the VM")
	// reasonSpelled and reasonUnknownOnly: VMs may belong to a machine by another spelling.
	reasonSpelled = decision.NewReason("SpelledOtherwise", "class {name} lists {have} VMs whose ID or name is a machine's but for case, a prefix or a slash: they are left alone; "+
		"its driver must list the IDs and names that CreateMachine answers, else no orphan of these is found")
	reasonUnknownOnly = decision.NewReason("UnknownVMsOnly", "{have} VMs that class {name} lists have no machine and are left alone, because class {detail} lists none of its available machines: "+
		"does its driver list other IDs and names than CreateMachine answers, or does its secret point to another account?")
	reasonBraked = decision.NewReason("TooManyOrphans", "{have} more VMs have no machine and are not deleted yet, since only {want} may be deleted in {for}: if they are in use, stop this "+
		"manager and check that it has the right store; if not, they are deleted a few at a time")
	reasonEmptyStore = decision.NewReason("StoreIsEmpty", "{have} VMs have no machine, but the store holds no machine, set or deployment: none is deleted; "+
		"if the store is the right one, set OrphansOfEmptyStore in the policy")
)

// The reasons of decisions about groups whose pool is gone.
var (
	reasonListGroups        = decision.NewReason("ListGroups", "listing the groups of class {name}")
	reasonReadPools         = decision.NewReason("ReadPools", "{have} groups seem to have no pool: reading all pools live")
	reasonOrphanGroup       = decision.NewReason("OrphanGroup", "group {name} was made for pool {detail}, which is gone")
	reasonGroupSecondLook   = decision.NewReason("SecondLookAtGroups", "{have} groups have no pool: checking again in {for} before any is deleted")
	ReasonGroupDeleteFailed = decision.NewReason("OrphanGroupDeleteFailed", "{have} orphan groups are not deleted yet, the last answer was {code}; next attempt in {for}")
	reasonListGroupsFailed  = decision.NewReason("ListGroupsFailed", "the groups of class {name} could not be listed: {code}: {detail}")
	reasonGroupNoID         = decision.NewReason("GroupWithoutID", "class {name} lists a group without ID, made for pool {detail}: it can't be deleted")
	reasonGroupNoName       = decision.NewReason("GroupWithoutName", "class {name} lists group {detail} without the name of a pool: left alone")
	reasonGroupOfOthers     = decision.NewReason("GroupOfOthers", "group {name} of pool {detail} is not of this fleet, by its name: left alone")
	reasonNoOrphanGroups    = decision.NewReason("NoOrphanGroups", "every listed group has a pool")
	reasonGroupsBraked      = decision.NewReason("TooManyOrphanGroups", "{have} more groups have no pool and are not deleted yet, since only {want} may be deleted in {for}: if they are in use, stop this "+
		"manager and check that it has the right store; if not, they are deleted a few at a time")
	reasonGroupsSpelled = decision.NewReason("GroupsSpelledOtherwise", "class {name} lists {have} groups whose ID or name is a pool's but for case, a prefix or a slash: they are left alone; "+
		"its driver must list the IDs and names that CreatePool answers, else no orphan of these is found")
	reasonOtherGroupsOnly = decision.NewReason("OtherGroupsOnly", "{have} groups that class {name} lists have no pool and are left alone, because class {detail} lists none of its pools' groups: "+
		"does its driver list other IDs and names than CreatePool answers, or does its secret point to another account?")
	reasonNoPoolInStore = decision.NewReason("StoreIsEmptyForGroups", "{have} groups have no pool, but the store holds no pool, machine, set or deployment: none is deleted; "+
		"if the store is the right one, set OrphansOfEmptyStore in the policy")
)

// ofGroups maps reasons about VMs to those about groups.
var ofGroups = map[decision.Reason]decision.Reason{
	reasonList: reasonListGroups, reasonReadMachines: reasonReadPools, reasonSecondLook: reasonGroupSecondLook,
	ReasonDeleteFailed: ReasonGroupDeleteFailed, reasonListFailed: reasonListGroupsFailed, reasonNoID: reasonGroupNoID,
	reasonNoName: reasonGroupNoName, reasonOtherPrefix: reasonGroupOfOthers, reasonNoOrphans: reasonNoOrphanGroups,
	reasonBraked: reasonGroupsBraked, reasonEmptyStore: reasonNoPoolInStore,
	reasonSpelled: reasonGroupsSpelled, reasonUnknownOnly: reasonOtherGroupsOnly,
}

func aboutGroup(w *decision.Why) {
	if r, other := ofGroups[w.Reason]; other {
		w.Reason = r
	}
}

// aboutGroups changes a plan's reasons to those about groups.
func (p *Plan) aboutGroups() {
	aboutGroup(&p.Why)
	for i := range p.List {
		aboutGroup(&p.List[i].Why)
	}
	for i := range p.Warn {
		aboutGroup(&p.Warn[i])
	}
}
