package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// RuleReason: no machine that serves is deleted without a reason.
const RuleReason = "reason"

// RuleKept: a machine that is kept for inspection stays until its time is up.
const RuleKept = "kept"

// choice is what a scaler chose last in a fleet that was at rest.
type choice struct {
	names      []string
	at         time.Time
	generation int64 // of the deployment since
}

// atRest reports whether a fleet is at rest and nothing is requested of any machine. Then the
// machines that a scaler chooses are the ones deleted.
func (w *World) atRest(d *deployment.Deployment, fleet []*machine.Machine) bool {
	if !complete(d, fleet) || d.Spec.Paused || d.Spec.MaxAge > 0 {
		return false
	}
	for _, m := range fleet {
		r := w.ledger.records[m.UID]
		if w.isPaused(m) || !m.Ready() || !r.kept.IsZero() || w.asked(m) || ownerUID(m) != ownerUID(fleet[0]) || m.Spec.InPlace != machine.InPlaceNone {
			return false
		}
	}
	return true
}

// asked reports whether a replacement of a machine is requested.
func (w *World) asked(m *machine.Machine) bool {
	return machineset.Requested(m, w.setPolicy().Keys.Replace)
}

// noteChoice records what a scaler was granted.
func (w *World) noteChoice(d *deployment.Deployment, names []string, clean bool, began time.Time) {
	now := w.deployment(d.Name)
	if !clean || now == nil || now.UID != d.UID || now.Generation != d.Generation+1 {
		delete(w.ledger.choices, d.UID)
		return
	}
	w.ledger.choices[d.UID] = &choice{names: names, at: began, generation: now.Generation}
}

// checkChange checks a change of a machine by the manager against what it may do.
func (w *World) checkChange(r *record[*machine.Machine], now *machine.Machine) {
	if !w.ledger.acting || w.ledger.belated {
		return
	}
	w.checkPausedMachine(r, now)
	if !now.Deleted() || r.last.Deleted() || w.ledger.excused[now.UID] {
		return
	}
	if w.setPaused(now) {
		w.violate("P25", "machine %s was deleted, and its set is paused", now.Name)
	}
	s := w.ledger.setRecords[ownerUID(now)]
	if s == nil || s.last.Deleted() || w.faults[ClockJump] > 0 {
		return
	}
	w.checkKept(r, s.last)
	w.checkTaken(r, s)
}

// checkTaken checks that the deletion of a machine that serves has a reason. Either the machine is
// surplus, and the machines that a scaler chose are deleted first, then those of the lowest
// priority (P19, P20). Or its replacement was requested, or it is too old.
func (w *World) checkTaken(r *record[*machine.Machine], s *record[*machineset.Set]) {
	m := r.last
	if !m.Ready() || w.asked(m) || w.tooOld(m, s.last) || w.recent(r.stirred) {
		return
	}
	others := w.neighbours(m)
	w.checkChoice(m, s.last, others)
	if w.recent(s.stirred) || w.recent(w.ledger.stirred[s.last.UID]) {
		return
	}
	if len(others) < int(s.last.Spec.Replicas) {
		w.violate(RuleReason, "machine %s of set %s was deleted, and %d are left of %d: nobody asked for it", m.Name, s.last.Name, len(others), s.last.Spec.Replicas)
	}
	key := w.setPolicy().Keys.Priority
	lower := w.staying(others, s.last, func(other *machine.Machine) bool { return other.Priority(key) < m.Priority(key) })
	if lower != nil && !slices.ContainsFunc(s.last.Instructions.DeletionCandidates, named(m.Name)) {
		w.violate("P19", "machine %s of priority %d was deleted before %s of priority %d", m.Name, m.Priority(key), lower.Name, lower.Priority(key))
	}
}

// staying returns a machine of a set that should be deleted first and that nothing protects, if
// more of these are left than the surplus. It returns nil if all are about to be deleted.
func (w *World) staying(others []*machine.Machine, s *machineset.Set, first func(*machine.Machine) bool) (one *machine.Machine) {
	surplus := len(others) - int(s.Spec.Replicas)
	for _, other := range others {
		if w.plain(other) && first(other) {
			one = other
			surplus--
		}
	}
	if surplus >= 0 {
		return nil
	}
	return one
}

func named(name string) func(machineset.DeletionCandidate) bool {
	return func(v machineset.DeletionCandidate) bool { return v.Name == name }
}

// recent reports whether orders that were given before then may be under way.
func (w *World) recent(then time.Time) bool { return w.underWay(then) }

// neighbours returns the other machines of a machine's set that are not being deleted.
func (w *World) neighbours(m *machine.Machine) (out []*machine.Machine) {
	for _, other := range w.machines.all() {
		if other.UID != m.UID && !other.Deleted() && m.Owner != nil && other.OwnedBy(m.Owner.UID) {
			out = append(out, other)
		}
	}
	return out
}

