package manager

import (
	"context"
	"maps"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// setsOfMachine wakes the owners of a machine whose change matters to them,
// and, when it has none, the sets that might adopt it.
func (o *Options) setsOfMachine(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machine.Machine](old, new)
	if !countsDiffer(a, b) {
		return nil
	}
	var keys []object.Key
	for _, m := range []*machine.Machine{a, b} {
		switch {
		case m == nil:
		case m.Owner == nil:
			keys = append(keys, keysOf(o.Store.Sets.List(ctx, store.Query{Index: IndexNamespace, Value: m.Namespace}))...)
		case m.Owner.Kind == machineset.OwnerKind:
			keys = append(keys, object.Key{Namespace: m.Namespace, Name: m.Owner.Name})
		}
	}
	return compact(keys)
}

// setsOfClass wakes the sets of a class, since a class that was put right may
// end what slows them.
func (o *Options) setsOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Store.Sets.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}

// countsDiffer reports whether a change of a machine may change what its set and
// deployment decide or report.
func countsDiffer(a, b *machine.Machine) bool {
	if a == nil || b == nil {
		return true
	}
	if a.Deleted() != b.Deleted() || a.Ready() != b.Ready() || failed(a) != failed(b) {
		return true
	}
	if a.Status.Phase != b.Status.Phase && !goesWell(a, b) || !index.SameOwner(a.Owner, b.Owner) {
		return true
	}
	if requestsDiffer(a, b) {
		return true
	}
	if a.Generation != b.Generation && !(a.Spec.NodeTemplate.Equal(&b.Spec.NodeTemplate) && a.Spec.Config.Equal(&b.Spec.Config) && a.Spec.Marks == b.Spec.Marks) {
		return true
	}
	return a.Status.VMSpec != b.Status.VMSpec || metaDiffers(&a.Meta, &b.Meta)
}

func metaDiffers(a, b *object.Meta) bool {
	return !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations)
}

// requestsDiffer reports whether something else is asked of a machine, or
// followed, that a rollout takes into account.
func requestsDiffer(a, b *machine.Machine) bool {
	return a.Spec.InPlace != b.Spec.InPlace || !a.Status.Preservation.Equal(&b.Status.Preservation)
}

// goesWell is the first step of every creation: no owner needs to see it.
func goesWell(a, b *machine.Machine) bool {
	return a.Status.Phase == machine.PhaseNew && b.Status.Phase == machine.PhasePending
}

func failed(m *machine.Machine) bool { return m.Status.LastOperation.State == machine.StateFailed }

func (o *Options) deploymentsOfSet(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machineset.Set](old, new)
	var keys []object.Key
	for _, s := range []*machineset.Set{a, b} {
		switch {
		case s == nil:
		case s.Owner == nil:
			keys = append(keys, keysOf(o.Store.Deployments.List(ctx, store.Query{Index: IndexNamespace, Value: s.Namespace}))...)
		case s.Owner.Kind == deployment.OwnerKind:
			keys = append(keys, object.Key{Namespace: s.Namespace, Name: s.Owner.Name})
		}
	}
	return compact(keys)
}

// deploymentsOfMachine wakes the deployment over a machine's set.
func (o *Options) deploymentsOfMachine(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machine.Machine](old, new)
	if !countsDiffer(a, b) {
		return nil
	}
	var keys []object.Key
	for _, m := range []*machine.Machine{a, b} {
		if m == nil || m.Owner == nil || m.Owner.Kind != machineset.OwnerKind {
			continue
		}
		set, err := o.Store.Sets.Get(ctx, object.Key{Namespace: m.Namespace, Name: m.Owner.Name})
		if err == nil && set.Owner != nil && set.Owner.Kind == deployment.OwnerKind {
			keys = append(keys, object.Key{Namespace: set.Namespace, Name: set.Owner.Name})
		}
	}
	return compact(keys)
}

// deploymentsOfClass wakes the deployments whose template names a class, which
// may be that VMs can be updated to it.
func (o *Options) deploymentsOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Store.Deployments.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}
