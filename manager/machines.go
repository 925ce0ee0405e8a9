package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// machines reconciles machines.
type machines struct {
	*shell
	secrets secrets.Secrets
	memo    memo
	// uninitialized holds the names of providers known to have no InitializeMachine.
	uninitialized sync.Map
	turns         turns
}

func newMachineReconciler(s *shell) *machines {
	return &machines{shell: s, secrets: s.secretsOfClasses()}
}

// Kind implements Reconciler.
func (r *machines) Kind() Kind { return KindMachine }

// Reconcile implements Reconciler.
func (r *machines) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	defer r.pace.leave(key)
	return r.reconcile(ctx, KindMachine, key, &r.memo, func(*engine.Pass) pass { return &machinePass{machines: r, key: key} })
}

// machinePass is one pass over one machine.
type machinePass struct {
	*machines
	key    object.Key
	o      machine.Observation
	issued []machine.Effect
	token  Token // of the machine, once this pass has made sure of it

	scratch *machine.Machine // what is handed to the store; nil: nothing was yet
}

func (p *machinePass) step(ctx context.Context) (Result, bool, error) {
	if p.o.Frozen, p.o.Hold = p.reach.Frozen(), p.hold(); !p.o.Frozen {
		p.o.WatchedSince = p.watched.since(p.Now())
	}
	plan, err := machine.Decide(&p.o, p.MachinePolicy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	if plan.Warn != (decision.Why{}) {
		p.event(ctx, Warning, plan.Warn)
	}
	because(ctx, p.shell, plan.Why)
	switch {
	case plan.Write != nil:
		return Result{}, false, p.write(ctx, &plan)
	case plan.Effect != nil:
		return Result{}, false, p.carryOut(ctx, plan.Effect)
	}
	return p.lookFor(p.o.Frozen, plan.At, plan.Why), true, nil
}

// observe makes the reads that come before the first decision. They are cached
// ones unless fresh.
func (p *machinePass) observe(ctx context.Context, fresh bool) error {
	reader := store.Reader[*machine.Machine](p.Machines)
	if fresh {
		reader = p.Machines.Live()
	}
	m, err := reader.Get(ctx, p.key)
	if err != nil {
		return engine.Itself(err)
	}
	p.o = machine.Observation{
		Machine: m, NoCluster: p.Cluster == nil, NoDrain: p.Drainer == nil,
		Budgeted: p.SafetyPolicy != nil, Failures: p.memo.Failures(p.key),
	}
	if p.o.Class, err = p.class(ctx, m); err != nil {
		return err
	}
	if p.o.Class != nil {
		_, p.o.NoInitialize = p.uninitialized.Load(p.o.Class.Provider)
	}
	p.o.VMSpec = p.specs.of(p.o.Class)
	if p.o.Secret, err = p.secrets.Version(ctx, p.o.Class); err != nil {
		return err
	}
	if p.o.Token, err = p.tokenUse(ctx); err != nil {
		return err
	}
	p.o.Missing = p.missing.of(m)
	if p.Cluster != nil && m.Spec.NodeName != "" && !fresh {
		if p.o.Node, err = p.findNode(ctx, p.Cluster.Nodes(), m.Spec.NodeName); err == nil {
			p.o.Node.Cached = true
		}
	}
	return err
}

// class is the machine's class; nil: there is none.
func (p *machinePass) class(ctx context.Context, m *machine.Machine) (*machine.Class, error) {
	if m.Spec.Class.Name == "" {
		return nil, nil //nolint:nilnil // the decision says what is wrong
	}
	if p.ForeignClasses != nil && m.Spec.Class.Foreign() {
		return nil, nil //nolint:nilnil // one of ours by that name need not be complete yet
	}
	class, err := p.Classes.Get(ctx, classKey(m))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // the decision waits for it
	}
	return class, err
}

