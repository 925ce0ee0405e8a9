package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// P23: marks that others put on a node stay. A user's selection is removed when the update is done, because it
// would select the machine again the next time.
// Invariants: P23
func TestP23UpdatesKeepTheMarksOfOthers(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	k := w.policy.Keys
	w.cluster.change(node, func(n *machine.Node) {
		n.Labels[k.CandidateForUpdate], n.Unschedulable = "true", true
	})
	w.cluster.agent = agentModel{answer: machine.UpdateSuccessful}
	w.owner.moves = true
	w.requestInPlace(machine.InPlaceCandidate)
	w.cluster.change(node, func(n *machine.Node) { n.Labels[k.SelectedForUpdate] = "true" })
	(&shell{w: w}).settle(bound)
	require.Equal(t, 1, w.owner.moved)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	n := w.cluster.live(node)
	assert.Equal(t, "true", n.Labels[k.CandidateForUpdate], "the label was there before")
	assert.True(t, n.Unschedulable, "the cordon was there before")
	assert.NotContains(t, n.Labels, k.SelectedForUpdate, "the selection was followed")
	assert.NotContains(t, n.Labels, k.UpdateResult, "the answer was read")

	w.requestInPlace(machine.InPlaceCandidate)
	w.cluster.change(node, func(n *machine.Node) { n.Labels[k.SelectedForUpdate] = "true" })
	w.addDrain(0, 0, 1)
	w.runPass(&shell{w: w})
	require.Equal(t, machine.PhaseInPlaceUpdating, w.store.live().Status.Phase)
	w.requestInPlace(machine.InPlaceNone)
	(&shell{w: w}).settle(bound)
	assert.Equal(t, "true", w.cluster.live(node).Labels[k.SelectedForUpdate], "the update was withdrawn: the user's label stays")
}

// P28: a template that has one of our labels does not change that label. Otherwise template and update would
// write it in turns, without end.
// Invariants: P28
func TestP28TemplateNamesOurLabels(t *testing.T) {
	w := newWorld(t)
	k := w.policy.Keys
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: ours}}} // in an update of which nothing is recorded
	m.Spec.Class.Name, m.Spec.InPlace = "small", machine.InPlaceSelected
	m.Spec.NodeTemplate.Labels = map[string]string{k.CandidateForUpdate: "", "zone": "a"}
	m.Status.Phase, m.Status.ClockFrom = machine.PhaseInPlaceUpdating, w.now.Add(700*time.Millisecond)
	w.store.force(m)
	n := machine.Node{Meta: object.Meta{Key: object.Key{Name: node}, UID: "node-uid"}, Unschedulable: true}
	n.Labels = map[string]string{k.NodeMachine: ours}
	w.cluster.put(&n)
	s := &shell{w: w}
	for range 3 {
		_, _, err := s.reconcile()
		require.NoError(t, err)
	}
	writes, nodeWrites := w.store.writes, w.cluster.writes
	plan, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, writes, w.store.writes, "written again: %s", plan.Why)
	require.Equal(t, nodeWrites, w.cluster.writes, "node written again: %s", plan.Why)
	require.Equal(t, "a", w.cluster.live(node).Labels["zone"])
}

// After an update the critical-components taint is added again, with its value and effect, but only if the node
// has had it before.
func TestCriticalComponentsTaintComesBack(t *testing.T) {
	taint := object.Taint{Key: machine.DefaultPolicy().Keys.CriticalComponents, Value: "v", Effect: object.NoExecute}
	for _, before := range []bool{true, false} {
		w := newWorld(t)
		w.createMachine()
		s := &shell{w: w}
		w.runPass(s)
		w.advance(time.Minute)
		if before {
			w.cluster.change(node, func(n *machine.Node) { n.Taints = append(n.Taints, taint) })
		}
		w.runPass(s)
		w.cluster.change(node, func(n *machine.Node) { n.Taints = nil })
		w.runPass(s)
		require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
		w.cluster.agent = agentModel{answer: machine.UpdateSuccessful}
		w.owner.moves = true
		w.requestInPlace(machine.InPlaceSelected)
		s.settle(bound)
		if before {
			require.Equal(t, machine.PhaseInPlaceUpdateSuccessful, w.store.live().Status.Phase)
			assert.Equal(t, []object.Taint{taint}, w.cluster.live(node).Taints)
			w.cluster.change(node, func(n *machine.Node) { n.Taints = nil })
			s.settle(bound)
		}
		assert.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
		assert.Empty(t, w.cluster.live(node).Taints)
	}
}

