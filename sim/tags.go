package sim

import (
	"context"
	"maps"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

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
		if m == nil || m.Deleted() || !m.Ready() || w.keptAsItIs(m) || w.facts.lateTags[m.Name] || w.facts.late[m.Name] {
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
