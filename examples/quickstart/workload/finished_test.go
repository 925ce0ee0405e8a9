package workload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
)

// TestTasksFinishBeforeTheyGo: a task whose process has ended exists for a while as a finished one.
// It does not serve, no budget counts it, its volume is detached, and another one of its name is
// created when it is gone.
func TestTasksFinishBeforeTheyGo(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	slow := withVolume
	slow.Report = 2 * time.Second
	s.apply(slow)
	s.serve()
	p := s.pod("db-0")
	s.change("a", func(n *machine.Node) { n.Unschedulable = true })
	require.Equal(t, drain.Accepted, s.evicts(p))
	s.ended(p)
	require.Same(t, p, s.pod("db-0"))
	require.True(t, p.Finished)
	require.False(t, p.GraceEnds.IsZero())
	s.looks()
	require.Empty(t, s.attachments(), "the volume is off, though the task is there")
	require.Empty(t, s.Tasks("a"))
	pods, _, err := s.On(context.Background(), "a")
	require.NoError(t, err)
	require.Equal(t, []*drain.Pod{p.Pod}, pods, "a drain sees it")

	s.past = 2 * time.Second
	s.looks()
	require.NotEqual(t, p.UID, s.pod("db-0").UID)
	require.Equal(t, "b", s.pod("db-0").node)
}

// TestTasksThatEndByThemselves are replaced, and are deleted when they are evicted. No budget is
// asked.
func TestTasksThatEndByThemselves(t *testing.T) {
	s := newSite(t, t.TempDir(), "a")
	strict := front
	strict.MaxUnavailable, strict.Report = 0, time.Minute
	s.apply(strict)
	s.serve()
	p := s.pods[0]
	s.ended(p)
	require.True(t, p.Finished)
	require.Equal(t, strict.Replicas-1, s.Serving(strict.Name))
	require.Equal(t, strict.Replicas+1, s.Left(), "another one comes beside it")
	s.serve()
	require.Equal(t, strict.Replicas, s.Serving(strict.Name))
	require.True(t, p.Finished, "what has ended does not come back")
	require.Equal(t, drain.Refused, s.evicts(s.pods[1]))
	require.Equal(t, drain.Accepted, s.evicts(p))
	require.Equal(t, strict.Replicas, s.Left())
}
