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

// past is what several invariants need to know of the past: what was seen of machines and sets.
type past struct {
	*ground
	*stores
	*orders
	*force

	lives  map[string]*life // machines by UID
	bounds map[string]*bounds

	records    map[string]*record[*machine.Machine] // by UID, also of those that are gone
	setRecords map[string]*record[*machineset.Set]
	uids       map[string]string    // of machines, by name
	stirred    map[string]time.Time // by UID of a set: when something changed about its machines
}

func newPast(g *ground, s *stores, o *orders, f *force) *past {
	return &past{
		ground: g, stores: s, orders: o, force: f,
		lives: map[string]*life{}, bounds: map[string]*bounds{}, records: map[string]*record[*machine.Machine]{},
		setRecords: map[string]*record[*machineset.Set]{}, uids: map[string]string{}, stirred: map[string]time.Time{},
	}
}

// see follows machines and sets.
func (l *past) see(e event) {
	switch e := e.(type) {
	case deleting:
		if !l.acting {
			l.facts.excused[e.uid] = true
		}
	case readinessTurns:
		l.noteForce(e.node)
	case stored[*machine.Machine]:
		if e.now != nil {
			l.sawMachine(e.now)
		}
	case stored[*machineset.Set]:
		if e.now != nil {
			l.sawSet(e.now)
		}
	}
}

// life is what was seen of a machine.
type life struct {
	served  bool // was available at some time
	deleted bool
	forced  bool // force was due at some time
	last    *machine.Machine
	givenUp bool // for its health
	traded  bool // another one was deleted in its place
	chosen  bool // deleted for a user's priority, or by a late call of a dead process
	phase   machine.Phase
	since   time.Time // of the phase
	ready   time.Time // since when it is available; zero: it is not
	born    time.Time // when it was seen first
}

// bounds of a deployment, as wide as they have been since it was last complete.
type bounds struct {
	floor, ceiling int
	least, most    int // replicas
	kept           int // the most machines that were kept for inspection
}

// boundsOf returns the bounds of a deployment's present spec.
func boundsOf(d *deployment.Deployment) bounds {
	r := max(d.Spec.Replicas, 0)
	f := d.Spec.Strategy.Bounds(r)
	return bounds{floor: int(r - f.Unavailable), ceiling: int(r) + int(f.Surge), least: int(r), most: int(r)}
}

// isComplete reports whether a deployment has converged: its status is true of its present spec,
// and all machines are new, available and as many as wanted.
func isComplete(d *deployment.Deployment, machines []*machine.Machine) bool {
	return saysComplete(d) && len(machines) == int(d.Spec.Replicas)
}

// saysComplete reports whether a deployment's status says that it has converged.
func saysComplete(d *deployment.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration == d.Generation && s.Updated == d.Spec.Replicas && s.Replicas == d.Spec.Replicas &&
		s.Available == d.Spec.Replicas
}

// remember records what is seen of a machine.
func (l *past) remember(m *machine.Machine) {
	known := l.lives[m.UID]
	if known == nil {
		known = &life{born: l.Now()}
		l.lives[m.UID] = known
	}
	known.served, known.phase, known.since = known.served || m.Ready(), m.Status.Phase, m.Status.Since
	known.givenUp = known.givenUp && m.Status.Phase == machine.PhaseFailed
	known.deleted = known.deleted || m.Deleted()
	known.forced = known.forced || l.forceDue(m) || known.last != nil && l.forceDue(known.last) // a new stage has a new clock
	known.last = m
	switch {
	case !m.Ready():
		known.ready = time.Time{}
	case known.ready.IsZero():
		known.ready = l.Now()
	}
}

// noteForce records whether force is due before a node's readiness changes, because caches may show
// the old state for a while longer.
func (l *past) noteForce(node string) {
	m, err := l.machines.Get(context.Background(), object.Key{Namespace: Namespace, Name: node})
	if err != nil {
		return
	}
	if known := l.lives[m.UID]; known != nil {
		known.forced = known.forced || l.forceDue(m)
	}
}

// unforeseen reports whether a set may take machine m because of an order from before then, when a
// machine of the set became available. The order must not be newer, and it could not be
// taken back yet.
func (l *past) unforeseen(m *machine.Machine, then time.Time) bool {
	s := l.setRecords[ownerUID(m)]
	return l.unknown(then) && (s == nil || s.lowered.Sub(then) <= inFlight)
}

// keptOf returns how many of some machines are kept for inspection: they do not serve, and no
// machine is made in their place.
func (l *past) keptOf(fleet []*machine.Machine) (n int) {
	for _, m := range fleet {
		if r := l.records[m.UID]; r != nil && !r.kept.IsZero() && !m.Deleted() {
			n++
		}
	}
	return n
}

