package sim

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// fleetHistory records what several invariants have to know about the past of machines and sets.
type fleetHistory struct {
	*base
	*stores
	*pendingOrders
	*forcePolicy

	lives  map[string]*life   // machines by UID
	bounds map[string]*bounds // deployments by UID

	records    map[string]*record[*machine.Machine] // by UID, also of deleted machines
	setRecords map[string]*record[*machineset.Set]  // by UID, also of deleted sets
	uids       map[string]string                    // UIDs of machines, by name
	lastChange map[string]time.Time                 // when a set's machines last changed, by UID of the set
}

func newFleetHistory(g *base, s *stores, o *pendingOrders, f *forcePolicy) *fleetHistory {
	return &fleetHistory{
		base: g, stores: s, pendingOrders: o, forcePolicy: f,
		lives: map[string]*life{}, bounds: map[string]*bounds{}, records: map[string]*record[*machine.Machine]{},
		setRecords: map[string]*record[*machineset.Set]{}, uids: map[string]string{}, lastChange: map[string]time.Time{},
	}
}

// see records the changes of machines and sets.
func (l *fleetHistory) see(e event) {
	switch e := e.(type) {
	case deleting:
		if !l.acting {
			l.excuses.excused[e.uid] = true
		}
	case readinessChanging:
		l.noteForce(e.node)
	case stored[*machine.Machine]:
		if e.now != nil {
			l.recordMachine(e.now)
		}
	case stored[*machineset.Set]:
		if e.now != nil {
			l.recordSet(e.now)
		}
	}
}

// life is what was seen of a machine over time.
type life struct {
	wasAvailable       bool // it was available at some time
	deleted            bool
	forced             bool // force was due at some time
	last               *machine.Machine
	givenUp            bool // it failed because it was unhealthy for too long
	replacedInDeletion bool // another one was deleted in its place
	chosen             bool // it was deleted for a user's priority, or by a late call of a dead process
	phase              machine.Phase
	since              time.Time // when the phase began
	ready              time.Time // when it became available; zero: it is not available
	firstSeen          time.Time
}

// bounds holds the widest bounds of a deployment since it was last complete.
type bounds struct {
	floor, ceiling int
	least, most    int // lowest and highest number of replicas
	kept           int // the most machines that were kept for inspection
}

// boundsOf returns the bounds of a deployment's present spec.
func boundsOf(d *deployment.Deployment) bounds {
	r := max(d.Spec.Replicas, 0)
	f := d.Spec.Strategy.Bounds(r)
	return bounds{floor: int(r - f.Unavailable), ceiling: int(r) + int(f.Surge), least: int(r), most: int(r)}
}

// isComplete reports whether a deployment has converged: its status says so, and there are as many
// machines as wanted.
func isComplete(d *deployment.Deployment, machines []*machine.Machine) bool {
	return saysComplete(d) && len(machines) == int(d.Spec.Replicas)
}

// saysComplete reports whether a deployment's status says that it has converged.
func saysComplete(d *deployment.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration == d.Generation && s.Updated == d.Spec.Replicas && s.Replicas == d.Spec.Replicas &&
		s.Available == d.Spec.Replicas
}

// recordLife records what is seen of a machine.
func (l *fleetHistory) recordLife(m *machine.Machine) {
	known := l.lives[m.UID]
	if known == nil {
		known = &life{firstSeen: l.Now()}
		l.lives[m.UID] = known
	}
	known.wasAvailable, known.phase, known.since = known.wasAvailable || m.Ready(), m.Status.Phase, m.Status.Since
	known.givenUp = known.givenUp && m.Status.Phase == machine.PhaseFailed
	known.deleted = known.deleted || m.Deleted()
	known.forced = known.forced || l.forceDue(m) || known.last != nil && l.forceDue(known.last) // a new stage starts a new timeout
	known.last = m
	switch {
	case !m.Ready():
		known.ready = time.Time{}
	case known.ready.IsZero():
		known.ready = l.Now()
	}
}

