package replacement

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
)

// Observation is what a decision is made from about a machine that is to be failed for its health.
// The caller fills in Machine, and Set and Deployment from its caches; ReadFleet asks for the rest.
type Observation struct {
	// Machine asks. Only its name and the names of its set and class matter; Fleet says how it
	// fares.
	Machine *machine.Machine
	// Deployment holds the budget. Nil: Set has no deployment.
	Deployment *deployment.Deployment
	// Set owns the machine. Nil: no set replaces it, and no budget counts it.
	Set *machineset.Set
	// Fleet is all machines of the deployment's sets, or of the lone set.
	Fleet []*machine.Machine
	// Read says how the above was read in this pass. The order is: the deployment, or the lone set;
	// then the sets; then the machines. A write under the version of the budget's holder then fails
	// if another machine has taken a slot whose effect Fleet does not show.
	Read decision.Freshness
	// Taken: Plan.Write has stored the slot in this pass.
	Taken bool
	// Zones maps the name of a class to the zone of its machines. A class that is missing is in no
	// zone.
	Zones map[string]string
	// NodeLeaves: it asks because others delete its node. It may then be in any phase.
	NodeLeaves bool
	// Spent is the memory of this process: Plan.Spent of the last plan for a machine without a set.
	// Losing it costs safety, not time: the brake begins again.
	Spent []safety.Spent
	// NoCluster: machines join no cluster. A machine that does its work then asks when the provider
	// says that its VM is gone.
	NoCluster bool
	// Preserved are names of machines that are kept for inspection. They count neither as in
	// replacement nor as missing.
	Preserved map[string]bool
}

// Write takes a slot: *TakeFromDeployment or *TakeFromSet.
//
//sumtype:decl
type Write interface{ write() }

// TakeFromDeployment stores a deployment's metadata.
type TakeFromDeployment struct{ Deployment *deployment.Deployment }

// TakeFromSet stores a lone set's metadata.
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