// An update takes four writes of the machine, in addition to its owner's, and five of its node.
func TestUpdateTakesFourWrites(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.agent = agentModel{answer: machine.UpdateSuccessful, takes: time.Minute}
	w.owner.moves = true
	w.requestInPlace(machine.InPlaceSelected)
	w.store.writes, w.cluster.writes = 0, 0
	(&shell{w: w}).settle(bound)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	assert.Equal(t, 4+1, w.store.writes, "selected, ready, updated, moved by the owner, in service")
	assert.Equal(t, 5, w.cluster.writes, "marks, conditions SelectedForUpdate, ReadyForUpdate and UpdateSuccessful, marks removed")
}

// A drain that waits is called in each pass, but its progress is stored only when it changes.
func TestDrainProgressIsStoredOnce(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		w := newWorld(t)
		w.createRunning()
		w.addDrain(0, 0, 1)
		if deleted {
			w.store.remove()
		} else {
			w.requestInPlace(machine.InPlaceSelected)
		}
		warned := 0
		s := &shell{w: w, onDecision: func(_ *machine.Observation, plan machine.Plan, _ string) {
			if plan.Warn.Reason == machine.ReasonDrainNoted {
				warned++
			}
		}}
		w.runPass(s)
		writes := w.store.writes
		for range 5 {
			w.advance(time.Minute)
			w.runPass(s)
		}
		assert.Len(t, w.cluster.drain.orders, 6)
		assert.Equal(t, writes, w.store.writes)
		assert.Equal(t, 1, warned, "a warning of the blocker is given once")
		assert.Equal(t, "1 pods are held by budget db", w.store.live().Status.LastOperation.Message)
		w.cluster.drain.stuck = 2
		w.runPass(s)
		assert.Equal(t, writes+1, w.store.writes)
		assert.Equal(t, 2, warned)
		first, last := w.cluster.drain.orders[0], w.cluster.drain.orders[6]
		assert.Equal(t, first.Since, last.Since, "the drain does not start again")
		assert.Equal(t, first.Until, last.Until)
	}
}

// The timeout of an update counts from its selection, or from a restart of the clocks, plus a second.
// Invariants: P21
func TestUpdatesEndOnTheSecond(t *testing.T) {
	for _, stuck := range []int{0, 1} {
		for _, restart := range []time.Duration{0, 7 * time.Minute} {
			w := newWorld(t)
			w.createRunning()
			w.edit(func(m *machine.Machine) { m.Spec.Config.InPlaceTimeout = 10 * time.Minute })
			w.addDrain(0, 0, stuck)
			w.requestInPlace(machine.InPlaceSelected)
			w.runPass(&shell{w: w})
			status := w.store.live().Status.Clone()
			if restart > 0 {
				status.ClockFrom = status.Since.Add(restart)
				_, err := w.store.updateStatus(w.store.live().Version, status)
				require.NoError(t, err)
			}
			before, then := w.phasesAround(status.Since.Add(restart + 10*time.Minute + time.Second))
			assert.Equal(t, machine.PhaseInPlaceUpdating, before)
			assert.Equal(t, machine.PhaseInPlaceUpdateFailed, then)
		}
	}
}

