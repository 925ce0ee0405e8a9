package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/store"
)

// ReachabilityReconciler checks whether the API servers answer, and notes the result in Reach, which
// freezes the other passes.
type ReachabilityReconciler struct {
	*engine.Reconciler
	Config
	reportedFrozen map[string]bool // what Config.Frozen was called with last, by server
}

// NewReachability returns a reconciler that checks whether the API servers answer.
func NewReachability(e *engine.Engine, c Config) *ReachabilityReconciler {
	r := &ReachabilityReconciler{Config: c, reportedFrozen: make(map[string]bool)}
	r.Reconciler = e.Reconciler(engine.Kind{
		Name:  "reachability",
		Begin: func(p *engine.Pass) engine.Steps { return &reachPass{Pass: p, r: r, Config: &r.Config} },
	})
	return r
}

// Reconcile makes a pass. The kinds with Reach.Delay wait until the first has ended, however it ends.
func (r *ReachabilityReconciler) Reconcile(ctx context.Context, key object.Key) (result engine.Result, err error) {
	defer r.Reach.begin()
	err = engine.ErrPanicked // unless the pass returns
	defer func() {
		if err != nil && ctx.Err() == nil {
			engine.Catch(r.unanswered)
		}
	}()
	return r.Reconciler.Reconcile(ctx, key)
}

// unanswered is called when a pass panicked or failed. Unless everything is frozen already, it counts
// the pass as a check that no API server answered: if that lasts for DownTimeout, everything is frozen.
func (r *ReachabilityReconciler) unanswered() {
	known := r.Reach.get()
	if !known.Stage.Frozen() {
		none := machine.Outcome{Code: codes.Unavailable, Message: "the check did not end"}
		o := reachability.Observation{State: known, NoTarget: r.Nodes == nil, Control: &none, Target: &none}
		known = reachability.State{} // frozen, in case the decision panics
		engine.Catch(func() {
			if plan, err := reachability.Decide(&o, r.Policy, r.Now()); err == nil {
				known = plan.State
			}
		})
	}
	r.Reach.set(known, r.Now().Add(r.Policy.CheckPeriod))
}

// reachPass is one pass over the API servers.
type reachPass struct {
	*engine.Pass
	*Config
	r    *ReachabilityReconciler
	o    reachability.Observation
	plan reachability.Plan
}

// Read implements engine.Steps. The state is in memory.
func (p *reachPass) Read(context.Context, bool) error {
	p.o = reachability.Observation{State: p.Reach.get(), NoTarget: p.Nodes == nil}
	return nil
}

// Decide implements engine.Steps.
func (p *reachPass) Decide(ctx context.Context) (engine.Step, error) {
	var err error
	if p.plan, err = reachability.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Step{}, err
	}
	plan := &p.plan
	before := p.o.State.Stage
	p.Reach.set(plan.State, plan.At)
	p.o.State = plan.State
	p.announce(ctx, before)
	p.reportFrozen("control", &plan.State.Control, plan.State.Stage)
	if p.Nodes != nil {
		p.reportFrozen("target", &plan.State.Target, plan.State.Stage)
	}
	step := engine.Step{Why: plan.Why, At: plan.At}
	switch {
	case plan.Check, plan.ReadMachines:
		step.Verb = engine.Read
	case len(plan.Restart) > 0:
		step.Verb, step.Live = engine.Mutate, true
		if p.DryRun {
			return step, p.checkRestarts(ctx)
		}
	}
	return step, nil
}

// Execute implements engine.Steps.
func (p *reachPass) Execute(ctx context.Context) error {
	switch {
	case p.plan.Check:
		return p.check(ctx)
	case p.plan.ReadMachines:
		return p.readMachines(ctx)
	}
	return p.restart(ctx, p.plan.Restart)
}

// Changes implements engine.Steps.
func (p *reachPass) Changes() []engine.Change {
	changes := make([]engine.Change, len(p.plan.Restart))
	for i := range p.plan.Restart {
		changes[i].What = "update status of machine " + p.plan.Restart[i].Machine.Key.String()
	}
	return changes
}

// Skipped implements engine.Skipper: clocks that are not restarted keep everything frozen
// until their machines are gone, which each check looks at.
func (p *reachPass) Skipped() time.Time {
	at := p.Now().Add(p.Policy.CheckPeriod)
	p.Reach.set(p.o.State, at)
	return at
}

// announce emits events about an outage, and about its end.
func (p *reachPass) announce(ctx context.Context, before reachability.Stage) {
	plan := &p.plan
	if plan.Warn != (decision.Why{}) {
		p.EmitOnce(ctx, engine.Warning, plan.Warn)
	}
	if plan.State.Stage == reachability.Open && before != reachability.Open {
		p.Forget()
		if !plan.State.From.IsZero() {
			p.Emit(ctx, engine.Normal, plan.Why)
		}
	}
}

