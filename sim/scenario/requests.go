package scenario

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim"
)

// ages makes some fleets renew machines for their age, and keep machines that failed.
func (g generator) ages(d *deployment.Deployment) {
	if g.oneIn(4) {
		d.Spec.MaxAge = time.Hour + g.upTo(4*time.Hour)
	}
	if g.oneIn(3) {
		d.Spec.AutoPreserve = int32(1 + g(2))
	}
	d.Spec.Template.Spec.Config.PreserveTimeout = 20*time.Minute + g.upTo(2*time.Hour).Truncate(time.Second)
}

// requests are what a step of a storm may ask of single machines, sets and VMs.
var requests = [...]sim.Action{
	sim.ScaleDown, sim.Tag, sim.Retag, sim.PauseMachine, sim.PauseSet, sim.Preserve, sim.PreserveNode, sim.Prioritize, sim.Replace, sim.ScaleDown, sim.Preserve, sim.PauseMachine,
}

// request draws what a step asks of single machines, sets and VMs.
func (g generator) request(s *sim.Scenario) sim.Step {
	step := sim.Step{After: g.upTo(40 * time.Minute), Do: requests[g(len(requests))], N: g(8)}
	switch step.Do {
	case sim.PauseMachine, sim.PauseSet:
		step.For = g.upTo(90 * time.Minute)
	case sim.Preserve, sim.PreserveNode:
		step.Value = [...]string{machine.PreserveWhenFailed, machine.PreserveNow, machine.PreserveNever, "", "perhaps"}[g(7)%5]
	case sim.Prioritize:
		step.Value = [...]string{"1", "2", "5", "high"}[g(4)]
	case sim.Tag:
		step.Class = [...]string{"small", "large", "huge"}[g(3)]
	case sim.ScaleDown, sim.Retag:
		step.Name = s.Deployments[g(len(s.Deployments))].Name
	}
	return step
}
