package deployment_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// destination returns the set with the same owner as from that a machine is moving to. Nil: there is none.
func (w *world) destination(from *machineset.Set, name string) *machineset.Set {
	for _, s := range w.sets {
		ours := s.Owner != nil && from.Owner != nil && s.OwnedBy(from.Owner.UID)
		if ours && !s.Deleted() && slices.Contains(s.Instructions.Handover.Arriving, name) {
			return s
		}
	}
	return nil
}

// elsewhere reports whether a machine of s already counts in another set.
func (w *world) elsewhere(s *machineset.Set, name string) bool {
	to := w.destination(s, name)
	return to != nil && to.UID != s.UID && s.Owner != nil && !s.Deleted()
}

// size returns the size of a set, corrected so that each machine counts once. A negative size is invalid: the set keeps
// its machines.
func (w *world) size(s *machineset.Set) (n int) {
	switch {
	case s.Deleted():
		return 0
	case s.Spec.Replicas >= 0:
		return int(s.Spec.Replicas) + w.offset(s)
	}
	for _, m := range w.machines {
		to := w.destination(s, m.Name)
		if !m.Deleted() && (to == s || to == nil && m.OwnedBy(s.UID)) {
			n++
		}
	}
	return n
}

// offset returns the correction of a set's size so that each machine counts once: for machines that count in another
// set and are still in this size, and for machines that were subtracted and have no destination.
func (w *world) offset(s *machineset.Set) (n int) {
	if s.Deleted() || s.Owner == nil {
		return 0
	}
	for _, m := range w.machinesOf(s.UID) {
		left := slices.Contains(s.Instructions.Handover.Leaving, m.Name)
		switch {
		case m.Deleted():
		case w.elsewhere(s, m.Name) && !left:
			n--
		case left && w.destination(s, m.Name) == nil:
			n++
		}
	}
	return n - w.twice(s)
}

// twice counts machines that are gone and are included in two sizes: s names them as arriving, and the set that they
// were in does not name them as leaving.
func (w *world) twice(s *machineset.Set) (n int) {
	for _, name := range s.Instructions.Handover.Arriving {
		m := w.machine(name)
		left := slices.ContainsFunc(w.sets, func(o *machineset.Set) bool { return slices.Contains(o.Instructions.Handover.Leaving, name) })
		to := w.destination(s, name)
		if (m == nil || m.Deleted()) && !left && to != nil && to.UID == s.UID {
			n++
		}
	}
	return n
}

// arriving returns how many machines are moving to a set and are not owned by it yet.
func (w *world) arriving(s *machineset.Set) (n int64) {
	for _, name := range s.Instructions.Handover.Arriving {
		if !slices.ContainsFunc(w.machinesOf(s.UID), func(m *machine.Machine) bool { return m.Name == name }) {
			n++
		}
	}
	return n
}

// update lets a machine take the next step of an update in place, as its own controller and an agent would.
func (w *world) update(m *machine.Machine) bool {
	switch phase := m.Status.Phase; {
	case phase == machine.PhaseRunning && m.Spec.InPlace == machine.InPlaceSelected && !m.Preserved(w.now):
		w.setPhase(m.Name, machine.PhaseInPlaceUpdating)
	case phase == machine.PhaseInPlaceUpdating && w.fates[m.Name] == fateFails:
		w.setPhase(m.Name, machine.PhaseInPlaceUpdateFailed)
		w.changeMachine(m.Name, func(m *machine.Machine) {
			m.Status.LastOperation = machine.Operation{
				Kind: machine.OperationInPlaceUpdate, State: machine.StateFailed, Message: "no space left on device", Time: begin,
			}
		})
	case phase == machine.PhaseInPlaceUpdating && w.fates[m.Name] == fateNever:
		return false
	case phase == machine.PhaseInPlaceUpdating:
		w.setPhase(m.Name, machine.PhaseInPlaceUpdateSuccessful)
	case phase == machine.PhaseInPlaceUpdateSuccessful && m.Spec.InPlace == machine.InPlaceNone:
		w.setPhase(m.Name, machine.PhaseRunning)
	case phase == machine.PhaseInPlaceUpdateFailed && w.fates[m.Name] != fateFails:
		w.setPhase(m.Name, machine.PhaseFailed) // its health timeout has passed
	default:
		return false
	}
	return true
}

// fate is the outcome of a machine's update in place.
type fate int

