package machinepool_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

func nodeCarrying(name, id string) *machine.Node {
	return &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}, UID: "uid-" + name}, ProviderID: id}
}

// Nodes are matched by the ID itself first, then by another spelling of it, if only one node and one
// instance have it.
func TestMatchNodes(t *testing.T) {
	ids := []string{"blue:///Web/1", "blue:///Web/2", "blue:///Web/3", "blue:///web/3", "blue:///Web/4"}
	exact := nodeCarrying("n-2", ids[1])
	found := map[string]*machine.Node{ids[1]: exact}
	leader := nodeCarrying("leader", "")
	leader.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	spelled := nodeCarrying("n-1", "BLUE:///web/1/")
	rest := machinepool.MatchNodes(ids, found, []*machine.Node{
		leader, spelled, nodeCarrying("second of 2", "blue:///web/2"), nodeCarrying("of two instances", "blue:///WEB/3"),
		nodeCarrying("one of two", "blue:///WEB/4"), nodeCarrying("the other", "blue:///Web/4/"), nodeCarrying("late", ""), nodeCarrying("stranger", "red:///9"),
	})
	assert.Equal(t, map[string]*machine.Node{ids[0]: spelled, ids[1]: exact}, found)
	var names []string
	for _, n := range rest {
		names = append(names, n.Name)
	}
	assert.Equal(t, []string{"second of 2", "of two instances", "one of two", "the other", "late", "stranger"}, names)
}

// Nodes whose IDs the cluster spells otherwise are counted and drained. A condition says so, with one
// warning.
// Invariants: P48
func TestP48InstancesSpelledOtherwise(t *testing.T) {
	w := newWorld()
	w.spell, w.matches, w.slow = strings.ToUpper, true, time.Minute
	w.scaleTo(5)
	s := &shell{w: w}
	warned := 0
	s.onPlan = func(p machinepool.Plan) {
		if p.Warn.Reason == machinepool.ReasonNodesSpelled {
			warned++
		}
	}
	require.NoError(t, s.until(10*time.Minute, func() { w.supply(); w.join() }))
	require.True(t, w.settled(), "%+v", w.pool().Status)
	assert.Equal(t, int32(5), w.pool().Status.Ready)
	said := object.FindCondition(w.pool().Status.Conditions, machinepool.ConditionNodesUnmatched)
	require.NotNil(t, said)
	assert.Contains(t, said.Message, "nodes of 5 of 5 instances carry the provider ID in another spelling, such as BLUE:///1 for blue:///1")
	w.scaleTo(2)
	require.NoError(t, s.until(10*time.Minute, w.supply))
	require.True(t, w.settled())
	assert.Empty(t, w.violation)
	assert.Equal(t, 1, warned)
	w.spell = nil
	for id := range w.nodes {
		w.nodes[id] = w.newNode(id)
	}
	require.NoError(t, s.until(10*time.Minute, w.supply))
	assert.Nil(t, object.FindCondition(w.pool().Status.Conditions, machinepool.ConditionNodesUnmatched), "they are as they should be")
}

// However a cluster spells the IDs of a pool's nodes, and even if it learns some late, no instance with a
// node is removed undrained before the drain timeout, and all surplus instances are removed in the end.
// Invariants: P48
func TestP48NoneIsRemovedUndrained(t *testing.T) {
	gone := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.spell, w.matches = anySpelling(t), true
		w.slow = time.Duration(rapid.IntRange(0, 60).Draw(t, "slow")) * time.Second
		n := rapid.IntRange(1, 6).Draw(t, "instances")
		w.scaleTo(int32(n))
		s := &shell{w: w}
		require.NoError(t, s.until(10*time.Minute, func() { w.supply(); w.join() }))
		if ids := w.ids(); rapid.Bool().Draw(t, "lost") { // its node is deleted, or never came
			delete(w.nodes, rapid.SampledFrom(ids).Draw(t, "node"))
		}
		left := rapid.IntRange(0, n-1).Draw(t, "left")
		w.scaleTo(int32(left))
		require.NoError(t, s.until(time.Hour, w.supply))
		require.Empty(t, w.violation)
		gone += n - len(w.ids())
		require.NoError(t, s.until(2*time.Hour, w.supply))
		require.Len(t, w.ids(), left)
		require.Empty(t, w.violation)
	})
	assert.Positive(t, gone, "no instance was removed before the drain timeout")
}

// An instance whose node has no provider ID yet is not chosen for removal if another can be drained. If it
// has to be removed, that waits for its node, at most for the drain timeout.
// Invariants: P48
func TestP48NodesThatComeLate(t *testing.T) {
	w, s := running(t, 3)
	ids := w.ids()
	late := w.nodes[ids[0]].Clone()
	late.ProviderID = ""
	w.nodes[ids[0]], w.matches, w.slow = late, true, time.Minute
	w.scaleTo(2)
	require.NoError(t, s.until(5*time.Minute, w.supply))
	require.Contains(t, w.ids(), ids[0])
	require.Len(t, w.ids(), 2)
	require.Empty(t, w.violation)
	said := object.FindCondition(w.pool().Status.Conditions, machinepool.ConditionNodesUnmatched)
	require.NotNil(t, said)
	assert.Contains(t, said.Message, fmt.Sprintf("1 of 2 instances, such as %s, have no known node, and node %s has no known owner", ids[0], late.Name))

	w.scaleTo(0)
	require.NoError(t, s.until(2*time.Hour, w.supply))
	require.Equal(t, ids[:1], w.ids(), "the instance is not known to be empty")
	require.NoError(t, s.until(10*time.Minute, w.supply))
	assert.Empty(t, w.ids(), "the drain timeout is over")
	assert.Empty(t, w.violation)
}

// While there are nodes without a known owner, an instance without a node is removed only after the drain
// timeout. Without such nodes it is removed at once.
func TestInstanceBesideUnmatchedNodes(t *testing.T) {
	for _, unmatched := range []bool{true, false} {
		w, s := running(t, 3)
		ids := w.ids()
		delete(w.nodes, ids[0])
		w.matches = true
		if unmatched {
			w.nodes["red:///9"] = nodeCarrying("stranger", "red:///9")
		}
		w.scaleTo(2)
		require.NoError(t, s.until(5*time.Minute, w.supply))
		assert.Equal(t, unmatched, len(w.ids()) == 3)
		require.NoError(t, s.until(2*time.Hour, w.supply))
		assert.Equal(t, ids[1:], w.ids(), "an instance without a node is removed before one that has a node")
		assert.Nil(t, object.FindCondition(w.pool().Status.Conditions, machinepool.ConditionNodesUnmatched))
	}
}
