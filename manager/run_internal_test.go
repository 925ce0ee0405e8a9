package manager

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
)

// TestHints: of hints for machines that disappeared the first counts until its class was listed, and of those for
// a machine with several VMs the last. A class that is gone needs no listing.
func TestHints(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1_800_000_000+int64(s), 0) }
	small, large := object.Key{Name: "small"}, object.Key{Name: "large"}
	classes := map[object.Key]orphan.Class{small: {Key: small, Asked: at(0)}}
	var h hints
	for s := range 3 {
		h.add(orphan.Hint{Class: small, At: at(s)})
		h.add(orphan.Hint{Class: small, At: at(s), Several: "web-1"})
		h.add(orphan.Hint{Class: small, At: at(s), Several: "web-2"})
		h.add(orphan.Hint{Class: large, At: at(s)})
	}
	require.Equal(t, []orphan.Hint{
		{Class: small, At: at(0)}, {Class: small, At: at(2), Several: "web-1"}, {Class: small, At: at(2), Several: "web-2"},
	}, h.open(classes), "asked for at that moment is not asked for since")
	classes[small] = orphan.Class{Key: small, Asked: at(1)}
	require.Len(t, h.open(classes), 2)
	classes[small] = orphan.Class{Key: small, Asked: at(3)}
	classes[large] = orphan.Class{Key: large}
	require.Empty(t, h.open(classes), "a hint is dropped for good")
	h.add(orphan.Hint{Class: small, At: at(4)})
	require.Len(t, h.open(classes), 1)
}

// TestMissingMachinesAreWoken: a machine is woken once for each listing in which it is missing a second time,
// unless another machine of its name has replaced it.
func TestMissingMachinesAreWoken(t *testing.T) {
	var s missing
	woken := 0
	s.wakes(func(object.Key) { woken++ })
	first := time.Unix(1_800_000_000, 0)
	u := orphan.Unlisted{Machine: object.Key{Name: "a"}, UID: "1", ProviderID: "p://1", Since: first}
	m := &machine.Machine{Meta: object.Meta{Key: u.Machine, UID: "1"}, Spec: machine.Spec{ProviderID: "p://1"}}
	s.note([]orphan.Unlisted{u}, nil)
	require.Zero(t, woken, "a machine that was missed once is not woken")
	require.Nil(t, s.of(m))
	for n := range 3 {
		u.Missing = first.Add(time.Duration(n+1) * time.Minute)
		s.note([]orphan.Unlisted{u}, nil)
		s.note([]orphan.Unlisted{u}, nil)
		require.Equal(t, n+1, woken)
		require.Equal(t, &machine.MissingVM{Since: first}, s.of(m))
		s.asked(m.Key, codes.NotFound)
		require.Equal(t, &machine.MissingVM{Since: first, NotFound: true}, s.of(m))
		s.asked(m.Key, codes.OK)
		require.Nil(t, s.of(m), "the machine does not count as missing until the next listing")
	}
	u.Missing = u.Missing.Add(time.Minute)
	s.note([]orphan.Unlisted{u}, nil)
	other := m.Clone()
	other.UID = "2"
	require.Nil(t, s.of(other))
	s.note(nil, nil)
	require.Nil(t, s.of(m))
	s.asked(m.Key, codes.NotFound)
	require.Nil(t, s.of(m))
}

// TestEachRunWatchesAnew: between two runs of Run, nothing counts as watched.
// Invariants: P25
func TestEachRunWatchesAnew(t *testing.T) {
	o := InMemory(time.Now)
	o.Driver = drivertest.NewMemory(drivertest.MemoryOptions{})
	m, err := New(o)
	require.NoError(t, err)
	start := time.Unix(1_800_000_000, 0)
	require.Equal(t, start, m.watched.since(start))
	require.Equal(t, start, m.watched.since(start.Add(time.Hour)))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, m.Run(ctx))
	require.Equal(t, start.Add(time.Hour), m.watched.since(start.Add(time.Hour)))
}

// TestStoppedProcessWatchesAnew: a process that did not beat for longer than a grace was stopped. It watches from
// then on, whether a machine or the next beat comes first. A process without work beats, and one without beats
// never counts as stopped.
// Invariants: P21
func TestStoppedProcessWatchesAnew(t *testing.T) {
	start, grace := time.Unix(1_800_000_000, 0), time.Minute
	for _, beatsFirst := range []bool{true, false} {
		var w watched
		now := start
		for range 240 { // an hour without any machine to look at
			w.beat(now, grace)
			now = now.Add(grace / beatsOfGrace)
		}
		require.Equal(t, now, w.since(now), "watching begins with the first decision")
		first := now
		for range 240 {
			w.beat(now, grace)
			now = now.Add(grace / beatsOfGrace)
		}
		w.beat(now, grace)
		now = now.Add(grace)
		require.Equal(t, first, w.since(now), "a time as long as the grace still counts as watched")
		w.beat(now, grace)

		now = now.Add(grace + time.Second)
		if beatsFirst {
			w.beat(now, grace)
		}
		require.Equal(t, now, w.since(now))
		require.Equal(t, now, w.since(now.Add(time.Second)), "a longer time counts as a stop")
		w.beat(now, grace)
		require.Equal(t, now, w.since(now.Add(-time.Hour)), "the clock was set back")
	}

	var none watched
	require.Equal(t, start, none.since(start))
	require.Equal(t, start, none.since(start.Add(24*time.Hour)))
}

// clock is a time that only the test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) forward(d time.Duration) { c.at.Add(int64(d)) }

// TestSettleGrowsWithTheBacklog: changes of machines settle for longer while many machines wait for a worker.
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
			q.Add(key) // an object waits only once
		}
		require.Equal(t, step.due, q.Depth())
		got := r.settle(&Wake{From: KindMachine, To: KindSet, Settle: 10 * time.Millisecond})
		require.Equal(t, step.want*time.Millisecond, got, "%d due", step.due)
	}
	require.Equal(t, 10*time.Millisecond, r.settle(&Wake{From: KindSet, To: KindDeployment, Settle: 10 * time.Millisecond}))
	require.Equal(t, time.Second, r.settle(&Wake{From: KindMachine, To: KindSet, Settle: time.Second}), "the backlog never makes it shorter")
	for range added {
		key, ok := q.Next()
		require.True(t, ok)
		q.Done(key, time.Time{})
	}
	require.Zero(t, q.Depth())
	require.Equal(t, 10*time.Millisecond, r.settle(&Wake{From: KindMachine, To: KindSet, Settle: 10 * time.Millisecond}))
}

// TestWakesSettle: a change wakes the objects it concerns, at once or when it has settled.
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