// record is how an object was last seen, and since when some of it is so.
type record[T any] struct {
	last    T
	paused  time.Time // since when it is to be left as it is, or zero
	resumed time.Time // when that ended last
	// stirred is the last change of anything that an order about the object or its neighbours is
	// made from.
	stirred time.Time

	lowered time.Time // a set: when its size was lowered last, by somebody who lived

	kept   time.Time // a machine: since when its status says that it is kept
	failed time.Time // a machine: since when it is in phase Failed
	begun  time.Time // a machine: since when its VM is being changed
	ailing bool      // a machine: it was not ready meanwhile

	selected time.Time // a machine: since when it is selected to be updated in place
}

// pausedLong reports whether a machine has been paused for so long that the manager no longer
// changes it.
func (l *past) pausedLong(name string) bool {
	r := l.machine(name)
	return r != nil && l.longAgo(r.paused)
}

func (l *past) machine(name string) *record[*machine.Machine] { return l.records[l.uids[name]] }

// sawMachine records a change of a machine, before anything else looks at it.
func (l *past) sawMachine(m *machine.Machine) {
	now := l.Now()
	r := l.records[m.UID]
	l.uids[m.Name] = m.UID
	if r == nil {
		r = &record[*machine.Machine]{stirred: now}
		l.records[m.UID] = r
		l.stir(m, nil)
	} else {
		l.tellChange(r, m)
		if l.stirs(r.last, m) {
			r.stirred = now
			l.stir(m, r.last)
		}
	}
	r.last = m
	if !r.paused.IsZero() && !l.isPaused(m) {
		r.resumed = now
	}
	since(&r.paused, now, l.isPaused(m))
	since(&r.failed, now, m.Status.Phase == machine.PhaseFailed)
	since(&r.kept, now, !m.Status.Preservation.Since.IsZero())
	since(&r.selected, now, m.Spec.InPlace == machine.InPlaceSelected)
	failed := m.Status.LastOperation.State == machine.StateFailed && machine.NeverUpdated(m.Status.LastOperation.Code)
	updates := m.Status.VMSpec.Begun != "" && !m.Deleted()
	begins := updates && r.begun.IsZero()
	since(&r.begun, now, updates)
	r.ailing = updates && (r.ailing || !m.Ready() || failed)
	if begins {
		l.emit(updateBegun{m})
	}
}

// tellChange tells of a change of a machine by the manager.
func (l *past) tellChange(r *record[*machine.Machine], now *machine.Machine) {
	if !l.acting || l.belated {
		return
	}
	l.emit(machineChanged{r, now})
	if now.Deleted() && !r.last.Deleted() && !l.facts.excused[now.UID] {
		l.emit(machineDeleted{r, now})
	}
}

func (l *past) isPaused(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, l.machinePolicy().Keys.Paused)
	return paused
}

// stirs reports whether a set chooses by a change of a machine: all changes, except that the
// manager deletes it, and not because somebody else deletes its node.
func (l *past) stirs(before, now *machine.Machine) bool {
	keys := l.setPolicy().Keys
	for _, key := range []string{l.machinePolicy().Keys.Paused, l.machinePolicy().Keys.Preserve, keys.Priority, keys.Replace} {
		if before.Annotations[key] != now.Annotations[key] {
			return true
		}
	}
	return before.Status.Phase != now.Status.Phase && !now.Deleted() || before.Spec.InPlace != now.Spec.InPlace ||
		before.Status.Preservation.Since != now.Status.Preservation.Since ||
		now.Deleted() && !before.Deleted() && (!l.acting || l.nodeGoes(now)) || ownerUID(before) != ownerUID(now)
}

// nodeGoes reports whether the node of a machine is being deleted.
func (l *past) nodeGoes(m *machine.Machine) bool {
	return slices.ContainsFunc(l.stores.nodes.all(), func(n *machine.Node) bool { return n.Name == m.Spec.NodeName && n.Deleted() })
}

// stir records that something has changed about the machines of a set.
func (l *past) stir(now, before *machine.Machine) {
	for _, m := range []*machine.Machine{now, before} {
		if m != nil && m.Owner != nil {
			l.stirred[m.Owner.UID] = l.Now()
		}
	}
}

