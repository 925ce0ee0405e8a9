package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// updateReasons returns the reasons of condition InPlaceUpdate that the node has had, in their order.
func (w *world) updateReasons() (reasons []string) {
	for _, n := range w.cluster.nodes[node] {
		c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
		if c == nil {
			continue
		}
		require.Equal(w.t, object.True, c.Status, c.Reason)
		if len(reasons) == 0 || reasons[len(reasons)-1] != c.Reason {
			reasons = append(reasons, c.Reason)
		}
	}
	return reasons
}

// TestInPlaceReasons: the condition of the node has a reason for each stage of an update. The second update
// begins with the reason of the first one's end.
func TestInPlaceReasons(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.addDrain(0, 0, 0)
	w.cluster.agent = agentModel{answer: machine.UpdateSuccessful}
	w.owner.moves = true
	var want []string
	for round := range 2 {
		w.requestInPlace(machine.InPlaceCandidate)
		w.runPass(&shell{w: w})
		w.requestInPlace(machine.InPlaceSelected)
		(&shell{w: w}).settle(bound)
		want = append(want, machine.ReasonCandidateForUpdate, machine.ReasonSelectedForUpdate, machine.ReasonReadyForUpdate, machine.ReasonUpdateSuccessful)
		require.Equal(t, want, w.updateReasons(), "round %d", round)
		require.Equal(t, round+1, w.cluster.agent.updated)
		require.Equal(t, machine.PhaseRunning, w.phase())
	}
}

// TestInPlaceReasonsOfAFailure: the condition says that an update has failed. When the update is withdrawn, it
// has the reason from which the next update begins.
func TestInPlaceReasonsOfAFailure(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.addDrain(0, 0, 0)
	w.cluster.agent = agentModel{answer: machine.UpdateFailed, reason: "no space"}
	w.requestInPlace(machine.InPlaceSelected)
	s := &shell{w: w}
	for range 3 {
		w.runPass(s)
		w.advance(time.Second)
	}
	require.Equal(t, machine.PhaseInPlaceUpdateFailed, w.phase())
	want := []string{machine.ReasonCandidateForUpdate, machine.ReasonSelectedForUpdate, machine.ReasonReadyForUpdate, machine.ReasonNodeUpdateFailed}
	reasons := w.updateReasons()
	require.Equal(t, want[len(want)-len(reasons):], reasons)
	require.Equal(t, machine.ReasonNodeUpdateFailed, reasons[len(reasons)-1])
	c := object.FindCondition(w.cluster.live(node).Conditions, machine.NodeInPlaceUpdate)
	require.Contains(t, c.Message, "no space")

	w.requestInPlace(machine.InPlaceNone)
	(&shell{w: w}).settle(bound)
	require.Equal(t, machine.PhaseRunning, w.phase())
	reasons = w.updateReasons()
	require.Equal(t, machine.ReasonUpdateSuccessful, reasons[len(reasons)-1])
}

// TestInPlaceCandidateIsWithdrawn: if a candidate's update is withdrawn, the condition says that there is
// nothing to do.
func TestInPlaceCandidateIsWithdrawn(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.requestInPlace(machine.InPlaceCandidate)
	(&shell{w: w}).settle(bound)
	require.Equal(t, []string{machine.ReasonCandidateForUpdate}, w.updateReasons())
	w.requestInPlace(machine.InPlaceNone)
	(&shell{w: w}).settle(bound)
	require.Equal(t, []string{machine.ReasonCandidateForUpdate, machine.ReasonUpdateSuccessful}, w.updateReasons())
	require.NotContains(t, w.cluster.live(node).Labels, w.policy.Keys.CandidateForUpdate)
}

