package manager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
)

// TestMissingMachinesAreWoken: once for each listing that misses them twice, and none
// that was replaced by another of its name.
func TestMissingMachinesAreWoken(t *testing.T) {
	var s missing
	woken := 0
	s.wakes(func(object.Key) { woken++ })
	first := time.Unix(1_800_000_000, 0)
	u := orphan.Unlisted{Machine: object.Key{Name: "a"}, UID: "1", ProviderID: "p://1", Since: first}
	m := &machine.Machine{Meta: object.Meta{Key: u.Machine, UID: "1"}, Spec: machine.Spec{ProviderID: "p://1"}}
	s.note([]orphan.Unlisted{u}, nil)
	require.Zero(t, woken, "missed once")
	require.Nil(t, s.of(m))
	for n := range 3 {
		u.Missing = first.Add(time.Duration(n+1) * time.Minute)
		s.note([]orphan.Unlisted{u}, nil)
		s.note([]orphan.Unlisted{u}, nil)
		require.Equal(t, n+1, woken)
		require.Equal(t, &machine.MissingVM{Since: first}, s.of(m))
		s.asked(m.Key, codes.NotFound)
		require.Equal(t, &machine.MissingVM{Since: first, NotFound: true}, s.of(m))
		s.asked(m.Key, codes.OK)
		require.Nil(t, s.of(m), "until the next listing")
	}
	u.Missing = u.Missing.Add(time.Minute)
	s.note([]orphan.Unlisted{u}, nil)
	other := m.Clone()
	other.UID = "2"
	require.Nil(t, s.of(other))
	s.note(nil, nil)
	require.Nil(t, s.of(m))
	s.asked(m.Key, codes.NotFound)
	require.Nil(t, s.of(m))
}
