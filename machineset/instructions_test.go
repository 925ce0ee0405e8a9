package machineset_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// TestInstructionsThatCountAsSpec: all parts of the instructions count as spec, except for the two that are
// written with the metadata. A clone shares no part.
func TestInstructionsThatCountAsSpec(t *testing.T) {
	parts := map[string]struct {
		set  func(*machineset.Instructions)
		spec bool
	}{
		"Reservation":        {func(i *machineset.Instructions) { i.Reservation.Reserved = 1 }, false},
		"Handover":           {func(i *machineset.Instructions) { i.Handover.Arriving = []string{"a"} }, false},
		"Marks":              {func(i *machineset.Instructions) { i.Marks.Avoid = true }, true},
		"DeletionCandidates": {func(i *machineset.Instructions) { i.DeletionCandidates = []machineset.DeletionCandidate{{Name: "a"}} }, true},
		"PreviousClasses":    {func(i *machineset.Instructions) { i.PreviousClasses = []string{"a"} }, true},
		"SurgeAllowance":     {func(i *machineset.Instructions) { i.SurgeAllowance.Unavailable = 1 }, true},
	}
	all := reflect.TypeFor[machineset.Instructions]()
	require.Len(t, parts, all.NumField())
	for i := range all.NumField() {
		name := all.Field(i).Name
		part, known := parts[name]
		require.True(t, known, name)
		s := &machineset.Set{}
		part.set(&s.Instructions)
		require.False(t, reflect.ValueOf(s.Instructions).Field(i).IsZero(), name)
		require.Equal(t, !part.spec, s.SpecEqual(&machineset.Set{}), name)
		c := s.Clone()
		require.True(t, s.SpecEqual(c), name)
		require.Equal(t, s, c, name)
		if list := reflect.ValueOf(c.Instructions).Field(i); list.Kind() == reflect.Slice {
			require.NotSame(t, reflect.ValueOf(s.Instructions).Field(i).Index(0).Addr().Interface(), list.Index(0).Addr().Interface(), name)
		}
	}
}

// TestP20DeletionCandidatesGoFirst: surplus machines that a scaler chose are deleted before all others, whatever
// their priority. Without a surplus they are not deleted.
// Invariants: P20
func TestP20DeletionCandidatesGoFirst(t *testing.T) {
	playScenario(t, "chosen-go-first", 4, func(s *scenario) {
		s.runAll()
		s.w.change(s.name(1), func(m *machine.Machine) { m.Annotations[priorityKey] = "1" })
		s.w.change(s.name(3), func(m *machine.Machine) { m.Annotations[priorityKey] = "100" })
		s.comment("a scaler chose the third, and a replica is taken away")
		s.w.edit(func(set *machineset.Set) {
			set.Spec.Replicas = 3
			set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: s.name(3), At: s.w.now}, {Name: "nobody", At: s.w.now}}
		})
		s.pass()
		require.True(t, s.w.machines[s.name(3)].Deleted())
		s.comment("two more go, in the usual order")
		s.w.removeDeleted()
		s.scale(1)
		s.after(time.Minute)
		require.False(t, s.w.machines[s.name(4)].Deleted())
	})
	playScenario(t, "chosen-without-surplus", 2, func(s *scenario) {
		s.runAll()
		s.comment("one is named though no replica is taken away")
		s.w.edit(func(set *machineset.Set) {
			set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: s.name(1), At: s.w.now}}
		})
		s.pass()
		require.Len(t, s.w.active(), 2)
	})
}

// TestP7ChosenGoBeforeReplacements: a machine that a scaler has chosen is deleted before one that is to be
// replaced. The latter is then deleted only when its replacement is available (P7).
// Invariants: P7
func TestP7ChosenGoBeforeReplacements(t *testing.T) {
	o := liveObservation(newSet(2), 4)
	o.Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: o.Machines[1].Name, At: morning}}
	o.Machines[0].Annotations = map[string]string{replaceKey: "true"}
	o.Machines[3].Status.Phase = machine.PhasePending // the replacement of the first
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{o.Machines[1].Name}, names(plan.Delete))
	o.Machines = slices.Delete(o.Machines, 1, 2)
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Empty(t, names(plan.Delete))
}