// TestInPlaceReadyBecomesCandidateAgain: if the agent never answers and the owner makes the machine a candidate
// again, the condition says so once the update has ended.
func TestInPlaceReadyBecomesCandidateAgain(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.agent = agentModel{answer: "perhaps"}
	w.requestInPlace(machine.InPlaceSelected)
	s := &shell{w: w}
	w.runPass(s)
	w.requestInPlace(machine.InPlaceCandidate)
	s.settle(bound)
	require.Equal(t, machine.PhaseRunning, w.phase())
	require.Equal(t, machine.ReasonCandidateForUpdate, w.updateReasons()[len(w.updateReasons())-1])
	requireIdle(w)
}

// leftBehind is the state in which machine-controller-manager leaves machine and node at a stage of an update.
type leftBehind struct {
	phase    machine.Phase
	reason   string
	selected bool
	cordoned bool
	result   string
}

var stagesLeftBehind = map[string]leftBehind{
	"candidate":              {machine.PhaseRunning, machine.ReasonCandidateForUpdate, false, false, ""},
	"selected, not drained":  {machine.PhaseRunning, machine.ReasonSelectedForUpdate, true, false, ""},
	"amid the drain":         {machine.PhaseRunning, machine.ReasonSelectedForUpdate, true, true, ""},
	"drained":                {machine.PhaseInPlaceUpdating, machine.ReasonDrainSuccessful, true, true, ""},
	"ready":                  {machine.PhaseInPlaceUpdating, machine.ReasonReadyForUpdate, true, true, ""},
	"answered":               {machine.PhaseInPlaceUpdating, machine.ReasonReadyForUpdate, true, true, machine.UpdateSuccessful},
	"answer in the reason":   {machine.PhaseInPlaceUpdating, machine.ReasonUpdateSuccessful, true, true, machine.UpdateSuccessful},
	"successful":             {machine.PhaseInPlaceUpdateSuccessful, machine.ReasonUpdateSuccessful, true, true, machine.UpdateSuccessful},
	"answered, and healthy":  {machine.PhaseRunning, machine.ReasonReadyForUpdate, true, true, machine.UpdateSuccessful},
	"updated, and not moved": {machine.PhaseRunning, machine.ReasonUpdateSuccessful, true, true, machine.UpdateSuccessful},
	"failed":                 {machine.PhaseInPlaceUpdateFailed, machine.ReasonNodeUpdateFailed, true, true, machine.UpdateFailed},
}

// leaveUpdate gives machine and node the state in which another program has left them.
func (w *world) leaveUpdate(l leftBehind) {
	k := w.policy.Keys
	w.cluster.change(node, func(n *machine.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[k.CandidateForUpdate] = "true"
		if l.selected {
			n.Labels[k.SelectedForUpdate] = "true"
		}
		if l.result != "" {
			n.Labels[k.UpdateResult] = l.result
		}
		n.Unschedulable = l.cordoned
		n.Conditions = object.SetCondition(n.Conditions, object.Condition{
			Type: machine.NodeInPlaceUpdate, Status: object.True, Reason: l.reason, Since: w.now.Truncate(time.Second),
		})
	})
	m := w.store.live().Clone()
	if m.Status.Phase != l.phase || l.phase == machine.PhaseInPlaceUpdating { // that program sets this phase once the node is drained
		m.Status.Phase, m.Status.Since = l.phase, w.now.Truncate(time.Second)
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationInPlaceUpdate, State: machine.StateProcessing, Time: w.now.Truncate(time.Second)}
	}
	w.store.force(m)
}

// TestInPlaceTakenOver: an update that another program has left at any stage is brought to its end, and no
// marks stay on the node.
// Invariants: P23
func TestInPlaceTakenOver(t *testing.T) {
	for name, l := range stagesLeftBehind {
		for _, request := range []machine.InPlaceRequest{machine.InPlaceCandidate, machine.InPlaceSelected} {
			t.Run(name+", "+string(request), func(t *testing.T) { takeOverUpdate(t, l, request) })
		}
	}
}

