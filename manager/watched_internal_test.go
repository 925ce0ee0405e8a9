package manager

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
)

// TestEachRunWatchesAnew: between two runs no process has watched.
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

// TestStoppedProcessWatchesAnew: a process that did not beat for longer than a grace was stopped. It watches from then
// on, whether a machine or the next beat comes first. One that has nothing to do beats, and one without beats is never
// taken for stopped.
func TestStoppedProcessWatchesAnew(t *testing.T) {
	start, grace := time.Unix(1_800_000_000, 0), time.Minute
	for _, beatsFirst := range []bool{true, false} {
		var w watched
		now := start
		for range 240 { // an hour without any machine to look at
			w.beat(now, grace)
			now = now.Add(grace / beatsOfGrace)
		}
		require.Equal(t, now, w.since(now), "the first decision")
		first := now
		for range 240 {
			w.beat(now, grace)
			now = now.Add(grace / beatsOfGrace)
		}
		w.beat(now, grace)
		now = now.Add(grace)
		require.Equal(t, first, w.since(now), "as long as a grace is watched")
		w.beat(now, grace)

		now = now.Add(grace + time.Second)
		if beatsFirst {
			w.beat(now, grace)
		}
		require.Equal(t, now, w.since(now))
		require.Equal(t, now, w.since(now.Add(time.Second)), "and only then")
		w.beat(now, grace)
		require.Equal(t, now, w.since(now.Add(-time.Hour)), "the clock was set back")
	}

	var none watched
	require.Equal(t, start, none.since(start))
	require.Equal(t, start, none.since(start.Add(24*time.Hour)))
}
