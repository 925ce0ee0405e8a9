package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/ownerless"
	"github.com/millwright-go/millwright/store"
)

// NewOwnerless returns a reconciler that deletes machines and sets whose owner is gone.
func NewOwnerless(e *engine.Engine, c Config) *engine.Reconciler {
	r := &ownerlessReconciler{Config: c}
	return e.Reconciler(engine.Kind{
		Name: "ownerless", Delay: c.Reach.Delay,
		Begin: func(p *engine.Pass) engine.Steps { return &ownerlessPass{Pass: p, ownerlessReconciler: r} },
	})
}

// ownerlessPass is one pass over all machines and sets.
type ownerlessPass struct {
	*engine.Pass
	*ownerlessReconciler
	o    ownerless.Observation
	plan ownerless.Plan
}

// Read implements engine.Steps. It reads the caches; a live read follows before anything is deleted.
func (p *ownerlessPass) Read(ctx context.Context, _ bool) error {
	if p.began.IsZero() {
		p.began = p.Now()
	}
	p.o = ownerless.Observation{
		NoDeployments: p.Deployments == nil, Looked: p.looked, Began: p.began,
		Candidates: p.candidates, Spent: p.spent, Ordered: make(map[string]bool),
	}
	return p.read(ctx, false)
}

// Decide implements engine.Steps.
func (p *ownerlessPass) Decide(ctx context.Context) (engine.Step, error) {
	p.o.Frozen = p.Reach.Frozen()
	var err error
	if p.plan, err = ownerless.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Step{}, err
	}
	plan := &p.plan
	p.candidates, p.o.Candidates = plan.Candidates, plan.Candidates
	p.spent, p.o.Spent = plan.Spent, plan.Spent
	for _, why := range plan.Warn {
		p.EmitOnce(ctx, engine.Warning, why)
	}
	switch {
	case plan.Read:
		return engine.Step{Verb: engine.Read, Name: "ReadAll"}, nil
	case len(plan.Delete) > 0:
		return engine.Step{Verb: engine.Mutate, Why: plan.Why, Live: true}, nil
	}
	return p.wait(p.o.Frozen, plan.At, plan.Why), nil
}

// Execute implements engine.Steps.
func (p *ownerlessPass) Execute(ctx context.Context) error {
	if !p.plan.Read {
		return p.remove(ctx, p.plan.Delete)
	}
	began := p.Now()
	if err := p.read(ctx, true); err != nil {
		return err
	}
	p.looked, p.o.Looked, p.o.Read = began, began, p.Freshness(began, true)
	return nil
}

// Changes implements engine.Steps.
func (p *ownerlessPass) Changes() []engine.Change {
	changes := make([]engine.Change, len(p.plan.Delete))
	for i, order := range p.plan.Delete {
		kind := "machine "
		if order.Set {
			kind = "set "
		}
		changes[i] = engine.Change{What: "delete " + kind + order.Key.String(), Why: order.Why}
	}
	return changes
}

// read reads children before their owners: so a child never seems to be without an owner that was created
// before it.
func (p *ownerlessPass) read(ctx context.Context, live bool) (err error) {
	if p.o.Machines, err = listAll(ctx, p.Machines, live); err != nil {
		return err
	}
	if p.o.Sets, err = listAll(ctx, p.Sets, live); err != nil || p.Deployments == nil {
		return err
	}
	p.o.Deployments, err = listAll(ctx, p.Deployments, live)
	return err
}

func listAll[T object.Object[T]](ctx context.Context, c *engine.Objects[T], live bool) ([]T, error) {
	if live {
		return c.Live().List(ctx, store.Query{})
	}
	return c.List(ctx, store.Query{})
}

// remove deletes what has lost its owner. Just before, it reads each child and its owner once more.
func (p *ownerlessPass) remove(ctx context.Context, orders []ownerless.Delete) error {
	failed := make([]error, len(orders))
	p.Each(ctx, len(orders), func(i int) {
		failed[i] = p.Timed("DeleteOwnerless", func() error {
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
	ctx context.Context, p *ownerlessPass, order *ownerless.Delete, children *engine.Objects[T], owners store.Reader[O],
) error {
	child, err := index.MetaOf(children.Live().Get(ctx, order.Key))
	if err != nil {
		return err
	}
	owner, err := index.MetaOf(owners.Get(ctx, object.Key{Namespace: order.Key.Namespace, Name: order.Owner.Name}))
	if err != nil || !order.StillOwnerless(child, owner) {
		return err
	}
	err = children.Delete(ctx, order.Key, order.UID)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
		return nil // the child is gone
	}
	if err == nil {
		p.Emit(ctx, engine.Normal, order.Why)
	}
	return err
}

// ownerlessReconciler remembers the machines and sets whose owner is gone. Its memory may be
// lost: then they have to be found again.
type ownerlessReconciler struct {
	Config

	began, looked time.Time
	candidates    []ownerless.Candidate
	spent         []safety.Spent
}
