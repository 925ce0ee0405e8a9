package deployment

import (
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// withNewOwner returns a copy of a machine that belongs to another set and has that set's template. It keeps
// its identity, and the annotations and, if the set's selector allows, the labels that others have put on it.
func (d *state) withNewOwner(m *machine.Machine, from, to *machineset.Set) *machine.Machine {
	c := m.Clone()
	have, want := &from.Spec.Template, to.Spec.Template.Clone()
	c.Owner.Name, c.Owner.UID, c.Owner.Kind = to.Name, to.UID, machineset.OwnerKind
	c.Labels = withTemplateEntries(c.Labels, have.Labels, want.Labels)
	if !to.Spec.Selector.Matches(c.Labels) {
		c.Labels = want.Labels // with the labels of others the set would release it
	}
	c.Annotations = withTemplateEntries(c.Annotations, have.Annotations, want.Annotations)
	delete(c.Annotations, d.p.Keys.InPlaceTarget)
	id, node := c.Spec.ProviderID, c.Spec.NodeName
	c.Spec = want.Spec
	c.Spec.ProviderID, c.Spec.NodeName, c.Spec.InPlace = id, node, machine.InPlaceNone
	return c
}

// withTemplateEntries returns m with the entries of a new template in place of those of an old one.
func withTemplateEntries(m, old, add map[string]string) map[string]string {
	out := make(map[string]string, len(m)+len(add))
	for k, v := range m {
		if was, ok := old[k]; !ok || was != v {
			out[k] = v
		}
	}
	for k, v := range add {
		out[k] = v
	}
	return out
}

// A machine moves from one set to another in four steps. A process may die after each step:
//
//  1. The target set grows by one and names the machine as arriving, so that it creates none in its place.
//  2. The source set shrinks by one and names the machine as leaving, so that it creates none either and
//     leaves the machine alone.
//  3. The machine gets its new owner and template.
//  4. Both names are removed, first that of the target set.
//
// Unfinished moves are completed before anything else is ordered, and before a closed set is
// opened. So no size is ever decided while a machine is in two sets or in none. The target set's name
// decides: a machine that is named as arriving moves, one that is only named as leaving stays where
// it is.
//
// A machine may be deleted at any step. The target set's name is removed first, so the names that are left
// show how far the move came. If the machine is named as arriving only, the size of the source set still
// includes it: the target set shrinks again when it removes the name. If it is named as both, the size of
// the target set includes it, and the target set creates another machine.

// handovers are the machines that sets name as moving.
type handovers struct {
	to   map[string]*setState        // by name of the machine: the set that it moves to
	in   map[string]*setState        // by name of the machine: the set that it is in
	live map[string]*machine.Machine // by name: those that exist and are not being deleted
	left map[string]bool             // by name: a set names the machine as leaving, and its size does not include it
}

// handovers returns the machines that sets name as moving. Nil: there are none.
func (d *state) handovers() *handovers {
	names := 0
	for i := range d.sets {
		h := &d.sets[i].set.Instructions.Handover
		names += len(h.Arriving) + len(h.Leaving)
	}
	if names == 0 {
		return nil
	}
	j := &handovers{
		to: make(map[string]*setState, names), in: make(map[string]*setState, names),
		live: make(map[string]*machine.Machine, names), left: make(map[string]bool, names),
	}
	named := make(map[string]bool, names)
	for i := range d.sets {
		f := &d.sets[i]
		for _, name := range f.set.Instructions.Handover.Leaving {
			named[name], j.left[name] = true, true
		}
		for _, name := range f.set.Instructions.Handover.Arriving {
			named[name] = true
			if j.to[name] == nil && !f.set.Deleted() {
				j.to[name] = f
			}
		}
	}
	for i := range d.sets {
		f := &d.sets[i]
		for _, m := range f.machines {
			if m != nil && named[m.Name] && f.owns(m) {
				j.in[m.Name], j.live[m.Name] = f, m
			}
		}
	}
	return j
}

// finishMoves continues the moves that have begun.
func (d *state) finishMoves() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	j := d.handovers()
	if j == nil {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() {
			continue
		}
		if order, found := d.adjustSize(j, f); found {
			plan.Handover = append(plan.Handover, order)
		}
	}
	if len(plan.Handover) == 0 {
		plan.Move = d.moveMachines(j)
	}
	if len(plan.Handover)+len(plan.Move) == 0 {
		plan.Handover = d.closeMoves(j)
	}
	switch {
	case len(plan.Handover) > 0:
		plan.Why = plan.Handover[0].Why
	case len(plan.Move) > 0:
		plan.Why = plan.Move[0].Why
	default:
		return Plan{}, false
	}
	return plan, true
}

// adjustSize lowers a set's size by its machines that move to another set, and names them as leaving. For
// machines named as leaving that stay after all, it does the opposite.
func (d *state) adjustSize(j *handovers, f *setState) (Order, bool) {
	h := f.set.Instructions.Handover.Clone()
	var back, gone []string
	h.Leaving = slices.DeleteFunc(h.Leaving, func(name string) bool {
		stays := j.in[name] == f && j.to[name] == nil
		if stays {
			back = append(back, name)
		}
		return stays
	})
	for _, m := range f.machines {
		if f.owns(m) && j.in[m.Name] == f && j.to[m.Name] != nil && j.to[m.Name] != f && !slices.Contains(h.Leaving, m.Name) {
			gone = append(gone, m.Name)
		}
	}
	slices.Sort(gone)
	h.Leaving = append(h.Leaving, gone...)
	switch {
	case len(gone) > 0:
		return d.withHandover(f, h, len(back)-len(gone), gone, ReasonMoveFrom), true
	case len(back) > 0:
		return d.withHandover(f, h, len(back), back, ReasonMoveBack), true
	}
	return Order{}, false
}

