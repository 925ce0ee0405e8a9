package manager

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// poolWakes are the changes that pools are looked at for.
func (o *Options) poolWakes() []Wake {
	if !o.managesPools() {
		return nil
	}
	wakes := []Wake{
		{From: KindPool, To: KindPool, Keys: self[*machinepool.Pool]},
		{From: KindClass, To: KindPool, Keys: o.poolsOfClass, Settle: o.Tuning.Settle},
	}
	if o.Store.Secrets != nil {
		wakes = append(wakes, Wake{From: KindSecret, To: KindPool, Keys: o.poolsOfSecret})
	}
	if o.Cluster != nil {
		wakes = append(wakes, Wake{From: KindNode, To: KindPool, Keys: o.poolsOfNode, Settle: o.Tuning.Settle})
	}
	return wakes
}

func (o *Options) poolsOfClass(ctx context.Context, old, new any) []object.Key {
	var keys []object.Key
	for _, class := range self[*machine.Class](ctx, old, new) {
		keys = append(keys, keysOf(o.Store.Pools.List(ctx, store.Query{Index: IndexClass, Value: class.String()}))...)
	}
	return keys
}

// poolsOfSecret wakes the pools of the classes that take a secret: a call that failed may succeed now.
func (o *Options) poolsOfSecret(ctx context.Context, old, new any) []object.Key {
	var keys []object.Key
	for _, class := range o.classesOfSecret(ctx, old, new) {
		keys = append(keys, o.poolsOfClass(ctx, nil, class)...)
	}
	return keys
}

// poolsOfNode wakes the pool of a node's instance, if what it counts may have changed.
func (o *Options) poolsOfNode(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machine.Node](old, new)
	if a != nil && b != nil && samePoolNode(a, b) {
		return nil
	}
	var keys []object.Key
	for i, n := range []*machine.Node{a, b} {
		if n == nil || n.ProviderID == "" || i == 1 && a != nil && a.ProviderID == b.ProviderID {
			continue
		}
		keys = append(keys, keysOf(o.Store.Pools.List(ctx, store.Query{Index: IndexVM, Value: n.ProviderID}))...)
	}
	return keys
}

// samePoolNode reports whether two states of a node are one to its pool.
func samePoolNode(a, b *machine.Node) bool {
	status := func(n *machine.Node) object.ConditionStatus {
		if c := object.FindCondition(n.Conditions, machine.NodeReady); c != nil {
			return c.Status
		}
		return object.Unknown
	}
	return a.ProviderID == b.ProviderID && a.UID == b.UID && a.Deleted() == b.Deleted() && status(a) == status(b) &&
		len(a.Annotations) == len(b.Annotations)
}
