package manager

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
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// reachability asks the API servers whether they answer, and keeps what the
// other passes are frozen by.
type reachability struct {
	*shell
	memo       memo
	toldFrozen map[string]bool // because of which server, as it was told
}

func newReachability(s *shell) *reachability {
	return &reachability{shell: s, toldFrozen: make(map[string]bool)}
}

// Kind implements Reconciler.
func (r *reachability) Kind() Kind { return KindReachability }

// Reconcile implements Reconciler.
func (r *reachability) Reconcile(ctx context.Context, key object.Key) (result Result, err error) {
	defer r.reach.begin() // however it ends: all others wait for it
	asked := false
	defer func() {
		if !asked && ctx.Err() == nil {
			r.unanswered()
		}
	}()
	result, err = r.reconcile(ctx, KindReachability, key, &r.memo, func(*engine.Pass) pass { return &reachPass{reachability: r, key: key} })
	asked = err == nil
	return result, err
}

// unanswered takes a pass that panicked or failed while nothing was frozen for a check that no API
// server answered: if that goes on for DownTimeout, everything is frozen. What is frozen stays so,
// and is looked at again with the next check.
func (r *reachability) unanswered() {
	known := r.reach.get()
	if !known.Stage.Frozen() {
		none := machine.Outcome{Code: codes.Unavailable, Message: "the check did not end"}
		o := safety.ReachObservation{Reach: known, NoTarget: r.Cluster == nil, Control: &none, Target: &none}
		known = safety.Reach{} // frozen, should the decision be what panics
		engine.Catch(func() {
			if plan, err := safety.DecideReachability(&o, r.SafetyPolicy, r.Now()); err == nil {
				known = plan.Reach
			}
		})
	}
	r.reach.set(known, r.Now().Add(r.SafetyPolicy.CheckPeriod))
}

// reachPass is one pass over the API servers.
type reachPass struct {
	*reachability
	key object.Key
	o   safety.ReachObservation
}

func (p *reachPass) observe(context.Context, bool) error {
	p.o = safety.ReachObservation{Reach: p.reach.get(), NoTarget: p.Cluster == nil}
	return nil
}

