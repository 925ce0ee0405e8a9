package manager

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// clock is a time that only a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) forward(d time.Duration) { c.at.Add(int64(d)) }

// Changes of machines settle for longer while many machines wait for a worker.
func TestSettleGrowsWithTheBacklog(t *testing.T) {
	c := &clock{}
	q := engine.NewQueue(c.now)
	r := &runner{queues: map[Kind]*engine.Queue{KindMachine: q}}
	added := 0
	for _, step := range []struct {
		due  int
		want time.Duration
	}{
		{0, 10}, {99, 10}, {100, 20}, {250, 30}, {4_899, 490}, {4_900, 500}, {20_000, 500},
	} {
		for ; added < step.due; added++ {
			key := object.Key{Name: fmt.Sprint(added)}
			q.Add(key)
			q.Add(key) // it waits once
		}
		require.Equal(t, step.due, q.Depth())
		got := r.settle(&Wake{From: KindMachine, To: KindSet, Settle: 10 * time.Millisecond})
		require.Equal(t, step.want*time.Millisecond, got, "%d due", step.due)
	}
	require.Equal(t, 10*time.Millisecond, r.settle(&Wake{From: KindSet, To: KindDeployment, Settle: 10 * time.Millisecond}))
	require.Equal(t, time.Second, r.settle(&Wake{From: KindMachine, To: KindSet, Settle: time.Second}), "it is never shorter")
	for range added {
		key, ok := q.Next()
		require.True(t, ok)
		q.Done(key, time.Time{})
	}
	require.Zero(t, q.Depth())
	require.Equal(t, 10*time.Millisecond, r.settle(&Wake{From: KindMachine, To: KindSet, Settle: 10 * time.Millisecond}))
}

// A change wakes whom it concerns: at once, or when it has settled.
func TestWakesSettle(t *testing.T) {
	c := &clock{}
	q := engine.NewQueue(c.now)
	r := &runner{Manager: &Manager{options: Options{Runtime: Runtime{Now: c.now}}}, queues: map[Kind]*engine.Queue{KindMachine: engine.NewQueue(c.now), KindSet: q}}
	keys := func(_ context.Context, old, _ any) []object.Key { return []object.Key{{Name: old.(string)}} }
	r.wakeBy(t.Context(), &Wake{From: KindMachine, To: KindSet, Keys: keys, Settle: time.Millisecond}, "later", nil)
	require.Zero(t, q.Depth())
	r.wakeBy(t.Context(), &Wake{From: KindMachine, To: KindSet, Keys: keys}, "now", nil)
	require.Equal(t, 1, q.Depth())
	defer time.AfterFunc(10*time.Second, q.Close).Stop()
	for _, name := range []string{"now", "later"} {
		key, ok := q.Next()
		require.True(t, ok, name)
		require.Equal(t, name, key.Name)
		c.forward(time.Millisecond)
	}
}
