package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// P23: what others put on a node stays there; a user's selection goes when it
// is fulfilled, since it would select the machine again next time.
func TestP23UpdatesLeaveWhatIsNotTheirs(t *testing.T) {
	w := newWorld(t)
	w.running()
	k := w.policy.Keys
	w.cluster.change(node, func(n *machine.Node) {
		n.Labels[k.CandidateForUpdate], n.Unschedulable = "true", true
	})
	w.cluster.agent = agentModel{answer: machine.UpdateSuccessful}
	w.owner.moves = true
	w.ask(machine.InPlaceCandidate)
	w.cluster.change(node, func(n *machine.Node) { n.Labels[k.SelectedForUpdate] = "true" })
	(&shell{w: w}).settle(bound)
	require.Equal(t, 1, w.owner.moved)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	n := w.cluster.live(node)
	assert.Equal(t, "true", n.Labels[k.CandidateForUpdate], "somebody else's")
	assert.True(t, n.Unschedulable, "somebody else's")
	assert.NotContains(t, n.Labels, k.SelectedForUpdate, "fulfilled")
	assert.NotContains(t, n.Labels, k.UpdateResult, "taken")

	w.ask(machine.InPlaceCandidate)
	w.cluster.change(node, func(n *machine.Node) { n.Labels[k.SelectedForUpdate] = "true" })
	w.drains(0, 0, 1)
	w.passes(&shell{w: w})
	require.Equal(t, machine.PhaseInPlaceUpdating, w.store.live().Status.Phase)
	w.ask(machine.InPlaceNone)
	(&shell{w: w}).settle(bound)
	assert.Equal(t, "true", w.cluster.live(node).Labels[k.SelectedForUpdate], "withdrawn by the owner: the user's label is the user's")
}

// P28: a template that names a label of ours changes nothing about it. Otherwise the template and the
// update would write it in turns, without end.
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
		w.give()
		s := &shell{w: w}
		w.passes(s)
		w.pass(time.Minute)
		if before {
			w.cluster.change(node, func(n *machine.Node) { n.Taints = append(n.Taints, taint) })
		}
		w.passes(s)
		w.cluster.change(node, func(n *machine.Node) { n.Taints = nil })
		w.passes(s)
		require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
		w.cluster.agent = agentModel{answer: machine.UpdateSuccessful}
		w.owner.moves = true
		w.ask(machine.InPlaceSelected)
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
	w.running()
	w.cluster.agent = agentModel{answer: machine.UpdateSuccessful, takes: time.Minute}
	w.owner.moves = true
	w.ask(machine.InPlaceSelected)
	w.store.writes, w.cluster.writes = 0, 0
	(&shell{w: w}).settle(bound)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	assert.Equal(t, 4+1, w.store.writes, "selected, ready, updated, moved by the owner, in service")
	assert.Equal(t, 5, w.cluster.writes, "taken out, told that it is drained, that it may be updated, that it is, taken back")
}

// A drain that waits is asked again and again, and stores only what is new.
func TestDrainsAreNotedOnce(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		w := newWorld(t)
		w.running()
		w.drains(0, 0, 1)
		if deleted {
			w.store.remove()
		} else {
			w.ask(machine.InPlaceSelected)
		}
		warned := 0
		s := &shell{w: w, told: func(_ *machine.Observation, plan machine.Plan, _ string) {
			if plan.Warn.Reason == machine.ReasonDrainNoted {
				warned++
			}
		}}
		w.passes(s)
		writes := w.store.writes
		for range 5 {
			w.pass(time.Minute)
			w.passes(s)
		}
		assert.Len(t, w.cluster.drain.asked, 6)
		assert.Equal(t, writes, w.store.writes)
		assert.Equal(t, 1, warned, "a blocker is told once")
		assert.Equal(t, "1 pods are held by budget db", w.store.live().Status.LastOperation.Message)
		w.cluster.drain.stuck = 2
		w.passes(s)
		assert.Equal(t, writes+1, w.store.writes)
		assert.Equal(t, 2, warned)
		first, last := w.cluster.drain.asked[0], w.cluster.drain.asked[6]
		assert.Equal(t, first.Since, last.Since, "timers do not start over")
		assert.Equal(t, first.Until, last.Until)
	}
}

// The time of an update counts from when it was selected, or from a restart of
// the clocks, and ends a second later than its figure.
func TestUpdatesEndOnTheSecond(t *testing.T) {
	for _, stuck := range []int{0, 1} {
		for _, restart := range []time.Duration{0, 7 * time.Minute} {
			w := newWorld(t)
			w.running()
			w.edit(func(m *machine.Machine) { m.Spec.Config.InPlaceTimeout = 10 * time.Minute })
			w.drains(0, 0, stuck)
			w.ask(machine.InPlaceSelected)
			w.passes(&shell{w: w})
			status := w.store.live().Status.Clone()
			if restart > 0 {
				status.ClockFrom = status.Since.Add(restart)
				_, err := w.store.updateStatus(w.store.live().Version, status)
				require.NoError(t, err)
			}
			before, then := w.until(status.Since.Add(restart + 10*time.Minute + time.Second))
			assert.Equal(t, machine.PhaseInPlaceUpdating, before)
			assert.Equal(t, machine.PhaseInPlaceUpdateFailed, then)
		}
	}
}

// The waits of a forced deletion end on the second, too: a minute for the
// drain, and the policy's time for the volumes.
func TestForcedDrainsEndOnTheSecond(t *testing.T) {
	w := newWorld(t)
	w.running()
	d := w.drains(0, 0, 1)
	d.wedged, d.volumes, d.held = true, 1, time.Hour
	w.policy.DetachTimeout = 3 * time.Minute
	w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
	w.store.remove()
	s := &shell{w: w}
	stage := func(at time.Time) machine.Stage {
		w.now = at
		w.passes(s)
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
		w.running()
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
