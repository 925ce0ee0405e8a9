package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// conflictWait is the wait after maxRestarts conflicts.
var conflictWait = codes.Conflict.Period(0)

// Kind describes a kind of object to the engine.
type Kind struct {
	Name string
	// Begin returns the steps of a new pass. It is called again after each conflict.
	Begin func(*Pass) Steps
	// Memory is what is remembered of the kind's objects; nil: the reconciler makes one.
	Memory *Memory

	// Delay reports whether passes must wait, and returns the result of a pass that waits. Nil: they never
	// wait.
	Delay func() (Result, bool)
	// Release gives back what a pass held. It is called when a pass is over, however it ended. May be nil.
	Release func(object.Key)
	// Forget drops what the kind remembers of an object that is gone. May be nil.
	Forget func(object.Key)
	// Panic sets aside what an object holds, because its pass panicked. May be nil.
	Panic func(context.Context, object.Key)
}

// Reconciler makes passes over the objects of one kind. Calls for different keys may overlap.
type Reconciler struct {
	*Engine
	kind Kind
}

// Reconciler returns a reconciler of a kind.
func (e *Engine) Reconciler(k Kind) *Reconciler {
	if k.Memory == nil {
		k.Memory = new(Memory)
	}
	return &Reconciler{e, k}
}

// Name returns the name of the kind.
func (r *Reconciler) Name() string { return r.kind.Name }

// Reconcile makes a pass. An error means that the pass could not be finished: call again after a pause.
// An object that is gone is no error. A panic is an [ErrPanicked]. A call of runtime.Goexit is reported
// as one, and ends the calling goroutine: [Engine.Work] starts it again.
func (r *Reconciler) Reconcile(ctx context.Context, key object.Key) (result Result, err error) {
	at := Place{InPass, r.kind.Name, key}
	returned := false
	defer func() {
		if !returned {
			result, err = Result{}, r.panicked(ctx, at, caughtNow(recover()))
		}
	}()
	result, err = r.reconcile(ctx, key)
	returned = true
	if err == nil {
		r.Guard.succeeded(at)
	}
	return result, err
}

// panicked reports the panic of a pass, and returns the error that the pass ends with.
func (r *Reconciler) panicked(ctx context.Context, at Place, end *Caught) error {
	if r.kind.Panic != nil {
		Catch(func() { r.kind.Panic(ctx, at.Key) })
	}
	err := fmt.Errorf("%s %s: %w: %s", r.kind.Name, at.Key, ErrPanicked, end.What)
	r.Guard.Report(ctx, at, end)
	r.ended(at.Key, 0, Result{}, err)
	return err
}

// reconcile makes attempts until one of them meets no conflict.
func (r *Reconciler) reconcile(ctx context.Context, key object.Key) (Result, error) {
	if r.kind.Delay != nil {
		if wait, held := r.kind.Delay(); held {
			return wait, nil
		}
	}
	if r.kind.Release != nil {
		defer r.kind.Release(key)
	}
	total := 0
	for try := range maxRestarts {
		p := &Pass{Engine: r.Engine, Kind: r.kind.Name, Key: key, memory: r.kind.Memory}
		result, steps, err := p.run(ctx, r.kind.Begin(p), try > 0)
		total += steps
		switch {
		case errors.Is(err, store.ErrConflict):
			continue
		case errors.Is(err, ErrGone):
			r.forget(key)
			result, err = Result{Why: decision.Why{Reason: reasonGone}}, nil
		case err != nil:
			err = fmt.Errorf("%s %s: %w", r.kind.Name, key, err)
		}
		r.ended(key, total, result, err)
		return result, err
	}
	result := r.Wait(r.Now().Add(conflictWait), decision.Why{Reason: reasonContended})
	r.ended(key, total, result, nil)
	return result, nil
}

func (r *Reconciler) forget(key object.Key) {
	r.kind.Memory.Forget(key)
	r.journal.forget(r.kind.Name, key)
	if r.kind.Forget != nil {
		r.kind.Forget(key)
	}
}

func (r *Reconciler) ended(key object.Key, steps int, result Result, err error) {
	if r.Hooks.Pass != nil {
		r.Hooks.Pass(r.kind.Name, key, steps, result, err)
	}
}

