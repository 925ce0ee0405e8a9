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

// Pass is the engine's part of a pass under way. A kind's steps keep it and tell, count and time
// through it.
type Pass struct {
	*Engine
	Kind string
	Key  object.Key

	memory  *Memory
	done    []any // Head.Once of plans that were executed
	ordered bool  // orders were given
	refused bool  // one of them was refused
	held    *Result
}

// errHeld ends what a pass within a pass was made for: a dry run holds its plan.
var errHeld = fmt.Errorf("held in a dry run: %w", store.ErrWithheld)

// Sub makes a pass within a plan that looks: Decide and Execute take turns until a plan waits, and the gate
// of a dry run is the same. What it reads must be live.
func (p *Pass) Sub(ctx context.Context, s Steps) error {
	for range maxSteps {
		head, err := s.Decide(ctx)
		switch {
		case err != nil:
			return err
		case head.Verb == Wait:
			return nil
		case head.Verb == Act && p.DryRun:
			result := p.hold(ctx, s, &head)
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
		head, err := s.Decide(ctx)
		if err != nil {
			return Result{}, n, err
		}
		if head.Warn != (decision.Why{}) {
			p.Once(ctx, Warning, head.Warn)
		}
		switch {
		case head.Verb == Wait:
			return p.Wait(head.At, head.Why), n, nil
		case head.Verb == Act && p.DryRun && (live || head.Live):
			return p.hold(ctx, s, &head), n, nil
		case head.Verb == Act && p.DryRun:
			head.Verb, head.Once = Reread, nil
		}
		live = live || head.Verb == Reread
		err = p.execute(ctx, s, &head)
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
func (p *Pass) execute(ctx context.Context, s Steps, head *Head) (err error) {
	if head.Once != nil {
		if slices.Contains(p.done, head.Once) {
			return fmt.Errorf("%v was decided twice in one pass", head.Once)
		}
		p.done = append(p.done, head.Once)
	}
	switch {
	case head.Verb == Reread:
		err = s.Read(ctx, true)
	case head.Name != "":
		err = p.Timed(head.Name, func() error { return s.Execute(ctx) })
	default:
		err = s.Execute(ctx)
	}
	if head.Drawn {
		p.Wait(head.At, head.Why)
	}
	if err == nil && head.Verb == Act && p.Hooks.Told != nil {
		p.Hooks.Told(p.Kind, p.Key, head.Why)
	}
	return err
}

// hold tells what a plan would change, and ends the pass. It is the only way on for a plan that acts in
// a dry run.
func (p *Pass) hold(ctx context.Context, s Steps, head *Head) Result {
	changes := s.Changes()
	for i := range changes {
		if changes[i].Why == (decision.Why{}) {
			changes[i].Why = head.Why
		}
	}
	for _, n := range p.journal.news(p.Kind, p.Key, changes, p.Now(), p.Resync) {
		n.what, n.sentence = codes.Printable(n.what), codes.Printable(n.sentence)
		p.Log.LogAttrs(ctx, slog.LevelInfo, "not done, only observing: "+n.what, append([]slog.Attr{
			slog.String("kind", p.Kind), slog.String("object", p.Key.String()), slog.String("reason", n.reason), slog.String("why", n.sentence),
		}, Figures(n.why)...)...)
		if p.Hooks.Withheld != nil {
			p.Hooks.Withheld(p.Kind, p.Key, n.what, n.reason, n.sentence)
		}
	}
	var at time.Time
	if h, ok := s.(Holder); ok {
		at = h.Held()
	}
	why := decision.Why{Reason: reasonDryRun}
	if len(changes) > 0 {
		why.Detail = changes[0].What
	}
	return p.Wait(at, why)
}

// Tell tells of something that was done, each time.
func (p *Pass) Tell(ctx context.Context, typ EventType, why decision.Why) {
	p.Engine.Tell(ctx, nil, p.Kind, p.Key, typ, why)
}

// Once tells of something once, for as long as the process remembers.
func (p *Pass) Once(ctx context.Context, typ EventType, why decision.Why) {
	p.Engine.Tell(ctx, p.memory, p.Kind, p.Key, typ, why)
}

// OnceAbout is Once about an object of another kind.
func (p *Pass) OnceAbout(ctx context.Context, kind string, key object.Key, typ EventType, why decision.Why) {
	p.Engine.Tell(ctx, p.memory, kind, key, typ, why)
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

// Settle ends a row of failures, and reports so, if the pass gave orders and none was refused.
func (p *Pass) Settle() bool {
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
	// maxRestarts bounds how often a conflict begins a pass again.
	maxRestarts = 4
)

// The engine's own reasons.
var (
	reasonGone      = decision.NewReason("Gone", "it is gone")
	reasonContended = decision.NewReason("Contended", "others keep writing it")
	reasonMore      = decision.NewReason("MoreToDo", "there is more to do")
	reasonDryRun    = decision.NewReason("Observing", "only observing, not done: {detail}")
)
