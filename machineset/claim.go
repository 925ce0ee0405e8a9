package machineset

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// claim releases machines that no longer match the selector, and adopts those that match and have no owner.
// Both need a live read, because a machine without an owner in a cache may have one by now.
func (d *state) claim() (Plan, bool) {
	if d.o.Refused.Change != nil {
		return Plan{}, false
	}
	adoptable := d.adoptable()
	if len(d.summary.unmatched) == 0 && len(adoptable) == 0 {
		return Plan{}, false
	}
	if plan, found := d.readFresh("adopting or releasing machines"); found {
		return plan, true
	}
	if len(d.summary.unmatched) > 0 {
		orders := changed(d.summary.unmatched, decision.Why{Reason: reasonRelease}, func(m *machine.Machine) {
			m.Owner = nil
		})
		return Plan{Release: orders, Why: d.tallyOf(ReasonReleasing, len(orders))}, true
	}
	orders := changed(adoptable, decision.Why{Reason: reasonAdopt}, func(m *machine.Machine) {
		m.Owner = d.owner()
	})
	return Plan{Adopt: orders, Why: d.tallyOf(reasonAdopting, len(orders))}, true
}

func (d *state) adoptable() []*machine.Machine {
	var found []*machine.Machine
	for _, m := range d.o.Orphans {
		if m != nil && m.Owner == nil && !m.Deleted() && m.Namespace == d.s.Namespace &&
			d.s.Spec.Selector.Matches(m.Labels) {
			found = appendUpTo(found, m, d.burst())
		}
	}
	return found
}

// syncTemplates copies to machines those parts of the template that are applied without a replacement. A cached read suffices: if the machine has changed meanwhile, the update conflicts.
func (d *state) syncTemplates() (Plan, bool) {
	if len(d.summary.differing) == 0 || d.o.Refused.Change != nil {
		return Plan{}, false
	}
	t := &d.s.Spec.Template
	orders := make([]Order, len(d.summary.differing))
	for i, differs := range d.summary.differing {
		m := differs.machine
		clone := &machine.Machine{Meta: m.CloneMeta(), Spec: m.Spec}
		clone.CopyStatus(m)
		inLine := t.Spec.Clone()
		clone.Spec.NodeTemplate, clone.Spec.Config = inLine.NodeTemplate, inLine.Config
		clone.Spec.Class.Kind = t.Spec.Class.Kind
		if d.s.hasPreviousClass(&clone.Spec.Class) {
			clone.Spec.Class = t.Spec.Class
		}
		orders[i] = Order{Machine: clone, Why: decision.Why{Reason: reasonPush, Detail: differs.what}}
	}
	return Plan{Push: orders, Why: d.tallyOf(reasonPushing, len(orders))}, true
}

// changed returns an order for each machine, with a changed copy.
func changed(machines []*machine.Machine, why decision.Why, change func(*machine.Machine)) []Order {
	orders := make([]Order, len(machines))
	for i, m := range machines {
		clone := m.Clone()
		change(clone)
		orders[i] = Order{Machine: clone, Why: why}
	}
	return orders
}