var (
	// ErrGone ends a pass: its own object is not there any more.
	ErrGone = errors.New("the object is gone")
	// ErrReplaced begins a pass again: another object has the name now. It is a conflict.
	ErrReplaced = fmt.Errorf("another object has its name now: %w", store.ErrConflict)
)

// CheckGone returns ErrGone if the last write removed the last finalizer of a deleted object.
func CheckGone(m *object.Meta) error {
	if m.Deleted() && len(m.Finalizers) == 0 {
		return ErrGone
	}
	return nil
}

// CheckUnchanged returns a conflict if the UID or the version of an object has changed since the pass
// read it.
func CheckUnchanged(before, after *object.Meta) error {
	if before.UID != after.UID || before.Version != after.Version {
		return fmt.Errorf("%s has changed meanwhile: %w", after.Key, store.ErrConflict)
	}
	return nil
}

// OwnNotFound maps an error about the pass's own object: not found becomes ErrGone.
func OwnNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return ErrGone
	}
	return err
}

// OtherNotFound maps an error about another object: not found becomes a conflict.
func OtherNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return err
}

// Interrupted returns why nothing may be concluded from err: the process is shutting down, it does not lead
// any more, or a dry run has withheld the call. Nil: err is an answer.
func Interrupted(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrFenced) {
		return err
	}
	return ctx.Err()
}

// Pass is the engine's part of a pass under way. The steps of a kind use it to emit events, to count
// failures and to time calls.
type Pass struct {
	*Engine
	Kind string
	Key  object.Key

	memory  *Memory
	done    []any   // Step.Key of plans that were executed
	ordered bool    // orders were given
	refused bool    // one of them was refused
	held    *Result // of a pass within this one whose plan a dry run withheld
}

// errHeld ends a pass, because a dry run has withheld a plan of a pass within it.
var errHeld = fmt.Errorf("held in a dry run: %w", store.ErrReadOnly)

// Sub makes a pass within a plan that looks: Decide and Execute take turns until a plan waits, and the gate
// of a dry run is the same. What it reads must be live.
func (p *Pass) Sub(ctx context.Context, s Steps) error {
	for range maxSteps {
		step, err := s.Decide(ctx)
		switch {
		case err != nil:
			return err
		case step.Verb == Wait:
			return nil
		case step.Verb == Mutate && p.DryRun:
			result := p.reportDryRun(ctx, s, &step)
			p.held = &result
			return errHeld
		}
		if err := s.Execute(ctx); err != nil {
			return err
		}
	}
	return errors.New("a pass within a pass does not end")
}

// run makes one attempt: it ends with a plan that waits or is held, or with an error. It returns how
// many plans it has carried out.
func (p *Pass) run(ctx context.Context, s Steps, live bool) (Result, int, error) {
	if err := s.Read(ctx, live); err != nil {
		return Result{}, 0, err
	}
	for n := range maxSteps {
		step, err := s.Decide(ctx)
		if err != nil {
			return Result{}, n, err
		}
		if step.Warn != (decision.Why{}) {
			p.EmitOnce(ctx, Warning, step.Warn)
		}
		switch {
		case step.Verb == Wait:
			return p.Wait(step.At, step.Why), n, nil
		case step.Verb == Mutate && p.DryRun && (live || step.Live):
			return p.reportDryRun(ctx, s, &step), n, nil
		case step.Verb == Mutate && p.DryRun:
			step.Verb, step.Key = Reread, nil
		}
		live = live || step.Verb == Reread
		err = p.execute(ctx, s, &step)
		if p.held != nil {
			return *p.held, n, nil
		}
		if err != nil {
			return Result{}, n, err
		}
	}
	return Result{At: p.Now(), Why: decision.Why{Reason: reasonMore}}, maxSteps, nil
}

// execute carries out one plan. A plan that comes twice in a pass is an error.
func (p *Pass) execute(ctx context.Context, s Steps, step *Step) (err error) {
	if step.Key != nil {
		if slices.Contains(p.done, step.Key) {
			return fmt.Errorf("%v was decided twice in one pass", step.Key)
		}
		p.done = append(p.done, step.Key)
	}
	switch {
	case step.Verb == Reread:
		err = s.Read(ctx, true)
	case step.Name != "":
		err = p.Timed(step.Name, func() error { return s.Execute(ctx) })
	default:
		err = s.Execute(ctx)
	}
	if err == nil && step.Verb == Mutate && p.Hooks.Plan != nil {
		p.Hooks.Plan(p.Kind, p.Key, step.Why)
	}
	return err
}

