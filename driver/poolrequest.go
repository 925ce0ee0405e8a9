package driver

import (
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// PoolRequest is what every request about a pool has.
type PoolRequest struct {
	Pool  *machinepool.Pool
	Class *machine.Class
	// Secret is the class's boot secret and credentials merged, no placeholder
	// replaced. Nil: the class names none, or, for DeletePool, it is gone.
	Secret *machine.Secret
}

// CreatePoolRequest asks for the group of Pool.
type CreatePoolRequest struct {
	PoolRequest
	Replicas int32 // not negative
	// Bootstrap is what the machines boot from; one for all of them. Nil: nothing
	// is to be bootstrapped.
	Bootstrap *machine.Secret
}

// UpdatePoolRequest asks that the group be as Pool and Class say.
type UpdatePoolRequest struct {
	PoolRequest
	Bootstrap *machine.Secret // as for CreatePool
}

// ScalePoolRequest asks for a size.
type ScalePoolRequest struct {
	PoolRequest
	To int32 // not negative
}

// GetPoolStatusRequest asks for the group of Pool.
type GetPoolStatusRequest struct{ PoolRequest }

// DeletePoolRequest asks that the group of Pool be gone.
type DeletePoolRequest struct{ PoolRequest }

// DeleteInstancesRequest asks that these instances be gone, and the group smaller.
type DeleteInstancesRequest struct {
	PoolRequest
	ProviderIDs []string // none is empty
}

// ReplaceInstanceRequest asks for another instance in the place of this one.
type ReplaceInstanceRequest struct {
	PoolRequest
	ProviderID string // not empty
}

// InstancesDrainedRequest says that these instances are empty.
type InstancesDrainedRequest struct {
	PoolRequest
	ProviderIDs []string // none is empty
}

// ListPoolsRequest asks for the groups of a class.
type ListPoolsRequest struct {
	Class  *machine.Class
	Secret *machine.Secret // as in a PoolRequest
}

// ListPoolsResponse names groups and the pools they were made for.
type ListPoolsResponse struct {
	Groups map[string]object.Key // from group ID to the pool's namespace and name
	// Dropped are entries of Groups that can't be acted upon, without an ID or a pool's
	// name, or with one that is too long, which is cut: ValidatePool moves them here.
	// A driver leaves it empty.
	Dropped map[string]object.Key
}

// PoolResponse says how a group stands after a call that changed it. Empty
// fields leave what is known as it is.
type PoolResponse struct {
	// GroupID is the provider's unique name for the group.
	GroupID string
	// LastKnownState is the driver's own note, as a machine's is. It may come
	// beside an error.
	LastKnownState string
}

// GetPoolStatusResponse describes the group that was found.
type GetPoolStatusResponse struct {
	GroupID string
	// Target is the size that the provider brings the group to.
	Target int32
	// Instances are all that the group has, also those that go: each once, under
	// the provider ID that its node will have.
	Instances []machinepool.Instance
	// Ready says that the group is made and works.
	Ready bool
	// Failure says what the provider can't overcome by itself; empty: nothing.
	// It is stored, so it must hold no secret and change with the cause only.
	Failure        string
	LastKnownState string
}

// poolRequest is any of the nine kinds of request.
type poolRequest interface {
	comparable
	base() *PoolRequest
}

func (r *PoolRequest) base() *PoolRequest { return r }

func (r *ListPoolsRequest) base() *PoolRequest { return &PoolRequest{Class: r.Class, Secret: r.Secret} }

// baseOf is what all requests have; nil for one that is nil.
func baseOf[Q poolRequest](req Q) *PoolRequest {
	var none Q
	if req == none {
		return nil
	}
	return req.base()
}

// poolInfo says which call is made; base is nil where there is no request.
func poolInfo(method machinepool.Call, base *PoolRequest) CallInfo {
	info := CallInfo{Method: method, Kind: "pool", ReadOnly: method == machinepool.GetPoolStatus || method == machinepool.ListPools}
	if base != nil && base.Pool != nil {
		info.Object = base.Pool.Key
	}
	if base != nil && base.Class != nil {
		info.Class = base.Class.Key
	}
	return info
}

// missingField says what is missing without which a call can't be made; empty: nothing.
func (r *PoolRequest) missingField(method machinepool.Call) string {
	ofPool := method != machinepool.ListPools
	switch {
	case r == nil:
		return "there is no request"
	case ofPool && r.Pool == nil:
		return "the request has no pool"
	case ofPool && blank(r.Pool.Name):
		return "the pool has no name"
	case r.Class == nil:
		return "the class is missing"
	}
	return ""
}
