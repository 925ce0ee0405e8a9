package scenario

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/sim"
)

// poolNames are the names of a scenario's pools.
var poolNames = [...]string{"herd", "flock"}

// pools adds pools to a scenario, and steps that change them.
func (g generator) pools(s *sim.Scenario) {
	s.Options.Pools = &sim.PoolOptions{
		Features: machinepool.Features{DeleteInstances: !g.oneIn(3), ReplaceInstance: !g.oneIn(3), RollingUpdate: true},
		Lag:      g.upTo(40 * time.Second), Asks: g.rare(1), // a probability
	}
	for i := range 1 + g(2) {
		s.Pools = append(s.Pools, g.pool(poolNames[i]))
	}
	for range 2 + g(8) {
		s.Steps = slices.Insert(s.Steps, g(len(s.Steps)+1), g.poolStep(s))
	}
}

// pool draws a pool. For half of the pools bootstrap data are made, the others name existing data or
// need none.
func (g generator) pool(name string) *machinepool.Pool {
	p := sim.Pool(name, int32(g(5)))
	boot := &p.Spec.Template.Bootstrap
	switch g(4) {
	case 0:
	case 1:
		existing := "boot"
		boot.DataSecret = &existing
	default:
		boot.Config, boot.DataSecret = "join", nil
	}
	if g.oneIn(3) {
		p.Spec.RollingUpdate = &machinepool.RollingUpdate{
			MaxSurge:       rollout.IntOrPercent{Value: int32(g(60)), Percent: true},
			MaxUnavailable: rollout.IntOrPercent{Value: int32(g(3))},
		}
	}
	if g.oneIn(3) {
		p.Spec.MinReady = g.upTo(2 * time.Minute).Truncate(time.Second)
	}
	if g.oneIn(4) {
		p.Annotations = map[string]string{machinepool.DefaultPolicy().Keys.Autoscaled: "true"}
	}
	return p
}

// poolActions are the actions that poolStep draws from. Some are repeated, to be drawn more often.
var poolActions = [...]sim.Action{
	sim.ScalePool, sim.ScalePool, sim.ScalePool, sim.RollPool, sim.AskDrain, sim.ReplaceNode, sim.Autoscale, sim.ResizeGroup, sim.ResizeGroup, sim.LoseInstance, sim.FailGroup, sim.ScalePool, sim.SpreadPool,
	sim.LoseGroup, sim.StopGroups, sim.RemakePool, sim.DeletePool, sim.ForgetPool, sim.BoundPool, sim.RollPool,
}

// poolStep draws a step that changes a pool of the scenario.
func (g generator) poolStep(s *sim.Scenario) sim.Step {
	after := g.upTo(30 * time.Minute)
	if g(2) == 0 { // soon, while the last step still has effects
		after /= 20
	}
	step := sim.Step{
		After: after, Do: poolActions[g(len(poolActions))], N: g(8), Name: s.Pools[g(len(s.Pools))].Name,
	}
	switch step.Do {
	case sim.RollPool:
		step.Class = [...]string{"small", "large", "huge"}[g(3)]
	case sim.BoundPool: // N more than wanted may exist; with "missing", N fewer
		step.N, step.Value = g(4), [...]string{"", "missing"}[g(2)]
	case sim.Autoscale:
		step.Value = [...]string{"true", "false"}[g(2)]
	case sim.FailGroup, sim.StopGroups:
		step.For = g.upTo(time.Hour)
	}
	return step
}
