package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// ledger is what the checks remember of the past.
type ledger struct {
	changed, provided bool                 // since the last check: objects, VMs
	acting            bool                 // the manager is, not the world
	belated           bool                 // it is a dead one, whose order is an old one
	goneAt            map[string]time.Time // machines by name, that are gone
	excused           map[string]bool      // machines, by UID, that somebody else deletes
	departed          []*machine.Machine   // of these, served and gone a moment ago
	strays            map[string]bool      // VMs that were not made through the driver
	late              map[string]bool      // machines whose VM was made when its caller was dead
	lives             map[string]*life     // machines by UID
	bounds            map[string]*bounds
	sets              map[string]bool // by UID, present at the last check
	cordoned          map[string]bool // nodes, by UID, that a user has cordoned
	repeated, early   int             // calls that were made again after a failure; too early
	lone              object.Key      // of a machine that was made by hand

	records    map[string]*record[*machine.Machine] // by UID, also of those that are gone
	setRecords map[string]*record[*machineset.Set]
	uids       map[string]string    // of machines, by name
	stirred    map[string]time.Time // by UID of a set: when something changed about its machines
	choices    map[string]*choice   // by UID of a deployment
	lateTags   map[string]bool      // machines whose VM was changed by a call of the dead

	pools      map[string]*poolRecord // by UID, also of those that are gone
	lateGroups map[object.Key]bool    // pools that are gone and have a group, or may get one from a call that comes late
	forgotten  map[string]bool        // UIDs of pools whose record somebody took away
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

func newLedger() ledger {
	return ledger{
		goneAt: map[string]time.Time{}, excused: map[string]bool{}, strays: map[string]bool{}, late: map[string]bool{}, lives: map[string]*life{}, bounds: map[string]*bounds{},
		sets: map[string]bool{}, cordoned: map[string]bool{}, records: map[string]*record[*machine.Machine]{}, setRecords: map[string]*record[*machineset.Set]{},
		uids: map[string]string{}, stirred: map[string]time.Time{}, choices: map[string]*choice{}, lateTags: map[string]bool{},
		pools: map[string]*poolRecord{}, lateGroups: map[object.Key]bool{}, forgotten: map[string]bool{},
	}
}

// Made returns how many machines there have ever been.
func (w *World) Made() int { return len(w.ledger.lives) }

// check checks the world against what must be true at every moment.
func (w *World) check() {
	l := &w.ledger
	if !l.changed && !l.provided {
		return
	}
	machines := w.machines.all()
	w.checkVMs(machines)
	w.checkFleets(machines)
	w.checkOwners(machines)
	w.checkLone()
	w.checkCordons()
	w.checkPools()
	l.changed, l.provided = false, false
	w.checkProperties()
	for _, watch := range w.watchers {
		watch()
	}
}

// checkVMs: at most one VM lives for a machine (P13), and no VM lives whose machine's record is
// gone (P14).
func (w *World) checkVMs(machines []*machine.Machine) {
	names := make(map[string]bool, len(machines))
	for _, m := range machines {
		names[m.Name] = true
	}
	seen := map[string]bool{}
	for _, vm := range w.provider.VMs() {
		switch {
		case w.ledger.strays[vm.ID]:
		case seen[vm.Name]:
			w.violate("P13", "two VMs live for machine %s", vm.Name)
		case !names[vm.Name] && !w.ledger.late[vm.Name]:
			w.violate("P14", "a VM of machine %s lives, and its record is gone", vm.Name)
		}
		seen[vm.Name] = true
		if w.o.NeedsInitialization && !vm.Initialized {
			w.checkInitialized(machines, &vm)
		}
	}
}

// checkCollected: a VM that is deleted as an orphan belongs to no machine. No machine whose VM it
// may be has yet to record which VM is its own (P15).
func (w *World) checkCollected(before []drivertest.MemoryVM) {
	left := map[string]bool{}
	for _, vm := range w.provider.VMs() {
		left[vm.ID] = true
	}
	for _, vm := range before {
		if left[vm.ID] {
			continue
		}
		w.collected++
		for _, m := range w.machines.all() {
			if m.Spec.ProviderID == vm.ID || m.Name == vm.Name && m.Spec.ProviderID == "" && !severalVMs(m) {
				w.violate("P15", "the VM of machine %s was collected as an orphan", m.Name)
			}
		}
	}
}

// severalVMs reports whether a machine was found to have several VMs, and has done nothing since.
func severalVMs(m *machine.Machine) bool {
	return m.Status.LastOperation.Code == codes.OutOfRange && m.Status.Phase == machine.PhaseCrashLoopBackOff
}

// checkDrained: no VM is deleted while pods run on its node, unless by force.
func (w *World) checkDrained(name string, running int) {
	if running == 0 || !w.ledger.acting {
		return
	}
	for _, m := range w.machines.all() {
		known := w.ledger.lives[m.UID]
		if m.Name == name && !w.forceDue(m) && (known == nil || !known.forced) {
			w.violate("P22", "the VM of machine %s went with %d pods running on it", name, running)
		}
	}
}

// checkFleets checks each deployment against its bounds (P7).
func (w *World) checkFleets(machines []*machine.Machine) {
	owners := map[string]string{} // deployment's UID by set's
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
		w.remember(m)
	}
}

