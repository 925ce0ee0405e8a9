package preview_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/preview"
)

// patience is a context that ends when it was asked a number of times.
type patience struct {
	context.Context //nolint:containedctx // it is one
	left            int
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// A preview whose context ends returns what it has seen so far.
// Invariants: P11
func TestPreviewEndsWithItsContext(t *testing.T) {
	d, sets := rolling(20)
	whole := predict(t, d, sets, usual())
	last := time.Duration(0)
	for _, asked := range []int{0, 50, 200, 500} {
		line, err := sim.Preview(&patience{t.Context(), asked}, d, sets, usual())
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, preview.EndStopped, line.Ending.Reason)
		require.False(t, line.Complete)
		requireConsistent(t, &line)
		require.Equal(t, whole.Steps[:len(line.Steps):len(line.Steps)], append([]preview.Step{}, line.Steps...), "the same preview, up to there")
		require.GreaterOrEqual(t, line.Duration, last)
		last = line.Duration
	}
	require.Positive(t, last)
	require.Less(t, last, whole.Duration)
}
