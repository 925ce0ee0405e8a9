package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
)

// behind is what a process sees whose cache has the current pods, and the node as it was before a
// turn was recorded.
func (s *shell) behind() *drain.Observation {
	o := s.observe()
	o.Node = o.Node.Clone()
	o.Node.Drain = o.Node.Drain.Clone()
	o.Node.Drain.Turn = machine.DrainTurn{}
	o.Cached = true
	return o
}

func decide(t *testing.T, s *shell, o *drain.Observation) drain.Plan {
	t.Helper()
	plan, err := drain.Decide(o, s.policy, s.now)
	require.NoError(t, err)
	return plan
}

// A cache may show that a pod is gone before it shows that its turn was recorded. So only after a
// live read of the node does the drain tell the next pod with volumes to go, or end (P22).
func TestTurnsAreBelievedLive(t *testing.T) {
	s, first, second := twoDatabases(t)
	s.detach = -1
	s.advance(first.ends.Add(time.Second))
	s.memory = drain.NewMemory(s.now.Add(-time.Hour)) // another process
	plan := decide(t, s, s.behind())
	assert.True(t, plan.Look, "%s", plan.Why)
	assert.Empty(t, plan.Evict)
	assert.Equal(t, drain.ReasonLook, plan.Why.Reason)

	live := s.observe()
	live.Cached = true
	plan = decide(t, s, live)
	assert.Empty(t, plan.Evict, "the record is there already")
	assert.False(t, plan.Look, "and nothing counts on what it does not say")

	s.node = s.behind().Node
	plan = decide(t, s, s.observe())
	require.Len(t, plan.Evict, 1, "if really nothing is recorded it goes")
	assert.Equal(t, second.Key, plan.Evict[0].Pod)
}

// A drain whose pods are gone ends on a cached node only if no volume can be left.
func TestDrainsEndLive(t *testing.T) {
	s, first, second := twoDatabases(t)
	s.detach = -1
	s.advance(first.ends.Add(time.Second))
	s.pods = nil
	_ = second
	s.node = s.node.Clone()
	s.node.Drain.Emptied = s.now.Add(-time.Hour)      // the volumes have had their time
	s.memory = drain.NewMemory(s.now.Add(-time.Hour)) // another process: this one would record the turn
	require.True(t, decide(t, s, s.behind()).Look)
	for what, o := range map[string]func(*drain.Observation){
		"attached elsewhere": func(o *drain.Observation) { o.Attachments[0].Node, o.Attachments[1].Node = there, there },
		"none":               func(o *drain.Observation) { o.Attachments = []*drain.Attachment{nil} },
		"the node says none": func(o *drain.Observation) { o.Attachments, o.Attached = nil, []string{} },
		"read live":          func(o *drain.Observation) { o.Cached = false },
		"the time is over":   func(o *drain.Observation) { o.Deadline = s.now },
	} {
		seen := s.behind()
		o(seen)
		plan := decide(t, s, seen)
		assert.True(t, plan.Done && !plan.Look, "%s: %s", what, plan.Why)
	}
	for what, o := range map[string]func(*drain.Observation){
		"nobody knows":       func(o *drain.Observation) { o.Attachments = nil },
		"the node says some": func(o *drain.Observation) { o.Attachments, o.Attached = nil, []string{"vol-1"} },
	} {
		seen := s.behind()
		o(seen)
		assert.True(t, decide(t, s, seen).Look, what)
	}
}

// A pod that was bound just before the cordon may be missing in a cache. A drain ends on a live
// list of pods, except at its deadline and by force (P22).
func TestDrainsEndOnALiveListOfPods(t *testing.T) {
	s, _, _ := twoDatabases(t)
	s.pods = nil
	seen := s.observe()
	seen.Attachments, seen.PodsCached = nil, true
	seen.Attached = []string{}
	plan := decide(t, s, seen)
	require.Equal(t, drain.ReasonLookPods, plan.Why.Reason)
	require.True(t, plan.Look && !plan.Done)
	seen.Deadline = s.now
	require.True(t, decide(t, s, seen).Done)
	seen.Deadline, seen.PodsCached = time.Time{}, false
	require.True(t, decide(t, s, seen).Done)
}

// A drain that has just begun may be missing in a cache. Only a live read shows that there is none
// to undo (P23).
func TestUndoneOnALiveRead(t *testing.T) {
	s, _, _ := twoDatabases(t)
	seen := s.behind()
	seen.Node.Drain = nil
	plan, err := drain.Undo(seen, s.policy, s.now)
	require.NoError(t, err)
	require.True(t, plan.Look && !plan.Done, "%s", plan.Why)
	seen.Cached = false
	plan, err = drain.Undo(seen, s.policy, s.now)
	require.NoError(t, err)
	require.True(t, plan.Done && !plan.Look, "%s", plan.Why)
}
