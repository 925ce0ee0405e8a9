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

// P18: from every combination of phase, operation, state and stage that may be
// stored, a deletion ends once the provider answers.
// Invariants: P18
func TestP18DeletionEndsFromEverywhere(t *testing.T) {
	i := 0
	for _, phase := range allPhases {
		for _, stage := range allStages {
			for _, kind := range allKinds {
				for _, opState := range allStates {
					i++
					w := newWorld(t)
					w.createRunning()
					corrupt(w, i, func(m *machine.Machine) {
						m.Status.Phase = phase
						m.Status.LastOperation.Kind, m.Status.LastOperation.State = kind, opState
						m.Status.LastOperation.Stage = stage
					})
					requireDeletionEnds(t, w, fmt.Sprintf("from %q, %q/%q, %q", phase, kind, stage, opState))
				}
			}
		}
	}
}

// corrupt stores a machine that is being deleted, with the change. The number
// selects times and a code, and whether node name and provider ID are lost.
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

// requireDeletionEnds checks that a deletion ends within ten passes, with a provider that answers.
func requireDeletionEnds(t *testing.T, w *world, from string) {
	// The check of the model when the finalizer is removed would fail for
	// statuses that wrongly say that the VM is gone.
	w.provider.vms, w.provider.deletedOK = nil, true
	w.provider.vmMayExist = false
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
	require.Fail(t, "the deletion does not end", "%s until %s, given until %s: %s", from, w.now, end, state(w.store.live()))
}

// P18: a deletion ends also with arbitrary values in all other fields.
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
		require.Fail(t, "the deletion does not end")
	})
}

