package manager

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Where a panic was contained, as Hooks.Panicked says it.
const (
	inPass   = "pass"
	inHook   = "hook"
	inWake   = "wake"
	inWatch  = "watch"
	inDriver = "driver"
)

// reasonPanicked is the reason of the event about a panic.
const reasonPanicked = "Panicked"

// containment keeps a panic with the object whose pass it was, and tells of it. Everything that
// runs code of others, or decides, goes through it: passes (contained), hooks, wake-ups and watches;
// Each carries what a batch's goroutine panics with to the pass.
type containment struct {
	log   *slog.Logger
	hooks Hooks // as they were given
	now   func() time.Time

	mu   sync.Mutex
	told map[place]map[string]time.Time // when each text was told; those of passes until one succeeds
}

// place is where something panicked.
type place struct {
	in   string
	kind Kind
	key  object.Key
}

func newContainment(log *slog.Logger, hooks Hooks, now func() time.Time) *containment {
	return &containment{log: log, hooks: hooks, now: now, told: make(map[place]map[string]time.Time)}
}

// run calls do, tells of its panic, and reports whether it returned.
func (c *containment) run(ctx context.Context, at place, do func()) *caught {
	end := catch(do)
	if end != nil {
		c.tell(ctx, at, end)
	}
	return end
}

// tell counts a panic. The same one, which comes again with each try, is logged and told as an
// event once in toldAgain; one of a pass also when it comes after a pass that succeeded. Clock, log
// and hooks are code of others too: what panics there has nobody left to be told to.
func (c *containment) tell(ctx context.Context, at place, end *caught) {
	if c.hooks.Panicked != nil {
		catch(func() { c.hooks.Panicked(at.kind, at.key, at.in, end.what) })
	}
	if !c.first(at, end.what) {
		return
	}
	catch(func() {
		c.log.LogAttrs(ctx, slog.LevelError, "panicked; contained, and tried again", slog.String("kind", string(at.kind)),
			slog.String("object", at.key.String()), slog.String("in", at.in), slog.String("panic", end.what),
			slog.String("stack", string(end.stack)))
	})
	if c.hooks.Event != nil {
		catch(func() { c.hooks.Event(at.kind, at.key, Warning, reasonPanicked, sentence(at, end)) })
	}
}

func sentence(at place, end *caught) string {
	return "a " + at.in + " panicked: " + end.what + "; the log has the stack; it is tried again"
}

const (
	// toldAgain is after what time the same panic of the same object is told again.
	toldAgain = 10 * time.Minute
	// placesTold and textsTold, of each place, bound containment.told.
	placesTold = 10_000
	textsTold  = 8
)

// first reports whether the panic was not told in the last toldAgain, and remembers it.
func (c *containment) first(at place, what string) bool {
	var now time.Time
	catch(func() { now = c.now() })
	c.mu.Lock()
	defer c.mu.Unlock()
	texts := c.told[at]
	if lately(texts[what], now) {
		return false
	}
	if texts == nil && len(c.told) >= placesTold {
		c.forgetOld(now)
	}
	if texts == nil || len(texts) >= textsTold {
		texts = make(map[string]time.Time)
		c.told[at] = texts
	}
	texts[what] = now
	return true
}

// lately reports whether something was told less than toldAgain ago. A clock that went back says
// that it was not.
func lately(told, now time.Time) bool {
	ago := now.Sub(told)
	return !told.IsZero() && ago >= 0 && ago < toldAgain
}

// forgetOld makes room: it drops what may be told again, or else everything.
func (c *containment) forgetOld(now time.Time) {
	maps.DeleteFunc(c.told, func(_ place, texts map[string]time.Time) bool {
		maps.DeleteFunc(texts, func(_ string, told time.Time) bool { return !lately(told, now) })
		return len(texts) == 0
	})
	if len(c.told) >= placesTold {
		clear(c.told)
	}
}

// succeeded forgets what an object's passes panicked with.
func (c *containment) succeeded(kind Kind, key object.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.told) > 0 {
		delete(c.told, place{inPass, kind, key})
	}
}

// contained is a reconciler whose panic ends one pass of one object.
type contained struct {
	Reconciler
	*containment
	options *Options
}

