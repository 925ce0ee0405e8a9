package manager

import (
	"context"
	"maps"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// Wakes says which change is a reason to reconcile what. Every key is found in
// the caches; one that can't be found there wakes nothing.
func (m *Manager) Wakes() []Wake {
	o := &m.options
	wakes := []Wake{
		{From: KindMachine, To: KindMachine, Keys: self[*machine.Machine]},
		{From: KindClass, To: KindMachine, Keys: o.machinesOfClass},
	}
	if o.Secrets != nil {
		wakes = append(wakes, Wake{From: KindSecret, To: KindMachine, Keys: o.machinesOfSecret})
	}
	if o.Cluster != nil {
		wakes = append(wakes, Wake{From: KindNode, To: KindMachine, Keys: o.machinesOfNode})
	}
	if o.Drainer != nil {
		wakes = append(wakes, Wake{From: KindWorkload, To: KindMachine, Keys: o.machinesOfWorkload, Settle: o.Settle})
	}
	if o.Sets != nil {
		wakes = append(wakes,
			Wake{From: KindSet, To: KindSet, Keys: self[*machineset.Set]},
			Wake{From: KindMachine, To: KindSet, Keys: o.setsOfMachine, Settle: o.Settle},
			Wake{From: KindClass, To: KindSet, Keys: o.setsOfClass, Settle: o.Settle})
	}
	if o.Deployments != nil {
		wakes = append(wakes,
			Wake{From: KindDeployment, To: KindDeployment, Keys: self[*deployment.Deployment]},
			Wake{From: KindSet, To: KindDeployment, Keys: o.deploymentsOfSet, Settle: o.Settle},
			Wake{From: KindMachine, To: KindDeployment, Keys: o.deploymentsOfMachine, Settle: o.Settle})
		if len(driver.UpdatableFields(o.Driver)) > 0 {
			wakes = append(wakes, Wake{From: KindClass, To: KindDeployment, Keys: o.deploymentsOfClass, Settle: o.Settle})
		}
	}
	if o.SafetyPolicy != nil {
		wakes = append(wakes,
			Wake{From: KindMachine, To: KindOrphans, Keys: m.orphansOfMachine, Settle: o.Settle},
			Wake{From: KindClass, To: KindOrphans, Keys: newClass, Settle: o.Settle})
		wakes = append(wakes, o.ownerlessWakes()...)
	}
	wakes = append(wakes, o.poolWakes()...)
	return append(wakes, o.classWakes()...)
}

// orphansOfMachine has VMs looked through when a machine has disappeared, whose
// class is noted, or was found to have several VMs.
func (m *Manager) orphansOfMachine(_ context.Context, old, new any) []object.Key {
	a, b := both[*machine.Machine](old, new)
	switch {
	case b == nil && a != nil:
		m.hints.add(orphan.Hint{Class: classKey(a), At: m.options.Now()})
	case b == nil || b.Status.LastOperation.Code != codes.OutOfRange || a != nil && a.Status.LastOperation == b.Status.LastOperation:
		return nil
	}
	return []object.Key{Fleet}
}

// newClass has the VMs of a class listed that is seen first.
func newClass(_ context.Context, old, _ any) []object.Key {
	if old != nil {
		return nil
	}
	return []object.Key{Fleet}
}

// both reads the two sides of a change; the zero T stands for nothing.
func both[T any](old, new any) (T, T) {
	a, _ := old.(T)
	b, _ := new.(T)
	return a, b
}

// self wakes the object that changed.
func self[T object.Object[T]](_ context.Context, old, new any) []object.Key {
	var none T
	a, b := both[T](old, new)
	if b != none {
		return []object.Key{b.ObjectMeta().Key}
	}
	if a != none {
		return []object.Key{a.ObjectMeta().Key}
	}
	return nil
}

func keysOf[T object.Object[T]](list []T, err error) []object.Key {
	if err != nil {
		return nil // the cache is in memory: it fails only when all is ending
	}
	keys := make([]object.Key, len(list))
	for i := range list {
		keys[i] = list[i].ObjectMeta().Key
	}
	return keys
}

func (o *Options) machinesOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Machines.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}

func (o *Options) machinesOfSecret(ctx context.Context, old, new any) []object.Key {
	var keys []object.Key
	for _, secret := range self[*machine.Secret](ctx, old, new) {
		classes, err := o.Classes.List(ctx, store.Query{Index: IndexSecret, Value: secret.String()})
		if err != nil {
			return nil
		}
		for _, class := range classes {
			keys = append(keys, o.machinesOfClass(ctx, nil, class)...)
		}
	}
	return keys
}

// machinesOfNode wakes the machines that claim a node, by name or by label.
func (o *Options) machinesOfNode(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machine.Node](old, new)
	if b == nil {
		b = a
	}
	if b == nil {
		return nil
	}
	keys := keysOf(o.Machines.List(ctx, store.Query{Index: IndexNode, Value: b.Name}))
	if name := b.Labels[o.MachinePolicy.Keys.NodeMachine]; name != "" {
		keys = append(keys, keysOf(o.Machines.List(ctx, store.Query{Index: IndexNode, Value: nodeOf(name)}))...)
	}
	return keys
}

// machinesOfWorkload wakes the machines of a node that is being drained: the
// rest of the time, what runs on it decides nothing.
func (o *Options) machinesOfWorkload(ctx context.Context, _, new any) []object.Key {
	node, _ := new.(string)
	machines, err := o.Machines.List(ctx, store.Query{Index: IndexNode, Value: node})
	if err != nil {
		return nil
	}
	var keys []object.Key
	for _, m := range machines {
		if m.Deleted() || m.Status.Phase == machine.PhaseInPlaceUpdating || drainsPreserved(m) {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// drainsPreserved reports whether a machine has failed, is kept for inspection,
// and has workload that is to leave.
func drainsPreserved(m *machine.Machine) bool {
	p := &m.Status.Preservation
	return m.Status.Phase == machine.PhaseFailed && !p.Since.IsZero() && !p.Drained
}

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
			keys = append(keys, keysOf(o.Sets.List(ctx, store.Query{Index: IndexNamespace, Value: m.Namespace}))...)
		case m.Owner.Kind == machineset.OwnerKind:
			keys = append(keys, object.Key{Namespace: m.Namespace, Name: m.Owner.Name})
		}
	}
	return compact(keys)
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
			keys = append(keys, keysOf(o.Deployments.List(ctx, store.Query{Index: IndexNamespace, Value: s.Namespace}))...)
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
		set, err := o.Sets.Get(ctx, object.Key{Namespace: m.Namespace, Name: m.Owner.Name})
		if err == nil && set.Owner != nil && set.Owner.Kind == deployment.OwnerKind {
			keys = append(keys, object.Key{Namespace: set.Namespace, Name: set.Owner.Name})
		}
	}
	return compact(keys)
}

// compact drops repeated keys from a short list.
func compact(keys []object.Key) []object.Key {
	out := keys[:0]
	for i, k := range keys {
		if i == 0 || k != keys[i-1] {
			out = append(out, k)
		}
	}
	return out
}

// setsOfClass wakes the sets of a class, since a class that was put right may
// end what slows them.
func (o *Options) setsOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Sets.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}
