package supervisor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/pool/group"
)

// A start that failed is not tried again at once, and the error is on record until it succeeds.
func TestFailuresArePaced(t *testing.T) {
	s := &supervisor{}
	g := &group.Group{Members: []group.Member{{Name: "a"}, {Name: "b"}, {Name: "c", Going: true}}}
	s.enter(g, map[string]done{"a": {err: errors.New("no room")}, "b": {id: "process:///b"}, "c": {ended: true}})
	require.Equal(t, []group.Member{{Name: "a"}, {Name: "b", ProviderID: "process:///b"}}, g.Members)
	require.Contains(t, g.Trouble, "no room")
	require.True(t, s.held.After(time.Now()))
	require.NoError(t, s.carryOut(t.Context(), g), "no call is made: there is no driver")

	s.enter(g, map[string]done{"a": {id: "process:///a"}})
	require.Empty(t, g.Trouble)
	require.Equal(t, "process:///a", g.Members[0].ProviderID)
}
