package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// groupDriver is the driver of the simulated provider of groups.
type groupDriver struct{ *groupController }

// of is the group that a request is about. Any program that asks without credentials gets
// no answer.
func (g groupDriver) of(r *pooldriver.Request) (*group, error) {
	if r.Secret == nil || len(r.Secret.Data) == 0 {
		return nil, codes.New(codes.Unauthenticated, "the request has no credentials")
	}
	group := g.all[r.Pool.Key]
	if group == nil {
		return nil, codes.Newf(codes.NotFound, "there is no group of pool %s", r.Pool.Name)
	}
	return group, nil
}

// change carries out a call that changes a group.
func (g groupDriver) change(r *pooldriver.Request, do func(*group)) (*pooldriver.Response, error) {
	group, err := g.of(r)
	if err != nil {
		return nil, err
	}
	if group.going {
		return nil, codes.New(codes.Aborted, "the group is being deleted")
	}
	do(group)
	g.soon(group)
	return &pooldriver.Response{GroupID: group.id, LastKnownState: "changed"}, nil
}

// CreatePool implements pooldriver.Driver.
func (g groupDriver) CreatePool(_ context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	there, err := g.of(&req.Request)
	switch {
	case err == nil && there.going:
		return nil, codes.New(codes.Aborted, "the group is being deleted")
	case err == nil:
		return &pooldriver.Response{GroupID: there.id}, nil
	case codes.Of(err) != codes.NotFound:
		return nil, err
	case req.Bootstrap == nil && needsData(req.Pool):
		return nil, codes.New(codes.InvalidArgument, "there is nothing to boot from")
	}
	g.number++
	made := &group{
		id: fmt.Sprint("group-", g.number), pool: req.Pool.Key, class: req.Class.Name, target: req.Replicas, made: g.Now(),
	}
	g.all[made.pool] = made
	g.After(g.lag(), func() { made.ready = true })
	g.soon(made)
	g.sweep(made)
	return &pooldriver.Response{GroupID: made.id, LastKnownState: "made"}, nil
}

// UpdatePool implements pooldriver.Driver.
func (g groupDriver) UpdatePool(_ context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return g.change(&req.Request, func(group *group) { group.class = req.Class.Name })
}

// ScalePool implements pooldriver.Driver.
func (g groupDriver) ScalePool(_ context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return g.change(&req.Request, func(group *group) { group.target = req.To })
}

// GetPoolStatus implements pooldriver.Driver.
func (g groupDriver) GetPoolStatus(_ context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
	group, err := g.of(&req.Request)
	if err != nil {
		return nil, err
	}
	a := &pooldriver.GetPoolStatusResponse{
		GroupID: group.id, Target: group.target, Ready: group.ready && !group.going && group.failure == "", Failure: group.failure,
	}
	for _, i := range group.instances {
		a.Instances = append(a.Instances, i.Instance)
	}
	slices.SortFunc(a.Instances, func(a, b machinepool.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return a, nil
}

// DeletePool implements pooldriver.Driver. A group is gone after its instances.
func (g groupDriver) DeletePool(_ context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	group, err := g.of(&req.Request)
	switch {
	case codes.Of(err) == codes.NotFound:
		return &pooldriver.Response{}, nil
	case err != nil:
		return nil, err
	case req.Pool.Status.GroupID != "" && req.Pool.Status.GroupID != group.id:
		return &pooldriver.Response{}, nil // that one is gone
	}
	group.going = true
	g.soon(group)
	return nil, codes.New(codes.Aborted, "the group is being deleted")
}

// DeleteInstances implements pooldriver.Driver.
func (g groupDriver) DeleteInstances(_ context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	if !g.options.Features.DeleteInstances {
		return nil, codes.New(codes.Unimplemented, "instances are not removed by name here")
	}
	return g.change(&req.Request, func(group *group) {
		for _, id := range req.ProviderIDs {
			if i := group.find(id); i != nil && !i.Going {
				i.Going = true
				group.target = max(group.target-1, 0) // somebody may have lowered it meanwhile
			}
		}
	})
}

// ReplaceInstance implements pooldriver.Driver.
func (g groupDriver) ReplaceInstance(_ context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	if !g.options.Features.ReplaceInstance {
		return nil, codes.New(codes.Unimplemented, "instances are not replaced by name here")
	}
	return g.change(&req.Request, func(group *group) {
		if i := group.find(req.ProviderID); i != nil {
			i.Going = true
		}
	})
}

// InstancesDrained implements pooldriver.Driver.
func (g groupDriver) InstancesDrained(_ context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	return g.change(&req.Request, func(group *group) {
		for _, id := range req.ProviderIDs {
			if i := group.find(id); i != nil && i.AwaitsDrain {
				i.Going = true
			}
		}
	})
}

// PoolFeatures implements pooldriver.Featured.
func (g groupDriver) PoolFeatures() machinepool.Features { return g.options.Features }

// ListPools implements pooldriver.Lister: there is one account for all classes.
func (g groupDriver) ListPools(_ context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
	if req.Secret == nil || len(req.Secret.Data) == 0 {
		return nil, codes.New(codes.Unauthenticated, "the request has no credentials")
	}
	all := make(map[string]object.Key, len(g.all))
	for key, group := range g.all {
		all[group.id] = key
	}
	return &pooldriver.ListPoolsResponse{Groups: all}, nil
}
