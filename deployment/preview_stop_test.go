package deployment_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
)

// requireStopped requires a timeline that ends where the error says, and is sound up to there.
func requireStopped(t *testing.T, line *deployment.Timeline, err, cause error) *deployment.StoppedError {
	t.Helper()
	var stopped *deployment.StoppedError
	require.ErrorAs(t, err, &stopped)
	require.ErrorIs(t, err, cause)
	require.Equal(t, line.Key, stopped.Key)
	require.Equal(t, line.Duration, stopped.After)
	require.Equal(t, deployment.EndStopped, line.Ending.Reason)
	require.False(t, line.Complete)
	requireConsistent(t, line)
	return stopped
}

// A preview takes no more decisions than its budget, and says how far it got.
func TestPreviewSpendsItsBudget(t *testing.T) {
	d, sets := rolling(1000)
	model := deployment.Model{Create: 90 * time.Second, Delete: 30 * time.Second, Budget: 1000}
	line, err := deployment.Preview(t.Context(), d, sets, model)
	stopped := requireStopped(t, &line, err, deployment.ErrBudgetSpent)
	require.Greater(t, stopped.Decisions, model.Budget)
	require.Less(t, stopped.Decisions, model.Budget+20, "one decision more, which looks at 1,001 machines")
	require.Positive(t, stopped.After)
	require.Less(t, stopped.After, time.Hour)

	model.Budget *= 2
	further, err := deployment.Preview(t.Context(), d, sets, model)
	require.Greater(t, requireStopped(t, &further, err, deployment.ErrBudgetSpent).After, stopped.After)
	require.Equal(t, line.Steps, further.Steps[:len(line.Steps)], "the same preview, further on")
}

// The default budget is enough for 1,000 machines that are replaced one at a time, twice over.
func TestDefaultPreviewBudgetFitsAThousand(t *testing.T) {
	d, sets := rolling(1000)
	line, err := deployment.Preview(t.Context(), d, sets, deployment.Model{
		Create: 90 * time.Second, Delete: 30 * time.Second, Budget: deployment.DefaultPreviewBudget / 2,
	})
	require.NoError(t, err)
	require.True(t, line.Complete)
}

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

// A preview checks its context before each decision that it carries out.
func TestPreviewEndsWithItsContext(t *testing.T) {
	d, sets := rolling(100)
	for asked := range 50 {
		line, err := deployment.Preview(&patience{t.Context(), asked}, d, sets, deployment.Model{Create: time.Minute})
		stopped := requireStopped(t, &line, err, context.Canceled)
		require.LessOrEqual(t, stopped.Decisions, 3*int64(asked+2), "each looks at 100 to 200 machines")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	line, err := deployment.Preview(ended, d, sets, deployment.Model{})
	requireStopped(t, &line, err, context.Canceled)
	require.Empty(t, line.Steps)
	require.EqualError(t, err, "preview of fleet/web stopped 0s into the rollout, after 4 decisions: context canceled")
}