// The waits of a forced deletion end on the second as well: a minute for the drain, and Policy.DetachTimeout
// for the volumes.
// Invariants: P21
func TestForcedDrainsEndOnTheSecond(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	d := w.addDrain(0, 0, 1)
	d.wedged, d.volumes, d.detachAfter = true, 1, time.Hour
	w.policy.DetachTimeout = 3 * time.Minute
	w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
	w.store.remove()
	s := &shell{w: w}
	stage := func(at time.Time) machine.Stage {
		w.now = at
		w.runPass(s)
		if w.store.live() == nil {
			return machine.StageGone
		}
		return w.store.live().Status.LastOperation.Stage
	}
	require.Equal(t, machine.StageInitiateDrain, stage(w.now))
	require.True(t, w.store.live().Status.LastOperation.Forced)
	end := w.now.Truncate(time.Second).Add(time.Minute + time.Second)
	assert.Equal(t, machine.StageInitiateDrain, stage(end.Add(-time.Nanosecond)))
	assert.Equal(t, machine.StageDeleteVolumeAttachments, stage(end))
	end = w.store.live().Status.LastOperation.Time.Add(3*time.Minute + time.Second)
	assert.Equal(t, machine.StageDeleteVolumeAttachments, stage(end.Add(-time.Nanosecond)))
	assert.Equal(t, machine.StageGone, stage(end))
}

// The record of a drain that does not continue is removed together with the cordon that it made. A cordon of
// somebody else stays.
func TestP23RecordOfADrainGoesWithItsCordon(t *testing.T) {
	for _, ours := range []bool{true, false} {
		w := newWorld(t)
		w.createRunning()
		w.cluster.change(node, func(n *machine.Node) {
			n.Drain, n.Unschedulable = &machine.DrainRecord{Since: epoch}, true
			if ours {
				n.Drain.Cordoned = epoch
			}
		})
		(&shell{w: w}).settle(bound)
		n := w.cluster.live(node)
		assert.Nil(t, n.Drain)
		assert.Equal(t, !ours, n.Unschedulable)
	}
}

// makeUnavailable makes one effect on the cluster fail with UNAVAILABLE. Empty: none fails.
func (w *world) makeUnavailable(effect string) {
	w.cluster.faults = func(e string) codes.Code {
		if e == effect {
			return codes.Unavailable
		}
		return codes.OK
	}
}

func (w *world) phase() machine.Phase { return w.store.live().Status.Phase }

// A stage that was stored with a time in the future does not delay the deletion.
func TestP21WaitFromTheFutureIsOver(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	d := w.addDrain(0, 0, 0)
	d.volumes, d.detachAfter = 1, time.Hour
	w.store.remove()
	m := w.store.live().Clone()
	m.Status.Phase = machine.PhaseTerminating
	m.Status.LastOperation = machine.Operation{
		Kind: machine.OperationDelete, State: machine.StateProcessing, Stage: machine.StageDeleteVolumeAttachments, Time: w.now.AddDate(7000, 0, 0),
	}
	w.store.force(m)
	w.runPass(&shell{w: w})
	assert.Nil(t, w.store.live())
}

// If a drain asks to be called at a time that has passed, it is called in a second.
func TestPastDrainTimeMeansInASecond(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.addDrain(0, 0, 1)
	w.store.remove()
	s := &shell{w: w}
	w.runPass(s)
	o := s.observe()
	o.Drain = &machine.DrainAnswer{At: w.now.Add(-time.Hour), Why: o.Machine.Status.LastOperation.Message}
	plan, err := machine.Decide(o, w.policy, w.now)
	require.NoError(t, err)
	assert.Equal(t, w.now.Add(time.Second), plan.At)
}

// No update begins on an unhealthy node, although its machine is still Running.
func TestUnhealthyNodesAreNotUpdated(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.setReady(node, object.False)
	w.requestInPlace(machine.InPlaceSelected)
	w.runPass(&shell{w: w})
	assert.Equal(t, machine.PhaseUnknown, w.phase())
}

// setUpdateReason sets condition InPlaceUpdate of the node to a reason, as another program may do.
func (w *world) setUpdateReason(reason string) {
	w.cluster.change(node, func(n *machine.Node) {
		n.Conditions = object.SetCondition(object.DropCondition(n.Conditions, machine.NodeInPlaceUpdate),
			object.Condition{Type: machine.NodeInPlaceUpdate, Status: object.True, Reason: reason, Since: w.now})
	})
}

