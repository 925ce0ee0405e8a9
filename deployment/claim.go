package deployment

import (
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// adoption brings ownership in line with the selector: it adopts and releases sets.
type adoption struct{ *summary }

// abandons returns what is wrong with a selector that was changed while sets had machines: these
// would run on without an owner. A set that matches by its template was relabelled by somebody who
// wants it released. Nil: nothing is wrong.
func (d adoption) abandons() *object.FieldError {
	selector := &d.deployment.Spec.Selector
	for i := range d.sets {
		f := &d.sets[i]
		if f.inUse() && !f.set.Deleted() && !selector.Matches(f.set.Labels) && !selector.Matches(f.set.Spec.Template.Labels) {
			return object.Invalid("spec.selector", fmt.Sprintf(
				"was changed and does not match set %s, whose machines (%d) would run on without an owner: change it back, or delete the set", f.set.Name, f.actual))
		}
	}
	return nil
}

// claim adopts orphans that the selector matches, and releases sets that it no longer matches. It
// neither adopts nor releases a set that is being deleted.
func (d adoption) claim() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for _, s := range d.o.Orphans {
		if d.adoptable(s) {
			why := decision.Why{Reason: reasonAdopt, Name: s.Name}
			plan.Adopt = append(plan.Adopt, Order{d.adopted(s), why})
		}
	}
	if len(plan.Adopt) > 0 {
		plan.Why = plan.Adopt[0].Why
		return plan, true
	}
	for i := range d.sets {
		s := d.sets[i].set
		if s.Deleted() || d.deployment.Spec.Selector.Matches(s.Labels) {
			continue
		}
		released := s.Clone()
		released.Owner = nil
		released.Instructions.Marks, released.Instructions.DeletionCandidates = machine.RolloutMarks{}, nil
		plan.Release = append(plan.Release, Order{released, decision.Why{Reason: ReasonRelease, Name: s.Name, Count: int64(d.sets[i].actual)}})
	}
	if len(plan.Release) > 0 {
		plan.Why = plan.Release[0].Why
		return plan, true
	}
	return Plan{}, false
}

func (d adoption) adoptable(s *machineset.Set) bool {
	return s != nil && s.Owner == nil && !s.Deleted() && s.Namespace == d.deployment.Namespace &&
		d.deployment.Spec.Selector.Matches(s.Labels)
}

// adopted returns a copy of an orphan that belongs to the deployment. If the hash label is missing,
// the set and its future machines get it. Its selector stays, because its present machines do not
// carry the label.
func (d adoption) adopted(orphan *machineset.Set) *machineset.Set {
	s := orphan.Clone()
	s.Owner = d.owner()
	s.AddFinalizer(machineset.Finalizer)
	label := d.p.Keys.TemplateHash
	hash, labelled := s.Labels[label]
	if !labelled {
		hash = templateHash(&s.Spec.Template, label, 0)
		s.Labels = withEntry(s.Labels, label, hash)
	}
	if _, labelled = s.Spec.Template.Labels[label]; !labelled {
		s.Spec.Template.Labels = withEntry(s.Spec.Template.Labels, label, hash)
	}
	return s
}
