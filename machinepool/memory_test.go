package machinepool_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// lies are answers about a group that is as it was: the provider's answer comes from a part of it that
// does not know the group, or some of its instances, or any.
func lies(t *rapid.T, g *machinepool.Group) {
	switch rapid.IntRange(0, 3).Draw(t, "lie") {
	case 0:
		*g = machinepool.Group{Outcome: machine.Outcome{Code: codes.NotFound}, At: g.At}
	case 1:
		g.Instances = nil
	default:
		g.Instances = slices.DeleteFunc(g.Instances, func(machinepool.Instance) bool { return rapid.Bool().Draw(t, "left out") })
	}
}

// P60: wrong answers of the provider, none of which is repeated by the next one, cost no instance and
// no group, and no record of them. Instances go only as in a life without such answers: after a drain.
// Invariants: P60
func TestP60OneAnswerIsNotBelieved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.slow = time.Duration(rapid.IntRange(0, 120).Draw(t, "slow")) * time.Second
		s := &shell{w: w}
		live := func(d time.Duration) { require.NoError(t, s.until(d, func() { w.supply(); w.join() })) }
		size := rapid.IntRange(1, 6).Draw(t, "size")
		w.scaleTo(int32(size))
		live(3 * time.Minute)
		require.True(t, w.settled(), "%+v", w.pool().Status)
		made, lied := len(w.ids()), false
		s.calls = nil
		s.lie = func(g *machinepool.Group) {
			if lied = !lied && rapid.Bool().Draw(t, "lies"); lied {
				lies(t, g)
			}
			require.Subset(t, w.pool().Spec.ProviderIDs, w.ids(), "an instance was forgotten")
		}
		live(5 * time.Minute)
		w.scaleTo(int32(rapid.IntRange(0, size).Draw(t, "smaller")))
		live(10 * time.Minute)
		s.lie = nil
		live(5 * time.Minute)
		require.Empty(t, w.violation)
		require.True(t, w.settled(), "%+v", w.pool().Status)
		require.NotContains(t, s.calls, "CreateGroup", "it was there all the time")
		require.NotContains(t, s.calls, "ScaleGroup", "the provider would choose whom to remove, undrained")
		require.Equal(t, made, w.numbers, "another instance was made")
	})
}

// An instance or a group that is gone is given up after a second answer, also if errors come between,
// and not before the time is up.
// Invariants: P60
func TestGoneIsBelieved(t *testing.T) {
	w, s := running(t, 3)
	gone := w.ids()[1]
	w.drop(gone)
	look := func(after time.Duration) {
		w.advance(after)
		_, err := s.pass()
		require.NoError(t, err)
	}
	look(time.Minute)
	require.Contains(t, w.pool().Spec.ProviderIDs, gone)
	s.fault = func(string) *machine.Outcome { return &machine.Outcome{Code: codes.Unavailable} }
	look(16 * time.Second)
	require.Contains(t, w.pool().Spec.ProviderIDs, gone)
	s.fault = nil
	look(16 * time.Second)
	require.NotContains(t, w.pool().Spec.ProviderIDs, gone)

	w.group = nil
	for _, after := range []time.Duration{time.Minute, 30 * time.Second, 29 * time.Second} {
		look(after)
		require.Len(t, w.pool().Spec.ProviderIDs, 2)
		require.Nil(t, w.group)
	}
	look(15 * time.Second)
	require.Empty(t, w.pool().Spec.ProviderIDs)
	require.NotNil(t, w.group)
}

// Without a memory nothing is given up. A process that has just started begins to count again.
// Invariants: P60
func TestNothingIsGivenUpWithoutAMemory(t *testing.T) {
	w, s := running(t, 2)
	w.group.instances = map[string]*machinepool.Instance{}
	for range 5 {
		w.advance(time.Minute)
		s.restart()
		_, err := s.pass()
		require.NoError(t, err)
		require.Len(t, w.pool().Spec.ProviderIDs, 2)
	}
	o := s.observe()
	o.Memory = nil
	require.NotNil(t, s.group)
	plan := decide(t, w, o)
	require.Nil(t, plan.Write)
}

// A memory keeps only what the last answers lacked.
func TestMemory(t *testing.T) {
	var m machinepool.Memory
	pool := &machinepool.Pool{Spec: machinepool.Spec{ProviderIDs: []string{"a", "b"}}}
	group := func(code codes.Code, at time.Duration, ids ...string) *machinepool.Group {
		g := &machinepool.Group{Outcome: machine.Outcome{Code: code}, At: start.Add(at)}
		for _, id := range ids {
			g.Instances = append(g.Instances, machinepool.Instance{ProviderID: id})
		}
		return g
	}
	m.See(pool, group(codes.OK, 0, "b"))
	m.See(pool, group(codes.OK, 1))
	require.Equal(t, map[string]time.Time{"a": start, "b": start.Add(1)}, m.Missed)
	before := m.Missed
	m.See(pool, group(codes.NotFound, 2))
	m.See(pool, group(codes.Unavailable, 3))
	m.See(pool, group(codes.NotFound, 4))
	require.Equal(t, start.Add(2), m.Gone)
	require.Equal(t, before, m.Missed)
	m.See(pool, group(codes.NotFound, -time.Hour))
	require.Equal(t, start.Add(-time.Hour), m.Gone, "the clock was set back: counted again")
	m.See(pool, group(codes.OK, 5, "a", "b", "c"))
	require.Zero(t, m.Gone)
	require.Empty(t, m.Missed)
	require.Len(t, before, 2)
}
