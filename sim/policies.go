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
func (p *policies) machinePolicy() *machine.Policy { return p.options.Policies.Machine.WithDefaults() }

// setPolicy returns how sets are treated.
func (p *policies) setPolicy() *machineset.Policy { return p.options.Policies.Set.WithDefaults() }

func (p *policies) deploymentPolicy() *deployment.Policy {
	return p.options.Policies.Deployment.WithDefaults()
}

// drainPolicy returns how nodes are drained.
func (p *policies) drainPolicy() *drain.Policy { return p.drains.WithDefaults() }

func (p *policies) poolPolicy() *machinepool.Policy { return p.options.Policies.Pool.WithDefaults() }

// SafetyPolicy returns the policy of a world whose Options.Manager has none: safety.DefaultPolicy,
// for a fleet that may be deleted as a whole. It trusts an empty store too, so VMs that come late then
// are collected.
func SafetyPolicy() *safety.Policy {
	p := safety.DefaultPolicy()
	p.OrphansOfEmptyStore = true
	return p
}
