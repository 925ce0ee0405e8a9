package remotetest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/remote/remotetest"
	"github.com/millwright-go/millwright/store"
)

func TestMemory(t *testing.T) {
	var m *remotetest.Memory
	remotetest.Run(t, remotetest.Suite{
		New: func(*testing.T) func() remote.Engine {
			m = remotetest.NewMemory()
			return m.Engine
		},
		Pass: func(d time.Duration) { m.Advance(d) },
	})
}

// TestMemoryRestored: after an older copy was restored, a token or a version of before does not come back for something
// else, so that whoever holds a lost one is refused.
func TestMemoryRestored(t *testing.T) {
	m := remotetest.NewMemory()
	ctx, e, k := t.Context(), m.Engine(), remote.Key{Kind: "thing"}
	restore := m.Save()
	old, err := e.Lease().Take(ctx, "a", lead.MinTTL)
	require.NoError(t, err)
	lost, err := e.Swap(ctx, remote.Swap{Key: k, Content: []byte("1"), Token: old})
	require.NoError(t, err)
	restore()
	next, err := e.Lease().Take(ctx, "b", lead.MinTTL)
	require.NoError(t, err)
	require.Greater(t, next, old)
	_, err = e.Swap(ctx, remote.Swap{Key: k, Content: []byte("2"), Token: old})
	require.ErrorIs(t, err, store.ErrFenced)
	made, err := e.Swap(ctx, remote.Swap{Key: k, Content: []byte("2"), Token: next})
	require.NoError(t, err)
	require.NotEqual(t, lost.Version, made.Version)
}