// write carries out the plan's write. The object that comes back takes the
// machine's place in the observation.
func (p *machinePass) write(ctx context.Context, plan *machine.Plan) error {
	if err := p.check(ctx, plan.Moves[:]); err != nil {
		return err
	}
	before := p.o.Machine
	after, err := p.put(ctx, plan.Write)
	if err != nil {
		return engine.Itself(err)
	}
	p.o.Machine, p.o.Fenced = after, true
	p.tellSpans(plan, before)
	p.report(ctx, plan, before)
	return engine.Gone(&after.Meta)
}

func (p *machinePass) put(ctx context.Context, w machine.Write) (*machine.Machine, error) {
	switch w := w.(type) {
	case *machine.Update:
		return p.Machines.Update(ctx, w.Machine)
	case *machine.UpdateStatus:
		if p.scratch == nil {
			p.scratch = new(machine.Machine)
		}
		*p.scratch = *p.o.Machine // the store takes its own copy
		p.scratch.Status = w.Status
		return p.Machines.UpdateStatus(ctx, p.scratch)
	case *machine.Delete:
		if err := p.Machines.Delete(ctx, p.key, p.o.Machine.UID); err != nil {
			return nil, err
		}
		return p.Machines.Live().Get(ctx, p.key)
	}
	return nil, fmt.Errorf("unknown write %T", w)
}

// report tells hooks and log of a write that is stored.
func (p *machinePass) report(ctx context.Context, plan *machine.Plan, before *machine.Machine) {
	moved := false
	for _, move := range plan.Moves {
		if move != (machine.Move{}) {
			moved = true
			p.Hooks.transition(p.key, move, plan.Why)
		}
	}
	status, ok := plan.Write.(*machine.UpdateStatus)
	if !ok {
		if moved {
			p.event(ctx, Normal, plan.Why)
		}
		return
	}
	op := &status.Status.LastOperation
	switch {
	case op.State == machine.StateFailed && *op != before.Status.LastOperation:
		p.o.Failures = p.memo.failed(p.key, op.Kind, op.Stage)
		p.event(ctx, Warning, plan.Why)
	case op.State == machine.StateSuccessful && (moved || op.Kind == machine.OperationUpdate && *op != before.Status.LastOperation):
		p.memo.forget(p.key)
		p.tell(ctx, nil, KindMachine, p.key, Normal, plan.Why)
	case moved || !status.Status.Preservation.Since.Equal(before.Status.Preservation.Since):
		p.event(ctx, Normal, plan.Why)
	}
}

func (p *machinePass) event(ctx context.Context, typ EventType, why decision.Why) {
	p.tell(ctx, &p.memo, KindMachine, p.key, typ, why)
}

// once refuses an effect that this pass has issued already: the decision would
// be going in circles.
func (p *machinePass) once(e machine.Effect) error {
	for _, before := range p.issued {
		if sameEffect(before, e) {
			return fmt.Errorf("effect %T was decided twice in one pass", e)
		}
	}
	p.issued = append(p.issued, e)
	return nil
}

// sameEffect reports whether two effects of a pass do the same. Marks differ by what
// they say: a node may be said to be drained, and then to be ready.
func sameEffect(a, b machine.Effect) bool {
	typ := reflect.TypeOf(a)
	if reflect.TypeOf(b) != typ {
		return false
	}
	if mark, ok := a.(*machine.MarkNode); ok {
		c, d := &mark.Condition, &b.(*machine.MarkNode).Condition
		return c.Type == d.Type && c.Reason == d.Reason
	}
	return typ.Kind() == reflect.Pointer || a == b
}

// logAttrs names a machine in a log line.
func logAttrs(m *machine.Machine) slog.Attr {
	return slog.Group("machine", slog.String("name", m.Key.String()), slog.String("node", m.Spec.NodeName),
		slog.String("providerID", m.Spec.ProviderID), slog.String("stage", string(m.Status.LastOperation.Stage)))
}
