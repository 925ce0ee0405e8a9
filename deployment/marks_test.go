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
	stories["marks-through-a-rollout"] = marksThroughRollout
	stories["marks-reverted"] = marksReverted
	stories["marks-of-a-released-set"] = marksReleased
}

var both = machine.RolloutMarks{Avoid: true, Keep: true}

func marksThroughRollout(t *testing.T) *story {
	s := settled(t, web(3))
	s.shell.p.RolloutMarks = both
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.tellMarks()
	s.follow(5)
	s.tellMarks()
	return s
}

func marksReverted(t *testing.T) *story {
	s := settled(t, web(3))
	s.shell.p.RolloutMarks = both
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.follow(2)
	s.say("no, it is not")
	s.edit(class("small"))
	s.decide()
	s.tellMarks()
	s.follow(3)
	s.tellMarks()
	return s
}

func marksReleased(t *testing.T) *story {
	s := settled(t, web(2))
	s.say("another class is wanted, and the old set is taken out")
	s.edit(class("large"))
	s.decide()
	old := s.sets[0].Name
	s.changeSet(old, func(s *machineset.Set) { s.Labels = map[string]string{"app": "else"} })
	s.decide()
	s.tellMarks()
	return s
}

// tellMarks writes down what each set has on it.
func (s *story) tellMarks() {
	for _, set := range s.sets {
		s.say("marks of %s: %+v", set.Name, set.Instructions.Marks)
	}
}

// TestMarksLastAsLongAsARollout: whenever a pass ends that nothing delayed, the sets with machines
// carry the marks that a rollout under way asks for, and none otherwise. Sets that are not ours any
// more carry none.
// Invariants: P23
func TestMarksLastAsLongAsARollout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		marks := rapid.SampledFrom([]machine.RolloutMarks{{}, {Avoid: true}, {Keep: true}, both}).Draw(t, "marks")
		hire := func() { c.hire(); c.shell.p.RolloutMarks = marks }
		hire()
		c.observe = func(o *deployment.Observation, p deployment.Plan) {
			for _, order := range p.Release {
				require.Equal(t, machine.RolloutMarks{}, order.Set.Instructions.Marks)
			}
			if !p.At.IsZero() && o.Failed == nil && p.Why.Reason != deployment.ReasonOrderRefused {
				requireMarks(t, o, marks)
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if c.move(); c.shell.p.RolloutMarks != marks { // it crashed
				hire()
			}
		}
		require.GreaterOrEqual(t, c.rest(), 0)
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

// newest returns the oldest set of the wanted class. Nil: there is none.
func newest(o *deployment.Observation) (current *machineset.Set) {
	for _, c := range o.Sets {
		same := c.Set.Spec.Template.Spec.Class.Name == o.Deployment.Spec.Template.Spec.Class.Name
		if same && !c.Set.Deleted() && (current == nil || older(o, c.Set, current.UID)) {
			current = c.Set
		}
	}
	return current
}

// TestMarksCostOneWriteASet: a rollout of one machine at a time needs one write of each set for its
// marks at its beginning and one at its end. The new set's first marks come with its first machine.
func TestMarksCostOneWriteASet(t *testing.T) {
	writes := func(marks machine.RolloutMarks) int {
		w := newWorld(web(4))
		shell := newShell(t, w)
		shell.p.RolloutMarks = marks
		settle := func() {
			for range 30 {
				w.now = w.now.Add(time.Minute)
				w.obeyAll()
				w.liveAll()
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
