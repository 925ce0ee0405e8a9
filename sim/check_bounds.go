package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// p07: rollouts stay within their bounds. No machine is created above the maximum, no serving machine
// is deleted below the minimum, and no more VMs are updated at a time than allowed.
type p07 struct {
	*World
	departedServing []*machine.Machine // serving machines that were deleted unforeseeably
}

func newP07(w *World) *p07 { return &p07{World: w} }

func (w *p07) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Machine]:
		if e.now == nil {
			w.recordDeparture(e.key.Name)
		}
	case setChanged:
		w.raisedLate(e.seen.last, e.now)
	case updateBegun:
		w.checkUpdating(e.machine)
	case effect:
		w.checkFleets(w.machines.all())
	}
}

// raisedLate raises the ceiling of a deployment by as much as a late call of a dead process has raised
// one of its sets: the running process may have ordered as many machines of another set before that.
func (w *p07) raisedLate(before, now *machineset.Set) {
	if b := w.bounds[setOwner(now)]; b != nil && w.belated {
		b.ceiling += int(max(now.Spec.Replicas-before.Spec.Replicas, 0))
	}
}

func setOwner(s *machineset.Set) string {
	if s.Owner == nil {
		return ""
	}
	return s.Owner.UID
}

// checkFleets checks each deployment against its bounds (P7).
func (w *p07) checkFleets(machines []*machine.Machine) {
	owners := map[string]string{} // UID of the deployment, by UID of the set
	for _, s := range w.sets.all() {
		if s.Owner != nil {
			owners[s.UID] = s.Owner.UID
		}
	}
	fleets := map[string][]*machine.Machine{}
	for _, m := range machines {
		if m.Owner != nil {
			d := owners[m.Owner.UID]
			fleets[d] = append(fleets[d], m)
		}
	}
	departed := w.departed(owners)
	for _, d := range w.deployments.all() {
		w.checkFleet(d, fleets[d.UID], departed[d.UID])
	}
	for _, m := range machines {
		w.recordLife(m)
	}
}

// checkFleet checks a deployment against its bounds. departed is the number from w.departed for it.
func (w *p07) checkFleet(d *deployment.Deployment, machines []*machine.Machine, departed int) {
	b := w.widen(d, machines)
	total, serving, created, taken := 0, departed, 0, 0
	for _, m := range machines {
		switch w.checkChange(d, m, machines, b.floor-b.kept-departed) {
		case newlyCreated:
			created++
		case newlyTaken:
			taken++
		}
		w.recordLife(m)
		if !m.Deleted() {
			total++
		}
		if w.serves(m) {
			serving++
		}
	}
	if d.Deleted() {
		return
	}
	if created > 0 && total > b.ceiling && !w.belated {
		w.violate("P7", "%d machines of %s, the maximum is %d", total, d.Name, b.ceiling)
	}
	if taken > 0 && serving < b.floor-b.kept {
		w.violate("P7", "a machine of %s was taken out of service: %d serving machines are left, the minimum is %d", d.Name, serving, b.floor-b.kept)
	}
}

// checkChange checks what has changed about a machine. It returns the change, or noChange if the change
// does not count for the bounds of the fleet.
func (w *p07) checkChange(d *deployment.Deployment, m *machine.Machine, machines []*machine.Machine, floor int) machineChange {
	what := w.classify(m)
	switch what {
	case newlyCreated:
		w.emit(machineCreated{m})
		w.checkRecreate(d, m, machines)
	case newlyUpdated:
		w.checkUpdated(m, machines, floor)
	case newlyTaken:
		switch known := w.lives[m.UID]; {
		case w.belated: // the running process may have ordered the deletion of another machine in its place
			known.chosen = true
			return noChange
		case w.swapped(m, machines):
			return noChange
		case w.preferred(m, machines):
			known.chosen = true
			return noChange
		}
	case newlyGivenUp:
		w.lives[m.UID].givenUp = true
		w.emit(machineFailed{m, machines})
	}
	return what
}

// swapped reports whether a serving machine was deleted in place of another one: the set was told to
// delete a machine when the other one did not serve, and the other one has become available since. A set
// chooses the machine when it carries out the order.
func (w *p07) swapped(m *machine.Machine, fleet []*machine.Machine) bool {
	for _, other := range fleet {
		known := w.lives[other.UID]
		if known == nil || known.replacedInDeletion || other.Deleted() || m.Owner == nil || !other.OwnedBy(m.Owner.UID) {
			continue
		}
		if !known.ready.IsZero() && (w.lateOrder(m, known.ready.Add(w.o.Faults.CacheLag)) || w.resumed(other)) {
			known.replacedInDeletion = true
			return true
		}
	}
	return false
}

