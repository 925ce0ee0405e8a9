package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// The engine of a dry run executes no plan that acts. In addition, New replaces every port that can change
// something by one that answers store.ErrReadOnly instead, so that a pass can't act even if its kind
// misjudges a plan.

// blockWrites replaces every port by one that refuses changes.
func (o *Options) blockWrites() {
	o.Store.Machines = readOnly(o.Store.Machines)
	o.Store.Classes = readOnly(o.Store.Classes)
	o.Store.Secrets = readOnly(o.Store.Secrets)
	o.Store.Sets = readOnly(o.Store.Sets)
	o.Store.Deployments = readOnly(o.Store.Deployments)
	o.Driver = driver.Intercept(o.Driver, blockCall)
	if o.Cluster != nil {
		o.Cluster = readOnlyCluster{o.Cluster}
	}
	if o.Tokens != nil {
		o.Tokens = readOnlyTokens{}
	}
	if o.Classes.Foreign != nil {
		o.Classes.Foreign = readOnlyForeign{o.Classes.Foreign}
	}
	o.blockPoolWrites()
	o.Drainer = readOnlyDrainer(o.Drainer)
}

// blockPoolWrites refuses what changes pools, their groups and bootstrap data.
func (o *Options) blockPoolWrites() {
	o.Store.Pools = readOnly(o.Store.Pools)
	if o.Pools.Driver != nil {
		o.Pools.Driver = pooldriver.Intercept(o.Pools.Driver, blockCall)
	}
	if o.Pools.Bootstrap != nil {
		o.Pools.Bootstrap = readOnlyBootstrap{o.Pools.Bootstrap}
	}
}

// readOnlyBootstrap leaves bootstrap data as they are.
type readOnlyBootstrap struct{ PoolBootstrap }

// Renew implements PoolBootstrap.
func (readOnlyBootstrap) Renew(_ context.Context, p *machinepool.Pool, _ time.Time) error {
	return blocked("prolong the bootstrap token of pool " + p.Key.String())
}

// Delete implements PoolBootstrap.
func (readOnlyBootstrap) Delete(_ context.Context, p *machinepool.Pool) error {
	return blocked("delete the bootstrap data of pool " + p.Key.String())
}

// readOnlyDrainer returns a drainer that drains nothing. It is a WorkloadWatcher or a NodeKeeper if d is one.
func readOnlyDrainer(d Drainer) Drainer {
	watcher, watches := d.(WorkloadWatcher)
	_, keeps := d.(NodeKeeper)
	switch {
	case d == nil:
		return nil
	case watches && keeps:
		return struct {
			blockedDrainer
			blockedKeeper
			WorkloadWatcher
		}{WorkloadWatcher: watcher}
	case watches:
		return struct {
			blockedDrainer
			WorkloadWatcher
		}{WorkloadWatcher: watcher}
	case keeps:
		return struct {
			blockedDrainer
			blockedKeeper
		}{}
	}
	return blockedDrainer{}
}

// blockedKeeper leaves a node that is being drained as it is.
type blockedKeeper struct{}

// Keep implements NodeKeeper.
func (blockedKeeper) Keep(_ context.Context, n *machine.Node) (bool, error) {
	return false, blocked("take node " + n.Name + " into service again")
}

func readOnly[T object.Object[T]](c store.Collection[T]) store.Collection[T] {
	if c == nil {
		return nil
	}
	return store.ReadOnly(c, func(context.Context, store.BlockedWrite) {})
}

// blockCall lets only those calls through that change nothing according to the driver's contract.
func blockCall(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
	if call.ReadOnly {
		return next(ctx)
	}
	return blocked("call " + call.Method.String() + " for " + call.Kind + " " + call.Object.String())
}

// readOnlyCluster is a cluster whose nodes are not written.
type readOnlyCluster struct{ Cluster }

// Nodes implements Cluster.
func (c readOnlyCluster) Nodes() store.Collection[*machine.Node] {
	return readOnly(c.Cluster.Nodes())
}

// readOnlyForeign has foreign classes that can't be marked.
type readOnlyForeign struct{ ForeignClasses }

// MarkMigrated implements ForeignClasses.
func (readOnlyForeign) MarkMigrated(_ context.Context, kind machine.ClassRef, key object.Key, _ string) error {
	return blocked("mark class " + key.String() + " of kind " + kind.GroupKind() + " as migrated")
}

// readOnlyTokens makes, prolongs and deletes no tokens.
type readOnlyTokens struct{}

// Ensure implements Tokens.
func (readOnlyTokens) Ensure(_ context.Context, of TokenOwner, _ time.Time) (Token, error) {
	return "", blocked("make a bootstrap token for " + of.String())
}

// Renew implements Tokens.
func (readOnlyTokens) Renew(_ context.Context, of TokenOwner, _ time.Time) (Token, error) {
	return "", blocked("prolong the bootstrap token of " + of.String())
}

// Delete implements Tokens.
func (readOnlyTokens) Delete(_ context.Context, of TokenOwner) error {
	return blocked("delete the bootstrap token of " + of.String())
}

// blockedDrainer drains nothing.
type blockedDrainer struct{}

// Drain implements Drainer.
func (blockedDrainer) Drain(_ context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, blocked("drain node " + order.Node.Name)
}

// Detach implements Drainer.
func (blockedDrainer) Detach(_ context.Context, m *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, blocked("detach the volumes of node " + order.Node.Name)
}

// blocked is the answer to what a dry run must not do.
func blocked(what string) error { return fmt.Errorf("%s: %w", what, store.ErrReadOnly) }
