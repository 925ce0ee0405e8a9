package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/port"
	"github.com/millwright-go/millwright/object"
)

// EventType of an event, in the spelling of Kubernetes.
type EventType = engine.EventType

// The event types.
const (
	Normal  = engine.Normal
	Warning = engine.Warning
)

// Hooks report what happens, for metrics and for events. Each is called after the fact,
// while the pass waits, so it must be quick and safe for concurrent use. Nil fields are
// left out. No secret reaches a hook. A panic of a hook is contained: the pass
// continues.
type Hooks struct {
	// Event is called for each transition, failure or tolerated fault. The same one is
	// emitted once, for as long as the process remembers.
	Event func(kind Kind, key object.Key, typ EventType, reason, why string)
	// Plan is called for each order and each plan that was carried out, with the decision's own
	// value. Event has the orders in words. The numbers are why.Figures.
	Plan func(kind Kind, key object.Key, why decision.Why)
	// Transition is called for each transition of a state machine, once it is stored.
	Transition func(key object.Key, move machine.Move, why decision.Why)
	// Effect is called for each call to driver or cluster, and for each bulk order.
	Effect func(kind Kind, key object.Key, name string, took time.Duration, err error)
	// DryRun tells what was not done because of Options.DryRun: what, as in
	// "update machine fleet/a", and why. The same is told once for as long as it
	// is decided again and again; when but the numbers in why have changed, not
	// sooner than Options.Tuning.Resync after the last time.
	DryRun func(kind Kind, key object.Key, what, reason, why string)
	// Pass is called when a pass ends.
	Pass func(kind Kind, key object.Key, steps int, result Result, err error)
	// Queue tells, whenever Run takes a key up, how many others of the kind
	// are due.
	Queue func(kind Kind, due int)
	// Panic is called for every recovered panic and each call of runtime.Goexit. The
	// Warning event Panic is emitted at most once in ten minutes. in is where: "pass"
	// (a decision, a port, an order of a batch), "driver", "hook", "wake" (finding what a
	// change concerns) or "watch". what says how it ended, in at most a few hundred bytes
	// and without the value of the panic, which may be a secret.
	Panic func(kind Kind, key object.Key, in, what string)
	// Call is called for each call of Driver or Pools.Driver, by its name, that was answered with
	// this code; a panic is codes.Internal. A call that was not made, or not waited for, see
	// Overdue, has the code that its caller got.
	Call func(call string, code codes.Code, took time.Duration)
	// Overdue is called for a call of Driver or Pools.Driver, by its name, that has not returned
	// Options.Tuning.CallGrace after its context ended, and of one that was so and has returned:
	// overdue is how many are so then. The events CallOverdue and OverdueCallReturned say for what
	// machine, pool or class; TooManyOverdueCalls says that no more are made.
	Overdue func(call string, overdue int)
	// Span tells how long a part of a machine's life took that has just ended, from
	// what is stored of it: see the Spans. Never negative.
	Span func(key object.Key, span Span, took time.Duration)
	// Frozen reports whether everything is frozen because of an API server: "control" or
	// "target". It is told at the first look, and when it changes.
	Frozen func(server string, frozen bool)
	// Permits tells how many replacements of a deployment, or of a set without one, are
	// under way by permit, and how many may be. It is told when that changes; both are
	// zero when the object is gone.
	Permits func(kind Kind, key object.Key, used, limit int)
	// ClassBackoff tells after how long the next machine of a class is tried, whose creations
	// the provider refuses; zero: no longer. It is told with each answer.
	ClassBackoff func(class object.Key, wait time.Duration)
}

// Span is a part of a machine's life whose length is told, see Hooks.Span.
type Span = port.Span

// The spans. Where no time of the beginning is known, such as after a restart, that of the
// step recorded before counts.
const (
	SpanCreation       = port.SpanCreation
	SpanInitialization = port.SpanInitialization
	SpanJoin           = port.SpanJoin
	SpanDrain          = port.SpanDrain
	SpanDeletion       = port.SpanDeletion
)

func (h *Hooks) queue(kind Kind, due int) {
	if h.Queue != nil {
		h.Queue(kind, due)
	}
}

// LogHooks returns hooks that log what Options.Log does not: each step of a state machine, as in
// "Pending -> Running (joined)", at Info; calls to driver and cluster, at Debug or, if they failed, at
// Warn; freezes and slowed classes. Set other fields of the result for hooks of your own.
func LogHooks(log *slog.Logger) Hooks {
	write := func(level slog.Level, msg string, attrs ...slog.Attr) {
		log.LogAttrs(context.Background(), level, msg, attrs...)
	}
	return Hooks{
		Transition: func(key object.Key, move machine.Move, why decision.Why) {
			write(slog.LevelInfo, move.String(), append([]slog.Attr{
				slog.String("table", move.Table), slog.String("object", key.String()), slog.String("why", why.String()),
			}, engine.Figures(why)...)...)
		},
		Effect: func(kind Kind, key object.Key, name string, took time.Duration, err error) {
			attrs := []slog.Attr{slog.String("kind", string(kind)), slog.String("object", key.String()), slog.Duration("took", took)}
			if err != nil {
				write(slog.LevelWarn, name, append(attrs, slog.String("error", err.Error()))...)
				return
			}
			write(slog.LevelDebug, name, attrs...)
		},
		Frozen: func(server string, frozen bool) {
			if frozen {
				write(slog.LevelWarn, "everything is frozen: an API server does not answer", slog.String("server", server))
				return
			}
			write(slog.LevelInfo, "the API server answers", slog.String("server", server))
		},
		ClassBackoff: func(class object.Key, wait time.Duration) {
			if wait > 0 {
				write(slog.LevelWarn, "the provider refuses machines of a class", slog.String("class", class.String()), slog.Duration("next", wait))
			}
		},
	}
}
