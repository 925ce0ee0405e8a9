package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

var (
	allPhases = append(knownPhases(), "Dancing")
	allStages = append(deletionStages(),
		machine.StageCreateVM, machine.StageInstanceInitialization, machine.StageInitialized, "Meditating")
	allKinds  = []machine.OperationKind{"", machine.OperationCreate, machine.OperationDelete, machine.OperationHealthCheck, "Sing"}
	allStates = []machine.OperationState{"", machine.StateProcessing, machine.StateFailed, machine.StateSuccessful, "Odd"}
)

func knownPhases() []machine.Phase {
	var all []machine.Phase
	for _, s := range machine.PhaseTable().States() {
		all = append(all, machine.Phase(s))
	}
	return all
}

func deletionStages() []machine.Stage {
	var all []machine.Stage
	for _, s := range machine.DeletionTable().States() {
		all = append(all, machine.Stage(s))
	}
	return all
}

// P18: from every combination of phase, operation, state and stage that
// storage can hold, a deletion reaches its end once the provider answers.
func TestP18DeletionEndsFromEverywhere(t *testing.T) {
	i := 0
	for _, phase := range allPhases {
		for _, stage := range allStages {
			for _, kind := range allKinds {
				for _, opState := range allStates {
					i++
					w := newWorld(t)
					w.running()
					corrupt(w, i, func(m *machine.Machine) {
						m.Status.Phase = phase
						m.Status.LastOperation.Kind, m.Status.LastOperation.State = kind, opState
						m.Status.LastOperation.Stage = stage
					})
					ends(t, w, fmt.Sprintf("from %q, %q/%q, %q", phase, kind, stage, opState))
				}
			}
		}
	}
}

// corrupt stores a machine that is being deleted, with the change and, by
// number, one of several times, codes and losses.
func corrupt(w *world, number int, change func(*machine.Machine)) {
	m := w.store.live().Clone()
	m.DeletedAt = w.now.Truncate(time.Second)
	times := []time.Time{{}, m.DeletedAt, m.DeletedAt.Add(-time.Hour), m.DeletedAt.AddDate(7000, 0, 0)}
	op := &m.Status.LastOperation
	op.Time, m.Status.Since = times[number%len(times)], times[(number/4)%len(times)]
	op.Code = codes.Code(number % 19)
	op.Against = machine.Inputs{Machine: m.Generation, Class: 1, Secret: "v1"}
	if number%3 == 1 {
		m.Spec.NodeName = ""
	}
	if number%5 == 1 {
		m.Spec.ProviderID = ""
	}
	change(m)
	w.store.force(m)
}

// ends lets a deletion run for a day, with a provider that answers.
func ends(t *testing.T, w *world, from string) {
	// What the model holds finalizer removal to does not apply to records
	// that say the VM is gone when it is not.
	w.provider.vms, w.provider.deletedOK = nil, true
	w.provider.mayHaveMade = false
	s, end := &shell{w: w}, w.now.Add(24*time.Hour)
	for range 10 {
		plan, gone, err := s.reconcile()
		require.NoError(t, err)
		if gone {
			return
		}
		require.False(t, plan.At.IsZero(), "%s: waits endlessly: %s", from, plan.Why)
		w.now = plan.At
	}
	require.Fail(t, "no end", "%s until %s, given until %s: %s", from, w.now, end, state(w.store.live()))
}

// P18: the same from any nonsense in every other field.
func TestP18DeletionEndsFromAnyGarbage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		m := anyMachine(t)
		m.Name, m.Finalizers = ours, []string{machine.Finalizer}
		m.DeletedAt = w.now.Truncate(time.Second)
		m.Status.NeverCreated = false
		if !m.Status.ClockFrom.Before(w.now) {
			m.Status.ClockFrom = w.now
		}
		w.store.force(m)
		w.provider.deletedOK = true
		s := &shell{w: w}
		for range 10 {
			plan, gone, err := s.reconcile()
			require.NoError(t, err)
			if gone {
				return
			}
			require.False(t, plan.At.IsZero(), "waits endlessly: %s", plan.Why)
			require.False(t, plan.At.After(w.now.Add(time.Hour)), "waits till %s: %s", plan.At, plan.Why)
			w.now = plan.At
		}
		require.Fail(t, "no end")
	})
}

// P28: from any nonsense at all, a pass ends, and the next one finds nothing
// left to write: nothing is written back and forth.
func TestP28GarbageComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		m := anyMachine(t)
		m.Name, m.DeletedAt = ours, time.Time{}
		w.store.force(m)
		w.provider.deletedOK = true
		if rapid.Bool().Draw(t, "node") {
			n := anyNode(t)
			n.Name, n.UID, n.DeletedAt = node, "node-uid", time.Time{}
			n.Labels = map[string]string{w.policy.Keys.NodeMachine: ours}
			w.cluster.put(&n)
		}
		s := &shell{w: w}
		for range 3 { // a failure to create may be met again by an answer
			_, _, err := s.reconcile()
			require.NoError(t, err)
		}
		writes, nodeWrites := w.store.writes, w.cluster.writes
		plan, _, err := s.reconcile()
		require.NoError(t, err)
		require.Equal(t, writes, w.store.writes, "written again: %s", plan.Why)
		require.Equal(t, nodeWrites, w.cluster.writes, "node written again: %s", plan.Why)
	})
}

// A condition without a name, or with ours, on a node is not a reason to
// write a machine forever; nor are times in another zone or with fractions.
func TestP28ConditionsAreCopiedOnce(t *testing.T) {
	w := newWorld(t)
	w.running()
	w.cluster.change(node, func(n *machine.Node) {
		since := w.now.Add(123 * time.Millisecond)
		n.Conditions = append(n.Conditions,
			object.Condition{Type: machine.ConditionSpecValid, Status: object.False, Since: since},
			object.Condition{Since: since})
	})
	s, writes := &shell{w: w}, w.store.writes
	_, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, writes+1, w.store.writes)
	require.Equal(t, []string{"DiskPressure False", "Ready True", " "}, conditions(w.store.live().Status.Conditions))
	stored := w.store.live().Clone()
	for i := range stored.Status.Conditions { // as a store that keeps JSON gives them back
		c := &stored.Status.Conditions[i]
		c.Since = c.Since.In(time.FixedZone("elsewhere", 3600))
	}
	w.store.force(stored)
	quiet(w)
}