// sawSet records a change of a set.
func (l *past) sawSet(s *machineset.Set) {
	now := l.Now()
	r := l.setRecords[s.UID]
	if r == nil {
		r = &record[*machineset.Set]{stirred: now}
		l.setRecords[s.UID] = r
		l.emit(setCreated{s})
	} else {
		l.emit(setChanged{r, s})
		if r.last.Generation != s.Generation || r.last.Deleted() != s.Deleted() {
			r.stirred = now
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
	since(&r.paused, now, paused)
}

func ownerUID(m *machine.Machine) string {
	if m.Owner == nil {
		return ""
	}
	return m.Owner.UID
}

// setPaused reports whether the set of a machine has been paused for long.
func (l *past) setPaused(m *machine.Machine) bool {
	r := l.setRecords[ownerUID(m)]
	return r != nil && l.longAgo(r.paused)
}

// pausedSince reports whether a machine is paused, or was at any time since then.
func (l *past) pausedSince(name string, then time.Time) bool {
	r := l.machine(name)
	return r != nil && (!r.paused.IsZero() || r.resumed.After(then))
}

// resumed reports whether a machine, or its set, was paused until just now. Orders from before the
// pause are carried out when it is over.
func (l *past) resumed(m *machine.Machine) bool {
	r, s := l.records[m.UID], l.setRecords[ownerUID(m)]
	lately := func(t time.Time) bool { return !t.IsZero() && !l.longAgo(t) }
	return r != nil && lately(r.resumed) || s != nil && lately(s.resumed)
}

// plain reports whether nothing protects a machine from deletion.
func (l *past) plain(m *machine.Machine) bool {
	r := l.records[m.UID]
	_, requested := m.Annotations[l.machinePolicy().Keys.Preserve]
	return r != nil && r.kept.IsZero() && !l.isPaused(m) && !requested
}

// recent reports whether orders that were given before then may be under way.
func (l *past) recent(then time.Time) bool { return l.underWay(then) }

// tooOld reports whether a machine may be replaced for its age now, by the manager's clock.
func (l *past) tooOld(m *machine.Machine, s *machineset.Set) bool {
	at := machineset.ExpiresAt(m, s.Spec.MaxAge)
	return !at.IsZero() && !l.latest().Add(time.Second).Before(at)
}

// asked reports whether a replacement of a machine is requested.
func (l *past) asked(m *machine.Machine) bool {
	return machineset.Requested(m, l.setPolicy().Keys.Replace)
}

// atRest reports whether a fleet is at rest and nothing is requested of any machine. Then the
// machines that a scaler chooses are the ones deleted.
func (l *past) atRest(d *deployment.Deployment, fleet []*machine.Machine) bool {
	if !isComplete(d, fleet) || d.Spec.Paused || d.Spec.MaxAge > 0 {
		return false
	}
	for _, m := range fleet {
		r := l.records[m.UID]
		if l.isPaused(m) || !m.Ready() || !r.kept.IsZero() || l.asked(m) || ownerUID(m) != ownerUID(fleet[0]) || m.Spec.InPlace != machine.InPlaceNone {
			return false
		}
	}
	return true
}

// These tell of changes by the manager and of sets. seen is what is known of the object from
// before.
type (
	// machineChanged: the manager that lives has changed a machine.
	machineChanged struct {
		seen *record[*machine.Machine]
		now  *machine.Machine
	}
	// machineDeleted: it has deleted one, and no user has.
	machineDeleted struct {
		seen *record[*machine.Machine]
		now  *machine.Machine
	}
	// updateBegun: the manager has begun to change a machine's VM.
	updateBegun struct{ machine *machine.Machine }
	// setCreated, setChanged: something has made a set, or changed one.
	setCreated struct{ now *machineset.Set }
	setChanged struct {
		seen *record[*machineset.Set]
		now  *machineset.Set
	}
)

// orders says which orders of the processes so far may still be carried out.
type orders struct {
	*apis
	process *process  // the one that lives, or lived last
	worked  time.Time // when a process was disturbed last that had worked for a while
}

func (s *orders) see(e event) {
	switch e := e.(type) {
	case processStarted:
		s.process = e.process
	case interrupted:
		s.keptFromWork()
	}
}

// unknown reports whether orders that were given before then may still be carried out. Each process
// goes on with the orders of the one before it, until one has worked for long enough to see what
// has become of the fleet since then.
func (s *orders) unknown(then time.Time) bool {
	if s.worked.Sub(then) > inFlight {
		return false
	}
	return s.process.dead || s.Now().Sub(s.workingSince(then)) <= inFlight
}

// workingSince is since when the present process has been able to work, then at the earliest: it
// lives, and both APIs answer.
func (s *orders) workingSince(then time.Time) time.Time {
	return slices.MaxFunc([]time.Time{then, s.process.began, s.outages[controlAPI].ends, s.outages[targetAPI].ends}, time.Time.Compare)
}

// keptFromWork notes that the present process is about to be kept from its work. One that has worked for
// a while has seen what has become of the fleet.
func (s *orders) keptFromWork() {
	if !s.process.dead && s.Now().Sub(s.workingSince(time.Time{})) > inFlight {
		s.worked = s.Now()
	}
}
