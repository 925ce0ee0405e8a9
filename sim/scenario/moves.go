package scenario

import (
	"math/rand/v2"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/sim"
)

// Moves draws a scenario in which machines are updated in place and move from set to set, and everything
// interrupts the moves: calls are slow, writes conflict, answers are lost, the manager is killed again
// and again, machines are deleted during their moves, and the rollout is paused, resumed and reverted.
// All machines may be unavailable at once, so only the ceiling matters. The same seed gives the same
// scenario.
func Moves(seed uint64) *sim.Scenario {
	g := generator(rand.New(rand.NewPCG(seed, 5)).IntN) //nolint:gosec // a simulation
	replicas := int32(2 + g(3))
	s := &sim.Scenario{
		Options: sim.Options{
			Seed: seed, Update: 10*time.Second + g.upTo(30*time.Second),
			Faults: sim.Faults{
				Latency: 2*time.Second + g.upTo(2*time.Second), CacheLag: g.upTo(2 * time.Second), LostAnswer: g.rare(0.15),
				Kills: g(60), KillWithin: 1 + g(60), Restart: g.upTo(15 * time.Second),
			},
			Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}, Classes: manager.ClassOptions{Keep: true}},
		},
		Classes: []string{"large", "huge"},
		Deployments: []*deployment.Deployment{sim.Fleet("web", replicas, deployment.Strategy{
			Kind: deployment.InPlaceUpdate, MaxSurge: rollout.IntOrPercent{Value: int32(g(2))},
			MaxUnavailable: rollout.IntOrPercent{Value: replicas},
		})},
		Steps:            []sim.Step{{After: 12 * time.Minute, Do: sim.Roll, Name: "web", Class: "large"}},
		FaultsAfterSteps: 5 * time.Minute,
		Keep:             true,
	}
	for range 4 + g(8) {
		deletion := sim.Step{After: g.upTo(40 * time.Second), Do: sim.DeleteMachine, N: g(30)}
		if g.oneIn(6) {
			deletion.Do = sim.RemoveVM
		}
		s.Steps = append(s.Steps, deletion)
		if g(2) == 0 {
			continue
		}
		turn := sim.Step{After: g.upTo(10 * time.Second), Do: [...]sim.Action{sim.Roll, sim.Pause, sim.Resume, sim.Roll}[g(4)], Name: "web"}
		if turn.Do == sim.Roll {
			turn.Class = [...]string{"small", "large", "huge"}[g(3)]
		}
		s.Steps = append(s.Steps, turn)
	}
	return s
}