// P28: with arbitrary values in all fields, passes end, and after a few of them
// nothing is left to write: nothing is written back and forth.
// Invariants: P21
func TestP28GarbageSettles(t *testing.T) {
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
		for range 3 { // a creation may fail once more in a later pass
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

// The machine is written once for a node's conditions, also if one has no name or
// the name of a condition of our own, or if times have another zone or fractions.
// Invariants: P28
func TestP28ConditionsAreCopiedOnce(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
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
	for i := range stored.Status.Conditions { // as a store that encodes JSON may return them
		c := &stored.Status.Conditions[i]
		c.Since = c.Since.In(time.FixedZone("elsewhere", 3600))
	}
	w.store.force(stored)
	requireIdle(w)
}

// deletions are worlds with a machine to delete, and the stages that are stored then.
var deletions = map[string]struct {
	prepare func(*world)
	stages  []machine.Stage
}{
	"a node without drainer": {func(w *world) { w.createRunning() }, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"a drain": {func(w *world) { w.createRunning(); w.addDrain(2, time.Minute, 0) }, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"force": {func(w *world) {
		w.createRunning()
		d := w.addDrain(0, 0, 2)
		d.volumes, d.detachAfter = 1, 30*time.Second
		w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
	}, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageDeleteVolumeAttachments, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"hooks": {func(w *world) {
		w.createRunning()
		w.edit(func(m *machine.Machine) {
			m.Annotations = map[string]string{w.policy.Keys.PreDrainHook + "a": "", w.policy.Keys.PreTerminateHook + "b": ""}
		})
	}, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageInitiateVMDeletion,
		machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"no node": {func(w *world) { w.provider.boot = -1; w.createMachine(); w.runPass(&shell{w: w}) }, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateVMDeletion, machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"no cluster": {func(w *world) { w.cluster = nil; w.createRunning() }, []machine.Stage{
		machine.StageInitiateVMDeletion, machine.StageInitiateFinalizerRemoval,
	}},
	"never created": {func(w *world) { w.createMachine() }, []machine.Stage{
		machine.StageGetVMStatus, machine.StageInitiateFinalizerRemoval,
	}},
	"never created, no cluster": {func(w *world) { w.cluster = nil; w.createMachine() }, []machine.Stage{
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
			undisturbed := newDeletion(t, d.prepare)
			(&shell{w: undisturbed}).settle(30)
			require.Equal(t, d.stages, storedStages(undisturbed))
			for killAt := 1; killAt <= undisturbed.calls; killAt++ {
				for _, after := range []bool{false, true} {
					w := newDeletion(t, d.prepare)
					w.killAt, w.killAfter = killAt, after
					runThroughKill(w, false)
					assert.Nil(t, w.store.live())
					assert.Equal(t, d.stages, storedStages(w), "killed at call %d of %d, after it: %t", killAt, undisturbed.calls, after)
				}
			}
		})
	}
}

// newDeletion returns a prepared world after the deletion of its machine was requested.
func newDeletion(t *testing.T, prepare func(*world)) *world {
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

// storedStages returns the stages of the deletion in the order in which they were stored.
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

// toLateNode requests the deletion of a machine before its node has joined, with a provider that fails to
// delete the VM. The node joins 10 min later, with so many pods.
func (s *story) toLateNode(pods, stuck int) {
	s.provider.boot = 10 * time.Minute
	s.addDrain(pods, time.Minute, stuck)
	s.createMachine()
	s.reconcile()
	s.failing(codes.DeleteMachine, codes.Unavailable, false)
	s.requestDeletion()
	s.reconcile()
	s.later(10*time.Minute, "the node joins with its pods")
}

// lateStories are about nodes that join after their machine's deletion has passed the drain.
var lateStories = map[string]func(*story){
	"node joins while its VM cannot be deleted": func(s *story) {
		s.toLateNode(2, 0)
		s.waitUpTo(2)
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.comment("the provider deletes VMs again")
		s.waitUpTo(4)
	},
	"node joins while a hook holds its VM": func(s *story) {
		s.provider.boot = 10 * time.Minute
		s.addDrain(1, time.Minute, 0)
		s.createWithHook("pre-terminate.millwright-go/wipe")
		s.requestDeletion()
		s.reconcile()
		s.later(10*time.Minute, "the node joins with its pods")
		s.waitUpTo(1)
		s.removeHook("pre-terminate.millwright-go/wipe")
	},
	"node joins late and is drained by force": func(s *story) {
		s.toLateNode(0, 1)
		s.later(2*time.Hour+time.Second, "the drain timeout is over, force is due")
		s.wait()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.comment("the provider deletes VMs again")
		s.waitUpTo(4)
	},
}

// createWithHook creates the machine with a hook, and runs a pass.
func (s *story) createWithHook(hook string) {
	s.createMachine(func(m *machine.Machine) { m.Annotations = map[string]string{hook: ""} })
	s.reconcile()
}

// newLateJoin returns a world in which a node joins while its machine's VM can't be deleted yet. P53 is checked
// when DeleteMachine succeeds.
func newLateJoin(t require.TestingT, joins time.Duration, failures int, code codes.Code) *world {
	w := newWorld(t)
	w.provider.boot = joins
	w.provider.faults = func(call codes.Call) fault {
		if call != codes.DeleteMachine {
			return fault{}
		}
		if failures--; failures >= 0 {
			return fault{code: code}
		}
		if m := w.store.live(); w.cluster.live(node) != nil && !m.Status.DrainForced && m.Labels["force-deletion"] != "true" {
			require.Zero(t, w.cluster.drain.pods+w.cluster.drain.stuck, "P53: the VM is deleted while pods run on its node")
		}
		return fault{}
	}
	return w
}

// TestP53NodesThatJoinLateAreDrained: a node may join at any time, after any answers of DeleteMachine,
// with hooks and kills. Its VM is deleted only when its pods have left.
// Invariants: P53
func TestP53NodesThatJoinLateAreDrained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]codes.Code{codes.Unavailable, codes.Internal, codes.DeadlineExceeded, codes.PermissionDenied}).Draw(t, "code")
		joins := time.Duration(rapid.IntRange(0, 3600).Draw(t, "joins")) * time.Second
		w := newLateJoin(t, joins, rapid.IntRange(0, 12).Draw(t, "failures"), code)
		w.addDrain(rapid.IntRange(1, 3).Draw(t, "pods"), time.Minute, 0)
		hook := w.policy.Keys.PreTerminateHook + "wipe"
		w.createMachine(func(m *machine.Machine) {
			if rapid.Bool().Draw(t, "hook") {
				m.Annotations = map[string]string{hook: ""}
			}
		})
		w.runPass(&shell{w: w})
		w.store.remove()
		w.killAt, w.killAfter = w.calls+rapid.IntRange(1, 40).Draw(t, "kill"), rapid.Bool().Draw(t, "after")
		(&shell{w: w}).settle(80)
		require.Nil(t, w.store.live())
		require.Empty(t, w.provider.vms)
	})
}

// TestP53LateNodeThatNoCacheShows: a node that no cache shows yet is found before the VM is deleted.
// Invariants: P53
func TestP53LateNodeThatNoCacheShows(t *testing.T) {
	w := newLateJoin(t, time.Minute, 1, codes.Unavailable)
	w.addDrain(1, time.Minute, 0)
	w.createMachine()
	w.runPass(&shell{w: w})
	w.store.remove()
	s := &shell{w: w}
	w.runPass(s)
	w.advance(time.Minute)
	w.cluster.nodes[node] = append([]*machine.Node{nil}, w.cluster.nodes[node]...)
	w.store.versions = []*machine.Machine{w.store.live()}
	s.lag = func() int { return 100 }
	w.runPass(s)
	s.settle(bound)
	require.Nil(t, w.store.live())
}

// TestLateDrainsAreBounded: for a node that joins late, the deletion returns to the drain only once, even if
// the node can neither be marked nor drained, and however often DeleteMachine fails. With the label that forces
// the deletion it does not return.
// Invariants: P53
func TestLateDrainsAreBounded(t *testing.T) {
	for name, label := range map[string]string{"by time": "", "by the label": "true"} {
		t.Run(name, func(t *testing.T) {
			w := newLateJoin(t, 10*time.Minute, 8, codes.Internal)
			w.addDrain(0, 0, 1)
			w.cluster.faults = func(effect string) codes.Code {
				if effect == "MarkNode" || effect == "DrainNode" {
					return codes.PermissionDenied
				}
				return codes.OK
			}
			w.createMachine()
			w.runPass(&shell{w: w})
			w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": label} })
			w.store.remove()
			begun := w.now
			(&shell{w: w}).settle(80)
			require.Nil(t, w.store.live())
			require.Less(t, w.now.Sub(begun), 5*time.Hour)
			drains := 0
			for i, stage := range storedStages(w) {
				if i > 1 && stage == machine.StageInitiateDrain {
					drains++
				}
			}
			require.Equal(t, map[string]int{"": 1, "true": 0}[label], drains)
		})
	}
}

// TestLateDrainOfANodeThatRegistersAgain: a drained node that somebody deletes registers again with new pods,
// because its VM still exists. It is drained again.
// Invariants: P53
func TestLateDrainOfANodeThatRegistersAgain(t *testing.T) {
	w := newLateJoin(t, time.Second, 4, codes.Unavailable)
	w.createRunning()
	d := w.addDrain(1, time.Minute, 0)
	w.store.remove()
	s := &shell{w: w}
	w.runPass(s)
	w.advance(time.Minute)
	w.runPass(s)
	require.Equal(t, machine.StageInitiateVMDeletion, w.store.live().Status.LastOperation.Stage)
	require.Zero(t, d.pods)
	w.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
	w.cluster.delete(node)
	w.cluster.registeredBy[w.cluster.add(node).UID] = ours
	d.pods, d.next = 2, time.Time{}
	s.settle(bound)
	require.Nil(t, w.store.live())
}

// TestLateDrainAfterAnOutage: if force became due because the cluster did not answer, it stays due. A node that
// is seen later does not delay the deletion of the VM.
// Invariants: P53
func TestLateDrainAfterAnOutage(t *testing.T) {
	w := newLateJoin(t, -1, 8, codes.Internal)
	w.addDrain(0, 0, 1)
	w.createMachine()
	s := &shell{w: w}
	w.runPass(s)
	w.cluster.unreachable = true
	w.store.remove()
	for begun := w.now; w.now.Before(begun.Add(4 * time.Hour)); {
		if w.cluster.live(node) == nil && w.now.After(begun.Add(2*time.Hour+10*time.Minute)) {
			w.cluster.registeredBy[w.cluster.add(node).UID] = ours
		}
		if plan, _, err := s.reconcile(); err == nil && plan.At.After(w.now) {
			w.now = plan.At
			continue
		}
		w.advance(time.Minute)
	}
	require.NotNil(t, w.cluster.live(node))
	require.Empty(t, w.provider.vms)
}

// TestP53NodeOfAVMThatWasMadeLate: a create that had not ended when the drain was skipped may make a VM whose
// node's name is not recorded. The driver is asked for the name before the VM is deleted.
// Invariants: P53
func TestP53NodeOfAVMThatWasMadeLate(t *testing.T) {
	w := newLateJoin(t, 10*time.Minute, 12, codes.Unavailable)
	w.addDrain(2, time.Minute, 0)
	deleting := w.provider.faults
	w.provider.lag = 5 * time.Minute
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.CreateMachine {
			return fault{code: codes.DeadlineExceeded, done: true}
		}
		return deleting(call)
	}
	w.createMachine()
	w.runPass(&shell{w: w})
	require.Len(t, w.provider.vms, 1)
	w.store.remove()
	(&shell{w: w}).settle(80)
	require.Nil(t, w.store.live())
	require.Empty(t, w.provider.vms)
	require.Contains(t, storedStages(w)[1:], machine.StageInitiateDrain)
}

// TestHookedDeletionDoesNotAskForTheNodesName: while a hook blocks the deletion of the VM of a machine without a
// node name, passes do not ask the driver for the name.
func TestHookedDeletionDoesNotAskForTheNodesName(t *testing.T) {
	w := newWorld(t)
	hook := w.policy.Keys.PreTerminateHook + "wipe"
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.CreateMachine {
			return fault{code: codes.DeadlineExceeded}
		}
		return fault{}
	}
	w.createMachine(func(m *machine.Machine) { m.Annotations = map[string]string{hook: ""} })
	w.runPass(&shell{w: w})
	w.store.remove()
	w.runPass(&shell{w: w})
	asked := w.provider.calls[codes.GetMachineStatus]
	for range 5 {
		w.advance(10 * time.Second)
		w.runPass(&shell{w: w})
	}
	require.Equal(t, asked, w.provider.calls[codes.GetMachineStatus])
	require.Equal(t, machine.StageInitiateVMDeletion, w.store.live().Status.LastOperation.Stage)
}
