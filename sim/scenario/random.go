package scenario

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/sim"
)

// Random draws a scenario in which anything may fail. The same seed gives the same scenario.
func Random(seed uint64) *sim.Scenario {
	return Draw(rand.New(rand.NewPCG(seed, 2)).IntN, seed) //nolint:gosec // a simulation
}

// Rush draws a scenario in which nothing fails and everything is late. Calls, answers and changes take
// long, and a fleet is edited again and again before it can converge. The effects of stale reads and
// of orders under way show best if nothing else fails.
func Rush(seed uint64) *sim.Scenario {
	g := generator(rand.New(rand.NewPCG(seed, 3)).IntN) //nolint:gosec // a simulation
	s := &sim.Scenario{
		Options: sim.Options{
			Seed:    seed,
			Faults:  sim.Faults{Latency: g.upTo(5 * time.Second), CacheLag: g.upTo(time.Minute), Repeat: g.rare(0.3), CallTime: g.upTo(20 * time.Second), SlowBoot: g.upTo(2 * time.Minute)},
			Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}, Classes: manager.ClassOptions{Keep: true}},
		},
		Classes:     []string{"large", "huge"},
		Deployments: []*deployment.Deployment{sim.Fleet("web", int32(2+g(8)), g.strategy())},
	}
	s.Options.UpdatableTags = true
	g.agesAndPreservation(s.Deployments[0])
	for range 2 + g(10) {
		if g.oneIn(4) {
			s.Steps = append(s.Steps, g.request(s))
			continue
		}
		step := sim.Step{After: g.upTo(6 * time.Minute), Do: [...]sim.Action{sim.Scale, sim.Roll, sim.Roll, sim.Rollback}[g(4)], Name: "web", N: 1 + g(9)}
		if step.Do == sim.Rollback {
			step.N = 0
		}
		if step.Do == sim.Roll {
			step.Class = [...]string{"small", "large", "huge"}[g(3)]
		}
		s.Steps = append(s.Steps, step)
	}
	return s
}

// Draw draws a scenario as Random does, from any source of numbers: draw(n) returns a number from 0 to
// n-1, and smaller numbers make fewer faults. seed becomes Options.Seed.
func Draw(draw func(n int) int, seed uint64) *sim.Scenario {
	g := generator(draw)
	s := g.fleet(seed)
	if g.oneIn(5) { // drawn after the fleet, so that the fleets of all seeds stay as they were before there were pools
		g.pools(s)
	}
	if g.oneIn(3) {
		g.fewerWrites(s)
	}
	g.podEndings(s)
	if g.oneIn(4) {
		g.hangs(s)
	}
	s.Options.Faults.Spelling = g.rare(0.3)
	g.stopAfter(s)
	return s
}

// hangs makes some calls to the provider ignore their deadline.
func (g generator) hangs(s *sim.Scenario) {
	f := &s.Options.Faults
	f.Hang, f.HangFor = g.rare(0.2), g.upTo(20*time.Minute)
	s.Options.Manager.Tuning.CallTimeout = time.Minute + g.upTo(5*time.Minute)
}

// stopAfter draws after how many failures rollouts stop. It is drawn last, so that the rest of a seed's
// scenario stays as it is.
func (g generator) stopAfter(s *sim.Scenario) {
	for _, d := range s.Deployments {
		if g.oneIn(4) {
			d.Spec.Strategy.StopAfter.Value = int32(1 + g(3))
		}
	}
}

// podEndings draws how pods end: late, kept by finalizers, failed or completed. It is drawn late, so that
// the rest of a seed's scenario stays as it is.
func (g generator) podEndings(s *sim.Scenario) {
	if len(s.Apps) == 0 {
		return
	}
	f := &s.Options.Faults
	f.PodEnd, f.KeptPod, f.KeptPodFor, f.FailedPod = g.upTo(20*time.Second), g.rare(0.5), g.upTo(20*time.Minute), g.rare(0.4)
	for i := range s.Apps {
		if g.oneIn(3) {
			s.Apps[i].Work = time.Minute + g.upTo(time.Hour)
		}
	}
	for i := range s.Apps {
		s.Apps[i].Tolerates = g.oneIn(4)
	}
}

// fewerWrites draws policies with which the manager writes less: it gathers orders, and reports progress
// late.
func (g generator) fewerWrites(s *sim.Scenario) {
	fleets, sets := deployment.DefaultPolicy(), machineset.DefaultPolicy()
	fleets.Gather, fleets.ProgressInterval = g.upTo(time.Minute), g.upTo(time.Minute)
	sets.ProgressInterval = fleets.ProgressInterval
	fleets.Names, sets.SettleWithin = int32(g(6)), g.upTo(2*time.Minute)
	s.Options.Manager.Policies.Deployment, s.Options.Manager.Policies.Set = fleets, sets
}

