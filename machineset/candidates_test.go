package machineset_test

import (
	"slices"
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
			set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: s.name(3), At: s.w.now}, {Name: "nobody", At: s.w.now}}
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
		s.w.edit(func(set *machineset.Set) {
			set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: s.name(1), At: s.w.now}}
		})
		s.pass()
		require.Len(t, s.w.active(), 2)
	})
}

// TestP7ChosenGoBeforeReplacements: a machine that a scaler has chosen goes before one
// that is to be replaced, which waits for another if the first served (P7).
func TestP7ChosenGoBeforeReplacements(t *testing.T) {
	o := liveObservation(newSet(2), 4)
	o.Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: o.Machines[1].Name, At: morning}}
	o.Machines[0].Annotations = map[string]string{replaceKey: "true"}
	o.Machines[3].Status.Phase = machine.PhasePending // made in the place of the first
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{o.Machines[1].Name}, names(plan.Delete))
	o.Machines = slices.Delete(o.Machines, 1, 2)
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Empty(t, names(plan.Delete))
}

// TestChosenBeforeItServed: a machine that a scaler chose before it was available
// is not deleted before one that is not, and before its equals it is.
func TestChosenBeforeItServed(t *testing.T) {
	for name, c := range map[string]struct {
		chosen time.Duration // after the third machine had become available
		broken bool          // the first is not available
		want   int
	}{
		"it served when it was chosen":                     {0, true, 2},
		"it serves since, another does not":                {-time.Second, true, 0},
		"it serves since, as all others do":                {-time.Second, false, 2},
		"it serves for a while, another has begun to fail": {time.Hour, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := owned(2, 3)
			o.Set.Spec.MinReady = time.Minute
			third := o.Machines[2]
			at := third.AvailableAt(time.Minute).Add(c.chosen)
			if c.broken {
				o.Machines[0].Status.Phase = machine.PhaseUnknown
			}
			o.Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: third.Name, At: at}}
			plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning.Add(24*time.Hour))
			require.NoError(t, err)
			require.Len(t, plan.Delete, 1, "%s", plan.Why)
			require.Equal(t, o.Machines[c.want].Name, plan.Delete[0].Machine.Name)
		})
	}
}

// TestVictimsAreCopied: a copy of a set shares no names with it, and differs in
// spec when they differ, but not for the location of a time.
func TestVictimsAreCopied(t *testing.T) {
	set := newSet(1)
	set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: "a", At: morning}}
	c := set.Clone()
	require.True(t, c.SpecEqual(set))
	c.Instructions.DeletionCandidates[0].At = morning.In(time.FixedZone("else", 3600))
	require.True(t, c.SpecEqual(set))
	c.Instructions.DeletionCandidates[0].At = morning.Add(time.Second)
	require.False(t, c.SpecEqual(set))
	require.True(t, set.Instructions.DeletionCandidates[0].At.Equal(morning))
	c = set.Clone()
	c.Instructions.DeletionCandidates[0].Name = "b"
	require.False(t, c.SpecEqual(set))
}