// moveMachines gives machines their new owners. A set that is being deleted deletes its machines unless
// they move first.
func (d *state) moveMachines(j *handovers) (orders []MachineOrder) {
	for i := range d.sets {
		f := &d.sets[i]
		leaves := func(m *machine.Machine) bool {
			to := j.to[m.Name]
			return j.in[m.Name] == f && to != nil && to != f
		}
		for _, m := range f.oldest(markBurst-len(orders), leaves) {
			to := j.to[m.Name]
			why := decision.Why{Reason: ReasonMove, Name: m.Name, Detail: to.set.Name}
			orders = append(orders, MachineOrder{d.withNewOwner(m, f.set, to.set), why})
		}
	}
	return orders
}

// closeMoves removes the names of machines that have arrived, and of those that are gone: first all names of
// arriving machines, and in a later plan those of leaving ones.
func (d *state) closeMoves(j *handovers) (orders []Order) {
	for i := range d.sets {
		if order, found := d.closeArrivals(j, &d.sets[i]); found {
			orders = append(orders, order)
		}
	}
	if len(orders) > 0 {
		return orders
	}
	for i := range d.sets {
		if order, found := d.closeDepartures(&d.sets[i]); found {
			orders = append(orders, order)
		}
	}
	return orders
}

// closeArrivals removes the names of arriving machines that have arrived, are gone, or move to another set. If a
// machine was gone before the source set named it as leaving, the sizes of both sets include it, so this set
// shrinks.
func (d *state) closeArrivals(j *handovers, f *setState) (Order, bool) {
	if f.set.Deleted() || len(f.set.Instructions.Handover.Arriving) == 0 {
		return Order{}, false
	}
	h := f.set.Instructions.Handover.Clone()
	var done, twice []string
	h.Arriving = slices.DeleteFunc(h.Arriving, func(name string) bool {
		gone := j.live[name] == nil
		ended := gone || j.in[name] == f || j.to[name] != f
		switch {
		case gone && j.to[name] == f && !j.left[name]:
			twice = append(twice, name)
		case ended:
			done = append(done, name)
		}
		return ended
	})
	switch {
	case len(twice) > 0:
		return d.withHandover(f, h, -min(len(twice), f.freePlaces()), twice, reasonMoveOff), true
	case len(done) > 0:
		return d.withHandover(f, h, 0, done, reasonMoveDone), true
	}
	return Order{}, false
}

// closeDepartures removes the names of leaving machines. None of them is in the set any more: otherwise
// adjustSize or moveMachines would have had something to do.
func (d *state) closeDepartures(f *setState) (Order, bool) {
	if f.set.Deleted() || len(f.set.Instructions.Handover.Leaving) == 0 {
		return Order{}, false
	}
	h := f.set.Instructions.Handover.Clone()
	done := h.Leaving
	h.Leaving = nil
	return d.withHandover(f, h, 0, done, reasonMoveDone), true
}

// beginMoves begins the moves of updated machines to the sets that they were updated for, one target set at a
// time. The new set takes no more machines than are wanted; the rest stay. From a set that still has to delete
// machines none moves, because the set may be about to delete the one that would move.
func (d *state) beginMoves() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var to *setState
	room := int64(0)
	leaving := make(map[*setState][]string)
	for i := range d.sets {
		f := &d.sets[i]
		if f.inPlace.Updated == 0 || f.set.Deleted() || f.paused || f.set.Spec.Replicas < f.actual {
			continue
		}
		for _, m := range f.oldest(markBurst, func(m *machine.Machine) bool { return d.destination(f, m) != nil }) {
			target := d.destination(f, m)
			if to == nil {
				to, room = target, d.roomFor(target)
			}
			if to == target && room > 0 {
				leaving[f] = append(leaving[f], m.Name)
				room--
			}
		}
	}
	if to == nil {
		return Plan{}, false
	}
	return d.beginPlan(to, leaving), true
}

// destination returns the set that a machine is to move to. Nil: none, or the set has no room.
func (d *state) destination(f *setState, m *machine.Machine) *setState {
	if !updated(m) || m.Spec.InPlace == machine.InPlaceNone {
		return nil
	}
	to := d.target(f, m)
	if to == nil || d.roomFor(to) <= 0 {
		return nil
	}
	return to
}

// roomFor returns how many machines may move to a set at once. None may move to a paused set, or to one that
// still has to delete machines: with a larger size it would keep machines that already count as deleted. With
// Recreate none may move to the new set, because all its machines are created from its template.
func (d *state) roomFor(to *setState) int64 {
	switch {
	case to.set.Spec.Replicas < to.actual || to.paused, to == d.current && d.deployment.Spec.Strategy.Kind == Recreate:
		return 0
	case to == d.current:
		return min(markBurst, int64(d.deployment.Spec.Replicas)-int64(to.set.Spec.Replicas))
	}
	return markBurst
}

// beginPlan orders that sets name the moving machines: first the target set, then the sets that they leave.
func (d *state) beginPlan(to *setState, leaving map[*setState][]string) Plan {
	arrive := to.set.Instructions.Handover.Clone()
	var from []Order
	for i := range d.sets {
		f := &d.sets[i]
		names := leaving[f]
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		arrive.Arriving = append(arrive.Arriving, names...)
		h := f.set.Instructions.Handover.Clone()
		h.Leaving = append(h.Leaving, names...)
		from = append(from, d.withHandover(f, h, -len(names), names, ReasonMoveFrom))
	}
	names := arrive.Arriving[len(to.set.Instructions.Handover.Arriving):]
	first := d.withHandover(to, arrive, len(names), names, ReasonMoveTo)
	return Plan{Handover: append([]Order{first}, from...), Why: first.Why}
}
