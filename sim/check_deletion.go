package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// RuleReason is the name of the rule that no serving machine is deleted without a reason.
const RuleReason = "reason"

// RuleKept is the name of the rule that a machine that a user keeps for inspection is not deleted before
// its time is up.
const RuleKept = "kept"

// p19: a set deletes the right one of its machines, and each deletion of a serving machine has a reason.
type p19 struct {
	*World
	choices *p20
}

func (w p19) see(e event) {
	d, ok := e.(machineDeleted)
	if !ok {
		return
	}
	s := w.setRecords[ownerUID(d.now)]
	if s == nil || s.last.Deleted() || w.faults[ClockJump] > 0 {
		return
	}
	w.checkKept(d.seen, s.last)
	w.checkTaken(d.seen, s)
}

// checkTaken checks that the deletion of a serving machine has a reason: its replacement was requested,
// it is too old, or it is surplus. Of surplus machines, those that a scaler chose are deleted first,
// then those of the lowest priority (P19, P20).
func (w p19) checkTaken(r *record[*machine.Machine], s *record[*machineset.Set]) {
	m := r.last
	if !m.Ready() || w.replacementRequested(m) || w.tooOld(m, s.last) || w.recent(r.lastChange) {
		return
	}
	others := w.neighbours(m)
	w.choices.checkChoice(m, s.last, others)
	if w.recent(s.lastChange) || w.recent(w.lastChange[s.last.UID]) {
		return
	}
	if len(others) < int(s.last.Spec.Replicas) {
		w.violate(RuleReason, "machine %s of set %s was deleted, and %d are left of %d: nobody asked for it", m.Name, s.last.Name, len(others), s.last.Spec.Replicas)
	}
	key := w.setPolicy().Keys.Priority
	lower := w.overlooked(others, s.last, func(other *machine.Machine) bool { return other.Priority(key) < m.Priority(key) })
	if lower != nil && !slices.ContainsFunc(s.last.Instructions.DeletionCandidates, candidateNamed(m.Name)) {
		w.violate("P19", "machine %s of priority %d was deleted before %s of priority %d", m.Name, m.Priority(key), lower.Name, lower.Priority(key))
	}
}

// overlooked returns an unprotected machine of a set that should have been deleted first. It returns nil if
// the remaining surplus is large enough that all such machines will still be deleted.
func (w p19) overlooked(others []*machine.Machine, s *machineset.Set, first func(*machine.Machine) bool) (one *machine.Machine) {
	surplus := len(others) - int(s.Spec.Replicas)
	for _, other := range others {
		if w.unprotected(other) && first(other) {
			one = other
			surplus--
		}
	}
	if surplus >= 0 {
		return nil
	}
	return one
}

func candidateNamed(name string) func(machineset.DeletionCandidate) bool {
	return func(v machineset.DeletionCandidate) bool { return v.Name == name }
}

// neighbours returns the other machines of a machine's set that are not being deleted.
func (w p19) neighbours(m *machine.Machine) (out []*machine.Machine) {
	for _, other := range w.machines.all() {
		if other.UID != m.UID && !other.Deleted() && m.Owner != nil && other.OwnedBy(m.Owner.UID) {
			out = append(out, other)
		}
	}
	return out
}

// checkKept checks that machines that a user keeps for inspection are the last of their set to be deleted, that none
// is deleted while its fleet has room for all of them, and that none is replaced that was kept since it failed.
func (w p19) checkKept(r *record[*machine.Machine], s *machineset.Set) {
	if !w.keptByUser(r) {
		return
	}
	m, setChanged := r.last, w.recent(w.setRecords[s.UID].lastChange)
	asked := m.Annotations[w.setPolicy().Keys.Replace] == "true" && w.recent(r.kept) // the order to replace it may be from before it was kept
	if r.kept.Equal(r.failed) && len(w.neighbours(m)) < int(s.Spec.Replicas) && !setChanged && !asked {
		w.violate(RuleKept, "machine %s was replaced, and it had been kept for inspection since it failed", m.Name)
	}
	if w.recent(r.kept) || setChanged || w.recent(w.lastChange[s.UID]) {
		return
	}
	if other := w.overlooked(w.neighbours(m), s, func(*machine.Machine) bool { return true }); other != nil {
		w.violate("P19", "machine %s is kept for inspection, and was deleted before %s", m.Name, other.Name)
	}
	if s.Owner != nil && !w.loweredBefore(s, r.kept) {
		w.checkRoom(m, w.deployment(s.Owner.Name))
	}
}

// loweredBefore reports whether a set's size was lowered before then, or so soon after that the manager may not have
// seen what happened then. The new size may take effect late: after a pause, or by the next process.
func (w p19) loweredBefore(s *machineset.Set, then time.Time) bool {
	lowered := w.setRecords[s.UID].lowered
	return !lowered.IsZero() && lowered.Sub(then) <= inFlight
}

// checkRoom checks that a kept machine is deleted only if its fleet has no room for all kept machines.
func (w p19) checkRoom(m *machine.Machine, d *deployment.Deployment) {
	if d == nil || d.Deleted() || d.Spec.Strategy.Kind == deployment.Recreate {
		return
	}
	kept := 0
	for _, other := range w.fleetOf(d) {
		if w.isPaused(other) && !other.Deleted() {
			return // a paused machine may stay in place of one that should be deleted
		}
		if rec := w.records[other.UID]; !rec.kept.IsZero() && (!other.Deleted() || other.UID == m.UID) {
			kept++
		}
	}
	if b := w.bounds[d.UID]; b != nil && kept <= b.least {
		w.violate(RuleKept, "machine %s is kept for inspection until %s, and was deleted; %d are kept of %d", m.Name, m.Status.Preservation.Until.Format(time.TimeOnly), kept, b.least)
	}
}

// keptByUser reports whether a machine is kept for inspection by a user's request, and will still be when an order
// that is given now takes effect.
func (w p19) keptByUser(r *record[*machine.Machine]) bool {
	p := &r.last.Status.Preservation
	return !r.kept.IsZero() && !p.Automatic() && p.Active(w.managerNow().Add(inFlight))
}
