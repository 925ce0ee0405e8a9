package unmanaged

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// Observation is the input of a decision about nodes without a machine.
type Observation struct {
	// Nodes are all nodes of the target cluster. A node written in this pass replaces the observed
	// one.
	Nodes []*machine.Node
	// Machines are all machines, of all namespaces.
	Machines []*machine.Machine
	// Read says how Machines was read in this pass, after Nodes.
	Read decision.Freshness
	// Instances are the provider IDs of instances whose owner is not a machine, such as those of a
	// pool. Nil: there are none.
	Instances map[string]bool
	// Refused are names of nodes that could not be written in this pass. They are left alone until
	// the next one.
	Refused map[string]bool
	// Frozen: nothing is decided or written.
	Frozen bool
}

// Plan is what to do next: ReadMachines, or Write. With neither, decide again at At.
type Plan struct {
	// ReadMachines asks for a live read of all machines.
	ReadMachines bool
	// Write are changed copies of nodes. Update each under its observed version. Remove a node that
	// is gone from Nodes. After any other error add its name to Refused.
	Write []WriteNode
	// Warn are warnings for the operator, at most Burst.
	Warn []decision.Why
	At   time.Time
	Why  decision.Why
}

// WriteNode is an order to write one node.
type WriteNode struct {
	Node *machine.Node
	Why  decision.Why
}
