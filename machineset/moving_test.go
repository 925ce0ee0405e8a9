package machineset_test

import (
	"fmt"
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

// mishandled says which order disregards that machines are on their way: one
// for a machine that leaves, a creation in the place of one that arrives or by
// a set that is closed.
func mishandled(o *machineset.Observation, plan *machineset.Plan) string {
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

// counted are the machines that count as a set's, and those on their way to it.
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

// TestHandoverTakesNothing is P10: for any names that are noted as arriving, no
// machine is deleted, adopted or released for it that would not be otherwise.
func TestHandoverTakesNothing(t *testing.T) {
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

// TestHandoverIsTheOwners: a set without owner, and one that is being deleted,
// does as if nothing were noted.
func TestHandoverIsTheOwners(t *testing.T) {
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

// owned is a set of a deployment with so many running machines, observed live.
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

// TestHandoverStepByStep: a machine that comes from another set, seen from the
// set that it comes to and from the one that it leaves, at each of its steps.
func TestHandoverStepByStep(t *testing.T) {
	for name, step := range map[string]struct {
		replicas          int32
		machines          int
		arriving, leaving []string
		closed            bool
		reserved          int64
		deleted           int
		why               decision.Reason
	}{
		"arriving, not there yet":           {replicas: 3, machines: 2, arriving: []string{"x"}},
		"arriving, noted twice":             {replicas: 4, machines: 2, arriving: []string{"x", "x"}, reserved: 1},
		"arrived, still noted":              {replicas: 3, machines: 3, arriving: []string{"m-3"}},
		"arrived, still noted, one missing": {replicas: 4, machines: 3, arriving: []string{"m-3"}, reserved: 1},
		"gone, no longer noted":             {replicas: 3, machines: 2, reserved: 1},
		"too small for what arrives":        {replicas: 2, machines: 2, arriving: []string{"x"}},
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
				require.Equal(t, o.Set.Instructions.Handover, write.Set.Instructions.Handover, "the notes go with every write")
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

// TestLeavingIsLeftAlone: a machine that leaves is neither replaced when it
// fails, nor brought in line, nor released, nor part of the status.
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
	require.Len(t, plan.Delete, 3, "a set that goes takes it along: %s", plan.Why)
}

// TestSelectedGoFirst: of machines that run, one that is about to stop to be
// updated is the least loss.
func TestSelectedGoFirst(t *testing.T) {
	o := owned(2, 3)
	o.Machines[1].Spec.InPlace = machine.InPlaceSelected
	o.Machines[0].Spec.InPlace = machine.InPlaceCandidate
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{"m-2"}, names(plan.Delete), "%s", plan.Why)
}

// TestCloneSharesNoNotes: a copy of a set can be noted on without the original.
func TestCloneSharesNoNotes(t *testing.T) {
	set := newSet(1)
	set.Instructions.Handover = machineset.Handover{Arriving: []string{"a"}, Leaving: []string{"b"}, Closed: true}
	clone := set.Clone()
	require.Equal(t, set.Instructions.Handover, clone.Instructions.Handover)
	clone.Instructions.Handover.Arriving[0], clone.Instructions.Handover.Leaving[0] = "c", "d"
	require.Equal(t, machineset.Handover{Arriving: []string{"a"}, Leaving: []string{"b"}, Closed: true}, set.Instructions.Handover)
}
