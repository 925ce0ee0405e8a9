package manager

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// Kind names a kind of object, or a source of changes.
type Kind string

// The kinds that a manager reads or reconciles.
const (
	KindMachine    Kind = "machine"
	KindSet        Kind = "set"
	KindDeployment Kind = "deployment"
	KindPool       Kind = "pool"
	KindClass      Kind = "class"
	KindSecret     Kind = "secret"
	KindNode       Kind = "node"
	// KindWorkload is what runs on nodes. Its changes are names of nodes.
	KindWorkload Kind = "workload"
)

// Kinds for the whole fleet, see Kind.Fleet.
const (
	// KindReachability is whether the API servers answer.
	KindReachability Kind = "reachability"
	// KindOrphans are VMs that no machine owns.
	KindOrphans Kind = "orphans"
	// KindUnmanaged are nodes that no machine owns.
	KindUnmanaged Kind = "unmanaged"
	// KindOwnerless are machines and sets whose owner is gone.
	KindOwnerless Kind = "ownerless"
)

// Fleet is the one key of the kinds that concern the whole fleet.
var Fleet = object.Key{Name: "fleet"}

// Fleet reports whether a kind is reconciled on the key Fleet alone. A program that
// drives the reconcilers queues it once at the start, KindReachability
// first: until then nothing is decided about machines and sets.
func (k Kind) Fleet() bool {
	return k == KindReachability || k == KindOrphans || k == KindUnmanaged || k == KindOwnerless
}

// Result is how a pass ended.
type Result = engine.Result

// Reconciler brings one object of one kind closer to what its owner wants. It
// is safe for concurrent use with different keys; calls for one key must not
// overlap.
type Reconciler interface {
	Kind() Kind
	// Reconcile makes one pass. An error means that the pass could not be
	// finished (a store or a cluster did not answer): call again after a
	// pause, the Result then says nothing. An object that is gone is no error. A
	// panic, and a call of runtime.Goexit, is an ErrPanicked.
	Reconcile(ctx context.Context, key object.Key) (Result, error)
}

// Wake says that a change of an object of kind From is a reason to reconcile
// objects of kind To.
type Wake struct {
	From, To Kind
	// Keys names them. old is nil for an object seen first, new for one that
	// is gone; both are of From's type.
	Keys func(ctx context.Context, old, new any) []object.Key
	// Settle is how long the wake-up may wait for others to join it.
	Settle time.Duration
}
