package deployment_test

import (
	"fmt"
	"slices"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// destination returns the set of the same owner as from that a machine is on its way to. Nil: none.
func (w *world) destination(from *machineset.Set, name string) *machineset.Set {
	for _, s := range w.sets {
		ours := s.Owner != nil && from.Owner != nil && s.OwnedBy(from.Owner.UID)
		if ours && !s.Deleted() && slices.Contains(s.Instructions.Handover.Arriving, name) {
			return s
		}
	}
	return nil
}

// elsewhere reports whether a machine of s counts in another set already.
func (w *world) elsewhere(s *machineset.Set, name string) bool {
	to := w.destination(s, name)
	return to != nil && to.UID != s.UID && s.Owner != nil && !s.Deleted()
}

// size returns the size of a set, each machine counted once. A negative one is invalid: the set
// keeps what it has.
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

// offset returns the correction of a set's size for each machine to count once. It covers machines
// that count elsewhere and are still in its size, and those that were subtracted and have no
// destination.
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

// twice counts machines that are gone, and that s names as arriving although no set has given up
// their place. They still have a place in the set that they were in.
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

// arriving returns the machines on their way to a set that it does not own yet.
func (w *world) arriving(s *machineset.Set) (n int64) {
	for _, name := range s.Instructions.Handover.Arriving {
		if !slices.ContainsFunc(w.machinesOf(s.UID), func(m *machine.Machine) bool { return m.Name == name }) {
			n++
		}
	}
	return n
}

// update lets a machine take the next step of an update in place, as its own controller and an
// agent would. w.fates holds the outcome.
func (w *world) update(m *machine.Machine) bool {
	switch phase := m.Status.Phase; {
	case phase == machine.PhaseRunning && m.Spec.InPlace == machine.InPlaceSelected && !m.Preserved(w.now):
		w.enter(m.Name, machine.PhaseInPlaceUpdating)
	case phase == machine.PhaseInPlaceUpdating && w.fates[m.Name] == fateFails:
		w.enter(m.Name, machine.PhaseInPlaceUpdateFailed)
		w.changeMachine(m.Name, func(m *machine.Machine) {
			m.Status.LastOperation = machine.Operation{
				Kind: machine.OperationInPlaceUpdate, State: machine.StateFailed, Message: "no space left on device", Time: begin,
			}
		})
	case phase == machine.PhaseInPlaceUpdating && w.fates[m.Name] == fateNever:
		return false
	case phase == machine.PhaseInPlaceUpdating:
		w.enter(m.Name, machine.PhaseInPlaceUpdateSuccessful)
	case phase == machine.PhaseInPlaceUpdateSuccessful && m.Spec.InPlace == machine.InPlaceNone:
		w.enter(m.Name, machine.PhaseRunning)
	case phase == machine.PhaseInPlaceUpdateFailed && w.fates[m.Name] != fateFails:
		w.enter(m.Name, machine.PhaseFailed) // its health timeout is over
	default:
		return false
	}
	return true
}

// fate is the outcome of a machine's update in place.
type fate int

const (
	fateSucceeds fate = iota
	fateFails         // and it stays so
	fateNever         // no answer comes
)

// doom gives a machine's update a fate.
func (w *world) doom(name string, f fate) {
	if w.fates == nil {
		w.fates = map[string]fate{}
	}
	w.fates[name] = f
}

// ask makes a request of a machine by hand.
func (w *world) ask(name string, request machine.InPlaceRequest) {
	w.changeMachine(name, func(m *machine.Machine) { m.Spec.InPlace = request })
}

// updateMachine writes under the version that the machine was read with.
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
	s.o.Sets = regrouped(s.o.Sets, order.Machine.UID, stored)
	return true
}

// regrouped returns sets with another machine in place of one. Nil: without it.
func regrouped(sets []deployment.Children, uid string, stored *machine.Machine) []deployment.Children {
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

// where returns for each machine which set it is in, for a failure's message.
func (w *world) where() (out string) {
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