// TestChosenBeforeAvailable: a machine that became available after a scaler chose it is deleted after unavailable
// machines, and before other available ones.
func TestChosenBeforeAvailable(t *testing.T) {
	for name, c := range map[string]struct {
		chosen time.Duration // when the third machine was chosen, after it had become available
		broken bool          // the first is not available
		want   int           // which machine is deleted
	}{
		"available when it was chosen":                   {0, true, 2},
		"available since, another is not":                {-time.Second, true, 0},
		"available since, as all others are":             {-time.Second, false, 2},
		"available for a while, another is not any more": {time.Hour, true, 2},
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

// TestDeletionCandidatesAreCopied: a clone of a set does not share its deletion candidates. A change of one
// changes the spec, unless only the location of its time changes.
func TestDeletionCandidatesAreCopied(t *testing.T) {
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

// brokenHandover says which order breaks a handover: one for a machine that is leaving, a creation in place of
// one that is arriving, or a creation by a closed set. Empty: none does.
func brokenHandover(o *machineset.Observation, plan *machineset.Plan) string {
	if o.Set.Owner == nil || o.Set.Deleted() {
		return ""
	}
	h := &o.Set.Instructions.Handover
	for _, order := range slices.Concat(plan.Delete, plan.Push, plan.Release) {
		if slices.Contains(h.Leaving, order.Machine.Name) {
			return "P10: an order for a machine that leaves: " + order.Machine.Name
		}
	}
	creates := len(plan.Create)
	if write, ok := plan.Write.(*machineset.Update); ok {
		creates += int(max(0, write.Set.Instructions.Reservation.Reserved-o.Set.Instructions.Reservation.Reserved))
	}
	if creates > 0 && h.Closed {
		return "a closed set creates"
	}
	active, arriving := counted(o)
	if creates > 0 && active+arriving+creates > int(o.Set.Spec.Replicas) {
		return fmt.Sprintf("P10: %d created beside %d, with %d arriving, of %d", creates, active, arriving, o.Set.Spec.Replicas)
	}
	return ""
}

// counted returns the number of the set's active machines, and of those arriving.
func counted(o *machineset.Observation) (active, arriving int) {
	names := map[string]bool{}
	for _, name := range o.Set.Instructions.Handover.Arriving {
		names[name] = true
	}
	for _, m := range o.Machines {
		if m == nil || !m.OwnedBy(o.Set.UID) {
			continue
		}
		delete(names, m.Name)
		counts := !m.Deleted() && m.Status.Phase != machine.PhaseFailed && m.Labels["pool"] == "web"
		if counts && !slices.Contains(o.Set.Instructions.Handover.Leaving, m.Name) {
			active++
		}
	}
	return active, len(names)
}

// TestArrivingDeletesNothing: names of arriving machines never lead to an order for an existing machine that
// would not be given without them.
// Invariants: P10
func TestArrivingDeletesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		plan, err := machineset.Decide(o, p, morning)
		require.NoError(t, err)
		without := copied(o)
		without.Set.Instructions.Handover.Arriving = nil
		other, err := machineset.Decide(without, p, morning)
		require.NoError(t, err)
		for kind, orders := range map[string][2][]machineset.Order{
			"delete": {plan.Delete, other.Delete}, "adopt": {plan.Adopt, other.Adopt}, "release": {plan.Release, other.Release},
			"push": {plan.Push, other.Push},
		} {
			if len(other.Create) == 0 && !reserves(without, &other) {
				require.Equal(t, names(orders[1]), names(orders[0]), kind)
			} else {
				require.Empty(t, orders[0], kind)
			}
		}
	})
}

