package sim

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// past is what several invariants need to know of the past: what was seen of machines and sets.
type past struct {
	lives  map[string]*life // machines by UID
	bounds map[string]*bounds

	records    map[string]*record[*machine.Machine] // by UID, also of those that are gone
	setRecords map[string]*record[*machineset.Set]
	uids       map[string]string    // of machines, by name
	stirred    map[string]time.Time // by UID of a set: when something changed about its machines
}

func newPast() past {
	return past{
		lives: map[string]*life{}, bounds: map[string]*bounds{}, records: map[string]*record[*machine.Machine]{},
		setRecords: map[string]*record[*machineset.Set]{}, uids: map[string]string{}, stirred: map[string]time.Time{},
	}
}

// life is what was seen of a machine.
type life struct {
	served  bool // was available at some time
	deleted bool
	forced  bool // force was due at some time
	givenUp bool // for its health
	traded  bool // another one was deleted in its place
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

// complete reports whether a deployment has converged: its status is true of its present spec, and
// all machines are new, available and as many as wanted.
func complete(d *deployment.Deployment, machines []*machine.Machine) bool {
	s := &d.Status
	return s.ObservedGeneration == d.Generation && s.Updated == d.Spec.Replicas && s.Replicas == d.Spec.Replicas &&
		s.Available == d.Spec.Replicas && len(machines) == int(d.Spec.Replicas)
}

// Complete reports whether the deployment of that name, in Namespace, has converged.
func (w *World) Complete(name string) bool {
	d := w.deployment(name)
	return d != nil && complete(d, w.fleetOf(d))
}

// remember records what is seen of a machine.
func (w *World) remember(m *machine.Machine) {
	known := w.past.lives[m.UID]
	if known == nil {
		known = &life{born: w.clock.now}
		w.past.lives[m.UID] = known
	}
	known.served, known.phase, known.since = known.served || m.Ready(), m.Status.Phase, m.Status.Since
	known.givenUp = known.givenUp && m.Status.Phase == machine.PhaseFailed
	known.deleted = known.deleted || m.Deleted()
	known.forced = known.forced || w.forceDue(m)
	switch {
	case !m.Ready():
		known.ready = time.Time{}
	case known.ready.IsZero():
		known.ready = w.clock.now
	}
}

// keptOf returns how many of some machines are kept for inspection: they do not serve, and no
// machine is made in their place.
func (w *World) keptOf(fleet []*machine.Machine) (n int) {
	for _, m := range fleet {
		if r := w.past.records[m.UID]; r != nil && !r.kept.IsZero() && !m.Deleted() {
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
}

// pausedLong reports whether a machine has been paused for so long that the manager no longer
// changes it.
func (w *World) pausedLong(name string) bool {
	r := w.past.machine(name)
	return r != nil && w.longAgo(r.paused)
}

func (l *past) machine(name string) *record[*machine.Machine] { return l.records[l.uids[name]] }

// sawMachine records a change of a machine, before anything else looks at it.
func (w *World) sawMachine(m *machine.Machine) {
	l, now := &w.past, w.clock.now
	r := l.records[m.UID]
	l.uids[m.Name] = m.UID
	if r == nil {
		r = &record[*machine.Machine]{stirred: now}
		l.records[m.UID] = r
		w.stir(m, nil)
	} else {
		w.tellChange(r, m)
		if w.stirs(r.last, m) {
			r.stirred = now
			w.stir(m, r.last)
		}
	}
	r.last = m
	if !r.paused.IsZero() && !w.isPaused(m) {
		r.resumed = now
	}
	since(&r.paused, now, w.isPaused(m))
	since(&r.failed, now, m.Status.Phase == machine.PhaseFailed)
	since(&r.kept, now, !m.Status.Preservation.Since.IsZero())
	failed := m.Status.LastOperation.State == machine.StateFailed && machine.NeverUpdated(m.Status.LastOperation.Code)
	updates := m.Status.VMSpec.Begun != "" && !m.Deleted()
	begins := updates && r.begun.IsZero()
	since(&r.begun, now, updates)
	r.ailing = updates && (r.ailing || !m.Ready() || failed)
	if begins {
		w.emit(updateBegun{m})
	}
}

// tellChange tells of a change of a machine by the manager.
func (w *World) tellChange(r *record[*machine.Machine], now *machine.Machine) {
	if !w.acting || w.belated {
		return
	}
	w.emit(machineChanged{r, now})
	if now.Deleted() && !r.last.Deleted() && !w.facts.excused[now.UID] {
		w.emit(machineDeleted{r, now})
	}
}

// since keeps the time since when something is so.
func since(t *time.Time, now time.Time, is bool) {
	switch {
	case !is:
		*t = time.Time{}
	case t.IsZero():
		*t = now
	}
}

func (w *World) isPaused(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, w.machinePolicy().Keys.Paused)
	return paused
}

// stirs reports whether a set chooses by a change of a machine: all changes, except that the
// manager deletes it.
func (w *World) stirs(before, now *machine.Machine) bool {
	keys := w.setPolicy().Keys
	for _, key := range []string{w.machinePolicy().Keys.Paused, w.machinePolicy().Keys.Preserve, keys.Priority, keys.Replace} {
		if before.Annotations[key] != now.Annotations[key] {
			return true
		}
	}
	return before.Status.Phase != now.Status.Phase && !now.Deleted() || before.Spec.InPlace != now.Spec.InPlace ||
		before.Status.Preservation.Since != now.Status.Preservation.Since ||
		now.Deleted() && !before.Deleted() && !w.acting || ownerUID(before) != ownerUID(now)
}

// stir records that something has changed about the machines of a set.
func (w *World) stir(now, before *machine.Machine) {
	for _, m := range []*machine.Machine{now, before} {
		if m != nil && m.Owner != nil {
			w.past.stirred[m.Owner.UID] = w.clock.now
		}
	}
}

// sawSet records a change of a set.
func (w *World) sawSet(s *machineset.Set) {
	l, now := &w.past, w.clock.now
	r := l.setRecords[s.UID]
	if r == nil {
		r = &record[*machineset.Set]{stirred: now}
		l.setRecords[s.UID] = r
		w.emit(setCreated{s})
	} else {
		w.emit(setChanged{r, s})
		if r.last.Generation != s.Generation || r.last.Deleted() != s.Deleted() {
			r.stirred = now
		}
		if s.Spec.Replicas < r.last.Spec.Replicas && !w.belated {
			r.lowered = now
		}
	}
	r.last = s
	paused, _ := machine.Paused(&s.Meta, w.machinePolicy().Keys.Paused)
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
func (w *World) setPaused(m *machine.Machine) bool {
	r := w.past.setRecords[ownerUID(m)]
	return r != nil && w.longAgo(r.paused)
}

// pausedSince reports whether a machine is paused, or was at any time since then.
func (w *World) pausedSince(name string, then time.Time) bool {
	r := w.past.machine(name)
	return r != nil && (!r.paused.IsZero() || r.resumed.After(then))
}

// resumed reports whether a machine, or its set, was paused until just now. Orders from before the
// pause are carried out when it is over.
func (w *World) resumed(m *machine.Machine) bool {
	r, s := w.past.records[m.UID], w.past.setRecords[ownerUID(m)]
	lately := func(t time.Time) bool { return !t.IsZero() && !w.longAgo(t) }
	return r != nil && lately(r.resumed) || s != nil && lately(s.resumed)
}

// plain reports whether nothing protects a machine from deletion.
func (w *World) plain(m *machine.Machine) bool {
	r := w.past.records[m.UID]
	_, requested := m.Annotations[w.machinePolicy().Keys.Preserve]
	return r != nil && r.kept.IsZero() && !w.isPaused(m) && !requested
}

// recent reports whether orders that were given before then may be under way.
func (w *World) recent(then time.Time) bool { return w.underWay(then) }

// tooOld reports whether a machine may be replaced for its age now.
func (w *World) tooOld(m *machine.Machine, s *machineset.Set) bool {
	at := machineset.ExpiresAt(m, s.Spec.MaxAge)
	return !at.IsZero() && !w.clock.now.Add(time.Second).Before(at)
}

// asked reports whether a replacement of a machine is requested.
func (w *World) asked(m *machine.Machine) bool {
	return machineset.Requested(m, w.setPolicy().Keys.Replace)
}

// atRest reports whether a fleet is at rest and nothing is requested of any machine. Then the
// machines that a scaler chooses are the ones deleted.
func (w *World) atRest(d *deployment.Deployment, fleet []*machine.Machine) bool {
	if !complete(d, fleet) || d.Spec.Paused || d.Spec.MaxAge > 0 {
		return false
	}
	for _, m := range fleet {
		r := w.past.records[m.UID]
		if w.isPaused(m) || !m.Ready() || !r.kept.IsZero() || w.asked(m) || ownerUID(m) != ownerUID(fleet[0]) || m.Spec.InPlace != machine.InPlaceNone {
			return false
		}
	}
	return true
}

// Made returns how many machines there have ever been.
func (w *World) Made() int { return len(w.past.lives) }

// These tell of changes by the manager and of sets. seen is what is known of the object from before.
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
