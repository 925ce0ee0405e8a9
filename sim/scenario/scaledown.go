package scenario

import (
	"math/rand/v2"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/sim"
)

// ScaleDown draws a scenario in which a fleet is scaled down once or twice during a rollout. Nothing
// fails; every call to an API takes up to latency, and machines boot slowly. So sets choose booting
// machines for deletion, and some of these become available before the set has deleted them. The same
// seed and latency give the same scenario.
func ScaleDown(seed uint64, latency time.Duration) *sim.Scenario {
	g := generator(rand.New(rand.NewPCG(seed, 4)).IntN) //nolint:gosec // a simulation
	replicas := 3 + g(12)
	s := &sim.Scenario{
		Options: sim.Options{
			Seed: seed,
			Faults: sim.Faults{
				Latency: latency, CacheLag: g.upTo(10 * time.Second), CallTime: g.upTo(30 * time.Second),
				SlowBoot: 20*time.Second + g.upTo(3*time.Minute),
			},
			Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}, Classes: manager.ClassOptions{Keep: true}},
		},
		Classes:          []string{"large"},
		Deployments:      []*deployment.Deployment{sim.Fleet("web", int32(replicas), g.rolling())},
		Steps:            []sim.Step{{After: 15 * time.Minute, Do: sim.Roll, Name: "web", Class: "large"}},
		FaultsAfterSteps: 10 * time.Minute,
		Keep:             true,
	}
	for range 1 + g(2) {
		replicas = 1 + g(max(1, replicas-1))
		s.Steps = append(s.Steps, sim.Step{After: 5*time.Second + g.upTo(4*time.Minute), Do: sim.Scale, Name: "web", N: replicas})
	}
	return s
}

// rolling draws a strategy whose rollouts take several steps: with new machines, or one time in four in
// place.
func (g generator) rolling() deployment.Strategy {
	percent := func(from, n int) rollout.IntOrPercent {
		return rollout.IntOrPercent{Value: int32(from + g(n)), Percent: true}
	}
	s := deployment.Strategy{Kind: deployment.RollingUpdate, MaxSurge: percent(10, 40), MaxUnavailable: percent(0, 40)}
	if g.oneIn(4) {
		s.Kind = deployment.InPlaceUpdate
	}
	return s
}
