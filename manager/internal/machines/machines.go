// Package machines reconciles machines: the kind "machine" of package manager.
//
// A pass reads the machine, its class, its node and the versions of its secrets, asks machine.Decide,
// and carries out the plan: a write of the machine, or a call to the driver, the cluster, the drainer or
// the maker of tokens (effects.go). Within its pass, a machine asks for permits: replacement.Decide before it
// is marked failed for its health (budget.go), safety/backoff before a create of a class that the provider
// refuses (pace.go), and a turn before an update of its VM (turns.go).
//
// EXPERIMENTAL: the names in this package may change with any release.
package machines

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/port"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// New returns a reconciler of machines.
func New(e *engine.Engine, c Config) *engine.Reconciler {
	r := newReconciler(c)
	return e.Reconciler(engine.Kind{
		Name: "machine", Delay: c.Delay, Release: c.Backoff.endTurn, Forget: r.forget, Panic: c.Panic,
		Begin: func(p *engine.Pass) engine.Steps { return &pass{Pass: p, reconciler: r} },
	})
}

// Decide implements engine.Steps. In a dry run, moves that a write would refuse end the pass here.
func (p *pass) Decide(ctx context.Context) (engine.Step, error) {
	if p.o.Frozen, p.o.ClassBackoff = p.Frozen(), p.classBackoff(); !p.o.Frozen {
		p.o.WatchedSince = p.WatchedSince(p.Now())
	}
	p.o.LedSince = p.reconciler.LedSince
	var err error
	if p.plan, err = machine.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Step{}, err
	}
	if p.needsNewAnswers() {
		p.forgetAnswers()
		return p.Decide(ctx)
	}
	if p.DryRun && p.plan.Write != nil {
		if w := p.changed(); w.After != nil {
			if err := p.Machines.Check(ctx, w); err != nil {
				return engine.Step{}, err
			}
		}
	}
	if step, wait := p.paced(); wait {
		return step, nil
	}
	step := engine.Step{Verb: engine.Mutate, Why: p.plan.Why, Warn: p.plan.Warn, At: p.plan.At}
	switch {
	case p.plan.Write != nil:
	case p.plan.Effect != nil:
		step.Verb, step.Name, step.Key = p.verb(p.plan.Effect), effectName(p.plan.Effect), effectID(p.plan.Effect)
	default:
		step.Verb, step.At = engine.Wait, p.waitOn(p.plan.At)
		if p.o.Frozen {
			step.At = p.Thaw(step.At)
		}
	}
	return step, nil
}

// Execute implements engine.Steps.
func (p *pass) Execute(ctx context.Context) error {
	if p.plan.Write != nil {
		return p.keepAnswers(p.write(ctx))
	}
	return p.keepAnswers(p.do(ctx, p.plan.Effect))
}

// Read implements engine.Steps. It makes the reads that come before the first decision. A second read of a
// pass keeps the answers of ports; it is a conflict if the machine or its node has changed.
func (p *pass) Read(ctx context.Context, live bool) error {
	reader := store.Reader[*machine.Machine](p.Machines)
	if live {
		reader = p.Machines.Live()
	}
	m, err := reader.Get(ctx, p.Key)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	if p.o.Machine != nil {
		return p.keepAnswers(errors.Join(engine.CheckUnchanged(&p.o.Machine.Meta, &m.Meta), p.checkNode(ctx)))
	}
	p.o = machine.Observation{
		Machine: m, NoCluster: p.Nodes == nil, NoDrain: p.Drainer == nil,
		Budgeted: p.Safety != nil, Failures: p.Failures(), NodeWrites: p.written.Of(p.Key),
	}
	if p.o.Class, err = p.class(ctx, m); err != nil {
		return err
	}
	if p.o.Class != nil {
		p.o.Paced = p.paces.waits(p.Key)
		_, p.o.NoInitialize = p.uninitialized.Load(p.o.Class.Provider)
	}
	p.o.VMSpec = p.Split(p.o.Class)
	if p.o.Marks, err = p.marks(ctx, m); err != nil {
		return err
	}
	if p.o.Secret, err = p.secrets.Version(ctx, p.o.Class); err != nil {
		return err
	}
	if p.o.Token, err = p.tokenUse(ctx); err != nil {
		return err
	}
	p.o.Missing, p.o.VMUnhealthy = p.Missing(m), p.Unhealthy(m)
	p.takeAnswers()
	if p.DryRun {
		if err := p.readSkippedCalls(ctx); err != nil {
			return err
		}
	}
	if p.Nodes != nil && m.Spec.NodeName != "" && !live {
		p.o.Node, err = p.findNode(ctx, p.Nodes, m.Spec.NodeName)
	}
	return err
}

