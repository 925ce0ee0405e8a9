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

// specOf is what a class asks of the simulated provider; false: there is no such
// class.
func (w *World) specOf(class string) (spec drivertest.MemorySpec, found bool) {
	c, err := w.classes.Get(context.Background(), object.Key{Namespace: Namespace, Name: class})
	if err != nil || json.Unmarshal(c.ProviderSpec, &spec) != nil {
		return spec, false
	}
	return spec, true
}

// sizeOf is the zone that a class is in, which is also the size of its VMs.
func (w *World) sizeOf(class string) string {
	spec, _ := w.specOf(class)
	return spec.Size
}

// checkNewSet: no set is made for a class to which the VMs of the newest one
// can be brought as they are (P4).
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

// newestBeside is the newest other set of a set's deployment that stays.
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

// tagsApart tells whether the templates of two sets differ in the tags of VMs alone.
func (w *World) tagsApart(a, b *machineset.Set) bool {
	have, want := a.Spec.Template.Clone(), b.Spec.Template.Clone()
	from, ok := w.specOf(have.Spec.Class.Name)
	to, known := w.specOf(want.Spec.Class.Name)
	have.Spec.Class.Name = want.Spec.Class.Name
	delete(have.Labels, w.deploymentPolicy().Keys.TemplateHash)
	delete(want.Labels, w.deploymentPolicy().Keys.TemplateHash)
	return ok && known && from.Size == to.Size && have.Equal(&want)
}

// within tells whether the VM of each machine of a set is known to have been made
// from the set's class, but for its tags.
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

// turnKnown is how old a cache may be for the manager to know which VMs are being
// updated: it holds a turn for a minute before it shows there.
const turnKnown = 20 * time.Second

// sawUpdate follows the update of a VM, and holds a fleet to how many may be
// under way: one more is let pass, since nothing depends on it; a process that has
// just begun may let some more.
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

// turnsKnown tells whether the manager can know which VMs are being updated.
func (w *World) turnsKnown() bool {
	return w.o.Faults.CacheLag <= turnKnown && w.ledger.acting && !w.ledger.belated && w.faults[ClockJump] == 0 && w.longAgo(w.process.began)
}

// updatedBeside is how many VMs of a fleet are being updated, but for one.
func (w *World) updatedBeside(d *deployment.Deployment, m *machine.Machine) (under int) {
	for _, other := range w.fleetOf(d) {
		if o := w.ledger.records[other.UID]; o != nil && other.UID != m.UID && !o.begun.IsZero() && !o.ailing {
			under++
		}
	}
	return under
}

// tagged reports whether all VMs of machines have the tags that their classes say,
// but for those that a call of the dead may have changed since.
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

// untagged is a machine whose VM should have other tags. Empty: there is none.
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

// keptAsItIs tells whether a VM was said to be beyond change whose machine nobody
// would replace.
func (w *World) keptAsItIs(m *machine.Machine) bool {
	op := &m.Status.LastOperation
	class, err := w.classes.Get(context.Background(), object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name})
	return err == nil && m.Owner == nil && op.Kind == machine.OperationUpdate && op.State == machine.StateFailed &&
		op.Code == codes.Unimplemented && op.Against.Machine == m.Generation && op.Against.Class == class.Generation
}

// aged has a fleet whose machines get too old be renewed once: nobody keeps one
// for longer (P7 holds meanwhile).
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

// lie tells whether a code would be a lie with consequences as an answer to a
// call: that a VM is gone is believed.
func lie(call codes.Call, code codes.Code) bool {
	return code == codes.NotFound && (call == codes.DeleteMachine || call == codes.UpdateMachine)
}
