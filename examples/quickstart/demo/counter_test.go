package demo

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

func TestCounterMinMaxDuplicates(t *testing.T) {
	c := NewCounter(roster.Open(t.TempDir()), func(e roster.Entry) bool { return e.State != roster.Leaving })
	entry := func(name, instance string, state roster.State) roster.Entry {
		return roster.Entry{Name: name, Instance: instance, State: state}
	}
	a, b, leaving := entry("a", "1", roster.Serving), entry("b", "2", ""), entry("c", "3", roster.Leaving)
	c.take([]roster.Entry{a, b}, true)
	c.take([]roster.Entry{a, entry("b", "2", roster.Serving), leaving}, true)
	c.take(nil, false) // invalid, so it is ignored
	require.Equal(t, Counts{Number: 2, MinServing: 1, MaxActive: 2}, c.counts)
	require.Zero(t, c.Duplicates())
	d := &Demo{out: io.Discard}
	_, err := d.CheckCounts(t.Context(), c, 1)
	require.NoError(t, err)
	_, err = d.CheckCounts(t.Context(), c, 2)
	require.ErrorContains(t, err, "only 1 processes were serving")

	c.Begin()
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = d.CheckCounts(soon, c, 0)
	require.ErrorContains(t, err, "a count that was quick enough")
	for range 2 {
		c.take([]roster.Entry{a, entry("a", "4", "")}, false)
	}
	require.Equal(t, 1, c.Duplicates(), "an invalid count finds duplicates, too")
}
