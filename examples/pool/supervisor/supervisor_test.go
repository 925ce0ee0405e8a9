package supervisor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/pool/group"
)

// TestFailedStart: a failed start is not retried at once. Its error is on record until a start succeeds.
func TestFailedStart(t *testing.T) {
	s := &supervisor{}
	g := &group.Group{Members: []group.Member{{Name: "a"}, {Name: "b"}, {Name: "c", Terminating: true}}}
	s.record(g, map[string]result{"a": {err: errors.New("no room")}, "b": {id: "process:///b"}, "c": {ended: true}})
	require.Equal(t, []group.Member{{Name: "a"}, {Name: "b", ProviderID: "process:///b"}}, g.Members)
	require.Contains(t, g.Trouble, "no room")
	require.True(t, s.retryAt.After(time.Now()))
	require.NoError(t, s.carryOut(t.Context(), g), "no call is made: there is no driver")

	s.record(g, map[string]result{"a": {id: "process:///a"}})
	require.Empty(t, g.Trouble)
	require.Equal(t, "process:///a", g.Members[0].ProviderID)
}
