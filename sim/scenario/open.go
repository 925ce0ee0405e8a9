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

// Open draws the scenario that Random draws of the same seed, and adds what other programs and
// people do to nodes, machines and classes: the open world.
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
		s.Steps = slices.Insert(s.Steps, g(len(s.Steps)+1), g.meddling(s))
	}
	if g.oneIn(2) {
		g.agents(s)
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

// lateNodes has nodes register late and without a startup taint, so that pods are on them at once, and
// calls take long or fail: a machine may be deleted before its node is there.
func (g generator) lateNodes(f *sim.Faults) {
	f.NoStartupTaint = true
	f.SlowBoot, f.CallTime, f.Call = max(f.SlowBoot, g.upTo(15*time.Minute)), max(f.CallTime, g.upTo(2*time.Minute)), max(f.Call, g.rare(0.3))
}

// unreadableClass has somebody spoil a class and, soon or after hours, mend it.
func (g generator) unreadableClass(s *sim.Scenario) {
	for range 1 + g(2) {
		step := sim.Step{After: g.upTo(20 * time.Minute), Do: sim.SpoilClass, Class: classNames[g(len(classNames))], For: g.upTo(2*time.Minute) * time.Duration(1+g(60))}
		s.Steps = slices.Insert(s.Steps, g(len(s.Steps)+1), step)
	}
}

// agents have a fleet updated in place whose agents are late, restart their nodes or correct themselves.
func (g generator) agents(s *sim.Scenario) {
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

// classNames are those of the classes of a storm.
var classNames = [...]string{"small", "large", "huge"}

// nodeTemplate draws what is on the nodes of a fleet.
func (g generator) nodeTemplate(t *machine.NodeTemplate) {
	if g.oneIn(3) {
		return
	}
	t.Labels, t.Annotations = map[string]string{"team": "blue", "tier": "web"}, map[string]string{"contact": "blue"}
	if g(2) == 0 {
		t.Taints = []object.Taint{{Key: "dedicated", Value: "web", Effect: object.PreferNoSchedule}}
	}
}

// others are what a step of other programs and people does.
var others = [...]sim.Action{
	sim.FlickerNodes, sim.RegisterNode, sim.StripNode, sim.FightOverNodes, sim.TouchObjects, sim.SelectNodes, sim.RemakeClass, sim.RollBriefly,
	sim.SpoilTemplate, sim.HoldDrain, sim.HoldVM, sim.ForceDeletion,
}

// Others returns the actions that only Open draws.
func Others() []sim.Action { return append(slices.Clone(others[:]), sim.SpoilClass) }

// meddling draws what other programs and people do.
func (g generator) meddling(s *sim.Scenario) sim.Step {
	after := g.upTo(30 * time.Minute)
	if g(2) == 0 { // while something is under way
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
