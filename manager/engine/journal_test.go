package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// because declares a reason.
func because(name, sentence string) decision.Why {
	return decision.Why{Reason: decision.NewReason(name, sentence)}
}

// TestJournal: a change is reported once; with other numbers, at the pace of the resync; and again after it has
// not been reported for an hour.
func TestJournal(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	key := object.Key{Name: "a"}
	var j journal
	reported := func(kind string, after time.Duration, what, reason, sentence string) bool {
		at = at.Add(after)
		all := []Change{{what, because(reason, sentence)}}
		return len(j.news(kind, key, all, at, 10*time.Minute)) > 0
	}
	require.True(t, reported("set", 0, "update", "R", "1"))
	require.False(t, reported("set", 0, "update", "R", "1"))
	require.True(t, reported("set", 0, "delete", "R", "1"), "another change")
	require.True(t, reported("set", 0, "update", "S", "1"), "for another reason")
	require.True(t, reported("machine", 0, "update", "R", "1"), "of another kind")
	require.False(t, reported("set", 9*time.Minute, "update", "R", "2"))
	require.True(t, reported("set", time.Minute, "update", "R", "2"))
	require.False(t, reported("set", 9*time.Minute, "update", "R", "3"), "the pace counts from the last time")
	require.False(t, reported("set", time.Hour, "update", "R", "2"))
	require.True(t, reported("set", time.Hour+1, "update", "R", "2"), "the change was forgotten after an hour")
	require.Len(t, j.reported[journalKey{"set", key}], 1, "what was not seen is dropped")
	j.forget("set", key)
	require.Len(t, j.reported, 1)
	require.True(t, reported("set", 0, "update", "R", "2"))
	require.Len(t, j.news("class", key, []Change{{What: "x"}, {What: "x"}, {What: "y"}}, at, 0), 2, "once a pass; without a reason too")
	require.Equal(t, "mark", j.news("class", key, []Change{{What: "mark"}}, at, 0)[0].what)
	require.Len(t, j.news("set", key, []Change{{What: "z"}}, at, 3*time.Hour), 1)
	require.Empty(t, j.news("set", key, []Change{{What: "z"}}, at.Add(5*time.Hour), 3*time.Hour), "a long resync is waited for twice")
}
