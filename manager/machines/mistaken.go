package machines

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/store"
)

// lookUp notes in a driver's answer which other machine has recorded its VM,
// as far as the cache shows.
func (p *pass) lookUp(ctx context.Context, vm *machine.VM) error {
	if vm.ProviderID == "" || vm.ProviderID == p.o.Machine.Spec.ProviderID {
		return nil
	}
	holders, err := p.Machines.List(ctx, store.Query{Index: index.VM, Value: vm.ProviderID})
	for _, m := range holders {
		if m.Key != p.Key {
			vm.Of = m.Key.String()
		}
	}
	return err
}