// preferred reports whether a serving machine was deleted because a user gave a higher priority to
// another machine of its set that does not serve. Priority comes before all bounds.
func (w *p07) preferred(m *machine.Machine, fleet []*machine.Machine) bool {
	key := w.setPolicy().Keys.Priority
	return slices.ContainsFunc(fleet, func(other *machine.Machine) bool {
		return ownerUID(other) == ownerUID(m) && !other.Deleted() && !other.Ready() && other.Priority(key) > m.Priority(key)
	})
}

// serves reports whether a machine counts as serving: it was available at some time, and it is not being
// deleted, as far as orders under way can know.
func (w *p07) serves(m *machine.Machine) bool {
	return w.lives[m.UID].wasAvailable && (!m.Deleted() || w.unforeseeable(m.UID) && w.unknown(m.DeletedAt))
}

// unforeseeable reports whether no order could know that a machine would be deleted: somebody other
// than the running manager deleted it, or its set did so for a user's priority.
func (w *p07) unforeseeable(uid string) bool { return w.excuses.excused[uid] || w.lives[uid].chosen }

// recordDeparture records a machine that is gone, if it served and its deletion was unforeseeable.
func (w *p07) recordDeparture(name string) {
	uid := w.uids[name]
	r, known := w.records[uid], w.lives[uid]
	if r != nil && known != nil && known.wasAvailable && w.unforeseeable(uid) {
		w.departedServing = append(w.departedServing, r.last)
	}
}

// departed counts the machines in departedServing by the UID of their deployment. A machine counts as
// long as orders that rely on it may be under way. owners maps the UIDs of sets to those of their
// deployments.
func (w *p07) departed(owners map[string]string) map[string]int {
	counts := map[string]int{}
	var recent []*machine.Machine
	for _, m := range w.departedServing {
		if m.Deleted() && w.unknown(m.DeletedAt) {
			counts[owners[ownerUID(m)]]++
		}
		if w.Now().Sub(m.DeletedAt) < time.Hour { // see checkUpdated
			recent = append(recent, m)
		}
	}
	w.departedServing = recent
	return counts
}

// checkRecreate checks that with strategy Recreate, machines of two sets never exist at the same time.
func (w *p07) checkRecreate(d *deployment.Deployment, created *machine.Machine, fleet []*machine.Machine) {
	if d.Spec.Strategy.Kind != deployment.Recreate || w.belated {
		return
	}
	for _, other := range fleet {
		if other.Owner.UID != created.Owner.UID {
			w.violate("P7", "machine %s of a new set was made while %s of another exists", created.Name, other.Name)
		}
	}
}

// checkUpdated checks that an available machine is taken out of service for its update only if enough
// others stay in service.
func (w *p07) checkUpdated(m *machine.Machine, fleet []*machine.Machine, floor int) {
	serving := 0
	for _, other := range fleet {
		if known := w.lives[other.UID]; known != nil && (w.serves(other) || w.leftAfter(other, m)) && !outForUpdate(other) {
			serving++
		}
	}
	for _, gone := range w.departedServing {
		if !w.unknown(gone.DeletedAt) && w.sameFleet(gone, m) && w.leftAfter(gone, m) {
			serving++
		}
	}
	if known := w.lives[m.UID]; serving < floor && !w.belated && !w.underWay(known.ready) {
		w.violate("P7", "machine %s was taken out of service for its update: %d serving machines are left, the minimum is %d", m.Name, serving, floor)
	}
}

// sameFleet reports whether two machines are of one deployment.
func (w *p07) sameFleet(a, b *machine.Machine) bool {
	setA, setB := w.setRecords[ownerUID(a)], w.setRecords[ownerUID(b)]
	return setA != nil && setB != nil && setA.last.Owner != nil && setB.last.Owner != nil && setA.last.Owner.UID == setB.last.Owner.UID
}

// leftAfter reports whether somebody other than the manager deleted a machine after m was selected for
// its update, or so shortly before that the selection could not take it into account.
func (w *p07) leftAfter(other, m *machine.Machine) bool {
	r := w.records[m.UID]
	return w.lives[other.UID].wasAvailable && w.excuses.excused[other.UID] && r != nil && !r.selected.IsZero() &&
		other.DeletedAt.After(r.selected.Add(-inFlight))
}

// outForUpdate reports whether a machine is out of service for its update.
func outForUpdate(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateFailed, machine.PhaseInPlaceUpdateSuccessful:
		return true
	}
	return false
}

// machineChange is what has happened to a machine, as far as it counts for bounds and budgets.
type machineChange int

const (
	noChange machineChange = iota
	newlyCreated
	newlyTaken   // the manager deletes it, and it served
	newlyGivenUp // it was marked failed for its health
	newlyUpdated // its update in place begins
)

