// Package deployments reconciles deployments: the kind "deployment" of package manager.
//
// A pass reads the deployment, its sets and their machines, asks deployment.Decide, and carries out the
// plan: a write of the deployment, a live read, or orders that create, resize or delete sets, or mark
// machines. overshoot.Decide comes before each decision (bound.go).
//
// EXPERIMENTAL: the names in this package may change with any release.
package deployments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/overshoot"
	"github.com/millwright-go/millwright/store"
)

// New returns a reconciler of deployments.
func New(e *engine.Engine, c Config) *engine.Reconciler {
	r := &reconciler{Config: c}
	return e.Reconciler(engine.Kind{
		Name: "deployment", Forget: r.forget,
		Begin: func(p *engine.Pass) engine.Steps { return &pass{Pass: p, reconciler: r} },
	})
}

func (r *reconciler) forget(key object.Key) {
	r.notes.Forget(key)
	if r.Forget != nil {
		r.Forget(key)
	}
}

// Decide implements engine.Steps.
func (p *pass) Decide(ctx context.Context) (engine.Step, error) {
	if bounded, err := p.decideBound(ctx); bounded || err != nil {
		return engine.Step{Verb: engine.Mutate, Why: p.bound.Why}, err
	}
	p.o.Frozen = p.Safety != nil && p.Safety.Frozen(&p.o.Deployment.Meta)
	if p.ClockFrom != nil {
		p.o.ClockFrom = p.ClockFrom()
	}
	var err error
	if p.plan, err = deployment.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Step{}, err
	}
	plan := &p.plan
	if !plan.Gathering.Equal(p.o.Gathering) {
		p.o.Gathering = plan.Gathering
		p.notes.Change(p.Key, func(n *notes) { n.gathering = plan.Gathering })
	}
	step := engine.Step{Verb: engine.Mutate, Why: plan.Why, Warn: plan.Warn, At: plan.At}
	switch {
	case plan.ReadLive:
		step.Verb = engine.Reread
	case plan.Write == nil && len(plan.Create) > 0 && p.DryRun && p.asked != plan.Create[0].Set.Name:
		step.Verb = engine.Read // finds out whether the name is taken
	case plan.Write == nil && p.orders() == nil && p.machineOrders() == nil:
		step.Verb = engine.Wait
		p.warnHeldUp(ctx)
		p.settled()
	}
	return step, nil
}

// warnHeldUp warns of machines that are held up: in the first pass of a process, when they begin to be, and
// again while they are.
func (p *pass) warnHeldUp(ctx context.Context) {
	if last := p.notes.Of(p.Key).heldUp; p.plan.HeldUp == (decision.Why{}) || p.Now().Sub(last) < deployment.HeldUpEvery {
		return
	}
	p.notes.Change(p.Key, func(n *notes) { n.heldUp = p.Now() })
	p.Emit(ctx, engine.Warning, p.plan.HeldUp)
}

// settled is called at the end of a pass.
func (p *pass) settled() {
	if p.ClearFailures() {
		p.notes.Change(p.Key, func(n *notes) { n.refusal = nil })
	}
	if p.Settled != nil {
		p.Settled(p.o.Deployment, p.o.Sets)
	}
}

// orders returns the plan's orders to sets.
func (p *pass) orders() []deployment.Order {
	plan := &p.plan
	for _, orders := range [...][]deployment.Order{
		plan.Create, plan.Delete, plan.Scale, plan.Push, plan.Adopt, plan.Release, plan.Handover,
	} {
		if len(orders) > 0 {
			return orders
		}
	}
	return nil
}

// machineOrders returns the plan's orders to machines.
func (p *pass) machineOrders() []deployment.MachineOrder {
	if len(p.plan.Mark) > 0 {
		return p.plan.Mark
	}
	if len(p.plan.Move) > 0 {
		return p.plan.Move
	}
	return nil
}