// noteForce records whether force is due just before a node's readiness changes, because caches may
// still show the old readiness for a while.
func (l *fleetHistory) noteForce(node string) {
	m, err := l.machines.Get(context.Background(), object.Key{Namespace: Namespace, Name: node})
	if err != nil {
		return
	}
	if known := l.lives[m.UID]; known != nil {
		known.forced = known.forced || l.forceDue(m)
	}
}

// lateOrder reports whether a set may still delete its machine m by an order from before the time ready,
// when a machine of the set became available. Such an order could not be withdrawn yet.
func (l *fleetHistory) lateOrder(m *machine.Machine, ready time.Time) bool {
	s := l.setRecords[ownerUID(m)]
	return l.unknown(ready) && (s == nil || s.lowered.Sub(ready) <= inFlight)
}

// keptOf returns how many machines of a fleet are kept for inspection. Such machines do not serve and
// are not replaced.
func (l *fleetHistory) keptOf(fleet []*machine.Machine) (n int) {
	for _, m := range fleet {
		if r := l.records[m.UID]; r != nil && !r.kept.IsZero() && !m.Deleted() {
			n++
		}
	}
	return n
}

// record is the last seen state of an object, and when parts of that state began. A zero time means
// that this part does not hold.
type record[T any] struct {
	last    T
	paused  time.Time // when it was paused
	resumed time.Time // when the last pause ended
	// lastChange is the last change of anything that orders about the object, or about other machines
	// of its set, depend on.
	lastChange time.Time

	lowered time.Time // a set: when its size was last lowered, other than by a late call of a dead process

	kept      time.Time // a machine: when it began to be kept for inspection
	failed    time.Time // a machine: when it entered phase Failed
	begun     time.Time // a machine: when the update of its VM began
	unhealthy bool      // a machine: it was not ready during that update

	selected time.Time // a machine: when it was selected to be updated in place
}

// pausedLong reports whether a machine has been paused for so long that the manager no longer
// changes it.
func (l *fleetHistory) pausedLong(name string) bool {
	r := l.machine(name)
	return r != nil && l.longAgo(r.paused)
}

func (l *fleetHistory) machine(name string) *record[*machine.Machine] { return l.records[l.uids[name]] }

// recordMachine records a change of a machine. The invariants see the change after that.
func (l *fleetHistory) recordMachine(m *machine.Machine) {
	now := l.Now()
	r := l.records[m.UID]
	l.uids[m.Name] = m.UID
	if r == nil {
		r = &record[*machine.Machine]{lastChange: now}
		l.records[m.UID] = r
		l.recordChange(m, nil)
	} else {
		l.emitChange(r, m)
		if l.affectsChoice(r.last, m) {
			r.lastChange = now
			l.recordChange(m, r.last)
		}
	}
	r.last = m
	if !r.paused.IsZero() && !l.isPaused(m) {
		r.resumed = now
	}
	trackSince(&r.paused, now, l.isPaused(m))
	trackSince(&r.failed, now, m.Status.Phase == machine.PhaseFailed)
	trackSince(&r.kept, now, !m.Status.Preservation.Since.IsZero())
	trackSince(&r.selected, now, m.Spec.InPlace == machine.InPlaceSelected)
	failed := m.Status.LastOperation.State == machine.StateFailed && machine.NeverUpdated(m.Status.LastOperation.Code)
	updates := m.Status.VMSpec.Begun != "" && !m.Deleted()
	begins := updates && r.begun.IsZero()
	trackSince(&r.begun, now, updates)
	r.unhealthy = updates && (r.unhealthy || !m.Ready() || failed)
	if begins {
		l.emit(updateBegun{m})
	}
}