func takeOverUpdate(t *testing.T, l leftBehind, request machine.InPlaceRequest) {
	w := newWorld(t)
	w.createRunning()
	w.addDrain(0, 0, 0)
	w.leaveUpdate(l)
	s := &shell{w: w}
	if l.phase != machine.PhaseInPlaceUpdateSuccessful { // this stage needs no request
		before := w.cluster.live(node)
		w.runPass(s)
		require.Equal(t, []any{l.phase, before.Labels, before.Conditions, before.Unschedulable},
			[]any{w.phase(), w.cluster.live(node).Labels, w.cluster.live(node).Conditions, w.cluster.live(node).Unschedulable},
			"nothing changes before the owner requests the update")
	}
	if !l.selected {
		request = machine.InPlaceSelected
	}
	w.requestInPlace(request)
	if l.phase == machine.PhaseInPlaceUpdateFailed {
		w.runPass(s)
		require.Equal(t, machine.PhaseInPlaceUpdateFailed, w.phase(), "a failed update stays failed")
		require.Equal(t, machine.ReasonNodeUpdateFailed, w.updateReasons()[len(w.updateReasons())-1])
		w.cluster.setUpdateResult(machine.UpdateSuccessful, "")
	}
	w.cluster.agent, w.owner.moves = agentModel{answer: machine.UpdateSuccessful}, true
	s.settle(bound)
	require.Equal(t, machine.PhaseRunning, w.phase())
	require.Equal(t, machine.ReasonUpdateSuccessful, w.updateReasons()[len(w.updateReasons())-1])
	n, k := w.cluster.live(node), w.policy.Keys
	for _, key := range []string{k.CandidateForUpdate, k.SelectedForUpdate, k.UpdateResult} {
		assert.NotContains(t, n.Labels, key)
	}
	assert.False(t, n.Unschedulable)
	assert.Equal(t, machine.UpdateMarks{}, n.Applied.Update)
	if l.result == "" {
		assert.Equal(t, 1, w.cluster.agent.updated)
	} else {
		assert.Zero(t, w.cluster.agent.updated, "it is updated again")
	}
}

// peerStep returns the reason that machine-controller-manager would set next on a node; empty: none. drained
// says that its drain has ended.
func peerStep(n *machine.Node, k *machine.Keys, drained bool) string {
	if n.Labels[k.CandidateForUpdate] == "" {
		return ""
	}
	reason, result := "", n.Labels[k.UpdateResult]
	if c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate); c != nil {
		reason = c.Reason
	}
	_, selected := n.Labels[k.SelectedForUpdate]
	switch {
	case reason == "" || reason == machine.ReasonUpdateSuccessful && result == "":
		return machine.ReasonCandidateForUpdate
	case selected && reason == machine.ReasonCandidateForUpdate:
		return machine.ReasonSelectedForUpdate
	case reason == machine.ReasonSelectedForUpdate && drained:
		return machine.ReasonDrainSuccessful
	case reason == machine.ReasonDrainSuccessful:
		return machine.ReasonReadyForUpdate
	case result == machine.UpdateSuccessful && reason != machine.ReasonUpdateSuccessful:
		return machine.ReasonUpdateSuccessful
	}
	return ""
}

// TestInPlaceHandedBack: from each of our stages, machine-controller-manager can bring the update to its end.
func TestInPlaceHandedBack(t *testing.T) {
	for stage := range 5 {
		w := newWorld(t)
		w.createRunning()
		k := w.policy.Keys
		d := w.addDrain(0, 0, 0)
		if stage > 0 { // after an earlier update
			w.cluster.agent, w.owner.moves = agentModel{answer: machine.UpdateSuccessful}, true
			w.requestInPlace(machine.InPlaceSelected)
			(&shell{w: w}).settle(bound)
		}
		w.cluster.agent, w.owner.moves = agentModel{}, false
		if stage > 1 {
			w.requestInPlace(machine.InPlaceCandidate)
			w.runPass(&shell{w: w})
		}
		if stage > 2 {
			d.stuck = 1
			w.requestInPlace(machine.InPlaceSelected)
			w.runPass(&shell{w: w})
		}
		if stage > 3 {
			d.stuck = 0
			w.advance(time.Minute)
			w.runPass(&shell{w: w})
			require.Equal(t, machine.ReasonReadyForUpdate, w.updateReasons()[len(w.updateReasons())-1])
		}
		n := w.cluster.live(node).Clone()
		n.Labels[k.CandidateForUpdate], n.Labels[k.SelectedForUpdate] = "true", "true" // as the deployment controller sets them
		for range 10 {
			c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
			if c != nil && c.Reason == machine.ReasonReadyForUpdate {
				n.Labels[k.UpdateResult] = machine.UpdateSuccessful
			}
			if reason := peerStep(n, &k, true); reason != "" {
				n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: machine.NodeInPlaceUpdate, Status: object.True, Reason: reason})
			}
		}
		c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
		require.Equal(t, machine.ReasonUpdateSuccessful, c.Reason, "stage %d", stage)
		require.Equal(t, machine.UpdateSuccessful, n.Labels[k.UpdateResult], "stage %d: the agent has no answer", stage)
	}
}

