package machines

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// turnGrace is how long a turn is held before its update shows in the cache;
// pausedRetry is how soon a machine of a paused deployment asks again.
const (
	turnGrace   = time.Minute
	pausedRetry = time.Minute
)

// turns limits how many VMs of a fleet are updated at a time. What it counts is
// in the machines too: a process that is new reads it from its cache once, so
// that right after a start a few more may be under way. That costs a provider
// some calls, and no machine anything.
type turns struct {
	mu     sync.Mutex
	fleets map[string]map[object.Key]turn // by UID of the deployment, or of a set without one
}

type turn struct {
	uid   string // of the machine
	since time.Time
	want  machine.VMSpec // what the VM is updated to
}

// group is what shares a limit.
type group struct {
	uid, name string
	replicas  int32
	paused    bool
	sets      []*machineset.Set
}

// askUpdate finds out whether the machine's VM may be updated now.
func (p *pass) askUpdate(ctx context.Context) (*machine.UpdateTurn, error) {
	f, err := p.fleetOf(ctx, p.o.Machine)
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return &machine.UpdateTurn{Allowed: true}, nil
	case f.paused:
		return &machine.UpdateTurn{Detail: "deployment " + f.name + " is paused", At: p.Now().Add(pausedRetry)}, nil
	}
	limit := p.UpdateLimit(f.replicas)
	return p.turns.take(ctx, p, f, limit)
}

// fleetOf is the fleet that a machine belongs to, as far as the caches know;
// nil: none.
func (r *reconciler) fleetOf(ctx context.Context, m *machine.Machine) (*group, error) {
	if r.Sets == nil || m.Owner == nil || m.Owner.Kind != machineset.OwnerKind {
		return nil, nil //nolint:nilnil // it is alone
	}
	set, err := r.Sets.Get(ctx, object.Key{Namespace: m.Namespace, Name: m.Owner.Name})
	if errors.Is(err, store.ErrNotFound) || err == nil && set.UID != m.Owner.UID {
		return nil, nil //nolint:nilnil // it is alone
	}
	if err != nil {
		return nil, err
	}
	lone := &group{uid: set.UID, name: set.Name, replicas: set.Spec.Replicas, sets: []*machineset.Set{set}}
	if r.Deployments == nil || set.Owner == nil || set.Owner.Kind != deployment.OwnerKind {
		return lone, nil
	}
	d, err := r.Deployments.Get(ctx, object.Key{Namespace: m.Namespace, Name: set.Owner.Name})
	if errors.Is(err, store.ErrNotFound) || err == nil && d.UID != set.Owner.UID {
		return lone, nil
	}
	if err != nil {
		return nil, err
	}
	sets, err := r.Sets.List(ctx, index.OwnedBy(d.UID))
	return &group{uid: d.UID, name: d.Name, replicas: d.Spec.Replicas, paused: d.Spec.Paused, sets: sets}, err
}

// take takes a turn, or says what it waits for. A VM whose update has begun has
// one. Only caches are read meanwhile.
func (t *turns) take(ctx context.Context, p *pass, f *group, limit int) (*machine.UpdateTurn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fleets == nil {
		t.fleets = make(map[string]map[object.Key]turn)
	}
	taken := t.fleets[f.uid]
	if taken == nil {
		var err error
		if taken, err = p.underWay(ctx, f); err != nil {
			return nil, err
		}
		t.fleets[f.uid] = taken
	}
	for key, held := range taken {
		if key == p.Key && held.uid == p.o.Machine.UID {
			taken[key] = turn{held.uid, p.Now(), *p.o.VMSpec}
			return &machine.UpdateTurn{Allowed: true}, nil
		}
		if !p.updating(ctx, key, held, p.Now()) {
			delete(taken, key)
		}
	}
	if len(taken) >= limit {
		return &machine.UpdateTurn{Detail: fmt.Sprintf("no more than %d of %s at a time", limit, f.name)}, nil
	}
	taken[p.Key] = turn{p.o.Machine.UID, p.Now(), *p.o.VMSpec}
	return &machine.UpdateTurn{Allowed: true}, nil
}

// underWay are the turns of updates that others have begun.
func (r *reconciler) underWay(ctx context.Context, f *group) (map[object.Key]turn, error) {
	taken := make(map[object.Key]turn)
	for _, set := range f.sets {
		all, err := r.Machines.List(ctx, index.OwnedBy(set.UID))
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if m.Status.VMSpec.Begun != "" {
				taken[m.Key] = turn{uid: m.UID}
			}
		}
	}
	return taken, nil
}

// updating reports whether a machine that holds a turn is still being updated, or
// may be. One that is on its way out is not, nor one that is to be judged by its
// health.
func (r *reconciler) updating(ctx context.Context, key object.Key, held turn, now time.Time) bool {
	m, err := r.Machines.Get(ctx, key)
	if err != nil || m.UID != held.uid || m.Deleted() {
		return false
	}
	op := &m.Status.LastOperation
	shown := now.Sub(held.since) >= turnGrace // by any cache: what has come of it
	before := func(t time.Time) bool { return !shown && t.Before(held.since.Truncate(time.Second)) }
	switch {
	case !m.Ready():
		return before(m.Status.Since)
	case op.Kind == machine.OperationUpdate && op.State == machine.StateFailed && machine.NeverUpdated(op.Code):
		return before(op.Time)
	}
	return m.Status.VMSpec.Begun != "" || m.Status.VMSpec != held.want && !shown
}
