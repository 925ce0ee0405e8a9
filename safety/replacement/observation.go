package replacement

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
)

// Observation is the input of the decision whether a machine may be given up. The caller
// fills in Machine, Set and Deployment from its caches; ReadFleet asks for the rest.
type Observation struct {
	// Machine is the one that asks. Only its name, its UID and the names of its set and class are read; its
	// status is read from Fleet.
	Machine *machine.Machine
	// Deployment holds the budget. Nil: Set has no deployment.
	Deployment *deployment.Deployment
	// Set owns the machine. Nil: no set replaces it, and no budget counts it.
	Set *machineset.Set
	// Fleet is all machines of the deployment's sets or, without a deployment, of Set.
	Fleet []*machine.Machine
	// Read says how all this was read in this pass: first the deployment, or the set without one; then the
	// sets; then the machines. In this order, the write of a slot fails if another machine has taken one
	// whose effect Fleet does not show.
	Read decision.Freshness
	// Taken: Plan.Write has stored the slot in this pass.
	Taken bool
	// Zones maps the name of a class to the zone of its machines. A class that is missing is in no
	// zone.
	Zones map[string]string
	// NodeLeaves: the machine asks because others delete its node. It may then be in any phase.
	NodeLeaves bool
	// Spent is the memory of this process: Plan.Spent of the last plan for a machine without a set.
	// Losing it costs safety, not time: the brake begins again.
	Spent []safety.Spent
	// NoCluster: machines join no cluster. Then a machine that works asks if the provider says that its VM
	// is gone.
	NoCluster bool
	// Preserved are the names of machines that are preserved for inspection. They count neither as in
	// replacement nor as missing.
	Preserved map[string]bool
}

// Write takes a slot: *TakeFromDeployment or *TakeFromSet.
//
//sumtype:decl
type Write interface{ write() }

// TakeFromDeployment stores a deployment's metadata.
type TakeFromDeployment struct{ Deployment *deployment.Deployment }

// TakeFromSet stores the metadata of a set without a deployment.
type TakeFromSet struct{ Set *machineset.Set }

func (*TakeFromDeployment) write() {}
func (*TakeFromSet) write()        {}

// Plan is what to do next: ReadFleet, or Write, or the answer.
type Plan struct {
	// ReadFleet asks for live reads of everything, see Observation.Read. The pass ends if the
	// budget's holder is gone or has another UID.
	ReadFleet bool
	// Write compares and swaps. Once it is stored Taken becomes true, and the store's answer
	// replaces the observed object. A conflict ends the pass: another machine may have taken the
	// slot.
	Write Write
	// Grant is the answer to machine.AskGrant; nil: not yet.
	Grant *machine.Grant
	// Spent replaces the memory, with a plan for a machine without a set.
	Spent []safety.Spent
	Why   decision.Why
}
