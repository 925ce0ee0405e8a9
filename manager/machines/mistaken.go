package machines

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/store"
)

// lookUp notes in a driver's answer which other machine has recorded its VM.
func (p *pass) lookUp(ctx context.Context, vm *machine.VM) (err error) {
	vm.Of, err = p.recordedFor(ctx, vm.ProviderID)
	return err
}

// nodeOf notes for which other machine the node's provider ID is recorded.
func (p *pass) nodeOf(ctx context.Context, answer *machine.NodeAnswer) (_ *machine.NodeAnswer, err error) {
	if answer.Node != nil {
		answer.Of, err = p.recordedFor(ctx, answer.Node.ProviderID)
	}
	return answer, err
}

// recordedFor returns which other machine has recorded this provider ID, as far as the cache shows.
// Empty: none, or it is this machine's.
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
