package deployment

import (
	"slices"
	"strconv"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// A machine moves from one set to another in four steps, each of which may be
// the last that a process takes:
//
//  1. The set it comes to grows by one and names it as arriving. It makes no
//     machine in its place.
//  2. The set it leaves shrinks by one and names it as leaving. It makes none
//     either, and leaves the machine alone.
//  3. The machine gets its new owner and template.
//  4. Both names are taken off, first where it arrived.
//
// Whatever is found half done is finished before anything else is ordered, and
// before a closed set is opened. So no size is ever decided while a machine is
// in two sets or in none. The first name decides: a machine that is named as
// arriving moves, one that is only named as leaving stays where it is.
//
// A machine may be deleted at any step. Since its name as leaving outlives its
// name as arriving, the names tell how far it came. Named as arriving only, it
// still has its place in the set that it was to leave: the other set gives the
// place up together with the name. Named as both, its place is in the set that
// it was to come to, which makes another.

// journey is what is known of the machines that sets name as on their way.
type journey struct {
	to   map[string]*family // by machine: the set that it arrives at
	at   map[string]*family // by machine: the set that it is in
	live map[string]*machine.Machine
	left map[string]bool // machines that a set names as leaving: its size is without them
}

// journey reads the sets' notes; nil: there are none.
func (d *decider) journey() *journey {
	names := 0
	for i := range d.sets {
		h := &d.sets[i].set.Instructions.Handover
		names += len(h.Arriving) + len(h.Leaving)
	}
	if names == 0 {
		return nil
	}
	j := &journey{
		to: make(map[string]*family, names), at: make(map[string]*family, names),
		live: make(map[string]*machine.Machine, names), left: make(map[string]bool, names),
	}
	noted := make(map[string]bool, names)
	for i := range d.sets {
		f := &d.sets[i]
		for _, name := range f.set.Instructions.Handover.Leaving {
			noted[name], j.left[name] = true, true
		}
		for _, name := range f.set.Instructions.Handover.Arriving {
			noted[name] = true
			if j.to[name] == nil && !f.set.Deleted() {
				j.to[name] = f
			}
		}
	}
	for i := range d.sets {
		f := &d.sets[i]
		for _, m := range f.machines {
			if m != nil && noted[m.Name] && f.owns(m) {
				j.at[m.Name], j.live[m.Name] = f, m
			}
		}
	}
	return j
}

// finishMoves goes on with machines that are on their way.
func (d *decider) finishMoves() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	j := d.journey()
	if j == nil {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() {
			continue
		}
		if order, found := d.settleSizes(f, j); found {
			plan.Handover = append(plan.Handover, order)
		}
	}
	if len(plan.Handover) == 0 {
		plan.Move = d.moves(j)
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

// settleSizes takes machines that arrive elsewhere off a set's size, and adds
// those that will not leave.
func (d *decider) settleSizes(f *family, j *journey) (Order, bool) {
	h := f.set.Instructions.Handover.Clone()
	var back, gone []string
	h.Leaving = slices.DeleteFunc(h.Leaving, func(name string) bool {
		stays := j.at[name] == f && j.to[name] == nil
		if stays {
			back = append(back, name)
		}
		return stays
	})
	for _, m := range f.machines {
		if f.owns(m) && j.at[m.Name] == f && j.to[m.Name] != nil && j.to[m.Name] != f && !slices.Contains(h.Leaving, m.Name) {
			gone = append(gone, m.Name)
		}
	}
	slices.Sort(gone)
	h.Leaving = append(h.Leaving, gone...)
	switch {
	case len(gone) > 0:
		return d.handedOver(f, h, len(back)-len(gone), gone, ReasonMoveFrom), true
	case len(back) > 0:
		return d.handedOver(f, h, len(back), back, ReasonMoveBack), true
	}
	return Order{}, false
}

// handedOver is a set with other notes, and a size that differs by so many.
func (d *decider) handedOver(f *family, h machineset.Handover, by int, names []string, reason decision.Reason) Order {
	size := max(0, f.size()+int32(by))
	changed := d.resized(f, size)
	changed.Instructions.Handover = h
	return Order{changed, decision.Why{
		Reason: reason, Name: f.set.Name, Have: int64(f.set.Spec.Replicas), Want: int64(size), Detail: are(names),
	}}
}

// are begins a sentence about machines.
func are(names []string) string {
	if len(names) == 1 {
		return "machine " + names[0] + " is"
	}
	return strconv.Itoa(len(names)) + " machines are"
}

// moves orders the machines themselves to their new sets. A set that is being
// deleted takes its machines with it unless they are quicker.
func (d *decider) moves(j *journey) (orders []MachineOrder) {
	for i := range d.sets {
		f := &d.sets[i]
		leaves := func(m *machine.Machine) bool {
			to := j.to[m.Name]
			return j.at[m.Name] == f && to != nil && to != f
		}
		for _, m := range f.first(markBurst-len(orders), leaves) {
			to := j.to[m.Name]
			why := decision.Why{Reason: ReasonMove, Name: m.Name, Detail: to.set.Name}
			orders = append(orders, MachineOrder{d.moved(m, f.set, to.set), why})
		}
	}
	return orders
}

// closeMoves takes the names off: of machines that have arrived, and of those
// that are gone. A set that a machine arrived at comes before the one it left.
func (d *decider) closeMoves(j *journey) (orders []Order) {
	for i := range d.sets {
		if order, found := d.closeArrivals(&d.sets[i], j); found {
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

// closeArrivals takes names of machines off that a set names as arriving. Those
// that died before they left the other set have their place there.
func (d *decider) closeArrivals(f *family, j *journey) (Order, bool) {
	if f.set.Deleted() || len(f.set.Instructions.Handover.Arriving) == 0 {
		return Order{}, false
	}
	h := f.set.Instructions.Handover.Clone()
	var done, twice []string
	h.Arriving = slices.DeleteFunc(h.Arriving, func(name string) bool {
		dead := j.live[name] == nil
		over := dead || j.at[name] == f || j.to[name] != f
		switch {
		case dead && j.to[name] == f && !j.left[name]:
			twice = append(twice, name)
		case over:
			done = append(done, name)
		}
		return over
	})
	switch {
	case len(twice) > 0:
		return d.handedOver(f, h, -min(len(twice), f.vacant()), twice, reasonMoveOff), true
	case len(done) > 0:
		return d.handedOver(f, h, 0, done, reasonMoveDone), true
	}
	return Order{}, false
}

// closeDepartures takes names of machines off that a set names as leaving. It has
// none of them any more: it would have been moved, or been taken back, before.
func (d *decider) closeDepartures(f *family) (Order, bool) {
	if f.set.Deleted() || len(f.set.Instructions.Handover.Leaving) == 0 {
		return Order{}, false
	}
	h := f.set.Instructions.Handover.Clone()
	done := h.Leaving
	h.Leaving = nil
	return d.handedOver(f, h, 0, done, reasonMoveDone), true
}

// has is how many machines a set has, with those that may come into being
// whatever its size is.
func (f *family) has() int64 { return int64(f.actual) + max(f.announced, 0) }

// vacant is how many places of a set are empty.
func (f *family) vacant() int { return int(max(int64(f.set.Spec.Replicas)-f.has(), 0)) }

// beginMoves sends updated machines to the sets that they belong to now, one
// such set at a time. The new one takes no more than are wanted; what it can't
// take is left over. A set that has yet to remove machines keeps its own till
// then: it may be about to remove the one that would go.
func (d *decider) beginMoves() (Plan, bool) {
	if d.held() || d.deployment.Spec.Strategy.Kind == Recreate {
		return Plan{}, false
	}
	var to *family
	room := int64(0)
	leaving := make(map[*family][]string)
	for i := range d.sets {
		f := &d.sets[i]
		if f.inPlace.Updated == 0 || f.set.Deleted() || f.paused || f.set.Spec.Replicas < f.actual {
			continue
		}
		for _, m := range f.first(markBurst, func(m *machine.Machine) bool { return d.bound(f, m) != nil }) {
			target := d.bound(f, m)
			if to == nil {
				to, room = target, d.room(target)
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
	return d.beginning(to, leaving), true
}

// bound is the set that a machine is to move to; nil: none, or it is full.
func (d *decider) bound(f *family, m *machine.Machine) *family {
	if !updated(m) || m.Spec.InPlace == machine.InPlaceNone {
		return nil
	}
	to := d.target(f, m)
	if to == nil || d.room(to) <= 0 {
		return nil
	}
	return to
}

// room is how many machines a set may take at once. One that has yet to remove
// machines takes none till then: with a larger size those would count as there,
// while they may be about to go.
func (d *decider) room(to *family) int64 {
	switch {
	case to.set.Spec.Replicas < to.actual || to.paused:
		return 0
	case to == d.current:
		return min(markBurst, int64(d.deployment.Spec.Replicas)-int64(to.set.Spec.Replicas))
	}
	return markBurst
}

// beginning writes down which machines move: first where they come to, then
// where they leave.
func (d *decider) beginning(to *family, leaving map[*family][]string) Plan {
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
		from = append(from, d.handedOver(f, h, -len(names), names, ReasonMoveFrom))
	}
	names := arrive.Arriving[len(to.set.Instructions.Handover.Arriving):]
	first := d.handedOver(to, arrive, len(names), names, ReasonMoveTo)
	return Plan{Handover: append([]Order{first}, from...), Why: first.Why}
}
