package pooldriver

import (
	"context"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
)

// Driver creates, changes and removes groups of machines that the provider manages as one. Package
// machinepool decides which calls to make. The first five calls are required. A driver without one
// of the others always answers UNIMPLEMENTED there, and does not declare it (see Featured).
//
// A driver that can name its groups is a Lister as well.
//
// The rules for every call of a driver.Driver apply here too: codes, contexts, concurrency,
// secrets, shared requests, and that calls act only on their own cluster. A group belongs to the
// pool of that namespace and name. Pool.Status.GroupID names it, if set. Pool.Status.LastKnown is
// the LastKnownState of an earlier answer, or empty. A manager makes one call at a time for a pool,
// but after a kill or with a second manager calls may overlap: a second one may answer ABORTED.
//
// ListMachines of a driver for the same account must not list instances of
// groups: they belong to no machine.
//
// Calls may end before their effect is complete: a group that grows is at its
// new target at once, and its instances come later. A size is a number of
// instances, never a difference, so that a repeated call changes nothing.
type Driver interface {
	// CreatePool makes the group of a pool, with Replicas instances to come. It is idempotent by
	// the pool's name. It adopts a group of that name with its current size, also if two calls race
	// or an earlier answer was lost.
	//
	// OK comes with GroupID. ALREADY_EXISTS: a group of that name can't become
	// this pool's.
	CreatePool(context.Context, *CreatePoolRequest) (*Response, error)

	// UpdatePool brings the group to the pool's template, class, failure domains and rolling update, and
	// leaves its size alone. The provider decides what happens to existing instances, and how fast,
	// within Spec.RollingUpdate if that is set; a change of that alone replaces no instance. It is
	// idempotent.
	//
	// NOT_FOUND: there is no such group.
	UpdatePool(context.Context, *UpdatePoolRequest) (*Response, error)

	// ScalePool sets the group's target. If there are too many instances, the provider chooses
	// which of them go. It is idempotent.
	//
	// NOT_FOUND: there is no such group. RESOURCE_EXHAUSTED: quota or capacity.
	ScalePool(context.Context, *ScalePoolRequest) (*Response, error)

	// GetPoolStatus looks the group up and changes nothing.
	//
	// OK: it is there, in any state. NOT_FOUND: there is none. OUT_OF_RANGE: there are several, and
	// nothing tells them apart.
	GetPoolStatus(context.Context, *GetPoolStatusRequest) (*GetPoolStatusResponse, error)

	// DeletePool removes the group, all of its instances and everything that was made with it. It
	// is idempotent. Given a group ID, a Lister deletes exactly that group and no other of the same
	// pool. Without an ID, it deletes the group of that pool.
	//
	// OK: there is no such group, and no instance of it, any more. ABORTED: it is being deleted,
	// and the library repeats the call until it is gone.
	DeletePool(context.Context, *DeletePoolRequest) (*Response, error)

	// DeleteInstances removes these instances and lowers the group's target by as many as it had of
	// them, not below zero. Instances that the group does not have, or that are going already,
	// change nothing, so that a repeated call removes no others. Optional.
	DeleteInstances(context.Context, *DeleteInstancesRequest) (*Response, error)

	// ReplaceInstance removes an instance and leaves the target alone, so that a new one replaces
	// it. An instance that the group does not have changes nothing. Optional.
	ReplaceInstance(context.Context, *ReplaceInstanceRequest) (*Response, error)

	// InstancesDrained says that instances with AwaitsDrain in the status are empty, so that the
	// provider continues with them. Other instances change nothing. Optional: it is called for
	// those instances only.
	InstancesDrained(context.Context, *InstancesDrainedRequest) (*Response, error)
}

// Featured is implemented by a pool driver that has optional calls, or whose groups keep to
// Spec.RollingUpdate. A driver that does not declare RollingUpdate gets no call for a pool that sets
// Spec.RollingUpdate, except those that delete the group.
type Featured interface {
	// PoolFeatures returns them. The answer never changes.
	PoolFeatures() machinepool.Features
}

// Lister is implemented by a pool driver that can list its groups. Without it, a group whose pool
// is gone is not found. See ListsPools.
type Lister interface {
	// ListPools lists the groups of the class's cluster that the class may have made, with the pool
	// each was made for. It includes groups whose pool is gone, and groups that are being deleted.
	// It must not list the groups of others, because the library deletes a listed group that
	// belongs to no pool, by its ID (see DeletePool). It changes nothing.
	ListPools(context.Context, *ListPoolsRequest) (*ListPoolsResponse, error)
}

// ListsPools reports whether d lists its groups: whether it, or a layer below the decorators of
// this package, is a Lister. The decorators always have the method. Without a Lister below them
// they answer UNIMPLEMENTED.
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

// list calls the outermost Lister of d.
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

// FeaturesOf returns what d declares as Featured. Zero: nothing.
func FeaturesOf(d Driver) machinepool.Features {
	if f, ok := As[Featured](d); ok {
		return f.PoolFeatures()
	}
	return machinepool.Features{}
}

// FaultHook is what a pool driver offers to tests, as driver.FaultHook is for a driver.
type FaultHook interface {
	// FailPoolAfter makes the next successful call of that kind take effect and still answer err.
	// Several calls make several such calls fail.
	FailPoolAfter(call machinepool.Call, err error)
}
