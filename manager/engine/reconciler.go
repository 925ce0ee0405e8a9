package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// conflictWait is the wait after maxRestarts conflicts.
var conflictWait = codes.Conflict.Period(0)

// Kind is what the engine is told of a kind of object.
type Kind struct {
	Name string
	// Begin returns the steps of a new pass. It is called again after each conflict.
	Begin func(*Pass) Steps
	// Memory is what is remembered of the kind's objects; nil: the reconciler makes one.
	Memory *Memory

	// Hold reports whether no pass may be made yet, and when to come back. Nil: any time.
	Hold func() (Result, bool)
	// Leave gives back what a pass held. It is called when a pass is over, however it ended. May be nil.
	Leave func(object.Key)
	// Forget drops what the kind remembers of an object that is gone. May be nil.
	Forget func(object.Key)
	// Panicked sets aside what an object holds whose pass panicked. May be nil.
	Panicked func(context.Context, object.Key)
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
// An object that is gone is no error. A panic, and a call of runtime.Goexit, is an [ErrPanicked].
func (r *Reconciler) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	var result Result
	var err error
	at := Place{InPass, r.kind.Name, key}
	end := r.Guard.Run(ctx, at, func() {
		growStack()
		result, err = r.reconcile(ctx, key)
	})
	if end == nil {
		if err == nil {
			r.Guard.succeeded(at)
		}
		return result, err
	}
	if r.kind.Panicked != nil {
		Catch(func() { r.kind.Panicked(ctx, key) })
	}
	err = fmt.Errorf("%s %s: %w: %s", r.kind.Name, key, ErrPanicked, end.What)
	r.ended(key, 0, Result{}, err)
	return Result{}, err
}

// reconcile makes attempts until one of them meets no conflict.
func (r *Reconciler) reconcile(ctx context.Context, key object.Key) (Result, error) {
	if r.kind.Hold != nil {
		if wait, held := r.kind.Hold(); held {
			return wait, nil
		}
	}
	if r.kind.Leave != nil {
		defer r.kind.Leave(key)
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

// Gone returns ErrGone if the object's last write let it go.
func Gone(m *object.Meta) error {
	if m.Deleted() && len(m.Finalizers) == 0 {
		return ErrGone
	}
	return nil
}

// Unchanged returns a conflict if an object is another one, or another version, than it was when the pass
// read it.
func Unchanged(before, after *object.Meta) error {
	if before.UID != after.UID || before.Version != after.Version {
		return fmt.Errorf("%s has changed meanwhile: %w", after.Key, store.ErrConflict)
	}
	return nil
}

// Itself returns what an error about the pass's own object means: ErrGone if it was not found.
func Itself(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return ErrGone
	}
	return err
}

// Elsewhere returns what an error about another object means: a conflict if it was not found.
func Elsewhere(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return err
}

// Interrupted returns why nothing may be concluded from err: the process is shutting down, or a dry run
// has withheld the call. Nil: err is an answer.
func Interrupted(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, store.ErrWithheld) {
		return err
	}
	return ctx.Err()
}
