package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
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

// TestUndrainedMachinesBreakTheBudget: the census sees what a drain prevents.
// That machines' own bounds are kept helps nobody.
func TestUndrainedMachinesBreakTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel()
	p := startFleet(t, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: replicas}}) // many go at a time
	require.NoError(t, p.startTasks(t.Context()))
	p.stopManager()
	p.drainer = func() (manager.Drainer, error) { return careless{}, nil }
	require.NoError(t, p.startManager())
	p.beginCounts()
	require.NoError(t, p.edit(t.Context(), useClass("v2")))
	require.NoError(t, p.settled(t.Context(), replicas, "v2"))
	require.NoError(t, p.tasksServe(t.Context()))
	require.NoError(t, p.checkCensus(replicas, 2*replicas))
	require.ErrorContains(t, p.checkTasks(), "of 12 tasks were serving at a time, the budget wants 9")
}

// TestDrainOutlivesItsManager: the manager goes when the volume's task was told
// to end and still runs. The next one goes on, by the same record.
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
		n, err := p.nodes.Get(t.Context(), key)
		if err != nil {
			return nil
		}
		return n.Drain
	}
	require.Eventually(t, func() bool { r := record(); return r != nil && r.Turn.Pod.Name == dataTask },
		patience, time.Millisecond)
	p.stopManager()
	begun := record()
	require.NotNil(t, begun, "the node is there still")
	require.True(t, before.ID.Alive(), "and so is the task")
	require.NoError(t, p.await(t.Context(), func() string {
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
	}, patience, time.Millisecond)
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
