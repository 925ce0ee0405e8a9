package driver

import (
	"context"

	"github.com/millwright-go/millwright/machinepool"
)

// PoolDriver makes, changes and removes groups of machines that the provider
// manages as one: package machinepool decides what is asked of it. The first
// five calls are needed; a driver without one of the others answers
// UNIMPLEMENTED there, always, and does not declare it (see PoolFeatures).
//
// A driver that can name its groups is a PoolLister as well.
//
// What holds for every call of a Driver holds here too: codes, contexts,
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
type PoolDriver interface {
	// CreatePool makes the group of a pool, with Replicas instances to come. It is
	// idempotent by the pool's name: a group of that name is adopted as it is,
	// whatever its size, also when two calls race and when an earlier answer
	// was lost.
	//
	// OK comes with GroupID. ALREADY_EXISTS: a group of that name can't become
	// this pool's.
	CreatePool(context.Context, *CreatePoolRequest) (*PoolResponse, error)

	// UpdatePool brings the group to the pool's template, class and failure
	// domains, and leaves its size alone. What becomes of the instances that
	// there are, and how fast, is the provider's business. It is idempotent.
	//
	// NOT_FOUND: there is no such group.
	UpdatePool(context.Context, *UpdatePoolRequest) (*PoolResponse, error)

	// ScalePool sets the group's target. Where there are too many instances, the
	// provider chooses which of them go. It is idempotent.
	//
	// NOT_FOUND: there is no such group. RESOURCE_EXHAUSTED: quota or capacity.
	ScalePool(context.Context, *ScalePoolRequest) (*PoolResponse, error)

	// GetPoolStatus looks the group up and changes nothing.
	//
	// OK: it is there, whatever its state. NOT_FOUND: there is none. OUT_OF_RANGE:
	// there are several, and nothing tells them apart.
	GetPoolStatus(context.Context, *GetPoolStatusRequest) (*GetPoolStatusResponse, error)

	// DeletePool removes the group, all of its instances and whatever was made
	// with it. It is idempotent. Given a group ID, a PoolLister deletes that group
	// exactly and spares another of the same pool; without one, the group of that pool.
	//
	// OK: there is no such group, and no instance of it, any more. ABORTED: it
	// is going; the call is repeated until it is gone.
	DeletePool(context.Context, *DeletePoolRequest) (*PoolResponse, error)

	// DeleteInstances removes these instances and lowers the group's target by
	// as many as it had of them, not below zero. Those that it has not, or that go already,
	// change nothing, so that a repeated call takes no others. Optional.
	DeleteInstances(context.Context, *DeleteInstancesRequest) (*PoolResponse, error)

	// ReplaceInstance removes an instance and leaves the target alone, so that
	// another comes in its place. One that the group has not changes nothing.
	// Optional.
	ReplaceInstance(context.Context, *ReplaceInstanceRequest) (*PoolResponse, error)

	// InstancesDrained says that instances of which the status said AwaitsDrain
	// are empty, so that the provider goes on with what it wanted of them. Others
	// change nothing. Optional: it is called for those alone.
	InstancesDrained(context.Context, *InstancesDrainedRequest) (*PoolResponse, error)
}

// PoolFeatures is what a pool driver declares that has calls beyond those that
// are needed.
type PoolFeatures interface {
	// PoolFeatures says which. The answer never changes.
	PoolFeatures() machinepool.Features
}

// PoolLister is what a pool driver is that can name its groups. Without it, a group
// whose pool is gone is not found. See ListsPools.
type PoolLister interface {
	// ListPools names the groups of the class's cluster that the class may have made,
	// with the pool each was made for: of a pool that is gone too, and also a group
	// that is being deleted. Groups of others must not be listed: what is listed and
	// belongs to no pool is deleted, by its ID (see DeletePool). It changes nothing.
	ListPools(context.Context, *ListPoolsRequest) (*ListPoolsResponse, error)
}

// ListsPools reports whether d names its groups: whether it, or a layer below the
// decorators of this package, is a PoolLister. The decorators have the method in any
// case; without a PoolLister below them they answer UNIMPLEMENTED.
func ListsPools(d PoolDriver) bool {
	for layer := range Layers(d) {
		switch layer.(type) {
		case *interceptedPool, *validatedPool:
		case PoolLister:
			return true
		}
	}
	return false
}

// listPools asks the outermost PoolLister of d.
func listPools(ctx context.Context, d PoolDriver, req *ListPoolsRequest) (*ListPoolsResponse, error) {
	if l, ok := AsPool[PoolLister](d); ok {
		return l.ListPools(ctx, req)
	}
	_, err := noSuchCall(machinepool.ListPools)
	return nil, err
}

// AsPool returns the outermost of the Layers of d that is a T, as As does.
func AsPool[T any](d PoolDriver) (T, bool) {
	for layer := range Layers(d) {
		if found, ok := any(layer).(T); ok {
			return found, true
		}
	}
	var none T
	return none, false
}

// PoolFeaturesOf returns what d declares as PoolFeatures; zero: nothing.
func PoolFeaturesOf(d PoolDriver) machinepool.Features {
	if f, ok := AsPool[PoolFeatures](d); ok {
		return f.PoolFeatures()
	}
	return machinepool.Features{}
}

// PoolFaultHook is what a pool driver offers to tests, as FaultHook is what a
// driver does.
type PoolFaultHook interface {
	// FailPoolAfter has the next call of that kind that succeeds take effect and
	// answer err all the same. Called again, it adds to what is in store.
	FailPoolAfter(call machinepool.Call, err error)
}
