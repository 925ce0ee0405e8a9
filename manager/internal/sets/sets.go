// Package sets reconciles sets: the kind "set" of package manager.
//
// A pass reads the set and its machines, asks machineset.Decide, and carries out the plan: a write of the
// set, a live read, or orders that create, delete or change machines (sets.go). For a set without a
// deployment, overshoot.Decide comes before each decision.
//
// EXPERIMENTAL: the names in this package may change with any release.
package sets

import (
	"context"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/bounds"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/overshoot"
	"github.com/millwright-go/millwright/store"
)

// New returns a reconciler of sets.
func New(e *engine.Engine, c Config) *engine.Reconciler {
	r := &reconciler{Config: c}
	return e.Reconciler(engine.Kind{
		Name: "set", Delay: c.Delay, Forget: r.forget,
		Begin: func(p *engine.Pass) engine.Steps { return &pass{Pass: p, reconciler: r} },
	})
}

func (r *reconciler) forget(key object.Key) {
	r.notes.Forget(key)
	if r.Forget != nil {
		r.Forget(key)
	}
}

// createdFor returns the ordinal up to which the names of the set's last reservation became machines.
func (r *reconciler) createdFor(s *machineset.Set) int64 {
	c := r.notes.Of(s.Key).created
	if c.uid == s.UID && c.of.Reserved == s.Instructions.Reservation.Reserved && c.of.At.Equal(s.Instructions.Reservation.At) {
		return c.ordinal
	}
	return 0
}

// Decide implements engine.Steps.
func (p *pass) Decide(ctx context.Context) (engine.Step, error) {
	if bounded, err := p.decideBound(ctx); bounded || err != nil {
		return engine.Step{Verb: engine.Mutate, Why: p.bound.Why}, err
	}
	outage := p.Frozen()
	p.o.Frozen = outage || p.Safety != nil && p.Safety.Frozen(&p.o.Set.Meta)
	var err error
	if p.plan, err = machineset.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Step{}, err
	}
	step := engine.Step{Verb: engine.Mutate, Why: p.plan.Why, Warn: p.plan.Warn, At: p.plan.At}
	if outage {
		step.At = p.Thaw(step.At)
	}
	switch {
	case p.plan.ReadLive:
		step.Verb = engine.Reread
	case p.plan.Write == nil && p.orders() == nil:
		step.Verb = engine.Wait
		p.ClearFailures()
		if p.Settled != nil {
			p.Settled(p.o.Set, p.o.Machines)
		}
	}
	return step, nil
}

// Execute implements engine.Steps.
func (p *pass) Execute(ctx context.Context) error {
	b := &engine.Batch[*machine.Machine]{Pass: p.Pass, Objects: p.Machines}
	plan := &p.plan
	switch {
	case p.bound.Write != nil:
		return p.executeBound(ctx)
	case plan.Write != nil:
		return p.write(ctx)
	case len(plan.Create) > 0:
		return p.create(ctx, b)
	case len(plan.Delete) > 0:
		b.Until = plan.Until
		return p.each(ctx, b, "Delete", b.Delete, &p.o.Refused.Delete)
	case len(plan.Adopt) > 0:
		return p.each(ctx, b, "Adopt", b.Update(p.o.Machines, p.o.Orphans), &p.o.Refused.Change)
	case len(plan.Release) > 0:
		return p.each(ctx, b, "Release", b.Update(p.o.Machines, p.o.Orphans), &p.o.Refused.Change)
	default:
		return p.each(ctx, b, "Push", b.Update(p.o.Machines, p.o.Orphans), &p.o.Refused.Change)
	}
}

// Changes implements engine.Steps.
func (p *pass) Changes() []engine.Change {
	own := "set " + p.Key.String()
	if _, status := p.plan.Write.(*machineset.UpdateStatus); status && p.bound.Write == nil {
		return []engine.Change{{What: "update status of " + own}}
	}
	if p.bound.Write != nil || p.plan.Write != nil {
		return []engine.Change{{What: "update " + own}}
	}
	orders, verb := p.orders(), "update"
	switch {
	case len(p.plan.Create) > 0:
		orders, verb = orders[:1], "create" // the others follow if it succeeds
	case len(p.plan.Delete) > 0:
		verb = "delete"
	}
	changes := make([]engine.Change, len(orders))
	for i, order := range orders {
		changes[i] = engine.Change{What: verb + " machine " + order.Machine.Key.String(), Why: order.Why}
	}
	return changes
}

