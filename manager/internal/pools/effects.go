package pools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/answer"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// verb returns whether an effect reads or changes something.
func verb(e machinepool.Effect) engine.Verb {
	switch e.(type) {
	case machinepool.ReadPool, machinepool.GetGroup:
		return engine.Read
	case machinepool.CreateGroup, machinepool.UpdateGroup, machinepool.ScaleGroup, machinepool.DeleteGroup,
		*machinepool.RemoveInstances, machinepool.ReplaceOne, *machinepool.ReportDrained, machinepool.RemoveBootstrap,
		machinepool.Renew, machinepool.RemoveToken, *machinepool.DrainNodes, *machinepool.KeepNodes:
	}
	return engine.Mutate
}

// changes returns what an effect would change.
func (p *pass) changes(e machinepool.Effect, pool string) []engine.Change {
	var call string
	switch e.(type) {
	case machinepool.CreateGroup:
		call = machinepool.CreatePool.String()
	case machinepool.UpdateGroup:
		call = machinepool.UpdatePool.String()
	case machinepool.ScaleGroup:
		call = machinepool.ScalePool.String()
	case *machinepool.RemoveInstances:
		call = machinepool.DeleteInstances.String()
	case machinepool.ReplaceOne:
		call = machinepool.ReplaceInstance.String()
	case *machinepool.ReportDrained:
		call = machinepool.InstancesDrained.String()
	case machinepool.DeleteGroup:
		call = machinepool.DeletePool.String()
	case machinepool.RemoveBootstrap:
		return []engine.Change{{What: "delete the bootstrap data of " + pool}}
	case machinepool.Renew:
		return []engine.Change{{What: "prolong the bootstrap token of " + pool}}
	case machinepool.RemoveToken:
		return []engine.Change{{What: "delete the bootstrap token of " + pool}}
	case *machinepool.DrainNodes, *machinepool.KeepNodes:
		return p.nodeChanges(e)
	case machinepool.ReadPool, machinepool.GetGroup:
	}
	if call == "" {
		return nil
	}
	return []engine.Change{{What: "call " + call + " for " + pool}}
}

// nodeChanges returns the change that an effect on nodes would make to the first node that exists.
func (p *pass) nodeChanges(e machinepool.Effect) []engine.Change {
	switch e := any(e).(type) { // of all effects, only these are about nodes
	case *machinepool.DrainNodes:
		for _, l := range e.Leaving {
			if n := p.o.Nodes[l.ProviderID]; n != nil {
				return []engine.Change{{What: "drain node " + n.Name}}
			}
		}
	case *machinepool.KeepNodes:
		for _, id := range e.ProviderIDs {
			if n := p.o.Nodes[id]; n != nil {
				return []engine.Change{{What: "take node " + n.Name + " into service again"}}
			}
		}
	}
	return nil
}

// do carries out an effect. A call that the provider answered with a request to wait counts as not made.
func (p *pass) do(ctx context.Context, e machinepool.Effect) error {
	before, call := p.o, p.calls()
	p.slowed = false
	err := p.carryOut(ctx, e)
	if p.slowed {
		p.restore(&before)
	}
	if call {
		p.turn = false
	}
	return err
}

func (p *pass) carryOut(ctx context.Context, e machinepool.Effect) (err error) {
	switch e := e.(type) {
	case machinepool.ReadPool:
		return p.readPool(ctx)
	case machinepool.GetGroup:
		return p.getGroup(ctx)
	case machinepool.CreateGroup, machinepool.UpdateGroup, machinepool.ScaleGroup,
		*machinepool.RemoveInstances, machinepool.ReplaceOne, *machinepool.ReportDrained:
		return p.change(ctx, e)
	case *machinepool.DrainNodes:
		p.o.Drain, err = p.drainNodes(ctx, e)
	case *machinepool.KeepNodes:
		p.o.Kept, err = p.keepNodes(ctx, e)
	case machinepool.DeleteGroup:
		p.o.GroupDeleted, err = p.deleteGroup(ctx)
	case machinepool.RemoveBootstrap:
		p.o.BootstrapDeleted, err = p.bootstrap(ctx, p.Bootstrap.Delete(ctx, p.o.Pool))
	case machinepool.Renew:
		err = p.renewToken(ctx, e.Until)
	case machinepool.RemoveToken:
		err = p.removeToken(ctx)
	default:
		err = fmt.Errorf("unknown effect %T", e)
	}
	return err
}

