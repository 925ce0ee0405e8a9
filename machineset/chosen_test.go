package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// TestP20ChosenGoFirst: of a surplus, what a scaler chose goes before anything
// else, however important; without a surplus it stays.
func TestP20ChosenGoFirst(t *testing.T) {
	story(t, "chosen-go-first", 4, func(s *stage) {
		s.settled()
		s.w.change(s.name(1), func(m *machine.Machine) { m.Annotations[priorityKey] = "1" })
		s.w.change(s.name(3), func(m *machine.Machine) { m.Annotations[priorityKey] = "100" })
		s.say("a scaler chose the third, and a replica is taken away")
		s.w.edit(func(set *machineset.Set) {
			set.Spec.Replicas = 3
			set.Spec.Victims = []machineset.Victim{{Name: s.name(3), At: s.w.now}, {Name: "nobody", At: s.w.now}}
		})
		s.pass()
		require.True(t, s.w.machines[s.name(3)].Deleted())
		s.say("two more go, in the usual order")
		s.w.finish()
		s.scale(1)
		s.after(time.Minute)
		require.False(t, s.w.machines[s.name(4)].Deleted())
	})
	story(t, "chosen-without-surplus", 2, func(s *stage) {
		s.settled()
		s.say("one is named though no replica is taken away")
		s.w.edit(func(set *machineset.Set) { set.Spec.Victims = []machineset.Victim{{Name: s.name(1), At: s.w.now}} })
		s.pass()
		require.Len(t, s.w.active(), 2)
	})
}

// TestVictimsAreCopied: a copy of a set shares no names with it, and differs in
// spec when they differ, but not for the location of a time.
func TestVictimsAreCopied(t *testing.T) {
	set := newSet(1)
	set.Spec.Victims = []machineset.Victim{{Name: "a", At: morning}}
	c := set.Clone()
	require.True(t, c.SpecEqual(set))
	c.Spec.Victims[0].At = morning.In(time.FixedZone("else", 3600))
	require.True(t, c.SpecEqual(set))
	c.Spec.Victims[0].At = morning.Add(time.Second)
	require.False(t, c.SpecEqual(set))
	require.True(t, set.Spec.Victims[0].At.Equal(morning))
	c = set.Clone()
	c.Spec.Victims[0].Name = "b"
	require.False(t, c.SpecEqual(set))
}
