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

// P23: what others put on a node stays there; a user's selection goes when it
// is fulfilled, since it would select the machine again next time.
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
	assert.Equal(t, "true", n.Labels[k.CandidateForUpdate], "somebody else's")
	assert.True(t, n.Unschedulable, "somebody else's")
	assert.NotContains(t, n.Labels, k.SelectedForUpdate, "fulfilled")
	assert.NotContains(t, n.Labels, k.UpdateResult, "taken")

	w.requestInPlace(machine.InPlaceCandidate)
	w.cluster.change(node, func(n *machine.Node) { n.Labels[k.SelectedForUpdate] = "true" })
	w.addDrain(0, 0, 1)
	w.runPass(&shell{w: w})
	require.Equal(t, machine.PhaseInPlaceUpdating, w.store.live().Status.Phase)
	w.requestInPlace(machine.InPlaceNone)
	(&shell{w: w}).settle(bound)
	assert.Equal(t, "true", w.cluster.live(node).Labels[k.SelectedForUpdate], "withdrawn by the owner: the user's label is the user's")
}

// P28: a template that names a label of ours changes nothing about it. Otherwise the template and the
// update would write it in turns, without end.
// Invariants: P28
func TestP28TemplateNamesOurLabels(t *testing.T) {
	w := newWorld(t)
	k := w.policy.Keys
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: ours}}} // its update was begun, and nothing recorded
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

// The critical-components taint comes back only where it has been before, and
// as it was.
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

// An update takes four writes of the machine beside its owner's, and five of
// its node.
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
	assert.Equal(t, 5, w.cluster.writes, "taken out, told that it is drained, that it may be updated, that it is, taken back")
}

// A drain that waits is asked again and again, and stores only what is new.
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
		assert.Len(t, w.cluster.drain.asked, 6)
		assert.Equal(t, writes, w.store.writes)
		assert.Equal(t, 1, warned, "a blocker is told once")
		assert.Equal(t, "1 pods are held by budget db", w.store.live().Status.LastOperation.Message)
		w.cluster.drain.stuck = 2
		w.runPass(s)
		assert.Equal(t, writes+1, w.store.writes)
		assert.Equal(t, 2, warned)
		first, last := w.cluster.drain.asked[0], w.cluster.drain.asked[6]
		assert.Equal(t, first.Since, last.Since, "timers do not start over")
		assert.Equal(t, first.Until, last.Until)
	}
}

// The time of an update counts from when it was selected, or from a restart of
// the clocks, and ends a second later than its figure.
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

// The waits of a forced deletion end on the second, too: a minute for the
// drain, and the policy's time for the volumes.
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

// The record of a drain that came to nothing goes with the cordon that it made,
// and leaves one of somebody else.
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

// refuses has one effect on the cluster fail; empty: none.
func (w *world) makeUnavailable(effect string) {
	w.cluster.faults = func(e string) codes.Code {
		if e == effect {
			return codes.Unavailable
		}
		return codes.OK
	}
}

func (w *world) phase() machine.Phase { return w.store.live().Status.Phase }

// A stage that claims to have been stored in the future holds no deletion up.
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

// A drain that asks for a time that has passed is looked at in a second.
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

// An unhealthy node is no node to update, though its machine still runs.
func TestUnhealthyNodesAreNotUpdated(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.setReady(node, object.False)
	w.requestInPlace(machine.InPlaceSelected)
	w.runPass(&shell{w: w})
	assert.Equal(t, machine.PhaseUnknown, w.phase())
}

// says has the node say where an update stands, as any program may write it.
func (w *world) setUpdateReason(reason string) {
	w.cluster.change(node, func(n *machine.Node) {
		n.Conditions = object.SetCondition(object.DropCondition(n.Conditions, machine.NodeInPlaceUpdate),
			object.Condition{Type: machine.NodeInPlaceUpdate, Status: object.True, Reason: reason, Since: w.now})
	})
}

// Where storage holds no stage, a node that says that it may be updated decides
// that its agent may be at work.
func TestNodeTellsAnUnknownUpdateStage(t *testing.T) {
	for _, told := range []bool{true, false} {
		w := newWorld(t)
		w.createRunning()
		w.addDrain(0, 0, 1)
		w.requestInPlace(machine.InPlaceSelected)
		w.runPass(&shell{w: w})
		if told {
			w.setUpdateReason(machine.ReasonReadyForUpdate)
		}
		m := w.store.live().Clone()
		m.Status.LastOperation.Stage = "Meditating"
		w.store.force(m)
		w.requestInPlace(machine.InPlaceNone)
		w.runPass(&shell{w: w})
		if told {
			assert.Equal(t, machine.PhaseInPlaceUpdating, w.phase(), "withdrawn under the agent's hands")
			assert.Equal(t, machine.StageReady, w.store.live().Status.LastOperation.Stage)
		} else {
			assert.Equal(t, machine.PhaseRunning, w.phase())
		}
	}
}

