package manager

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

func (o *Options) machinesOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Store.Machines.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}

func (o *Options) machinesOfSecret(ctx context.Context, old, new any) []object.Key {
	var keys []object.Key
	for _, class := range o.classesOfSecret(ctx, old, new) {
		keys = append(keys, o.machinesOfClass(ctx, nil, class)...)
	}
	return keys
}

// classesOfSecret returns the classes that refer to a secret.
func (o *Options) classesOfSecret(ctx context.Context, old, new any) []*machine.Class {
	keys := self[*machine.Secret](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	all, err := o.Store.Classes.List(ctx, store.Query{Index: IndexSecret, Value: keys[0].String()})
	if err != nil {
		return nil
	}
	return all
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
	keys := keysOf(o.Store.Machines.List(ctx, store.Query{Index: IndexNode, Value: b.Name}))
	if name := b.Labels[o.Policies.Machine.Keys.NodeMachine]; name != "" {
		keys = append(keys, keysOf(o.Store.Machines.List(ctx, store.Query{Index: IndexNode, Value: nodeOf(name)}))...)
	}
	return keys
}

// machinesOfWorkload wakes the machines of a node that is being drained: the
// rest of the time, what runs on it decides nothing.
func (o *Options) machinesOfWorkload(ctx context.Context, _, new any) []object.Key {
	node, _ := new.(string)
	machines, err := o.Store.Machines.List(ctx, store.Query{Index: IndexNode, Value: node})
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
