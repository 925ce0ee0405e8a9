package manager

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/store"
)

// lookUp notes in a driver's answer which other machine has recorded its VM,
// as far as the cache goes.
func (p *machinePass) lookUp(ctx context.Context, vm *machine.VM) error {
	if vm.ProviderID == "" || vm.ProviderID == p.o.Machine.Spec.ProviderID {
		return nil
	}
	holders, err := p.Machines.List(ctx, store.Query{Index: IndexVM, Value: vm.ProviderID})
	for _, m := range holders {
		if m.Key != p.key {
			vm.Of = m.Key.String()
		}
	}
	return err
}
