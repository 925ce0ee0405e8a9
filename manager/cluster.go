package manager

import (
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/store"
)

// Cluster is the target cluster that machines join. It is optional: without
// one, a machine's life ends at phase Available.
type Cluster interface {
	// Nodes is the cluster's list of nodes. Nodes have no namespace. The
	// collection must support NodeIndexes.
	Nodes() store.Collection[*machine.Node]
}