// If the stored stage is unknown, the node's condition decides: at ReadyForUpdate the agent may be at work.
func TestNodeTellsAnUnknownUpdateStage(t *testing.T) {
	for _, agentTold := range []bool{true, false} {
		w := newWorld(t)
		w.createRunning()
		w.addDrain(0, 0, 1)
		w.requestInPlace(machine.InPlaceSelected)
		w.runPass(&shell{w: w})
		if agentTold {
			w.setUpdateReason(machine.ReasonReadyForUpdate)
		}
		m := w.store.live().Clone()
		m.Status.LastOperation.Stage = "Meditating"
		w.store.force(m)
		w.requestInPlace(machine.InPlaceNone)
		w.runPass(&shell{w: w})
		if agentTold {
			assert.Equal(t, machine.PhaseInPlaceUpdating, w.phase(), "withdrawn while the agent may be at work")
			assert.Equal(t, machine.StageReady, w.store.live().Status.LastOperation.Stage)
		} else {
			assert.Equal(t, machine.PhaseRunning, w.phase())
		}
	}
}

// A cache that lacks a user's selection ends no update. A cache that shows the machine as it was before its
// update removes nothing from the node.
func TestStaleCachesStopNoUpdate(t *testing.T) {
	for _, lags := range [][]int{{0, 100}, {2, 0}} {
		w := newWorld(t)
		w.createRunning()
		w.addDrain(0, 0, 1)
		w.requestInPlace(machine.InPlaceCandidate)
		w.cluster.change(node, func(n *machine.Node) { n.Labels[w.policy.Keys.SelectedForUpdate] = "true" })
		s := &shell{w: w}
		w.runPass(s)
		require.Equal(t, machine.PhaseInPlaceUpdating, w.phase())
		if lags[0] > 0 { // as before the user's selection
			w.cluster.change(node, func(n *machine.Node) { delete(n.Labels, w.policy.Keys.SelectedForUpdate) })
		}
		before := w.cluster.live(node)
		calls := 0
		s.lag = func() int { calls++; return lags[calls-1] }
		_, _, err := s.reconcile()
		if lags[0] > 0 {
			require.ErrorIs(t, err, errConflict)
		} else {
			require.NoError(t, err)
		}
		assert.Equal(t, machine.PhaseInPlaceUpdating, w.phase())
		assert.Equal(t, before, w.cluster.live(node))
	}
}

// The recorded failure to set the condition is removed when the node has the condition.
func TestFailedConditionWriteIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.setUpdateReason(machine.ReasonSelectedForUpdate)
	w.makeUnavailable("MarkNode")
	w.requestInPlace(machine.InPlaceSelected)
	s := &shell{w: w}
	plan, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, machine.StateFailed, w.store.live().Status.LastOperation.State)
	w.setUpdateReason(machine.ReasonReadyForUpdate) // the write has taken effect after all
	w.now = plan.At
	w.runPass(s)
	assert.Equal(t, machine.StateProcessing, w.store.live().Status.LastOperation.State)
}

// A machine whose failed update was withdrawn becomes Running only when its node is back in service.
func TestWithdrawnFailedUpdateReturnsToService(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.disableHealthTimeout()
	w.cluster.agent = agentModel{answer: machine.UpdateFailed}
	w.requestInPlace(machine.InPlaceSelected)
	s := &shell{w: w}
	s.settle(bound)
	require.Equal(t, machine.PhaseInPlaceUpdateFailed, w.phase())
	w.makeUnavailable("SyncNode")
	w.requestInPlace(machine.InPlaceNone)
	plan, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, machine.PhaseInPlaceUpdateFailed, w.phase())
	require.Equal(t, w.now.Add(5*time.Second), plan.At)
	w.makeUnavailable("")
	w.now = plan.At
	w.runPass(s)
	assert.Equal(t, machine.PhaseRunning, w.phase())
	assert.False(t, w.cluster.live(node).Unschedulable)
}

