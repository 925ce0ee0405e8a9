package scenario

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
)

// Open draws the scenario that Random draws for the same seed, and adds what other programs and people
// do to nodes, machines and classes.
func Open(seed uint64) *sim.Scenario {
	s := Random(seed)
	g := generator(rand.New(rand.NewPCG(seed, 6)).IntN) //nolint:gosec // a simulation
	for _, d := range s.Deployments {
		g.nodeTemplate(&d.Spec.Template.Spec.NodeTemplate)
	}
	if g.oneIn(3) {
		s.Options.Faults.CallsPerMinute = 2 + g(20)
	}
	for range 2 + g(8) {
		s.Steps = slices.Insert(s.Steps, g(len(s.Steps)+1), g.otherStep(s))
	}
	if g.oneIn(2) {
		g.unreliableAgents(s)
	}
	if f := &s.Options.Faults; f.ClockJumps.Every == 0 && g.oneIn(2) {
		f.Skew = time.Hour - 2*g.upTo(time.Hour)
	}
	s.Options.Faults.NodeSpelling = g.rare(0.6)
	if g.oneIn(3) {
		g.lateNodes(&s.Options.Faults)
	}
	if len(s.Apps) > 0 && g.oneIn(4) {
		s.Apps[0].Grace = g.upTo(3 * time.Hour)
	}
	if g.oneIn(2) {
		g.unreadableClass(s)
	}
	return s
}

// lateNodes makes nodes register late and without a startup taint, so that pods are bound to them at once.
// Calls take long or fail, so that a machine may be deleted before its node exists.
func (g generator) lateNodes(f *sim.Faults) {
	f.NoStartupTaint = true
	f.SlowBoot, f.CallTime, f.Call = max(f.SlowBoot, g.upTo(15*time.Minute)), max(f.CallTime, g.upTo(2*time.Minute)), max(f.Call, g.rare(0.3))
}

// unreadableClass adds steps that make a class unreadable, for minutes or hours.
func (g generator) unreadableClass(s *sim.Scenario) {
	for range 1 + g(2) {
		step := sim.Step{After: g.upTo(20 * time.Minute), Do: sim.SpoilClass, Class: classNames[g(len(classNames))], For: g.upTo(2*time.Minute) * time.Duration(1+g(60))}
		s.Steps = slices.Insert(s.Steps, g(len(s.Steps)+1), step)
	}
}

// unreliableAgents makes a fleet be updated in place by agents that are late, restart their nodes, or
// report success after a failure.
func (g generator) unreliableAgents(s *sim.Scenario) {
	f := &s.Options.Faults
	f.BadUpdate, f.LateUpdate, f.UpdateReboot, f.SecondAnswer = g.rare(1), g.rare(0.5), g.rare(0.5), g.rare(1)
	if len(s.Deployments) == 0 {
		return
	}
	d := s.Deployments[0]
	d.Spec.Strategy = deployment.Strategy{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: int32(1 + g(2))}, StopAfter: d.Spec.Strategy.StopAfter}
	for range 1 + g(3) {
		roll := sim.Step{After: g.upTo(time.Hour), Do: sim.Roll, Name: d.Name, Class: classNames[g(len(classNames))]}
		s.Steps = slices.Insert(s.Steps, g(len(s.Steps)+1), roll)
	}
}

// classNames are the names of a scenario's classes.
var classNames = [...]string{"small", "large", "huge"}

// nodeTemplate draws the labels, annotations and taints of a fleet's nodes.
func (g generator) nodeTemplate(t *machine.NodeTemplate) {
	if g.oneIn(3) {
		return
	}
	t.Labels, t.Annotations = map[string]string{"team": "blue", "tier": "web"}, map[string]string{"contact": "blue"}
	if g(2) == 0 {
		t.Taints = []object.Taint{{Key: "dedicated", Value: "web", Effect: object.PreferNoSchedule}}
	}
}

// others are the actions of other programs and people that otherStep draws from.
var others = [...]sim.Action{
	sim.FlickerNodes, sim.RegisterNode, sim.StripNode, sim.FightOverNodes, sim.TouchObjects, sim.SelectNodes, sim.RemakeClass, sim.RollBriefly,
	sim.SpoilTemplate, sim.HoldDrain, sim.HoldVM, sim.ForceDeletion,
}

// Others returns the actions that only Open draws.
func Others() []sim.Action { return append(slices.Clone(others[:]), sim.SpoilClass) }

// otherStep draws a step of other programs and people.
func (g generator) otherStep(s *sim.Scenario) sim.Step {
	after := g.upTo(30 * time.Minute)
	if g(2) == 0 { // soon, while the last step still has effects
		after /= 20
	}
	step := sim.Step{After: after, Do: others[g(len(others))], N: 1 + g(8), For: g.upTo(2 * time.Minute)}
	switch {
	case step.Do == sim.StripNode && g(2) == 0:
		step.For = 0
	case step.Do == sim.TouchObjects, step.Do == sim.FightOverNodes:
		step.For *= 15
	case step.Do == sim.RemakeClass, step.Do == sim.RollBriefly, step.Do == sim.SpoilTemplate:
		step.Class, step.For = [...]string{"small", "large", "huge"}[g(3)], step.For*time.Duration(1+g(20))
		step.Name = s.Deployments[g(len(s.Deployments))].Name
	case step.Do == sim.HoldDrain, step.Do == sim.HoldVM:
		step.N, step.For = step.N/4, step.For*120 // up to four hours
	}
	return step
}
