package manager_test

import (
	"fmt"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
)

// ledger keeps what is stored of one fleet at a time, and what has become of it, and checks each change against
// the rules. It counts on its own, and asks nothing of the code that it checks.
type ledger struct {
	w        *fastFleet
	fleet    *deployment.Deployment
	sets     map[string]*machineset.Set // by UID
	machines map[string]*note           // by name
	names    map[string]bool            // of all machines so far

	total, serving int // machines that are not being deleted: all, and the ready ones
	floor, ceiling int // the widest bounds since the fleet was complete
	everMade       int // all machines so far

	creates, deletes int // of machines that are well, by this pass of a set
}

// note is what the ledger knows of a machine.
type note struct {
	m       *machine.Machine
	vm      bool // its VM exists
	created bool // a create was called
	unmade  bool // a delete was called after the last create
}

func newLedger(w *fastFleet) *ledger {
	return &ledger{w: w, sets: map[string]*machineset.Set{}, machines: map[string]*note{}, names: map[string]bool{}}
}

func (b *ledger) violated(rule, format string, args ...any) {
	b.w.fail(fmt.Errorf("%s: %s", rule, fmt.Sprintf(format, args...)))
}

// byManager reports whether the manager is acting.
func (b *ledger) byManager() bool { return b.w.passing.kind != "" }

// begin is called at the start of each pass.
func (b *ledger) begin() { b.creates, b.deletes = 0, 0 }

// look is called just after each change.
func (b *ledger) look(old, new any) {
	switch subject := cmpAny(old, new).(type) {
	case *machine.Machine:
		before, _ := old.(*machine.Machine)
		after, _ := new.(*machine.Machine)
		b.lookMachine(subject.Name, before, after)
	case *machineset.Set:
		before, _ := old.(*machineset.Set)
		after, _ := new.(*machineset.Set)
		b.lookSet(before, after)
	case *deployment.Deployment:
		after, _ := new.(*deployment.Deployment)
		b.lookFleet(after)
	case *machine.Node:
		before, _ := old.(*machine.Node)
		after, _ := new.(*machine.Node)
		b.lookNode(before, after)
	}
}

func cmpAny(old, new any) any {
	if new != nil {
		return new
	}
	return old
}

func (b *ledger) lookMachine(name string, old, new *machine.Machine) {
	n := b.machines[name]
	switch {
	case old == nil:
		n = &note{}
		b.machines[name] = n
		b.lookNew(new)
	case new == nil:
		delete(b.machines, name)
	default:
		b.lookChange(n, old, new)
	}
	b.count(old, -1)
	b.count(new, 1)
	if n.vm && (new == nil || !new.HasFinalizer(machine.Finalizer)) {
		b.violated("P14", "machine %s has a VM, and nothing keeps its record", name)
	}
	n.m = new
	switch {
	case !b.byManager():
	case old == nil && b.total > b.ceiling:
		b.violated("P7", "machine %s is one of %d, %d are allowed", name, b.total, b.ceiling)
	case old != nil && !old.Deleted() && (new == nil || new.Deleted()):
		b.lookTaken(old)
	}
	if b.creates > 0 && b.deletes > 0 {
		b.violated("P8", "%d machines made and %d that are well deleted in one pass", b.creates, b.deletes)
	}
}

func (b *ledger) count(m *machine.Machine, by int) {
	if m == nil || m.Deleted() {
		return
	}
	b.total += by
	if m.Ready() {
		b.serving += by
	}
}

func (b *ledger) lookNew(m *machine.Machine) {
	b.everMade++
	b.creates++
	if b.names[m.Name] {
		b.violated("P17", "the name %s comes again", m.Name)
	}
	b.names[m.Name] = true
	if m.Owner == nil || b.sets[m.Owner.UID] == nil || b.sets[m.Owner.UID].Deleted() {
		b.violated("P10", "machine %s was created, and no set owns it that is not being deleted", m.Name)
	}
}

