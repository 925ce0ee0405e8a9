package machine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
// Invariants: P18
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
// Invariants: P18 P44
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
// Invariants: P21
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
// Invariants: P28
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

// deletions are worlds in which a machine is being deleted, and the stages that are stored.
var deletions = map[string]struct {
	prepare func(*world)
	stages  []machine.Stage
}{
	"a node without drainer": {func(w *world) { w.running() }, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"a drain": {func(w *world) { w.running(); w.drains(2, time.Minute, 0) }, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"force": {func(w *world) {
		w.running()
		d := w.drains(0, 0, 2)
		d.volumes, d.held = 1, 30*time.Second
		w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
	}, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageDeleteVolumeAttachments, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"hooks": {func(w *world) {
		w.running()
		w.edit(func(m *machine.Machine) {
			m.Annotations = map[string]string{w.policy.Keys.PreDrainHook + "a": "", w.policy.Keys.PreTerminateHook + "b": ""}
		})
	}, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"no node": {func(w *world) { w.provider.boot = -1; w.give(); w.passes(&shell{w: w}) }, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateVMDeletion, machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"no cluster": {func(w *world) { w.cluster = nil; w.running() }, []machine.Stage{
		machine.StageInitiateVMDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"never created": {func(w *world) { w.give() }, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateFinalizerRemoval,
	}},
	"never created, no cluster": {func(w *world) { w.cluster = nil; w.give() }, []machine.Stage{
		machine.StageInitiateVMDeletion, machine.StageInitiateFinalizerRemoval,
	}},
}

// P44: each stage of a deletion that has work is stored, in the order of the table, before its first
// call; and a kill between any two calls leads to the same stages, because each is resumed. Once
// the answer to DeleteMachine is stored, it is not called again.
// Invariants: P44
func TestP44StagesAreStoredInOrderThroughKills(t *testing.T) {
	for name, d := range deletions {
		t.Run(name, func(t *testing.T) {
			calm := doomed(t, d.prepare)
			(&shell{w: calm}).settle(30)
			require.Equal(t, d.stages, storedStages(calm))
			for killAt := 1; killAt <= calm.calls; killAt++ {
				for _, after := range []bool{false, true} {
					w := doomed(t, d.prepare)
					w.killAt, w.after = killAt, after
					kill(w, false)
					assert.Nil(t, w.store.live())
					assert.Equal(t, d.stages, storedStages(w), "killed at call %d of %d, after it: %t", killAt, calm.calls, after)
				}
			}
		})
	}
}

// doomed is a world whose machine is about to be deleted.
func doomed(t *testing.T, prepare func(*world)) *world {
	w := newWorld(t)
	prepare(w)
	w.store.remove()
	w.calls = 0
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.DeleteMachine {
			stage := w.store.live().Status.LastOperation.Stage
			assert.Equal(t, machine.StageInitiateVMDeletion, stage, "DeleteMachine at another stage")
		}
		return fault{}
	}
	return w
}

// storedStages are the stages of the deletion that were stored, each time that it changed.
func storedStages(w *world) []machine.Stage {
	var stages []machine.Stage
	for _, m := range w.store.versions {
		if m == nil || m.Status.Phase != machine.PhaseTerminating {
			continue
		}
		stages = append(stages, m.Status.LastOperation.Stage)
	}
	return slices.Compact(stages)
}
