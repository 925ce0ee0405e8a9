package manager

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// sets reconciles sets.
type sets struct {
	*shell
	memo memo
}

func newSetReconciler(s *shell) *sets { return &sets{shell: s} }

// Kind implements Reconciler.
func (r *sets) Kind() Kind { return KindSet }

// Reconcile implements Reconciler.
func (r *sets) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	if wait, yes := r.unproven(); yes {
		return wait, nil
	}
	return r.reconcile(ctx, KindSet, key, &r.memo, func() pass {
		return &setPass{parent: parent{shell: r.shell, memo: &r.memo, kind: KindSet, key: key}}
	})
}

// setPass is one pass over one set.
type setPass struct {
	parent
	o machineset.Observation
}

func (p *setPass) step(ctx context.Context) (Result, bool, error) {
	if busy, err := p.bound(ctx); busy || err != nil {
		return Result{}, false, err
	}
	outage := p.frozen()
	p.o.Frozen = outage || p.held(&p.o.Set.Meta)
	plan, err := machineset.Decide(&p.o, p.SetPolicy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	if plan.Warn != (decision.Why{}) {
		p.warn(ctx, plan.Warn)
	}
	because(ctx, p.shell, plan.Why)
	done, err := p.act(ctx, &plan)
	if done {
		p.ended()
		p.tellPermits()
	}
	return p.lookFor(outage, plan.At, plan.Why), done, err
}

// act carries out what a plan holds; true: it holds nothing, the pass ends.
func (p *setPass) act(ctx context.Context, plan *machineset.Plan) (bool, error) {
	b := &bulk[*machine.Machine]{parent: &p.parent, children: p.Machines}
	switch {
	case plan.ReadLive:
		return false, p.observe(ctx, true)
	case plan.Write != nil:
		return false, p.write(ctx, plan)
	case len(plan.Create) > 0:
		return false, p.create(ctx, b, plan)
	case len(plan.Delete) > 0:
		b.until = plan.Until
		return false, p.each(ctx, b, "Delete", plan.Delete, b.remove, &p.o.Refused.Delete)
	case len(plan.Adopt) > 0:
		return false, p.each(ctx, b, "Adopt", plan.Adopt, b.update, &p.o.Refused.Change)
	case len(plan.Release) > 0:
		return false, p.each(ctx, b, "Release", plan.Release, b.update, &p.o.Refused.Change)
	case len(plan.Push) > 0:
		return false, p.each(ctx, b, "Push", plan.Push, b.update, &p.o.Refused.Change)
	}
	return true, nil
}

// observe reads the set, then its machines: from the caches, or live.
func (p *setPass) observe(ctx context.Context, live bool) error {
	set, machines := store.Reader[*machineset.Set](p.Sets), store.Reader[*machine.Machine](p.Machines)
	began := p.Now()
	if live {
		set, machines = p.Sets.Live(), p.Machines.Live()
	}
	s, err := set.Get(ctx, p.key)
	if err != nil {
		return itself(err)
	}
	if p.o.Set != nil && p.o.Set.UID != s.UID {
		return errReplaced
	}
	owned, err := machines.List(ctx, store.Query{Index: IndexOwner, Value: s.UID})
	if err != nil {
		return err
	}
	orphans, err := machines.List(ctx, store.Query{Index: IndexOwner, Value: orphansOf(s.Namespace)})
	if err != nil {
		return err
	}
	if live {
		if err := p.unchanged(ctx, set, s); err != nil {
			return err
		}
	}
	p.o.Set, p.o.Machines, p.o.Orphans, p.o.Read = s, owned, orphans, p.freshness(began, live)
	p.o.Failures = p.memo.failuresBefore(p.key, p.struggled)
	p.o.StatusWritten = p.memo.recall(p.key).statusWritten
	p.o.Created = p.memo.createdFor(s)
	return p.troubles(ctx)
}

// unchanged is a conflict if the set is another one than before its machines
// were read. What was read in between belongs to the set as it was then.
func (p *setPass) unchanged(ctx context.Context, sets store.Reader[*machineset.Set], before *machineset.Set) error {
	after, err := sets.Get(ctx, p.key)
	if err != nil {
		return itself(err)
	}
	if after.Version != before.Version {
		return fmt.Errorf("set %s changed while its machines were read: %w", p.key, store.ErrConflict)
	}
	return nil
}

func (p *setPass) write(ctx context.Context, plan *machineset.Plan) error {
	var after *machineset.Set
	var err error
	switch w := plan.Write.(type) {
	case *machineset.Update:
		after, err = p.Sets.Update(ctx, w.Set)
	case *machineset.UpdateStatus:
		changed := *p.o.Set
		changed.Status = w.Status
		if after, err = p.Sets.UpdateStatus(ctx, &changed); err == nil {
			p.o.StatusWritten = p.Now()
			p.memo.wroteStatus(p.key, p.o.StatusWritten)
		}
	default:
		err = fmt.Errorf("unknown write %T", w)
	}
	if err != nil {
		return itself(err)
	}
	p.o.Set = after
	return gone(&after.Meta)
}

// create carries out creations in order, slowly at first.
func (p *setPass) create(ctx context.Context, b *bulk[*machine.Machine], plan *machineset.Plan) error {
	for i := range plan.Create {
		orderedFor(ctx, p.shell, plan.Create[i].Machine.Key, plan.Create[i].Why)
	}
	out := b.slowly(ctx, "Create", machinesOf(plan.Create), b.create(plan.Until))
	var made []*machine.Machine
	answered := true
	for i := range out {
		if answered = answered && out[i].err == nil; answered {
			p.o.Created = plan.Create[i].Ordinal
		}
		if out[i].err == nil {
			made = append(made, out[i].after)
		}
	}
	p.memo.noteCreated(p.o.Set, p.o.Created)
	p.o.Machines, p.o.Orphans = divide(p.o.Set.UID, nil, p.o.Machines, p.o.Orphans, made)
	return p.conclude(ctx, plan.Create, out, &p.o.Refused.Create)
}

// each carries out orders of one kind; a refusal goes where it says.
func (p *setPass) each(ctx context.Context, b *bulk[*machine.Machine], name string, orders []machineset.Order,
	do order[*machine.Machine], refused **machine.Outcome,
) error {
	for i := range orders {
		orderedFor(ctx, p.shell, orders[i].Machine.Key, orders[i].Why)
	}
	out := b.all(ctx, name, machinesOf(orders), do)
	p.o.Machines, p.o.Orphans = divide(p.o.Set.UID, out, p.o.Machines, p.o.Orphans)
	return p.conclude(ctx, orders, out, refused)
}

func machinesOf(orders []machineset.Order) []*machine.Machine {
	machines := make([]*machine.Machine, len(orders))
	for i, order := range orders {
		machines[i] = order.Machine
	}
	return machines
}

// conclude tells of the first order that was carried out, which stands for
// its batch, and puts the first refusal where it belongs in the observation.
func (p *setPass) conclude(ctx context.Context, orders []machineset.Order, out []outcome[*machine.Machine], refused **machine.Outcome) error {
	p.ordered = true
	for i := range out {
		if out[i].err == nil {
			p.told(ctx, orders[i].Why)
			break
		}
	}
	answer, err := refusal(ctx, out)
	if answer != nil {
		p.refused()
		if *refused == nil {
			*refused = answer
		}
	}
	return err
}
