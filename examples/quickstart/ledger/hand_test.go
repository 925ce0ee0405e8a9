package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

func TestHandEntersOneProcess(t *testing.T) {
	path := newPath(t)
	one := ledger.Hand{Path: path, Machine: "a", Instance: "one", ID: self(t)}
	two, other, gone := one, one, one
	two.Instance, other.Instance, gone.Instance = "two", "other", "gone"
	other.Machine = "b"
	gone.ID = procid.ID{PID: self(t).PID, Start: "long ago"}
	unseated := one
	unseated.Instance = "unseated"
	require.NoError(t, unseated.Enter(ledger.Born, ""))
	require.NoError(t, one.Enter(ledger.Born, "first"))
	for _, hand := range []ledger.Hand{one, gone, other, two} {
		require.NoError(t, hand.Seated())
	}
	require.NoError(t, two.Enter(ledger.Abandoned, ""))

	entries, _, err := ledger.Read(path, 0)
	require.NoError(t, err)
	var events []string
	for _, e := range entries {
		require.False(t, e.At.IsZero())
		require.Equal(t, e.Instance == "gone", e.ID != self(t))
		events = append(events, e.Machine+" "+e.Instance+" "+string(e.Event)+" "+e.Note)
	}
	require.Equal(t, []string{
		"a unseated born ", "a one born first", "a one seated ", "a gone seated ", "a gone overlap one", "b other seated ",
		"a two seated ", "a two overlap one", "a two abandoned ",
	}, events)
	lives, err := ledger.Open(path).Lives()
	require.NoError(t, err)
	require.True(t, lives[4].Abandoned)
	require.False(t, lives[0].Abandoned)

	require.NoError(t, ledger.Hand{}.Enter(ledger.Born, ""))
	require.NoError(t, ledger.Hand{}.Seated(), "no account is kept")
}
