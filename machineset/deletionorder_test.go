package machineset_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// TestDeletionOrder: a set that is scaled to nothing deletes its machines in this order, one for each
// rule of the deletion order.
func TestDeletionOrder(t *testing.T) {
	annotated := func(key, value string) func(*machine.Machine) {
		return func(m *machine.Machine) { m.Annotations = map[string]string{key: value} }
	}
	phase := func(p machine.Phase) func(*machine.Machine) {
		return func(m *machine.Machine) { m.Status.Phase = p }
	}
	order := []struct {
		name   string
		change func(*machine.Machine)
	}{
		{"chosen by an autoscaler", func(*machine.Machine) {}},
		{"unavailable, to be replaced", func(m *machine.Machine) {
			m.Status.Since = morning
			annotated(replaceKey, "true")(m)
		}},
		{"of a low priority, though it is available", annotated(priorityKey, "1")},
		{"in a crash loop", phase(machine.PhaseCrashLoopBackOff)},
		{"new", phase(machine.PhaseNew)},
		{"unknown", phase(machine.PhaseUnknown)},
		{"pending", phase(machine.PhasePending)},
		{"available, without a cluster, not for long enough", func(m *machine.Machine) {
			m.Status.Phase, m.Status.Since = machine.PhaseAvailable, morning
		}},
		{"failed to be updated", phase(machine.PhaseInPlaceUpdateFailed)},
		{"updated", phase(machine.PhaseInPlaceUpdateSuccessful)},
		{"being updated", phase(machine.PhaseInPlaceUpdating)},
		{"running, not for long enough", func(m *machine.Machine) { m.Status.Since = morning }},
		{"running, to be replaced", annotated(replaceKey, "true")},
		{"running, the oldest", func(m *machine.Machine) { m.CreatedAt = m.CreatedAt.Add(-time.Minute) }},
		{"running, a", func(*machine.Machine) {}},
		{"running, b", func(*machine.Machine) {}},
		{"of a high priority, though it is pending", func(m *machine.Machine) {
			annotated(priorityKey, "9")(m)
			m.Status.Phase = machine.PhasePending
		}},
		{"kept by a user", func(m *machine.Machine) {
			annotated(preserveKey, machine.PreserveNow)(m)
			m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: morning, Until: morning.Add(time.Hour)}
		}},
	}
	set := newSet(0)
	set.Owner = &object.Owner{UID: "deployment"} // no surge allowance: requests delete no machine
	set.Spec.MinReady = time.Minute
	o := liveObservation(set, len(order))
	var want []string
	for i, m := range o.Machines {
		m.Name, m.CreatedAt, m.Status.Since = order[i].name, morning.Add(-time.Hour), morning.Add(-time.Hour)
		order[i].change(m)
		want = append(want, m.Name)
	}
	set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: want[0], At: morning}}
	slices.Reverse(o.Machines)
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, want, names(plan.Delete), "%s", plan.Why)
}
