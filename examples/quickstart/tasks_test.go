package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/examples/quickstart/task"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var twoMore = deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: surge}}

// careless says that every node is empty.
type careless struct{}

func (careless) Drain(context.Context, *machine.Machine, *machine.DrainNode) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{Done: true}, nil
}

func (careless) Detach(context.Context, *machine.Machine, *machine.DetachVolumes) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{Done: true}, nil
}

// TestUndrainedMachinesBreakTheBudget: the census sees what a drain prevents. The machines' own
// bounds are kept, but that does not help.
func TestUndrainedMachinesBreakTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel()
	p := startFleet(t, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: replicas}}) // many are removed at a time
	require.NoError(t, p.startTasks(t.Context()))
	p.StopManager()
	p.drainer = func() (manager.Drainer, error) { return careless{}, nil }
	require.NoError(t, p.startManager())
	p.beginCounts()
	require.NoError(t, p.edit(t.Context(), useClass("v2")))
	require.NoError(t, p.settled(t.Context(), replicas, "v2"))
	require.NoError(t, p.tasksServe(t.Context()))
	require.NoError(t, p.checkCensus(replicas, 2*replicas))
	require.ErrorContains(t, p.checkTasks(), "of 12 tasks were serving at a time, the budget wants 9")
	lives, err := p.tasks.book.Lives()
	require.NoError(t, err)
	for _, life := range lives {
		require.True(t, life.ID.Alive() || life.Leaving && life.Ended, "an agent that ends tells its tasks to, and waits for them: %+v", life)
	}
}

// TestBudgetHoldsDrainsBack: all old machines are deleted at a time, and all are drained at the
// same time. Evictions beyond the budget are refused.
func TestBudgetHoldsDrainsBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	p := startFleet(t, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: replicas}})
	require.NoError(t, p.startTasks(t.Context()))
	p.StopManager()
	p.drainer = func() (manager.Drainer, error) {
		return drains.New(drains.Options{
			Nodes: p.Nodes, Policy: drainPolicy(), Workload: drains.Workload{Pods: p.workload, Budgets: p.workload, Volumes: p.workload},
		})
	}
	require.NoError(t, p.startManager())
	p.beginCounts()
	require.NoError(t, p.edit(t.Context(), useClass("v2")))
	require.NoError(t, p.Await(t.Context(), func() string {
		nodes, err := p.Nodes.List(t.Context(), store.Query{})
		draining := slices.DeleteFunc(nodes, func(n *machine.Node) bool { return n.Drain == nil })
		if err != nil || len(draining) < 2 {
			return "drains at a time"
		}
		return ""
	}))
	require.NoError(t, p.Await(t.Context(), func() string {
		if p.running("v1") > 0 {
			return "the deletion of all old machines"
		}
		return ""
	}))
	require.NoError(t, p.tasksServe(t.Context()))
	require.NoError(t, p.checkTasks())
}

// TestTaskThatSurvivesIsAnOrphan: with any parent.
func TestTaskThatSurvivesIsAnOrphan(t *testing.T) {
	p, err := newPlay(io.Discard, "")
	require.NoError(t, err)
	require.NoError(t, p.begin())
	desk := task.At(t.TempDir())
	runner, err := task.NewRunner(desk, nil)
	require.NoError(t, err)
	require.NoError(t, desk.Give(task.Letter{Order: task.Order{Name: "stray", UID: "stray", Ledger: p.taskLedger()}}))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { runner.Run(ctx) })
	require.Eventually(t, func() bool {
		alive, err := p.tasks.book.Alive()
		return err == nil && len(alive) == 1
	}, stage.Patience, time.Millisecond)
	cancel()
	running.Wait()
	require.ErrorContains(t, p.close(t.Context(), nil), "1 orphans")
	runner.Stop(0)
}

// TestHostWaitsForTasks: only the host sees when tasks of killed agents end. One is held up until
// some time after its agent is gone.
func TestHostWaitsForTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	p, err := newPlay(io.Discard, "")
	require.NoError(t, err)
	failed := errors.New("its machines were killed")
	t.Cleanup(func() { require.ErrorIs(t, p.close(context.Background(), failed), failed) })
	require.NoError(t, p.begin())
	require.NoError(t, p.deploy(t.Context(), p.token, twoMore))
	require.NoError(t, p.settled(t.Context(), replicas, "v1"))
	require.NoError(t, p.startTasks(t.Context()))
	p.StopManager()
	held, ok := p.data()
	require.True(t, ok)
	require.NoError(t, held.ID.Signal(syscall.SIGSTOP))
	time.AfterFunc(500*time.Millisecond, func() { _ = held.ID.Signal(syscall.SIGCONT) })
	require.Len(t, p.host.Close(), replicas)
	require.False(t, held.ID.Alive())
}

