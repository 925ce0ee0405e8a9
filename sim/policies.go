package sim

import (
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
)

// machinePolicy returns how machines are treated.
func (w *World) machinePolicy() *machine.Policy {
	if p := w.o.Manager.MachinePolicy; p != nil {
		return p
	}
	return machine.DefaultPolicy()
}

// setPolicy returns how sets are treated.
func (w *World) setPolicy() *machineset.Policy {
	if p := w.o.Manager.SetPolicy; p != nil {
		return p
	}
	return machineset.DefaultPolicy()
}

func (w *World) deploymentPolicy() *deployment.Policy {
	if p := w.o.Manager.DeploymentPolicy; p != nil {
		return p
	}
	return deployment.DefaultPolicy()
}

// drainPolicy returns how nodes are drained.
func (w *World) drainPolicy() *drain.Policy {
	if p := w.o.Drain; p != nil {
		return p
	}
	return drain.DefaultPolicy()
}

// policy is the policy for machines.
func (w *World) policy() *machine.Policy {
	if p := w.o.Manager.MachinePolicy; p != nil {
		return p
	}
	return machine.DefaultPolicy()
}

func (w *World) poolPolicy() *machinepool.Policy {
	if p := w.o.Manager.PoolPolicy; p != nil {
		return p
	}
	return machinepool.DefaultPolicy()
}
