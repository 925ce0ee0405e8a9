package machineset_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// TestRolloutMarks: machines follow their set's marks, new ones are born with
// them, and none that is let go keeps them.
func TestRolloutMarks(t *testing.T) {
	avoid := machine.RolloutMarks{Avoid: true}
	story(t, "rollout-marks", 2, func(s *stage) {
		s.settled()
		s.say("a rollout begins, and this set is old")
		s.w.edit(func(set *machineset.Set) { set.Instructions.Marks = avoid })
		s.pass()
		s.say("the first is taken out, and another comes")
		s.w.change(s.name(1), func(m *machine.Machine) { m.Labels["pool"] = "quarantine" })
		s.after(time.Minute)
		require.Equal(t, machine.RolloutMarks{}, s.w.machines[s.name(1)].Spec.Marks)
		require.Equal(t, avoid, s.w.machines[s.name(2)].Spec.Marks)
		require.Equal(t, avoid, s.w.machines[s.name(3)].Spec.Marks)
		s.say("the rollout is reverted")
		s.w.edit(func(set *machineset.Set) { set.Instructions.Marks = machine.RolloutMarks{} })
		s.after(time.Minute)
		require.Equal(t, machine.RolloutMarks{}, s.w.machines[s.name(3)].Spec.Marks)
	})
}

// TestMarksAreNoPartOfTheTemplate: a template that has some is refused, as it is
// for a deployment.
func TestMarksAreNoPartOfTheTemplate(t *testing.T) {
	set := newSet(1)
	require.NoError(t, set.Validate())
	set.Spec.Template.Spec.Marks.Keep = true
	var bad *object.FieldError
	require.True(t, errors.As(set.Validate(), &bad))
	require.Equal(t, "spec.template.spec.marks", bad.Field)
}