// witness records whether a drain has seen a finished task with a volume.
type witness struct {
	drains.Pods
	saw atomic.Bool
}

func (w *witness) On(ctx context.Context, node string) ([]*drain.Pod, bool, error) {
	pods, complete, err := w.Pods.On(ctx, node)
	if slices.ContainsFunc(pods, func(p *drain.Pod) bool { return p.Finished && len(p.Claims) > 0 }) {
		w.saw.Store(true)
	}
	return pods, complete, err
}

// TestFinishedTasksHoldNoDrain: the task with the volume exists as a finished one while its machine
// is drained. The drain continues and ends.
func TestFinishedTasksHoldNoDrain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	p := startFleetWith(t, twoMore, func(p *play) { p.report = stage.Patience }) // until its node is gone
	t.Cleanup(func() { p.report = taskReport })
	require.NoError(t, p.startTasks(t.Context()))
	from := p.workload.Where(dataTask)
	before, ok := p.data()
	require.True(t, ok)
	p.StopManager()
	seen := &witness{Pods: p.workload}
	p.drainer = func() (manager.Drainer, error) {
		return drains.New(drains.Options{
			Nodes: p.Nodes, Policy: drainPolicy(), Workload: drains.Workload{Pods: seen, Budgets: p.workload, Volumes: p.workload},
		})
	}
	require.NoError(t, p.startManager())
	require.NoError(t, p.edit(t.Context(), useClass("v2")))
	require.NoError(t, p.settled(t.Context(), replicas, "v2"))
	require.NoError(t, p.tasksServe(t.Context()))
	require.NoError(t, p.checkMoved(before, from))
	require.True(t, seen.saw.Load())
	p.requireOneAtATime(t)
}

func TestWhoServes(t *testing.T) {
	serving := func(name string) ledger.Life { return ledger.Life{Machine: name, Serving: true} }
	leaving := serving("front-3")
	leaving.Leaving = true
	require.Equal(t, taskTally{front: 2, data: 1}, taskTallyOf([]ledger.Life{
		serving("front-1"), serving("front-2"), leaving, {Machine: "front-4"}, serving("frontier"), serving("db-0"),
	}))
}

// TestDrainOutlivesItsManager: the manager ends when the volume's task was told to end and still
// runs. The next one goes on, by the same record.
func TestDrainOutlivesItsManager(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel()
	p := startFleet(t, twoMore)
	require.NoError(t, p.startTasks(t.Context()))
	key := object.Key{Name: p.workload.Where(dataTask)}
	before, ok := p.data()
	require.True(t, ok)
	p.beginCounts()
	require.NoError(t, p.edit(t.Context(), useClass("v2")))
	record := func() *machine.DrainRecord {
		n, err := p.Nodes.Get(t.Context(), key)
		if err != nil {
			return nil
		}
		return n.Drain
	}
	require.Eventually(t, func() bool { r := record(); return r != nil && r.Turn.Pod.Name == dataTask },
		stage.Patience, time.Millisecond)
	p.StopManager()
	begun := record()
	require.NotNil(t, begun, "the node is there still")
	if !before.ID.Alive() {
		t.Log("the task has ended already: this machine is busy")
	}
	require.NoError(t, p.Await(t.Context(), func() string {
		if now, ok := p.data(); !ok || now.Instance == before.Instance {
			return "another process that has the volume"
		}
		return ""
	}))
	require.Equal(t, begun, record(), "nobody ends the drain")
	require.NoError(t, p.startManager())
	require.Eventually(t, func() bool {
		r := record()
		if r != nil {
			require.Equal(t, begun.Since, r.Since, "the drain has begun once")
		}
		return r == nil
	}, stage.Patience, time.Millisecond)
	require.NoError(t, p.settled(t.Context(), replicas, "v2"))
	require.NoError(t, p.checkRollout(t.Context()))
	require.NoError(t, p.checkMoved(before, key.Name))
	p.requireOneAtATime(t)
}

// requireOneAtATime reads in the tasks' ledger that no process has taken the
// volume before the end of the one that had it was seen.
func (p *play) requireOneAtATime(t *testing.T) {
	t.Helper()
	entries, _, err := ledger.Read(p.taskLedger(), 0)
	require.NoError(t, err)
	entries = slices.DeleteFunc(entries, func(e ledger.Entry) bool {
		return e.Machine != dataTask || e.Event != ledger.Seated && e.Event != ledger.Ended
	})
	require.GreaterOrEqual(t, len(entries), 3, "the volume was handed over")
	for i, e := range entries {
		if i%2 == 0 {
			require.Equal(t, ledger.Seated, e.Event)
			continue
		}
		require.Equal(t, ledger.Ended, e.Event)
		require.Equal(t, entries[i-1].Instance, e.Instance)
	}
}