// checkNode returns a conflict if the node has changed since the cache was read.
func (p *pass) checkNode(ctx context.Context) error {
	if n := p.o.Node; n != nil && !n.Read.Live() && n.Node != nil {
		now, err := p.Nodes.Live().Get(ctx, n.Node.Key)
		if err != nil {
			return engine.OtherNotFound(err)
		}
		return engine.CheckUnchanged(&n.Node.Meta, &now.Meta)
	}
	return nil
}

// readSkippedCalls finds out which calls would not be made.
func (p *pass) readSkippedCalls(ctx context.Context) error {
	secret, err := p.secrets.Merged(ctx, p.o.Class)
	if errors.Is(err, secrets.ErrNamespace) {
		p.skipped = skippedCalls{true, true}
		return nil
	}
	p.skipped = skippedCalls{create: p.Nodes != nil && (secret == nil || len(secret.Data[machine.UserData]) == 0)}
	return err
}

// marks returns the rollout marks of the machine's set; nil: they are not known.
func (p *pass) marks(ctx context.Context, m *machine.Machine) (*machine.RolloutMarks, error) {
	switch {
	case m.Owner == nil:
		return &machine.RolloutMarks{}, nil
	case p.Nodes == nil || p.Sets == nil || m.Owner.Kind != machineset.OwnerKind:
		return nil, nil //nolint:nilnil // there is no node to mark, or another owner
	}
	set, err := p.Sets.Get(ctx, object.Key{Namespace: m.Namespace, Name: m.Owner.Name})
	if errors.Is(err, store.ErrNotFound) || err == nil && set.UID != m.Owner.UID {
		return nil, nil //nolint:nilnil // this cache may lag
	}
	if err != nil {
		return nil, err
	}
	return &set.Instructions.Marks, nil
}

// class returns the machine's class; nil: there is none.
func (p *pass) class(ctx context.Context, m *machine.Machine) (*machine.Class, error) {
	if m.Spec.Class.Name == "" {
		return nil, nil //nolint:nilnil // the decision says what is wrong
	}
	if p.MigratesClasses && m.Spec.Class.Foreign() {
		return nil, nil //nolint:nilnil // one of ours by that name need not be complete yet
	}
	class, err := p.Classes.Get(ctx, index.ClassKey(m))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // the decision waits for it
	}
	return class, err
}

// write carries out the plan's write, and observes the machine as it was stored.
func (p *pass) write(ctx context.Context) error {
	plan, before := &p.plan, p.o.Machine
	after, err := p.put(ctx)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.o.Machine, p.o.Fresh = after, true
	p.reportSpans(plan, before)
	p.report(ctx, plan, before)
	return engine.CheckGone(&after.Meta)
}

func (p *pass) put(ctx context.Context) (*machine.Machine, error) {
	if _, deletes := p.plan.Write.(*machine.Delete); !deletes {
		return p.Machines.Write(ctx, p.changed())
	}
	if err := p.Machines.Delete(ctx, p.Key, p.o.Machine.UID); err != nil {
		return nil, err
	}
	return p.Machines.Live().Get(ctx, p.Key)
}

// changed returns the plan's write of the machine. If it is a deletion, After is nil.
func (p *pass) changed() *engine.Write[*machine.Machine] {
	w := &engine.Write[*machine.Machine]{Before: p.o.Machine, Moves: p.plan.Moves, Why: p.plan.Why, Seen: &p.o}
	switch change := p.plan.Write.(type) {
	case *machine.Update:
		w.After = change.Machine
	case *machine.UpdateStatus:
		if p.scratch == nil {
			p.scratch = new(machine.Machine)
		}
		*p.scratch = *p.o.Machine // the store takes its own copy
		p.scratch.Status = change.Status
		w.After, w.Status = p.scratch, true
	case *machine.Delete:
	}
	return w
}