func (w *p07) classify(m *machine.Machine) machineChange {
	known := w.lives[m.UID]
	switch {
	case known == nil && !m.Deleted():
		return newlyCreated
	case known == nil:
		return noChange
	case !m.Deleted():
		return known.phaseChange(m.Status.Phase)
	case known.deleted || w.excuses.excused[m.UID]:
	case !known.ready.IsZero() && !w.lateOrder(m, known.ready) && !w.resumed(m):
		return newlyTaken
	}
	return noChange
}

// phaseChange classifies a change of a machine's phase.
func (l *life) phaseChange(to machine.Phase) machineChange {
	switch {
	case to == machine.PhaseFailed && (l.phase == machine.PhaseUnknown || l.phase == machine.PhaseInPlaceUpdateFailed):
		return newlyGivenUp
	case to == machine.PhaseInPlaceUpdating && l.phase == machine.PhaseRunning && !l.ready.IsZero():
		return newlyUpdated
	}
	return noChange
}

// widen returns the widest bounds of a deployment since it was last complete, because orders that were
// given under earlier bounds may still be under way.
func (w *p07) widen(d *deployment.Deployment, machines []*machine.Machine) *bounds {
	now := boundsOf(d)
	b := w.bounds[d.UID]
	if b == nil || isComplete(d, machines) && w.wantedBySets(d) == d.Spec.Replicas {
		now.kept = w.keptOf(machines)
		w.bounds[d.UID] = &now
		return &now
	}
	b.least, b.most, b.kept = min(b.least, now.least), max(b.most, now.most), max(b.kept, w.keptOf(machines))
	b.floor, b.ceiling = min(b.floor, now.floor), max(b.ceiling, now.ceiling)
	return b
}

// checkUpdating checks how many VMs of a fleet are updated at a time. One more than the limit is allowed,
// since nothing depends on the exact number. A process that has just started may exceed it further.
func (w *p07) checkUpdating(m *machine.Machine) {
	s := w.setRecords[ownerUID(m)]
	if s == nil || s.last.Owner == nil || !w.knowsUpdates() {
		return
	}
	d := w.deployment(s.last.Owner.Name)
	if d == nil || w.bounds[d.UID] == nil {
		return
	}
	limit := int(max(1, w.deploymentPolicy().UpdateLimit.Ceil(int32(w.bounds[d.UID].most))))
	if under := w.updatedBeside(d, m); under > limit {
		w.violate("P7", "%d VMs of %s are being updated, the maximum is %d", under+1, d.Name, limit)
	}
}

// knownLag is how old a cache may be while the manager still knows which VMs are being updated: it
// remembers for a minute which updates it has begun.
const knownLag = 20 * time.Second

// knowsUpdates reports whether the manager has to know which VMs are being updated.
func (w *p07) knowsUpdates() bool {
	return w.o.Faults.CacheLag <= knownLag && w.acting && !w.belated && w.faults[ClockJump] == 0 && w.longAgo(w.process.began)
}

// updatedBeside returns how many VMs of a fleet are being updated, without that of m.
func (w *p07) updatedBeside(d *deployment.Deployment, m *machine.Machine) (under int) {
	for _, other := range w.fleetOf(d) {
		if o := w.records[other.UID]; o != nil && other.UID != m.UID && !o.begun.IsZero() && !o.unhealthy {
			under++
		}
	}
	return under
}

// These are events of machines, emitted with the effect after the change.
type (
	// machineCreated: a fleet has a new machine.
	machineCreated struct{ machine *machine.Machine }
	// machineFailed: a machine was marked failed for its health. fleet has all machines of its
	// deployment.
	machineFailed struct {
		machine *machine.Machine
		fleet   []*machine.Machine
	}
)

// p07InPlace: if the rollout selects the machines for updates in place, no more of them are out of
// service for their update at a time than the bounds allow, even if users select more by labels on nodes.
type p07InPlace struct{ *World }

func (w p07InPlace) see(e event) {
	if e, ok := e.(machineChanged); ok && e.seen.last.Status.Phase == machine.PhaseRunning && e.now.Status.Phase == machine.PhaseInPlaceUpdating {
		w.checkAtOnce(e.now)
	}
}

func (w p07InPlace) checkAtOnce(m *machine.Machine) {
	s := w.setRecords[ownerUID(m)]
	if s == nil || s.last.Owner == nil || w.belated {
		return
	}
	d := w.deployment(s.last.Owner.Name)
	if d == nil || d.Deleted() || d.Spec.Strategy.Kind != deployment.InPlaceUpdate || d.Spec.Strategy.Orchestration != deployment.Automatic {
		return
	}
	b, out := w.bounds[d.UID], 0
	for _, other := range w.fleetOf(d) {
		if other.Status.Phase == machine.PhaseInPlaceUpdating && !other.Deleted() {
			out++
		}
	}
	if b != nil && out > b.ceiling-b.floor {
		w.violate("P7", "machine %s of %s is taken out of service for its update: %d are at a time, %d may be", m.Name, d.Name, out, b.ceiling-b.floor)
	}
}
