package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// startTasks starts a fleet with tasks. surge is how many machines a rollout may add.
func startTasks(t *testing.T, surge int32, prepare func(*quickstart)) *quickstart {
	t.Helper()
	q := startFleetWith(t, surge, prepare)
	q.workload.Scale(tasks)
	require.NoError(t, q.tasksServe(t.Context()))
	return q
}

// TestUndrainedMachinesBreakTheBudget shows that the count of tasks finds a broken budget. Nothing is
// drained, because the drainer sees no pods, and no task is started in place of those that end with
// their machines.
func TestUndrainedMachinesBreakTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel()
	q := startTasks(t, replicas, func(q *quickstart) { q.drains.Workload = drains.Workload{Pods: noPods{q.workload}} })
	q.stopWorkload()
	require.NoError(t, q.edit(t.Context(), useClass("v2")))
	require.NoError(t, q.settled(t.Context(), replicas, "v2"))
	_, err := q.CheckCounts(t.Context(), q.machineCount, replicas)
	require.NoError(t, err, "enough machines serve")
	require.NoError(t, q.Await(t.Context(), func() string {
		if _, err = q.CheckCounts(t.Context(), q.taskCount, tasks-maxUnavailable); err == nil {
			return "a count below the budget"
		}
		return ""
	}))
	require.ErrorContains(t, err, "processes were serving at a time, 8 should be")
	q.stopWorkload = q.Go("the workload", q.workload.Run)
	require.NoError(t, q.tasksServe(t.Context()))
}

// noPods reports that no node has a pod.
type noPods struct{ drains.Pods }

// On implements drains.Pods.
func (noPods) On(context.Context, string) (none []*drain.Pod, complete bool, err error) {
	return nil, true, nil
}

// TestBudgetLimitsParallelDrains: all old machines are deleted and drained at the same time. Evictions
// beyond the budget are refused.
func TestBudgetLimitsParallelDrains(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	q := startTasks(t, replicas, func(q *quickstart) { q.drains.Limit = drains.Limit{} })
	require.NoError(t, q.edit(t.Context(), useClass("v2")))
	require.NoError(t, q.Await(t.Context(), func() string {
		nodes, err := q.Nodes.List(t.Context(), store.Query{})
		draining := slices.DeleteFunc(nodes, func(n *machine.Node) bool { return n.Drain == nil })
		if err != nil || len(draining) < 2 {
			return "two drains at the same time"
		}
		return ""
	}))
	require.NoError(t, q.settled(t.Context(), replicas, "v2"))
	require.NoError(t, q.tasksServe(t.Context()))
	_, err := q.CheckCounts(t.Context(), q.taskCount, tasks-maxUnavailable)
	require.NoError(t, err)
}

// TestDrainOutlivesItsManager: the manager stops while tasks that were told to end still run. The next
// manager continues the drain, by its record on the node.
// Invariants: P26
func TestDrainOutlivesItsManager(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel()
	q := startTasks(t, surge, func(*quickstart) {})
	require.NoError(t, q.edit(t.Context(), useClass("v2")))
	var key object.Key
	record := func() *machine.DrainRecord {
		n, err := q.Nodes.Get(t.Context(), key)
		if err != nil {
			return nil
		}
		return n.Drain
	}
	require.NoError(t, q.Await(t.Context(), func() string {
		nodes, err := q.Nodes.List(t.Context(), store.Query{})
		require.NoError(t, err)
		i := slices.IndexFunc(nodes, func(n *machine.Node) bool { return n.Drain != nil })
		running, err := q.tasks.Running()
		require.NoError(t, err)
		if i < 0 || !slices.ContainsFunc(running, func(e roster.Entry) bool { return e.State == roster.Leaving }) {
			return "a task that was told to end"
		}
		key = nodes[i].Key
		return ""
	}))
	q.stopManager()
	begun := record()
	require.NotNil(t, begun, "the drain must not be over yet")
	require.NoError(t, q.tasksServe(t.Context()))
	require.Equal(t, begun, record(), "without a manager the drain does not end")
	require.NoError(t, q.startManager())
	require.Eventually(t, func() bool {
		r := record()
		if r != nil {
			require.Equal(t, begun.Since, r.Since, "the drain must not begin again")
		}
		return r == nil
	}, demo.Patience, time.Millisecond)
	require.NoError(t, q.settledWithinBounds(t.Context(), replicas, "v2"))
}
