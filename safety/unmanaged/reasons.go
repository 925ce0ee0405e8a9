package unmanaged

import "github.com/millwright-go/millwright/decision"

// The reasons of decisions about nodes.
var (
	reasonFrozen     = decision.NewReason("Frozen", "frozen: nothing is judged")
	reasonReadOwners = decision.NewReason("ReadOwners", "{have} nodes seem to need a change: reading all machines live")
	reasonNotManaged = decision.NewReason("NotManaged", "no machine owns node {name}, which is older than {for}")
	reasonManaged    = decision.NewReason("ManagedAgain", "node {name} has an owner, {detail}")
	reasonTwoOwners  = decision.NewReason("SeveralMachines", "node {name} is claimed by several machines, {detail} among them: left alone")
	reasonSpelled    = decision.NewReason("NodeSpelledOtherwise", "{have} nodes, such as {name}, carry the provider ID of a machine or an instance in another spelling, {detail}: they are left alone")
	reasonDone       = decision.NewReason("NodesLookedThrough", "nodes looked through; {have} without a machine are too young to tell")
)
