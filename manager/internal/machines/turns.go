package machines

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/backoff"
	"github.com/millwright-go/millwright/store"
)

// turns limits how many VMs of a fleet are updated at a time. A new process reads from its
// cache which updates are under way, so right after a start there may be a few more. That costs
// a provider some calls, and harms no machine.
type turns struct {
	mu     sync.Mutex
	fleets map[string]*engine.Permits[turn] // by UID of the deployment, or of a set without one
}

// turn is a permit to update a VM, by the UID of its machine.
type turn struct {
	key   object.Key
	since time.Time
	want  machine.VMSpec // what the VM is updated to
}

// of returns the turns of a fleet.
func (t *turns) of(fleet string) *engine.Permits[turn] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fleets == nil {
		t.fleets = make(map[string]*engine.Permits[turn])
	}
	if t.fleets[fleet] == nil {
		t.fleets[fleet] = new(engine.Permits[turn])
	}
	return t.fleets[fleet]
}

// turnGrace is how long a turn is held before its update shows in the cache;
// pausedRetry is how soon a machine of a paused deployment asks again.
const (
	turnGrace   = time.Minute
	pausedRetry = time.Minute
)

// group is a fleet whose machines share a limit.
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
	return p.takeTurn(ctx, f, p.UpdateLimit(f.replicas))
}

// fleetOf returns the fleet that a machine belongs to, as far as the caches know;
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

// takeTurn takes a turn, or says what it waits for. A VM whose update has begun has a turn already.
func (p *pass) takeTurn(ctx context.Context, f *group, limit int) (*machine.UpdateTurn, error) {
	given, err := p.turns.of(f.uid).Take(&engine.Ask[turn]{
		ID: p.o.Machine.UID, Limit: limit, Holder: turn{p.Key, p.Now(), *p.o.VMSpec}, Again: true,
		Read: func() (map[string]engine.Permit[turn], error) { return p.underWay(ctx, f) },
		Uses: func(uid string, held turn) bool { return p.updating(ctx, uid, held, p.Now()) },
	})
	switch {
	case err != nil:
		return nil, err
	case given:
		return &machine.UpdateTurn{Allowed: true}, nil
	}
	return &machine.UpdateTurn{Detail: fmt.Sprintf("no more than %d of %s at a time", limit, f.name)}, nil
}

// underWay returns the turns of the updates that have begun.
func (r *reconciler) underWay(ctx context.Context, f *group) (map[string]engine.Permit[turn], error) {
	taken := make(map[string]engine.Permit[turn])
	for _, set := range f.sets {
		all, err := r.Machines.List(ctx, index.OwnedBy(set.UID))
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if m.Status.VMSpec.Begun != "" {
				taken[m.UID] = engine.Permit[turn]{Holder: turn{key: m.Key}}
			}
		}
	}
	return taken, nil
}

// updating reports whether a machine that holds a turn is still being updated, or may be. A machine that is
// being deleted, or has become unhealthy, gives its turn back.
func (r *reconciler) updating(ctx context.Context, uid string, held turn, now time.Time) bool {
	m, err := r.Machines.Get(ctx, held.key)
	if err != nil || m.UID != uid || m.Deleted() {
		return false
	}
	op := &m.Status.LastOperation
	shown := now.Sub(held.since) >= turnGrace // by now, every cache shows the update
	before := func(t time.Time) bool { return !shown && t.Before(held.since.Truncate(time.Second)) }
	switch {
	case !m.Ready():
		return before(m.Status.Since)
	case op.Kind == machine.OperationUpdate && op.State == machine.StateFailed && machine.NeverUpdated(op.Code):
		return before(op.Time)
	}
	return m.Status.VMSpec.Begun != "" || m.Status.VMSpec != held.want && !shown
}

// classBackoff returns the backoff of the machine's class; nil: no create has to wait.
func (p *pass) classBackoff() *machine.ClassBackoff {
	if p.Safety == nil || p.o.Class == nil || p.o.Machine.Spec.ProviderID != "" {
		return nil
	}
	slowed, _ := p.Backoff.Of(p.o.Class.Key).Slowed(p.o.Class, p.inputs(), p.Now())
	return slowed
}

// inputs returns the inputs that all machines of the class share.
func (p *pass) inputs() machine.Inputs {
	return machine.Inputs{Class: p.o.Class.Generation, Secret: p.o.Secret}
}

func (p *pass) askCreate() *machine.CreatePermit {
	return p.Backoff.ask(p.Key, p.o.Class.Key, func(c backoff.State) (backoff.State, machine.CreatePermit) {
		return c.Ask(p.Key, p.inputs(), p.Safety, p.Now())
	})
}

// noteCreate notes the answer to the machine's create.
func (p *pass) noteCreate(code codes.Code) {
	if p.Safety == nil {
		return
	}
	p.Backoff.note(p.o.Class.Key, code, func(c backoff.State) backoff.State {
		return c.Answer(p.Key, p.inputs(), code, p.Safety, p.Policy.CreationTimeout, p.Now())
	})
}
