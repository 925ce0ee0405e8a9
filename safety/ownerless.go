package safety

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// OwnerlessObservation is what a decision about machines and sets whose owner is
// gone is made from. An API server collects them by itself; other stores do not,
// and a create that was on its way when its process died may come in after the
// owner went.
type OwnerlessObservation struct {
	// Machines, Sets and Deployments are all there are, of all namespaces: from
	// caches at the beginning of a pass, then as the plan asks for them. Those
	// that are owned are read before their owners: an owner is stored first.
	Machines    []*machine.Machine
	Sets        []*machineset.Set
	Deployments []*deployment.Deployment
	// NoDeployments says that deployments are somebody else's: no set is judged.
	NoDeployments bool
	// Read says how they were read in this pass.
	Read decision.Freshness
	// Looked is when this process last began a live read; zero: never.
	Looked time.Time
	// Sightings is the memory of this process: OwnerlessPlan.Sightings of the
	// last plan; Spent is the brake's. Losing them costs time.
	Sightings []Bereft
	Spent     []Spent
	// Began is when this process made its first pass; see OrphanObservation.
	Began time.Time
	// Ordered are the UIDs of what was ordered to go in this pass.
	Ordered map[string]bool
	// Frozen: nothing is judged.
	Frozen bool
}

// Bereft is a machine or set that was seen without its owner.
type Bereft struct {
	UID   string
	Owner string // the UID of the owner that is missing
	Since time.Time
}

// OwnerlessPlan is what to do next: Read, or Delete; with neither, look again at At.
type OwnerlessPlan struct {
	// Read asks for a live read of all machines, then all sets, then all
	// deployments. One that fails ends the pass: what could not be read is not
	// gone. Live and Looked become the time just before the first.
	Read bool
	// Delete asks for the deletion of machines and sets. Just before each the
	// object, and then what has its owner's name, are read live, and the order is
	// dropped if StillOwnerless says so. Each UID goes into Ordered. An error
	// ends the pass.
	Delete []DeleteOwnerless
	// Sightings and Spent take the place of the memory, with every plan.
	Sightings []Bereft
	Spent     []Spent
	// Warn are things that somebody should know, at most Burst.
	Warn []decision.Why
	// At is when to look again; zero with orders.
	At  time.Time
	Why decision.Why
}

// DeleteOwnerless is an order to delete one machine, or one set.
type DeleteOwnerless struct {
	Set   bool // it is a set
	Key   object.Key
	UID   string // never empty
	Owner object.Owner
	Why   decision.Why
}

// StillOwnerless tells whether the order still holds, seeing the object and what
// has its owner's name, as they are now. Nil: there is none.
func (o *DeleteOwnerless) StillOwnerless(child, owner *object.Meta) bool {
	if child == nil || child.UID != o.UID || child.Deleted() || child.Owner == nil || child.Owner.UID != o.Owner.UID {
		return false
	}
	return owner == nil || owner.UID != o.Owner.UID
}