// emitChange emits an event if the running manager changed a machine.
func (l *fleetHistory) emitChange(r *record[*machine.Machine], now *machine.Machine) {
	if !l.acting || l.belated {
		return
	}
	l.emit(machineChanged{r, now})
	if now.Deleted() && !r.last.Deleted() && !l.excuses.excused[now.UID] {
		l.emit(machineDeleted{r, now})
	}
}

func (l *fleetHistory) isPaused(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, l.machinePolicy().Keys.Paused)
	return paused
}

// affectsChoice reports whether a change of a machine can affect which machine its set chooses to
// delete. A deletion by the manager does not, unless it follows the deletion of the node by a user.
func (l *fleetHistory) affectsChoice(before, now *machine.Machine) bool {
	keys := l.setPolicy().Keys
	for _, key := range []string{l.machinePolicy().Keys.Paused, l.machinePolicy().Keys.Preserve, keys.Priority, keys.Replace} {
		if before.Annotations[key] != now.Annotations[key] {
			return true
		}
	}
	return before.Status.Phase != now.Status.Phase && !now.Deleted() || before.Spec.InPlace != now.Spec.InPlace ||
		before.Status.Preservation.Since != now.Status.Preservation.Since ||
		now.Deleted() && !before.Deleted() && (!l.acting || l.nodeIsDeleted(now)) || ownerUID(before) != ownerUID(now)
}

// nodeIsDeleted reports whether the node of a machine is being deleted.
func (l *fleetHistory) nodeIsDeleted(m *machine.Machine) bool {
	return slices.ContainsFunc(l.stores.nodes.all(), func(n *machine.Node) bool { return n.Name == m.Spec.NodeName && n.Deleted() })
}

// recordChange records the time of a change of a set's machines.
func (l *fleetHistory) recordChange(now, before *machine.Machine) {
	for _, m := range []*machine.Machine{now, before} {
		if m != nil && m.Owner != nil {
			l.lastChange[m.Owner.UID] = l.Now()
		}
	}
}

// recordSet records a change of a set.
func (l *fleetHistory) recordSet(s *machineset.Set) {
	now := l.Now()
	r := l.setRecords[s.UID]
	if r == nil {
		r = &record[*machineset.Set]{lastChange: now}
		l.setRecords[s.UID] = r
		l.emit(setCreated{s})
	} else {
		l.emit(setChanged{r, s})
		if r.last.Generation != s.Generation || r.last.Deleted() != s.Deleted() {
			r.lastChange = now
		}
		if s.Spec.Replicas < r.last.Spec.Replicas && !l.belated {
			r.lowered = now
		}
	}
	r.last = s
	paused, _ := machine.Paused(&s.Meta, l.machinePolicy().Keys.Paused)
	if !r.paused.IsZero() && !paused {
		r.resumed = now
	}
	trackSince(&r.paused, now, paused)
}

func ownerUID(m *machine.Machine) string {
	if m.Owner == nil {
		return ""
	}
	return m.Owner.UID
}

// setPaused reports whether the set of a machine has been paused for so long that the manager no longer
// changes it.
func (l *fleetHistory) setPaused(m *machine.Machine) bool {
	r := l.setRecords[ownerUID(m)]
	return r != nil && l.longAgo(r.paused)
}

// pausedSince reports whether a machine is paused, or was at any moment since the time then.
func (l *fleetHistory) pausedSince(name string, then time.Time) bool {
	r := l.machine(name)
	return r != nil && (!r.paused.IsZero() || r.resumed.After(then))
}

// resumed reports whether a pause of a machine or of its set has just ended. Orders from before the
// pause may be carried out after it.
func (l *fleetHistory) resumed(m *machine.Machine) bool {
	r, s := l.records[m.UID], l.setRecords[ownerUID(m)]
	lately := func(t time.Time) bool { return !t.IsZero() && !l.longAgo(t) }
	return r != nil && lately(r.resumed) || s != nil && lately(s.resumed)
}