// newReturning returns a world with a machine whose update is done and whose owner has moved it to its new set,
// and an observation with a live read of its node.
func newReturning(t *testing.T) (*world, *machine.Observation) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.agent = agentModel{answer: machine.UpdateSuccessful}
	w.requestInPlace(machine.InPlaceSelected)
	(&shell{w: w}).settle(bound)
	require.Equal(t, machine.PhaseInPlaceUpdateSuccessful, w.phase())
	w.requestInPlace(machine.InPlaceNone)
	o := (&shell{w: w}).observe()
	o.Node.Read, o.Node.Node = w.read(), o.Node.Node.Clone()
	return w, o
}

// If the node records a newer update than the status, the status is confirmed by a write before the condition
// is changed.
func TestOldStatusIsConfirmedFirst(t *testing.T) {
	w, o := newReturning(t)
	for _, newer := range []bool{false, true} {
		if newer {
			o.Node.Node.Applied.Update.Since = o.Machine.Status.Since.Add(time.Hour)
		} else {
			o.Node.Node.Applied.Update.Since = o.Machine.Status.Since.Add(-time.Hour)
		}
		plan, err := machine.Decide(o, w.policy, w.now)
		require.NoError(t, err)
		_, marks := plan.Effect.(*machine.MarkNode)
		assert.Equal(t, newer, !marks, "%s", plan.Why)
		assert.Equal(t, newer, plan.Write != nil)
	}
}

// The critical-components taint is added once, and only to a node that returns from an update.
func TestCriticalComponentsTaintIsAddedOnce(t *testing.T) {
	taint := object.Taint{Key: machine.DefaultPolicy().Keys.CriticalComponents, Effect: object.NoSchedule}
	for name, c := range map[string]struct {
		change func(*machine.Observation)
		want   []object.Taint
	}{
		"comes back":   {func(*machine.Observation) {}, []object.Taint{taint}},
		"there":        {func(o *machine.Observation) { o.Node.Node.Taints = []object.Taint{taint} }, []object.Taint{taint}},
		"back already": {func(o *machine.Observation) { o.Node.Node.Applied.Update = machine.UpdateMarks{} }, []object.Taint{}},
		"not an update": {func(o *machine.Observation) {
			o.Machine.Status.Phase = machine.PhaseRunning
		}, []object.Taint{}},
	} {
		w, o := newReturning(t)
		n := o.Node.Node
		o.Machine = o.Machine.Clone()
		o.Machine.Spec.NodeTemplate.Labels = map[string]string{"pool": "b"} // something to sync
		o.Machine.Generation++
		n.Conditions = object.DropCondition(n.Conditions, machine.NodeInPlaceUpdate)
		n.Applied.Critical, o.Fresh = taint, true
		c.change(o)
		plan, err := machine.Decide(o, w.policy, w.now)
		require.NoError(t, err)
		sync, ok := plan.Effect.(*machine.SyncNode)
		require.True(t, ok, "%s: %s", name, plan.Why)
		assert.Equal(t, c.want, sync.Node.Taints, name)
	}
}

// The condition that tells an agent to work is taken back, also if that fails at first, and if the node was not
// healthy in time.
func TestUpdateConditionIsRetracted(t *testing.T) {
	w, _ := newReturning(t)
	w.makeUnavailable("MarkNode")
	w.cluster.setReady(node, object.False)
	w.advance(time.Hour)
	s := &shell{w: w}
	plan, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, machine.PhaseUnknown, w.phase())
	require.Equal(t, w.now.Add(5*time.Second), plan.At)
	w.cluster.setReady(node, object.True)
	w.runPass(s)
	require.Equal(t, machine.PhaseRunning, w.phase())
	w.makeUnavailable("")
	w.advance(5 * time.Second)
	w.runPass(s)
	condition := object.FindCondition(w.cluster.live(node).Conditions, machine.NodeInPlaceUpdate)
	assert.Equal(t, machine.ReasonUpdateSuccessful, condition.Reason)
	requireIdle(w)
}

