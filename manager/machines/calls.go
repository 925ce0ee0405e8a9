package machines

import "github.com/millwright-go/millwright/machine"

// calls returns how many calls to the provider the pass is about to make, from its plan on. Zero:
// none now.
func (p *pass) calls() int {
	creating := p.o.Machine.Spec.ProviderID == "" && !p.o.Machine.Deleted()
	if p.plan.Write != nil && p.o.VM != nil && creating && !p.o.Fenced { // a create is announced when it may be made
		return p.creates()
	}
	switch p.plan.Effect.(type) {
	case machine.GetVM:
		return 1 + p.follows(creating)
	case machine.CreateVM:
		return p.creates()
	case machine.InitializeVM, machine.DeleteVM, machine.UpdateVM:
		return 1
	case machine.FindNode, *machine.SyncNode, *machine.MarkNode, machine.DeleteNode, *machine.DrainNode, *machine.DetachVolumes,
		machine.AskCreate, machine.AskGrant, machine.AskUpdate, machine.EnsureToken, machine.RenewToken, machine.RemoveToken:
	}
	return 0
}

// follows returns how many calls may follow in the same pass from what the driver says of the VM.
func (p *pass) follows(creating bool) int {
	m := p.o.Machine
	switch {
	case creating:
		return p.creates()
	case m.Deleted() && m.Status.DeletionStage() == machine.StageInitiateVMDeletion:
		return 1
	case !m.Deleted() && m.Status.Phase == machine.PhaseCrashLoopBackOff:
		return p.creates() - 1
	}
	return 0
}

// creates returns how many calls a create and what follows it in the same pass are.
func (p *pass) creates() int {
	if p.o.NoInitialize {
		return 1
	}
	return 2
}
