package driver

import (
	"context"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// ValidatePool returns a pool driver that passes on only what can be acted upon.
//
// Requests: without pool, pool name or class, with a negative size or a blank
// provider ID, a call is INVALID_ARGUMENT and d is not called.
//
// Answers that claim OK become INTERNAL when CreatePool or GetPoolStatus give no
// group ID, a blank one or one beyond its bound, and when a target is negative.
// Instances are sorted by provider ID; blank and repeated ones and those beyond
// their bound are left out, since an empty ID must match nothing.
//
// Entries of ListPools without a group ID or a pool's name, with a blank one or with
// one beyond its bound (then it is cut) move from Groups to Dropped, as those of
// ListMachines do.
//
// Messages of errors, bounds and secrets are treated as by Validate, and so is
// GetPoolStatusResponse.Failure. cut is told what ValidateOptions.Cut is told;
// nil: nobody is told.
func ValidatePool(d PoolDriver, cut func(ctx context.Context, s PoolSubject, whole string)) PoolDriver {
	return &validatedPool{inner: d, cut: cut}
}

type validatedPool struct {
	inner PoolDriver
	cut   func(ctx context.Context, s PoolSubject, whole string)
}

// Unwrap returns the driver that is decorated.
func (v *validatedPool) Unwrap() PoolDriver { return v.inner }

func (v *validatedPool) passesPoolsOn() {}

// poolGap says what is missing without which a call can't be made; empty: nothing.
func poolGap[Q poolRequest](req Q) string {
	b := baseOf(req)
	_, listing := any(req).(*ListPoolsRequest)
	switch {
	case b == nil:
		return "there is no request"
	case listing && b.Class != nil:
		return ""
	case listing:
		return "the class is missing"
	case b.Pool == nil:
		return "the request has no pool"
	case blank(b.Pool.Name):
		return "the pool has no name"
	case b.Class == nil:
		return "the class is missing"
	}
	return ""
}

// ruledPool makes one call, if the request is fit for it, and holds its answer
// to rule, which is asked only about answers without error.
func ruledPool[Q poolRequest, R any](
	ctx context.Context, v *validatedPool, method machinepool.Call, req Q, gap func(Q) string,
	call func(context.Context, Q) (*R, error), bounds func(*R) []bound, rule func(*R) (*R, string),
) (*R, error) {
	missing := poolGap(req)
	if missing == "" && gap != nil {
		missing = gap(req)
	}
	if missing != "" {
		return nil, codes.Newf(codes.InvalidArgument, "%s was not called: %s", method, missing)
	}
	response, err := call(ctx, req)
	base := baseOf(req)
	a := answer[R]{
		method: method.String(), response: response, err: err, bounds: bounds, rule: rule,
		confidential: confidentialOf(ctx, base.Class, base.Secret, bootstrapOf(req)),
		cut: func(whole string) {
			if v.cut != nil {
				v.cut(ctx, poolSubject(method, req), whole)
			}
		},
	}
	a.response = withFailure(a)
	return judged(a)
}

// bootstrapOf is what the machines of a pool boot from, where a request has it.
func bootstrapOf[Q poolRequest](req Q) *machine.Secret {
	switch q := any(req).(type) {
	case *CreatePoolRequest:
		return q.Bootstrap
	case *UpdatePoolRequest:
		return q.Bootstrap
	}
	return nil
}

// withFailure is a response whose Failure is treated as an error's message is.
func withFailure[R any](a answer[R]) *R {
	status, is := any(a.response).(*GetPoolStatusResponse)
	if !is || status == nil || status.Failure == "" {
		return a.response
	}
	told := a.confidential.hidden(status.Failure)
	shown, _ := codes.Bounded(codes.Printable(told))
	if shown != status.Failure {
		a.cut(told)
	}
	c := *status
	c.Failure = shown
	typed, _ := any(&c).(*R)
	return typed
}

func negative(n int32) string {
	if n < 0 {
		return "the size is negative"
	}
	return ""
}

func anyBlank(ids []string) string {
	if slices.ContainsFunc(ids, blank) {
		return "a provider ID is blank"
	}
	return ""
}

// CreatePool implements PoolDriver.
func (v *validatedPool) CreatePool(ctx context.Context, req *CreatePoolRequest) (*PoolResponse, error) {
	return ruledPool(ctx, v, machinepool.CreatePool, req, func(q *CreatePoolRequest) string { return negative(q.Replicas) },
		v.inner.CreatePool, (*PoolResponse).createdBounds, func(r *PoolResponse) (*PoolResponse, string) {
			switch {
			case r == nil:
				return nil, noResponse
			case blank(r.GroupID):
				return r, "has no group ID"
			}
			return r, ""
		})
}

// UpdatePool implements PoolDriver.
func (v *validatedPool) UpdatePool(ctx context.Context, req *UpdatePoolRequest) (*PoolResponse, error) {
	return ruledPool(ctx, v, machinepool.UpdatePool, req, nil, v.inner.UpdatePool, (*PoolResponse).bounds, orEmpty)
}

// ScalePool implements PoolDriver.
func (v *validatedPool) ScalePool(ctx context.Context, req *ScalePoolRequest) (*PoolResponse, error) {
	return ruledPool(ctx, v, machinepool.ScalePool, req, func(q *ScalePoolRequest) string { return negative(q.To) },
		v.inner.ScalePool, (*PoolResponse).bounds, orEmpty)
}

// GetPoolStatus implements PoolDriver.
func (v *validatedPool) GetPoolStatus(ctx context.Context, req *GetPoolStatusRequest) (*GetPoolStatusResponse, error) {
	return ruledPool(ctx, v, machinepool.GetPoolStatus, req, nil, v.inner.GetPoolStatus, (*GetPoolStatusResponse).bounds,
		func(r *GetPoolStatusResponse) (*GetPoolStatusResponse, string) {
			switch {
			case r == nil:
				return nil, noResponse
			case blank(r.GroupID):
				return r, "has no group ID"
			case r.Target < 0:
				return r, "has a negative target"
			}
			return inOrder(r), ""
		})
}

// inOrder is an answer with its instances sorted, each once; the same answer
// if they are so already.
func inOrder(r *GetPoolStatusResponse) *GetPoolStatusResponse {
	last, fine := "", true
	for i := range r.Instances {
		id := r.Instances[i].ProviderID
		fine, last = fine && id > last && !blank(id), id
	}
	if fine {
		return r
	}
	whole := *r
	whole.Instances = slices.DeleteFunc(slices.Clone(r.Instances), func(i machinepool.Instance) bool { return blank(i.ProviderID) })
	slices.SortStableFunc(whole.Instances, func(a, b machinepool.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	whole.Instances = slices.CompactFunc(whole.Instances, func(a, b machinepool.Instance) bool { return a.ProviderID == b.ProviderID })
	return &whole
}

// DeletePool implements PoolDriver.
func (v *validatedPool) DeletePool(ctx context.Context, req *DeletePoolRequest) (*PoolResponse, error) {
	return ruledPool(ctx, v, machinepool.DeletePool, req, nil, v.inner.DeletePool, (*PoolResponse).bounds, orEmpty)
}

// DeleteInstances implements PoolDriver.
func (v *validatedPool) DeleteInstances(ctx context.Context, req *DeleteInstancesRequest) (*PoolResponse, error) {
	return ruledPool(ctx, v, machinepool.DeleteInstances, req, func(q *DeleteInstancesRequest) string { return anyBlank(q.ProviderIDs) },
		v.inner.DeleteInstances, (*PoolResponse).bounds, orEmpty)
}

// ReplaceInstance implements PoolDriver.
func (v *validatedPool) ReplaceInstance(ctx context.Context, req *ReplaceInstanceRequest) (*PoolResponse, error) {
	return ruledPool(ctx, v, machinepool.ReplaceInstance, req, func(q *ReplaceInstanceRequest) string { return anyBlank([]string{q.ProviderID}) },
		v.inner.ReplaceInstance, (*PoolResponse).bounds, orEmpty)
}

// InstancesDrained implements PoolDriver.
func (v *validatedPool) InstancesDrained(ctx context.Context, req *InstancesDrainedRequest) (*PoolResponse, error) {
	return ruledPool(ctx, v, machinepool.InstancesDrained, req, func(q *InstancesDrainedRequest) string { return anyBlank(q.ProviderIDs) },
		v.inner.InstancesDrained, (*PoolResponse).bounds, orEmpty)
}

// ListPools implements PoolLister.
func (v *validatedPool) ListPools(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
	return ruledPool(ctx, v, machinepool.ListPools, req, nil, func(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
		return listPools(ctx, v.inner, req)
	}, (*ListPoolsResponse).bounds, groupsListed)
}

// groupsListed divides a list as listed does.
func groupsListed(r *ListPoolsResponse) (*ListPoolsResponse, string) {
	if r == nil {
		return nil, noResponse
	}
	whole, dropped, changed := divided(r.Groups, r.Dropped, func(id string, pool object.Key) bool { return blank(id) || blank(pool.Name) })
	if !changed {
		return r, ""
	}
	return &ListPoolsResponse{Groups: whole, Dropped: dropped}, ""
}
