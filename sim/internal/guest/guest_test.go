package guest_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim/internal/guest"
)

// TestGuestAsks: the functions that several goroutines of a guest pass to Do run one after another.
func TestGuestAsks(t *testing.T) {
	g, n := guest.New(), 0
	broken := errors.New("broken")
	end := g.Run(func() error {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { g.Do(func() { n++ }) })
		}
		all.Wait()
		return broken
	})
	require.Equal(t, guest.End{Err: broken, Returned: true}, end)
	require.Equal(t, 50, n)
	require.False(t, g.Do(func() { n++ }), "the guest has returned")
	require.Equal(t, 50, n)
}

func fails() { panic("of no use") }

// TestGuestPanics: Run returns the panic of a guest and its stack. It also returns if the guest calls
// runtime.Goexit.
func TestGuestPanics(t *testing.T) {
	var ends []guest.End
	for range 2 {
		ends = append(ends, guest.New().Run(func() error { fails(); return nil }))
	}
	end := ends[0]
	require.Equal(t, "of no use", end.Panic)
	require.Contains(t, end.Stack, "guest_test.fails")
	require.NotContains(t, end.Stack, "0x")
	require.Equal(t, end, ends[1])
	end = guest.New().Run(func() error { runtime.Goexit(); return nil })
	require.False(t, end.Returned)
	require.Nil(t, end.Panic)
}
