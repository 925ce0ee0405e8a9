package sim

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// specOf returns what a class asks of the simulated provider. It returns false if there is no such
// class.
func (w *World) specOf(class string) (spec drivertest.MemorySpec, found bool) {
	c, err := w.classes.Get(context.Background(), object.Key{Namespace: Namespace, Name: class})
	if err != nil || json.Unmarshal(c.ProviderSpec, &spec) != nil {
		return spec, false
	}
	return spec, true
}

// sizeOf returns the zone that a class is in, which is also the size of its VMs.
func (w *World) sizeOf(class string) string {
	spec, _ := w.specOf(class)
	return spec.Size
}

// checkNewSet: no set is made for a class to which the VMs of the newest set can be moved as they
// are (P4).
func (w *World) checkNewSet(s *machineset.Set) {
	if !w.o.UpdatableTags || !w.ledger.acting || w.ledger.belated || s.Owner == nil {
		return
	}
	last := w.newestBeside(s)
	if last == nil || !w.longAgo(w.ledger.setRecords[last.UID].stirred) || !w.longAgo(w.ledger.stirred[last.UID]) || !w.within(last) {
		return
	}
	if w.tagsApart(last, s) {
		w.violate("P4", "set %s was made for class %s, and set %s could have been brought to it", s.Name, s.Spec.Template.Spec.Class.Name, last.Name)
	}
}

// newestBeside returns the newest other set of a set's deployment that stays.
func (w *World) newestBeside(s *machineset.Set) (last *machineset.Set) {
	for _, r := range w.ledger.setRecords {
		other := r.last
		if other == nil || other.UID == s.UID || !other.OwnedBy(s.Owner.UID) || other.Deleted() {
			continue
		}
		if last == nil || other.Revision > last.Revision {
			last = other
		}
	}
	return last
}

// tagsApart reports whether the templates of two sets differ in the tags of VMs alone.
func (w *World) tagsApart(a, b *machineset.Set) bool {
	have, want := a.Spec.Template.Clone(), b.Spec.Template.Clone()
	from, ok := w.specOf(have.Spec.Class.Name)
	to, known := w.specOf(want.Spec.Class.Name)
	have.Spec.Class.Name = want.Spec.Class.Name
	delete(have.Labels, w.deploymentPolicy().Keys.TemplateHash)
	delete(want.Labels, w.deploymentPolicy().Keys.TemplateHash)
	return ok && known && from.Size == to.Size && have.Equal(&want)
}

// within reports whether the VM of each machine of a set is known to have been made from the set's
// class, except for its tags.
func (w *World) within(s *machineset.Set) bool {
	class, err := w.classes.Get(context.Background(), object.Key{Namespace: Namespace, Name: s.Spec.Template.Spec.Class.Name})
	if err != nil {
		return false
	}
	made := machine.SplitSpec(class, w.provider.UpdatableFields())
	for _, m := range w.machines.all() {
		if have := m.Status.VMSpec; m.OwnedBy(s.UID) && (have.Declared != made.Declared || have.Fixed != made.Fixed) {
			return false
		}
	}
	return true
}

// turnKnown is how old a cache may be while the manager still knows which VMs are being updated: it
// holds a turn for a minute before the cache shows it.
const turnKnown = 20 * time.Second

// sawUpdate follows the update of a VM, and checks how many a fleet may have under way. It allows
// one more, since nothing depends on it. A process that has just begun may have some more.
func (w *World) sawUpdate(r *record[*machine.Machine], m *machine.Machine) {
	failed := m.Status.LastOperation.State == machine.StateFailed && machine.NeverUpdated(m.Status.LastOperation.Code)
	is := m.Status.VMSpec.Begun != "" && !m.Deleted()
	begins := is && r.begun.IsZero()
	since(&r.begun, w.clock.now, is)
	r.ailing = is && (r.ailing || !m.Ready() || failed)
	if !begins || !w.turnsKnown() {
		return
	}
	s := w.ledger.setRecords[ownerUID(m)]
	if s == nil || s.last.Owner == nil {
		return
	}
	d := w.deployment(s.last.Owner.Name)
	if d == nil || w.ledger.bounds[d.UID] == nil {
		return
	}
	limit := int(max(1, w.deploymentPolicy().UpdateLimit.Ceil(int32(w.ledger.bounds[d.UID].most))))
	if under := w.updatedBeside(d, m); under > limit {
		w.violate("P7", "%d VMs of %s are updated at a time, %d may be", under+1, d.Name, limit)
	}
}

