package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

const (
	// maxSteps bounds a pass; one that reaches it goes on at once. A set of
	// 1,000 needs about 40.
	maxSteps = 64
	// maxRestarts bounds how often a pass begins anew after a conflict.
	maxRestarts = 4
)

// conflictWait is how long after maxRestarts conflicts the next pass is made:
// the recovery class for conflicts.
var conflictWait = codes.Conflict.Period(0)

// shell is what all reconcilers share.
type shell struct {
	*Options
	moves   *fsm.Checker
	reach   *reach
	hints   *hints
	pace    *pace
	permits *permits
	specs   *specs
	// watched is shared with Manager.Run.
	watched *watched
	missing *missing // likewise

	journal journal // of what was not done, in observe-only mode
}

// pass is one look at one object, from its first read to a plan that holds
// nothing to do.
type pass interface {
	// observe reads the object and its surroundings; fresh: not from caches.
	observe(ctx context.Context, fresh bool) error
	// step decides once and carries out what was decided. done: there was
	// nothing, or the object is gone, and the pass ends with the result.
	step(ctx context.Context) (result Result, done bool, err error)
}

// reconcile makes passes until one of them meets no conflict. What was
// remembered of an object goes with it.
func (s *shell) reconcile(ctx context.Context, kind Kind, key object.Key, m *memo, begin func() pass) (Result, error) {
	total := 0
	for try := range maxRestarts {
		result, steps, err := s.attempt(ctx, kind, key, begin(), try > 0)
		total += steps
		switch {
		case errors.Is(err, store.ErrConflict):
			continue
		case errors.Is(err, errGone):
			m.forget(key)
			s.journal.forget(kind, key)
			s.permits.forget(kind, key)
			result, err = Result{Why: decision.Why{Reason: reasonGone}}, nil
		case err != nil:
			err = fmt.Errorf("%s %s: %w", kind, key, err)
		}
		s.Hooks.pass(kind, key, total, result, err)
		return result, err
	}
	result := s.look(s.Now().Add(conflictWait), decision.Why{Reason: reasonContended})
	s.Hooks.pass(kind, key, total, result, nil)
	return result, nil
}

func (s *shell) run(ctx context.Context, p pass, fresh bool) (Result, int, error) {
	if err := p.observe(ctx, fresh); err != nil {
		return Result{}, 0, err
	}
	for n := range maxSteps {
		result, done, err := p.step(ctx)
		if done || err != nil {
			return result, n, err
		}
	}
	return Result{At: s.Now(), Why: decision.Why{Reason: reasonMore}}, maxSteps, nil
}

// look is the result of a pass that waits: jitter makes the wait longer, never
// shorter. Even where nothing but a change is waited for, it is looked again
// after a while, since a watch that broke does not say what went meanwhile.
func (s *shell) look(at time.Time, why decision.Why) Result {
	if at.IsZero() {
		at = s.Now().Add(s.Resync)
	}
	if wait := at.Sub(s.Now()); wait > 0 {
		at = at.Add(max(s.Jitter(wait)-wait, 0))
	}
	return Result{At: at, Why: why}
}

// The reasons of the shell's own.
var (
	reasonGone      = decision.NewReason("Gone", "it is gone")
	reasonContended = decision.NewReason("Contended", "others keep writing it")
	reasonMore      = decision.NewReason("MoreToDo", "there is more to do")
	reasonObserving = decision.NewReason("Observing", "only observing, not done: {detail}")
	reasonUnproven  = decision.NewReason("NotAskedYet", "the API servers were not asked yet")

	reasonVMNotDeleted    = decision.NewReason("OrphanDeleteFailed", "orphan VM {name} could not be deleted: {code}: {detail}")
	reasonGroupNotDeleted = decision.NewReason("OrphanGroupDeleteFailed", "orphan group {name} could not be deleted: {code}: {detail}")
	reasonSecretMissing   = decision.NewReason("SecretMissing", "class {name} refers to secret {object}, which does not exist")
	reasonTemplate        = decision.NewReason("NodeTemplateIncomplete", "class {name}: the node template has no {detail}; machines are made from it, but an autoscaler can't scale it up from none")
	reasonNodeNotWritten  = decision.NewReason("NodeNotWritten", "node {name} could not be written")
)

// since returns the freshness of live reads that began then and have just ended.
func (s *shell) since(began time.Time) decision.Freshness {
	return decision.Freshness{Began: began, Ended: s.Now()}
}

// freshness returns how reads were made that began then and have just ended: from caches unless live.
func (s *shell) freshness(began time.Time, live bool) decision.Freshness {
	if !live {
		return decision.Freshness{}
	}
	return s.since(began)
}

// gone ends a pass whose last write let the object go.
func gone(m *object.Meta) error {
	if m.Deleted() && len(m.Finalizers) == 0 {
		return errGone
	}
	return nil
}

var (
	// errGone ends a pass: its own object is not there any more.
	errGone = errors.New("the object is gone")
	// errReplaced begins a pass anew: another object has the name by now.
	errReplaced = fmt.Errorf("another object has its name by now: %w", store.ErrConflict)
)

// itself is an error about the pass's own object.
func itself(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return errGone
	}
	return err
}

// check fires the moves of a write, so that an illegal one stops the pass
// before anything is stored.
func (s *shell) check(ctx context.Context, moves []machine.Move) error {
	for _, move := range moves {
		if err := s.moves.Fire(ctx, move); err != nil {
			return err
		}
	}
	return nil
}

// tell logs an event and hands it to the hook; with a memo, once for as long
// as that remembers it.
func (s *shell) tell(ctx context.Context, m *memo, kind Kind, key object.Key, typ EventType, why decision.Why) {
	level := slog.LevelInfo
	if typ == Warning {
		level = slog.LevelWarn
	}
	if s.Hooks.Event == nil && !s.Log.Enabled(ctx, level) {
		return
	}
	reason, sentence := why.Reason.String(), codes.Printable(why.String()) // names and messages are others'
	if m != nil && !m.first(key, reason+" "+sentence) {
		return
	}
	s.Log.LogAttrs(ctx, level, sentence, slog.String("kind", string(kind)), slog.String("object", key.String()),
		slog.String("reason", reason))
	s.Hooks.event(kind, key, typ, reason, sentence)
}

// timed carries out a call and tells the hook how long it took.
func (s *shell) timed(kind Kind, key object.Key, name string, do func() error) error {
	start := s.Now()
	err := do()
	s.Hooks.effect(kind, key, name, s.Now().Sub(start), err)
	return err
}
