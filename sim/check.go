package sim

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// ledger is what the checks remember of the past.
type ledger struct {
	changed, provided bool             // since the last check: objects, VMs
	acting            bool             // the manager is, not the world
	belated           bool             // it is a dead one, whose order is an old one
	excused           map[string]bool  // machines, by UID, that somebody else deletes
	strays            map[string]bool  // VMs that nobody made through the driver
	late              map[string]bool  // machines whose VM was made when its caller was dead
	lives             map[string]*life // machines by UID
	bounds            map[string]*bounds
}

// life is what was seen of a machine.
type life struct {
	served  bool // was available at some time
	deleted bool
	ready   time.Time // since when it is available; zero: it is not
}

// bounds of a deployment, as wide as they have been since it was last complete.
type bounds struct{ floor, ceiling int }

func newLedger() ledger {
	return ledger{
		excused: map[string]bool{}, strays: map[string]bool{}, late: map[string]bool{}, lives: map[string]*life{}, bounds: map[string]*bounds{},
	}
}

// Made is how many machines there have ever been.
func (w *World) Made() int { return len(w.ledger.lives) }

// check holds the world to what must be true at every moment.
func (w *World) check() {
	l := &w.ledger
	if !l.changed && !l.provided {
		return
	}
	machines := w.machines.all()
	w.checkVMs(machines)
	w.checkFleets(machines)
	l.changed, l.provided = false, false
	for _, watch := range w.watchers {
		watch()
	}
}

// checkVMs: one VM lives for a machine at most (P13), and none whose machine's
// record is gone (P14).
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
			w.violate("P13: two VMs live for machine %s", vm.Name)
		case !names[vm.Name] && !w.ledger.late[vm.Name]:
			w.violate("P14: a VM of machine %s lives, and its record is gone", vm.Name)
		}
		seen[vm.Name] = true
	}
}

// checkCollected: a VM that is deleted for being nobody's is no machine's, and
// of no machine that has yet to record which one is its own (P15).
func (w *World) checkCollected(before []drivertest.MemoryVM) {
	left := map[string]bool{}
	for _, vm := range w.provider.VMs() {
		left[vm.ID] = true
	}
	for _, vm := range before {
		if left[vm.ID] {
			continue
		}
		w.count("orphan collected")
		for _, m := range w.machines.all() {
			if m.Spec.ProviderID == vm.ID || m.Name == vm.Name && m.Spec.ProviderID == "" && !severalVMs(m) {
				w.violate("P15: the VM of machine %s was collected as an orphan", m.Name)
			}
		}
	}
}

// severalVMs tells whether a machine was found to have several VMs, and has
// done nothing since.
func severalVMs(m *machine.Machine) bool {
	return m.Status.LastOperation.Code == codes.OutOfRange && m.Status.Phase == machine.PhaseCrashLoopBackOff
}

// checkDrained: no VM goes while pods run on its node, unless by force.
func (w *World) checkDrained(name string, running int) {
	if running == 0 {
		return
	}
	for _, m := range w.machines.all() {
		if m.Name == name && !m.Status.LastOperation.Forced && w.clock.now.Sub(m.DeletedAt) < time.Hour {
			w.violate("P22: the VM of machine %s went with %d pods running on it", name, running)
		}
	}
}

// checkFleets holds each deployment to its bounds (P7).
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
	for _, d := range w.deployments.all() {
		w.checkFleet(d, fleets[d.UID])
	}
	for _, m := range machines {
		w.remember(m)
	}
}

func (w *World) checkFleet(d *deployment.Deployment, machines []*machine.Machine) {
	b := w.widen(d, machines)
	var total, serving, born, taken int
	for _, m := range machines {
		switch w.news(m) {
		case newlyBorn:
			born++
		case newlyTaken:
			taken++
		}
		w.remember(m)
		if m.Deleted() {
			continue
		}
		total++
		if w.ledger.lives[m.UID].served {
			serving++
		}
	}
	if d.Deleted() {
		return
	}
	if born > 0 && total > b.ceiling && !w.ledger.belated {
		w.violate("P7: %d machines of %s, %d are allowed", total, d.Name, b.ceiling)
	}
	if taken > 0 && serving < b.floor {
		w.violate("P7: a machine of %s was taken away, and %d are left that serve; %d have to", d.Name, serving, b.floor)
	}
}

// inFlight is how long an order may be under way: a machine that has become
// available since it was given was not when it was.
const inFlight = 30 * time.Second

// news is what has happened to a machine since it was last looked at.
type news int

const (
	nothing news = iota
	newlyBorn
	newlyTaken // one that served, by the manager
)

func (w *World) news(m *machine.Machine) news {
	known := w.ledger.lives[m.UID]
	switch {
	case known == nil && !m.Deleted():
		return newlyBorn
	case known == nil || known.deleted || !m.Deleted() || w.ledger.excused[m.UID]:
	case !known.ready.IsZero() && w.clock.now.Sub(known.ready) > inFlight:
		return newlyTaken
	}
	return nothing
}

// widen keeps a deployment's bounds as wide as they have been since it was last
// complete: orders given under earlier ones are still on their way.
func (w *World) widen(d *deployment.Deployment, machines []*machine.Machine) *bounds {
	r := max(d.Spec.Replicas, 0)
	f := rollout.Fenceposts(d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable, r)
	now := bounds{floor: int(r - f.Unavailable), ceiling: int(r) + int(f.Surge)}
	if d.Spec.Strategy.Kind == deployment.Recreate {
		now = bounds{floor: 0, ceiling: int(r)}
	}
	b := w.ledger.bounds[d.UID]
	if b == nil || complete(d, machines) {
		w.ledger.bounds[d.UID] = &now
		return &now
	}
	b.floor, b.ceiling = min(b.floor, now.floor), max(b.ceiling, now.ceiling)
	return b
}

// complete tells whether a deployment has come to rest: what it says is true of
// its present spec, and all machines are new, available and as many as wanted.
func complete(d *deployment.Deployment, machines []*machine.Machine) bool {
	s := &d.Status
	return s.ObservedGeneration == d.Generation && s.Updated == d.Spec.Replicas && s.Replicas == d.Spec.Replicas &&
		s.Available == d.Spec.Replicas && len(machines) == int(d.Spec.Replicas)
}

// Complete tells whether a deployment of that name, in Namespace, has come to
// rest.
func (w *World) Complete(name string) bool {
	d := w.deployment(name)
	return d != nil && complete(d, w.fleetOf(d))
}

// remember takes down what is seen of a machine.
func (w *World) remember(m *machine.Machine) {
	known := w.ledger.lives[m.UID]
	if known == nil {
		known = &life{}
		w.ledger.lives[m.UID] = known
	}
	known.served = known.served || m.Ready()
	known.deleted = known.deleted || m.Deleted()
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

// fleetOf are the machines of a deployment, also those being deleted.
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
