package ledger_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

func TestCounterKeepsExtremes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next []ledger.Tally
		var late time.Duration
		var broken error
		c := ledger.NewCounter(10*time.Millisecond, func(context.Context) (ledger.Tally, error) {
			<-time.After(late) // virtual time
			now := next[0]
			if len(next) > 1 {
				next = next[1:]
			}
			return now, broken
		})
		run := func(counts ...ledger.Tally) {
			next = counts
			ctx, end := context.WithTimeout(t.Context(), time.Second)
			defer end()
			c.Run(ctx)
		}
		require.NotEmpty(t, c.Missing())
		_, err := c.Counts()
		require.ErrorContains(t, err, "never counted")

		run(ledger.Tally{3, 2, 1}, ledger.Tally{1, 1, 2}, ledger.Tally{2, 3, 2})
		require.Empty(t, c.Missing())
		counts, err := c.Counts()
		require.NoError(t, err)
		require.Equal(t, ledger.Tally{1, 1, 1}, counts.Least)
		require.Equal(t, ledger.Tally{3, 3, 2}, counts.Most)
		require.Greater(t, counts.Number, 3)

		c.Begin()
		require.NotEmpty(t, c.Missing(), "the counts so far are forgotten")
		late = 10 * time.Millisecond
		run(ledger.Tally{9, 9, 9})
		require.NotEmpty(t, c.Missing(), "it took too long")

		broken = errors.New("no ledger")
		run(ledger.Tally{})
		require.Empty(t, c.Missing(), "there will be no count")
		_, err = c.Counts()
		require.ErrorIs(t, err, broken)
	})
}
