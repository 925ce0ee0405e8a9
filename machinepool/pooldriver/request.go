package pooldriver

import (
	"strings"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// Request is what every request about a pool has.
type Request struct {
	Pool  *machinepool.Pool
	Class *machine.Class
	// Secret is the class's boot secret and credentials merged; placeholders in it are not replaced. Nil:
	// the class names none, or none that exists.
	Secret *machine.Secret
}

// CreatePoolRequest asks for the group of Pool.
type CreatePoolRequest struct {
	Request
	Replicas int32 // not negative
	// Bootstrap is what the machines boot from, the same for all of them. Nil: there is nothing to
	// bootstrap.
	Bootstrap *machine.Secret
}

// UpdatePoolRequest asks that the group match Pool and Class.
type UpdatePoolRequest struct {
	Request
	Bootstrap *machine.Secret // as for CreatePool
}

// ScalePoolRequest asks for a size.
type ScalePoolRequest struct {
	Request
	To int32 // not negative
}

// GetPoolStatusRequest asks for the group of Pool.
type GetPoolStatusRequest struct{ Request }

// DeletePoolRequest asks that the group of Pool be gone.
type DeletePoolRequest struct{ Request }

// DeleteInstancesRequest asks that these instances be gone, and the group smaller.
type DeleteInstancesRequest struct {
	Request
	ProviderIDs []string // none is empty
}

// ReplaceInstanceRequest asks for a new instance in place of this one.
type ReplaceInstanceRequest struct {
	Request
	ProviderID string // not empty
}

// InstancesDrainedRequest says that these instances are empty.
type InstancesDrainedRequest struct {
	Request
	ProviderIDs []string // none is empty
}

// ListPoolsRequest asks for the groups of a class.
type ListPoolsRequest struct {
	Class  *machine.Class
	Secret *machine.Secret // as in a Request
}

// ListPoolsResponse maps groups to the pools they were made for.
type ListPoolsResponse struct {
	Groups map[string]object.Key // from group ID to the pool's namespace and name
	// Dropped are entries of Groups that can't be acted upon: without an ID or a pool's name, or
	// with one that is too long, which is cut. Validate moves them here. A driver leaves it empty.
	Dropped map[string]object.Key
}

// Response is the state of a group after a call that changed it. Empty fields keep what is known.
type Response struct {
	// GroupID is the provider's unique name for the group.
	GroupID string
	// LastKnownState is the driver's own note, like a machine's. It may come beside an error.
	LastKnownState string
}

// GetPoolStatusResponse describes the group that was found.
type GetPoolStatusResponse struct {
	GroupID string
	// Target is the size that the provider brings the group to.
	Target int32
	// Instances are all that the group has, including those that are going: each once, under the
	// provider ID that its node will have.
	Instances []machinepool.Instance
	// Ready says that the group is made and works.
	Ready bool
	// Failure is what the provider can't overcome by itself. Empty: nothing. It is stored, so it
	// must hold no secret and must only change with the cause.
	Failure        string
	LastKnownState string
}

// request is any of the nine kinds of request.
type request interface {
	comparable
	base() *Request
}

func (r *Request) base() *Request { return r }

func (r *ListPoolsRequest) base() *Request { return &Request{Class: r.Class, Secret: r.Secret} }

// baseOf returns what all requests have. Nil for a nil request.
func baseOf[Q request](req Q) *Request {
	var none Q
	if req == none {
		return nil
	}
	return req.base()
}

// infoOf returns which call is made. base is nil if there is no request.
func infoOf(method machinepool.Call, base *Request) driver.CallInfo {
	info := driver.CallInfo{Method: method, Kind: "pool", ReadOnly: method == machinepool.GetPoolStatus || method == machinepool.ListPools}
	if base != nil && base.Pool != nil {
		info.Object = base.Pool.Key
	}
	if base != nil && base.Class != nil {
		info.Class = base.Class.Key
	}
	return info
}

// missingField returns what a call lacks to be made. Empty: nothing.
func (r *Request) missingField(method machinepool.Call) string {
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

func blank(s string) bool { return strings.TrimSpace(s) == "" }
