package sim

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
)

// p13 checks P13 and P14: a machine has at most one VM, and no VM exists after its machine's record is
// gone.
type p13 struct{ *World }

func (w p13) see(e event) {
	if _, ok := e.(effect); ok {
		w.checkVMs(w.machines.all())
	}
}

func (w p13) checkVMs(machines []*machine.Machine) {
	names := make(map[string]bool, len(machines))
	for _, m := range machines {
		names[m.Name] = true
	}
	seen := map[string]bool{}
	for _, vm := range w.provider.VMs() {
		switch {
		case w.excuses.orphanVMs[vm.ID]:
		case seen[vm.Name]:
			w.violate("P13", "two VMs live for machine %s", vm.Name)
		case !names[vm.Name] && !w.excuses.lateVMs[vm.Name]:
			w.violate("P14", "a VM of machine %s lives, and its record is gone", vm.Name)
		}
		seen[vm.Name] = true
		if w.o.NeedsInitialization && !vm.Initialized {
			w.checkInitialized(machines, &vm)
		}
	}
}

// RuleInitialized is the name of the rule that a VM that needs initialization is initialized before its
// machine runs.
const RuleInitialized = "initialized"

// checkInitialized checks that no machine runs on a VM that is not initialized yet. It checks nothing once
// InitializeMachine was answered with UNIMPLEMENTED or NOT_FOUND: a machine goes on after both.
func (w p13) checkInitialized(machines []*machine.Machine, vm *drivertest.MemoryVM) {
	call := codes.InitializeMachine
	if w.refusals[Refusal{call, codes.Unimplemented}]+w.refusals[Refusal{call, codes.NotFound}] > 0 {
		return
	}
	for _, m := range machines {
		if m.Spec.ProviderID == vm.ID && m.Status.Phase == machine.PhaseRunning {
			w.violate(RuleInitialized, "machine %s is running, but its VM was never initialized", m.Name)
		}
	}
}
