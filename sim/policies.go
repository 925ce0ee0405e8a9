package sim

import (
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/safety"
)

// policies say how the manager treats each kind: those of its options, or the defaults.
type policies struct {
	options *manager.Options
	drains  *drain.Policy
}

// machinePolicy returns how machines are treated.
func (p *policies) machinePolicy() *machine.Policy {
	if p := p.options.MachinePolicy; p != nil {
		return p
	}
	return machine.DefaultPolicy()
}

// setPolicy returns how sets are treated.
func (p *policies) setPolicy() *machineset.Policy {
	if p := p.options.SetPolicy; p != nil {
		return p
	}
	return machineset.DefaultPolicy()
}

func (p *policies) deploymentPolicy() *deployment.Policy {
	if p := p.options.DeploymentPolicy; p != nil {
		return p
	}
	return deployment.DefaultPolicy()
}

// drainPolicy returns how nodes are drained.
func (p *policies) drainPolicy() *drain.Policy {
	if p.drains != nil {
		return p.drains
	}
	return drain.DefaultPolicy()
}

func (p *policies) poolPolicy() *machinepool.Policy {
	if p := p.options.PoolPolicy; p != nil {
		return p
	}
	return machinepool.DefaultPolicy()
}

// SafetyPolicy returns the policy of a world whose Options.Manager has none: safety.DefaultPolicy,
// for a fleet that may be deleted as a whole. It trusts an empty store too, so VMs that come late then
// are collected.
func SafetyPolicy() *safety.Policy {
	p := safety.DefaultPolicy()
	p.OrphansOfEmptyStore = true
	return p
}