const (
	fateSucceeds fate = iota
	fateFails         // the update fails
	fateNever         // the update never ends
)

// setFate sets the outcome of a machine's update.
func (w *world) setFate(name string, f fate) {
	if w.fates == nil {
		w.fates = map[string]fate{}
	}
	w.fates[name] = f
}

// setRequest writes a machine's request by hand.
func (w *world) setRequest(name string, request machine.InPlaceRequest) {
	w.changeMachine(name, func(m *machine.Machine) { m.Spec.InPlace = request })
}

// updateMachine stores a machine, if its version is the stored one.
func (w *world) updateMachine(m *machine.Machine) (*machine.Machine, error) {
	i := slices.IndexFunc(w.machines, func(o *machine.Machine) bool { return o.Name == m.Name })
	switch {
	case i < 0:
		return nil, errNotFound
	case w.machines[i].UID != m.UID || w.machines[i].Version != m.Version:
		return nil, errConflict
	}
	w.writes++
	w.changeMachine(m.Name, func(stored *machine.Machine) {
		stored.Labels, stored.Annotations, stored.Owner, stored.Spec = m.Labels, m.Annotations, m.Owner, m.Spec
	})
	return w.machines[i], nil
}

// queueMachines queues orders to machines. It returns 1 if there are any.
func (s *shell) queueMachines(kind string, orders []deployment.MachineOrder) int {
	s.t.Helper()
	for _, order := range orders {
		s.once(kind + " " + order.Why.String() + " " + order.Machine.Version)
		s.queue = append(s.queue, func() bool { return s.machineOrder(kind, order) })
	}
	return min(len(orders), 1)
}

// machineOrder carries out one order to a machine.
func (s *shell) machineOrder(kind string, order deployment.MachineOrder) bool {
	s.t.Helper()
	if !s.o.Read.Live() {
		s.t.Fatalf("ordered without a live read: %s %s", kind, order.Why)
	}
	if s.issueMachine != nil {
		s.issueMachine(kind, order)
	}
	if s.refuse != nil && s.refuse() {
		s.o.Failed = &machine.Outcome{Message: "the store is having a bad day"}
		return true // the others are still carried out
	}
	stored, err := s.w.updateMachine(order.Machine)
	switch err {
	case nil:
	case errNotFound:
		stored = nil
	default:
		s.end()
		return true
	}
	s.o.Sets = withMachine(s.o.Sets, order.Machine.UID, stored)
	return true
}

// withMachine returns sets in which stored replaces the machine with this UID. Nil: the machine is removed.
func withMachine(sets []deployment.Children, uid string, stored *machine.Machine) []deployment.Children {
	sets = slices.Clone(sets)
	for i := range sets {
		c := &sets[i]
		c.Machines = slices.DeleteFunc(slices.Clone(c.Machines), func(m *machine.Machine) bool { return m.UID == uid })
		if stored != nil && stored.OwnedBy(c.Set.UID) {
			c.Machines = append(c.Machines, stored)
		}
	}
	return sets
}

// ownersOfMachines returns the set of each machine, for the message of a failure.
func (w *world) ownersOfMachines() (out string) {
	for _, m := range w.machines {
		owner := "nobody"
		if m.Owner != nil {
			owner = m.Owner.Name
		}
		out += fmt.Sprintf("%s of %s: %s %q deleted %t\n", m.Name, owner, m.Status.Phase, m.Spec.InPlace, m.Deleted())
	}
	for _, s := range w.sets {
		out += fmt.Sprintf("%s: size %d, %+v\n", s.Name, s.Spec.Replicas, s.Instructions.Handover)
	}
	return out
}

// userSelects lets a user select a machine by hand, with Manual, if availability does not fall below the floor.
func (c *chaos) userSelects() {
	d := c.deployment
	if d == nil || d.Deleted() || d.Spec.Paused || d.Spec.Strategy.Orchestration != deployment.Manual {
		return
	}
	if c.fixedBounds && c.shell.o != nil {
		return // the decisions of this pass do not know of it
	}
	_, floor := limitsOf(&d.Spec)
	if c.secure() <= floor-c.countPreserved() {
		return
	}
	for _, m := range c.machines {
		if m.Spec.InPlace == machine.InPlaceCandidate && m.Status.Phase == machine.PhaseRunning && !m.Deleted() && !m.Preserved(c.now) {
			c.setRequest(m.Name, machine.InPlaceSelected)
			return
		}
	}
}

