package machines

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety/backoff"
)

// hold is what holds the machine back at this moment.
func (p *pass) hold() *machine.Hold {
	if p.Safety == nil || p.o.Class == nil || p.o.Machine.Spec.ProviderID != "" {
		return nil
	}
	hold, _ := p.Backoff.Of(p.o.Class.Key).Slowed(p.o.Class, p.inputs(), p.Now())
	return hold
}

// inputs are what all machines of the class share.
func (p *pass) inputs() machine.Inputs {
	return machine.Inputs{Class: p.o.Class.Generation, Secret: p.o.Secret}
}

func (p *pass) askCreate() *machine.CreateTurn {
	return p.Backoff.ask(p.Key, p.o.Class.Key, func(c backoff.State) (backoff.State, machine.CreateTurn) {
		return c.Ask(p.Key, p.inputs(), p.Safety, p.Now())
	})
}

// answered notes what the machine's create was answered.
func (p *pass) answered(code codes.Code) {
	if p.Safety == nil {
		return
	}
	p.Backoff.note(p.o.Class.Key, code, func(c backoff.State) backoff.State {
		return c.Answer(p.Key, p.inputs(), code, p.Safety, p.Policy.CreationTimeout, p.Now())
	})
}