// TestHandoverIgnoredWithoutOwner: a set without an owner, and one that is being deleted, ignores the handover.
func TestHandoverIgnoredWithoutOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		if rapid.Bool().Draw(t, "lone") {
			o.Set.Owner = nil
		} else {
			o.Set.DeletedAt, o.Set.Owner = morning, &object.Owner{UID: "deployment-1"}
		}
		plan, err := machineset.Decide(o, p, morning)
		require.NoError(t, err)
		without := copied(o)
		without.Set.Instructions.Handover = machineset.Handover{}
		other, err := machineset.Decide(without, p, morning)
		require.NoError(t, err)
		require.Equal(t, other.Why, plan.Why)
		require.Equal(t, names(other.Delete), names(plan.Delete))
		require.Equal(t, names(other.Create), names(plan.Create))
	})
}

// owned returns a live read of a deployment's set, with a number of running machines.
func owned(replicas int32, machines int) *machineset.Observation {
	set := newSet(replicas)
	set.Generation = 1
	set.Finalizers = []string{machineset.Finalizer}
	set.Owner = &object.Owner{Kind: "MachineDeployment", Name: "web", UID: "deployment-1"}
	o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: morning}}
	for i := range machines {
		m := &machine.Machine{Spec: set.Spec.Template.Spec.Clone()}
		m.Key = object.Key{Namespace: namespace, Name: fmt.Sprintf("m-%d", i+1)}
		m.UID, m.Labels = m.Name, set.Spec.Template.Labels
		m.CreatedAt = morning.Add(time.Duration(i) * time.Second)
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID}
		m.Status = machine.Status{Phase: machine.PhaseRunning, Since: morning}
		o.Machines = append(o.Machines, m)
	}
	return o
}

// TestHandoverStepByStep: a machine moves from one set to another. These are the decisions of both sets at each
// step.
// Invariants: P10
func TestHandoverStepByStep(t *testing.T) {
	for name, step := range map[string]struct {
		replicas          int32
		machines          int
		arriving, leaving []string
		closed            bool
		reserved          int64           // how many names the plan reserves
		deleted           int             // how many machines it deletes
		why               decision.Reason // zero: any
	}{
		"arriving, not there yet":           {replicas: 3, machines: 2, arriving: []string{"x"}},
		"arriving, noted twice":             {replicas: 4, machines: 2, arriving: []string{"x", "x"}, reserved: 1},
		"arrived, still noted":              {replicas: 3, machines: 3, arriving: []string{"m-3"}},
		"arrived, still noted, one missing": {replicas: 4, machines: 3, arriving: []string{"m-3"}, reserved: 1},
		"gone, no longer noted":             {replicas: 3, machines: 2, reserved: 1},
		"no room for the arriving one":      {replicas: 2, machines: 2, arriving: []string{"x"}},
		"leaving":                           {replicas: 2, machines: 3, leaving: []string{"m-1"}},
		"leaving, one too many":             {replicas: 1, machines: 3, leaving: []string{"m-1"}, deleted: 1},
		"leaving, one missing":              {replicas: 3, machines: 3, leaving: []string{"m-1"}, reserved: 1},
		"closed, one missing":               {replicas: 3, machines: 2, closed: true, why: machineset.ReasonClosed},
		"closed, one too many":              {replicas: 1, machines: 2, closed: true, deleted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := owned(step.replicas, step.machines)
			o.Set.Instructions.Handover = machineset.Handover{Arriving: step.arriving, Leaving: step.leaving, Closed: step.closed}
			o.StatusWritten = morning
			plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
			require.NoError(t, err)
			reserved := int64(0)
			if write, ok := plan.Write.(*machineset.Update); ok {
				reserved = write.Set.Instructions.Reservation.Reserved
				require.Equal(t, o.Set.Instructions.Handover, write.Set.Instructions.Handover, "each write keeps the handover")
			}
			require.Equal(t, step.reserved, reserved, "%s", plan.Why)
			require.Len(t, plan.Delete, step.deleted, "%s", plan.Why)
			if step.deleted > 0 {
				require.NotContains(t, step.leaving, plan.Delete[0].Machine.Name)
			}
			if step.why != (decision.Reason{}) {
				require.Equal(t, step.why, plan.Why.Reason)
			}
		})
	}
}

