package sim

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// hooks returns the hooks of a process: its user's, and the world's own if Options.Tell is set.
func (p *process) hooks(hooks manager.Hooks) manager.Hooks {
	if p.trace == nil {
		return hooks
	}
	event, effect := hooks.Event, hooks.Effect
	hooks.Event = func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
		if !p.dead {
			p.tell("%s %s: %s: %s", kind, key.Name, reason, why)
		}
		if event != nil {
			event(kind, key, typ, reason, why)
		}
	}
	hooks.Effect = func(kind manager.Kind, key object.Key, name string, took time.Duration, err error) {
		switch {
		case p.dead || kind == manager.KindReachability && errors.Is(err, store.ErrNotFound): // that is an answer
		case err != nil:
			p.tell("%s %s: %s failed: %v", kind, key.Name, name, err)
		default:
			p.tell("%s %s: %s", kind, key.Name, name)
		}
		if effect != nil {
			effect(kind, key, name, took, err)
		}
	}
	return hooks
}

// followed: the manager has deleted a machine because somebody deletes its node.
type followed struct{ key object.Key }

// follows has a process tell of machines that follow their nodes.
func (p *process) follows(hooks manager.Hooks) manager.Hooks {
	tell := hooks.Event
	hooks.Event = func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
		if tell != nil {
			tell(kind, key, typ, reason, why)
		}
		if kind == manager.KindMachine && reason == machine.ReasonNodeDeletion.String() {
			p.emit(followed{key})
		}
	}
	return hooks
}
