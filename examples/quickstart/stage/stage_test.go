package stage

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

func TestCounterKeepsExtremes(t *testing.T) {
	c := NewCounter(roster.Open(t.TempDir()), func(e roster.Entry) bool { return e.State != roster.Leaving })
	entry := func(name, instance string, state roster.State) roster.Entry {
		return roster.Entry{Name: name, Instance: instance, State: state}
	}
	a, b, going := entry("a", "1", roster.Serving), entry("b", "2", ""), entry("c", "3", roster.Leaving)
	c.take([]roster.Entry{a, b}, true)
	c.take([]roster.Entry{a, entry("b", "2", roster.Serving), going}, true)
	c.take(nil, false) // it took too long
	require.Equal(t, Counts{Number: 2, LeastServing: 1, MostStaying: 2}, c.counts)
	require.Zero(t, c.Duplicates())
	s := &Stage{out: io.Discard}
	_, err := s.Counts(t.Context(), c, 1)
	require.NoError(t, err)
	_, err = s.Counts(t.Context(), c, 2)
	require.ErrorContains(t, err, "only 1 processes were serving")

	c.Begin()
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = s.Counts(soon, c, 0)
	require.ErrorContains(t, err, "a count that was quick enough")
	for range 2 {
		c.take([]roster.Entry{a, entry("a", "4", "")}, false)
	}
	require.Equal(t, 1, c.Duplicates(), "even if it took long")
}
