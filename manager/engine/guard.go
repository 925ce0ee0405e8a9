package engine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Where a panic was contained, as Hooks.Panic says it.
const (
	InPass = "pass"
	InHook = "hook"
)

// reasonPanicked is the reason of the event about a panic.
const reasonPanicked = "Panicked"

// Guard confines a panic to the object whose pass it was, and reports it. Passes and hooks go through it,
// and so should everything else that runs code of others, such as functions that find the objects that a
// change concerns. [Contain] does the same for the orders of a batch.
type Guard struct {
	log   *slog.Logger
	hooks Hooks // as they were given
	now   func() time.Time

	mu       sync.Mutex
	reported map[Place]map[string]time.Time // when each text was reported; a pass that succeeds clears its Place
}

// Place is where something panicked: in what (see InPass and InHook), and for which object.
type Place struct {
	In   string
	Kind string
	Key  object.Key
}

func newGuard(log *slog.Logger, hooks Hooks, now func() time.Time) *Guard {
	return &Guard{log: log, hooks: hooks, now: now, reported: make(map[Place]map[string]time.Time)}
}

// Run calls do and reports its panic. It returns nil if do returned. A runtime.Goexit of do ends the
// goroutine: Run does not return.
func (g *Guard) Run(ctx context.Context, at Place, do func()) *Caught {
	end := Catch(do)
	if end != nil {
		g.Report(ctx, at, end)
	}
	return end
}

// Report passes a panic to Hooks.Panic. It logs it and emits an event, but for the same panic at most once
// in reportedAgain, or again after a pass that succeeded. Clock, log and hooks are code of others, too: a
// panic there can't be reported any more.
func (g *Guard) Report(ctx context.Context, at Place, end *Caught) {
	if g.hooks.Panic != nil {
		Catch(func() { g.hooks.Panic(at.Kind, at.Key, at.In, end.What) })
	}
	if !g.first(at, end.What) {
		return
	}
	Catch(func() {
		g.log.LogAttrs(ctx, slog.LevelError, "panicked; contained, and tried again", slog.String("kind", at.Kind),
			slog.String("object", at.Key.String()), slog.String("in", at.In), slog.String("panic", end.What),
			slog.String("stack", string(end.Stack)))
	})
	if g.hooks.Event != nil {
		Catch(func() { g.hooks.Event(at.Kind, at.Key, Warning, reasonPanicked, panicSentence(at, end)) })
	}
}

func panicSentence(at Place, end *Caught) string {
	return "a " + at.In + " panicked: " + end.What + "; the log has the stack; it is tried again"
}

const (
	// reportedAgain is after what time the same panic of the same object is logged again.
	reportedAgain = 10 * time.Minute
	// placesReported and textsReported, of each place, bound Guard.reported.
	placesReported = 10_000
	textsReported  = 8
)

// first reports whether the panic was not logged within reportedAgain, and remembers it.
func (g *Guard) first(at Place, what string) bool {
	var now time.Time
	Catch(func() { now = g.now() })
	g.mu.Lock()
	defer g.mu.Unlock()
	texts := g.reported[at]
	if recently(texts[what], now) {
		return false
	}
	if texts == nil && len(g.reported) >= placesReported {
		g.forgetOld(now)
	}
	if texts == nil || len(texts) >= textsReported {
		texts = make(map[string]time.Time)
		g.reported[at] = texts
	}
	texts[what] = now
	return true
}

// recently reports whether something was logged less than reportedAgain ago. It returns false if the clock
// went back.
func recently(reported, now time.Time) bool {
	ago := now.Sub(reported)
	return !reported.IsZero() && ago >= 0 && ago < reportedAgain
}

// forgetOld makes room: it drops what may be logged again or, if that is not enough, everything.
func (g *Guard) forgetOld(now time.Time) {
	maps.DeleteFunc(g.reported, func(_ Place, texts map[string]time.Time) bool {
		maps.DeleteFunc(texts, func(_ string, reported time.Time) bool { return !recently(reported, now) })
		return len(texts) == 0
	})
	if len(g.reported) >= placesReported {
		clear(g.reported)
	}
}

// succeeded forgets what an object's passes panicked with.
func (g *Guard) succeeded(at Place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.reported) > 0 {
		delete(g.reported, at)
	}
}

