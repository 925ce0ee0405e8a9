package groups

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

var (
	_ pooldriver.Driver   = (*Provider)(nil)
	_ pooldriver.Featured = (*Provider)(nil)
	_ pooldriver.Lister   = (*Provider)(nil)
)

// admit returns the zone that the class of a call asks for, or an error if the call is refused.
func (p *Provider) admit(ctx context.Context, class *machine.Class, secret *machine.Secret) (zone string, err error) {
	if err := ctx.Err(); err != nil {
		return "", codes.Wrap(codes.Of(err), err, "the call was given up before it began")
	}
	if secret == nil || len(secret.Data) == 0 {
		return "", codes.New(codes.Unauthenticated, "the request has no credentials")
	}
	spec, err := p.account.Admit(class, secret)
	return spec.Size, err
}

// of returns the group that a request is about, or nil, and the zone that its class asks for.
func (p *Provider) of(ctx context.Context, r *pooldriver.Request) (g *Group, zone string, err error) {
	if r.Pool == nil || r.Pool.Name == "" {
		return nil, "", codes.New(codes.InvalidArgument, "the pool has no name")
	}
	if zone, err = p.admit(ctx, r.Class, r.Secret); err != nil {
		return nil, "", err
	}
	return p.all[r.Pool.Key], zone, nil
}

// missing returns the error of a call about a group that does not exist.
func missing(r *pooldriver.Request) error {
	return codes.Newf(codes.NotFound, "there is no group of pool %s", r.Pool.Name)
}

// change carries out a call that changes a group.
func (p *Provider) change(ctx context.Context, r *pooldriver.Request, do func(g *Group, zone string)) (*pooldriver.Response, error) {
	g, zone, err := p.of(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return nil, missing(r)
	case g.Deleting:
		return nil, errDeleting
	}
	do(g, zone)
	p.soon(g)
	return &pooldriver.Response{GroupID: g.ID, LastKnownState: "changed"}, nil
}

var errDeleting = codes.New(codes.Aborted, "the group is being deleted")

// CreatePool implements pooldriver.Driver.
func (p *Provider) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	existing, zone, err := p.of(ctx, &req.Request)
	switch {
	case err != nil:
		return nil, err
	case existing != nil && existing.Deleting:
		return nil, errDeleting
	case existing != nil:
		return &pooldriver.Response{GroupID: existing.ID}, nil
	case req.Bootstrap == nil && bootsFromData(req.Pool):
		return nil, codes.New(codes.InvalidArgument, "there is nothing to boot from")
	}
	p.number++
	made := &Group{
		ID: fmt.Sprint("group-", p.number), Pool: req.Pool.Key, Class: req.Class.Name, zone: zone, Target: req.Replicas, Made: p.world.Now(),
	}
	made.Rolling = req.Pool.Clone().Spec.RollingUpdate
	p.all[made.Pool] = made
	p.world.After(p.lag(), func() { made.ready = true })
	p.soon(made)
	p.sweep(made)
	return &pooldriver.Response{GroupID: made.ID, LastKnownState: "made"}, nil
}

// UpdatePool implements pooldriver.Driver.
func (p *Provider) UpdatePool(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return p.change(ctx, &req.Request, func(g *Group, zone string) {
		g.Class, g.zone, g.Rolling = req.Class.Name, zone, req.Pool.Clone().Spec.RollingUpdate
	})
}

// ScalePool implements pooldriver.Driver.
func (p *Provider) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return p.change(ctx, &req.Request, func(g *Group, _ string) { g.Target = req.To })
}

// GetPoolStatus implements pooldriver.Driver.
func (p *Provider) GetPoolStatus(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
	g, _, err := p.of(ctx, &req.Request)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, missing(&req.Request)
	}
	a := &pooldriver.GetPoolStatusResponse{
		GroupID: g.ID, Target: g.Target, Ready: g.ready && !g.Deleting && g.failure == "", Failure: g.failure,
	}
	for _, i := range g.Instances {
		a.Instances = append(a.Instances, i.Instance)
	}
	slices.SortFunc(a.Instances, func(a, b machinepool.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return a, nil
}

// DeletePool implements pooldriver.Driver. The group is gone when all its instances are.
func (p *Provider) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	g, _, err := p.of(ctx, &req.Request)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return &pooldriver.Response{}, nil
	case req.Pool.Status.GroupID != "" && req.Pool.Status.GroupID != g.ID:
		return &pooldriver.Response{}, nil // the group of the request is gone, and this is another one
	}
	g.Deleting = true
	p.soon(g)
	return nil, errDeleting
}

// DeleteInstances implements pooldriver.Driver.
func (p *Provider) DeleteInstances(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	if !p.options.Features.DeleteInstances {
		return nil, codes.New(codes.Unimplemented, "instances are not removed by name here")
	}
	return p.change(ctx, &req.Request, func(g *Group, _ string) {
		for _, id := range req.ProviderIDs {
			if i := g.Find(id); i != nil && !i.Terminating {
				i.Terminating = true
				g.Target = max(g.Target-1, 0) // the target may have been lowered meanwhile
			}
		}
	})
}

// ReplaceInstance implements pooldriver.Driver.
func (p *Provider) ReplaceInstance(ctx context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	if !p.options.Features.ReplaceInstance {
		return nil, codes.New(codes.Unimplemented, "instances are not replaced by name here")
	}
	return p.change(ctx, &req.Request, func(g *Group, _ string) {
		if i := g.Find(req.ProviderID); i != nil {
			i.Terminating = true
		}
	})
}

// InstancesDrained implements pooldriver.Driver.
func (p *Provider) InstancesDrained(ctx context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	return p.change(ctx, &req.Request, func(g *Group, _ string) {
		for _, id := range req.ProviderIDs {
			if i := g.Find(id); i != nil && i.AwaitsDrain {
				i.Terminating = true
			}
		}
	})
}

// PoolFeatures implements pooldriver.Featured.
func (p *Provider) PoolFeatures() machinepool.Features { return p.options.Features }

// ListPools implements pooldriver.Lister: there is one account for all classes.
func (p *Provider) ListPools(ctx context.Context, req *pooldriver.ListPoolsRequest) (*pooldriver.ListPoolsResponse, error) {
	if _, err := p.admit(ctx, req.Class, req.Secret); err != nil {
		return nil, err
	}
	all := make(map[string]object.Key, len(p.all))
	for key, g := range p.all {
		all[g.ID] = key
	}
	return &pooldriver.ListPoolsResponse{Groups: all}, nil
}

// bootsFromData reports whether a pool's instances boot from bootstrap data.
func bootsFromData(p *machinepool.Pool) bool {
	name := p.Spec.Template.Bootstrap.DataSecret
	return name != nil && *name != ""
}