// TestLeavingIsLeftAlone: a leaving machine is not replaced when it fails, not updated to the template, not
// released, and not counted in the status.
func TestLeavingIsLeftAlone(t *testing.T) {
	o := owned(2, 3)
	m := o.Machines[0]
	m.Status.Phase, m.Status.LastOperation.State = machine.PhaseFailed, machine.StateFailed
	m.Labels, m.Spec.NodeTemplate = nil, machine.NodeTemplate{}
	o.Set.Instructions.Handover.Leaving = []string{m.Name}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	write, ok := plan.Write.(*machineset.UpdateStatus)
	require.True(t, ok, "%s", plan.Why)
	require.Equal(t, int32(2), write.Status.Replicas)
	require.Empty(t, write.Status.Failed)

	o.Set.DeletedAt = morning
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Len(t, plan.Delete, 3, "a set that is being deleted deletes it, too: %s", plan.Why)
}

// TestSelectedGoFirst: of running machines, one that is selected for an in-place update, and so about to stop,
// is deleted first.
func TestSelectedGoFirst(t *testing.T) {
	o := owned(2, 3)
	o.Machines[1].Spec.InPlace = machine.InPlaceSelected
	o.Machines[0].Spec.InPlace = machine.InPlaceCandidate
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{"m-2"}, names(plan.Delete), "%s", plan.Why)
}

// TestCloneSharesNoHandover: a clone of a set does not share its handover.
func TestCloneSharesNoHandover(t *testing.T) {
	set := newSet(1)
	set.Instructions.Handover = machineset.Handover{Arriving: []string{"a"}, Leaving: []string{"b"}, Closed: true}
	clone := set.Clone()
	require.Equal(t, set.Instructions.Handover, clone.Instructions.Handover)
	clone.Instructions.Handover.Arriving[0], clone.Instructions.Handover.Leaving[0] = "c", "d"
	require.Equal(t, machineset.Handover{Arriving: []string{"a"}, Leaving: []string{"b"}, Closed: true}, set.Instructions.Handover)
}

// TestPreviousClasses: a machine of one of the template's previous classes gets the template's class. A machine
// of any other class keeps it, because its VM may be of another provider.
func TestPreviousClasses(t *testing.T) {
	for _, c := range []struct {
		have     machine.ClassRef
		previous []string
		pushed   bool
	}{
		{machine.ClassRef{Kind: "MachineClass", Name: "small-a"}, []string{"small-b", "small-a"}, true},
		{machine.ClassRef{Kind: "MachineClass", Name: "small-a"}, []string{"small-b"}, false},
		{machine.ClassRef{Kind: "MachineClass", Name: "small-a"}, nil, false},
		{machine.ClassRef{Kind: "MachineClass", Name: "small-a", APIGroup: "other"}, []string{"small-a"}, false},
		{machine.ClassRef{Kind: "MachineClass", Name: "small"}, []string{"small-a", "small"}, false},
	} {
		o := fleet(1, 1, false)
		o.Set.Spec.Template.Spec.Class = machine.ClassRef{Kind: "MachineClass", Name: "small"}
		o.Set.Instructions.PreviousClasses = c.previous
		o.Machines[0].Spec.Class, o.Machines[0].Spec.ProviderID = c.have, "vm-1"
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		if !c.pushed {
			require.Empty(t, plan.Push, "%v", c)
			continue
		}
		require.Len(t, plan.Push, 1, "%v", c)
		got := plan.Push[0].Machine.Spec
		require.Equal(t, o.Set.Spec.Template.Spec.Class, got.Class)
		require.Equal(t, "vm-1", got.ProviderID)
		require.Equal(t, "its class differs from the template: updating it without replacement", plan.Push[0].Why.String())
	}
}

// TestPreviousClassesCountAsSpec: a clone does not share the previous classes, and a change of them changes the
// spec.
func TestPreviousClassesCountAsSpec(t *testing.T) {
	set := newSet(1)
	set.Instructions.PreviousClasses = []string{"a"}
	c := set.Clone()
	require.True(t, c.SpecEqual(set))
	c.Instructions.PreviousClasses[0] = "b"
	require.Equal(t, "a", set.Instructions.PreviousClasses[0])
	require.False(t, c.SpecEqual(set))
}