// readPool reads the pool live.
func (p *pass) readPool(ctx context.Context) error {
	pool, err := p.Pools.Live().Get(ctx, p.Key)
	switch {
	case err != nil:
		return engine.OwnNotFound(err)
	case pool.UID != p.o.Pool.UID:
		return engine.ErrReplaced
	}
	p.o.Pool, p.o.Fresh = pool, true
	return p.readNodes(ctx)
}

// request returns what all requests have in common, and the driver to call. If the class may not
// take its secret, that driver makes no call, and answers with the same error as for machines.
func (p *pass) request(ctx context.Context) (pooldriver.Request, pooldriver.Driver, error) {
	secret, err := p.secrets.Merged(ctx, p.o.Class)
	d := p.Driver
	if refusal := err; errors.Is(err, secrets.ErrNamespace) {
		d = pooldriver.Intercept(d, func(context.Context, driver.CallInfo, func(context.Context) error) error { return refusal })
		err = nil
	}
	return pooldriver.Request{Pool: p.o.Pool.Clone(), Class: p.o.Class.Clone(), Secret: secret}, d, err
}

// noteAnswer notes how a call ended, and returns its answer.
func (p *pass) noteAnswer(ctx context.Context, began time.Time, r *pooldriver.Response, err error) (*machinepool.Group, error) {
	if p.Paces.Note(p.o.Class, err, began, p.Now()) > 0 {
		p.slowed = true
	}
	return groupAnswer(ctx, r, err)
}

// groupAnswer turns a driver's answer into an observation. When the pass's own context has ended,
// nothing is concluded from a failure.
func groupAnswer(ctx context.Context, r *pooldriver.Response, err error) (*machinepool.Group, error) {
	if err := engine.Interrupted(ctx, err); err != nil {
		return nil, err
	}
	g := &machinepool.Group{Outcome: answer.Of(err)}
	if r != nil {
		g.ID, g.LastKnown = r.GroupID, r.LastKnownState
	}
	return g, nil
}

func (p *pass) getGroup(ctx context.Context) error {
	base, d, err := p.request(ctx)
	if err != nil {
		return err
	}
	now := p.Now()
	got, err := d.GetPoolStatus(p.callContext(ctx), &pooldriver.GetPoolStatusRequest{Request: base})
	g, failed := p.noteAnswer(ctx, now, nil, err)
	if failed != nil || p.slowed {
		return failed
	}
	g.At = now
	if got != nil {
		g.ID, g.Target, g.Instances, g.Ready = got.GroupID, got.Target, got.Instances, got.Ready
		g.Failure, g.LastKnown = got.Failure, got.LastKnownState
	}
	p.o.Memory.See(p.o.Pool, g)
	p.o.Group, p.o.Looked = g, true
	p.groups.Store(p.Key, seenGroup{uid: p.o.Pool.UID, group: g})
	return nil
}

// change makes a call that changes the group. First it drops what was known of the group.
func (p *pass) change(ctx context.Context, e machinepool.Effect) error {
	base, d, err := p.request(ctx)
	if err != nil {
		return err
	}
	p.o.Group = nil
	p.groups.Delete(p.Key)
	began := p.Now()
	switch e := e.(type) {
	case machinepool.CreateGroup:
		p.o.Created, err = p.createGroup(ctx, d, base, e.Replicas)
	case machinepool.UpdateGroup:
		p.o.Updated, err = p.updateGroup(ctx, d, base)
	case machinepool.ScaleGroup:
		r, failed := d.ScalePool(p.callContext(ctx), &pooldriver.ScalePoolRequest{Request: base, To: e.To})
		p.o.Scaled, err = p.noteAnswer(ctx, began, r, failed)
	case *machinepool.RemoveInstances:
		r, failed := d.DeleteInstances(p.callContext(ctx), &pooldriver.DeleteInstancesRequest{Request: base, ProviderIDs: e.ProviderIDs})
		p.o.Deleted, err = p.noteAnswer(ctx, began, r, failed)
	case machinepool.ReplaceOne:
		r, failed := d.ReplaceInstance(p.callContext(ctx), &pooldriver.ReplaceInstanceRequest{Request: base, ProviderID: e.ProviderID})
		p.o.Replaced, err = p.noteAnswer(ctx, began, r, failed)
	case *machinepool.ReportDrained:
		r, failed := d.InstancesDrained(p.callContext(ctx), &pooldriver.InstancesDrainedRequest{Request: base, ProviderIDs: e.ProviderIDs})
		p.o.Reported, err = p.noteAnswer(ctx, began, r, failed)
	case machinepool.ReadPool, machinepool.GetGroup, machinepool.DeleteGroup, machinepool.RemoveBootstrap, machinepool.Renew,
		machinepool.RemoveToken, *machinepool.DrainNodes, *machinepool.KeepNodes:
		err = fmt.Errorf("effect %T changes no group", e)
	}
	return err
}

