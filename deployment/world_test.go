package deployment_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Answers of the model store.
var (
	errConflict = errors.New("conflict")
	errNotFound = errors.New("not found")
	errExists   = errors.New("already exists")
)

// view is what a reader of the store saw. Objects are never changed, only replaced, so a view is
// cheap and stays as it was.
type view struct {
	number     int
	deployment *deployment.Deployment // nil: gone
	sets       []*machineset.Set
	machines   []*machine.Machine
}

// world is a store with one deployment, and its surroundings: controllers of sets that obey,
// machines that come up and go. All of it moves by hand.
type world struct {
	now time.Time
	view
	past    []view // older first, the last few
	counter int    // of UIDs and versions
	made    int    // sets that were ever created through the store
	edits   int    // of machines, for their versions
	writes  int    // of deployment and sets by the shell, all kinds

	// reserved are ordinals that the controller of a set (by UID) has reserved and is about to
	// create, with any later change of the set.
	reserved map[string][]int64
	// early makes the controllers of sets choose all machines to delete at once, and delete them
	// one after the other, with any later change of them and the set. chosen are those that are
	// left, by the set's UID.
	early  bool
	chosen map[string][]string
	// strict makes the controllers of sets keep to a strict quota.
	strict bool
	// hot are the specs of classes whose VMs can be updated. Nil: none can.
	hot   map[string]machine.VMSpec
	fates map[string]fate // of machines' updates in place; success if there is none
}

func newWorld(d *deployment.Deployment) *world {
	w := &world{now: begin, reserved: map[string][]int64{}, chosen: map[string][]string{}}
	stored := d.Clone()
	stored.UID, stored.Version, stored.Generation, stored.CreatedAt = w.unique("uid-"), w.unique("v"), 1, begin
	w.deployment = stored
	w.changed()
	return w
}

func (w *world) unique(prefix string) string {
	w.counter++
	return fmt.Sprintf("%s%d", prefix, w.counter)
}

// changed saves the state for stale readers.
func (w *world) changed() {
	w.number++
	v := w.view
	v.sets, v.machines = slices.Clone(w.sets), slices.Clone(w.machines)
	w.past = append(w.past, v)
	if len(w.past) > 12 {
		w.past = w.past[1:]
	}
}

func (w *world) second() time.Time { return w.now.Truncate(time.Second) }

// edit changes the deployment's spec as its owner would.
func (w *world) edit(change func(*deployment.Spec)) {
	d := w.deployment.Clone()
	change(&d.Spec)
	if !d.SpecEqual(w.deployment) {
		d.Generation++
	}
	d.Version = w.unique("v")
	w.deployment = d
	w.changed()
}

func (w *world) deleteDeployment() {
	d := w.deployment.Clone()
	d.DeletedAt, d.Version = w.second(), w.unique("v")
	d.Generation++
	w.deployment = d
	if len(d.Finalizers) == 0 {
		w.deployment = nil
	}
	w.changed()
}

func (w *world) updateDeployment(d *deployment.Deployment) (*deployment.Deployment, error) {
	switch {
	case w.deployment == nil:
		return nil, errNotFound
	case w.deployment.Version != d.Version:
		return nil, errConflict
	}
	stored := d.Clone()
	stored.CopyStatus(w.deployment)
	return w.storeDeployment(stored)
}

func (w *world) updateStatus(d *deployment.Deployment, s deployment.Status) (*deployment.Deployment, error) {
	switch {
	case w.deployment == nil:
		return nil, errNotFound
	case w.deployment.Version != d.Version:
		return nil, errConflict
	}
	stored := w.deployment.Clone()
	stored.Status = s.Clone()
	return w.storeDeployment(stored)
}

func (w *world) storeDeployment(d *deployment.Deployment) (*deployment.Deployment, error) {
	w.writes++
	d.Version = w.unique("v")
	w.deployment = d
	if d.Deleted() && len(d.Finalizers) == 0 {
		w.deployment = nil
	}
	w.changed()
	return d, nil
}