func (p *reachPass) step(ctx context.Context) (Result, bool, error) {
	plan, err := safety.DecideReachability(&p.o, p.SafetyPolicy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	before := p.o.Reach.Stage
	p.reach.set(plan.Reach, plan.At)
	p.o.Reach = plan.Reach
	p.announce(ctx, before, &plan)
	p.tellFrozen("control", &plan.Reach.Control, plan.Reach.Stage)
	if p.Cluster != nil {
		p.tellFrozen("target", &plan.Reach.Target, plan.Reach.Stage)
	}
	because(ctx, p.shell, plan.Why)
	switch {
	case plan.Check:
		err = p.check(ctx)
	case plan.ReadMachines:
		err = p.readMachines(ctx)
	case len(plan.Restart) > 0:
		err = p.restart(ctx, plan.Restart)
	default:
		return p.look(plan.At, plan.Why), true, nil
	}
	return Result{}, false, err
}

// put implements putter: clocks that nobody restarts keep everything frozen
// until they are no one's any more, which is looked at with each check.
func (p *reachPass) put() time.Time {
	at := p.Now().Add(p.SafetyPolicy.CheckPeriod)
	p.reach.set(p.o.Reach, at)
	return at
}

// tellFrozen tells the hook whether everything is frozen because of one server: since it does
// not answer, and from then on until everything is thawed.
func (p *reachPass) tellFrozen(server string, side *safety.Side, stage safety.ReachStage) {
	was, told := p.toldFrozen[server]
	is := stage.Frozen() && (!side.Up || was)
	if told && is == was {
		return
	}
	p.toldFrozen[server] = is
	if p.Hooks.Frozen != nil {
		p.Hooks.Frozen(server, is)
	}
}

// announce tells of an outage, and of its end.
func (p *reachPass) announce(ctx context.Context, before safety.ReachStage, plan *safety.ReachPlan) {
	if plan.Warn != (decision.Why{}) {
		p.tell(ctx, &p.memo, KindReachability, p.key, Warning, plan.Warn)
	}
	if plan.Reach.Stage == safety.ReachOpen && before != safety.ReachOpen {
		p.memo.forget(p.key)
		if !plan.Reach.From.IsZero() {
			p.tell(ctx, nil, KindReachability, p.key, Normal, plan.Why)
		}
	}
}

// check reads a name that need not exist on both API servers.
func (p *reachPass) check(ctx context.Context) error {
	namespace, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	p.o.Control, err = p.ask(ctx, "CheckControl", func(ctx context.Context) error {
		_, err := p.Machines.Live().Get(ctx, object.Key{Namespace: namespace, Name: Fleet.Name})
		return err
	})
	if err != nil || p.Cluster == nil {
		return err
	}
	p.o.Target, err = p.ask(ctx, "CheckTarget", func(ctx context.Context) error {
		_, err := p.Cluster.Nodes().Live().Get(ctx, object.Key{Name: Fleet.Name})
		return err
	})
	return err
}

// namespace is one in which machines may be read: the fleet's, or that of a class.
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

// ask makes a read and says how it was answered. The end of the manager's own
// context is no answer.
func (p *reachPass) ask(ctx context.Context, name string, read func(context.Context) error) (*machine.Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, p.SafetyPolicy.CheckDown)
	defer cancel()
	answer := &machine.Outcome{}
	err := p.timed(KindReachability, p.key, name, func() error {
		err := read(limited)
		if errors.Is(err, store.ErrNotFound) { // an answer as good as any, and no failure of the call
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

// failure is the code of an error that is none of a driver's.
func failure(err error) codes.Code {
	if code := codes.Of(err); code != codes.OK && code != codes.NotFound && code != codes.Unknown {
		return code
	}
	return codes.Unavailable
}

func (p *reachPass) readMachines(ctx context.Context) error {
	return p.timed(KindReachability, p.key, "ReadMachines", func() error {
		machines, err := p.Machines.Live().List(ctx, store.Query{})
		p.o.Machines = append([]*machine.Machine{}, machines...)
		return err
	})
}

// restart restarts clocks. What is stored takes the place of the machines
// observed.
func (p *reachPass) restart(ctx context.Context, orders []safety.RestartClock) error {
	after := make([]*machine.Machine, len(orders))
	failed := make([]error, len(orders))
	p.Each(ctx, len(orders), func(i int) {
		failed[i] = p.timed(KindReachability, p.key, "RestartClock", func() (err error) {
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
// meanwhile: then it is read again. Nil: it is gone.
func (p *reachPass) restartOne(ctx context.Context, order *safety.RestartClock) (*machine.Machine, error) {
	if order.Move != (machine.Move{}) {
		if err := p.moves.Fire(ctx, order.Move); err != nil {
			return nil, err
		}
	}
	changed := *order.Machine // the store takes its own copy
	changed.Status = order.Status
	after, err := p.Machines.UpdateStatus(ctx, &changed)
	switch {
	case errors.Is(err, store.ErrConflict):
		after, err = p.Machines.Live().Get(ctx, order.Machine.Key)
	case err == nil:
		p.restarted(ctx, order)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // it is gone
	}
	if err != nil {
		return nil, fmt.Errorf("restart the clock of machine %s: %w", order.Machine.Key, err)
	}
	return after, nil
}

func (p *reachPass) restarted(ctx context.Context, order *safety.RestartClock) {
	if order.Move != (machine.Move{}) {
		p.Hooks.transition(order.Machine.Key, order.Move, order.Why)
	}
	p.tell(ctx, nil, KindMachine, order.Machine.Key, Normal, order.Why)
}