// Reconcile implements Reconciler.
func (r contained) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	var result Result
	var err error
	kind := r.Kind()
	end := r.run(ctx, place{inPass, kind, key}, func() { result, err = r.Reconciler.Reconcile(ctx, key) })
	if end == nil {
		if err == nil {
			r.succeeded(kind, key)
		}
		return result, err
	}
	r.abandon(ctx, kind, key)
	err = fmt.Errorf("%s %s: %w: %s", kind, key, ErrPanicked, end.what)
	r.options.Hooks.pass(kind, key, 0, Result{}, err)
	return Result{}, err
}

// abandon sets aside what the object's drain holds of the limit of drains.
func (r contained) abandon(ctx context.Context, kind Kind, key object.Key) {
	d, limits := r.options.Drainer.(abandoner)
	if !limits || kind != KindMachine && kind != KindPool {
		return
	}
	node := ""
	catch(func() { // the store may be what panicked
		if kind == KindMachine {
			if m, err := r.options.Machines.Get(ctx, key); err == nil {
				node = m.Spec.NodeName
			}
		}
	})
	d.abandon(key, node)
}

// driverPanicked tells of a panic of a driver, whose call is INTERNAL.
func (c *containment) driverPanicked(p driver.Panic) {
	at := place{inDriver, Kind(p.Kind), p.Object}
	if p.Object == (object.Key{}) {
		at.kind, at.key = KindClass, p.Class
	}
	c.tell(context.Background(), at, &caught{bounded(p.Method.String() + ": " + describe(p.Value)), p.Stack})
}

// contain returns hooks whose panics end nothing: the pass goes on as if the hook had returned.
func (c *containment) contain(h Hooks) Hooks {
	hook := func(kind Kind, key object.Key, do func()) { c.run(context.Background(), place{inHook, kind, key}, do) }
	if event := h.Event; event != nil {
		h.Event = func(kind Kind, key object.Key, typ EventType, reason, why string) {
			hook(kind, key, func() { event(kind, key, typ, reason, why) })
		}
	}
	if transition := h.Transition; transition != nil {
		h.Transition = func(key object.Key, move machine.Move, why decision.Why) {
			hook(KindMachine, key, func() { transition(key, move, why) })
		}
	}
	if effect := h.Effect; effect != nil {
		h.Effect = func(kind Kind, key object.Key, name string, took time.Duration, err error) {
			hook(kind, key, func() { effect(kind, key, name, took, err) })
		}
	}
	if observed := h.Observed; observed != nil {
		h.Observed = func(kind Kind, key object.Key, what, reason, why string) {
			hook(kind, key, func() { observed(kind, key, what, reason, why) })
		}
	}
	if pass := h.Pass; pass != nil {
		h.Pass = func(kind Kind, key object.Key, steps int, result Result, err error) {
			hook(kind, key, func() { pass(kind, key, steps, result, err) })
		}
	}
	c.containGauges(&h)
	if queue := h.Queue; queue != nil {
		h.Queue = func(kind Kind, due int) { hook(kind, Fleet, func() { queue(kind, due) }) }
	}
	return h
}

// containGauges is contain for hooks that tell figures.
func (c *containment) containGauges(h *Hooks) {
	hook := func(kind Kind, key object.Key, do func()) { c.run(context.Background(), place{inHook, kind, key}, do) }
	if call := h.Call; call != nil {
		h.Call = func(name string, code codes.Code, took time.Duration) {
			hook(KindMachine, Fleet, func() { call(name, code, took) })
		}
	}
	if lasted := h.Lasted; lasted != nil {
		h.Lasted = func(key object.Key, span Span, took time.Duration) {
			hook(KindMachine, key, func() { lasted(key, span, took) })
		}
	}
	if frozen := h.Frozen; frozen != nil {
		h.Frozen = func(server string, is bool) { hook(KindReachability, Fleet, func() { frozen(server, is) }) }
	}
	if permits := h.Permits; permits != nil {
		h.Permits = func(kind Kind, key object.Key, used, limit int) {
			hook(kind, key, func() { permits(kind, key, used, limit) })
		}
	}
	if slowed := h.Slowed; slowed != nil {
		h.Slowed = func(class object.Key, wait time.Duration) {
			hook(KindClass, class, func() { slowed(class, wait) })
		}
	}
}