// checkFleet checks a deployment against its bounds. departed is how many of its machines departed.
func (w *World) checkFleet(d *deployment.Deployment, machines []*machine.Machine, departed int) {
	b := w.widen(d, machines)
	total, serving, born, taken := 0, departed, 0, 0
	for _, m := range machines {
		switch w.checkNews(d, m, machines, b.floor-b.kept-departed) {
		case newlyBorn:
			born++
		case newlyTaken:
			taken++
		}
		w.remember(m)
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
	if born > 0 && total > b.ceiling && !w.ledger.belated {
		w.violate("P7", "%d machines of %s, %d are allowed", total, d.Name, b.ceiling)
	}
	if taken > 0 && serving < b.floor-b.kept {
		w.violate("P7", "a machine of %s was taken away, and %d are left that serve; %d have to", d.Name, serving, b.floor-b.kept)
	}
}

// checkNews checks what has changed about a machine, and returns the change if it counts for its
// fleet's bounds.
func (w *World) checkNews(d *deployment.Deployment, m *machine.Machine, machines []*machine.Machine, floor int) news {
	what := w.news(m)
	switch what {
	case newlyBorn:
		w.checkBirth(m)
		w.checkRecreate(d, m, machines)
	case newlyUpdated:
		w.checkUpdated(m, machines, floor)
	case newlyTaken:
		if w.traded(m, machines) || w.preferred(m, machines) {
			return nothing
		}
	case newlyGivenUp:
		w.ledger.lives[m.UID].givenUp = true
		w.checkVerdict(m, machines)
	}
	return what
}

// traded reports whether the deletion of a machine that served stands in for another one: the set
// was told to delete a machine that did not serve, and that machine has become available since. A
// set chooses when it carries out the order.
func (w *World) traded(m *machine.Machine, fleet []*machine.Machine) bool {
	for _, other := range fleet {
		known := w.ledger.lives[other.UID]
		if known == nil || known.traded || other.Deleted() || m.Owner == nil || !other.OwnedBy(m.Owner.UID) {
			continue
		}
		if !known.ready.IsZero() && (w.unforeseen(m, known.ready.Add(w.o.Faults.CacheLag)) || w.resumed(other)) {
			known.traded = true
			return true
		}
	}
	return false
}

// preferred reports whether a machine that served was deleted because a user gave a higher priority
// to another machine of its set that does not serve. Priority comes before all bounds.
func (w *World) preferred(m *machine.Machine, fleet []*machine.Machine) bool {
	key := w.setPolicy().Keys.Priority
	return slices.ContainsFunc(fleet, func(other *machine.Machine) bool {
		return ownerUID(other) == ownerUID(m) && !other.Deleted() && !other.Ready() && other.Priority(key) > m.Priority(key)
	})
}

// serves reports whether a machine counts as available: it was available at some time, and it is
// not being deleted as far as orders under way can know.
func (w *World) serves(m *machine.Machine) bool {
	return w.ledger.lives[m.UID].served && (!m.Deleted() || w.ledger.excused[m.UID] && w.unknown(m.DeletedAt))
}

// news is what has happened to a machine since it was last looked at.
type news int

const (
	nothing news = iota
	newlyBorn
	newlyTaken // one that served, by the manager
	newlyGivenUp
	newlyUpdated // begins its update in place
)

func (w *World) news(m *machine.Machine) news {
	known := w.ledger.lives[m.UID]
	switch {
	case known == nil && !m.Deleted():
		return newlyBorn
	case known == nil:
		return nothing
	case !m.Deleted():
		return known.moved(m.Status.Phase)
	case known.deleted || w.ledger.excused[m.UID]:
	case !known.ready.IsZero() && !w.unforeseen(m, known.ready) && !w.resumed(m):
		return newlyTaken
	}
	return nothing
}

// moved returns what a change of phase means for the fleet.
func (l *life) moved(to machine.Phase) news {
	switch {
	case to == machine.PhaseFailed && (l.phase == machine.PhaseUnknown || l.phase == machine.PhaseInPlaceUpdateFailed):
		return newlyGivenUp
	case to == machine.PhaseInPlaceUpdating && l.phase == machine.PhaseRunning && !l.ready.IsZero():
		return newlyUpdated
	}
	return nothing
}

// widen keeps a deployment's bounds as wide as they have been since it was last complete, because
// orders given under earlier bounds are still under way.
func (w *World) widen(d *deployment.Deployment, machines []*machine.Machine) *bounds {
	now := boundsOf(d)
	b := w.ledger.bounds[d.UID]
	if b == nil || complete(d, machines) && w.pledged(d) == d.Spec.Replicas {
		now.kept = w.keptOf(machines)
		w.ledger.bounds[d.UID] = &now
		return &now
	}
	b.least, b.most, b.kept = min(b.least, now.least), max(b.most, now.most), max(b.kept, w.keptOf(machines))
	b.floor, b.ceiling = min(b.floor, now.floor), max(b.ceiling, now.ceiling)
	return b
}

// boundsOf returns the bounds of a deployment's present spec.
func boundsOf(d *deployment.Deployment) bounds {
	r := max(d.Spec.Replicas, 0)
	if d.Spec.Strategy.Kind == deployment.Recreate {
		return bounds{floor: 0, ceiling: int(r), least: int(r), most: int(r)}
	}
	f := rollout.Fenceposts(d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable, r)
	return bounds{floor: int(r - f.Unavailable), ceiling: int(r) + int(f.Surge), least: int(r), most: int(r)}
}

// complete reports whether a deployment has converged: its status is true of its present spec, and
// all machines are new, available and as many as wanted.
func complete(d *deployment.Deployment, machines []*machine.Machine) bool {
	s := &d.Status
	return s.ObservedGeneration == d.Generation && s.Updated == d.Spec.Replicas && s.Replicas == d.Spec.Replicas &&
		s.Available == d.Spec.Replicas && len(machines) == int(d.Spec.Replicas)
}

// pledged returns how many machines the sets of a deployment want.
func (w *World) pledged(d *deployment.Deployment) (n int32) {
	for _, s := range w.sets.all() {
		if s.OwnedBy(d.UID) {
			n += s.Spec.Replicas
		}
	}
	return n
}

// Complete reports whether the deployment of that name, in Namespace, has converged.
func (w *World) Complete(name string) bool {
	d := w.deployment(name)
	return d != nil && complete(d, w.fleetOf(d))
}

// remember records what is seen of a machine.
func (w *World) remember(m *machine.Machine) {
	known := w.ledger.lives[m.UID]
	if known == nil {
		known = &life{born: w.clock.now}
		w.ledger.lives[m.UID] = known
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

func (w *World) deployment(name string) *deployment.Deployment {
	for _, d := range w.deployments.all() {
		if d.Key == (object.Key{Namespace: Namespace, Name: name}) {
			return d
		}
	}
	return nil
}

// fleetOf returns the machines of a deployment, including those being deleted.
func (w *World) fleetOf(d *deployment.Deployment) []*machine.Machine {
	sets := map[string]bool{}
	for _, s := range w.sets.all() {
		if s.OwnedBy(d.UID) {
			sets[s.UID] = true
		}
	}
	var out []*machine.Machine
	for _, m := range w.machines.all() {
		if m.Owner != nil && sets[m.Owner.UID] {
			out = append(out, m)
		}
	}
	return out
}
