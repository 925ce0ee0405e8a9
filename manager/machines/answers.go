package machines

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/store"
)

// answers are what the driver has answered in a pass that ended with a conflict. The pass that begins
// again decides from them: it reads again what others may have written, and repeats no call.
type answers struct {
	o  machine.Observation // of that pass, as it ended
	at time.Time
}

// keepAnswers keeps the pass's answers if it ends with a conflict.
func (p *pass) keepAnswers(err error) error {
	o := &p.o
	if errors.Is(err, store.ErrConflict) && (o.VM != nil || o.Created != nil || o.Initialized != nil || o.Updated != nil || o.VMDeleted != nil) {
		p.answers.Change(p.Key, func(a *answers) {
			if a.at.IsZero() || a.o.VM != o.VM { // one that is handed on gets no younger
				a.at = p.Now()
			}
			a.o = *o
		})
	}
	return err
}

// takeAnswers puts the answers of the pass before this one into the observation. What was answered about
// another step of the machine is not taken, nor is a refusal that other inputs may end.
func (p *pass) takeAnswers() {
	kept := p.answers.Of(p.Key)
	p.answers.Forget(p.Key)
	if kept.o.Machine == nil || !sameStep(kept.o.Machine, p.o.Machine) || p.Now().Sub(kept.at) >= askedFor {
		return
	}
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