// report emits the event of a write that is stored.
func (p *pass) report(ctx context.Context, plan *machine.Plan, before *machine.Machine) {
	moved := len(plan.Moves) > 0
	status, ok := plan.Write.(*machine.UpdateStatus)
	if !ok {
		if _, deletes := plan.Write.(*machine.Delete); moved || deletes {
			p.EmitOnce(ctx, eventType(plan), plan.Why)
		}
		return
	}
	op := &status.Status.LastOperation
	switch {
	case op.State == machine.StateFailed && *op != before.Status.LastOperation:
		p.o.Failures = p.Failed(string(op.Kind) + "/" + string(op.Stage))
		p.EmitOnce(ctx, engine.Warning, plan.Why)
	case op.State == machine.StateSuccessful && (moved || op.Kind == machine.OperationUpdate && *op != before.Status.LastOperation):
		p.Forget()
		p.recorded.Forget(p.Key)
		p.Emit(ctx, engine.Normal, plan.Why)
	case moved:
		p.EmitOnce(ctx, eventType(plan), plan.Why)
	case !status.Status.Preservation.Since.Equal(before.Status.Preservation.Since):
		p.EmitOnce(ctx, engine.Normal, plan.Why)
	}
}

// eventType returns the type of the event of a write that did not fail: Progress while an operation goes on.
func eventType(plan *machine.Plan) engine.EventType {
	ends := func(m machine.Move) bool {
		switch machine.Phase(m.To) {
		case machine.PhasePending, machine.PhaseTerminating, machine.PhaseInPlaceUpdating:
			return false
		}
		return m.Table == machine.PhaseTable().Name || m.To == string(machine.StageGone)
	}
	if len(plan.Moves) == 0 || slices.ContainsFunc(plan.Moves, ends) {
		return engine.Normal
	}
	return engine.Progress
}

type reconciler struct {
	Config
	secrets secrets.Secrets
	// recorded holds when each machine's VM was recorded. Losing it makes a span longer.
	recorded engine.Notes[time.Time]
	// written holds what was written to the nodes of machines, to notice another program that undoes it.
	written engine.Notes[machine.NodeWrites]
	// uninitialized holds the names of providers known to have no InitializeMachine.
	uninitialized sync.Map
	answers       engine.Notes[answers]
	turns         turns
	paces         paces
	// spent is what the brake of package safety counts, for machines without a set whose nodes others deleted.
	spent   []safety.Spent
	spentMu sync.Mutex // guards spent
}

func newReconciler(c Config) *reconciler {
	return &reconciler{Config: c, secrets: secrets.Secrets{Collection: c.Secrets, Namespaces: c.SecretNamespaces}}
}

// pass is one pass over one machine.
type pass struct {
	*engine.Pass
	*reconciler
	o       machine.Observation
	plan    machine.Plan
	token   port.Token // the machine's token, once this pass has made sure of it
	skipped skippedCalls

	turn   bool      // the pace of the provider lets this pass make its next call
	slowed bool      // the provider asked to wait, in answer to the call of the last effect
	began  time.Time // when that effect began

	taken answers // from the pass before; zero: none

	scratch *machine.Machine // handed to the store, and used again for each write of a status
}

// skippedCalls says, in a dry run, which calls would not be made: they are answered without the driver.
type skippedCalls struct{ any, create bool }

// logAttrs names a machine in a log line.
func logAttrs(m *machine.Machine) slog.Attr {
	return slog.Group("machine", slog.String("name", m.Key.String()), slog.String("node", m.Spec.NodeName),
		slog.String("providerID", m.Spec.ProviderID), slog.String("stage", string(m.Status.LastOperation.Stage)))
}

