package machines

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// waitOn keeps the answers that the pass waits with, if without them it would make their calls again. It
// returns when the pass is to be repeated: at at, or when a call that it has left out is due.
func (p *pass) waitOn(at time.Time) time.Time {
	if p.o.VM == nil && p.o.Initialized == nil {
		return at
	}
	bare := *p
	bare.forgetAnswers()
	if bare.plan, _ = machine.Decide(&bare.o, p.Policy, p.Now()); bare.calls() == 0 {
		return at
	}
	p.keep(answers{p.o, p.Now(), true})
	if due := p.taken.at.Add(repeatAfter); p.taken.waits && (at.IsZero() || due.Before(at)) {
		at = due
	}
	return at
}

// moves reports whether the plan does more than wait with answers that were taken for that.
func (p *pass) moves() bool {
	return p.taken.waits && (p.calls() > 0 || p.plan.Moves[0] != machine.Move{})
}
