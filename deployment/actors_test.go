package deployment_test

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// obey lets the controller of a set take one step. It reserves names before it
// creates, and creates what it has reserved, even if the set has shrunk since.
// It returns false when there is nothing to do.
func (w *world) obey(s *machineset.Set) bool {
	machines := w.machinesOf(s.UID)
	if ordinals := w.reserved[s.UID]; len(ordinals) > 0 {
		w.reserved[s.UID] = ordinals[1:]
		w.addMachine(s, s.MachineName(ordinals[0]), machine.PhasePending)
		return true
	}
	if w.deleteChosen(s) {
		return true
	}
	if rests, news := w.sayPaused(s); rests {
		return news
	}
	if s.Instructions.Reservation.Settled < s.Instructions.Reservation.Reserved {
		w.changeSet(s.Name, func(s *machineset.Set) { s.Instructions.Reservation.Settled = s.Instructions.Reservation.Reserved })
		return true
	}
	if s.Deleted() {
		return w.clear(s, machines)
	}
	alive := slices.DeleteFunc(slices.Clone(machines), func(m *machine.Machine) bool {
		return m.Deleted() || s.Owner != nil && slices.Contains(s.Instructions.Handover.Leaving, m.Name)
	})
	if slices.ContainsFunc(alive, w.giveUp) {
		return true
	}
	if s.Spec.Replicas < 0 {
		return false // invalid: it waits for a change
	}
	missing, waits := w.missing(s, len(alive), len(machines))
	if waits {
		return w.observe(s, len(alive))
	}
	switch {
	case missing > 0:
		w.changeSet(s.Name, func(s *machineset.Set) {
			for range missing {
				s.Instructions.Reservation.Reserved++
				w.reserved[s.UID] = append(w.reserved[s.UID], s.Instructions.Reservation.Reserved)
			}
		})
		return true
	case missing < 0:
		if free, n := w.removable(alive, -missing); len(free) > 0 {
			w.choose(s, free, n)
			return true
		}
	}
	return w.observe(s, len(alive))
}

// sayPaused lets a set that has no more machines to delete say whether it is paused. It reports
// whether the set does no more in this step, and whether what it said was news.
func (w *world) sayPaused(s *machineset.Set) (rests, news bool) {
	paused, said := isPaused(&s.Meta), object.FindCondition(s.Status.Conditions, machineset.ConditionPaused) != nil
	if paused == said {
		return paused, false
	}
	w.changeSet(s.Name, func(s *machineset.Set) {
		s.Status.Conditions = object.DropCondition(s.Status.Conditions, machineset.ConditionPaused)
		if paused {
			s.Status.ObservedGeneration = s.Generation
			s.Status.Conditions = object.SetCondition(s.Status.Conditions,
				object.Condition{Type: machineset.ConditionPaused, Status: object.True, Since: w.second()})
		}
	})
	return true, true
}

// choose deletes a machine of those that are free, or chooses as many as have to go.
func (w *world) choose(s *machineset.Set, free []*machine.Machine, n int) {
	if !w.early {
		w.deleteMachine(w.firstToDelete(s, free))
		return
	}
	for range min(n, len(free)) {
		name := w.firstToDelete(s, free)
		w.chosen[s.UID] = append(w.chosen[s.UID], name)
		free = slices.DeleteFunc(slices.Clone(free), func(m *machine.Machine) bool { return m.Name == name })
	}
}

// deleteChosen deletes the next machine that a set has chosen, and reports whether there was one.
func (w *world) deleteChosen(s *machineset.Set) bool {
	names := w.chosen[s.UID]
	if len(names) == 0 {
		return false
	}
	w.chosen[s.UID] = names[1:]
	for _, m := range w.machines {
		if m.Name == names[0] && !m.Deleted() && !isPaused(&m.Meta) {
			w.deleteMachine(m.Name)
			return true
		}
	}
	return true
}

// giveUp deletes a machine that has failed, and reports whether it has.
func (w *world) giveUp(m *machine.Machine) bool {
	gives := m.Status.Phase == machine.PhaseFailed && !isPaused(&m.Meta) && !m.Preserved(w.now)
	if gives {
		w.deleteMachine(m.Name)
	}
	return gives
}

// missing returns how many machines a set must create. Negative: this many must go. waits: it
// creates none until others are gone.
func (w *world) missing(s *machineset.Set, alive, all int) (missing int64, waits bool) {
	missing = int64(s.Spec.Replicas) - int64(alive)
	if w.strict && missing > 0 {
		if missing = int64(s.Spec.Replicas) - int64(all); missing <= 0 {
			return 0, true
		}
	}
	if missing > 0 && s.Owner != nil {
		missing = max(0, missing-w.arriving(s))
		if s.Instructions.Handover.Closed {
			missing = 0
		}
	}
	return missing, false
}

// observe lets a set report what it has, once it has what it should have.
func (w *world) observe(s *machineset.Set, n int) bool {
	if s.Status.ObservedGeneration == s.Generation && s.Status.Replicas == int32(n) {
		return false
	}
	w.changeSet(s.Name, func(s *machineset.Set) {
		s.Status.ObservedGeneration, s.Status.Replicas = s.Generation, int32(n)
	})
	return true
}

// clear deletes a set's machines, then the set.
func (w *world) clear(s *machineset.Set, machines []*machine.Machine) bool {
	for _, m := range machines {
		if !m.Deleted() && !isPaused(&m.Meta) {
			w.deleteMachine(m.Name)
			return true
		}
	}
	if len(machines) > 0 {
		return false
	}
	w.dropSet(s.Name)
	return true
}

// firstToDelete returns the machine that a set deletes first. Machines kept for inspection come
// last, deletion candidates first, then those that are not available.
func (w *world) firstToDelete(s *machineset.Set, alive []*machine.Machine) string {
	if others := slices.DeleteFunc(slices.Clone(alive), func(m *machine.Machine) bool { return m.Preserved(w.now) }); len(others) > 0 {
		alive = others
	}
	for _, m := range alive {
		if slices.ContainsFunc(s.Instructions.DeletionCandidates, func(v machineset.DeletionCandidate) bool { return v.Name == m.Name }) {
			return m.Name
		}
	}
	minReady := time.Duration(0)
	if w.deployment != nil {
		minReady = w.deployment.Spec.MinReady
	}
	for _, m := range alive {
		if !available(m, minReady, w.now) {
			return m.Name
		}
	}
	return alive[0].Name
}

// live lets one machine take its next step towards running, or towards being gone.
func (w *world) live(m *machine.Machine) bool {
	switch {
	case isPaused(&m.Meta):
		return false
	case m.Deleted():
		w.dropMachine(m.Name)
		return true
	case m.Status.Phase == machine.PhasePending, m.Status.Phase == machine.PhaseUnknown:
		w.enter(m.Name, machine.PhaseRunning)
		return true
	}
	return w.update(m)
}

// obeyAll lets all sets do what they can, while no machine moves on.
func (w *world) obeyAll() {
	again := true
	for rounds := 0; again; rounds++ {
		if rounds > 1000 {
			panic("the model's sets take no end: " + w.String())
		}
		again = false
		for _, s := range slices.Clone(w.sets) {
			if now := w.set(s.Name); now != nil && w.obey(now) {
				again = true
			}
		}
	}
}

// liveAll lets every machine take one step.
func (w *world) liveAll() {
	for _, m := range slices.Clone(w.machines) {
		w.live(m)
	}
}