// Config is what machines need of the rest of a fleet.
type Config struct {
	Machines    *engine.Objects[*machine.Machine]
	Classes     *engine.Objects[*machine.Class]
	Secrets     store.Collection[*machine.Secret]       // nil: there are none
	Sets        *engine.Objects[*machineset.Set]        // nil: there are none
	Deployments *engine.Objects[*deployment.Deployment] // nil: there are none
	Nodes       store.Collection[*machine.Node]         // nil: there is no cluster
	// SecretNamespaces are those that classes may take secrets from, besides their own. Nil: all.
	SecretNamespaces []string
	// MigratesClasses says that a class of another kind is not ours, even if one of ours has its name.
	MigratesClasses bool

	Driver      driver.Driver
	Tokens      port.Tokens  // nil: nothing makes bootstrap tokens
	Drainer     port.Drainer // nil: deletions do not wait for workload
	CallTimeout time.Duration

	Policy *machine.Policy
	// UpdateLimit returns how many VMs of so many replicas may be updated at a time.
	UpdateLimit func(replicas int32) int
	// Safety limits replacements and slows creations; nil: nothing does.
	Safety *safety.Policy
	// Backoff is shared by all kinds that create machines.
	Backoff *Backoff
	// Paces are shared by all callers of the provider; they count only with Safety.
	Paces *pace.Paces

	// Delay reports whether no pass may be made yet. Nil: any time.
	Delay func() (engine.Result, bool)
	// Frozen reports whether an API server does not answer.
	Frozen func() bool
	// Thaw returns when to look at a frozen machine again. Unfrozen, it would be due at the time at.
	Thaw func(at time.Time) time.Time
	// LedSince is when the term of this process began; zero: it has none.
	LedSince time.Time
	// WatchedSince returns since when this process has watched the fleet.
	WatchedSince func(now time.Time) time.Time
	// Split returns the split spec of a class; nil: there is no class, or nothing can be updated.
	Split func(*machine.Class) *machine.VMSpec
	// Missing returns what is known of a machine whose VM the last listing lacks; nil: it is not missing.
	Missing func(*machine.Machine) *machine.MissingVM
	// Unhealthy reports whether the last listing called the VM of a machine unhealthy, and the provider
	// was not asked since.
	Unhealthy func(*machine.Machine) bool
	// Asked is called with the provider's answers about missing and unhealthy VMs.
	Asked func(object.Key, codes.Code)
	// Hint is called with a reason to look for orphans.
	Hint func(orphan.Hint)

	// Span is called with how long a part of a machine's life took; may be nil.
	Span func(object.Key, port.Span, time.Duration)
	// Panic sets the permit of a machine's drain aside, because its pass panicked; may be nil.
	Panic func(context.Context, object.Key)
}

// reportSpans reports the parts of the machine's life that a stored write has ended; before is
// the machine as it was.
func (p *pass) reportSpans(plan *machine.Plan, before *machine.Machine) {
	if before.Spec.ProviderID == "" && p.o.Machine.Spec.ProviderID != "" {
		p.recorded.Change(p.Key, func(at *time.Time) { *at = p.Now() })
		p.reportSpan(port.SpanCreation, before.CreatedAt)
	}
	for _, move := range plan.Moves {
		switch move.On {
		case machine.EventProvisioned:
			if p.o.Initialized != nil && p.o.Initialized.Code == codes.OK {
				p.reportSpan(port.SpanInitialization, p.recordedAt(before))
			}
		case machine.EventJoined:
			if before.Status.JoinedAfter == 0 {
				p.reportSpan(port.SpanJoin, before.Status.LastOperation.Time)
			}
		case machine.EventDrained, machine.EventForced:
			if p.o.Drain != nil {
				p.reportSpan(port.SpanDrain, cmp.Or(before.Status.StageSince, before.DeletedAt))
			}
		case machine.EventReleased:
			p.reportSpan(port.SpanDeletion, before.DeletedAt)
		}
	}
}

// recordedAt returns when the machine's VM was recorded; if that is not known, the time of its last step.
func (p *pass) recordedAt(before *machine.Machine) time.Time {
	if at := p.recorded.Of(p.Key); !at.IsZero() {
		return at
	}
	return before.Status.LastOperation.Time
}

// reportSpan reports a span that ends now; since is zero if its begin is not known.
func (p *pass) reportSpan(span port.Span, since time.Time) {
	if p.Span != nil && !since.IsZero() {
		p.Span(p.Key, span, max(0, p.Now().Sub(since)))
	}
}
