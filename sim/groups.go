package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// PoolOptions say how the provider provides the groups of a world's pools. The zero value is a
// provider without optional calls that does everything at once.
type PoolOptions struct {
	// Features are what the simulated driver of groups declares.
	Features machinepool.Features
	// Lag is the longest time until the next instance is added or removed, and until a new group
	// works.
	Lag time.Duration
	// Asks is the probability, from 0 to 1, that the provider requests a drain before it removes an
	// instance. It then waits for an hour to be told that the drain is done.
	Asks float64
}

// groups is the simulated provider of groups, and the driver for it. A group belongs to its pool by
// the pool's key, as names are unique in an account.
type groups struct {
	w      *World
	all    map[object.Key]*group
	number int
	silent time.Time // until then no call is answered
}

type group struct {
	id        string
	pool      object.Key
	class     string // that instances are made from
	target    int32
	instances []*instance // oldest first
	made      time.Time
	ready     bool
	failure   string // empty: it works
	going     bool
	planned   bool      // a look at it is scheduled
	resized   time.Time // when something other than the manager changed the target
	looked    time.Time // when a process last read its status
	backSince time.Time // when the status was last read again after a while without a read
}

type instance struct {
	machinepool.Instance
	name  string // of its node
	class string
	ill   time.Time // since when its node was seen not to be ready; zero: it is ready
	asked time.Time // since when the provider waits for its drain
}

// sorted returns all groups, in the order of their keys.
func (g *groups) sorted() []*group {
	return slices.SortedFunc(maps.Values(g.all), func(a, b *group) int { return compareKeys(a.pool, b.pool) })
}

// instance returns the instance of that ID and its group, or nil.
func (g *groups) instance(id string) (*group, *instance) {
	for _, group := range g.all {
		if i := group.find(id); i != nil {
			return group, i
		}
	}
	return nil, nil
}

func (g *group) find(id string) *instance {
	for _, i := range g.instances {
		if i.ProviderID == id {
			return i
		}
	}
	return nil
}

// staying returns the instances that are not being removed.
func (g *group) staying() (out []*instance) {
	for _, i := range g.instances {
		if !i.Going {
			out = append(out, i)
		}
	}
	return out
}

// count returns how many instances there are in all groups together.
func (g *groups) count() (n int) {
	for _, group := range g.all {
		n += len(group.instances)
	}
	return n
}

// of is the group that a request is about. Any program that asks without credentials gets
// no answer.
func (g *groups) of(r *pooldriver.Request) (*group, error) {
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
func (g *groups) change(r *pooldriver.Request, do func(*group)) (*pooldriver.Response, error) {
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
func (g *groups) CreatePool(_ context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
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
		id: fmt.Sprint("group-", g.number), pool: req.Pool.Key, class: req.Class.Name, target: req.Replicas, made: g.w.clock.now,
	}
	g.all[made.pool] = made
	g.w.clock.after(g.lag(), func() { made.ready = true })
	g.soon(made)
	g.sweep(made)
	return &pooldriver.Response{GroupID: made.id, LastKnownState: "made"}, nil
}

// needsData reports whether a pool's machines boot from bootstrap data.
func needsData(p *machinepool.Pool) bool {
	name := p.Spec.Template.Bootstrap.DataSecret
	return name != nil && *name != ""
}

// UpdatePool implements pooldriver.Driver.
func (g *groups) UpdatePool(_ context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return g.change(&req.Request, func(group *group) { group.class = req.Class.Name })
}

// ScalePool implements pooldriver.Driver.
func (g *groups) ScalePool(_ context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return g.change(&req.Request, func(group *group) { group.target = req.To })
}

// GetPoolStatus implements pooldriver.Driver.
func (g *groups) GetPoolStatus(_ context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
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
func (g *groups) DeletePool(_ context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
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
func (g *groups) DeleteInstances(_ context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	if !g.w.o.Pools.Features.DeleteInstances {
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
func (g *groups) ReplaceInstance(_ context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	if !g.w.o.Pools.Features.ReplaceInstance {
		return nil, codes.New(codes.Unimplemented, "instances are not replaced by name here")
	}
	return g.change(&req.Request, func(group *group) {
		if i := group.find(req.ProviderID); i != nil {
			i.Going = true
		}
	})
}

// InstancesDrained implements pooldriver.Driver.
func (g *groups) InstancesDrained(_ context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	return g.change(&req.Request, func(group *group) {
		for _, id := range req.ProviderIDs {
			if i := group.find(id); i != nil && i.AwaitsDrain {
				i.Going = true
			}
		}
	})
}

// PoolFeatures implements pooldriver.Featured.
func (g *groups) PoolFeatures() machinepool.Features { return g.w.o.Pools.Features }

// ListPools implements pooldriver.Lister: there is one account for all classes.
func (g *groups) ListPools(_ context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
	if req.Secret == nil || len(req.Secret.Data) == 0 {
		return nil, codes.New(codes.Unauthenticated, "the request has no credentials")
	}
	all := make(map[string]object.Key, len(g.all))
	for key, group := range g.all {
		all[group.id] = key
	}
	return &pooldriver.ListPoolsResponse{Groups: all}, nil
}
