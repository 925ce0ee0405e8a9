package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

func init() {
	scenarios["marks-through-a-rollout"] = marksThroughRollout
	scenarios["marks-reverted"] = marksReverted
	scenarios["marks-of-a-released-set"] = marksReleased
}

var both = machine.RolloutMarks{Avoid: true, Keep: true}

func marksThroughRollout(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.shell.p.RolloutMarks = both
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.writeMarks()
	s.runRounds(5)
	s.writeMarks()
	return s
}

func marksReverted(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.shell.p.RolloutMarks = both
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runRounds(2)
	s.comment("no, it is not")
	s.edit(class("small"))
	s.decide()
	s.writeMarks()
	s.runRounds(3)
	s.writeMarks()
	return s
}

func marksReleased(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.comment("another class is wanted, and the old set is taken out")
	s.edit(class("large"))
	s.decide()
	old := s.sets[0].Name
	s.changeSet(old, func(s *machineset.Set) { s.Labels = map[string]string{"app": "else"} })
	s.decide()
	s.writeMarks()
	return s
}

// writeMarks writes down the marks of each set.
func (s *scenario) writeMarks() {
	for _, set := range s.sets {
		s.comment("marks of %s: %+v", set.Name, set.Instructions.Marks)
	}
}

// TestMarksLastAsLongAsARollout: at the end of each pass without a refusal, the sets with machines have the policy's
// marks if a rollout is under way, and otherwise none. Released sets have none.
// Invariants: P23
func TestMarksLastAsLongAsARollout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		marks := rapid.SampledFrom([]machine.RolloutMarks{{}, {Avoid: true}, {Keep: true}, both}).Draw(t, "marks")
		startShell := func() { c.startShell(); c.shell.p.RolloutMarks = marks }
		startShell()
		c.observe = func(o *deployment.Observation, p deployment.Plan) {
			for _, order := range p.Release {
				require.Equal(t, machine.RolloutMarks{}, order.Set.Instructions.Marks)
			}
			if !p.At.IsZero() && o.Failed == nil && p.Why.Reason != deployment.ReasonOrderRefused {
				requireMarks(t, o, marks)
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if c.randomStep(); c.shell.p.RolloutMarks != marks { // it crashed
				startShell()
			}
		}
		require.GreaterOrEqual(t, c.converge(), 0)
		for _, child := range c.setsOf(c.deployment.UID) {
			if child.Spec.Replicas > 0 {
				require.Equal(t, machine.RolloutMarks{}, child.Instructions.Marks, "P23: left after the rollout")
			}
		}
	})
}

func requireMarks(t *rapid.T, o *deployment.Observation, marks machine.RolloutMarks) {
	current := newest(o)
	if current == nil {
		return
	}
	rolling := slices.ContainsFunc(o.Sets, func(c deployment.Children) bool { return used(c) && c.Set != current })
	for _, c := range o.Sets {
		want := machine.RolloutMarks{Avoid: marks.Avoid && c.Set != current && rolling, Keep: marks.Keep && rolling}
		if used(c) && !c.Set.Deleted() {
			require.Equal(t, want, c.Set.Instructions.Marks, "set %s", c.Set.Name)
		}
	}
}

// used reports whether a set has machines, or should have some.
func used(c deployment.Children) bool {
	return c.Set.Spec.Replicas > 0 && !c.Set.Deleted() ||
		slices.ContainsFunc(c.Machines, func(m *machine.Machine) bool { return !m.Deleted() })
}

// newest returns the new set: of the sets with the wanted class the one that comes first by older. Nil: there is none.
func newest(o *deployment.Observation) (current *machineset.Set) {
	for _, c := range o.Sets {
		same := c.Set.Spec.Template.Spec.Class.Name == o.Deployment.Spec.Template.Spec.Class.Name
		if same && !c.Set.Deleted() && (current == nil || older(o, c.Set, current.UID)) {
			current = c.Set
		}
	}
	return current
}

// TestMarksCostOneWriteASet: in a rollout of one machine at a time, the marks of a set need a write of their own only
// if no other order writes the set: the new set needs one at the end to remove Keep, and the old set one at the
// beginning to get Avoid.
func TestMarksCostOneWriteASet(t *testing.T) {
	writes := func(marks machine.RolloutMarks) int {
		w := newWorld(web(4))
		shell := newShell(t, w)
		shell.p.RolloutMarks = marks
		settle := func() {
			for range 30 {
				w.now = w.now.Add(time.Minute)
				w.runSetControllers()
				w.advanceMachines()
				shell.pass()
			}
		}
		settle()
		before := w.writes
		w.edit(class("large"))
		settle()
		return w.writes - before
	}
	without := writes(machine.RolloutMarks{})
	require.Equal(t, without+1, writes(machine.RolloutMarks{Avoid: true}))
	require.Equal(t, without+2, writes(both))
}
