package scenario

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim"
)

// agesAndPreservation makes some fleets replace machines for their age, and keep failed machines for
// inspection.
func (g generator) agesAndPreservation(d *deployment.Deployment) {
	if g.oneIn(4) {
		d.Spec.MaxAge = time.Hour + g.upTo(4*time.Hour)
	}
	if g.oneIn(3) {
		d.Spec.AutoPreserve = int32(1 + g(2))
	}
	d.Spec.Template.Spec.Config.PreserveTimeout = 20*time.Minute + g.upTo(2*time.Hour).Truncate(time.Second)
}

// requests are the actions that request draws from. Some are repeated, to be drawn more often.
var requests = [...]sim.Action{
	sim.ScaleDown, sim.Tag, sim.Retag, sim.PauseMachine, sim.PauseSet, sim.Preserve, sim.PreserveNode, sim.Prioritize, sim.Replace, sim.ScaleDown, sim.Preserve, sim.PauseMachine,
}

// request draws a step that asks something of single machines, sets or VMs.
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
