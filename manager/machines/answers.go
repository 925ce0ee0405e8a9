package machines

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/store"
)

// answers are what the driver has answered in a pass that ended with a conflict, or that waits and would
// make the same call again. The next pass decides from them: it reads again what others may have written,
// and repeats no call.
type answers struct {
	o  machine.Observation // of that pass, as it ended
	at time.Time
	// waits says that the pass waits. They serve to wait on, and for nothing else.
	waits bool
}

// repeatAfter is after how long a call whose answer a machine waits with is made again at the earliest, if
// the machine is looked at before its wait ends and nothing has changed that the call is made from.
const repeatAfter = time.Minute

// keepAnswers keeps the pass's answers if it ends with a conflict.
func (p *pass) keepAnswers(err error) error {
	o := &p.o
	if errors.Is(err, store.ErrConflict) && (o.VM != nil || o.Created != nil || o.Initialized != nil || o.Updated != nil || o.VMDeleted != nil) {
		p.answers.Change(p.Key, func(a *answers) {
			if a.at.IsZero() || a.o.VM != o.VM { // one that is handed on gets no younger
				a.at = p.Now()
			}
			if a.o, a.waits = *o, !p.waitsSince.IsZero(); a.waits {
				a.at = p.waitsSince
			}
		})
	}
	return err
}

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
	since := p.waitsSince
	if since.IsZero() {
		since = p.Now()
	} else if due := since.Add(repeatAfter); at.IsZero() || due.Before(at) {
		at = due
	}
	p.answers.Change(p.Key, func(a *answers) { *a = answers{p.o, since, true} })
	return at
}

// forgetAnswers drops from the observation the answers that a wait may rest on. All others are stored.
func (p *pass) forgetAnswers() { p.o.VM, p.o.Initialized, p.waitsSince = nil, nil, time.Time{} }

// moves reports whether the plan does more than wait with answers that were taken for that.
func (p *pass) moves() bool {
	return !p.waitsSince.IsZero() && (p.calls() > 0 || p.plan.Moves[0] != machine.Move{})
}

// takeAnswers puts the answers of the pass before this one into the observation. What was answered about
// another step of the machine is not taken, nor is a refusal that other inputs may end.
func (p *pass) takeAnswers() {
	kept := p.answers.Of(p.Key)
	p.answers.Forget(p.Key)
	if kept.o.Machine == nil || !sameStep(kept.o.Machine, p.o.Machine) {
		return
	}
	if age := p.Now().Sub(kept.at); kept.waits {
		p.takeWaiting(&kept, age)
	} else if age < askedFor {
		p.takeAll(&kept)
	}
}

// takeWaiting takes the answers of a pass that waits.
func (p *pass) takeWaiting(kept *answers, age time.Duration) {
	if age >= 0 && age < repeatAfter && sameInputs(&kept.o, &p.o) && p.o.Missing == nil && !p.o.VMUnhealthy {
		p.o.VM, p.o.Initialized, p.waitsSince = kept.o.VM, kept.o.Initialized, kept.at
	}
}

// takeAll takes the answers of a pass that met a conflict.
func (p *pass) takeAll(kept *answers) {
	same := sameInputs(&kept.o, &p.o)
	answer := func(vm *machine.VM, alike bool) *machine.VM {
		if vm == nil || alike || vm.Code == codes.OK {
			return vm
		}
		return nil
	}
	if kept.o.VM != nil && p.o.Missing == nil && !p.o.VMUnhealthy { // a verdict on a VM wants two answers, not one twice
		p.o.VM = kept.o.VM
	}
	p.o.Created, p.o.Initialized, p.o.VMDeleted = answer(kept.o.Created, same), answer(kept.o.Initialized, same), answer(kept.o.VMDeleted, same)
	if same {
		p.o.Updated = kept.o.Updated
	}
	p.o.Fenced = kept.o.Fenced && p.o.Created != nil
}

// sameStep reports whether others have written nothing into a machine on which its next call rests.
func sameStep(a, b *machine.Machine) bool {
	return a.UID == b.UID && a.DeletedAt.Equal(b.DeletedAt) && a.Spec.Class == b.Spec.Class &&
		a.Spec.ProviderID == b.Spec.ProviderID && a.Spec.NodeName == b.Spec.NodeName &&
		a.Status.Phase == b.Status.Phase && a.Status.LastOperation == b.Status.LastOperation
}

// sameInputs reports whether calls are made with the same class and secrets.
func sameInputs(a, b *machine.Observation) bool {
	if a.Class == nil || b.Class == nil || a.Class.UID != b.Class.UID || a.Class.Generation != b.Class.Generation {
		return false
	}
	spec := (a.VMSpec == nil) == (b.VMSpec == nil) && (a.VMSpec == nil || *a.VMSpec == *b.VMSpec)
	return a.Secret == b.Secret && spec && a.Machine.Generation == b.Machine.Generation
}