// reportDryRun reports what a plan would change, and ends the pass. In a dry run no plan that acts is
// executed.
func (p *Pass) reportDryRun(ctx context.Context, s Steps, step *Step) Result {
	changes := s.Changes()
	for i := range changes {
		if changes[i].Why == (decision.Why{}) {
			changes[i].Why = step.Why
		}
	}
	for _, n := range p.journal.news(p.Kind, p.Key, changes, p.Now(), p.Resync) {
		n.what, n.sentence = codes.Printable(n.what), codes.Printable(n.sentence)
		p.Log.LogAttrs(ctx, slog.LevelInfo, "not done in a dry run: "+n.what, append([]slog.Attr{
			slog.String("kind", p.Kind), slog.String("object", p.Key.String()), slog.String("reason", n.reason), slog.String("why", n.sentence),
		}, Figures(n.why)...)...)
		if p.Hooks.DryRun != nil {
			p.Hooks.DryRun(p.Kind, p.Key, n.what, n.reason, n.sentence)
		}
	}
	var at time.Time
	if h, ok := s.(Skipper); ok {
		at = h.Skipped()
	}
	why := decision.Why{Reason: reasonDryRun}
	if len(changes) > 0 {
		why.Detail = changes[0].What
	}
	return p.Wait(at, why)
}

// Emit emits an event, each time.
func (p *Pass) Emit(ctx context.Context, typ EventType, why decision.Why) {
	p.Engine.Emit(ctx, nil, p.Kind, p.Key, typ, why)
}

// EmitOnce emits an event only the first time, for as long as the process remembers.
func (p *Pass) EmitOnce(ctx context.Context, typ EventType, why decision.Why) {
	p.Engine.Emit(ctx, p.memory, p.Kind, p.Key, typ, why)
}

// EmitOnceFor is EmitOnce about an object of another kind.
func (p *Pass) EmitOnceFor(ctx context.Context, kind string, key object.Key, typ EventType, why decision.Why) {
	p.Engine.Emit(ctx, p.memory, kind, key, typ, why)
}

// Timed makes a call and tells the hook how long it took.
func (p *Pass) Timed(name string, do func() error) error {
	return p.Engine.Timed(p.Kind, p.Key, name, do)
}

// Failures returns how many passes in a row have failed before this one.
func (p *Pass) Failures() int {
	n := p.memory.Failures(p.Key)
	if p.refused {
		n--
	}
	return n
}

// Failed counts one more failure in a row of one step, and returns how many there are now.
func (p *Pass) Failed(step string) int { return p.memory.Failed(p.Key, step) }

// Forget drops what is remembered of the object: it has succeeded.
func (p *Pass) Forget() { p.memory.Forget(p.Key) }

// Ordered notes that the pass has given orders. refused reports whether one of them was refused; a pass
// with refusals counts as one failure.
func (p *Pass) Ordered(refused bool) {
	p.ordered = true
	if refused && !p.refused {
		p.refused = true
		p.memory.Failed(p.Key, "orders")
	}
}

// ClearFailures resets the count of failures if the pass gave orders and none was refused, and reports
// whether it did.
func (p *Pass) ClearFailures() bool {
	if !p.ordered || p.refused {
		return false
	}
	p.memory.Succeeded(p.Key)
	return true
}

const (
	// maxSteps bounds the plans of a pass. A pass that reaches it goes on at once. A set of 1,000
	// machines needs about 40.
	maxSteps = 64
	// maxRestarts is how many conflicts end a pass: each one before begins it again.
	maxRestarts = 4
)

// The engine's own reasons.
var (
	reasonGone      = decision.NewReason("Gone", "it is gone")
	reasonContended = decision.NewReason("Contended", "others keep writing it")
	reasonMore      = decision.NewReason("MoreToDo", "there is more to do")
	reasonDryRun    = decision.NewReason("DryRun", "not done in a dry run: {detail}")
)
