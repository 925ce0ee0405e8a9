package manager

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
)

// Changes of machines settle for longer while many machines wait for a worker.
func TestSettleGrowsWithTheBacklog(t *testing.T) {
	c := &clock{}
	q := newQueue(c.now)
	r := &runner{queues: map[Kind]*queue{KindMachine: q}}
	added := 0
	for _, step := range []struct {
		due  int
		want time.Duration
	}{
		{0, 10}, {99, 10}, {100, 20}, {250, 30}, {4_899, 490}, {4_900, 500}, {20_000, 500},
	} {
		for ; added < step.due; added++ {
			key := object.Key{Name: fmt.Sprint(added)}
			q.add(key)
			q.add(key) // it waits once
		}
		require.Equal(t, step.due, q.depth())
		got := r.settle(&Wake{From: KindMachine, To: KindSet, Settle: 10 * time.Millisecond})
		require.Equal(t, step.want*time.Millisecond, got, "%d due", step.due)
	}
	require.Equal(t, 10*time.Millisecond, r.settle(&Wake{From: KindSet, To: KindDeployment, Settle: 10 * time.Millisecond}))
	require.Equal(t, time.Second, r.settle(&Wake{From: KindMachine, To: KindSet, Settle: time.Second}), "it is never shorter")
	for range added {
		key, ok := q.next()
		require.True(t, ok)
		q.done(key, time.Time{})
	}
	require.Zero(t, q.depth())
	require.Equal(t, 10*time.Millisecond, r.settle(&Wake{From: KindMachine, To: KindSet, Settle: 10 * time.Millisecond}))
}

// A change wakes whom it concerns: at once, or when it has settled.
func TestWakesSettle(t *testing.T) {
	c := &clock{}
	q := newQueue(c.now)
	r := &runner{Manager: &Manager{options: Options{Now: c.now}}, queues: map[Kind]*queue{KindMachine: newQueue(c.now), KindSet: q}}
	keys := func(_ context.Context, old, _ any) []object.Key { return []object.Key{{Name: old.(string)}} }
	r.wakeBy(t.Context(), &Wake{From: KindMachine, To: KindSet, Keys: keys, Settle: time.Second}, "later", nil)
	require.Len(t, q.items, 1)
	require.Equal(t, c.now().Add(time.Second), q.items[object.Key{Name: "later"}].due)
	require.Zero(t, q.depth())
	r.wakeBy(t.Context(), &Wake{From: KindMachine, To: KindSet, Keys: keys}, "now", nil)
	require.Equal(t, 1, q.depth())
}