// contain returns hooks whose panics end nothing: the pass goes on as if the hook had returned.
func (g *Guard) contain(h Hooks) Hooks {
	if event := h.Event; event != nil {
		h.Event = func(kind string, key object.Key, typ EventType, reason, why string) {
			g.Hook(kind, key, func() { event(kind, key, typ, reason, why) })
		}
	}
	if plan := h.Plan; plan != nil {
		h.Plan = func(kind string, key object.Key, why decision.Why) {
			g.Hook(kind, key, func() { plan(kind, key, why) })
		}
	}
	if transition := h.Transition; transition != nil {
		h.Transition = func(kind string, key object.Key, move decision.Move, why decision.Why) {
			g.Hook(kind, key, func() { transition(kind, key, move, why) })
		}
	}
	if effect := h.Effect; effect != nil {
		h.Effect = func(kind string, key object.Key, name string, took time.Duration, err error) {
			g.Hook(kind, key, func() { effect(kind, key, name, took, err) })
		}
	}
	if withheld := h.DryRun; withheld != nil {
		h.DryRun = func(kind string, key object.Key, what, reason, why string) {
			g.Hook(kind, key, func() { withheld(kind, key, what, reason, why) })
		}
	}
	if pass := h.Pass; pass != nil {
		h.Pass = func(kind string, key object.Key, steps int, result Result, err error) {
			g.Hook(kind, key, func() { pass(kind, key, steps, result, err) })
		}
	}
	return h
}

// Hook calls a hook about an object. Its panic ends nothing.
func (g *Guard) Hook(kind string, key object.Key, do func()) {
	g.Run(context.Background(), Place{InHook, kind, key}, do)
}

// ErrPanicked is the error of a pass in which something panicked or called runtime.Goexit: a decision,
// a port, an order of a batch. Call Reconcile again after a pause, as after any error.
var ErrPanicked = errors.New("the pass panicked")

// Caught is the end of code that did not return: it panicked, or called runtime.Goexit.
type Caught struct {
	// What says how it ended, and where. It holds no value of a panic but the runtime's own
	// errors, which consist of numbers and type names: any other may be a secret.
	What  string
	Stack []byte
}

// NewCaught describes a panic that was caught elsewhere. prefix says where.
func NewCaught(prefix string, value any, stack []byte) *Caught {
	return &Caught{bounded(prefix + ": " + describe(value)), stack}
}

// longestWhat bounds Caught.What, in bytes.
const longestWhat = 300

// Error says everything, for a panic that is not caught again.
func (c *Caught) Error() string { return c.What + "\n" + string(c.Stack) }

// Catch calls do and returns its panic; nil: do returned. A runtime.Goexit can't be caught: it ends the
// goroutine, after its deferred calls.
func Catch(do func()) (end *Caught) {
	defer func() {
		if value := recover(); value != nil {
			end = caughtNow(value)
		}
	}()
	do()
	return nil
}

// Isolate calls do in a goroutine of its own, waits for its end, and returns nil if do returned. It is
// for what must be started again when it ends, such as a worker or a watch: a panic or a runtime.Goexit
// ends that goroutine only.
func Isolate(do func()) *Caught {
	ended := make(chan *Caught, 1)
	go func() {
		returned := false
		defer func() {
			if returned {
				ended <- nil
				return
			}
			ended <- caughtNow(recover())
		}()
		do()
		returned = true
	}()
	return <-ended
}

// caughtNow describes the panic, or the runtime.Goexit if value is nil, under whose deferred calls
// it is called. What was caught before, in another goroutine, stays as it is.
func caughtNow(value any) *Caught {
	if before, again := value.(*Caught); again {
		return before
	}
	what := describe(value)
	if at := origin(); at != "" {
		what += " in " + at
	}
	return &Caught{What: bounded(what), Stack: debug.Stack()}
}

// describe says what a panic's value was, as far as that can't be a secret.
func describe(value any) string {
	if value == nil {
		return "runtime.Goexit was called"
	}
	t := reflect.TypeOf(value)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if err, ok := value.(runtime.Error); ok && t.PkgPath() == "runtime" {
		return err.Error()
	}
	return "panic with a value of type " + reflect.TypeOf(value).String()
}

// bounded returns a text cut to longestWhat bytes.
func bounded(text string) string {
	if len(text) <= longestWhat {
		return text
	}
	return strings.ToValidUTF8(text[:longestWhat], "") + "…"
}

// origin names the function that panicked or called runtime.Goexit; empty: unknown.
func origin() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	began := false
	for {
		frame, more := frames.Next()
		name := frame.Function
		switch {
		case name == "runtime.gopanic" || name == "runtime.Goexit":
			began = true
		case began && !strings.HasPrefix(name, "runtime."):
			return name[strings.LastIndex(name, "/")+1:]
		}
		if !more {
			return ""
		}
	}
}

// Contain returns an Each whose orders can't end the process: when all have ended, the first panic
// is raised again in the goroutine that gave the orders, whose pass it ends. So is a runtime.Goexit of an
// order in another goroutine.
func Contain(each func(context.Context, int, func(int))) func(context.Context, int, func(int)) {
	return func(ctx context.Context, n int, do func(int)) {
		var first atomic.Pointer[Caught]
		each(ctx, n, func(i int) {
			returned := false
			defer func() {
				if !returned {
					first.CompareAndSwap(nil, caughtNow(recover()))
				}
			}()
			do(i)
			returned = true
		})
		if c := first.Load(); c != nil {
			panic(c)
		}
	}
}
