package sim

import (
	"maps"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// p46: when updates in place fail, the rollout stops before it touches more machines than may be out of
// service at a time, or than Strategy.StopAfter allows.
type p46 struct {
	*World
	rollouts map[string]*failures     // by UID of the deployment
	phases   map[string]machine.Phase // of machines, by UID
}

// failures holds the updates in place of one rollout that have failed since the last success.
type failures struct {
	class  string                   // of the template that is rolled out
	since  time.Time                // when that became wanted; zero: at the beginning
	failed map[string]updateFailure // by name of the machine
	// succeeded is the latest Status.Since of a success. If a failure and a success are almost at the
	// same time, Status.Since says which came first, and not the order in which they were stored.
	succeeded time.Time
}

// updateFailure says when a failure was stored (at), and the machine's Status.Since.
type updateFailure struct{ at, since time.Time }

func newP46(w *World) *p46 { return &p46{w, map[string]*failures{}, map[string]machine.Phase{}} }

func (w *p46) see(e event) {
	switch e := e.(type) {
	case stored[*deployment.Deployment]:
		w.deploymentChanged(e.now)
	case stored[*machine.Machine]:
		w.noteSuccess(e.now)
	case machineChanged:
		w.machineChanged(e.seen.last, e.now)
	}
}

// deploymentChanged counts anew when the template has changed, or after a pause.
func (w *p46) deploymentChanged(d *deployment.Deployment) {
	switch {
	case d == nil:
	case d.Spec.Paused:
		delete(w.rollouts, d.UID)
	case w.rollouts[d.UID] != nil && w.rollouts[d.UID].class != d.Spec.Template.Spec.Class.Name:
		w.rollouts[d.UID] = &failures{class: d.Spec.Template.Spec.Class.Name, since: w.Now(), failed: map[string]updateFailure{}}
	}
}

// noteSuccess notes an update that has succeeded, also if a late call of a dead process wrote that.
func (w *p46) noteSuccess(m *machine.Machine) {
	if m == nil {
		return
	}
	if d, _ := w.updatedInPlace(m); d != nil && w.rollouts[d.UID] != nil && w.phases[m.UID] == machine.PhaseInPlaceUpdateSuccessful && m.Status.Phase == machine.PhaseRunning {
		r := w.rollouts[d.UID]
		if m.Status.Since.After(r.succeeded) {
			r.succeeded = m.Status.Since
		}
		maps.DeleteFunc(r.failed, func(_ string, f updateFailure) bool { return f.since.Before(r.succeeded) })
	}
	w.phases[m.UID] = m.Status.Phase
}

// machineChanged notes a failed update, and checks the selection of a machine.
func (w *p46) machineChanged(before, now *machine.Machine) {
	d, limit := w.updatedInPlace(now)
	if d == nil {
		return
	}
	r := w.rollouts[d.UID]
	if r == nil {
		r = &failures{class: d.Spec.Template.Spec.Class.Name, failed: map[string]updateFailure{}}
		w.rollouts[d.UID] = r
	}
	switch from, to := before.Status.Phase, now.Status.Phase; {
	case from == machine.PhaseInPlaceUpdating && to == machine.PhaseInPlaceUpdateFailed:
		noticed := r.since.IsZero() || !w.unknown(r.since) // if the manager may not know the rollout yet, the failure counts for the one before
		if noticed && !now.Status.Since.Before(r.succeeded) && w.wanted(d, now.Annotations[w.deploymentPolicy().Keys.InPlaceTarget]) {
			r.failed[now.Name] = updateFailure{w.Now(), now.Status.Since}
		}
	case failedInPlace(from) && !failedInPlace(to) && !now.Deleted():
		delete(r.failed, now.Name)
	case before.Spec.InPlace != machine.InPlaceSelected && now.Spec.InPlace == machine.InPlaceSelected:
		w.check(d, r, now, limit)
	}
}

// failedInPlace reports whether a machine in this phase may have had a failed update.
func failedInPlace(p machine.Phase) bool {
	return p == machine.PhaseInPlaceUpdateFailed || p == machine.PhaseFailed
}

// wanted reports whether the set of that name has the template that is rolled out. The target of an
// update that began before the template changed has another one.
func (w *p46) wanted(d *deployment.Deployment, set string) bool {
	for _, s := range w.sets.all() {
		if s.Name == set {
			return w.deploymentPolicy().Wants(d, s)
		}
	}
	return false
}

// check checks that a machine may be selected: not too many have failed or are being updated.
func (w *p46) check(d *deployment.Deployment, r *failures, m *machine.Machine, limit int) {
	failed, under := 0, 0
	for _, f := range r.failed {
		if !w.unknown(f.at) {
			failed++
		}
	}
	for _, other := range w.fleetOf(d) {
		over := failedInPlace(other.Status.Phase) // in this rollout or an earlier one
		if other.Spec.InPlace == machine.InPlaceSelected && !other.Deleted() && !over {
			under++
		}
	}
	if failed > 0 && failed+under > limit && !w.belated {
		w.violate("P46", "machine %s was selected for an update in place: %d failed in a row, %d are under way, %d may fail", m.Name, failed, under, limit)
	}
}

// updatedInPlace returns the deployment that updates a machine in place, and how many updates may fail
// in a row. It returns nil if there is none, or if its rollout never stops.
func (w *World) updatedInPlace(m *machine.Machine) (*deployment.Deployment, int) {
	s := w.setRecords[ownerUID(m)]
	if s == nil || s.last.Owner == nil {
		return nil, 0
	}
	d := w.deployment(s.last.Owner.Name)
	if d == nil || d.Deleted() || d.Spec.Strategy.Kind != deployment.InPlaceUpdate || d.Spec.Strategy.Orchestration != deployment.Automatic || w.bounds[d.UID] == nil {
		return nil, 0
	}
	b, stopAfter := w.bounds[d.UID], d.Spec.Strategy.StopAfter
	switch {
	case stopAfter.Value == 0:
		return d, b.ceiling - b.floor
	case stopAfter.Ceil(d.Spec.Replicas) > d.Spec.Replicas:
		return nil, 0
	}
	return d, int(max(stopAfter.Ceil(int32(b.most)), 1))
}

// p47: in an update in place, no VM is deleted because its node is not Ready, until the health timeout is
// over. A failed update costs a VM only if the replacement budget grants it. This is checked for
// fleets without surge whose size does not change.
type p47 struct{ *World }

func (w p47) see(e event) {
	if e, ok := e.(machineDeleted); ok && w.faults[ClockJump] == 0 {
		w.checkNeed(e.seen.last, e.now)
	}
}

func (w p47) checkNeed(m, now *machine.Machine) {
	s := w.setRecords[ownerUID(now)]
	if s == nil || s.last.Deleted() || s.last.Owner == nil {
		return
	}
	d := w.deployment(s.last.Owner.Name)
	if d == nil || d.Deleted() || !w.keepsSize(d) {
		return
	}
	if m.Status.Phase == machine.PhaseFailed || w.replacementRequested(m) || w.tooOld(m, s.last) || chosenByUser(s.last, m) {
		return
	}
	left := 0
	for _, other := range w.fleetOf(d) {
		if other.UID != m.UID && !other.Deleted() {
			left++
		}
	}
	if least := w.bounds[d.UID].least; left < least {
		w.violate("P47", "machine %s was deleted in phase %s, and %d of %s are left of %d: nobody has judged it", m.Name, m.Status.Phase, left, d.Name, least)
	}
}

// keepsSize reports whether a fleet is updated in place without surge, and its size has not changed.
// With surge, or if fewer machines are wanted, the worst of the old machines are deleted.
func (w p47) keepsSize(d *deployment.Deployment) bool {
	b := w.bounds[d.UID]
	return b != nil && d.Spec.Strategy.Kind == deployment.InPlaceUpdate && b.ceiling <= b.most && b.least == b.most
}

// chosenByUser reports whether a scaler has chosen a machine of a set.
func chosenByUser(s *machineset.Set, m *machine.Machine) bool {
	for _, c := range s.Instructions.DeletionCandidates {
		if c.Name == m.Name {
			return true
		}
	}
	return false
}