// lookTaken is called with a machine that the manager has just begun to delete.
func (b *ledger) lookTaken(m *machine.Machine) {
	if m.Status.Phase != machine.PhaseFailed {
		b.deletes++
	}
	if m.Ready() && !b.fleet.Deleted() && b.serving < b.floor {
		b.violated("P7", "machine %s is taken away, and %d are left that serve; %d have to", m.Name, b.serving, b.floor)
	}
}

func (b *ledger) lookChange(n *note, old, new *machine.Machine) {
	if n.m != old {
		b.violated("Versions", "machine %s was not as the ledger knows it", old.Name)
	}
	if new.Owner == nil || b.sets[new.Owner.UID] == nil {
		b.violated("P10", "machine %s belongs to no set", new.Name)
	}
	if old.Spec.ProviderID != "" && new.Spec.ProviderID != old.Spec.ProviderID {
		b.violated("P13", "machine %s had VM %s recorded, and now %q", new.Name, old.Spec.ProviderID, new.Spec.ProviderID)
	}
	if old.HasFinalizer(machine.Finalizer) && !new.HasFinalizer(machine.Finalizer) && n.created && !n.unmade {
		b.violated("P16", "machine %s lost its finalizer, and its VM was not deleted", new.Name)
	}
	if old.Deleted() && new.Status.Phase != old.Status.Phase && new.Status.Phase != machine.PhaseTerminating {
		b.violated("P18", "machine %s is being deleted and goes from %s to %s", new.Name, old.Status.Phase, new.Status.Phase)
	}
}

// made is called just before each call to create a VM.
func (b *ledger) made(m *machine.Machine, twice bool) {
	n := b.machines[m.Name]
	switch {
	case n == nil || !n.m.HasFinalizer(machine.Finalizer):
		b.violated("P14", "a VM is made for machine %s, whose record nothing keeps", m.Name)
		return
	case twice:
		b.violated("P13", "a second VM is made for machine %s", m.Name)
	case n.m.Deleted():
		b.violated("P25", "a VM is made for machine %s, which is being deleted", m.Name)
	case n.m.Status.LastOperation.Stage != machine.StageCreateVM:
		b.violated("P13", "a VM is made for machine %s, and it is not recorded before", m.Name)
	}
	n.vm, n.created, n.unmade = true, true, false
}

// unmade is called just before each call to delete a VM.
func (b *ledger) unmade(m *machine.Machine) {
	n := b.machines[m.Name]
	switch {
	case n == nil:
		b.violated("P14", "the VM of machine %s is deleted, which is gone", m.Name)
		return
	case !n.m.Deleted():
		b.violated("P16", "the VM of machine %s is deleted, which is not", m.Name)
	case !n.created:
		b.violated("P16", "the VM of machine %s is deleted, and none was ever made", m.Name)
	}
	n.vm, n.unmade = false, true
}

func (b *ledger) lookSet(old, new *machineset.Set) {
	if new == nil {
		b.lookSetGone(old)
		delete(b.sets, old.UID)
		return
	}
	b.sets[new.UID] = new
	if !new.OwnedBy(b.fleet.UID) {
		b.violated("P10", "set %s belongs to no deployment", new.Name)
	}
	sum := b.sumOfSets(old, new)
	size := int(new.Spec.Replicas)
	if size < 0 || size > b.ceiling {
		b.violated("P9", "set %s is to have %d machines, and %d are allowed", new.Name, size, b.ceiling)
	}
	if b.byManager() && (old == nil || new.Spec.Replicas > old.Spec.Replicas) && sum > b.ceiling {
		b.violated("P7", "sets of %d machines, %d are allowed", sum, b.ceiling)
	}
	if b.w.passing.kind == manager.KindSet && old != nil && new.Status.Replicas != old.Status.Replicas {
		b.lookSetStatus(new)
	}
}