func (p *pass) createGroup(ctx context.Context, d pooldriver.Driver, base pooldriver.Request, n int32) (*machinepool.Group, error) {
	data, err := p.data(ctx)
	if err != nil {
		return groupAnswer(ctx, nil, err)
	}
	began := p.Now()
	r, err := d.CreatePool(p.callContext(ctx), &pooldriver.CreatePoolRequest{Request: base, Replicas: n, Bootstrap: data})
	return p.noteAnswer(ctx, began, r, err)
}

func (p *pass) updateGroup(ctx context.Context, d pooldriver.Driver, base pooldriver.Request) (*machinepool.Group, error) {
	data, err := p.data(ctx)
	if err != nil {
		return groupAnswer(ctx, nil, err)
	}
	began := p.Now()
	r, err := d.UpdatePool(p.callContext(ctx), &pooldriver.UpdatePoolRequest{Request: base, Bootstrap: data})
	return p.noteAnswer(ctx, began, r, err)
}

func (p *pass) deleteGroup(ctx context.Context) (*machinepool.Group, error) {
	base, d, err := p.request(ctx)
	if err != nil {
		return nil, err
	}
	p.o.Group = nil
	p.groups.Delete(p.Key)
	began := p.Now()
	r, err := d.DeletePool(p.callContext(ctx), &pooldriver.DeletePoolRequest{Request: base})
	return p.noteAnswer(ctx, began, r, err)
}

// drainNodes continues the drains of instances that are to be removed, one after the other:
// no call waits for a pod. A node whose drain fails does not count as drained, and is tried again.
func (p *pass) drainNodes(ctx context.Context, e *machinepool.DrainNodes) (*machinepool.DrainAnswer, error) {
	drained := &machinepool.DrainAnswer{}
	for _, l := range e.Leaving {
		n := p.o.Nodes[l.ProviderID]
		if n == nil {
			continue
		}
		got, err := p.Drainer.Drain(ctx, p.standIn(n), &machine.DrainNode{
			Node: n, Since: l.Since, Until: l.Since.Add(p.Policy.DrainTimeout),
		})
		switch {
		case errors.Is(err, store.ErrConflict) || engine.Interrupted(ctx, err) != nil:
			return nil, errors.Join(err, ctx.Err())
		case err != nil:
			got.Why = "node " + n.Name + " could not be drained: " + codes.Message(err)
		case got.Code != codes.OK:
			got.Why = "node " + n.Name + " could not be drained: " + got.Message
		}
		if got.Done {
			drained.Done = append(drained.Done, l.ProviderID)
			continue
		}
		drained.Detail = strings.TrimPrefix(drained.Detail+"; "+got.Why, "; ")
		if !got.At.IsZero() && (drained.At.IsZero() || got.At.Before(drained.At)) {
			drained.At = got.At
		}
	}
	return drained, nil
}

// standIn returns a machine for the drainer, since an instance of a pool has none.
func (p *pass) standIn(n *machine.Node) *machine.Machine {
	return &machine.Machine{
		Meta: object.Meta{Key: p.Key, UID: p.o.Pool.UID},
		Spec: machine.Spec{ProviderID: n.ProviderID, NodeName: n.Name},
	}
}

// keepNodes takes nodes into service again.
func (p *pass) keepNodes(ctx context.Context, e *machinepool.KeepNodes) (*machine.Outcome, error) {
	for _, id := range e.ProviderIDs {
		n := p.o.Nodes[id]
		if n == nil {
			continue
		}
		done, err := p.Keeper.Keep(ctx, n)
		switch {
		case errors.Is(err, store.ErrConflict) || engine.Interrupted(ctx, err) != nil:
			return nil, errors.Join(err, ctx.Err())
		case err != nil:
			return &machine.Outcome{Code: engine.CodeOf(err), Message: codes.Message(err)}, nil
		case !done:
			return &machine.Outcome{Code: codes.Aborted, Message: "its drain could not be undone yet"}, nil
		}
	}
	return &machine.Outcome{}, nil
}
