package deployment

import (
	"fmt"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A template that names another class is rolled out, unless the VMs can be updated to that class
// without a replacement. Then one write gives the newest set the new class. The set passes it to
// its machines, whose VMs are updated one by one (package machine). The set stays the same, with
// its name and its hash label, and gets a new revision: no set has the earlier template any more.

// HotUpdate says to which class VMs can be updated without a replacement, by a driver that can update VMs. The
// caller reads it from the classes, live if the observation is.
type HotUpdate struct {
	// Class is the class that the deployment's template named when this was read. If the template names
	// another one now, for instance after a rollback, the HotUpdate is ignored.
	Class machine.ClassRef
	// Spec is the VM spec of Class.
	Spec machine.VMSpec
	// From are the names of other classes of the same API group that differ from Class only in what
	// can be updated on VMs.
	From []string
}

// hotUpdate returns what the observation says about the class that the template names. Nil: nothing.
func (d *state) hotUpdate() *HotUpdate {
	if h := d.o.HotUpdate; h != nil && h.Class == d.deployment.Spec.Template.Spec.Class {
		return h
	}
	return nil
}

// maxPreviousClasses is how many of its latest previous classes a set always keeps: a create with one of them
// may still be in flight. Earlier ones it keeps only while a machine has them.
const maxPreviousClasses = 10

// exchangeClass gives the newest set the class of the template instead of creating a new set. Older
// sets stay as they are, because a rollout would replace their machines anyway. The newest set gets
// the class even if an older set has exactly this template: a rollback to the older set would replace machines.
func (d *state) exchangeClass() (Plan, bool) {
	if d.hotUpdate() == nil || d.held() || d.deployment.Spec.Paused || d.o.Frozen {
		return Plan{}, false
	}
	f := d.newest()
	if f == nil || f == d.current || !d.exchangeable(f) {
		return Plan{}, false
	}
	changed := f.set.Clone()
	syncSet(changed, d.deployment)
	changed.Instructions.PreviousClasses = f.previousClasses(d.deployment.Spec.Template.Spec.Class.Name)
	changed.Spec.Template.Spec.Class = d.deployment.Spec.Template.Spec.Class
	changed.Revision = d.revision
	why := decision.Why{
		Reason: ReasonExchange, Name: changed.Name, Detail: changed.Spec.Template.Spec.Class.Name, Number: changed.Revision,
	}
	return Plan{Push: []Order{{changed, why}}, Why: why}, true
}

// exchangeable reports whether the set's template differs from the deployment's only in the class, and
// whether each of its VMs, as far as known, can be updated to that class.
func (d *state) exchangeable(f *setState) bool {
	hot, have := d.hotUpdate(), f.set.Spec.Template
	class := have.Spec.Class
	if class.APIGroup != d.deployment.Spec.Template.Spec.Class.APIGroup || !slices.Contains(hot.From, class.Name) {
		return false
	}
	have.Spec.Class.Name = d.deployment.Spec.Template.Spec.Class.Name
	if !sameTemplate(&have, &d.deployment.Spec.Template, d.p.Keys.TemplateHash) {
		return false
	}
	for _, m := range f.machines {
		if f.owns(m) && !d.vmUpdatable(m, &class) {
			return false
		}
	}
	return true
}

// vmUpdatable reports whether a machine's VM can be updated to the template's class. A machine without a VM yet
// can, if it has the set's class.
func (d *state) vmUpdatable(m *machine.Machine, class *machine.ClassRef) bool {
	spec, want := &m.Status.VMSpec, &d.hotUpdate().Spec
	if *spec == (machine.VMSpec{}) {
		return m.Spec.ProviderID == "" && m.Spec.Class.Name == class.Name
	}
	// the parts that can't be updated are equal, and the same fields were declared as updatable
	return spec.Declared == want.Declared && spec.Fixed == want.Fixed
}

// previousClasses returns the PreviousClasses of a set once its class is replaced by next.
func (f *setState) previousClasses(next string) []string {
	spec := &f.set.Spec
	all := slices.DeleteFunc(append(slices.Clone(f.set.Instructions.PreviousClasses), spec.Template.Spec.Class.Name), func(name string) bool {
		return name == next || name == spec.Template.Spec.Class.Name
	})
	all = append(all, spec.Template.Spec.Class.Name)
	if over := len(all) - maxPreviousClasses; over > 0 {
		used := make(map[string]bool)
		for _, m := range f.machines {
			if m != nil {
				used[m.Spec.Class.Name] = true
			}
		}
		old := slices.DeleteFunc(slices.Clone(all[:over]), func(name string) bool { return !used[name] })
		all = append(old, all[over:]...)
	}
	return all
}

// countOutdated counts the VMs of the new set that still need an update, and reports their
// progress.
func (d *state) countOutdated(s *Status) {
	behind, failing, onlyReplaceable := d.countVMs()
	s.Outdated = behind
	if behind+onlyReplaceable == 0 {
		s.Conditions = object.DropCondition(s.Conditions, ConditionVMsOutdated)
		return
	}
	c := object.Condition{Type: ConditionVMsOutdated, Status: object.True, Reason: OutdatedUpdating, Since: d.stamp()}
	switch {
	case d.deployment.Spec.Paused:
		c.Reason = OutdatedPaused
	case behind == 0:
		c.Reason = OutdatedOtherwise
	case failing > 0:
		c.Reason = OutdatedFailing
	}
	c.Message = fmt.Sprintf("VMs to be updated: %d of %d, of these failed: %d; VMs that can only be replaced: %d",
		behind, d.current.actual, failing, onlyReplaceable)
	s.Conditions = object.SetCondition(s.Conditions, c)
}

// Reasons of ConditionVMsOutdated.
const (
	OutdatedUpdating  = "UpdatingVMs"
	OutdatedFailing   = "UpdatesFail"           // some updates fail
	OutdatedPaused    = "DeploymentPaused"      // no VM is updated
	OutdatedOtherwise = "ClassChangedOtherwise" // the rest can only be replaced
)

// countVMs counts the machines of the new set whose VMs differ from their class: outdated are to be updated,
// failing are the outdated ones whose last update failed, onlyReplaceable can't be updated.
func (d *state) countVMs() (outdated, failing, onlyReplaceable int32) {
	if d.current == nil || d.hotUpdate() == nil {
		return 0, 0, 0
	}
	want := &d.hotUpdate().Spec
	for _, m := range d.current.machines {
		if !d.current.owns(m) || m.Status.VMSpec == *want || m.Status.VMSpec == (machine.VMSpec{}) {
			continue
		}
		if spec := &m.Status.VMSpec; spec.Declared != want.Declared || spec.Fixed != want.Fixed {
			onlyReplaceable++
			continue
		}
		outdated++
		if op := &m.Status.LastOperation; op.Kind == machine.OperationUpdate && op.State == machine.StateFailed {
			failing++
		}
	}
	return outdated, failing, onlyReplaceable
}