// TestForceDrain: the label forces the drain for an in-place update and for a preservation. Without the label
// neither is forced.
// Invariants: P22
func TestForceDrain(t *testing.T) {
	for _, value := range []string{"", "True", "true"} {
		w := newWorld(t)
		w.createRunning()
		d := w.addDrain(1, time.Hour, 1)
		w.edit(func(m *machine.Machine) {
			m.Spec.InPlace = machine.InPlaceSelected
			if value != "" {
				m.Labels = map[string]string{"force-drain": value}
			}
		})
		w.runPass(&shell{w: w})
		require.Equal(t, value != "", d.orders[0].Forced)
		require.True(t, d.orders[0].Stays)
		require.Equal(t, value != "", w.store.live().Status.LastOperation.Stage == machine.StageReady)
	}
	for _, value := range []string{"", "True"} {
		w := newWorld(t)
		w.createRunning()
		d := w.addDrain(1, time.Hour, 1)
		w.edit(func(m *machine.Machine) {
			m.Annotations = annotated(m.Annotations, w.policy.Keys.Preserve, machine.PreserveWhenFailed)
			if value != "" {
				m.Labels = map[string]string{"force-drain": value}
			}
		})
		w.runPass(&shell{w: w})
		w.cluster.setReady(node, object.Unknown)
		w.advance(w.policy.HealthTimeout + time.Minute)
		w.runPass(&shell{w: w})
		w.advance(w.policy.HealthTimeout + time.Minute)
		w.runPass(&shell{w: w})
		require.NotEmpty(t, d.orders, "phase %s", w.phase())
		require.Equal(t, value != "", d.orders[0].Forced)
		require.True(t, d.orders[0].Stays)
		require.Equal(t, value != "", w.store.live().Status.Preservation.Drained)
	}
}

// TestInPlaceMovedElsewhere: another program has moved the machine to its new set, and was stopped before it
// removed the marks from the node.
// Invariants: P23
func TestInPlaceMovedElsewhere(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.leaveUpdate(stagesLeftBehind["updated, and not moved"])
	k := w.policy.Keys
	s := &shell{w: w}
	w.runPass(s)
	require.True(t, w.cluster.live(node).Unschedulable, "the owner may not have moved it yet")
	w.edit(func(m *machine.Machine) { m.Labels = map[string]string{k.UpdateResult: machine.UpdateSuccessful} })
	w.runPass(s)
	n := w.cluster.live(node)
	for _, key := range []string{k.CandidateForUpdate, k.SelectedForUpdate, k.UpdateResult} {
		assert.NotContains(t, n.Labels, key)
	}
	assert.False(t, n.Unschedulable)
	requireIdle(w)
}

