package pooldriver

import (
	"context"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// Validate returns a pool driver that passes on only what can be acted upon.
//
// Requests: if the pool, its name or the class is missing, a size is negative or a provider ID is
// blank, the answer is INVALID_ARGUMENT and d is not called.
//
// An OK answer becomes INTERNAL if CreatePool or GetPoolStatus returns no group ID, a blank one or
// one beyond its bound (driver.MaxID), or if a target is negative. Instances are sorted by provider ID.
// Those whose ID is blank, repeated or beyond its bound are left out; a blank ID must match nothing.
//
// Entries of ListPools whose group ID or pool name is missing, blank, or beyond its bound (then the ID
// or name is cut) move from Groups to Dropped, as those of ListMachines do.
//
// Messages of errors, bounds and secrets are treated as by driver.Validate, and so is
// GetPoolStatusResponse.Failure. The function cut is called as driver.ValidateOptions.Cut is: with the
// whole of a message that is shortened, or what was left out. It may be nil.
func Validate(d Driver, cut func(ctx context.Context, call driver.CallInfo, whole string)) Driver {
	return &validated{inner: d, cut: cut}
}

type validated struct {
	inner Driver
	cut   func(ctx context.Context, call driver.CallInfo, whole string)
}

// Unwrap returns the driver that is decorated.
func (v *validated) Unwrap() Driver { return v.inner }

// validate makes one call, if the request is valid, and checks its answer. The function unfit returns what
// else is wrong with a request that lacks no field; empty: nothing. A nil unfit checks nothing.
func validate[Q request, R any](
	ctx context.Context, v *validated, method machinepool.Call, req Q, unfit func() string,
	call func(context.Context, Q) (*R, error), rules driver.Validation[R],
) (*R, error) {
	base := baseOf(req)
	rules.Call, rules.Invalid, rules.Cut = infoOf(method, base), base.missingField(method), v.cut
	if rules.Invalid == "" {
		rules.Class, rules.Secrets = base.Class, []*machine.Secret{base.Secret, bootstrapOf(req)}
		if unfit != nil {
			rules.Invalid = unfit() // any text here refuses the request
		}
	}
	return rules.Do(ctx, func(ctx context.Context) (*R, error) { return call(ctx, req) })
}

// change makes one call that changes a known group.
func change[Q request](
	ctx context.Context, v *validated, method machinepool.Call, req Q, unfit func() string,
	call func(context.Context, Q) (*Response, error),
) (*Response, error) {
	return validate(ctx, v, method, req, unfit, call, driver.Validation[Response]{
		Optional: true, // a driver may return no response
		Bounds:   func(r *Response) []driver.Bound { return []driver.Bound{groupBound(&r.GroupID)} },
		Note:     (*Response).note,
	})
}

// bootstrapOf returns what the machines of a pool boot from, if a request has it.
func bootstrapOf[Q request](req Q) *machine.Secret {
	switch q := any(req).(type) {
	case *CreatePoolRequest:
		return q.Bootstrap
	case *UpdatePoolRequest:
		return q.Bootstrap
	}
	return nil
}

func (r *Response) note() *string { return &r.LastKnownState }

// groupBound is the bound of a group ID. An ID beyond it is emptied, so that a known ID is kept.
func groupBound(id *string) driver.Bound {
	return driver.Bound{Name: "a group ID", Text: id, Most: driver.MaxID}
}

func neededGroup(id *string) driver.Bound {
	b := groupBound(id)
	b.Needed = true
	return b
}

const noGroup = "has no group ID"

func negative(n int32) string {
	if n < 0 {
		return "the size is negative"
	}
	return ""
}

func anyBlank(ids ...string) string {
	if slices.ContainsFunc(ids, blank) {
		return "a provider ID is blank"
	}
	return ""
}

// CreatePool implements Driver.
func (v *validated) CreatePool(ctx context.Context, req *CreatePoolRequest) (*Response, error) {
	unfit := func() string { return negative(req.Replicas) }
	return validate(ctx, v, machinepool.CreatePool, req, unfit, v.inner.CreatePool, driver.Validation[Response]{
		Bounds: func(r *Response) []driver.Bound { return []driver.Bound{neededGroup(&r.GroupID)} },
		Note:   (*Response).note,
		Check: func(r *Response) string {
			if blank(r.GroupID) {
				return noGroup
			}
			return ""
		},
	})
}

// UpdatePool implements Driver.
func (v *validated) UpdatePool(ctx context.Context, req *UpdatePoolRequest) (*Response, error) {
	return change(ctx, v, machinepool.UpdatePool, req, nil, v.inner.UpdatePool)
}

// ScalePool implements Driver.
func (v *validated) ScalePool(ctx context.Context, req *ScalePoolRequest) (*Response, error) {
	unfit := func() string { return negative(req.To) }
	return change(ctx, v, machinepool.ScalePool, req, unfit, v.inner.ScalePool)
}

// GetPoolStatus implements Driver.
func (v *validated) GetPoolStatus(ctx context.Context, req *GetPoolStatusRequest) (*GetPoolStatusResponse, error) {
	return validate(ctx, v, machinepool.GetPoolStatus, req, nil, v.inner.GetPoolStatus, driver.Validation[GetPoolStatusResponse]{
		Bounds:  (*GetPoolStatusResponse).bounds,
		Note:    func(r *GetPoolStatusResponse) *string { return &r.LastKnownState },
		Failure: func(r *GetPoolStatusResponse) *string { return &r.Failure },
		Check: func(r *GetPoolStatusResponse) string {
			switch {
			case blank(r.GroupID):
				return noGroup
			case r.Target < 0:
				return "has a negative target"
			}
			return ""
		},
		Tidy: (*GetPoolStatusResponse).tidy,
	})
}

func (r *GetPoolStatusResponse) bounds() []driver.Bound {
	longest := 0
	for i := range r.Instances {
		longest = max(longest, len(r.Instances[i].ProviderID))
	}
	return []driver.Bound{
		neededGroup(&r.GroupID),
		{Name: "an instance's provider ID", Size: longest, Most: driver.MaxID, Drop: func() {
			r.Instances = slices.DeleteFunc(slices.Clone(r.Instances), func(i machinepool.Instance) bool { return len(i.ProviderID) > driver.MaxID })
		}},
	}
}

// tidy sorts the instances by provider ID, removes those with a blank or repeated one, and reports whether
// it changed anything.
func (r *GetPoolStatusResponse) tidy() bool {
	last, fine := "", true
	for i := range r.Instances {
		id := r.Instances[i].ProviderID
		fine, last = fine && id > last && !blank(id), id
	}
	if fine {
		return false
	}
	sorted := slices.DeleteFunc(slices.Clone(r.Instances), func(i machinepool.Instance) bool { return blank(i.ProviderID) })
	slices.SortStableFunc(sorted, func(a, b machinepool.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	r.Instances = slices.CompactFunc(sorted, func(a, b machinepool.Instance) bool { return a.ProviderID == b.ProviderID })
	return true
}

// DeletePool implements Driver.
func (v *validated) DeletePool(ctx context.Context, req *DeletePoolRequest) (*Response, error) {
	return change(ctx, v, machinepool.DeletePool, req, nil, v.inner.DeletePool)
}

// DeleteInstances implements Driver.
func (v *validated) DeleteInstances(ctx context.Context, req *DeleteInstancesRequest) (*Response, error) {
	unfit := func() string { return anyBlank(req.ProviderIDs...) }
	return change(ctx, v, machinepool.DeleteInstances, req, unfit, v.inner.DeleteInstances)
}

// ReplaceInstance implements Driver.
func (v *validated) ReplaceInstance(ctx context.Context, req *ReplaceInstanceRequest) (*Response, error) {
	unfit := func() string { return anyBlank(req.ProviderID) }
	return change(ctx, v, machinepool.ReplaceInstance, req, unfit, v.inner.ReplaceInstance)
}

// InstancesDrained implements Driver.
func (v *validated) InstancesDrained(ctx context.Context, req *InstancesDrainedRequest) (*Response, error) {
	unfit := func() string { return anyBlank(req.ProviderIDs...) }
	return change(ctx, v, machinepool.InstancesDrained, req, unfit, v.inner.InstancesDrained)
}

// ListPools implements Lister.
func (v *validated) ListPools(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
	call := func(ctx context.Context, req *ListPoolsRequest) (*ListPoolsResponse, error) {
		return list(ctx, v.inner, req)
	}
	return validate(ctx, v, machinepool.ListPools, req, nil, call, driver.Validation[ListPoolsResponse]{
		Bounds: func(r *ListPoolsResponse) []driver.Bound { return r.list().Bounds() },
		Tidy:   func(r *ListPoolsResponse) bool { return r.list().DropBlank() },
	})
}

func (r *ListPoolsResponse) list() driver.List[object.Key] {
	return driver.List[object.Key]{
		ID: "a group ID", Owner: "a pool's name", Entries: &r.Groups, Dropped: &r.Dropped,
		Name: func(pool object.Key) string { return pool.Name },
		Texts: func(pool object.Key, each func(string) string) object.Key {
			return object.Key{Namespace: each(pool.Namespace), Name: each(pool.Name)}
		},
	}
}
