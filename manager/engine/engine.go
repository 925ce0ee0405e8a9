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
	// Resync is when to look again at an object that only a change can help. Zero: 10 min.
	Resync time.Duration
	// DryRun withholds each plan that acts: what it would change is told instead.
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

// Tell logs an event and hands it to the hook. With a memory it does so once, for as long as that
// remembers the event.
func (e *Engine) Tell(ctx context.Context, m *Memory, kind string, key object.Key, typ EventType, why decision.Why) {
	level := slog.LevelInfo
	if typ == Warning {
		level = slog.LevelWarn
	}
	if e.Hooks.Told != nil && m == nil {
		e.Hooks.Told(kind, key, why)
	}
	if e.Hooks.Event == nil && !e.Log.Enabled(ctx, level) {
		return
	}
	reason, sentence := why.Reason.String(), codes.Printable(why.String()) // names and messages are others'
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
// the hook is not told.
func (e *Engine) Timed(kind string, key object.Key, name string, do func() error) error {
	start := e.Now()
	err := do()
	if e.Hooks.Effect != nil && !(e.DryRun && errors.Is(err, store.ErrWithheld)) {
		e.Hooks.Effect(kind, key, name, e.Now().Sub(start), err)
	}
	return err
}

// Freshness returns how reads were made that began then and have just ended: from caches unless live.
func (e *Engine) Freshness(began time.Time, live bool) decision.Freshness {
	if !live {
		return decision.Freshness{}
	}
	return decision.Freshness{Began: began, Ended: e.Now()}
}