// TestInPlaceUnclaimed: if another program has begun an update and the machine's owner never requests it, the
// update is withdrawn at its deadline. If it has failed before, the machine fails.
// Invariants: P23
func TestInPlaceUnclaimed(t *testing.T) {
	for name, phase := range map[string]machine.Phase{"amid the drain": machine.PhaseRunning, "drained": machine.PhaseRunning, "failed": machine.PhaseFailed} {
		w := newWorld(t)
		w.createRunning()
		w.addDrain(0, 0, 0)
		l := stagesLeftBehind[name]
		if l.phase == machine.PhaseRunning {
			l.phase = machine.PhaseInPlaceUpdating
		}
		w.leaveUpdate(l)
		s := &shell{w: w}
		w.runPass(s)
		require.Equal(t, l.phase, w.phase(), name)
		require.Empty(t, w.cluster.drain.orders, name)
		s.settle(bound)
		require.Equal(t, phase, w.phase(), name)
		if phase == machine.PhaseRunning {
			require.NotContains(t, w.cluster.live(node).Labels, w.policy.Keys.CandidateForUpdate, name)
			require.False(t, w.cluster.live(node).Unschedulable, name)
		}
	}
}

// TestInPlaceContinuedElsewhere: we announced a candidate, and another program continued the update. From each
// of its stages we bring it to its end: nothing is done twice, and no marks stay on the node.
// Invariants: P23
func TestInPlaceContinuedElsewhere(t *testing.T) {
	for name, l := range stagesLeftBehind {
		for _, request := range []machine.InPlaceRequest{machine.InPlaceCandidate, machine.InPlaceSelected} {
			t.Run(name+", "+string(request), func(t *testing.T) {
				w := newWorld(t)
				w.createRunning()
				w.addDrain(0, 0, 0)
				w.requestInPlace(machine.InPlaceCandidate)
				w.runPass(&shell{w: w})
				require.Equal(t, machine.UpdateMarks{Candidate: true}, w.cluster.live(node).Applied.Update)
				w.leaveUpdate(l)
				if !l.selected {
					request = machine.InPlaceSelected
				}
				w.requestInPlace(request)
				w.requireUpdateEnds(l, l.result == "")
			})
		}
	}
}

// TestInPlaceContinuedAfterTheSelection: as TestInPlaceContinuedElsewhere, for a machine that was selected
// here. Only a machine that is Running again, and was not moved, is updated once more, because its node looks
// like one whose marks we could not remove.
// Invariants: P23
func TestInPlaceContinuedAfterTheSelection(t *testing.T) {
	for name, l := range stagesLeftBehind {
		if l.phase == machine.PhaseRunning && l.result == "" {
			continue // no other program takes the phase of an update back
		}
		for _, request := range []machine.InPlaceRequest{machine.InPlaceCandidate, machine.InPlaceSelected} {
			t.Run(name+", "+string(request), func(t *testing.T) {
				w := newWorld(t)
				w.createRunning()
				d := w.addDrain(0, 0, 1)
				w.requestInPlace(request)
				if request == machine.InPlaceCandidate {
					w.cluster.change(node, func(n *machine.Node) { n.Labels[w.policy.Keys.SelectedForUpdate] = "true" })
				}
				w.runPass(&shell{w: w})
				require.False(t, w.cluster.live(node).Applied.Update.Since.IsZero())
				require.True(t, w.cluster.live(node).Unschedulable)
				w.advance(time.Minute)
				w.leaveUpdate(l)
				d.stuck = 0
				w.requireUpdateEnds(l, l.result == "" || l.phase == machine.PhaseRunning)
			})
		}
	}
}

// requireUpdateEnds checks that an update that another program has continued ends. updates says that the agent
// has yet to update the node.
func (w *world) requireUpdateEnds(l leftBehind, updates bool) {
	s := &shell{w: w}
	if l.phase == machine.PhaseInPlaceUpdateFailed {
		w.runPass(s)
		require.Equal(w.t, machine.PhaseInPlaceUpdateFailed, w.phase(), "a failed update stays failed")
		w.cluster.setUpdateResult(machine.UpdateSuccessful, "")
	}
	w.cluster.agent, w.owner.moves = agentModel{answer: machine.UpdateSuccessful}, true
	s.settle(bound)
	require.Equal(w.t, machine.PhaseRunning, w.phase())
	w.requireNoUpdateMarks()
	require.Equal(w.t, machine.ReasonUpdateSuccessful, w.updateReasons()[len(w.updateReasons())-1])
	require.Equal(w.t, map[bool]int{true: 1}[updates], w.cluster.agent.updated)
	requireIdle(w)
}

