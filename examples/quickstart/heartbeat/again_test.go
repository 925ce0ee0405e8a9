package heartbeat

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestNodesOfAnEarlierProgramAreKnown: their heartbeats still count, and their silence begins now,
// not at their last heartbeat.
func TestNodesOfAnEarlierProgramAreKnown(t *testing.T) {
	before := newCluster(t)
	before.hears(t, "a", "id:1", 0)
	before.hears(t, "b", "id:2", 0)
	before.sweeps(t, 2*time.Second)
	before.hears(t, "a", "id:1", 3*time.Second)
	uid := before.node(t, "a").UID

	c := newCluster(t)
	c.options.Nodes = before.options.Nodes
	require.NoError(t, c.know(t.Context(), noon.Add(time.Hour)))
	c.sweeps(t, time.Hour+900*time.Millisecond)
	require.Equal(t, object.True, c.readiness(t, "a").Status)
	require.Equal(t, object.Unknown, c.readiness(t, "b").Status)
	c.hears(t, "b", "id:2", time.Hour+900*time.Millisecond)
	require.Equal(t, object.True, c.readiness(t, "b").Status)
	c.sweeps(t, time.Hour+time.Second)
	require.Equal(t, object.Unknown, c.readiness(t, "a").Status, "it has never beaten again")
	c.hears(t, "a", "id:3", time.Hour+2*time.Second)
	require.Equal(t, object.Unknown, c.readiness(t, "a").Status, "another machine's beat")
	require.Equal(t, uid, c.node(t, "a").UID)
}

// TestClusterThatIsDown accepts no writes and answers only cached reads.
func TestClusterThatIsDown(t *testing.T) {
	c := newCluster(t)
	nodes := c.Nodes()
	n, err := nodes.Create(t.Context(), &machine.Node{Meta: object.Meta{Key: object.Key{Name: "a"}}})
	require.NoError(t, err)
	run := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		return func() {
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
		}
	}
	run()()
	calls := map[string]func() error{
		"get":    func() error { _, err := nodes.Live().Get(t.Context(), n.Key); return err },
		"list":   func() error { _, err := nodes.Live().List(t.Context(), store.Query{}); return err },
		"create": func() error { _, err := nodes.Create(t.Context(), n); return err },
		"update": func() error { _, err := nodes.Update(t.Context(), n); return err },
		"status": func() error { _, err := nodes.UpdateStatus(t.Context(), n.Clone()); return err },
		"delete": func() error { return nodes.Delete(t.Context(), n.Key, "") },
	}
	for name, call := range calls {
		require.Equal(t, codes.Unavailable, codes.Of(call()), name)
	}
	cached, err := nodes.Get(t.Context(), n.Key)
	require.NoError(t, err)
	require.Equal(t, n.Version, cached.Version)

	end := run()
	defer end()
	require.Eventually(t, func() bool { return calls["get"]() == nil }, time.Minute, time.Millisecond)
	s, err := NewSender(Join{Socket: c.options.Socket, Token: token, Node: "b"}, "id:b")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_ = s.Send(time.Second) // until there is a socket again
		_, err := nodes.Get(t.Context(), object.Key{Name: "b"})
		return err == nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, s.Close())
	require.NoError(t, calls["list"]())
	require.ErrorIs(t, calls["create"](), store.ErrAlreadyExists)
	n, err = nodes.Update(t.Context(), n.Clone())
	require.NoError(t, err)
	require.NoError(t, calls["status"]())
	require.NoError(t, nodes.Delete(t.Context(), n.Key, ""))
}

// TestSocketOfAKilledProgramIsReplaced, and nothing else is.
func TestSocketOfAKilledProgramIsReplaced(t *testing.T) {
	c := newCluster(t)
	next, err := Listen(c.options)
	require.NoError(t, err, "nothing has removed the first one's socket")
	require.NoError(t, next.conn.Close())
	require.NoError(t, os.Remove(c.options.Socket))
	require.NoError(t, os.WriteFile(c.options.Socket, []byte("letters"), 0o600))
	_, err = Listen(c.options)
	require.Error(t, err)
	text, err := os.ReadFile(c.options.Socket)
	require.NoError(t, err)
	require.Equal(t, "letters", string(text))
}
