package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// pools reconciles pools.
type pools struct {
	*shell
	secrets  secrets.Secrets
	memo     memo
	keeper   NodeKeeper // nil: nobody drains nodes
	features machinepool.Features
	// groups holds the last answer about each pool's group, by the pool's key.
	// To lose it costs a call.
	groups sync.Map
}

func newPoolReconciler(s *shell) *pools {
	r := &pools{shell: s, secrets: s.secretsOfClasses(), features: pooldriver.FeaturesOf(s.PoolDriver)}
	r.keeper, _ = s.Drainer.(NodeKeeper)
	return r
}

// Kind implements Reconciler.
func (r *pools) Kind() Kind { return KindPool }

// Reconcile implements Reconciler.
func (r *pools) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	return r.reconcile(ctx, KindPool, key, &r.memo, func(*engine.Pass) pass { return &poolPass{pools: r, key: key} })
}

// known is a group as it was last seen, of a pool by its UID.
type known struct {
	uid   string
	group *machinepool.Group
}

// poolPass is one pass over one pool.
type poolPass struct {
	*pools
	key    object.Key
	o      machinepool.Observation
	issued map[string]bool // effects, by name
}

func (p *poolPass) step(ctx context.Context) (Result, bool, error) {
	p.o.Frozen = p.frozen()
	plan, err := machinepool.Decide(&p.o, p.PoolPolicy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	if plan.Warn != (decision.Why{}) {
		p.event(ctx, Warning, plan.Warn)
	}
	switch {
	case plan.Write != nil:
		return Result{}, false, p.write(ctx, &plan)
	case plan.Effect != nil:
		return Result{}, false, p.carryOut(ctx, plan.Effect)
	}
	return p.lookFor(p.o.Frozen, plan.At, plan.Why), true, nil
}

// observe makes the reads that come before the first decision.
func (p *poolPass) observe(ctx context.Context, fresh bool) error {
	reader := store.Reader[*machinepool.Pool](p.Pools)
	if fresh {
		reader = p.Pools.Live()
	}
	pool, err := reader.Get(ctx, p.key)
	if errors.Is(err, store.ErrNotFound) {
		p.groups.Delete(p.key)
	}
	if err != nil {
		return engine.Itself(err)
	}
	p.issued = make(map[string]bool)
	p.o = machinepool.Observation{
		Pool: pool, NoCluster: p.Cluster == nil, NoDrain: p.keeper == nil, Fenced: fresh,
		Failures: p.memo.Failures(p.key), Features: p.features,
	}
	if last, ok := p.groups.Load(p.key); ok && last.(known).uid == pool.UID {
		p.o.Group = last.(known).group
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

func (p *poolPass) lookAtBootstrap(ctx context.Context) error {
	if name := p.o.Pool.Spec.Template.Bootstrap.DataSecret; name == nil || *name == "" || p.o.Pool.Deleted() {
		return nil
	}
	answer, err := p.PoolBootstrap.Look(ctx, p.o.Pool)
	if err == nil {
		p.o.Bootstrap = &answer
	}
	return err
}

// readNodes finds the nodes of the pool's instances in the cache.
func (p *poolPass) readNodes(ctx context.Context) error {
	if p.Cluster == nil || p.o.Pool.Deleted() {
		return nil
	}
	found := make(map[string]*machine.Node, len(p.o.Pool.Spec.ProviderIDs))
	for _, id := range p.o.Pool.Spec.ProviderIDs {
		if id == "" {
			continue
		}
		nodes, err := p.Cluster.Nodes().List(ctx, store.Query{Index: IndexVM, Value: id})
		if err != nil {
			return err
		}
		for _, n := range nodes { // two nodes of one ID: the younger one is it
			if have := found[id]; have == nil || n.CreatedAt.After(have.CreatedAt) {
				found[id] = n
			}
		}
	}
	p.o.Nodes = found
	return nil
}

// write carries out the plan's write. The object that comes back takes the
// pool's place in the observation, and its instances' nodes are found anew.
func (p *poolPass) write(ctx context.Context, plan *machinepool.Plan) error {
	if err := p.check(ctx, []machine.Move{plan.Move}); err != nil {
		return err
	}
	before := p.o.Pool
	var after *machinepool.Pool
	var err error
	switch w := plan.Write.(type) {
	case *machinepool.Update:
		after, err = p.Pools.Update(ctx, w.Pool)
	case *machinepool.UpdateStatus:
		changed := *before // the store takes its own copy
		changed.Status = w.Status
		after, err = p.Pools.UpdateStatus(ctx, &changed)
	default:
		err = fmt.Errorf("unknown write %T", w)
	}
	if err != nil {
		return engine.Itself(err)
	}
	p.o.Pool, p.o.Fenced = after, true
	p.report(ctx, plan, before)
	if err := engine.Gone(&after.Meta); err != nil {
		p.groups.Delete(p.key)
		return err
	}
	if _, ok := plan.Write.(*machinepool.Update); ok {
		return p.readNodes(ctx)
	}
	return nil
}

// report tells hooks and log of a write that is stored.
func (p *poolPass) report(ctx context.Context, plan *machinepool.Plan, before *machinepool.Pool) {
	why := plan.Why
	if plan.Move != (machine.Move{}) {
		p.Hooks.transition(p.key, plan.Move, why)
	}
	op := &p.o.Pool.Status.LastOperation
	changed := *op != before.Status.LastOperation
	switch {
	case changed && op.State == machine.StateFailed:
		p.o.Failures = p.memo.failed(p.key, machine.OperationKind(op.Call), "")
		p.event(ctx, Warning, why)
	case changed && op.State == machine.StateSuccessful:
		p.memo.forget(p.key)
		p.o.Failures = 0
		p.event(ctx, Normal, why)
	case plan.Move != (machine.Move{}):
		p.event(ctx, Normal, why)
	}
}

func (p *poolPass) event(ctx context.Context, typ EventType, why decision.Why) {
	p.tell(ctx, &p.memo, KindPool, p.key, typ, why)
}

// poolEffect is the name of an effect's type.
func poolEffect(e machinepool.Effect) string {
	name := fmt.Sprintf("%T", e)
	return name[strings.LastIndexByte(name, '.')+1:]
}