// turnsKnown reports whether the manager can know which VMs are being updated.
func (w *World) turnsKnown() bool {
	return w.o.Faults.CacheLag <= turnKnown && w.ledger.acting && !w.ledger.belated && w.faults[ClockJump] == 0 && w.longAgo(w.process.began)
}

// updatedBeside returns how many VMs of a fleet are being updated, without one of them.
func (w *World) updatedBeside(d *deployment.Deployment, m *machine.Machine) (under int) {
	for _, other := range w.fleetOf(d) {
		if o := w.ledger.records[other.UID]; o != nil && other.UID != m.UID && !o.begun.IsZero() && !o.ailing {
			under++
		}
	}
	return under
}

// tagged reports whether all VMs of machines have the tags that their classes say. It skips VMs
// that a call of a dead process may have changed since.
func (w *World) tagged() bool {
	if !w.o.UpdatableTags {
		return true
	}
	for _, d := range w.deployments.all() {
		if d.Status.Outdated > 0 {
			return false
		}
	}
	return w.untagged() == ""
}

// untagged returns a machine whose VM should have other tags, or nothing.
func (w *World) untagged() string {
	if !w.o.UpdatableTags {
		return ""
	}
	machines := map[string]*machine.Machine{}
	for _, m := range w.machines.all() {
		machines[m.Spec.ProviderID] = m
	}
	for _, vm := range w.provider.VMs() {
		m := machines[vm.ID]
		if m == nil || m.Deleted() || !m.Ready() || w.keptAsItIs(m) || w.ledger.lateTags[m.Name] || w.ledger.late[m.Name] {
			continue
		}
		if spec, found := w.specOf(m.Spec.Class.Name); found && !maps.Equal(spec.Tags, vm.Tags) {
			return m.Name
		}
	}
	return ""
}

// keptAsItIs reports whether the driver said that a VM can't be changed, and its machine will not
// be replaced.
func (w *World) keptAsItIs(m *machine.Machine) bool {
	op := &m.Status.LastOperation
	class, err := w.classes.Get(context.Background(), object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name})
	return err == nil && m.Owner == nil && op.Kind == machine.OperationUpdate && op.State == machine.StateFailed &&
		op.Code == codes.Unimplemented && op.Against.Machine == m.Generation && op.Against.Class == class.Generation
}

// aged renews a fleet whose machines get too old once. No machine is older in the end (P7 holds
// meanwhile).
func (s *Scenario) aged(w *World) error {
	var limit time.Duration
	for _, d := range w.deployments.all() {
		limit = max(limit, d.Spec.MaxAge)
	}
	if limit == 0 {
		return nil
	}
	if err := w.Run(limit + limit/5); err != nil {
		return err
	}
	if err := s.settle(w, "be renewed", func() bool { return !w.anyTooOld() }); err != nil {
		return err
	}
	for _, d := range w.deployments.all() {
		w.edit(d.Name, func(spec *deployment.Spec) { spec.MaxAge = 0 })
	}
	return nil
}

func (w *World) anyTooOld() bool {
	for _, s := range w.sets.all() {
		for _, m := range w.machines.all() {
			if m.OwnedBy(s.UID) && w.tooOld(m, s) {
				return true
			}
		}
	}
	return false
}

// lie reports whether a code would be a false answer with consequences: the manager believes that a
// VM is gone.
func lie(call codes.Call, code codes.Code) bool {
	return code == codes.NotFound && (call == codes.DeleteMachine || call == codes.UpdateMachine)
}