// A cache that does not show a user's label yet withdraws nothing, and a cache
// that shows a machine of before its update takes nothing off its node.
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
		if lags[0] > 0 { // back to before the user's label
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

// A failure to write the node is forgotten when what was to be written is there.
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
	w.setUpdateReason(machine.ReasonReadyForUpdate) // it was written after all
	w.now = plan.At
	w.runPass(s)
	assert.Equal(t, machine.StateProcessing, w.store.live().Status.LastOperation.State)
}

// A machine whose failed update was withdrawn runs again when its node was
// brought back into service, and not before.
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

// returning is a machine whose update is done and whose owner has taken it over.
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

// A record that knows less than the node is confirmed before the node is told
// anything.
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

// The critical-components taint is put on once, and only with a node that
// comes back from an update.
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

// What a node says to an agent is taken back also where that fails at first,
// and the node was not healthy in time.
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
	told := object.FindCondition(w.cluster.live(node).Conditions, machine.NodeInPlaceUpdate)
	assert.Equal(t, machine.ReasonUpdateSuccessful, told.Reason)
	requireIdle(w)
}

// A node that somebody deletes takes its machine along, also while it waits
// for its owner.
func TestDeletedNodesAreFollowedAfterAnUpdate(t *testing.T) {
	for _, r := range []machine.InPlaceRequest{machine.InPlaceSelected, machine.InPlaceNone} {
		w, _ := newReturning(t)
		w.requestInPlace(r)
		w.cluster.delete(node)
		(&shell{w: w}).settle(bound)
		assert.Nil(t, w.store.live())
	}
}

// A withdrawn machine runs again when its node is back in service, also if a
// cache shows the node as it was before.
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

// A stage that does not go with its phase moves along no table; the model
// holds each move to what is stored.
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

// updateChaos is a world in which a machine is updated while anything may go wrong.
type updateChaos struct {
	*chaos
	cordoned bool // by a user, before
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
		if c.store.live().Status.Phase != machine.PhaseInPlaceUpdateSuccessful { // which only its owner's move ends
			c.requestInPlace(r)
		}
	case 2:
		c.killAt, c.after = c.calls+rapid.IntRange(1, 6).Draw(c.draw, "kill"), rapid.Bool().Draw(c.draw, "after")
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

// recorded holds a node to the rules by which an update that another program led on
// is told from ours: no other program leads one on here.
func (c *updateChaos) requireRecordBeforeCondition() {
	n := c.cluster.live(node)
	told := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	if told == nil || !n.Applied.Update.Since.IsZero() {
		return
	}
	switch told.Reason {
	case machine.ReasonCandidateForUpdate:
	case machine.ReasonUpdateSuccessful:
		require.False(c.draw, n.Applied.Update.Candidate, "the record of a candidate meets a success")
	default:
		require.Fail(c.draw, "an update is told of that is not on record", "%s: %+v", told.Reason, n.Applied.Update)
	}
}

// clean holds a node to carrying nothing of an update any more (P23).
func (c *updateChaos) requireNoUpdateLeft() {
	n := c.cluster.live(node)
	require.Equal(c.draw, machine.UpdateMarks{}, n.Applied.Update)
	require.NotContains(c.draw, n.Labels, c.policy.Keys.CandidateForUpdate)
	require.Equal(c.draw, c.cordoned, n.Unschedulable, "P23: somebody else's cordon, or ours was left")
	if told := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate); told != nil {
		require.Equal(c.draw, machine.ReasonUpdateSuccessful, told.Reason, "an agent is still told that it may work, or the next update can't begin")
	}
}

// requireUpdatedAgain holds a machine that was updated too late to being updated once more
// when it is selected.
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

// A storm of faults, kills, stale reads, requests and users never tells an
// agent of a node that is in service or not empty, and never drains another
// machine's node: the models fail on the spot. When it is over, the machine
// settles (P18, P28); and where no update is wanted any more and none
// came too late, it runs again, and nothing of the update is left (P23).
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
