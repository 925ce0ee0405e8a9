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

// EventType of an event: Normal and Warning are those of Kubernetes.
type EventType = engine.EventType

// The event types.
const (
	Normal  = engine.Normal
	Warning = engine.Warning
	// Progress: an operation on a machine (creation, in-place update or deletion) has begun, or has come to another
	// stage. The status has it, too, until the next step.
	Progress = engine.Progress
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
	// DryRun is called for what was not done because of Options.DryRun: what, as in "update machine
	// fleet/a", and why. While the same is decided again and again, DryRun is called once. If only the
	// numbers in why have changed, it is called again, but not sooner than Options.Tuning.Resync after
	// the last time.
	DryRun func(kind Kind, key object.Key, what, reason, why string)
	// Pass is called when a pass ends.
	Pass func(kind Kind, key object.Key, steps int, result Result, err error)
	// Queue tells, whenever Run takes a key up, how many others of the kind
	// are due.
	Queue func(kind Kind, due int)
	// Panic is called for every recovered panic and each call of runtime.Goexit. For the
	// same panic, the Warning event Panicked is emitted at most once in ten minutes, or
	// again after a pass that succeeded. The argument in is where: "pass" (a decision, a
	// port, an order of a batch), "driver", "hook", "wake" (finding what a change concerns)
	// or "watch"; what is how it ended, in at most a few hundred bytes and without the
	// value of the panic, which may be a secret.
	Panic func(kind Kind, key object.Key, in, what string)
	// Call is called for each call of Driver or Pools.Driver, by its name, that was answered with
	// this code; a panic is codes.Internal. A call that was not made, or not waited for, see
	// Overdue, has the code that its caller got.
	Call func(call string, code codes.Code, took time.Duration)
	// Overdue is called when a call of Driver or Pools.Driver, by its name, becomes overdue: it has not
	// returned within Options.Tuning.CallGrace after the end of its context. It is called again when that
	// call returns. overdue is how many calls are overdue then. The events CallOverdue and
	// OverdueCallReturned name the machine, pool or class; TooManyOverdueCalls says that no more are made.
	Overdue func(call string, overdue int)
	// Span is called when a part of a machine's life has ended, with how long it took according to what
	// is stored: see the Spans. Never negative.
	Span func(key object.Key, span Span, took time.Duration)
	// Frozen is called with whether everything is frozen because of an API server, "control" or
	// "target": after the first check of that server, and when it changes.
	Frozen func(server string, frozen bool)
	// Permits is called with how many replacements of a deployment, or of a set without one, are under
	// way by permit, and how many may be, whenever that changes. Both are zero when the object is gone.
	Permits func(kind Kind, key object.Key, used, limit int)
	// ClassBackoff is called with each answer for a class whose creations the provider refuses: wait is
	// the time until the next machine of the class is tried. Zero: the class is not slowed any more.
	ClassBackoff func(class object.Key, wait time.Duration)
}

// Span is a part of a machine's life, see Hooks.Span.
type Span = port.Span

// The spans. If the beginning of a span is not known, such as after a restart, the time of the last
// recorded step before it counts.
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