// secure returns how many available machines are sure to stay: sets may be deleting machines that have become available
// since they were chosen. A user who selects machines by hand must consider that, as a deployment does.
func (c *chaos) secure() (n int) {
	for _, s := range c.setsOf(c.deployment.UID) {
		numbers := c.numbers(s)
		for _, m := range c.machinesOf(s.UID) {
			if !m.Deleted() && available(m, c.deployment.Spec.MinReady, c.now) && slices.Contains(c.chosen[s.UID], m.Name) {
				numbers.available--
			}
		}
		n += numbers.usable()
	}
	return n
}

// updatesDiffer makes some machine's next update fail, or never end, and writes invalid handovers.
func (c *chaos) updatesDiffer() {
	if len(c.machines) == 0 {
		return
	}
	m := drawOne(c.t, "doomed", c.machines)
	switch choice := rapid.IntRange(0, 8).Draw(c.t, "fate"); {
	case choice < 6:
		c.setFate(m.Name, fate(choice%3))
	case choice == 6 && !m.Deleted():
		c.setRequest(m.Name, rapid.SampledFrom([]machine.InPlaceRequest{"", machine.InPlaceCandidate, machine.InPlaceSelected}).Draw(c.t, "request"))
	case choice == 8 && len(c.sets) > 0:
		c.brokenHandovers = true
		name := rapid.SampledFrom([]string{m.Name, "nobody"}).Draw(c.t, "name")
		c.changeSet(drawOne(c.t, "noted", c.sets).Name, func(s *machineset.Set) {
			if rapid.Bool().Draw(c.t, "arriving") {
				s.Instructions.Handover.Arriving = append(slices.Clone(s.Instructions.Handover.Arriving), name)
			} else {
				s.Instructions.Handover.Leaving = append(slices.Clone(s.Instructions.Handover.Leaving), name)
			}
		})
	}
}

// checkHandover checks P10 for a write of a handover: if it succeeds in the store, it must not change the sum of the
// sizes of all sets, in which each machine counts once.
func (c *chaos) checkHandover(order deployment.Order) {
	stored := c.set(order.Set.Name)
	if stored == nil || stored.UID != order.Set.UID || stored.Version != order.Set.Version {
		return // the write will be refused
	}
	if c.movesGone(order) || c.movesReleased(order, stored) {
		return
	}
	before := c.sizes()
	original := slices.Clone(c.sets)
	c.sets = slices.Clone(c.sets)
	c.sets[slices.Index(c.sets, stored)] = order.Set
	after := c.sizes()
	c.sets = original
	if before != after && !c.brokenHandovers {
		c.t.Fatalf("P10: %s: sizes sum to %d, then to %d\n%s", order.Why, before, after, c.ownersOfMachines())
	}
}

// movesGone reports whether the order moves a machine that has disappeared since the decision.
func (c *chaos) movesGone(order deployment.Order) bool {
	for _, child := range c.shell.o.Sets {
		for _, seen := range child.Machines {
			moves := slices.Contains(order.Set.Instructions.Handover.Arriving, seen.Name) || slices.Contains(order.Set.Instructions.Handover.Leaving, seen.Name)
			m := c.machine(seen.Name)
			dead := m == nil || m.Deleted()
			if moves && (dead && order.Why.Reason == deployment.ReasonMoveBack || !dead && c.setGone(m)) {
				return true
			}
		}
	}
	return false
}

// movesReleased reports whether the order removes a machine from a handover because the machine's set was released.
func (c *chaos) movesReleased(order deployment.Order, stored *machineset.Set) bool {
	return order.Why.Reason == deployment.ReasonMoveOff && slices.ContainsFunc(stored.Instructions.Handover.Arriving, func(name string) bool {
		m := c.machine(name)
		return m != nil && !c.ours(m)
	})
}

// ours reports whether a machine's set is the deployment's.
func (c *chaos) ours(m *machine.Machine) bool {
	return slices.ContainsFunc(c.sets, func(s *machineset.Set) bool {
		return m.OwnedBy(s.UID) && c.deployment != nil && s.OwnedBy(c.deployment.UID)
	})
}

// setGone reports whether the machine's set was deleted or released since the shell has read it.
func (c *chaos) setGone(m *machine.Machine) bool {
	for _, child := range c.shell.o.Sets {
		if !m.OwnedBy(child.Set.UID) {
			continue
		}
		stored := c.set(child.Set.Name)
		return stored == nil || stored.UID != child.Set.UID || stored.Deleted() != child.Set.Deleted() || (stored.Owner == nil) != (child.Set.Owner == nil)
	}
	return false
}

