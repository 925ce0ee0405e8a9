package manager

import (
	"context"
	"iter"

	"github.com/millwright-go/millwright/manager/machines"
	"github.com/millwright-go/millwright/manager/pools"
	"github.com/millwright-go/millwright/object"
)

// Drainer empties nodes before their VMs go or are updated in place.
type Drainer = machines.Drainer

// WorkloadWatcher is a Drainer that knows when the workload of a node has
// changed, so that no pass has to ask for it.
type WorkloadWatcher interface {
	// Watch yields the name of a node whenever its workload has changed. It may
	// repeat and merge; it ends with an error, or when ctx does.
	Watch(ctx context.Context) iter.Seq2[string, error]
}

// abandoner is a Drainer that limits drains.
type abandoner interface {
	// Abandon sets aside what a machine or pool, or a node, holds of the limit, since its
	// pass panicked: a few that do so each time must not keep others waiting, and many must
	// not be drained at once. It asks again when it goes on.
	Abandon(of object.Key, node string)
}

// NodeKeeper is a Drainer that can undo its drains: a drain of a pool's instance that was begun might
// have to be undone. New refuses a Drainer that is none if there are pools to manage.
type NodeKeeper = pools.NodeKeeper
