package sim

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
)

// p15: a VM that is deleted as an orphan belongs to no machine.
type p15 struct{ *World }

func (w p15) see(e event) {
	if e, ok := e.(vmsCollected); ok {
		w.checkCollected(e.gone)
	}
}

// checkCollected checks the VMs that were deleted as orphans: none is recorded by a machine, and none
// has the name of a machine that has not recorded its VM yet.
func (w p15) checkCollected(gone []drivertest.MemoryVM) {
	for _, vm := range gone {
		for _, m := range w.machines.all() {
			if m.Spec.ProviderID == vm.ID || m.Name == vm.Name && m.Spec.ProviderID == "" && !severalVMs(m) {
				w.violate("P15", "the VM of machine %s was collected as an orphan", m.Name)
			}
		}
	}
}

// severalVMs reports whether the last operation of a machine failed because it has several VMs.
func severalVMs(m *machine.Machine) bool {
	return m.Status.LastOperation.Code == codes.OutOfRange && m.Status.Phase == machine.PhaseCrashLoopBackOff
}
