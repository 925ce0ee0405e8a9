package manager

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// Where else than in passes and hooks a panic is contained, as Hooks.Panicked says it.
const (
	inWake   = "wake"
	inWatch  = "watch"
	inDriver = "driver"
	// inIndexes is what a LeftError says of the look at indexes with which Run begins.
	inIndexes = "look at indexes"
)

// ErrPanicked is the error of a pass in which something panicked or called runtime.Goexit: a
// decision, a port, a batch's order. Call Reconcile again after a pause, as after any error.
var ErrPanicked = engine.ErrPanicked

// place is where something of a kind panicked.
func place(in string, kind Kind, key object.Key) engine.Place {
	return engine.Place{In: in, Kind: string(kind), Key: key}
}

// engineHooks are the hooks that the engine calls, and whose panics it contains.
func engineHooks(h *Hooks) engine.Hooks {
	var out engine.Hooks
	if event := h.Event; event != nil {
		out.Event = func(kind string, key object.Key, typ EventType, reason, why string) {
			event(Kind(kind), key, typ, reason, why)
		}
	}
	if told := h.Told; told != nil {
		out.Told = func(kind string, key object.Key, why decision.Why) { told(Kind(kind), key, why) }
	}
	if transition := h.Transition; transition != nil {
		out.Transition = func(_ string, key object.Key, move machine.Move, why decision.Why) { transition(key, move, why) }
	}
	if effect := h.Effect; effect != nil {
		out.Effect = func(kind string, key object.Key, name string, took time.Duration, err error) {
			effect(Kind(kind), key, name, took, err)
		}
	}
	if observed := h.Observed; observed != nil {
		out.Withheld = func(kind string, key object.Key, what, reason, why string) {
			observed(Kind(kind), key, what, reason, why)
		}
	}
	if panicked := h.Panicked; panicked != nil {
		out.Panicked = func(kind string, key object.Key, in, what string) { panicked(Kind(kind), key, in, what) }
	}
	if pass := h.Pass; pass != nil {
		out.Pass = func(kind string, key object.Key, steps int, result Result, err error) {
			pass(Kind(kind), key, steps, result, err)
		}
	}
	return out
}

// contain returns hooks whose panics end nothing: the pass goes on as if the hook had returned. Those
// that the engine calls are not among them.
func contain(g *engine.Guard, h Hooks) Hooks {
	hook := func(kind Kind, key object.Key, do func()) { g.Hook(string(kind), key, do) }
	if queue := h.Queue; queue != nil {
		h.Queue = func(kind Kind, due int) { hook(kind, Fleet, func() { queue(kind, due) }) }
	}
	if call := h.Call; call != nil {
		h.Call = func(name string, code codes.Code, took time.Duration) {
			hook(KindMachine, Fleet, func() { call(name, code, took) })
		}
	}
	if overdue := h.Overdue; overdue != nil {
		h.Overdue = func(name string, n int) {
			hook(KindMachine, Fleet, func() { overdue(name, n) })
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
	return h
}