// sumOfSets adds up the sizes of all sets; no two have one template.
func (b *ledger) sumOfSets(old, new *machineset.Set) (sum int) {
	class := new.Spec.Template.Spec.Class
	for _, s := range b.sets {
		if old == nil && s != new && s.Spec.Template.Spec.Class == class {
			b.violated("P4", "set %s has the template of %s", new.Name, s.Name)
		}
		if !s.Deleted() {
			sum += int(s.Spec.Replicas)
		}
	}
	return sum
}

// lookSetGone checks that nothing outlives its owner.
func (b *ledger) lookSetGone(s *machineset.Set) {
	for name, n := range b.machines {
		if n.m.OwnedBy(s.UID) {
			b.violated("P29", "set %s is gone, and machine %s is left", s.Name, name)
		}
	}
}

// lookSetStatus counts the machines one by one: in this world a status is true when it is written.
func (b *ledger) lookSetStatus(s *machineset.Set) {
	present := 0
	for _, n := range b.machines {
		if n.m.OwnedBy(s.UID) && !n.m.Deleted() {
			present++
		}
	}
	if int(s.Status.Replicas) != present {
		b.violated("status", "set %s says that it has %d machines, and has %d", s.Name, s.Status.Replicas, present)
	}
}

func (b *ledger) lookFleet(d *deployment.Deployment) {
	before := b.fleet
	b.fleet = d
	switch {
	case d == nil:
		if len(b.sets) > 0 || len(b.machines) > 0 {
			b.violated("P29", "the deployment is gone, and %d sets and %d machines are left", len(b.sets), len(b.machines))
		}
		return
	case before == nil || before.Generation != d.Generation || b.complete():
		b.widen(before == nil || b.complete())
	}
	s := &d.Status
	if b.w.passing.kind == manager.KindDeployment && before != nil && before.Status.Replicas != s.Replicas && int(s.Replicas) != b.total {
		b.violated("status", "the deployment says that it has %d machines, and has %d", s.Replicas, b.total)
	}
}

// widen extends the bounds to those of the present spec. If again is set, it forgets earlier bounds.
func (b *ledger) widen(again bool) {
	floor, ceiling := int(b.fleet.Spec.Replicas), int(b.fleet.Spec.Replicas)
	if s := &b.fleet.Spec.Strategy; s.Kind == deployment.Recreate {
		floor = 0
	} else {
		f := rollout.Fenceposts(s.MaxSurge, s.MaxUnavailable, b.fleet.Spec.Replicas)
		floor, ceiling = floor-int(f.Unavailable), ceiling+int(f.Surge)
	}
	if !again {
		floor, ceiling = min(floor, b.floor), max(ceiling, b.ceiling)
	}
	b.floor, b.ceiling = floor, ceiling
}

// complete reports whether the fleet is as its owner wants it.
func (b *ledger) complete() bool {
	if b.fleet == nil {
		return false
	}
	r := int(b.fleet.Spec.Replicas)
	return deployment.Complete(b.fleet) && len(b.machines) == r && b.serving == r
}

// gone reports whether an object is gone.
func (b *ledger) gone(at fastPlace) bool {
	switch at.kind {
	case manager.KindMachine:
		return b.machines[at.key.Name] == nil
	case manager.KindSet:
		for _, s := range b.sets {
			if s.Name == at.key.Name {
				return false
			}
		}
		return true
	case manager.KindDeployment:
		return b.fleet == nil || b.fleet.Name != at.key.Name
	}
	return false
}

// recount adds up everything again, from what is stored.
func (b *ledger) recount(machines []*machine.Machine) error {
	total, serving := 0, 0
	for _, m := range machines {
		if m.Deleted() {
			continue
		}
		total++
		if m.Ready() {
			serving++
		}
	}
	if total != b.total || serving != b.serving || len(machines) != len(b.machines) {
		return fmt.Errorf("the ledger has %d machines, %d not deleted, %d serving; stored are %d, %d, %d",
			len(b.machines), b.total, b.serving, len(machines), total, serving)
	}
	return nil
}
