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

// Observe-only mode is a dry run of the engine's, which executes no plan that acts. Beside that, New puts
// every port that can change something behind one that answers store.ErrReadOnly instead, so that a pass
// can't act, even if its kind misjudges a plan.

// onlyObserve puts every port behind one that withholds changes.
func (o *Options) onlyObserve() {
	o.Store.Machines = withhold(o.Store.Machines)
	o.Store.Classes = withhold(o.Store.Classes)
	o.Store.Secrets = withhold(o.Store.Secrets)
	o.Store.Sets = withhold(o.Store.Sets)
	o.Store.Deployments = withhold(o.Store.Deployments)
	o.Driver = driver.Intercept(o.Driver, withholdCall)
	if o.Cluster != nil {
		o.Cluster = onlooker{o.Cluster}
	}
	if o.Tokens != nil {
		o.Tokens = untaken{}
	}
	if o.Classes.Foreign != nil {
		o.Classes.Foreign = unmarked{o.Classes.Foreign}
	}
	o.observePools()
	o.Drainer = onlyLook(o.Drainer)
}

// observePools withholds what changes pools, their groups and bootstrap data.
func (o *Options) observePools() {
	o.Store.Pools = withhold(o.Store.Pools)
	if o.Pools.Driver != nil {
		o.Pools.Driver = pooldriver.Intercept(o.Pools.Driver, withholdCall)
	}
	if o.Pools.Bootstrap != nil {
		o.Pools.Bootstrap = unprepared{o.Pools.Bootstrap}
	}
}

// unprepared leaves bootstrap data as they are.
type unprepared struct{ PoolBootstrap }

// Renew implements PoolBootstrap.
func (unprepared) Renew(_ context.Context, p *machinepool.Pool, _ time.Time) error {
	return kept("prolong the bootstrap token of pool " + p.Key.String())
}

// Delete implements PoolBootstrap.
func (unprepared) Delete(_ context.Context, p *machinepool.Pool) error {
	return kept("delete the bootstrap data of pool " + p.Key.String())
}

// onlyLook is a drainer that drains nothing, and can what d can.
func onlyLook(d Drainer) Drainer {
	watcher, watches := d.(WorkloadWatcher)
	_, keeps := d.(NodeKeeper)
	switch {
	case d == nil:
		return nil
	case watches && keeps:
		return struct {
			undrained
			unkept
			WorkloadWatcher
		}{WorkloadWatcher: watcher}
	case watches:
		return struct {
			undrained
			WorkloadWatcher
		}{WorkloadWatcher: watcher}
	case keeps:
		return struct {
			undrained
			unkept
		}{}
	}
	return undrained{}
}

// unkept leaves a node that is being drained as it is.
type unkept struct{}

// Keep implements NodeKeeper.
func (unkept) Keep(_ context.Context, n *machine.Node) (bool, error) {
	return false, kept("take node " + n.Name + " into service again")
}

func withhold[T object.Object[T]](c store.Collection[T]) store.Collection[T] {
	if c == nil {
		return nil
	}
	return store.ReadOnly(c, func(context.Context, store.BlockedWrite) {})
}

// withholdCall lets the calls through that a driver's contract says change
// nothing. A call that is not known is none of them.
func withholdCall(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
	if call.ReadOnly {
		return next(ctx)
	}
	return kept("call " + call.Method.String() + " for " + call.Kind + " " + call.Object.String())
}

// onlooker is a cluster whose nodes are not written.
type onlooker struct{ Cluster }

// Nodes implements Cluster.
func (c onlooker) Nodes() store.Collection[*machine.Node] {
	return withhold(c.Cluster.Nodes())
}

// unmarked are foreign classes that are not marked.
type unmarked struct{ ForeignClasses }

// MarkMigrated implements ForeignClasses.
func (unmarked) MarkMigrated(_ context.Context, kind machine.ClassRef, key object.Key, _ string) error {
	return kept("mark class " + key.String() + " of kind " + kind.GroupKind() + " as migrated")
}

// untaken makes, prolongs and deletes no tokens.
type untaken struct{}

// Ensure implements Tokens.
func (untaken) Ensure(_ context.Context, of TokenOwner, _ time.Time) (Token, error) {
	return "", kept("make a bootstrap token for " + of.String())
}

// Renew implements Tokens.
func (untaken) Renew(_ context.Context, of TokenOwner, _ time.Time) (Token, error) {
	return "", kept("prolong the bootstrap token of " + of.String())
}

// Delete implements Tokens.
func (untaken) Delete(_ context.Context, of TokenOwner) error {
	return kept("delete the bootstrap token of " + of.String())
}

// undrained drains nothing.
type undrained struct{}

// Drain implements Drainer.
func (undrained) Drain(_ context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, kept("drain node " + order.Node.Name)
}

// Detach implements Drainer.
func (undrained) Detach(_ context.Context, m *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, kept("detach the volumes of node " + order.Node.Name)
}

// kept is the answer to what a dry run must not do.
func kept(what string) error { return fmt.Errorf("%s: %w", what, store.ErrReadOnly) }