// sizes returns the sum of all sizes, in which each machine counts once.
func (c *chaos) sizes() (n int) {
	for _, s := range c.sets {
		if s.Owner != nil && c.deployment != nil && s.OwnedBy(c.deployment.UID) && !s.Deleted() {
			n += c.size(s)
		}
	}
	return n
}

// checkOpening checks P7 for the opening of a closed set: the number of machines that there may be afterwards must not
// exceed the ceiling, or the number before.
func (c *chaos) checkOpening(order deployment.Order, pass *deployment.Deployment) {
	ceiling, _ := limitsOf(&pass.Spec)
	before, after := 0, 0
	for _, child := range c.shell.o.Sets {
		n := c.known(child, pass.Spec.MinReady)
		most := n.total()
		if child.Set.Instructions.Handover.Closed {
			most = n.actual + max(n.coming, min(n.spec-n.actual, openNames(child)))
		}
		before += most
		if child.Set.UID == order.Set.UID {
			n.spec = int(order.Set.Spec.Replicas)
			most = n.total()
		}
		after += most
	}
	if after > max(before, ceiling) {
		c.t.Fatalf("P7: %s: there may be %d machines after %d, ceiling %d\n%s", order.Why, after, before, ceiling, c.ownersOfMachines())
	}
}

// openNames counts the names that a set has reserved and not settled and that no machine has: machines may still be
// created under them.
func openNames(child deployment.Children) (n int) {
	r := child.Set.Instructions.Reservation
	for ordinal := r.Settled + 1; ordinal <= r.Reserved; ordinal++ {
		name := child.Set.MachineName(ordinal)
		if !slices.ContainsFunc(child.Machines, func(m *machine.Machine) bool { return m.Name == name }) {
			n++
		}
	}
	return n
}

// checkMachine checks P6 and P10 for an order about a machine, just before it is carried out, by what the shell knows.
func (c *chaos) checkMachine(kind string, order deployment.MachineOrder) {
	m, o := order.Machine, c.shell.o
	spec := &o.Deployment.Spec
	switch {
	case o.Deployment.Deleted():
		c.t.Fatalf("P25: %s for a deployment being deleted", kind)
	case kind == "move":
		c.checkMove(m, o)
	case m.Spec.InPlace != machine.InPlaceSelected || order.Why.Reason != deployment.ReasonSelect:
	case spec.Paused || spec.Strategy.Kind != deployment.InPlaceUpdate || spec.Strategy.Orchestration == deployment.Manual:
		c.t.Fatalf("selected, although the strategy is not Automatic: %s", order.Why)
	default:
		_, floor := limitsOf(spec)
		usable := 0
		for _, child := range o.Sets {
			n := c.known(child, spec.MinReady)
			usable, floor = usable+n.usable(), floor-n.stay()
		}
		if usable <= floor {
			c.t.Fatalf("P6: %s: %d machines available, floor is %d", order.Why, usable, floor)
		}
	}
}

// checkMove requires that a machine moves from one set to another and that both sets name it.
func (c *chaos) checkMove(m *machine.Machine, o *deployment.Observation) {
	for _, child := range o.Sets {
		s := child.Set
		to := m.OwnedBy(s.UID)
		from := slices.ContainsFunc(child.Machines, func(n *machine.Machine) bool { return n.UID == m.UID })
		switch {
		case to && from:
			c.t.Fatalf("P10: %s moves to the set that it is in", m.Name)
		case to && (!slices.Contains(s.Instructions.Handover.Arriving, m.Name) || s.Deleted()):
			c.t.Fatalf("P10: %s moves to %s, which does not name it as arriving", m.Name, s.Name)
		case to && !s.Spec.Selector.Matches(m.Labels):
			c.t.Fatalf("P10: %s does not match the selector of %s", m.Name, s.Name)
		case to && m.Spec.Class != s.Spec.Template.Spec.Class:
			c.t.Fatalf("P10: %s moves to %s with class %s", m.Name, s.Name, m.Spec.Class.Name)
		case from && !s.Deleted() && !slices.Contains(s.Instructions.Handover.Leaving, m.Name):
			c.t.Fatalf("P10: %s moves from %s, which does not name it as leaving", m.Name, s.Name)
		}
	}
}
