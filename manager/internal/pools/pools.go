// Package pools reconciles pools of machines that a provider keeps as a group: the kind "pool" of package
// manager.
//
// A pass reads the pool, its class, its bootstrap data and the nodes of its instances, asks
// machinepool.Decide, and carries out the plan: a write of the pool, or a call to the pool driver, the
// drainer or the maker of bootstrap data (effects.go).
//
// EXPERIMENTAL: the names in this package may change with any release.
package pools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/port"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// New returns a reconciler of pools.
func New(e *engine.Engine, c Config) *engine.Reconciler {
	r := &reconciler{
		Config: c, features: pooldriver.FeaturesOf(c.Driver),
		secrets: secrets.Secrets{Collection: c.Secrets, Namespaces: c.SecretNamespaces},
	}
	return e.Reconciler(engine.Kind{
		Name: "pool", Delay: c.Delay, Panic: c.Panic, Forget: r.forget,
		Begin: func(p *engine.Pass) engine.Steps { return &pass{Pass: p, reconciler: r} },
	})
}

// Decide implements engine.Steps.
func (p *pass) Decide(ctx context.Context) (engine.Step, error) {
	p.o.Frozen = p.Frozen()
	var err error
	if p.plan, err = machinepool.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Step{}, err
	}
	if step, waits := p.paced(); waits {
		return step, nil
	}
	step := engine.Step{Verb: engine.Mutate, Why: p.plan.Why, Warn: p.plan.Warn, At: p.plan.At}
	switch {
	case p.plan.Write != nil && p.DryRun:
		err = p.Pools.Check(ctx, p.changed())
	case p.plan.Write != nil:
	case p.plan.Effect != nil:
		step.Name = strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", p.plan.Effect), "*"), "machinepool.")
		step.Key, step.Verb = step.Name, verb(p.plan.Effect)
	default:
		step.Verb = engine.Wait
		if p.o.Frozen {
			step.At = p.Thaw(step.At)
		}
	}
	return step, err
}

// Execute implements engine.Steps.
func (p *pass) Execute(ctx context.Context) error {
	if p.plan.Write != nil {
		return p.write(ctx)
	}
	return p.do(ctx, p.plan.Effect)
}

// Changes implements engine.Steps.
func (p *pass) Changes() []engine.Change {
	pool := "pool " + p.Key.String()
	switch p.plan.Write.(type) {
	case *machinepool.Update:
		return []engine.Change{{What: "update " + pool}}
	case *machinepool.UpdateStatus:
		return []engine.Change{{What: "update status of " + pool}}
	}
	return p.changes(p.plan.Effect, pool)
}

// Read implements engine.Steps. A second read of a pass keeps the answers of providers and drainers; it is
// a conflict if the pool has changed.
func (p *pass) Read(ctx context.Context, live bool) error {
	reader := store.Reader[*machinepool.Pool](p.Pools)
	if live {
		reader = p.Pools.Live()
	}
	pool, err := reader.Get(ctx, p.Key)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	if p.o.Pool != nil {
		return engine.CheckUnchanged(&p.o.Pool.Meta, &pool.Meta)
	}
	p.o = machinepool.Observation{
		Pool: pool, NoCluster: p.Nodes == nil, NoDrain: p.Keeper == nil, Fresh: live,
		Failures: p.Failures(), Features: p.features, Memory: p.memoryOf(pool), LedSince: p.LedSince,
	}
	if last, ok := p.groups.Load(p.Key); ok && last.(seenGroup).uid == pool.UID {
		p.o.Group = last.(seenGroup).group
		p.o.Looked = last.(seenGroup).forCall && p.Now().Sub(p.o.Group.At) < validFor
	}
	if ref := pool.Spec.Template.Class; ref.Name != "" && !ref.Foreign() {
		p.o.Class, err = p.Classes.Get(ctx, object.Key{Namespace: pool.Namespace, Name: ref.Name})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if p.o.Secret, err = p.secrets.Version(ctx, p.o.Class); err != nil {
		return err
	}
	if err := p.lookAtBootstrap(ctx); err != nil {
		return err
	}
	return p.readNodes(ctx)
}

// write carries out the plan's write. It observes the pool as it was stored, and
// finds the nodes of its instances again.
func (p *pass) write(ctx context.Context) error {
	before := p.o.Pool
	after, err := p.Pools.Write(ctx, p.changed())
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.o.Pool, p.o.Fresh = after, true
	p.o.Announced = p.o.Announced || p.plan.Announces
	p.report(ctx, before)
	if err := engine.CheckGone(&after.Meta); err != nil {
		return err
	}
	if _, ok := p.plan.Write.(*machinepool.Update); ok {
		return p.readNodes(ctx)
	}
	return nil
}

// changed returns the plan's write of the pool.
func (p *pass) changed() *engine.Write[*machinepool.Pool] {
	w := &engine.Write[*machinepool.Pool]{Before: p.o.Pool, Moves: []machine.Move{p.plan.Move}, Why: p.plan.Why, Seen: &p.o}
	switch change := p.plan.Write.(type) {
	case *machinepool.Update:
		w.After = change.Pool
	case *machinepool.UpdateStatus:
		changed := *p.o.Pool // the store takes its own copy
		changed.Status = change.Status
		w.After, w.Status = &changed, true
	}
	return w
}

// report emits the event of a write that is stored.
func (p *pass) report(ctx context.Context, before *machinepool.Pool) {
	why, moved := p.plan.Why, p.plan.Move != (machine.Move{})
	op := &p.o.Pool.Status.LastOperation
	changed := *op != before.Status.LastOperation
	switch {
	case changed && op.State == machine.StateFailed:
		p.o.Failures = p.Failed(string(op.Call))
		p.EmitOnce(ctx, engine.Warning, why)
	case changed && op.State == machine.StateSuccessful:
		p.Forget()
		p.o.Failures = 0
		p.EmitOnce(ctx, engine.Normal, why)
	case moved:
		p.EmitOnce(ctx, engine.Normal, why)
	}
}

// FromSecrets returns the PoolBootstrap for data that users bring as secrets.
func FromSecrets(c store.Collection[*machine.Secret]) port.PoolBootstrap { return secretsOfPools{c} }

// secretsOfPools is the PoolBootstrap for data that users bring as secrets.
type secretsOfPools struct {
	collection store.Collection[*machine.Secret]
}

func (s secretsOfPools) State(ctx context.Context, p *machinepool.Pool) (machinepool.BootstrapAnswer, error) {
	data, err := s.Data(ctx, p)
	return machinepool.BootstrapAnswer{Ready: true, Found: data != nil}, err
}

func (s secretsOfPools) Data(ctx context.Context, p *machinepool.Pool) (*machine.Secret, error) {
	name := p.Spec.Template.Bootstrap.DataSecret
	if name == nil || *name == "" || s.collection == nil {
		return nil, nil //nolint:nilnil // there is nothing to boot from
	}
	secret, err := s.collection.Get(ctx, object.Key{Namespace: p.Namespace, Name: *name})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // the decision waits for it
	}
	if err != nil {
		return nil, err
	}
	return secret.Clone(), nil
}

func (s secretsOfPools) Renew(context.Context, *machinepool.Pool, time.Time) error {
	return codes.New(codes.Unimplemented, "nobody renews bootstrap tokens here")
}

// Delete deletes nothing: the secrets belong to users.
func (s secretsOfPools) Delete(context.Context, *machinepool.Pool) error { return nil }
