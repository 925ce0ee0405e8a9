package manager

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// eachMachine carries out a deployment's orders to machines of its sets: to
// update themselves, or to another set. The first that was carried out is told
// for all.
func (p *deploymentPass) eachMachine(ctx context.Context, name string, orders []deployment.MachineOrder, until time.Time) error {
	machines := make([]*machine.Machine, len(orders))
	for i, order := range orders {
		machines[i] = order.Machine
		orderedFor(ctx, p.shell, order.Machine.Key, order.Why)
	}
	b := &bulk[*machine.Machine]{parent: &p.parent, children: p.Machines, until: until}
	out := b.all(ctx, name, machines, b.update)
	p.ordered = true
	for i := range out {
		if out[i].err == nil {
			p.told(ctx, orders[i].Why)
			break
		}
	}
	p.regroup(out)
	answer, err := refusal(ctx, out)
	p.refuse(answer)
	return err
}

// regroup puts machines that were written in the place of what was observed,
// each with the set that owns it by now.
func (p *deploymentPass) regroup(out []outcome[*machine.Machine]) {
	changed := make(map[object.Key]bool, len(out))
	for _, o := range out {
		if o.err == nil {
			changed[o.before.Key] = true
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
			if o.err == nil && o.after != nil && o.after.OwnedBy(child.Set.UID) {
				children[i].Machines = append(children[i].Machines, o.after)
			}
		}
	}
	p.o.Sets = children
}
