package controllers

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// chain calls all hooks, in order. The embedder's are last, so that a panic in one does not stop
// any other.
func chain(all ...manager.Hooks) manager.Hooks {
	h := manager.Hooks{
		Event: func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
			for i := range all {
				if all[i].Event != nil {
					all[i].Event(kind, key, typ, reason, why)
				}
			}
		},
		Transition: func(key object.Key, move machine.Move, why decision.Why) {
			for i := range all {
				if all[i].Transition != nil {
					all[i].Transition(key, move, why)
				}
			}
		},
		Effect: func(kind manager.Kind, key object.Key, name string, took time.Duration, err error) {
			for i := range all {
				if all[i].Effect != nil {
					all[i].Effect(kind, key, name, took, err)
				}
			}
		},
		Pass: func(kind manager.Kind, key object.Key, steps int, result manager.Result, err error) {
			for i := range all {
				if all[i].Pass != nil {
					all[i].Pass(kind, key, steps, result, err)
				}
			}
		},
		Observed: func(kind manager.Kind, key object.Key, what, reason, why string) {
			for i := range all {
				if all[i].Observed != nil {
					all[i].Observed(kind, key, what, reason, why)
				}
			}
		},
	}
	chainFigures(&h, all)
	chainBounds(&h, all)
	return h
}

// chainFigures is chain for the hooks that report measurements.
func chainFigures(h *manager.Hooks, all []manager.Hooks) {
	h.Queue = func(kind manager.Kind, due int) {
		for i := range all {
			if all[i].Queue != nil {
				all[i].Queue(kind, due)
			}
		}
	}
	h.Panicked = func(kind manager.Kind, key object.Key, in, what string) {
		for i := range all {
			if all[i].Panicked != nil {
				all[i].Panicked(kind, key, in, what)
			}
		}
	}
	h.Call = func(call string, code codes.Code, took time.Duration) {
		for i := range all {
			if all[i].Call != nil {
				all[i].Call(call, code, took)
			}
		}
	}
	h.Overdue = func(call string, overdue int) {
		for i := range all {
			if all[i].Overdue != nil {
				all[i].Overdue(call, overdue)
			}
		}
	}
	h.Lasted = func(key object.Key, span manager.Span, took time.Duration) {
		for i := range all {
			if all[i].Lasted != nil {
				all[i].Lasted(key, span, took)
			}
		}
	}
}

// chainBounds is chain for the hooks that report limits in effect.
func chainBounds(h *manager.Hooks, all []manager.Hooks) {
	h.Frozen = func(server string, frozen bool) {
		for i := range all {
			if all[i].Frozen != nil {
				all[i].Frozen(server, frozen)
			}
		}
	}
	h.Permits = func(kind manager.Kind, key object.Key, used, limit int) {
		for i := range all {
			if all[i].Permits != nil {
				all[i].Permits(kind, key, used, limit)
			}
		}
	}
	h.Slowed = func(class object.Key, wait time.Duration) {
		for i := range all {
			if all[i].Slowed != nil {
				all[i].Slowed(class, wait)
			}
		}
	}
}
