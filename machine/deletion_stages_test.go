package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

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
