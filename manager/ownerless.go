package manager

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// ownerless deletes machines and sets whose owner is gone. Its memory may be
// lost: then they are seen anew.
type ownerless struct {
	*shell
	memo memo

	began, looked time.Time
	sightings     []safety.Bereft
	spent         []safety.Spent
}

func newOwnerless(s *shell) *ownerless { return &ownerless{shell: s} }

// Kind implements Reconciler.
func (r *ownerless) Kind() Kind { return KindOwnerless }

// Reconcile implements Reconciler.
func (r *ownerless) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	return r.reconcile(ctx, KindOwnerless, key, &r.memo, func(*engine.Pass) pass { return &ownerlessPass{ownerless: r, key: key} })
}

// ownerlessPass is one pass over all machines and sets.
type ownerlessPass struct {
	*ownerless
	key object.Key
	o   safety.OwnerlessObservation
}

// observe reads the caches: what these make one do is looked at live first.
func (p *ownerlessPass) observe(ctx context.Context, _ bool) error {
	if p.began.IsZero() {
		p.began = p.Now()
	}
	p.o = safety.OwnerlessObservation{
		NoDeployments: p.Deployments == nil, Looked: p.looked, Began: p.began,
		Sightings: p.sightings, Spent: p.spent, Ordered: make(map[string]bool),
	}
	return p.read(ctx, false)
}

// read reads what may be owned before what may own it.
func (p *ownerlessPass) read(ctx context.Context, live bool) (err error) {
	if p.o.Machines, err = all(ctx, p.Machines, live); err != nil {
		return err
	}
	if p.o.Sets, err = all(ctx, p.Sets, live); err != nil || p.Deployments == nil {
		return err
	}
	p.o.Deployments, err = all(ctx, p.Deployments, live)
	return err
}

func all[T object.Object[T]](ctx context.Context, c store.Collection[T], live bool) ([]T, error) {
	if live {
		return c.Live().List(ctx, store.Query{})
	}
	return c.List(ctx, store.Query{})
}

func (p *ownerlessPass) step(ctx context.Context) (Result, bool, error) {
	p.o.Frozen = p.frozen()
	plan, err := safety.DecideOwnerless(&p.o, p.SafetyPolicy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	p.sightings, p.o.Sightings = plan.Sightings, plan.Sightings
	p.spent, p.o.Spent = plan.Spent, plan.Spent
	for _, why := range plan.Warn {
		p.tell(ctx, &p.memo, KindOwnerless, p.key, Warning, why)
	}
	switch {
	case plan.Read:
		err = p.timed(KindOwnerless, p.key, "ReadAll", func() error {
			began := p.Now()
			if err := p.read(ctx, true); err != nil {
				return err
			}
			p.looked, p.o.Looked, p.o.Read = began, began, p.since(began)
			return nil
		})
	case len(plan.Delete) > 0:
		err = p.remove(ctx, plan.Delete)
	default:
		return p.lookFor(p.o.Frozen, plan.At, plan.Why), true, nil
	}
	return Result{}, false, err
}

// remove deletes what has lost its owner, each if that is still so just before.
func (p *ownerlessPass) remove(ctx context.Context, orders []safety.DeleteOwnerless) error {
	failed := make([]error, len(orders))
	p.Each(ctx, len(orders), func(i int) {
		failed[i] = p.timed(KindOwnerless, p.key, "DeleteOwnerless", func() error {
			if orders[i].Set {
				return removeOne(ctx, p, &orders[i], p.Sets, p.Deployments.Live())
			}
			return removeOne(ctx, p, &orders[i], p.Machines, p.Sets.Live())
		})
	})
	for i := range orders {
		p.o.Ordered[orders[i].UID] = true
	}
	return errors.Join(failed...)
}

func removeOne[T object.Object[T], O object.Object[O]](
	ctx context.Context, p *ownerlessPass, order *safety.DeleteOwnerless, children store.Collection[T], owners store.Reader[O],
) error {
	child, err := metaOf(children.Live().Get(ctx, order.Key))
	if err != nil {
		return err
	}
	owner, err := metaOf(owners.Get(ctx, object.Key{Namespace: order.Key.Namespace, Name: order.Owner.Name}))
	if err != nil || !order.StillOwnerless(child, owner) {
		return err
	}
	orderedFor(ctx, p.shell, order.Key, order.Why)
	err = children.Delete(ctx, order.Key, order.UID)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
		return nil // that one is gone
	}
	if err == nil {
		p.tell(ctx, nil, KindOwnerless, p.key, Normal, order.Why)
	}
	return err
}

// metaOf is the metadata of what was read; nil: there is none.
func metaOf[T object.Object[T]](o T, err error) (*object.Meta, error) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil //nolint:nilnil // it is gone
	case err != nil:
		return nil, err
	}
	return o.ObjectMeta(), nil
}

// ownerlessWakes have owners looked for when something is seen first whose owner
// the cache does not know.
func (o *Options) ownerlessWakes() []Wake {
	if o.Sets == nil {
		return nil
	}
	wakes := []Wake{{From: KindMachine, To: KindOwnerless, Settle: o.Settle, Keys: func(ctx context.Context, old, new any) []object.Key {
		a, b := both[*machine.Machine](old, new)
		if a != nil || b == nil {
			return nil
		}
		return strayed(ctx, &b.Meta, machineset.OwnerKind, o.Sets)
	}}}
	if o.Deployments == nil {
		return wakes
	}
	return append(wakes, Wake{From: KindSet, To: KindOwnerless, Settle: o.Settle, Keys: func(ctx context.Context, old, new any) []object.Key {
		a, b := both[*machineset.Set](old, new)
		if a != nil || b == nil {
			return nil
		}
		return strayed(ctx, &b.Meta, deployment.OwnerKind, o.Deployments)
	}})
}

// strayed is the fleet's key if the cache does not know an object's owner.
func strayed[O object.Object[O]](ctx context.Context, m *object.Meta, kind string, owners store.Reader[O]) []object.Key {
	if m.Owner == nil || m.Owner.Kind != kind {
		return nil
	}
	owner, err := metaOf(owners.Get(ctx, object.Key{Namespace: m.Namespace, Name: m.Owner.Name}))
	if err == nil && owner != nil && owner.UID == m.Owner.UID {
		return nil
	}
	return []object.Key{Fleet}
}
