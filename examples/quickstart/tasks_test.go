package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// startTasks starts a fleet with tasks. The rollout of the test may add so many machines.
func startTasks(t *testing.T, surge int32, prepare func(*play)) *play {
	t.Helper()
	p := startFleetWith(t, surge, prepare)
	p.workload.Scale(tasks)
	require.NoError(t, p.tasksServe(t.Context()))
	return p
}

// TestUndrainedMachinesBreakTheBudget: the count sees what a drain prevents. The drainer finds all
// nodes empty, and no task is started in the place of those that end with their machines.
func TestUndrainedMachinesBreakTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel()
	p := startTasks(t, replicas, func(p *play) { p.drains.Workload = drains.Workload{Pods: noPods{p.workload}} })
	p.stopWorkload()
	require.NoError(t, p.edit(t.Context(), useClass("v2")))
	require.NoError(t, p.settled(t.Context(), replicas, "v2"))
	_, err := p.Counts(t.Context(), p.machineCount, replicas)
	require.NoError(t, err, "the machines' own bounds are kept")
	require.NoError(t, p.Await(t.Context(), func() string {
		if _, err = p.Counts(t.Context(), p.taskCount, tasks-maxUnavailable); err == nil {
			return "a count of too few tasks"
		}
		return ""
	}))
	require.ErrorContains(t, err, "processes were serving at a time, 8 should be")
	p.stopWorkload = p.Go("the workload", p.workload.Run)
	require.NoError(t, p.tasksServe(t.Context()))
}

// noPods says that no node has a pod.
type noPods struct{ drains.Pods }

// On implements drains.Pods.
func (noPods) On(context.Context, string) (none []*drain.Pod, complete bool, err error) {
	return nil, true, nil
}

// TestBudgetHoldsDrainsBack: all old machines are deleted at a time, and all are drained at the
// same time. Evictions beyond the budget are refused.
func TestBudgetHoldsDrainsBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	p := startTasks(t, replicas, func(p *play) { p.drains.Limit = drains.Limit{} })
	require.NoError(t, p.edit(t.Context(), useClass("v2")))
	require.NoError(t, p.Await(t.Context(), func() string {
		nodes, err := p.Nodes.List(t.Context(), store.Query{})
		draining := slices.DeleteFunc(nodes, func(n *machine.Node) bool { return n.Drain == nil })
		if err != nil || len(draining) < 2 {
			return "drains at a time"
		}
		return ""
	}))
	require.NoError(t, p.settled(t.Context(), replicas, "v2"))
	require.NoError(t, p.tasksServe(t.Context()))
	_, err := p.Counts(t.Context(), p.taskCount, tasks-maxUnavailable)
	require.NoError(t, err)
}

// TestDrainOutlivesItsManager: the manager ends when tasks were told to end and still run. The next
// one goes on, by the same record.
// Invariants: P26
func TestDrainOutlivesItsManager(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel()
	p := startTasks(t, surge, func(*play) {})
	require.NoError(t, p.edit(t.Context(), useClass("v2")))
	var key object.Key
	record := func() *machine.DrainRecord {
		n, err := p.Nodes.Get(t.Context(), key)
		if err != nil {
			return nil
		}
		return n.Drain
	}
	require.NoError(t, p.Await(t.Context(), func() string {
		nodes, err := p.Nodes.List(t.Context(), store.Query{})
		require.NoError(t, err)
		i := slices.IndexFunc(nodes, func(n *machine.Node) bool { return n.Drain != nil })
		running, err := p.tasks.Running()
		require.NoError(t, err)
		if i < 0 || !slices.ContainsFunc(running, func(e roster.Entry) bool { return e.State == roster.Leaving }) {
			return "a task that was told to end"
		}
		key = nodes[i].Key
		return ""
	}))
	p.stopManager()
	begun := record()
	require.NotNil(t, begun, "the node is there still")
	require.NoError(t, p.tasksServe(t.Context()))
	require.Equal(t, begun, record(), "no manager ends the drain")
	require.NoError(t, p.startManager())
	require.Eventually(t, func() bool {
		r := record()
		if r != nil {
			require.Equal(t, begun.Since, r.Since, "the drain has begun once")
		}
		return r == nil
	}, stage.Patience, time.Millisecond)
	require.NoError(t, p.kept(t.Context(), replicas, "v2"))
}
