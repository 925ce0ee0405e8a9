package machines

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/store"
)

// repeatAfter is how old the answers must be that a waiting machine keeps, before a pass repeats their calls
// though nothing has changed that the calls depend on.
const repeatAfter = time.Minute

// validFor is how long answers are used after a pass that ended with a conflict, or whose next call waits for
// the provider's pace. A call that follows from an answer, such as a create, is not made later than that.
const validFor = 2 * time.Minute

// keepAnswers keeps the pass's answers if it ends with a conflict.
func (p *pass) keepAnswers(err error) error {
	o := &p.o
	if errors.Is(err, store.ErrConflict) && (o.VM != nil || o.Created != nil || o.Initialized != nil || o.Updated != nil || o.VMDeleted != nil) {
		p.keep(answers{o: *o, at: p.Now(), waits: p.taken.waits})
	}
	return err
}

// keepVM keeps the driver's answer about the VM until the call that follows from it may be made. So each pass
// gets further than the one before, even if the provider takes one call at a time.
func (p *pass) keepVM() {
	if p.o.VM != nil {
		o := p.o
		o.Created, o.Initialized, o.Updated, o.VMDeleted = nil, nil, nil, nil
		p.keep(answers{o: o, at: p.Now()})
	}
}

// keep keeps answers for the next pass. Answers that come from the pass before keep their age.
func (p *pass) keep(a answers) {
	was := &p.taken.o
	if !p.taken.at.IsZero() && a.o.VM == was.VM && a.o.Created == was.Created && a.o.Initialized == was.Initialized &&
		a.o.Updated == was.Updated && a.o.VMDeleted == was.VMDeleted {
		a.at = p.taken.at
	}
	p.answers.Change(p.Key, func(kept *answers) { *kept = a })
}

// forgetAnswers drops from the observation the answers that takeWaiting has put there.
func (p *pass) forgetAnswers() { p.o.VM, p.o.Initialized, p.taken = nil, nil, answers{} }

// takeAnswers puts the answers of the pass before this one into the observation. It takes no answer about
// another step of the machine, and no refusal that other inputs may end.
func (p *pass) takeAnswers() {
	kept := p.answers.Of(p.Key)
	p.answers.Forget(p.Key)
	if kept.o.Machine == nil || !sameStep(kept.o.Machine, p.o.Machine) {
		return
	}
	if age := p.Now().Sub(kept.at); kept.waits {
		p.takeWaiting(&kept, age)
	} else if age < validFor {
		p.takeAll(&kept)
	}
}

// takeWaiting takes the answers of a pass that waits.
func (p *pass) takeWaiting(kept *answers, age time.Duration) {
	if age >= 0 && age < repeatAfter && sameInputs(&kept.o, &p.o) && p.o.Missing == nil && !p.o.VMUnhealthy {
		p.o.VM, p.o.Initialized = kept.o.VM, kept.o.Initialized
		p.taken = answers{p.o, kept.at, true}
	}
}

// takeAll takes the answers of a pass that was not finished.
func (p *pass) takeAll(kept *answers) {
	same := sameInputs(&kept.o, &p.o)
	answer := func(vm *machine.VM, alike bool) *machine.VM {
		if vm == nil || alike || vm.Code == codes.OK {
			return vm
		}
		return nil
	}
	if kept.o.VM != nil && p.o.Missing == nil && !p.o.VMUnhealthy { // a suspicion needs a second answer
		p.o.VM = kept.o.VM
	}
	p.o.Created, p.o.Initialized, p.o.VMDeleted = answer(kept.o.Created, same), answer(kept.o.Initialized, same), answer(kept.o.VMDeleted, same)
	if same {
		p.o.Updated = kept.o.Updated
	}
	p.o.Fresh = kept.o.Fresh && p.o.Created != nil
	p.taken = answers{p.o, kept.at, false}
}

// sameStep reports whether a machine is unchanged in everything that its next call depends on.
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

// answers are the driver's answers in a pass that ended with a conflict, that could not make its next call
// yet, or that waits and would repeat its call. The next pass decides from them: it reads again what others
// may have written, and repeats no call.
type answers struct {
	o  machine.Observation // of that pass, as it ended
	at time.Time
	// waits says that the pass waits. Then the next pass may use the answers only to go on waiting.
	waits bool
}

// lookUp sets in a driver's answer which other machine has recorded the VM.
func (p *pass) lookUp(ctx context.Context, vm *machine.VM) (err error) {
	vm.ClaimedBy, err = p.recordedFor(ctx, vm.ProviderID)
	return err
}

// nodeOf sets in an answer which other machine has recorded the node's provider ID.
func (p *pass) nodeOf(ctx context.Context, answer *machine.NodeAnswer) (_ *machine.NodeAnswer, err error) {
	if answer.Node != nil {
		answer.ClaimedBy, err = p.recordedFor(ctx, answer.Node.ProviderID)
	}
	return answer, err
}

// recordedFor returns the other machine that has recorded a provider ID, as far as the cache shows.
// Empty: there is none, or the ID is this machine's own.
func (p *pass) recordedFor(ctx context.Context, providerID string) (of string, err error) {
	if providerID == "" || providerID == p.o.Machine.Spec.ProviderID {
		return "", nil
	}
	holders, err := p.Machines.List(ctx, store.Query{Index: index.VM, Value: providerID})
	for _, m := range holders {
		if m.Key != p.Key {
			of = m.Key.String()
		}
	}
	return of, err
}
