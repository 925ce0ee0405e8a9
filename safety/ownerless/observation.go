package ownerless

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// Observation is the input of a decision about machines and sets whose owner is gone. The garbage collector
// of an API server deletes such objects. Other stores have none, and the create of a process that died may take
// effect after the owner is gone.
type Observation struct {
	// Machines, Sets and Deployments are all objects of their kinds, of all namespaces. At the beginning of
	// a pass they come from caches, and later from live reads if the plan asks for them. Owned objects are
	// read before their owners, because an owner is stored before the objects that it owns.
	Machines    []*machine.Machine
	Sets        []*machineset.Set
	Deployments []*deployment.Deployment
	// NoDeployments: this program does not manage the deployments. No set is decided about.
	NoDeployments bool
	// Read says how they were read in this pass.
	Read decision.Freshness
	// Looked is when this process last began a live read; zero: never.
	Looked time.Time
	// Candidates is the memory of this process: Plan.Candidates of the last plan; Spent is the
	// brake's. Losing Candidates costs time; if Spent is lost, the brake begins again.
	Candidates []Candidate
	Spent      []safety.Spent
	// Began is when this process made its first pass; see orphan.Observation.
	Began time.Time
	// Ordered are the UIDs of objects whose deletion was ordered in this pass.
	Ordered map[string]bool
	// Frozen: nothing is decided or deleted.
	Frozen bool
}

// Candidate is a machine or set that was seen without its owner.
type Candidate struct {
	UID   string
	Owner string    // the UID of the owner that is missing
	Since time.Time // when the first live read without the owner began
}

// Plan is what to do next: Read, or Delete. With neither, decide again at At.
type Plan struct {
	// Read asks for a live read of all machines, then all sets, then all deployments. A failed read
	// ends the pass, because an object that could not be read is not gone. Read.Began and Looked
	// become the time just before the first read.
	Read bool
	// Delete asks for the deletion of machines and sets. Just before each delete, read the object
	// live, and then the object of its owner's name. Drop the order unless StillOwnerless reports
	// true. Add each UID to Ordered. An error ends the pass.
	Delete []Delete
	// Candidates and Spent replace the memory, with every plan.
	Candidates []Candidate
	Spent      []safety.Spent
	// Warn are warnings for the operator, at most Burst.
	Warn []decision.Why
	// At is when to decide again. It is zero if there are orders.
	At  time.Time
	Why decision.Why
}

// Delete is an order to delete one machine, or one set.
type Delete struct {
	Set   bool // it is a set
	Key   object.Key
	UID   string // never empty
	Owner object.Owner
	Why   decision.Why
}

// StillOwnerless reports whether the order still holds, given the object and the object of its
// owner's name, as they are now. Nil: there is none.
func (o *Delete) StillOwnerless(child, owner *object.Meta) bool {
	if child == nil || child.UID != o.UID || child.Deleted() || child.Owner == nil || child.Owner.UID != o.Owner.UID {
		return false
	}
	return owner == nil || owner.UID != o.Owner.UID
}