// requireNoUpdateMarks checks that no mark of an update is on the node.
func (w *world) requireNoUpdateMarks() {
	n, k := w.cluster.live(node), w.policy.Keys
	for _, key := range []string{k.CandidateForUpdate, k.SelectedForUpdate, k.UpdateResult} {
		assert.NotContains(w.t, n.Labels, key)
	}
	assert.False(w.t, n.Unschedulable)
	assert.Equal(w.t, machine.UpdateMarks{}, n.Applied.Update)
}

// TestInPlaceTakenOverWhileUnhealthy: an update that another program has continued waits until its node is
// healthy, and out of service. Then it continues.
// Invariants: P23
func TestInPlaceTakenOverWhileUnhealthy(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.addDrain(0, 0, 0)
	w.requestInPlace(machine.InPlaceCandidate)
	w.runPass(&shell{w: w})
	l := stagesLeftBehind["answered, and healthy"]
	w.leaveUpdate(l)
	w.cluster.setReady(node, object.False)
	w.runPass(&shell{w: w})
	w.advance(time.Minute)
	w.runPass(&shell{w: w})
	require.Equal(t, machine.PhaseUnknown, w.phase())
	require.True(t, w.cluster.live(node).Unschedulable)
	w.cluster.setReady(node, object.True)
	w.requireUpdateEnds(l, false)
}

// TestInPlaceMovedAfterItBeganHere: another program has continued our update and moved the machine, and was
// stopped before it removed the marks from the node.
// Invariants: P23
func TestInPlaceMovedAfterItBeganHere(t *testing.T) {
	for _, request := range []machine.InPlaceRequest{machine.InPlaceCandidate, machine.InPlaceSelected} {
		w := newWorld(t)
		w.createRunning()
		w.addDrain(0, 0, 1)
		w.requestInPlace(request)
		w.runPass(&shell{w: w})
		w.leaveUpdate(stagesLeftBehind["updated, and not moved"])
		w.edit(func(m *machine.Machine) {
			m.Labels = map[string]string{w.policy.Keys.UpdateResult: machine.UpdateSuccessful}
		})
		w.requestInPlace(machine.InPlaceNone)
		(&shell{w: w}).settle(bound)
		require.Equal(t, machine.PhaseRunning, w.phase())
		w.requireNoUpdateMarks()
		requireIdle(w)
	}
}

// TestInPlaceRetractionThatFails: while the condition can't be taken back, the begin of the update stays
// recorded. So a user's selection is not taken for an update by another program.
// Invariants: P23
func TestInPlaceRetractionThatFails(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.cluster.change(node, func(n *machine.Node) { n.Unschedulable = true })
	w.cluster.agent = agentModel{answer: machine.UpdateFailed}
	w.requestInPlace(machine.InPlaceSelected)
	for range 2 {
		w.runPass(&shell{w: w})
		w.advance(time.Second)
	}
	w.makeUnavailable("MarkNode")
	w.runPass(&shell{w: w})
	require.Equal(t, machine.PhaseInPlaceUpdateFailed, w.phase())
	w.requestInPlace(machine.InPlaceCandidate)
	w.runPass(&shell{w: w})
	require.NotContains(t, w.cluster.live(node).Labels, w.policy.Keys.SelectedForUpdate)
	w.cluster.change(node, func(n *machine.Node) { n.Labels[w.policy.Keys.SelectedForUpdate] = "true" })
	w.runPass(&shell{w: w})
	w.makeUnavailable("")
	w.requestInPlace(machine.InPlaceNone)
	(&shell{w: w}).settle(bound)
	require.Equal(t, machine.PhaseRunning, w.phase())
	require.True(t, w.cluster.live(node).Unschedulable, "the cordon was there before")
}
