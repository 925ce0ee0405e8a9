package sets

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/bounds"
	"github.com/millwright-go/millwright/safety/overshoot"
)

// create carries out creations in order, slowly at first.
func (p *pass) create(ctx context.Context, b *engine.Batch[*machine.Machine]) error {
	orders := p.plan.Create
	out := b.Slowly(ctx, "Create", machinesOf(orders), b.Create(p.plan.Until))
	var made []*machine.Machine
	answered := true
	for i := range out {
		if answered = answered && out[i].Err == nil; answered {
			p.o.Created = orders[i].Ordinal
		}
		if out[i].Err == nil {
			made = append(made, out[i].After)
		}
	}
	p.notes.Change(p.Key, func(n *notes) { n.created = created{p.o.Set.UID, p.o.Set.Instructions.Reservation, p.o.Created} })
	p.o.Machines, p.o.Orphans = engine.Divide(p.o.Set.UID, nil, p.o.Machines, p.o.Orphans, made)
	return p.conclude(ctx, orders, out, &p.o.Refused.Create)
}

// each carries out the plan's orders at once, and stores the first refusal where the caller says.
func (p *pass) each(ctx context.Context, b *engine.Batch[*machine.Machine], name string,
	do engine.Order[*machine.Machine], refused **machine.Outcome,
) error {
	orders := p.orders()
	out := b.All(ctx, name, machinesOf(orders), do)
	p.o.Machines, p.o.Orphans = engine.Divide(p.o.Set.UID, out, p.o.Machines, p.o.Orphans)
	return p.conclude(ctx, orders, out, refused)
}

func machinesOf(orders []machineset.Order) []*machine.Machine {
	machines := make([]*machine.Machine, len(orders))
	for i, order := range orders {
		machines[i] = order.Machine
	}
	return machines
}

// conclude tells of the first order that was carried out, which stands for its batch, and puts the first
// refusal where it belongs in the observation.
func (p *pass) conclude(ctx context.Context, orders []machineset.Order, out []engine.Outcome[*machine.Machine],
	refused **machine.Outcome,
) error {
	typ := engine.Normal
	if len(p.plan.Release) > 0 {
		typ = engine.Warning // somebody has to see to a machine that no set counts any more
	}
	for i := range out {
		if out[i].Err == nil {
			p.Tell(ctx, typ, orders[i].Why)
			break
		}
	}
	answer, err := engine.Refused(ctx, out)
	p.Ordered(answer != nil)
	if answer != nil && *refused == nil {
		*refused = &machine.Outcome{Code: answer.Code, Message: answer.Message}
	}
	return err
}

// decideBound freezes a set without an owner that has too many machines, or lets it thaw. Any other
// set follows its deployment.
func (p *pass) decideBound(ctx context.Context) (bounded bool, err error) {
	p.bound = overshoot.Plan{}
	if p.Safety == nil || p.o.Set.Owner != nil {
		return false, nil
	}
	o := &overshoot.Observation{Sets: []deployment.Children{{Set: p.o.Set, Machines: p.o.Machines}}}
	p.bound, err = overshoot.Decide(o, p.Safety, p.Now())
	if p.bound.Warn != (decision.Why{}) && p.bound.Write == nil {
		p.Once(ctx, engine.Warning, p.bound.Warn)
	}
	return p.bound.Write != nil, err
}

func (p *pass) executeBound(ctx context.Context) error {
	w, ok := p.bound.Write.(*overshoot.LabelSet)
	if !ok {
		return fmt.Errorf("unknown write %T", p.bound.Write)
	}
	after, err := p.Sets.Write(ctx, &engine.Write[*machineset.Set]{Before: p.o.Set, After: w.Set})
	if err != nil {
		return engine.Itself(err)
	}
	p.o.Set = after
	if p.bound.Warn != (decision.Why{}) {
		p.Once(ctx, engine.Warning, p.bound.Warn)
	}
	bounds.Tell(ctx, p.Pass, &p.bound)
	return nil
}
