package pooldriver

import (
	"context"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
)

// Driver makes, changes and removes groups of machines that the provider
// manages as one: package machinepool decides what is asked of it. The first
// five calls are needed; a driver without one of the others answers
// UNIMPLEMENTED there, always, and does not declare it (see Featured).
//
// A driver that can name its groups is a Lister as well.
//
// What holds for every call of a driver.Driver holds here too: codes, contexts,
// concurrency, secrets, shared requests, and that calls act on what is of their
// own cluster only. A group belongs to the pool of that namespace and name.
// Pool.Status.GroupID, where it is set, names it; Pool.Status.LastKnown is the
// LastKnownState that a call before answered, or empty.
//
// ListMachines of a driver for the same account must not list instances of
// groups: they belong to no machine.
//
// Calls may end before their effect is complete: a group that grows is at its
// new target at once, and its instances come later. A size is a number of
// instances, never a difference, so that a repeated call changes nothing.
type Driver interface {
	// CreatePool makes the group of a pool, with Replicas instances to come. It is
	// idempotent by the pool's name: a group of that name is adopted as it is,
	// whatever its size, also when two calls race and when an earlier answer
	// was lost.
	//
	// OK comes with GroupID. ALREADY_EXISTS: a group of that name can't become
	// this pool's.
	CreatePool(context.Context, *CreatePoolRequest) (*Response, error)

	// UpdatePool brings the group to the pool's template, class and failure
	// domains, and leaves its size alone. What becomes of the instances that
	// there are, and how fast, is the provider's business. It is idempotent.
	//
	// NOT_FOUND: there is no such group.
	UpdatePool(context.Context, *UpdatePoolRequest) (*Response, error)

	// ScalePool sets the group's target. Where there are too many instances, the
	// provider chooses which of them go. It is idempotent.
	//
	// NOT_FOUND: there is no such group. RESOURCE_EXHAUSTED: quota or capacity.
	ScalePool(context.Context, *ScalePoolRequest) (*Response, error)

	// GetPoolStatus looks the group up and changes nothing.
	//
	// OK: it is there, whatever its state. NOT_FOUND: there is none. OUT_OF_RANGE:
	// there are several, and nothing tells them apart.
	GetPoolStatus(context.Context, *GetPoolStatusRequest) (*GetPoolStatusResponse, error)

	// DeletePool removes the group, all of its instances and whatever was made
	// with it. It is idempotent. Given a group ID, a Lister deletes that group
	// exactly and spares another of the same pool; without one, the group of that pool.
	//
	// OK: there is no such group, and no instance of it, any more. ABORTED: it
	// is going; the call is repeated until it is gone.
	DeletePool(context.Context, *DeletePoolRequest) (*Response, error)

	// DeleteInstances removes these instances and lowers the group's target by
	// as many as it had of them, not below zero. Those that it has not, or that go already,
	// change nothing, so that a repeated call takes no others. Optional.
	DeleteInstances(context.Context, *DeleteInstancesRequest) (*Response, error)

	// ReplaceInstance removes an instance and leaves the target alone, so that
	// another comes in its place. One that the group has not changes nothing.
	// Optional.
	ReplaceInstance(context.Context, *ReplaceInstanceRequest) (*Response, error)

	// InstancesDrained says that instances of which the status said AwaitsDrain
	// are empty, so that the provider goes on with what it wanted of them. Others
	// change nothing. Optional: it is called for those alone.
	InstancesDrained(context.Context, *InstancesDrainedRequest) (*Response, error)
}

// Featured is what a pool driver declares that has calls beyond those that
// are needed.
type Featured interface {
	// PoolFeatures says which. The answer never changes.
	PoolFeatures() machinepool.Features
}

// Lister is what a pool driver is that can name its groups. Without it, a group
// whose pool is gone is not found. See ListsPools.
type Lister interface {
	// ListPools names the groups of the class's cluster that the class may have made,
	// with the pool each was made for: of a pool that is gone too, and also a group
	// that is being deleted. Groups of others must not be listed: what is listed and
	// belongs to no pool is deleted, by its ID (see DeletePool). It changes nothing.
	ListPools(context.Context, *ListPoolsRequest) (*ListPoolsResponse, error)
}

// ListsPools reports whether d names its groups: whether it, or a layer below the
// decorators of this package, is a Lister. The decorators have the method in any
// case; without a Lister below them they answer UNIMPLEMENTED.
func ListsPools(d Driver) bool {
	for layer := range driver.Layers(d) {
		switch layer.(type) {
		case *intercepted, *validated:
		case Lister:
			return true
		}
	}
	return false
}

// list asks the outermost Lister of d.
func list(ctx context.Context, d Driver, req *ListPoolsRequest) (*ListPoolsResponse, error) {
	if l, ok := As[Lister](d); ok {
		return l.ListPools(ctx, req)
	}
	_, err := unimplemented(machinepool.ListPools)
	return nil, err
}

// As returns the outermost layer of d that is a T, as driver.As does.
func As[T any](d Driver) (T, bool) {
	for layer := range driver.Layers(d) {
		if found, ok := any(layer).(T); ok {
			return found, true
		}
	}
	var none T
	return none, false
}

// FeaturesOf returns what d declares as Featured; zero: nothing.
func FeaturesOf(d Driver) machinepool.Features {
	if f, ok := As[Featured](d); ok {
		return f.PoolFeatures()
	}
	return machinepool.Features{}
}

// FaultHook is what a pool driver offers to tests, as driver.FaultHook is
// driver does.
type FaultHook interface {
	// FailPoolAfter has the next call of that kind that succeeds take effect and
	// answer err all the same. Called again, it adds to what is in store.
	FailPoolAfter(call machinepool.Call, err error)
}
