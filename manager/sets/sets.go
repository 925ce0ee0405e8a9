// Package sets reconciles sets: the kind "set" of package manager.
//
// A pass reads the set and its machines, asks machineset.Decide, and carries out the plan: a write of the
// set, a live read, or orders that create, delete or change machines (orders.go). For a set without a
// deployment, overshoot.Decide comes before each decision.
//
// EXPERIMENTAL: the names in this package may change with any release.
package sets

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// New returns a reconciler of sets.
func New(e *engine.Engine, c Config) *engine.Reconciler {
	r := &reconciler{Config: c}
	return e.Reconciler(engine.Kind{
		Name: "set", Hold: c.Hold, Forget: r.forget,
		Begin: func(p *engine.Pass) engine.Steps { return &pass{Pass: p, reconciler: r} },
	})
}

func (r *reconciler) forget(key object.Key) {
	r.notes.Forget(key)
	if r.Forget != nil {
		r.Forget(key)
	}
}

// createdFor returns up to which ordinal names of the set's last reservation became machines.
func (r *reconciler) createdFor(s *machineset.Set) int64 {
	c := r.notes.Of(s.Key).created
	if c.uid == s.UID && c.of.Reserved == s.Instructions.Reservation.Reserved && c.of.At.Equal(s.Instructions.Reservation.At) {
		return c.ordinal
	}
	return 0
}

// Decide implements engine.Steps.
func (p *pass) Decide(ctx context.Context) (engine.Head, error) {
	if bounded, err := p.decideBound(ctx); bounded || err != nil {
		return engine.Head{Verb: engine.Act, Why: p.bound.Why}, err
	}
	outage := p.Frozen()
	p.o.Frozen = outage || p.Safety != nil && p.Safety.Frozen(&p.o.Set.Meta)
	var err error
	if p.plan, err = machineset.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Head{}, err
	}
	head := engine.Head{Verb: engine.Act, Why: p.plan.Why, Warn: p.plan.Warn, At: p.plan.At, Drawn: true}
	if outage {
		head.At = p.Thaw(head.At)
	}
	switch {
	case p.plan.ReadLive:
		head.Verb = engine.Reread
	case p.plan.Write == nil && p.orders() == nil:
		head.Verb = engine.Wait
		p.Settle()
		if p.Settled != nil {
			p.Settled(p.o.Set, p.o.Machines)
		}
	}
	return head, nil
}

// Execute implements engine.Steps.
func (p *pass) Execute(ctx context.Context) error {
	b := &engine.Batch[*machine.Machine]{Pass: p.Pass, Objects: p.Machines}
	plan := &p.plan
	switch {
	case p.bound.Write != nil:
		return p.executeBound(ctx)
	case plan.Write != nil:
		return p.write(ctx)
	case len(plan.Create) > 0:
		return p.create(ctx, b)
	case len(plan.Delete) > 0:
		b.Until = plan.Until
		return p.each(ctx, b, "Delete", b.Delete, &p.o.Refused.Delete)
	case len(plan.Adopt) > 0:
		return p.each(ctx, b, "Adopt", b.Update(p.o.Machines, p.o.Orphans), &p.o.Refused.Change)
	case len(plan.Release) > 0:
		return p.each(ctx, b, "Release", b.Update(p.o.Machines, p.o.Orphans), &p.o.Refused.Change)
	default:
		return p.each(ctx, b, "Push", b.Update(p.o.Machines, p.o.Orphans), &p.o.Refused.Change)
	}
}

// Changes implements engine.Steps.
func (p *pass) Changes() []engine.Change {
	own := "set " + p.Key.String()
	if _, status := p.plan.Write.(*machineset.UpdateStatus); status && p.bound.Write == nil {
		return []engine.Change{{What: "update status of " + own}}
	}
	if p.bound.Write != nil || p.plan.Write != nil {
		return []engine.Change{{What: "update " + own}}
	}
	orders, verb := p.orders(), "update"
	switch {
	case len(p.plan.Create) > 0:
		orders, verb = orders[:1], "create" // slowly: the others follow if it succeeds
	case len(p.plan.Delete) > 0:
		verb = "delete"
	}
	changes := make([]engine.Change, len(orders))
	for i, order := range orders {
		changes[i] = engine.Change{What: verb + " machine " + order.Machine.Key.String(), Why: order.Why}
	}
	return changes
}

// Read implements engine.Steps. It reads the set, then its machines.
func (p *pass) Read(ctx context.Context, live bool) error {
	set, machines := store.Reader[*machineset.Set](p.Sets), store.Reader[*machine.Machine](p.Machines)
	began := p.Now()
	if live {
		set, machines = p.Sets.Live(), p.Machines.Live()
	}
	s, err := set.Get(ctx, p.Key)
	if err != nil {
		return engine.Itself(err)
	}
	if p.o.Set != nil && p.o.Set.UID != s.UID {
		return engine.ErrReplaced
	}
	owned, err := machines.List(ctx, index.OwnedBy(s.UID))
	if err != nil {
		return err
	}
	orphans, err := machines.List(ctx, index.Orphans(s.Namespace))
	if err != nil {
		return err
	}
	if live {
		if err := p.unchanged(ctx, set, s); err != nil {
			return err
		}
	}
	p.o.Set, p.o.Machines, p.o.Orphans, p.o.Read = s, owned, orphans, p.Freshness(began, live)
	p.o.Failures = p.Failures()
	p.o.StatusWritten = p.notes.Of(p.Key).statusWritten
	p.o.Created = p.createdFor(s)
	class := object.Key{Namespace: s.Namespace, Name: s.Spec.Template.Spec.Class.Name}
	p.o.Hold, p.o.Inputs, err = p.Creations(ctx, class, s.Status.CrashLoop != (machineset.CrashLoop{}) || anyFailed(owned))
	return err
}

func anyFailed(machines []*machine.Machine) bool {
	for _, m := range machines {
		if m.Status.Phase == machine.PhaseFailed {
			return true
		}
	}
	return false
}

// unchanged returns a conflict if the set is another one than before its machines were read. What was
// read in between belongs to the set as it was then.
func (p *pass) unchanged(ctx context.Context, sets store.Reader[*machineset.Set], before *machineset.Set) error {
	after, err := sets.Get(ctx, p.Key)
	if err != nil {
		return engine.Itself(err)
	}
	if after.Version != before.Version {
		return fmt.Errorf("set %s changed while its machines were read: %w", p.Key, store.ErrConflict)
	}
	return nil
}

func (p *pass) write(ctx context.Context) error {
	var after *machineset.Set
	var err error
	switch w := p.plan.Write.(type) {
	case *machineset.Update:
		after, err = p.Sets.Write(ctx, &engine.Write[*machineset.Set]{Before: p.o.Set, After: w.Set})
	case *machineset.UpdateStatus:
		changed := *p.o.Set
		changed.Status = w.Status
		if after, err = p.Sets.Write(ctx, &engine.Write[*machineset.Set]{Before: p.o.Set, After: &changed, Status: true}); err == nil {
			p.o.StatusWritten = p.Now()
			p.notes.Change(p.Key, func(n *notes) { n.statusWritten = p.o.StatusWritten })
		}
	default:
		err = fmt.Errorf("unknown write %T", w)
	}
	if err != nil {
		return engine.Itself(err)
	}
	p.o.Set = after
	return engine.Gone(&after.Meta)
}
