package machine

// A decision has parts. Each is a value that holds the situation and, where it is
// about a node that is not always the observed one, that node. The parts stand here
// from the ground up: a part asks parts above it in this file, and never one below.

// token is the bootstrap token of a machine.
type token struct{ *situation }

// nodeRollout is what a rollout has put on a node, and what it wants there.
type nodeRollout struct {
	*situation
	n *Node
}

// nodePreservation is what the preservation of a machine has put on its node, and
// what it wants there. n may be nil.
type nodePreservation struct {
	*situation
	n *Node
}

// nodeUpdate is what an update in place has put on a node, and what it wants there.
type nodeUpdate struct {
	*situation
	n *Node
}

// nodeSync brings a node in line with its machine. joining says that the node is
// healthy, so that it is about to join or has joined: then the startup taint is removed.
type nodeSync struct {
	*situation
	n       *Node
	joining bool
}

// hotUpdate changes a VM to what its class says, without a replacement.
type hotUpdate struct{ *situation }

// creation takes a machine from new to Available or Running.
type creation struct{ *situation }

// inPlace takes a machine through an update in place, and back into service. n is its
// node; nil: it is missing, or was not looked for. What goes into a plan is node()
// instead: a part whose node is in a plan makes each decision allocate.
type inPlace struct {
	*situation
	n *Node
}

// preservation keeps a machine for inspection.
type preservation struct{ *situation }

// deletion takes a machine that is being deleted through the stages of that.
type deletion struct{ *situation }

// health watches a machine that has joined once.
type health struct{ *situation }

// pause leaves a machine as it is while its annotation asks for that.
type pause struct{ *situation }

// decider asks the parts in order.
type decider struct{ *situation }
