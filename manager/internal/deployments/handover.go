package deployments

import (
	"context"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// eachMachine carries out a deployment's orders to machines of its sets: they
// update themselves, or move to another set. One event stands for all of them.
func (p *pass) eachMachine(ctx context.Context, name string, orders []deployment.MachineOrder) error {
	machines := make([]*machine.Machine, len(orders))
	for i, order := range orders {
		machines[i] = order.Machine
	}
	b := &engine.Batch[*machine.Machine]{Pass: p.Pass, Objects: p.Machines, Until: p.plan.Until}
	lists := make([][]*machine.Machine, len(p.o.Sets))
	for i := range p.o.Sets {
		lists[i] = p.o.Sets[i].Machines
	}
	out := b.All(ctx, name, machines, b.Update(lists...))
	p.Ordered(false)
	for i := range out {
		if out[i].Err == nil {
			p.Emit(ctx, engine.Normal, orders[i].Why)
			break
		}
	}
	p.regroup(out)
	answer, err := engine.Refused(ctx, out)
	p.refuse(answer)
	return err
}

// regroup observes machines as they were written, each with the set that owns it now.
func (p *pass) regroup(out []engine.Outcome[*machine.Machine]) {
	changed := make(map[object.Key]bool, len(out))
	for _, o := range out {
		if o.Err == nil {
			changed[o.Before.Key] = true
		}
	}
	children := make([]deployment.Children, len(p.o.Sets))
	for i, child := range p.o.Sets {
		children[i].Set = child.Set
		children[i].Machines = make([]*machine.Machine, 0, len(child.Machines))
		for _, m := range child.Machines {
			if !changed[m.Key] {
				children[i].Machines = append(children[i].Machines, m)
			}
		}
		for _, o := range out {
			if o.Err == nil && o.After != nil && o.After.OwnedBy(child.Set.UID) {
				children[i].Machines = append(children[i].Machines, o.After)
			}
		}
	}
	p.o.Sets = children
}
