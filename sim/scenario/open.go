package scenario

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/millwright-go/millwright/sim"
)

// Open draws the scenario that Random draws of the same seed, and adds what other programs and
// people do to nodes, machines and classes: the open world.
func Open(seed uint64) *sim.Scenario {
	s := Random(seed)
	g := generator(rand.New(rand.NewPCG(seed, 6)).IntN) //nolint:gosec // a simulation
	for range 2 + g(8) {
		s.Steps = slices.Insert(s.Steps, g(len(s.Steps)+1), g.meddling())
	}
	return s
}

// others are what a step of other programs and people does.
var others = [...]sim.Action{sim.FlickerNodes}

// Others returns the actions that only Open draws.
func Others() []sim.Action { return slices.Clone(others[:]) }

// meddling draws what other programs and people do.
func (g generator) meddling() sim.Step {
	after := g.upTo(30 * time.Minute)
	if g(2) == 0 { // while something is under way
		after /= 20
	}
	return sim.Step{After: after, Do: others[g(len(others))], N: 1 + g(8), For: g.upTo(2 * time.Minute)}
}
