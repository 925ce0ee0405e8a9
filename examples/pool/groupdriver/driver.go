// Package groupdriver is a pool driver whose machines are processes of this computer, called agents.
// Each group has a supervisor, a process that runs as many agents as are wanted.
//
// A group's state is in a file (package group), so that a new driver knows as much as an earlier one,
// and several drivers at the same time do no harm. A pool has one group at a time. It is found by the
// pool's name; the recorded group ID is not used.
//
// Calls change the group's record, and ensure that the group has a supervisor. A status call changes
// nothing: it reports that the supervisor is gone, and does not start another one (see Revive).
package groupdriver

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// Driver makes groups. It takes the same classes as package procdriver. New makes it. It is safe for
// concurrent use.
type Driver struct{ host *Host }

var (
	_ pooldriver.Driver   = (*Driver)(nil)
	_ pooldriver.Featured = (*Driver)(nil)
)

// New returns a driver. It starts nothing.
func New(h *Host) *Driver { return &Driver{h} }

// PoolFeatures implements pooldriver.Featured: single agents can be removed and replaced, and an
// update keeps to the pool's bounds.
func (d *Driver) PoolFeatures() machinepool.Features {
	return machinepool.Features{DeleteInstances: true, ReplaceInstance: true, RollingUpdate: true}
}