// unprotected reports whether a machine is neither paused nor kept for inspection, nor requested to be.
func (l *fleetHistory) unprotected(m *machine.Machine) bool {
	r := l.records[m.UID]
	_, requested := m.Annotations[l.machinePolicy().Keys.Preserve]
	return r != nil && r.kept.IsZero() && !l.isPaused(m) && !requested
}

// recent reports whether orders from before the time then may be under way.
func (l *fleetHistory) recent(then time.Time) bool { return l.underWay(then) }

// tooOld reports whether a machine may be replaced for its age now, by the manager's clock.
func (l *fleetHistory) tooOld(m *machine.Machine, s *machineset.Set) bool {
	at := machineset.ExpiresAt(m, s.Spec.MaxAge)
	return !at.IsZero() && !l.latest().Add(time.Second).Before(at)
}

// replacementRequested reports whether a user asked for the machine to be replaced.
func (l *fleetHistory) replacementRequested(m *machine.Machine) bool {
	return machineset.Requested(m, l.setPolicy().Keys.Replace)
}

// atRest reports whether a fleet is at rest and nothing is requested of any machine. Then the
// machines that a scaler chooses are the ones deleted.
func (l *fleetHistory) atRest(d *deployment.Deployment, fleet []*machine.Machine) bool {
	if !isComplete(d, fleet) || d.Spec.Paused || d.Spec.MaxAge > 0 {
		return false
	}
	for _, m := range fleet {
		r := l.records[m.UID]
		if l.isPaused(m) || !m.Ready() || !r.kept.IsZero() || l.replacementRequested(m) || ownerUID(m) != ownerUID(fleet[0]) || m.Spec.InPlace != machine.InPlaceNone {
			return false
		}
	}
	return true
}

// These are the events of changes by the manager, and of changes of sets. seen is the record of the
// object before the change.
type (
	// machineChanged: the running manager has changed a machine.
	machineChanged struct {
		seen *record[*machine.Machine]
		now  *machine.Machine
	}
	// machineDeleted: the running manager has deleted a machine, and no user has.
	machineDeleted struct {
		seen *record[*machine.Machine]
		now  *machine.Machine
	}
	// updateBegun: the manager has begun to change a machine's VM.
	updateBegun struct{ machine *machine.Machine }
	// setCreated, setChanged: anybody has created a set, or changed one.
	setCreated struct{ now *machineset.Set }
	setChanged struct {
		seen *record[*machineset.Set]
		now  *machineset.Set
	}
)

// pendingOrders says which orders of the processes so far may still be executed.
type pendingOrders struct {
	*apis
	process *process  // the current process, or the last one
	worked  time.Time // when a process was last interrupted after it had worked for a while
}

func (s *pendingOrders) see(e event) {
	switch e := e.(type) {
	case processStarted:
		s.process = e.process
	case interrupted:
		s.interrupted()
	}
}

// unknown reports whether orders may still be executed that were given before the time then, and so without
// knowing what happened at that time. Each process continues the orders of the one before it, until one has
// worked long enough to see their results.
func (s *pendingOrders) unknown(then time.Time) bool {
	if s.worked.Sub(then) > inFlight {
		return false
	}
	return s.process.dead || s.Now().Sub(s.ableSince(then)) <= inFlight
}

// ableSince returns the time since which the current process has been alive and both APIs have
// answered, or earliest if that is later.
func (s *pendingOrders) ableSince(earliest time.Time) time.Time {
	return slices.MaxFunc([]time.Time{earliest, s.process.began, s.outages[controlAPI].ends, s.outages[targetAPI].ends}, time.Time.Compare)
}

// interrupted records that the current process is about to be interrupted. If it had worked for a
// while, it has seen the results of the orders before it.
func (s *pendingOrders) interrupted() {
	if !s.process.dead && s.Now().Sub(s.ableSince(time.Time{})) > inFlight {
		s.worked = s.Now()
	}
}
