package manager

import (
	"context"
	"errors"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/classes"
	"github.com/millwright-go/millwright/manager/pools"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// PoolBootstrap makes the bootstrap data of pools.
type PoolBootstrap = pools.Bootstrap

// NodeKeeper is a Drainer that can undo its drains. Without one, instances of
// pools go without a drain: one that was begun might have to be undone.
type NodeKeeper = pools.NodeKeeper

// newPoolReconciler gives pools what they need of the others.
func newPoolReconciler(s *shell) Reconciler {
	c := pools.Config{
		Pools: s.Pools, Classes: s.Classes, Secrets: s.Secrets, SecretNamespaces: s.SecretNamespaces,
		Driver: s.PoolDriver, Bootstrap: s.PoolBootstrap, Drainer: s.Drainer, Policy: s.PoolPolicy,
		Hold: s.reach.Hold, Frozen: s.reach.Frozen, Thaw: s.reach.Thaw,
		Check: s.moves.Fire, Transition: s.Hooks.Transition, Panicked: s.abandoned(KindPool),
	}
	c.Keeper, _ = s.Drainer.(NodeKeeper)
	if s.Cluster != nil {
		c.Nodes = s.Cluster.Nodes()
	}
	return reconciler{pools.New(s.engine, c)}
}

// managesPools reports whether pools are reconciled.
func (o *Options) managesPools() bool { return o.Pools != nil && o.PoolDriver != nil }

func (o *Options) validatePools() error {
	switch {
	case o.PoolDriver != nil && o.Pools == nil:
		return errors.New("no Pools for a PoolDriver")
	case o.PoolBootstrap != nil && o.PoolDriver == nil:
		return errors.New("no PoolDriver for a PoolBootstrap")
	}
	return nil
}

// probePools asks for the indexes that pools are reconciled by.
func (o *Options) probePools(ctx context.Context) error {
	if !o.managesPools() {
		return nil
	}
	err := probeAll(ctx, o.Pools, "Pools", IndexClass, IndexVM)
	if o.Cluster != nil {
		err = errors.Join(err, probeAll(ctx, o.Cluster.Nodes(), "Cluster.Nodes", IndexVM))
	}
	return err
}

// useOfPool: a pool needs its class until it is gone.
func useOfPool(p *machinepool.Pool) classes.Use {
	ref := p.Spec.Template.Class
	return classes.Use{Class: object.Key{Namespace: p.Namespace, Name: ref.Name}, Ref: ref, Counts: true}
}

// decoratePools wraps the pool driver as New does the driver.
func (o *Options) decoratePools(interceptors []driver.Interceptor) {
	if !o.managesPools() {
		return
	}
	o.PoolDriver = pooldriver.Intercept(pooldriver.Validate(o.PoolDriver, o.cut), interceptors...)
	if o.PoolBootstrap == nil {
		o.PoolBootstrap = pools.FromSecrets(o.Secrets)
	}
}

// poolWakes are the changes that pools are looked at for.
func (o *Options) poolWakes() []Wake {
	if !o.managesPools() {
		return nil
	}
	wakes := []Wake{
		{From: KindPool, To: KindPool, Keys: self[*machinepool.Pool]},
		{From: KindClass, To: KindPool, Keys: o.poolsOfClass, Settle: o.Settle},
	}
	if o.Cluster != nil {
		wakes = append(wakes, Wake{From: KindNode, To: KindPool, Keys: o.poolsOfNode, Settle: o.Settle})
	}
	return wakes
}

func (o *Options) poolsOfClass(ctx context.Context, old, new any) []object.Key {
	var keys []object.Key
	for _, class := range self[*machine.Class](ctx, old, new) {
		keys = append(keys, keysOf(o.Pools.List(ctx, store.Query{Index: IndexClass, Value: class.String()}))...)
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
		keys = append(keys, keysOf(o.Pools.List(ctx, store.Query{Index: IndexVM, Value: n.ProviderID}))...)
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
