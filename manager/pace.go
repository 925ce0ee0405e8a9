package manager

import (
	"context"
	"sync"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// pace is what this process remembers of the creates of each class, for all of
// its passes. A class that nothing was refused of is not in it.
type pace struct {
	mu      sync.Mutex
	classes map[object.Key]safety.Pace
	turns   map[object.Key]object.Key // the class of each machine that has a turn
	options *Options
}

func newPace(o *Options) *pace {
	return &pace{options: o, classes: make(map[object.Key]safety.Pace), turns: make(map[object.Key]object.Key)}
}

func (r *pace) of(class object.Key) safety.Pace {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.classes[class]
}

// knows tells whether anything is known of a class.
func (r *pace) knows(class object.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.classes[class]
	return known
}

// ask asks for a machine's turn.
func (r *pace) ask(m, class object.Key, ask func(safety.Pace) (safety.Pace, machine.CreateTurn)) *machine.CreateTurn {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.classes[class]
	if !found {
		return &machine.CreateTurn{Given: true}
	}
	after, turn := ask(known)
	if r.classes[class] = after; turn.Given {
		r.turns[m] = class
	}
	return &turn
}

// leave ends the turn of a machine that has one.
func (r *pace) leave(m object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	class, has := r.turns[m]
	if !has {
		return
	}
	delete(r.turns, m)
	if known, found := r.classes[class]; found {
		r.classes[class] = known.Leave(m)
	}
}

// note notes an answer.
func (r *pace) note(class object.Key, code codes.Code, note func(safety.Pace) safety.Pace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.classes[class]
	if !found && !safety.Slows(code) {
		return
	}
	after := note(known)
	if after.Idle() {
		delete(r.classes, class)
	} else {
		r.classes[class] = after
	}
	if tell := r.options.Hooks.Slowed; tell != nil {
		tell(class, after.Wait(r.options.Now()))
	}
}

// hold is what holds the machine back at this moment.
func (p *machinePass) hold() *machine.Hold {
	if p.SafetyPolicy == nil || p.o.Class == nil || p.o.Machine.Spec.ProviderID != "" {
		return nil
	}
	hold, _ := p.pace.of(p.o.Class.Key).Slowed(p.o.Class, p.inputs(), p.Now())
	return hold
}

// inputs are what all machines of the class share.
func (p *machinePass) inputs() machine.Inputs {
	return machine.Inputs{Class: p.o.Class.Generation, Secret: p.o.Secret}
}

func (p *machinePass) askCreate() *machine.CreateTurn {
	return p.pace.ask(p.key, p.o.Class.Key, func(c safety.Pace) (safety.Pace, machine.CreateTurn) {
		return c.Ask(p.key, p.inputs(), p.SafetyPolicy, p.Now())
	})
}

// answered notes what the machine's create was answered.
func (p *machinePass) answered(code codes.Code) {
	if p.SafetyPolicy == nil {
		return
	}
	p.pace.note(p.o.Class.Key, code, func(c safety.Pace) safety.Pace {
		return c.Answer(p.key, p.inputs(), code, p.SafetyPolicy, p.MachinePolicy.CreationTimeout, p.Now())
	})
}

// setsOfClass wakes the sets of a class, since a class that was put right may
// end what slows them.
func (o *Options) setsOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Sets.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}