// If somebody deletes the node of an updated machine, the machine is deleted too, also while it waits for its
// owner.
func TestDeletedNodesAreFollowedAfterAnUpdate(t *testing.T) {
	for _, r := range []machine.InPlaceRequest{machine.InPlaceSelected, machine.InPlaceNone} {
		w, _ := newReturning(t)
		w.requestInPlace(r)
		w.cluster.delete(node)
		(&shell{w: w}).settle(bound)
		assert.Nil(t, w.store.live())
	}
}

// A machine whose update was withdrawn becomes Running when its node is back in service, also if a cache shows
// the node as it was before the update.
func TestWithdrawnMachinesAreInService(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.addDrain(0, 0, 1)
	before := len(w.cluster.nodes[node])
	w.requestInPlace(machine.InPlaceSelected)
	s := &shell{w: w}
	w.runPass(s)
	require.True(t, w.cluster.live(node).Unschedulable)
	w.requestInPlace(machine.InPlaceNone)
	lags := []int{0, len(w.cluster.nodes[node]) - before}
	s.lag = func() int { lag := lags[0]; lags = lags[1:]; return lag }
	w.runPass(s)
	assert.Equal(t, machine.PhaseRunning, w.phase())
	assert.False(t, w.cluster.live(node).Unschedulable)
}

// A stored stage that does not belong to the phase causes no move of the update table. The model checks each
// move.
func TestStageOfAnotherPhaseMakesNoMove(t *testing.T) {
	for _, stage := range []machine.Stage{machine.StageCandidate, machine.StageReady, machine.StageInService, "Meditating"} {
		w, _ := newReturning(t)
		m := w.store.live().Clone()
		m.Status.LastOperation.Stage = stage
		w.store.force(m)
		w.runPass(&shell{w: w})
		assert.Equal(t, machine.PhaseRunning, w.phase(), stage)
	}
}

// updateChaos is a chaos in which a machine is updated in place.
type updateChaos struct {
	*chaos
	cordoned bool // by a user, before the update
}

func newUpdateChaos(t *rapid.T) *updateChaos {
	w := newWorld(t)
	c := &updateChaos{chaos: &chaos{world: w, draw: t}}
	w.createRunning()
	if rapid.Bool().Draw(t, "drains") {
		w.addDrain(rapid.IntRange(0, 2).Draw(t, "pods"), time.Minute, rapid.IntRange(0, 1).Draw(t, "stuck"))
	}
	w.cluster.agent = agentModel{
		answer: rapid.SampledFrom([]string{machine.UpdateSuccessful, machine.UpdateSuccessful, machine.UpdateFailed, "perhaps", ""}).Draw(t, "answer"),
		takes:  rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "takes"),
	}
	w.owner.moves = rapid.Bool().Draw(t, "moves")
	if c.cordoned = rapid.Bool().Draw(t, "cordoned"); c.cordoned {
		w.cluster.change(node, func(n *machine.Node) { n.Unschedulable = true })
	}
	w.cluster.faults = func(string) codes.Code {
		if !c.stormy {
			return codes.OK
		}
		return rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.OK, codes.Unavailable, codes.PermissionDenied}).Draw(t, "cluster fault")
	}
	c.stormy = true
	c.restart()
	return c
}

var anyAsk = rapid.SampledFrom([]machine.InPlaceRequest{
	machine.InPlaceSelected, machine.InPlaceSelected, machine.InPlaceSelected, machine.InPlaceCandidate, machine.InPlaceWaiting, machine.InPlaceNone,
})

func (c *updateChaos) event() {
	n := c.cluster.live(node)
	switch rapid.IntRange(0, 7).Draw(c.draw, "event") {
	case 0, 1:
		r := anyAsk.Draw(c.draw, "ask")
		if c.store.live().Status.Phase != machine.PhaseInPlaceUpdateSuccessful { // only its owner's move ends this phase
			c.requestInPlace(r)
		}
	case 2:
		c.killAt, c.killAfter = c.calls+rapid.IntRange(1, 6).Draw(c.draw, "kill"), rapid.Bool().Draw(c.draw, "after")
	case 3:
		if n != nil {
			c.cluster.change(node, func(n *machine.Node) { n.Labels[c.policy.Keys.SelectedForUpdate] = "true" })
		}
	case 4:
		if n != nil {
			c.cluster.setReady(node, rapid.SampledFrom([]object.ConditionStatus{object.True, object.True, object.False}).Draw(c.draw, "ready"))
		}
	default:
		c.advance(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 5 * time.Minute, 25 * time.Minute}).Draw(c.draw, "time"))
	}
}