// fleet draws a scenario without pools.
func (g generator) fleet(seed uint64) *sim.Scenario {
	s := &sim.Scenario{
		Options: sim.Options{
			Seed: seed, Faults: g.faults(),
			NeedsInitialization: g.oneIn(4), UpdatableTags: !g.oneIn(3),
			Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}, Classes: manager.ClassOptions{Keep: true}},
		},
		Classes:          []string{"large", "huge"},
		FaultsAfterSteps: g.upTo(20 * time.Minute),
		Lone:             g.oneIn(3),
	}
	for i := range 1 + g(2) {
		d := sim.Fleet(fleetNames[i], int32(1+g(5)), g.strategy())
		if keep := int32(g(4)); keep < 2 {
			d.Spec.RevisionHistoryLimit = &keep
		}
		g.agesAndPreservation(d)
		s.Deployments = append(s.Deployments, d)
	}
	for i := range g(3) {
		replicas := 1 + g(6)
		s.Apps = append(s.Apps, sim.App{
			Name: fmt.Sprint("app-", i), Replicas: replicas, MinAvailable: g(replicas),
			Grace: g.upTo(2 * time.Minute), Boot: g.upTo(time.Minute), Volumes: g(3),
		})
	}
	for range 1 + g(12) {
		s.Steps = append(s.Steps, g.step(s))
	}
	return s
}

// fleetNames are the names of a scenario's deployments.
var fleetNames = [...]string{"web", "batch"}

func (g generator) strategy() deployment.Strategy {
	kinds := [...]deployment.StrategyKind{deployment.RollingUpdate, deployment.InPlaceUpdate, deployment.Recreate}
	kind := kinds[g(6)/3+g(6)/5]
	surge, unavailable := rollout.IntOrPercent{Value: int32(g(3))}, rollout.IntOrPercent{Value: int32(g(3))}
	switch kind {
	case deployment.Recreate:
		return deployment.Strategy{Kind: kind}
	case deployment.InPlaceUpdate: // with less surge, so that more machines are updated in place
		surge.Value, unavailable.Value = max(surge.Value-1, 0), unavailable.Value+1
	}
	return deployment.Strategy{Kind: kind, MaxSurge: surge, MaxUnavailable: unavailable}
}

// faultWindows draws how often a fault begins that lasts for a while: in half of the scenarios never, in
// the others at intervals of 1 to 4 times least, each for up to about most.
func (g generator) faultWindows(least, most time.Duration) sim.Spells {
	if g(2) == 0 {
		return sim.Spells{}
	}
	return sim.Spells{Every: least + g.upTo(3*least), For: most/100 + g.upTo(most)}
}

// capacity draws the provider's capacity: it is short in a third of the scenarios.
func (g generator) capacity() int {
	if g(3) < 2 {
		return 0
	}
	return 1 + g(8)
}

func (g generator) faults() sim.Faults {
	return sim.Faults{
		Latency: g.upTo(3 * time.Second), CacheLag: g.upTo(10 * time.Second), Repeat: g.rare(0.3), LostAnswer: g.rare(0.06),
		CallTime: g.upTo(40 * time.Second), Call: g.rare(0.2), Codes: sim.AllCodes(), LostCall: g.rare(0.1), Eventually: g.upTo(40 * time.Second),
		SlowBoot: g.upTo(4 * time.Minute), DeadBoot: g.rare(0.2), Flap: g.rare(0.6), FlapForGood: g.rare(0.6),
		LostVM: g.rare(0.2), ControlOutages: g.faultWindows(time.Hour, 10*time.Minute), TargetOutages: g.faultWindows(time.Hour, 10*time.Minute),
		ZoneOutages: g.faultWindows(time.Hour, 20*time.Minute), ClockJumps: g.faultWindows(time.Hour, 5*time.Minute),
		Capacity: g.capacity(), BadUpdate: g.rare(0.5), DeadUpdate: g.rare(0.5),
		SlowVolume: g.upTo(4 * time.Minute), StuckVolume: g.rare(0.3),
		Kills: g(50), KillWithin: 1 + g(200), Restart: g.upTo(2 * time.Minute), Late: g.rare(1), LateBy: g.upTo(time.Minute),
	}
}

func (g generator) step(s *sim.Scenario) sim.Step {
	if g.oneIn(3) {
		return g.request(s)
	}
	actions := [...]sim.Action{
		sim.Scale, sim.Roll, sim.Roll, sim.Scale, sim.Roll, sim.Roll, sim.Roll, sim.Rollback, sim.Pause, sim.Resume, sim.DeleteMachine, sim.RemoveVM, sim.OrphanVM, sim.DeleteNode, sim.CordonNode, sim.DeleteNodes,
	}
	step := sim.Step{After: g.upTo(40 * time.Minute), Do: actions[g(len(actions))], N: g(8)}
	switch step.Do {
	case sim.Roll:
		step.Class = [...]string{"small", "large", "huge"}[g(3)]
		step.Name = s.Deployments[g(len(s.Deployments))].Name
	case sim.Rollback:
		step.N = max(step.N-4, 0)
		step.Name = s.Deployments[g(len(s.Deployments))].Name
	case sim.Scale, sim.Pause, sim.Resume:
		step.Name = s.Deployments[g(len(s.Deployments))].Name
	}
	return step
}

// RandomPools draws a scenario as Random does, with pools in every scenario, and at most one
// deployment.
func RandomPools(seed uint64) *sim.Scenario {
	g := generator(rand.New(rand.NewPCG(seed, 4)).IntN) //nolint:gosec // a simulation
	s := g.fleet(seed)
	s.Deployments, s.Lone = s.Deployments[:g(2)], false
	g.pools(s)
	g.podEndings(s)
	if g.oneIn(4) {
		g.hangs(s)
	}
	return s
}