func (w *world) set(name string) *machineset.Set {
	for _, s := range w.sets {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func (w *world) createSet(s *machineset.Set) (*machineset.Set, error) {
	if w.set(s.Name) != nil {
		return nil, errExists
	}
	w.writes++
	w.made++
	stored := s.Clone()
	stored.UID, stored.Version, stored.Generation, stored.CreatedAt = w.unique("uid-"), w.unique("v"), 1, w.second()
	w.sets = append(w.sets, stored)
	w.changed()
	return stored, nil
}

func (w *world) updateSet(s *machineset.Set) (*machineset.Set, error) {
	old := w.set(s.Name)
	switch {
	case old == nil:
		return nil, errNotFound
	case old.UID != s.UID || old.Version != s.Version:
		return nil, errConflict
	}
	stored := s.Clone()
	stored.CopyStatus(old)
	if !stored.SpecEqual(old) {
		stored.Generation++
	}
	for n := old.Instructions.Reservation.Reserved + 1; n <= stored.Instructions.Reservation.Reserved; n++ { // names that came with a size
		w.reserved[s.UID] = append(w.reserved[s.UID], n)
	}
	return w.storeSet(stored), nil
}

func (w *world) storeSet(s *machineset.Set) *machineset.Set {
	s.Version = w.unique("v")
	w.sets[slices.IndexFunc(w.sets, func(o *machineset.Set) bool { return o.Name == s.Name })] = s
	w.changed()
	return s
}

// changeSet changes a set as another program would.
func (w *world) changeSet(name string, change func(*machineset.Set)) {
	s := w.set(name).Clone()
	change(s)
	w.storeSet(s)
}

func (w *world) deleteSet(name, uid string) error {
	s := w.set(name)
	switch {
	case s == nil:
		return errNotFound
	case s.UID != uid:
		return errConflict
	case len(s.Finalizers) == 0:
		w.dropSet(name)
		return nil
	case !s.Deleted():
		w.changeSet(name, func(s *machineset.Set) { s.DeletedAt = w.second() })
	}
	return nil
}

func (w *world) dropSet(name string) {
	w.sets = slices.DeleteFunc(slices.Clone(w.sets), func(s *machineset.Set) bool { return s.Name == name })
	w.changed()
}

func (v *view) machinesOf(uid string) []*machine.Machine {
	var out []*machine.Machine
	for _, m := range v.machines {
		if m.OwnedBy(uid) {
			out = append(out, m)
		}
	}
	return out
}

func (v *view) setsOf(uid string) []*machineset.Set {
	var out []*machineset.Set
	for _, s := range v.sets {
		if s.OwnedBy(uid) {
			out = append(out, s)
		}
	}
	return out
}

// addMachine creates a machine of a set.
func (w *world) addMachine(s *machineset.Set, name string, phase machine.Phase) *machine.Machine {
	if slices.ContainsFunc(w.machines, func(m *machine.Machine) bool { return m.Name == name }) {
		panic("the model makes machine " + name + " twice")
	}
	m := &machine.Machine{
		Meta: object.Meta{
			Key: object.Key{Namespace: namespace, Name: name}, UID: w.unique("uid-"), Version: w.unique("v"), CreatedAt: w.second(),
			Owner:  &object.Owner{Kind: machineset.OwnerKind, Name: s.Name, UID: s.UID},
			Labels: maps.Clone(s.Spec.Template.Labels), Annotations: maps.Clone(s.Spec.Template.Annotations),
		},
		Spec:   s.Spec.Template.Spec.Clone(),
		Status: machine.Status{Phase: phase, Since: w.second()},
	}
	if w.hot != nil {
		m.Spec.ProviderID, m.Status.VMSpec = "p://"+name, w.hot[m.Spec.Class.Name]
	}
	w.machines = append(w.machines, m)
	w.changed()
	return m
}

// changeMachine replaces a machine by a changed copy.
func (w *world) changeMachine(name string, change func(*machine.Machine)) {
	i := slices.IndexFunc(w.machines, func(m *machine.Machine) bool { return m.Name == name })
	m := w.machines[i].Clone()
	change(m)
	w.edits++
	m.Version = fmt.Sprintf("m%d", w.edits)
	w.machines = slices.Clone(w.machines)
	w.machines[i] = m
	w.changed()
}

// enter sets the phase of a machine from now on.
func (w *world) enter(name string, phase machine.Phase) {
	w.changeMachine(name, func(m *machine.Machine) { m.Status.Phase, m.Status.Since = phase, w.second() })
}

func (w *world) deleteMachine(name string) {
	w.changeMachine(name, func(m *machine.Machine) { m.DeletedAt = w.second() })
}

func (w *world) dropMachine(name string) {
	w.machines = slices.DeleteFunc(slices.Clone(w.machines), func(m *machine.Machine) bool { return m.Name == name })
	w.changed()
}

// numbers of one set, as they really are.
type numbers struct{ spec, actual, available, coming, preserved int }

// total is how many machines there may be before the set has followed its size.
func (n numbers) total() int { return max(n.spec, n.actual+n.coming) }

// stay is how many of those that are kept for inspection then still are.
func (n numbers) stay() int { return max(0, min(n.preserved, n.spec)) }

// usable is how many machines are available once it has. Those that are kept for inspection stay
// longest.
func (n numbers) usable() int { return max(0, min(n.available, n.spec-n.preserved)) }

func (w *world) numbers(s *machineset.Set) numbers {
	n := numbers{spec: w.size(s), coming: len(w.reserved[s.UID])}
	minReady := time.Duration(0)
	if w.deployment != nil {
		minReady = w.deployment.Spec.MinReady
	}
	for _, m := range w.machinesOf(s.UID) {
		if m.Deleted() || w.elsewhere(s, m.Name) {
			continue
		}
		n.actual++
		if m.Preserved(w.now) {
			n.preserved++
		}
		if available(m, minReady, w.now) {
			n.available++
		}
	}
	return n
}

// available reports whether a machine counts as available. One that is selected to be updated in
// place is about to stop.
func available(m *machine.Machine, minReady time.Duration, now time.Time) bool {
	return m.Ready() && !m.Preserved(now) && !m.AvailableAt(minReady).After(now) && m.Spec.InPlace != machine.InPlaceSelected
}

// sums of all sets of the deployment.
func (w *world) sums() (total, usable, isAvailable int) {
	if w.deployment == nil {
		return 0, 0, 0
	}
	for _, s := range w.setsOf(w.deployment.UID) {
		n := w.numbers(s)
		total += n.total()
		usable += n.usable()
		isAvailable += n.available
	}
	return total, usable, isAvailable
}

// String returns the sets for people: ordered/existing/available, the new set marked.
func (w *world) String() string {
	var b strings.Builder
	for _, s := range w.sets {
		n := w.numbers(s)
		mark := ""
		if s.Deleted() {
			mark = " going"
		}
		if s.Owner == nil {
			mark += " orphan"
		} else if w.deployment != nil && !s.OwnedBy(w.deployment.UID) {
			mark += " of another"
		}
		fmt.Fprintf(&b, "  [%s%s %d/%d/%d]", strings.TrimPrefix(s.Name, "web-"), mark, n.spec, n.actual, n.available)
	}
	return b.String()
}