// Read implements engine.Steps. It reads the set, then its machines.
func (p *pass) Read(ctx context.Context, live bool) error {
	set, machines := store.Reader[*machineset.Set](p.Sets), store.Reader[*machine.Machine](p.Machines)
	began := p.Now()
	if live {
		set, machines = p.Sets.Live(), p.Machines.Live()
	}
	s, err := set.Get(ctx, p.Key)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	if p.o.Set != nil && p.o.Set.UID != s.UID {
		return engine.ErrReplaced
	}
	owned, err := machines.List(ctx, index.OwnedBy(s.UID))
	if err != nil {
		return err
	}
	orphans, err := machines.List(ctx, index.Orphans(s.Namespace))
	if err != nil {
		return err
	}
	if live {
		if err := p.unchanged(ctx, set, s); err != nil {
			return err
		}
	}
	p.o.Set, p.o.Machines, p.o.Orphans, p.o.Read = s, owned, orphans, p.Freshness(began, live)
	p.o.Failures = p.Failures()
	p.o.StatusWritten = p.notes.Of(p.Key).statusWritten
	p.o.Created = p.createdFor(s)
	class := object.Key{Namespace: s.Namespace, Name: s.Spec.Template.Spec.Class.Name}
	p.o.ClassBackoff, p.o.Inputs, err = p.Creations(ctx, class, s.Status.CrashLoop != (machineset.CrashLoop{}) || anyFailed(owned))
	return err
}

func anyFailed(machines []*machine.Machine) bool {
	for _, m := range machines {
		if m.Status.Phase == machine.PhaseFailed {
			return true
		}
	}
	return false
}

// unchanged returns a conflict if the set has changed since its machines were read: they may not belong to
// the set as it is now.
func (p *pass) unchanged(ctx context.Context, sets store.Reader[*machineset.Set], before *machineset.Set) error {
	after, err := sets.Get(ctx, p.Key)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	if after.Version != before.Version {
		return fmt.Errorf("set %s changed while its machines were read: %w", p.Key, store.ErrConflict)
	}
	return nil
}

func (p *pass) write(ctx context.Context) error {
	var after *machineset.Set
	var err error
	switch w := p.plan.Write.(type) {
	case *machineset.Update:
		after, err = p.Sets.Write(ctx, &engine.Write[*machineset.Set]{Before: p.o.Set, After: w.Set})
	case *machineset.UpdateStatus:
		changed := *p.o.Set
		changed.Status = w.Status
		if after, err = p.Sets.Write(ctx, &engine.Write[*machineset.Set]{Before: p.o.Set, After: &changed, Status: true}); err == nil {
			p.o.StatusWritten = p.Now()
			p.notes.Change(p.Key, func(n *notes) { n.statusWritten = p.o.StatusWritten })
		}
	default:
		err = fmt.Errorf("unknown write %T", w)
	}
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.o.Set = after
	return engine.CheckGone(&after.Meta)
}

// Config is what sets need of the rest of a fleet.
type Config struct {
	Sets     *engine.Objects[*machineset.Set]
	Machines *engine.Objects[*machine.Machine]
	Policy   *machineset.Policy
	// Safety freezes sets that have too many machines; nil: nothing does.
	Safety *safety.Policy

	// Delay reports whether no pass may be made yet. Nil: any time.
	Delay func() (engine.Result, bool)
	// Frozen reports whether an API server does not answer, so that nothing is created.
	Frozen func() bool
	// Thaw returns when to look at a frozen set again. Unfrozen, it would be due at the time at.
	Thaw func(at time.Time) time.Time
	// Creations returns the backoff of a class (nil: no create has to wait), and the versions that machines
	// are created from. The versions are needed only if the set's machines fail.
	Creations func(ctx context.Context, class object.Key, failing bool) (*machine.ClassBackoff, machine.Inputs, error)
	// Settled is called with a set and its machines at the end of a pass; may be nil.
	Settled func(*machineset.Set, []*machine.Machine)
	// Forget is called with a set that is gone; may be nil.
	Forget func(object.Key)
}

type reconciler struct {
	Config
	notes engine.Notes[notes]
}

// notes are what a process remembers of a set. If they are lost, a reservation is settled by a write of its
// own, or a name whose machine is gone is used once more.
type notes struct {
	statusWritten time.Time
	created       created
}

