package engine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Options of an Engine. The zero value works.
type Options struct {
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Jitter spreads waits. It returns a duration not shorter than the one given; nil: up to a tenth
	// longer, at random.
	Jitter func(time.Duration) time.Duration
	// Each carries out n orders and returns when all have ended; nil: [Parallel].
	Each func(ctx context.Context, n int, do func(i int))
	// Resync is when to look again at an object that waits for a change only. Zero: 10 min.
	Resync time.Duration
	// DryRun withholds each plan that acts, and reports what it would change.
	DryRun bool

	Log   *slog.Logger // nil: nothing is logged
	Hooks Hooks
}

// Engine is what all passes of a process share.
type Engine struct {
	Options
	Guard *Guard

	journal journal
}

const (
	defaultResync  = 10 * time.Minute
	parallelOrders = 16
)

// New returns an engine. It contains the panics of Options.Each and of the hooks.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = Spread
	}
	if o.Each == nil {
		o.Each = Parallel
	}
	if o.Resync == 0 {
		o.Resync = defaultResync
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g := newGuard(o.Log, o.Hooks, o.Now)
	o.Each, o.Hooks = Contain(o.Each), g.contain(o.Hooks)
	return &Engine{Options: o, Guard: g}
}

// Spread returns a duration up to a tenth longer, at random.
func Spread(d time.Duration) time.Duration { return d + rand.N(d/10+1) } //nolint:gosec // spreads load

// Parallel carries out n orders, up to 16 at a time.
func Parallel(_ context.Context, n int, do func(int)) {
	if n == 1 {
		do(0)
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallelOrders)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}

// Wait returns the result of a pass that waits until at. The jitter makes the wait longer, never
// shorter. If only a change can help (at is zero), the object is looked at again after Resync, because a
// broken watch misses changes.
func (e *Engine) Wait(at time.Time, why decision.Why) Result {
	if at.IsZero() {
		at = e.Now().Add(e.Resync)
	}
	if wait := at.Sub(e.Now()); wait > 0 {
		at = at.Add(max(e.Jitter(wait)-wait, 0))
	}
	return Result{At: at, Why: why}
}

// Emit logs an event and hands it to the hook. With a memory it does so once, for as long as that
// remembers the event. Without one, the event is that of an order, and Hooks.Plan is called, too.
func (e *Engine) Emit(ctx context.Context, m *Memory, kind string, key object.Key, typ EventType, why decision.Why) {
	level := slog.LevelInfo
	if typ == Warning {
		level = slog.LevelWarn
	}
	if e.Hooks.Plan != nil && m == nil {
		e.Hooks.Plan(kind, key, why)
	}
	if e.Hooks.Event == nil && !e.Log.Enabled(ctx, level) {
		return
	}
	reason, sentence := why.Reason.String(), codes.Printable(why.String()) // it has names and messages of others
	if m != nil && !m.first(key, reason+" "+sentence) {
		return
	}
	e.Log.LogAttrs(ctx, level, sentence, append([]slog.Attr{
		slog.String("kind", kind), slog.String("object", key.String()), slog.String("reason", reason),
	}, Figures(why)...)...)
	if e.Hooks.Event != nil {
		e.Hooks.Event(kind, key, typ, reason, sentence)
	}
}

// Figures returns the numbers of a sentence as attributes of a log.
func Figures(why decision.Why) (attrs []slog.Attr) {
	for name, figure := range why.Figures() {
		attrs = append(attrs, slog.Any(name, figure))
	}
	return attrs
}

// Timed makes a call and tells the hook how long it took. A call that a dry run withheld was never made:
// the hook is not called.
func (e *Engine) Timed(kind string, key object.Key, name string, do func() error) error {
	start := e.Now()
	err := do()
	if e.Hooks.Effect != nil && !(e.DryRun && errors.Is(err, store.ErrReadOnly)) {
		e.Hooks.Effect(kind, key, name, e.Now().Sub(start), err)
	}
	return err
}

// Freshness describes reads that began at that time and have just ended: from caches unless live.
func (e *Engine) Freshness(began time.Time, live bool) decision.Freshness {
	if !live {
		return decision.Freshness{}
	}
	return decision.Freshness{Began: began, Ended: e.Now()}
}

// The pauses after passes of one object that could not be finished: each is twice as long as the one
// before, up to lastPause.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 3 * time.Minute
)

// Backoff doubles with each failure in a row, from 200 ms to 3 min.
func Backoff(failures int) time.Duration {
	wait := firstPause
	for i := 1; i < failures && wait < lastPause; i++ {
		wait *= 2
	}
	return min(wait, lastPause)
}

