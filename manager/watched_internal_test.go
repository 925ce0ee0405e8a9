package manager

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
)

// TestEachRunWatchesAnew: between two runs nobody has watched.
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
	require.ErrorIs(t, m.Run(ctx), context.Canceled)
	require.Equal(t, start.Add(time.Hour), m.watched.since(start.Add(time.Hour)))
}