// plain reports whether nothing protects a machine from deletion.
func (w *World) plain(m *machine.Machine) bool {
	r := w.ledger.records[m.UID]
	_, wish := m.Annotations[w.machinePolicy().Keys.Preserve]
	return r != nil && r.kept.IsZero() && !w.isPaused(m) && !wish
}

// checkChoice: in a fleet at rest, the machines that a scaler has chosen are the ones deleted.
func (w *World) checkChoice(m *machine.Machine, s *machineset.Set, others []*machine.Machine) {
	if s.Owner == nil {
		return
	}
	c, d := w.ledger.choices[s.Owner.UID], w.deployment(s.Owner.Name)
	if c == nil || d == nil || d.Generation != c.generation || w.ledger.stirred[s.UID].After(c.at) || slices.Contains(c.names, m.Name) {
		return
	}
	for _, other := range others {
		if slices.Contains(c.names, other.Name) && w.plain(other) {
			w.violate("P20", "machine %s was deleted, and a scaler had chosen %s", m.Name, other.Name)
		}
	}
}

// checkForgotten: in a fleet at rest no choice of a scaler is left (P20). There are two exceptions:
// the reduction was taken back before the manager saw it, or the choice bears a future time and
// belongs to a later reduction.
func (w *World) checkForgotten() error {
	if w.faults[ClockJump] > 0 {
		return nil
	}
	key := w.deploymentPolicy().Keys.DeletionCandidates
	for _, d := range w.deployments.all() {
		c := w.ledger.choices[d.UID]
		if left := d.Annotations[key]; left != "" && c != nil && c.generation == d.Generation {
			return w.violation("P20", "deployment %s is at rest, and is to give up %s", d.Name, left)
		}
	}
	return nil
}

func (w *World) deploymentPolicy() *deployment.Policy {
	if p := w.o.Manager.DeploymentPolicy; p != nil {
		return p
	}
	return deployment.DefaultPolicy()
}

// tooOld reports whether a machine may be replaced for its age now.
func (w *World) tooOld(m *machine.Machine, s *machineset.Set) bool {
	at := machineset.ExpiresAt(m, s.Spec.MaxAge)
	return !at.IsZero() && !w.clock.now.Add(time.Second).Before(at)
}

// checkKept: machines that a user keeps for inspection are the last of their set to be deleted, and
// none is deleted as long as its fleet has room for all that are kept.
func (w *World) checkKept(r *record[*machine.Machine], s *machineset.Set) {
	if !w.keptByUser(r) {
		return
	}
	m, stirred := r.last, w.recent(w.ledger.setRecords[s.UID].stirred)
	asked := m.Annotations[w.setPolicy().Keys.Replace] == "true" && w.recent(r.kept) // ordered before it failed
	if r.kept.Equal(r.failed) && len(w.neighbours(m)) < int(s.Spec.Replicas) && !stirred && !asked {
		w.violate(RuleKept, "machine %s was replaced, and it had been kept for inspection since it failed", m.Name)
	}
	if w.recent(r.kept) || stirred || w.recent(w.ledger.stirred[s.UID]) {
		return
	}
	if other := w.staying(w.neighbours(m), s, func(*machine.Machine) bool { return true }); other != nil {
		w.violate("P19", "machine %s is kept for inspection, and was deleted before %s", m.Name, other.Name)
	}
	if s.Owner != nil {
		w.checkRoom(m, w.deployment(s.Owner.Name))
	}
}

// checkRoom: a kept machine is deleted only if more machines are kept than its fleet has room for.
func (w *World) checkRoom(m *machine.Machine, d *deployment.Deployment) {
	if d == nil || d.Deleted() || d.Spec.Strategy.Kind == deployment.Recreate {
		return
	}
	kept := 0
	for _, other := range w.fleetOf(d) {
		if w.isPaused(other) && !other.Deleted() {
			return // it stays in place of a machine that would be deleted
		}
		if rec := w.ledger.records[other.UID]; !rec.kept.IsZero() && (!other.Deleted() || other.UID == m.UID) {
			kept++
		}
	}
	if b := w.ledger.bounds[d.UID]; b != nil && kept <= b.least {
		w.violate(RuleKept, "machine %s is kept for inspection until %s, and was deleted; %d are kept of %d", m.Name, m.Status.Preservation.Until.Format(time.TimeOnly), kept, b.least)
	}
}

// keptByUser reports whether a machine is kept for some time yet because of a user's request.
func (w *World) keptByUser(r *record[*machine.Machine]) bool {
	p := &r.last.Status.Preservation
	return !r.kept.IsZero() && !p.Automatic() && p.Active(w.clock.now.Add(inFlight))
}

// keptOf returns how many of some machines are kept for inspection: they do not serve, and no
// machine is made in their place.
func (w *World) keptOf(fleet []*machine.Machine) (n int) {
	for _, m := range fleet {
		if r := w.ledger.records[m.UID]; r != nil && !r.kept.IsZero() && !m.Deleted() {
			n++
		}
	}
	return n
}