// Worker reconciles objects of one kind, as a [Reconciler] does.
type Worker interface {
	Name() string
	Reconcile(ctx context.Context, key object.Key) (Result, error)
}

// Work reconciles one key of a queue after the other until the queue is closed. A pass that could not be
// finished is tried again after a pause. The function taken, which may be nil, is called for each key that
// is taken up, with how many others are due. Several calls at a time share the keys of a queue. A pass that panics, or calls
// runtime.Goexit, ends no call of Work.
func (e *Engine) Work(ctx context.Context, q *Queue, w Worker, taken func(due int)) {
	closed := false
	for !closed {
		Isolate(func() {
			for e.workOnce(ctx, q, w, taken) {
			}
			closed = true
		})
	}
}

// workOnce reconciles the next key of a queue. It returns false if the queue is closed.
func (e *Engine) workOnce(ctx context.Context, q *Queue, w Worker, taken func(due int)) (open bool) {
	key, open := q.Next()
	if !open {
		return false
	}
	var result Result
	err := ErrPanicked // unless Reconcile returns
	defer func() {
		if value := recover(); value != nil { // a Reconciler has recovered from its own
			e.Guard.Report(ctx, Place{InPass, w.Name(), key}, caughtNow(value))
		}
		if err != nil {
			e.retry(ctx, q, w.Name(), key, err)
			return
		}
		q.Done(key, result.At)
	}()
	if taken != nil {
		taken(q.Depth())
	}
	result, err = w.Reconcile(ctx, key)
	return true
}

// retry queues a key whose pass could not be finished again, after a pause.
func (e *Engine) retry(ctx context.Context, q *Queue, kind string, key object.Key, err error) {
	if ctx.Err() != nil {
		q.Fail(key, time.Time{})
		return
	}
	shortest := Backoff(q.Failed(key))
	wait := shortest
	defer func() { q.Fail(key, e.Now().Add(wait)) }()
	e.Guard.Hook(kind, key, func() { // Log and Jitter are the program's, and may panic
		e.Log.LogAttrs(ctx, slog.LevelWarn, "pass not finished", slog.String("kind", kind),
			slog.String("object", key.String()), slog.String("error", err.Error()), slog.Duration("retry", shortest))
		wait = max(shortest, e.Jitter(shortest))
	})
}

// EventType of an event: Normal and Warning are those of Kubernetes.
type EventType string

// The event types.
const (
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
	// Progress: a step of an operation that does not end it.
	Progress EventType = "Progress"
)

// Hooks tell what happens, by the name of the kind. Each is called while the pass waits. A hook that
// panics ends nothing. Nil fields are left out.
type Hooks struct {
	// Event is called for each change, failure or tolerated fault.
	Event func(kind string, key object.Key, typ EventType, reason, why string)
	// Plan is called for each order and each plan that was carried out, with the decision's own value.
	Plan func(kind string, key object.Key, why decision.Why)
	// Transition is called for each transition of a state machine, once it is stored.
	Transition func(kind string, key object.Key, move decision.Move, why decision.Why)
	// Effect is called for each call or order, with how long it took.
	Effect func(kind string, key object.Key, name string, took time.Duration, err error)
	// DryRun tells what was not done in a dry run, and why it would be.
	DryRun func(kind string, key object.Key, what, reason, why string)
	// Panic is called for every recovered panic. in is where, see [Place]; what never holds the panic's value.
	Panic func(kind string, key object.Key, in, what string)
	// Pass is called when a pass ends.
	Pass func(kind string, key object.Key, steps int, result Result, err error)
}

// Result is how a pass ended.
type Result struct {
	// At is when to look again though nothing has changed; zero: never. A
	// time that has passed means at once.
	At  time.Time
	Why decision.Why // zero: nothing to say
}

// CodeOf returns the code of an error of a store or of the cluster: that of codes.Of if the error
// has one, else that of the same meaning as the error of package store that it is. An error that
// says nothing counts as UNAVAILABLE: the server did not answer. Nil is OK.
func CodeOf(err error) codes.Code {
	if code := codes.Of(err); code != codes.Unknown {
		return code
	}
	for _, known := range [...]struct {
		err  error
		code codes.Code
	}{
		{store.ErrInvalid, codes.InvalidArgument},
		{store.ErrForbidden, codes.PermissionDenied},
		{store.ErrUnauthenticated, codes.Unauthenticated},
		{store.ErrConflict, codes.Aborted},
		{store.ErrNotFound, codes.NotFound},
		{store.ErrAlreadyExists, codes.AlreadyExists},
		{store.ErrThrottled, codes.Unavailable},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return codes.Unavailable
}