// Execute implements engine.Steps.
func (p *pass) Execute(ctx context.Context) error {
	plan := &p.plan
	b := p.setsBatch()
	b.Until = plan.Until
	switch {
	case p.bound.Write != nil:
		return p.executeBound(ctx)
	case plan.Write != nil:
		return p.write(ctx)
	case len(plan.Create) > 0 && p.DryRun:
		return p.ask(ctx, plan.Create[0].Set)
	case len(plan.Create) > 0:
		return p.each(ctx, b, "Create", plan.Create, p.create)
	case len(plan.Delete) > 0:
		return p.each(ctx, b, "Delete", plan.Delete, p.remove(b))
	case len(plan.Scale) > 0:
		return p.each(ctx, b, "Scale", plan.Scale, p.changeSets(b))
	case len(plan.Push) > 0:
		return p.each(ctx, b, "Push", plan.Push, p.changeSets(b))
	case len(plan.Adopt) > 0:
		return p.each(ctx, b, "Adopt", plan.Adopt, p.changeSets(b))
	case len(plan.Release) > 0:
		return p.each(ctx, b, "Release", plan.Release, p.changeSets(b))
	case len(plan.Handover) > 0:
		return p.each(ctx, b, "Handover", plan.Handover, p.changeSets(b))
	case len(plan.Mark) > 0:
		return p.eachMachine(ctx, "Mark", plan.Mark)
	default:
		return p.eachMachine(ctx, "Move", plan.Move)
	}
}

// Changes implements engine.Steps. It lists only the first order to a set: the others follow if it succeeds.
func (p *pass) Changes() []engine.Change {
	if p.bound.Write != nil {
		return []engine.Change{p.boundChange()}
	}
	what := "update deployment " + p.Key.String()
	if p.plan.Write != nil {
		if _, status := p.plan.Write.(*deployment.UpdateStatus); status {
			what = "update status of deployment " + p.Key.String()
		}
		return []engine.Change{{What: what}}
	}
	if orders := p.orders(); orders != nil {
		verb := "update"
		switch {
		case len(p.plan.Create) > 0:
			verb = "create"
		case len(p.plan.Delete) > 0:
			verb = "delete"
		}
		return []engine.Change{{What: verb + " set " + orders[0].Set.Key.String()}}
	}
	var changes []engine.Change
	for _, order := range p.machineOrders() {
		changes = append(changes, engine.Change{What: "update machine " + order.Machine.Key.String(), Why: order.Why})
	}
	return changes
}

// each carries out orders of one kind, first to last.
func (p *pass) each(ctx context.Context, b *engine.Batch[*machineset.Set], name string, orders []deployment.Order,
	do engine.Order[*machineset.Set],
) error {
	sets := make([]*machineset.Set, len(orders))
	for i, order := range orders {
		sets[i] = order.Set
	}
	out := b.InOrder(ctx, name, sets, do)
	p.Ordered(false)
	for i := range out {
		if out[i].Err == nil && p.o.Taken == nil {
			typ := engine.Normal
			if len(p.plan.Release) > 0 && orders[i].Why.Count > 0 {
				typ = engine.Warning // somebody has to see to machines that no deployment counts any more
			}
			p.Emit(ctx, typ, orders[i].Why)
		}
	}
	if err := p.settle(ctx, out); err != nil {
		return err
	}
	answer, err := engine.Refused(ctx, out)
	p.refuse(answer)
	return err
}

// settle observes sets as they were written, and reads the machines of sets that
// the deployment owns now.
func (p *pass) settle(ctx context.Context, out []engine.Outcome[*machineset.Set]) error {
	machines := make(map[string][]*machine.Machine, len(p.o.Sets)) // by the UID of their set
	sets := make([]*machineset.Set, 0, len(p.o.Sets)+1)
	for _, child := range p.o.Sets {
		machines[child.Set.UID] = child.Machines
		sets = append(sets, child.Set)
	}
	var created []*machineset.Set
	for _, o := range out {
		if o.Err == nil && o.Before.UID == "" && o.After != nil {
			created = append(created, o.After)
		}
	}
	owned, orphans := engine.Divide(p.o.Deployment.UID, out, sets, p.o.Orphans, created)
	children := make([]deployment.Children, len(owned))
	for i, set := range owned {
		theirs, known := machines[set.UID]
		if !known {
			var err error
			theirs, err = p.Machines.Live().List(ctx, index.OwnedBy(set.UID))
			if err != nil {
				return err
			}
		}
		children[i] = deployment.Children{Set: set, Machines: theirs}
	}
	p.o.Sets, p.o.Orphans = children, orphans
	return nil
}