func (c *updateChaos) storm() {
	for range rapid.IntRange(0, 30).Draw(c.draw, "steps") {
		c.event()
		c.tick()
		_, _, err := c.shell.reconcile()
		if errors.Is(err, errKilled) {
			c.restart()
		} else if !errors.Is(err, errConflict) {
			require.NoError(c.draw, err)
		}
		c.requireRecordBeforeCondition()
	}
	c.stormy, c.killAt = false, 0
	c.cluster.setReady(node, object.True)
}

// requireRecordBeforeCondition checks the rules by which our own update is distinguished from one that another
// program has continued (updateByOther): there is no other program here.
func (c *updateChaos) requireRecordBeforeCondition() {
	n := c.cluster.live(node)
	condition := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	if condition == nil || !n.Applied.Update.Since.IsZero() {
		return
	}
	switch condition.Reason {
	case machine.ReasonCandidateForUpdate:
	case machine.ReasonUpdateSuccessful:
		require.False(c.draw, n.Applied.Update.Candidate, "condition UpdateSuccessful and the record of a candidate")
	default:
		require.Fail(c.draw, "the condition of an update that is not recorded", "%s: %+v", condition.Reason, n.Applied.Update)
	}
}

// requireNoUpdateLeft checks that nothing of an update is left on the node (P23).
func (c *updateChaos) requireNoUpdateLeft() {
	n := c.cluster.live(node)
	require.Equal(c.draw, machine.UpdateMarks{}, n.Applied.Update)
	require.NotContains(c.draw, n.Labels, c.policy.Keys.CandidateForUpdate)
	require.Equal(c.draw, c.cordoned, n.Unschedulable, "P23: our cordon is left, or a user's was removed")
	if condition := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate); condition != nil {
		require.Equal(c.draw, machine.ReasonUpdateSuccessful, condition.Reason, "an agent is still told to work, or the next update can't begin")
	}
}

// requireUpdatedAgain checks that a machine whose update came too late is updated again when it is selected.
func (c *updateChaos) requireUpdatedAgain() {
	c.cluster.agent = agentModel{answer: machine.UpdateSuccessful, takes: time.Minute}
	if c.cluster.drain != nil {
		c.cluster.drain.stuck = 0
	}
	c.requestInPlace(machine.InPlaceSelected)
	c.shell.settle(60)
	require.Equal(c.draw, machine.PhaseRunning, c.store.live().Status.Phase)
	require.Equal(c.draw, 1, c.cluster.agent.updated)
	c.requireNoUpdateLeft()
}

// During a storm of faults, kills, stale reads, requests and selections by users, no agent is told to update a
// node that is in service or not empty, and no node of another machine is drained: the models check that at
// once. After the storm the machine settles (P18, P28). If no update is requested any more, and none succeeded
// after its withdrawal, the machine runs again, and nothing of the update is left (P23).
// Invariants: P17 P18 P23 P28
func TestP18P23P28UpdatesAfterAStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newUpdateChaos(t)
		c.storm()
		c.owner.moves = true
		c.shell.settle(60)
		m := c.store.live()
		if m.Status.Phase == machine.PhaseFailed {
			return
		}
		requireIdle(c.world)
		if m = c.store.live(); m.Status.Phase == machine.PhaseInPlaceUpdateFailed && m.Status.LastOperation.Stage == machine.StageCandidate {
			c.requireUpdatedAgain()
		}
		c.requestInPlace(machine.InPlaceNone)
		c.shell.settle(60)
		m = c.store.live()
		require.Equal(t, machine.PhaseRunning, m.Status.Phase, state(m))
		c.requireNoUpdateLeft()
		requireIdle(c.world)
	})
}
