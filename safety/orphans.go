package safety

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// OrphanObservation is what a decision about orphan VMs is made from. Classes
// and Machines come from caches at the beginning of a pass; what a pass asks
// for is added to them.
type OrphanObservation struct {
	// Classes are all classes of the fleet. An entry without a name is passed
	// over, and so is the second one of a name.
	Classes []OrphanClass
	// Machines are the machines of all classes, also those being deleted.
	Machines []*machine.Machine
	// Groups says what is looked for: the groups of pools instead of VMs. Listing.VMs,
	// DeleteOrphan and all memories are about groups then, by group ID and by the
	// "namespace/name" of the pool each was made for, and Pools own them, not Machines.
	// Each kind is decided about by itself, with memories of its own.
	Groups bool
	// Pools are all pools, also those being deleted; read as Machines are. They count
	// with Groups only.
	Pools []*machinepool.Pool
	// Read says how Machines were read in this pass; zero also if a listing came in since.
	Read decision.Freshness
	// Owners is how many sets and deployments there are, read with Machines; with
	// Groups, machines count too. They need not be counted where there are machines, or
	// pools.
	Owners int
	// Began is when this process made its first pass: for one OrphanPeriod
	// it can't know what one before it has deleted. Zero: long ago.
	Began time.Time
	// Spent is the memory of the brake: OrphanPlan.Spent of the last plan.
	Spent []Spent
	// Sightings is the memory of this process: OrphanPlan.Sightings of the
	// last plan. Losing it costs time.
	Sightings []Sighting
	// NoCluster says that machines join no cluster: then VMs are missed, too, that
	// machines have and no listing.
	NoCluster bool
	// Unlisted is the memory of those: OrphanPlan.Unlisted of the last plan. Losing
	// it costs time.
	Unlisted []Unlisted
	// Tries is what this process remembers of deletes: the last failed one of
	// each VM. A later success, or the memory's loss, takes an entry away.
	Tries []Try
	// Hints say that a class is worth a look before its time.
	Hints []Hint
	// Deleted are the IDs of VMs whose deletion was ordered in this pass,
	// whatever was answered.
	Deleted map[string]bool
	// Frozen: nothing is listed or deleted.
	Frozen bool
}

// OrphanClass is a class of machines and what was heard of its VMs.
type OrphanClass struct {
	Key object.Key
	// Asked is when its VMs were last asked for, by this process; zero: never.
	Asked time.Time
	// Code is how that was answered.
	Code codes.Code
	// Failures counts answers in a row that were failures; it only lengthens
	// waits.
	Failures int
	// Listed is how many VMs the last answer that was OK has named. A process
	// remembers it.
	Listed int
	// Listing is the answer given in this pass. Nil: it was not asked for.
	Listing *Listing
}

// Listing is the answer to ListMachines, or to ListPools.
type Listing struct {
	machine.Outcome
	Asked    time.Time // just before the call
	Answered time.Time // just after it
	// VMs are machine names by provider ID, empty ones among them.
	VMs map[string]string
}

// Hint is why a class is looked at before its time.
type Hint struct {
	Class object.Key
	At    time.Time
	// Several is the name of a machine for which GetMachineStatus, and no
	// other call, answered OUT_OF_RANGE at that time. Empty: a machine of the
	// class has disappeared.
	Several string
}

// Sighting is a VM that was seen to be nobody's.
type Sighting struct {
	Class      object.Key // that listed it
	ProviderID string
	Name       string // of the machine it was made for
	// Since is when the machines were read among which it had none.
	Since time.Time
}

// Try is a delete of an orphan that failed.
type Try struct {
	ProviderID string
	At         time.Time // of the answer
	Code       codes.Code
	Failures   int // in a row
}

// OrphanPlan is what to do next: List, or ReadMachines, or Delete; with none
// of them, look again at At.
type OrphanPlan struct {
	// List asks for the VMs of classes, in any order or at once. An answer
	// becomes OrphanClass.Listing, and Asked, Code and Failures follow it;
	// Live becomes zero.
	List []ListVMs
	// ReadMachines asks for a live read of all machines, of all namespaces
	// and classes; Live becomes the time just before it.
	ReadMachines bool
	// With Groups, ReadMachines asks for the pools, and Delete for a DeletePool of a
	// pool that is made up with the order's name and ID; just before it all pools are
	// read live, and StillOrphanGroup decides.
	//
	// Delete asks for the deletion of VMs, by a DeleteMachine through the
	// class, with a machine of the order's name and provider ID made up for
	// it. Just before each call the machines of that name are read live, and
	// the order is dropped if StillOrphan says so. Each order's ID goes into
	// Deleted; a failure goes into Tries, an answer OK or NOT_FOUND takes the
	// ID out of it and out of Sightings.
	Delete []DeleteOrphan
	// Sightings takes the place of the memory, with every plan.
	Sightings []Sighting
	// Unlisted takes the place of that memory, with every plan. Those that are
	// Missing go into the observations of their machines, as MissingVM.
	Unlisted []Unlisted
	// Spent takes the place of the brake's memory, with every plan. It holds
	// the orders of this one.
	Spent []Spent
	// Warn are things that somebody should know, in order, at most Burst.
	Warn []decision.Why
	// At is when to look again; zero with orders.
	At  time.Time
	Why decision.Why
}

// ListVMs is an order to ask for the VMs of a class.
type ListVMs struct {
	Class object.Key
	Why   decision.Why
}

// DeleteOrphan is an order to delete one VM.
type DeleteOrphan struct {
	Class      object.Key
	ProviderID string // never empty
	Name       string // of the machine it was made for, never empty
	// Several: the machine has several VMs, see Hint.
	Several bool
	Why     decision.Why

	paused string // Keys.Paused of the policy
}

// StillOrphan tells whether the order still holds, seeing a machine as it is
// now: one of the order's name, or any other. Nil: there is none, and it holds.
func (o *DeleteOrphan) StillOrphan(m *machine.Machine) bool {
	if m == nil {
		return true
	}
	if m.Spec.ProviderID == o.ProviderID {
		return false
	}
	return m.Name != o.Name || verdictOn(m, o.Several, o.paused) != inFlight
}

// StillOrphanGroup reports whether an order about a group still holds, seeing a pool
// as it is now. A pool keeps the group that it has recorded, and every group of its
// name, one that it may be about to make or adopt. Nil: there is none, and it holds.
func (o *DeleteOrphan) StillOrphanGroup(p *machinepool.Pool) bool {
	return p == nil || p.Key.String() != o.Name && p.Status.GroupID != o.ProviderID
}
