package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// updateChaos is a world in which a machine is updated while anything may go wrong.
type updateChaos struct {
	*chaos
	cordoned bool // by a user, before
}

func newUpdateChaos(t *rapid.T) *updateChaos {
	w := newWorld(t)
	c := &updateChaos{chaos: &chaos{world: w, draw: t}}
	w.running()
	if rapid.Bool().Draw(t, "drains") {
		w.drains(rapid.IntRange(0, 2).Draw(t, "pods"), time.Minute, rapid.IntRange(0, 1).Draw(t, "stuck"))
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
			c.ask(r)
		}
	case 2:
		c.killAt, c.after = c.calls+rapid.IntRange(1, 6).Draw(c.draw, "kill"), rapid.Bool().Draw(c.draw, "after")
	case 3:
		if n != nil {
			c.cluster.change(node, func(n *machine.Node) { n.Labels[c.policy.Keys.SelectedForUpdate] = "true" })
		}
	case 4:
		if n != nil {
			c.cluster.ready(node, rapid.SampledFrom([]object.ConditionStatus{object.True, object.True, object.False}).Draw(c.draw, "ready"))
		}
	default:
		c.pass(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 5 * time.Minute, 25 * time.Minute}).Draw(c.draw, "time"))
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
		c.recorded()
	}
	c.stormy, c.killAt = false, 0
	c.cluster.ready(node, object.True)
}

// recorded holds a node to the rules by which an update that another program led on
// is told from ours: no other program leads one on here.
func (c *updateChaos) recorded() {
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
func (c *updateChaos) clean() {
	n := c.cluster.live(node)
	require.Equal(c.draw, machine.UpdateMarks{}, n.Applied.Update)
	require.NotContains(c.draw, n.Labels, c.policy.Keys.CandidateForUpdate)
	require.Equal(c.draw, c.cordoned, n.Unschedulable, "P23: somebody else's cordon, or ours was left")
	if told := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate); told != nil {
		require.Equal(c.draw, machine.ReasonUpdateSuccessful, told.Reason, "an agent is still told that it may work, or the next update can't begin")
	}
}

// rescued holds a machine that was updated too late to being updated once more
// when it is selected.
func (c *updateChaos) rescued() {
	c.cluster.agent = agentModel{answer: machine.UpdateSuccessful, takes: time.Minute}
	if c.cluster.drain != nil {
		c.cluster.drain.stuck = 0
	}
	c.ask(machine.InPlaceSelected)
	c.shell.settle(60)
	require.Equal(c.draw, machine.PhaseRunning, c.store.live().Status.Phase)
	require.Equal(c.draw, 1, c.cluster.agent.updated)
	c.clean()
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
		quiet(c.world)
		if m = c.store.live(); m.Status.Phase == machine.PhaseInPlaceUpdateFailed && m.Status.LastOperation.Stage == machine.StageCandidate {
			c.rescued()
		}
		c.ask(machine.InPlaceNone)
		c.shell.settle(60)
		m = c.store.live()
		require.Equal(t, machine.PhaseRunning, m.Status.Phase, state(m))
		c.clean()
		quiet(c.world)
	})
}
