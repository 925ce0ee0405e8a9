package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Observe-only mode. New puts every port that can change something behind one
// that answers store.ErrWithheld instead, so that a pass can't act whatever it
// does; and a pass ends with the first step that was kept from acting, so that
// it concludes nothing from that.

// onlyObserve withholds everything that changes something.
func (o *Options) onlyObserve() {
	o.Machines = withhold(o.Machines, KindMachine)
	o.Classes = withhold(o.Classes, KindClass)
	o.Secrets = withhold(o.Secrets, KindSecret)
	o.Sets = withhold(o.Sets, KindSet)
	o.Deployments = withhold(o.Deployments, KindDeployment)
	o.Driver = driver.Intercept(o.Driver, withholdCall)
	if o.Cluster != nil {
		o.Cluster = onlooker{o.Cluster}
	}
	if o.Tokens != nil {
		o.Tokens = untaken{}
	}
	if o.ForeignClasses != nil {
		o.ForeignClasses = unmarked{o.ForeignClasses}
	}
	o.observePools()
	o.Drainer = onlyLook(o.Drainer)
}

// observePools withholds what changes pools, their groups and bootstrap data.
func (o *Options) observePools() {
	o.Pools = withhold(o.Pools, KindPool)
	if o.PoolDriver != nil {
		o.PoolDriver = pooldriver.Intercept(o.PoolDriver, withholdCall)
	}
	if o.PoolBootstrap != nil {
		o.PoolBootstrap = unprepared{o.PoolBootstrap}
	}
}

// unprepared leaves bootstrap data as they are.
type unprepared struct{ PoolBootstrap }

// Renew implements PoolBootstrap.
func (unprepared) Renew(ctx context.Context, p *machinepool.Pool, _ time.Time) error {
	return kept(ctx, p.Key, "prolong the bootstrap token of pool "+p.Key.String())
}

// Delete implements PoolBootstrap.
func (unprepared) Delete(ctx context.Context, p *machinepool.Pool) error {
	return kept(ctx, p.Key, "delete the bootstrap data of pool "+p.Key.String())
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
func (unkept) Keep(ctx context.Context, n *machine.Node) (bool, error) {
	return false, kept(ctx, n.Key, "take node "+n.Name+" into service again")
}

func withhold[T object.Object[T]](c store.Collection[T], kind Kind) store.Collection[T] {
	if c == nil {
		return nil
	}
	return store.Withhold(c, func(ctx context.Context, w store.Withheld) {
		intend(ctx, w.Key, w.Verb+" "+string(kind)+" "+w.Key.String())
	})
}

// withholdCall lets the calls through that a driver's contract says change
// nothing. A call that is not known is none of them.
func withholdCall(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
	if call.ReadOnly {
		return next(ctx)
	}
	return kept(ctx, call.Object, "call "+call.Method.String()+" for "+call.Kind+" "+call.Object.String())
}

// onlooker is a cluster whose nodes are not written.
type onlooker struct{ Cluster }

// Nodes implements Cluster.
func (c onlooker) Nodes() store.Collection[*machine.Node] {
	return withhold(c.Cluster.Nodes(), KindNode)
}

// unmarked are foreign classes that are not marked.
type unmarked struct{ ForeignClasses }

// MarkMigrated implements ForeignClasses.
func (unmarked) MarkMigrated(ctx context.Context, kind machine.ClassRef, key object.Key, _ string) error {
	return kept(ctx, key, "mark class "+key.String()+" of kind "+kind.GroupKind()+" as migrated")
}

// untaken makes, prolongs and deletes no tokens.
type untaken struct{}

// Ensure implements Tokens.
func (untaken) Ensure(ctx context.Context, of TokenOwner, _ time.Time) (Token, error) {
	return "", kept(ctx, of.Key, "make a bootstrap token for machine "+of.Key.String())
}

// Renew implements Tokens.
func (untaken) Renew(ctx context.Context, of TokenOwner, _ time.Time) (Token, error) {
	return "", kept(ctx, of.Key, "prolong the bootstrap token of machine "+of.Key.String())
}

// Delete implements Tokens.
func (untaken) Delete(ctx context.Context, of TokenOwner) error {
	return kept(ctx, of.Key, "delete the bootstrap token of machine "+of.Key.String())
}

// undrained drains nothing.
type undrained struct{}

// Drain implements Drainer.
func (undrained) Drain(ctx context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, kept(ctx, m.Key, "drain node "+order.Node.Name)
}

// Detach implements Drainer.
func (undrained) Detach(ctx context.Context, m *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, kept(ctx, m.Key, "detach the volumes of node "+order.Node.Name)
}

// kept notes what a pass was kept from doing, and is the answer to it.
func kept(ctx context.Context, about object.Key, what string) error {
	intend(ctx, about, what)
	return fmt.Errorf("%s: %w", what, store.ErrWithheld)
}

// intents are what one attempt of a pass was kept from doing, in order. They
// travel in its context, since ports know no pass.
type intents struct {
	mu     sync.Mutex
	plan   decision.Why                // of whatever is in no order of its own
	orders map[object.Key]decision.Why // of orders, by what they are about
	all    []intent
}

// intent is something that a pass was kept from doing.
type intent struct {
	what string
	why  decision.Why
}

type intentsKey struct{}

func intentsOf(ctx context.Context) *intents {
	in, _ := ctx.Value(intentsKey{}).(*intents)
	return in
}

// because says what whatever the pass does next is done for.
func because(ctx context.Context, s *shell, why decision.Why) {
	if !s.Observe {
		return
	}
	if in := intentsOf(ctx); in != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.plan, in.orders = why, nil
	}
}

// orderedFor says what one order of several is given for; about is its object.
func orderedFor(ctx context.Context, s *shell, about object.Key, why decision.Why) {
	if !s.Observe {
		return
	}
	if in := intentsOf(ctx); in != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.orders == nil {
			in.orders = make(map[object.Key]decision.Why)
		}
		in.orders[about] = why
	}
}

// intend notes what a pass was kept from doing.
func intend(ctx context.Context, about object.Key, what string) {
	in := intentsOf(ctx)
	if in == nil {
		return // it is kept from it all the same
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	why, single := in.orders[about]
	if !single {
		why = in.plan
	}
	in.all = append(in.all, intent{what, why})
}

func (in *intents) list() []intent {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.all
}

// putter is a pass that has something to put in order when it was kept from
// acting, and may know when to look again; zero: it does not.
type putter interface{ put() time.Time }