// create creates a set, or finds out who holds its name.
func (p *pass) create(ctx context.Context, set *machineset.Set) (*machineset.Set, error) {
	made, err := p.Sets.Create(ctx, set)
	if !errors.Is(err, store.ErrAlreadyExists) {
		return made, err
	}
	holder, err := p.Sets.Live().Get(ctx, set.Key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	p.o.Taken = &deployment.Taken{Name: set.Name, Set: holder}
	return nil, nil //nolint:nilnil // nothing was made, and nothing went wrong
}

// ask finds out, in a dry run, whether the name of a set that would be created is taken.
func (p *pass) ask(ctx context.Context, set *machineset.Set) error {
	p.asked = set.Name
	holder, err := p.Sets.Live().Get(ctx, set.Key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil {
		p.o.Taken = &deployment.Taken{Name: set.Name, Set: holder}
	}
	return err
}

// remove asks for a set's deletion and reads what is left of it.
func (p *pass) remove(b *engine.Batch[*machineset.Set]) engine.Order[*machineset.Set] {
	return func(ctx context.Context, set *machineset.Set) (*machineset.Set, error) {
		left, err := b.Delete(ctx, set)
		if err != nil || left == nil {
			return nil, err
		}
		left, err = p.Sets.Live().Get(ctx, set.Key)
		if errors.Is(err, store.ErrNotFound) || err == nil && left.UID != set.UID {
			return nil, nil //nolint:nilnil // it is gone
		}
		return left, err
	}
}

// Read implements engine.Steps. It reads the deployment, then its sets, then their machines. It keeps Taken,
// because a name is not tried again in the same pass.
func (p *pass) Read(ctx context.Context, live bool) error {
	read := struct {
		deployments store.Reader[*deployment.Deployment]
		sets        store.Reader[*machineset.Set]
		machines    store.Reader[*machine.Machine]
	}{p.Deployments, p.Sets, p.Machines}
	began := p.Now()
	if live {
		read.deployments, read.sets, read.machines = p.Deployments.Live(), p.Sets.Live(), p.Machines.Live()
	}
	d, err := read.deployments.Get(ctx, p.Key)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	if p.o.Deployment != nil && p.o.Deployment.UID != d.UID {
		return engine.ErrReplaced
	}
	owned, err := read.sets.List(ctx, index.OwnedBy(d.UID))
	if err != nil {
		return err
	}
	orphans, err := read.sets.List(ctx, index.Orphans(d.Namespace))
	if err != nil {
		return err
	}
	children, err := WithMachines(ctx, owned, read.machines)
	if err != nil {
		return err
	}
	p.o.Deployment, p.o.Sets, p.o.Orphans = d, children, orphans
	if p.o.HotUpdate, err = p.hotUpdate(ctx, d, owned, live); err != nil {
		return err
	}
	if err := p.lookAtClass(ctx, d); err != nil {
		return err
	}
	p.o.Read = p.Freshness(began, live)
	p.o.Failures = p.Failures()
	known := p.notes.Of(p.Key)
	p.o.StatusWritten, p.o.Gathering = known.statusWritten, known.gathering
	if known.generation == d.Generation {
		p.o.Refused = known.refusal
	}
	return nil
}

// WithMachines reads the machines of sets.
func WithMachines(ctx context.Context, owned []*machineset.Set, machines store.Reader[*machine.Machine]) ([]deployment.Children, error) {
	children := make([]deployment.Children, len(owned))
	for i, set := range owned {
		theirs, err := machines.List(ctx, index.OwnedBy(set.UID))
		if err != nil {
			return nil, err
		}
		children[i] = deployment.Children{Set: set, Machines: theirs}
	}
	return children, nil
}

func (p *pass) write(ctx context.Context) error {
	var after *deployment.Deployment
	var err error
	switch w := p.plan.Write.(type) {
	case *deployment.Update:
		if after, err = p.Deployments.Write(ctx, &engine.Write[*deployment.Deployment]{Before: p.o.Deployment, After: w.Deployment}); err == nil && w.Event != "" {
			p.Emit(ctx, engine.EventType(w.Event), p.plan.Why)
		}
	case *deployment.UpdateStatus:
		changed := *p.o.Deployment
		changed.Status = w.Status
		if after, err = p.Deployments.Write(ctx, &engine.Write[*deployment.Deployment]{Before: p.o.Deployment, After: &changed, Status: true}); err == nil {
			p.o.StatusWritten = p.Now()
			p.notes.Change(p.Key, func(n *notes) { n.statusWritten = p.o.StatusWritten })
			if w.Event != "" {
				p.Emit(ctx, engine.EventType(w.Event), p.plan.Why)
			}
		}
	default:
		err = fmt.Errorf("unknown write %T", w)
	}
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.o.Deployment = after
	return engine.CheckGone(&after.Meta)
}

// Config is what deployments need of the rest of a fleet.
type Config struct {
	Deployments *engine.Objects[*deployment.Deployment]
	Sets        *engine.Objects[*machineset.Set]
	Machines    *engine.Objects[*machine.Machine]
	Classes     *engine.Objects[*machine.Class]
	Secrets     secrets.Secrets
	Joins       bool // machines join a cluster
	Policy      *deployment.Policy
	// Safety freezes deployments that have too many machines; nil: nothing does.
	Safety *safety.Policy

	// ClockFrom returns deployment.Observation.ClockFrom; nil: always zero.
	ClockFrom func() time.Time

	// Split splits the spec of a class into what can be updated in place and what can't. Nil: VMs are
	// not updated.
	Split func(*machine.Class) *machine.VMSpec
	// MigratesClasses says that a class of another kind is not ours, even if one of ours has its name.
	MigratesClasses bool

	// Settled is called with a deployment and its sets at the end of a pass; may be nil.
	Settled func(*deployment.Deployment, []deployment.Children)
	// Forget is called with a deployment that is gone; may be nil.
	Forget func(object.Key)
}

type reconciler struct {
	Config
	notes engine.Notes[notes]
}

// notes are what a process remembers of a deployment. Losing them shortens a wait.
type notes struct {
	refusal    *deployment.Refusal // of an order
	generation int64               // of the deployment, when the order was refused

	statusWritten time.Time
	gathering     time.Time // since when orders wait for others
	heldUp        time.Time // when the last warning of machines that are held up was emitted
}

// pass is one pass over one deployment.
type pass struct {
	*engine.Pass
	*reconciler
	o     deployment.Observation
	plan  deployment.Plan
	bound overshoot.Plan // comes before plan
	asked string         // in a dry run, the name of the set that ask has looked for
}

// refuse remembers a refusal, unless it is nil.
func (p *pass) refuse(refusal *engine.Refusal) {
	if refusal == nil {
		return
	}
	answer := &machine.Outcome{Code: refusal.Code, Message: refusal.Message}
	wait := p.Policy.Retry.Backoff(p.o.Failures, 0)
	p.notes.Change(p.Key, func(n *notes) {
		n.refusal = &deployment.Refusal{Outcome: *answer, Until: p.Now().Add(wait)}
		n.generation = p.o.Deployment.Generation
	})
	p.Ordered(true)
	p.o.Failed = answer
}

// setsBatch returns a batch that carries out orders to sets.
func (p *pass) setsBatch() *engine.Batch[*machineset.Set] {
	return &engine.Batch[*machineset.Set]{Pass: p.Pass, Objects: p.Sets}
}

// changeSets returns the order to change a set that was read.
func (p *pass) changeSets(b *engine.Batch[*machineset.Set]) engine.Order[*machineset.Set] {
	return b.Change(setsOf(p.o.Sets), p.o.Orphans)
}

func setsOf(children []deployment.Children) []*machineset.Set {
	sets := make([]*machineset.Set, len(children))
	for i := range children {
		sets[i] = children[i].Set
	}
	return sets
}