// created says up to which ordinal the names of one reservation of a set are known to have become
// machines. It says nothing about any other reservation, not even about one that somebody restored.
type created struct {
	uid     string
	of      machineset.Reservation
	ordinal int64
}

// pass is one pass over one set.
type pass struct {
	*engine.Pass
	*reconciler
	o     machineset.Observation
	plan  machineset.Plan
	bound overshoot.Plan // comes before plan
}

// orders returns the plan's orders.
func (p *pass) orders() []machineset.Order {
	for _, orders := range [...][]machineset.Order{p.plan.Create, p.plan.Delete, p.plan.Adopt, p.plan.Release, p.plan.Push} {
		if len(orders) > 0 {
			return orders
		}
	}
	return nil
}

// create carries out creations in order, slowly at first.
func (p *pass) create(ctx context.Context, b *engine.Batch[*machine.Machine]) error {
	orders := p.plan.Create
	out := b.Slowly(ctx, "Create", machinesOf(orders), b.Create(p.plan.Until))
	var made []*machine.Machine
	answered := true // all orders so far have succeeded
	for i := range out {
		if answered = answered && out[i].Err == nil; answered {
			p.o.Created = orders[i].Ordinal
		}
		if out[i].Err == nil {
			made = append(made, out[i].After)
		}
	}
	p.notes.Change(p.Key, func(n *notes) { n.created = created{p.o.Set.UID, p.o.Set.Instructions.Reservation, p.o.Created} })
	p.o.Machines, p.o.Orphans = engine.Divide(p.o.Set.UID, nil, p.o.Machines, p.o.Orphans, made)
	return p.conclude(ctx, orders, out, &p.o.Refused.Create)
}

// each carries out the plan's orders at the same time, and stores the first refusal in refused.
func (p *pass) each(ctx context.Context, b *engine.Batch[*machine.Machine], name string,
	do engine.Order[*machine.Machine], refused **machine.Outcome,
) error {
	orders := p.orders()
	out := b.All(ctx, name, machinesOf(orders), do)
	p.o.Machines, p.o.Orphans = engine.Divide(p.o.Set.UID, out, p.o.Machines, p.o.Orphans)
	return p.conclude(ctx, orders, out, refused)
}

func machinesOf(orders []machineset.Order) []*machine.Machine {
	machines := make([]*machine.Machine, len(orders))
	for i, order := range orders {
		machines[i] = order.Machine
	}
	return machines
}

// conclude emits one event for a batch, that of the first order that was carried out, and stores the first
// refusal in refused.
func (p *pass) conclude(ctx context.Context, orders []machineset.Order, out []engine.Outcome[*machine.Machine],
	refused **machine.Outcome,
) error {
	typ := engine.Normal
	if len(p.plan.Release) > 0 {
		typ = engine.Warning // somebody has to see to a machine that no set counts any more
	}
	for i := range out {
		if out[i].Err == nil {
			p.Emit(ctx, typ, orders[i].Why)
			break
		}
	}
	answer, err := engine.Refused(ctx, out)
	p.Ordered(answer != nil)
	if answer != nil && *refused == nil {
		*refused = &machine.Outcome{Code: answer.Code, Message: answer.Message}
	}
	return err
}

// decideBound freezes a set without an owner that has too many machines, or thaws it. Any other
// set follows its deployment.
func (p *pass) decideBound(ctx context.Context) (bounded bool, err error) {
	p.bound = overshoot.Plan{}
	if p.Safety == nil || p.o.Set.Owner != nil {
		return false, nil
	}
	o := &overshoot.Observation{Sets: []deployment.Children{{Set: p.o.Set, Machines: p.o.Machines}}}
	p.bound, err = overshoot.Decide(o, p.Safety, p.Now())
	if p.bound.Warn != (decision.Why{}) && p.bound.Write == nil {
		p.EmitOnce(ctx, engine.Warning, p.bound.Warn)
	}
	return p.bound.Write != nil, err
}

func (p *pass) executeBound(ctx context.Context) error {
	w, ok := p.bound.Write.(*overshoot.LabelSet)
	if !ok {
		return fmt.Errorf("unknown write %T", p.bound.Write)
	}
	after, err := p.Sets.Write(ctx, &engine.Write[*machineset.Set]{Before: p.o.Set, After: w.Set})
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.o.Set = after
	if p.bound.Warn != (decision.Why{}) {
		p.EmitOnce(ctx, engine.Warning, p.bound.Warn)
	}
	bounds.Emit(ctx, p.Pass, &p.bound)
	return nil
}