// names matches the names of pools and namespaces that can be part of a file's name.
var names = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,198}[a-z0-9])?)?$`)

// target is the group that a call is about.
type target struct {
	dir  *group.Dir
	name string // of the group's record
	spec procdriver.Spec
}

// target returns the group that a request is about. It refuses invalid requests.
func (d *Driver) target(q *pooldriver.Request) (*target, error) {
	if q.Pool == nil || q.Pool.Name == "" {
		return nil, codes.New(codes.InvalidArgument, "the pool has no name")
	}
	for _, name := range []string{q.Pool.Name, q.Pool.Namespace} {
		if !names.MatchString(name) {
			return nil, codes.Newf(codes.InvalidArgument, "%q can't be the name of a file: lower-case letters, digits, '-' and '.' can", name)
		}
	}
	spec, err := procdriver.SpecOf(q.Class)
	if err != nil {
		return nil, err
	}
	return d.at(spec, Name(q.Pool.Key)), nil
}

// at returns the group of a name in the cluster of a spec.
func (d *Driver) at(spec procdriver.Spec, name string) *target {
	return &target{group.At(supervisor.Groups(d.host.options.Dir, spec.Cluster)), name, spec}
}

// Name returns the name of a pool's group in the records.
func Name(pool object.Key) string { return pool.Namespace + "_" + pool.Name }

// CreatePool implements pooldriver.Driver.
func (d *Driver) CreatePool(ctx context.Context, q *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	t, err := d.target(&q.Request)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failure(err, "the group was not made")
	}
	if err := t.dir.Make(); err != nil {
		return nil, failure(err, "the directory of cluster "+t.spec.Cluster+" can't be made")
	}
	return d.enter(ctx, t, func(g *group.Group) (*group.Group, error) {
		switch {
		case g == nil:
			g = &group.Group{
				ID: q.Pool.Name + "-" + strings.ToLower(rand.Text()[:8]), Target: int(q.Replicas), Spec: t.spec, Boot: userData(q.Bootstrap),
				Rolling: q.Pool.Clone().Spec.RollingUpdate,
			}
		case g.Deleting:
			return nil, codes.New(codes.Aborted, "a group of this name is being deleted")
		}
		return g, nil
	})
}

// change changes an existing group.
func (d *Driver) change(ctx context.Context, q *pooldriver.Request, change func(*target, *group.Group)) (*pooldriver.Response, error) {
	t, err := d.target(q)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failure(err, "the group was not changed")
	}
	if g, err := t.dir.Read(t.name); err != nil || g == nil {
		return nil, t.missing(err)
	}
	return d.enter(ctx, t, func(g *group.Group) (*group.Group, error) {
		if g == nil || g.Deleting {
			return nil, t.missing(nil)
		}
		change(t, g)
		return g, nil
	})
}

// missing returns the error of a call about a group that can't be read, or does not exist.
func (t *target) missing(err error) error {
	if err != nil {
		return failure(err, "the group's record can't be read")
	}
	return codes.Newf(codes.NotFound, "cluster %s has no group of this pool", t.spec.Cluster)
}

// enter changes the record, and ensures that the group has a supervisor.
func (d *Driver) enter(
	ctx context.Context, t *target, change func(*group.Group) (*group.Group, error),
) (*pooldriver.Response, error) {
	var id string
	err := t.dir.Change(ctx, t.name, func(g *group.Group) (*group.Group, error) {
		next, err := change(g)
		if next != nil {
			id = next.ID
		}
		return next, err
	})
	if err != nil {
		return nil, failure(err, "the group's record can't be changed")
	}
	if err := d.host.ensure(ctx, t); err != nil {
		return nil, err
	}
	return &pooldriver.Response{GroupID: id}, nil
}

// UpdatePool implements pooldriver.Driver. The supervisor replaces agents one by one, or within the
// pool's bounds. Failure domains are ignored: a computer is one.
func (d *Driver) UpdatePool(ctx context.Context, q *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return d.change(ctx, &q.Request, func(t *target, g *group.Group) {
		g.Spec, g.Boot, g.Rolling = t.spec, userData(q.Bootstrap), q.Pool.Clone().Spec.RollingUpdate
	})
}

// ScalePool implements pooldriver.Driver.
func (d *Driver) ScalePool(ctx context.Context, q *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return d.change(ctx, &q.Request, func(_ *target, g *group.Group) { g.Target = int(q.To) })
}

// DeleteInstances implements pooldriver.Driver.
func (d *Driver) DeleteInstances(ctx context.Context, q *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	return d.change(ctx, &q.Request, func(_ *target, g *group.Group) { g.Remove(q.ProviderIDs) })
}

// ReplaceInstance implements pooldriver.Driver.
func (d *Driver) ReplaceInstance(ctx context.Context, q *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	return d.change(ctx, &q.Request, func(_ *target, g *group.Group) { g.Replace(q.ProviderID) })
}

// InstancesDrained implements pooldriver.Driver.
func (d *Driver) InstancesDrained(ctx context.Context, q *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	return d.change(ctx, &q.Request, func(_ *target, g *group.Group) { g.Drained(q.ProviderIDs) })
}

// GetPoolStatus implements pooldriver.Driver.
func (d *Driver) GetPoolStatus(ctx context.Context, q *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
	t, err := d.target(&q.Request)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failure(err, "the group was not looked up")
	}
	g, err := t.dir.Read(t.name)
	if err != nil || g == nil {
		return nil, t.missing(err)
	}
	found, err := d.host.supervisor(t)
	if err != nil {
		return nil, failure(err, "the supervisors can't be looked up")
	}
	supervised := found != nil
	a := &pooldriver.GetPoolStatusResponse{GroupID: g.ID, Target: int32(g.Target), Ready: supervised, Failure: g.Trouble}
	if !supervised {
		a.Failure = "the supervisor of group " + g.ID + " is gone: nothing supervises its agents"
	}
	for _, m := range g.Members {
		if m.ProviderID != "" {
			a.Instances = append(a.Instances, machinepool.Instance{
				ProviderID: m.ProviderID, Terminating: m.Terminating, AwaitsDrain: m.DrainRequested && !m.Terminating,
			})
		}
	}
	return a, nil
}

// DeletePool implements pooldriver.Driver. It returns once every process of the group has ended.
func (d *Driver) DeletePool(ctx context.Context, q *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	t, err := d.target(&q.Request)
	if err != nil {
		return nil, err
	}
	return d.remove(ctx, t)
}

// remove deletes a group, and waits until it is gone.
func (d *Driver) remove(ctx context.Context, t *target) (*pooldriver.Response, error) {
	for {
		g, err := t.dir.Read(t.name)
		switch {
		case err != nil:
			return nil, failure(err, "the group's record can't be read")
		case g == nil:
			if err := d.host.await(ctx, t); err != nil {
				return nil, failure(err, "the supervisor is at its end")
			}
			return &pooldriver.Response{}, nil
		case ctx.Err() != nil:
			return nil, failure(ctx.Err(), "the agents of the group are ending")
		}
		if _, err := d.enter(ctx, t, markDeleting); err != nil {
			return nil, err
		}
		if err := roster.Pause(ctx); err != nil {
			return nil, failure(err, "the agents of the group are ending")
		}
	}
}

// markDeleting marks a group for deletion, if it still exists.
func markDeleting(g *group.Group) (*group.Group, error) {
	if g != nil {
		g.Deleting = true
	}
	return g, nil
}

// RequestDrain makes the provider remove an agent once it is reported as drained, as a provider may
// do before a repair. An agent that no group has is ignored.
func (d *Driver) RequestDrain(ctx context.Context, providerID string) error {
	return d.each(func(t *target) error {
		return t.dir.Change(ctx, t.name, func(g *group.Group) (*group.Group, error) {
			if g != nil {
				g.RequestDrain(providerID)
			}
			return g, nil
		})
	})
}

// Revive starts supervisors for the groups that have none, as the provider's operator would.
func (d *Driver) Revive(ctx context.Context) error {
	return d.each(func(t *target) error { return d.host.ensure(ctx, t) })
}

// Clear deletes every group, as the operator does when the provider is shut down.
func (d *Driver) Clear(ctx context.Context) error {
	return d.each(func(t *target) error {
		_, err := d.remove(ctx, t)
		return err
	})
}

// each calls the function do for the groups of all clusters, and joins the errors.
func (d *Driver) each(do func(*target) error) error {
	clusters, err := os.ReadDir(filepath.Dir(supervisor.Groups(d.host.options.Dir, "any")))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, cluster := range clusters {
		at := d.at(procdriver.Spec{Cluster: cluster.Name()}, "")
		names, failed := at.dir.Names()
		err = errors.Join(err, failed)
		for _, name := range names {
			err = errors.Join(err, do(&target{at.dir, name, at.spec}))
		}
	}
	return err
}

// userData returns the bootstrap data in a secret.
func userData(s *machine.Secret) []byte {
	if s == nil {
		return nil
	}
	return s.Data[machine.UserData]
}

// failure returns an error with the code of err. If err has none, the code is UNAVAILABLE, so that the
// call is retried.
func failure(err error, message string) error {
	code := codes.Of(err)
	if code == codes.Unknown {
		code = codes.Unavailable
	}
	return codes.Wrap(code, err, message)
}
