package sim

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// p04: no set is created for a class if the VMs of the newest set can be updated to that class.
type p04 struct{ *World }

func (w p04) see(e event) {
	if e, ok := e.(setCreated); ok {
		w.checkNewSet(e.now)
	}
}

func (w p04) checkNewSet(s *machineset.Set) {
	if !w.o.UpdatableTags || !w.acting || w.belated || s.Owner == nil {
		return
	}
	last := w.newestBeside(s)
	if last == nil || !w.longAgo(w.setRecords[last.UID].lastChange) || !w.longAgo(w.lastChange[last.UID]) || !w.madeFromClass(last) {
		return
	}
	if w.differInTags(last, s) {
		w.violate("P4", "set %s was made for class %s, and set %s could have been brought to it", s.Name, s.Spec.Template.Spec.Class.Name, last.Name)
	}
}

// newestBeside returns the newest other set of a set's deployment that is not being deleted.
func (w p04) newestBeside(s *machineset.Set) (last *machineset.Set) {
	for _, r := range w.setRecords {
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

// differInTags reports whether the templates of two sets differ only in the tags of their VMs, if at all.
func (w p04) differInTags(a, b *machineset.Set) bool {
	have, want := a.Spec.Template.Clone(), b.Spec.Template.Clone()
	from, ok := w.specOf(have.Spec.Class.Name)
	to, known := w.specOf(want.Spec.Class.Name)
	have.Spec.Class.Name = want.Spec.Class.Name
	delete(have.Labels, w.deploymentPolicy().Keys.TemplateHash)
	delete(want.Labels, w.deploymentPolicy().Keys.TemplateHash)
	return ok && known && from.Size == to.Size && have.Equal(&want)
}

// madeFromClass reports whether it is recorded that all VMs of a set were created from its class, except for
// tags.
func (w p04) madeFromClass(s *machineset.Set) bool {
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
