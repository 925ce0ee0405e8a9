package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// gate is what every port asks before it changes something. It returns why that is refused.
//
// The engine of a dry run executes no plan that acts. In addition a gate refuses what acts, so that a pass can't
// act even if its kind misjudges a plan. The gate of Options.Term refuses everything once the term is over.
type gate struct {
	refuse func() error
	// explains says that writes to a store are checked against its rules before they are refused.
	explains bool
}

// ask returns why a change may not be made; what names it.
func (g *gate) ask(what string) error {
	if err := g.refuse(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// readOnly refuses everything.
func readOnly() *gate {
	return &gate{refuse: func() error { return store.ErrReadOnly }, explains: true}
}

// during refuses everything once a term is over.
func during(term lead.Term) *gate {
	return &gate{refuse: func() error {
		if err := term.Err(); err != nil {
			return fmt.Errorf("%w: %w", store.ErrFenced, err)
		}
		return nil
	}}
}

// guard puts a gate in front of every port.
func (o *Options) guard(g *gate) {
	o.Store.Machines = gated(g, o.Store.Machines)
	o.Store.Classes = gated(g, o.Store.Classes)
	o.Store.Secrets = gated(g, o.Store.Secrets)
	o.Store.Sets = gated(g, o.Store.Sets)
	o.Store.Deployments = gated(g, o.Store.Deployments)
	o.Driver = driver.Intercept(o.Driver, g.call)
	if o.Cluster != nil {
		o.Cluster = gatedCluster{o.Cluster, g}
	}
	if o.Tokens != nil {
		o.Tokens = gatedTokens{o.Tokens, g}
	}
	if o.Classes.Foreign != nil {
		o.Classes.Foreign = gatedForeign{o.Classes.Foreign, g}
	}
	o.guardPools(g)
	o.Drainer = guardDrainer(g, o.Drainer)
}

// guardPools puts a gate in front of what changes pools, their groups and bootstrap data.
func (o *Options) guardPools(g *gate) {
	o.Store.Pools = gated(g, o.Store.Pools)
	if o.Pools.Driver != nil {
		o.Pools.Driver = pooldriver.Intercept(o.Pools.Driver, g.call)
	}
	if o.Pools.Bootstrap != nil {
		o.Pools.Bootstrap = gatedBootstrap{o.Pools.Bootstrap, g}
	}
}

func gated[T object.Object[T]](g *gate, c store.Collection[T]) store.Collection[T] {
	switch {
	case c == nil:
		return nil
	case g.explains:
		return store.ReadOnly(c, func(context.Context, store.BlockedWrite) {})
	}
	return store.Gate(c, g.refuse)
}

// call asks about a call of a driver, unless it changes nothing according to the driver's contract.
func (g *gate) call(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
	if !call.ReadOnly {
		if err := g.ask("call " + call.Method.String() + " for " + call.Kind + " " + call.Object.String()); err != nil {
			return err
		}
	}
	return next(ctx)
}

// gatedBootstrap asks about changes of bootstrap data.
type gatedBootstrap struct {
	PoolBootstrap
	gate *gate
}

// Renew implements PoolBootstrap.
func (b gatedBootstrap) Renew(ctx context.Context, p *machinepool.Pool, until time.Time) error {
	if err := b.gate.ask("prolong the bootstrap token of pool " + p.Key.String()); err != nil {
		return err
	}
	return b.PoolBootstrap.Renew(ctx, p, until)
}

// Delete implements PoolBootstrap.
func (b gatedBootstrap) Delete(ctx context.Context, p *machinepool.Pool) error {
	if err := b.gate.ask("delete the bootstrap data of pool " + p.Key.String()); err != nil {
		return err
	}
	return b.PoolBootstrap.Delete(ctx, p)
}

// guardDrainer returns a drainer that asks before it drains. It is a WorkloadWatcher or a NodeKeeper if d is one.
func guardDrainer(g *gate, d Drainer) Drainer {
	if d == nil {
		return nil
	}
	watcher, watches := d.(WorkloadWatcher)
	keeper, keeps := d.(NodeKeeper)
	drainer := gatedDrainer{d, g}
	switch {
	case watches && keeps:
		return struct {
			gatedDrainer
			gatedKeeper
			WorkloadWatcher
		}{drainer, gatedKeeper{keeper, g}, watcher}
	case watches:
		return struct {
			gatedDrainer
			WorkloadWatcher
		}{drainer, watcher}
	case keeps:
		return struct {
			gatedDrainer
			gatedKeeper
		}{drainer, gatedKeeper{keeper, g}}
	}
	return drainer
}

// gatedDrainer asks before it drains.
type gatedDrainer struct {
	drainer Drainer
	gate    *gate
}

// Drain implements Drainer.
func (d gatedDrainer) Drain(ctx context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error) {
	if err := d.gate.ask("drain node " + order.Node.Name); err != nil {
		return machine.DrainAnswer{}, err
	}
	return d.drainer.Drain(ctx, m, order)
}

// Detach implements Drainer.
func (d gatedDrainer) Detach(ctx context.Context, m *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error) {
	if err := d.gate.ask("detach the volumes of node " + order.Node.Name); err != nil {
		return machine.DrainAnswer{}, err
	}
	return d.drainer.Detach(ctx, m, order)
}

// gatedKeeper asks before it undoes a drain.
type gatedKeeper struct {
	keeper NodeKeeper
	gate   *gate
}

// Keep implements NodeKeeper.
func (k gatedKeeper) Keep(ctx context.Context, n *machine.Node) (bool, error) {
	if err := k.gate.ask("take node " + n.Name + " into service again"); err != nil {
		return false, err
	}
	return k.keeper.Keep(ctx, n)
}

// gatedCluster asks before its nodes are written.
type gatedCluster struct {
	Cluster
	gate *gate
}

// Nodes implements Cluster.
func (c gatedCluster) Nodes() store.Collection[*machine.Node] {
	return gated(c.gate, c.Cluster.Nodes())
}

// gatedForeign asks before it marks a foreign class.
type gatedForeign struct {
	ForeignClasses
	gate *gate
}

// MarkMigrated implements ForeignClasses.
func (f gatedForeign) MarkMigrated(ctx context.Context, kind machine.ClassRef, key object.Key, version string) error {
	if err := f.gate.ask("mark class " + key.String() + " of kind " + kind.GroupKind() + " as migrated"); err != nil {
		return err
	}
	return f.ForeignClasses.MarkMigrated(ctx, kind, key, version)
}

// gatedTokens asks before it makes, prolongs or deletes a token.
type gatedTokens struct {
	tokens Tokens
	gate   *gate
}

// Ensure implements Tokens.
func (t gatedTokens) Ensure(ctx context.Context, of TokenOwner, until time.Time) (Token, error) {
	if err := t.gate.ask("make a bootstrap token for " + of.String()); err != nil {
		return "", err
	}
	return t.tokens.Ensure(ctx, of, until)
}

// Renew implements Tokens.
func (t gatedTokens) Renew(ctx context.Context, of TokenOwner, until time.Time) (Token, error) {
	if err := t.gate.ask("prolong the bootstrap token of " + of.String()); err != nil {
		return "", err
	}
	return t.tokens.Renew(ctx, of, until)
}

// Delete implements Tokens.
func (t gatedTokens) Delete(ctx context.Context, of TokenOwner) error {
	if err := t.gate.ask("delete the bootstrap token of " + of.String()); err != nil {
		return err
	}
	return t.tokens.Delete(ctx, of)
}