// reportFrozen calls Config.Frozen with whether everything is frozen because of one server: it does
// not answer, or did not, and everything is still frozen.
func (p *reachPass) reportFrozen(server string, side *reachability.Side, stage reachability.Stage) {
	was, reported := p.r.reportedFrozen[server]
	is := stage.Frozen() && (!side.Up || was)
	if reported && is == was {
		return
	}
	p.r.reportedFrozen[server] = is
	if p.Frozen != nil {
		p.Frozen(server, is)
	}
}

// check asks both API servers for an object, which need not exist.
func (p *reachPass) check(ctx context.Context) error {
	namespace, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	p.o.Control, err = p.ask(ctx, "CheckControl", func(ctx context.Context) error {
		_, err := p.Machines.Live().Get(ctx, object.Key{Namespace: namespace, Name: p.Key.Name})
		return err
	})
	if err != nil || p.Nodes == nil {
		return err
	}
	p.o.Target, err = p.ask(ctx, "CheckTarget", func(ctx context.Context) error {
		_, err := p.Nodes.Live().Get(ctx, object.Key{Name: p.Key.Name})
		return err
	})
	return err
}

// namespace returns a namespace in which machines may be read: the fleet's, or that of a class.
func (p *reachPass) namespace(ctx context.Context) (string, error) {
	if p.Namespace != "" {
		return p.Namespace, nil
	}
	classes, err := p.Classes.List(ctx, store.Query{})
	if err != nil || len(classes) == 0 {
		return "default", err
	}
	first := slices.MinFunc(classes, func(a, b *machine.Class) int { return strings.Compare(a.Namespace, b.Namespace) })
	return first.Namespace, nil
}

// ask makes a read and returns how it was answered. The end of the manager's own
// context is no answer, but an error.
func (p *reachPass) ask(ctx context.Context, name string, read func(context.Context) error) (*machine.Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, p.Policy.CheckDown)
	defer cancel()
	answer := &machine.Outcome{}
	err := p.Timed(name, func() error {
		err := read(limited)
		if errors.Is(err, store.ErrNotFound) { // the server answered: the call has not failed
			answer.Code, err = codes.NotFound, nil
		}
		return err
	})
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return &machine.Outcome{Code: failure(err), Message: codes.Message(err)}, nil
}

// failure returns the code of an API server's error. One that says nothing is UNAVAILABLE.
func failure(err error) codes.Code {
	if code := codes.Of(err); code != codes.OK && code != codes.NotFound && code != codes.Unknown {
		return code
	}
	return codes.Unavailable
}

func (p *reachPass) readMachines(ctx context.Context) error {
	return p.Timed("ReadMachines", func() error {
		machines, err := p.Machines.Live().List(ctx, store.Query{})
		p.o.Machines = append([]*machine.Machine{}, machines...)
		return err
	})
}

// restart restarts clocks, and observes the machines as they were stored.
func (p *reachPass) restart(ctx context.Context, orders []reachability.RestartClock) error {
	after := make([]*machine.Machine, len(orders))
	failed := make([]error, len(orders))
	p.Each(ctx, len(orders), func(i int) {
		failed[i] = p.Timed("RestartClock", func() (err error) {
			after[i], err = p.restartOne(ctx, &orders[i])
			return err
		})
	})
	if err := errors.Join(failed...); err != nil {
		return err
	}
	written := make(map[object.Key]*machine.Machine, len(orders))
	for i := range orders {
		written[orders[i].Machine.Key] = after[i]
	}
	left := p.o.Machines[:0]
	for _, m := range p.o.Machines {
		now, changed := written[m.Key]
		if !changed {
			now = m
		}
		if now != nil {
			left = append(left, now)
		}
	}
	p.o.Machines = left
	return nil
}

// restartOne restarts one clock, unless somebody else has written the machine
// meanwhile: then it reads the machine again. Nil: the machine is gone.
func (p *reachPass) restartOne(ctx context.Context, order *reachability.RestartClock) (*machine.Machine, error) {
	after, err := p.Machines.Write(ctx, restarted(order))
	switch {
	case errors.Is(err, store.ErrConflict):
		after, err = p.Machines.Live().Get(ctx, order.Machine.Key)
	case err == nil:
		p.Engine.Emit(ctx, nil, p.MachineKind, order.Machine.Key, engine.Normal, order.Why)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // the machine is gone
	}
	if err != nil {
		return nil, fmt.Errorf("restart the clock of machine %s: %w", order.Machine.Key, err)
	}
	return after, nil
}

// restarted returns the write that restarts a clock.
func restarted(order *reachability.RestartClock) *engine.Write[*machine.Machine] {
	changed := *order.Machine // the store takes its own copy
	changed.Status = order.Status
	return &engine.Write[*machine.Machine]{
		Before: order.Machine, After: &changed, Status: true, Moves: []machine.Move{order.Move}, Why: order.Why,
	}
}

// checkRestarts finds, in a dry run, moves that a write would refuse.
func (p *reachPass) checkRestarts(ctx context.Context) error {
	for i := range p.plan.Restart {
		if err := p.Machines.Check(ctx, restarted(&p.plan.Restart[i])); err != nil {
			return err
		}
	}
	return nil
}
