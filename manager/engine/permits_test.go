package engine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/manager/engine"
)

// seats are permits whose holders are numbers, and records who uses them.
type seats struct {
	engine.Permits[int]
	t     *testing.T
	limit int
	read  map[string]engine.Permit[int]
	err   error
	over  map[string]bool // holders that do not use their permit any more
	saw   map[string]int  // what Uses was called with last
	reads int
}

func newSeats(t *testing.T, limit int) *seats {
	return &seats{t: t, limit: limit, over: map[string]bool{}, saw: map[string]int{}}
}

// take asks for a permit.
func (s *seats) take(group, id string, holder int, again bool) bool {
	given, err := s.Take(&engine.Ask[int]{
		ID: id, Group: group, Limit: s.limit, Holder: holder, Again: again,
		Read: func() (map[string]engine.Permit[int], error) { s.reads++; return s.read, s.err },
		Uses: func(id string, holder int) bool { s.saw[id] = holder; return !s.over[id] },
	})
	require.ErrorIs(s.t, err, s.err)
	return given
}

// TestPermitsAreLimitedByGroup: a group has no more holders than the limit. A holder that asks again keeps its
// permit. A permit that was given back, or is not used, is free.
func TestPermitsAreLimitedByGroup(t *testing.T) {
	s := newSeats(t, 2)
	require.True(t, s.take("x", "a", 1, false))
	require.True(t, s.take("x", "b", 1, false))
	require.False(t, s.take("x", "c", 1, false))
	require.True(t, s.take("x", "a", 1, false), "a holder keeps its permit")
	require.True(t, s.take("y", "d", 1, false), "another group has a limit of its own")
	s.Release("a")
	s.Release("nobody")
	require.True(t, s.take("x", "c", 1, false))
	require.False(t, s.take("x", "a", 1, false))
	s.over["b"], s.over["d"] = true, true
	require.True(t, s.take("x", "a", 1, false))
	require.Equal(t, 1, s.reads)
}

// TestPermitsOfBefore: what is in use already counts. It is read until that succeeds, and no permit is given
// before. A panic in the read counts as a failure.
func TestPermitsOfBefore(t *testing.T) {
	s := newSeats(t, 1)
	s.err = errors.New("not now")
	require.False(t, s.take("x", "a", 1, false))
	s.err = nil
	require.Panics(t, func() {
		_, _ = s.Take(&engine.Ask[int]{ID: "a", Limit: 1, Read: func() (map[string]engine.Permit[int], error) { panic("again") }})
	})
	s.read = map[string]engine.Permit[int]{"b": {Group: "x", Holder: 7}}
	require.False(t, s.take("x", "a", 1, false))
	require.Equal(t, 7, s.saw["b"])
	s.over["b"] = true
	require.True(t, s.take("x", "a", 1, false))
	require.Equal(t, 2, s.reads)
	require.Contains(t, s.read, "b", "what was read is not changed")
}

// TestPermitsRememberTheirHolders: the record of a holder is replaced only if it asks for that.
func TestPermitsRememberTheirHolders(t *testing.T) {
	s := newSeats(t, 1)
	require.True(t, s.take("x", "a", 1, false))
	require.True(t, s.take("x", "a", 2, false))
	require.False(t, s.take("x", "b", 1, false))
	require.Equal(t, 1, s.saw["a"])
	require.True(t, s.take("x", "a", 3, true))
	require.False(t, s.take("x", "b", 1, false))
	require.Equal(t, 3, s.saw["a"])
}

// TestPermitsSetAside: permits that were set aside let as many others proceed, up to the limit. Their holders have
// to ask again.
func TestPermitsSetAside(t *testing.T) {
	s := newSeats(t, 1)
	require.True(t, s.take("x", "a", 1, false))
	require.False(t, s.take("x", "b", 2, false))
	s.SetAside(func(holder int) bool { return holder == 1 })
	require.True(t, s.take("x", "b", 2, false))
	require.False(t, s.take("x", "a", 1, false), "a permit that was set aside must be asked for again")
	s.SetAside(func(holder int) bool { return holder == 2 })
	require.False(t, s.take("x", "c", 3, false), "of two that are set aside, one counts")
	require.True(t, s.take("x", "a", 1, false), "one permit is free beside the one that counts")
	require.False(t, s.take("x", "c", 3, false))
}
