package group_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/machinepool"
)

var (
	v1 = procdriver.Spec{Cluster: "blue", Version: "v1"}
	v2 = procdriver.Spec{Cluster: "blue", Version: "v2"}
)

// simulated is a group with simulated processes, and a supervisor that does what Next says.
type simulated struct {
	group  *group.Group
	states map[string]group.State
	number int // of members that were added
}

func newSimulated(target int) *simulated {
	return &simulated{group: &group.Group{Target: target, Spec: v1}, states: map[string]group.State{}}
}

func (s *simulated) next() {
	s.group.Next(s.states, func() string { s.number++; return fmt.Sprintf("m%d", s.number) })
}

// work ends all agents that are marked for removal, and advances the state of all others.
func (s *simulated) work() {
	var left []group.Member
	for _, m := range s.group.Members {
		switch {
		case m.Terminating:
			delete(s.states, m.Name)
			continue
		case m.ProviderID == "":
			m.ProviderID = "process:///blue/" + m.Name + "/1"
			s.states[m.Name] = group.Booting
		case s.states[m.Name] == group.Booting:
			s.states[m.Name] = group.Serving
		}
		left = append(left, m)
	}
	s.group.Members = left
}

func (s *simulated) serving() (n int) {
	for _, m := range s.group.Members {
		if !m.Terminating && s.states[m.Name] == group.Serving {
			n++
		}
	}
	return n
}

func (s *simulated) names(which func(group.Member) bool) (names []string) {
	for _, m := range s.group.Members {
		if which(m) {
			names = append(names, m.Name)
		}
	}
	return names
}

func terminating(m group.Member) bool { return m.Terminating }
func active(m group.Member) bool      { return !m.Terminating }

// settle calls next and work until all members serve, and are as many and with the spec as wanted.
func (s *simulated) settle(t require.TestingT) {
	for range 200 {
		before := s.group.Clone()
		s.next()
		s.work()
		if len(before.Members) == len(s.group.Members) && len(s.group.Members) == s.group.Target && s.serving() == s.group.Target && len(s.names(outdated(s.group.Spec))) == 0 {
			return
		}
	}
	require.Fail(t, "the group does not settle", "%+v", s.group)
}

func outdated(spec procdriver.Spec) func(group.Member) bool {
	return func(m group.Member) bool { return m.Spec != spec }
}

func TestLostMemberIsReplaced(t *testing.T) {
	s := newSimulated(3)
	s.settle(t)
	s.states["m2"] = group.Gone
	s.next()
	require.Equal(t, []string{"m2"}, s.names(terminating))
	require.Equal(t, []string{"m1", "m3", "m4"}, s.names(active))
	before := s.group.Clone()
	s.next()
	require.Equal(t, before, s.group, "a second call changes nothing")
	s.settle(t)
}

func TestScaleDownOrder(t *testing.T) {
	s := newSimulated(5)
	s.settle(t)
	s.group.Spec = v2
	s.group.Members[0].Spec = v2
	s.states["m5"] = group.Booting
	s.group.Target = 3
	s.next()
	require.Equal(t, []string{"m2", "m3", "m5"}, s.names(terminating), "m5 does not serve, m2 is the oldest outdated one; m3 is replaced by an update")
	s.group.Target = 0
	s.next()
	require.Empty(t, s.names(active))
}

// TestGrowsBeforeItRolls: a group adds missing members before it replaces outdated ones.
func TestGrowsBeforeItRolls(t *testing.T) {
	s := newSimulated(3)
	s.settle(t)
	s.group.Target, s.group.Spec = 4, v2
	s.next()
	require.Empty(t, s.names(terminating))
	require.Len(t, s.names(active), 4)
	s.settle(t)
}

func TestRemoveReplaceAndDrain(t *testing.T) {
	s := newSimulated(4)
	s.settle(t)
	id := func(n int) string { return s.group.Members[n].ProviderID }
	a, b, c := id(0), id(1), id(2)
	s.group.Remove([]string{a, a, "", "another's"})
	require.Equal(t, 3, s.group.Target)
	s.group.Replace(b)
	s.group.RequestDrain(c)
	s.group.RequestDrain(a)
	s.group.Replace("")
	s.group.Drained([]string{id(3), b})
	require.Equal(t, []string{"m1", "m2"}, s.names(terminating))
	require.Equal(t, []string{"m3"}, s.names(func(m group.Member) bool { return m.DrainRequested }))
	s.group.Drained([]string{c})
	require.Equal(t, []string{"m1", "m2", "m3"}, s.names(terminating))
	s.settle(t)
	require.Equal(t, []string{"m4", "m5", "m6"}, s.names(active))
}

// TestEmptyIDMatchesNoMember: an empty provider ID does not mean a member that has none yet.
func TestEmptyIDMatchesNoMember(t *testing.T) {
	s := newSimulated(2)
	s.next()
	s.group.Remove([]string{""})
	s.group.Replace("")
	require.Empty(t, s.names(terminating))
	require.Equal(t, 2, s.group.Target)
}

func TestDeletingGroupStartsNoMember(t *testing.T) {
	s := newSimulated(2)
	s.settle(t)
	s.group.Deleting, s.group.Target = true, 9
	s.next()
	require.Len(t, s.group.Members, 2)
	require.Empty(t, s.names(active))
}

// rolling draws the bounds of an update, and returns what they mean for a target. Nil: one after the
// other.
func rolling(t *rapid.T, target int) (r *machinepool.RollingUpdate, surge, unavailable int) {
	if !rapid.Bool().Draw(t, "bounded") {
		return nil, 0, 1
	}
	r = &machinepool.RollingUpdate{
		MaxSurge:       rollout.IntOrPercent{Value: rapid.Int32Range(0, 3).Draw(t, "surge")},
		MaxUnavailable: rollout.IntOrPercent{Value: rapid.Int32Range(0, 60).Draw(t, "unavailable"), Percent: true},
	}
	b := r.Bounds(int32(target))
	return r, int(b.Surge), int(b.Unavailable)
}

// TestUpdateKeepsBounds: while a group is only updated, its bounds hold. From every state, it settles.
func TestUpdateKeepsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulated(rapid.IntRange(1, 6).Draw(t, "target"))
		s.settle(t)
		var surge, unavailable int
		s.group.Rolling, surge, unavailable = rolling(t, s.group.Target)
		s.group.Spec = v2
		for range 60 {
			s.next()
			require.GreaterOrEqual(t, s.serving(), s.group.Target-unavailable)
			require.LessOrEqual(t, len(s.names(active)), s.group.Target+surge)
			if rapid.Bool().Draw(t, "work") {
				s.work()
			}
		}
		s.settle(t)
	})
}

// TestAnyGroupSettles begins with any members in any states.
func TestAnyGroupSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulated(rapid.IntRange(0, 6).Draw(t, "target"))
		var surge int
		s.group.Rolling, surge, _ = rolling(t, s.group.Target)
		for i := range rapid.IntRange(0, 6).Draw(t, "members") {
			name := fmt.Sprintf("x%d", i)
			m := group.Member{Name: name, Spec: rapid.SampledFrom([]procdriver.Spec{v1, v2}).Draw(t, "spec"), Terminating: rapid.Bool().Draw(t, "terminating")}
			if state := group.State(rapid.IntRange(0, 3).Draw(t, "state")); state != group.Starting {
				m.ProviderID = name
				s.states[name] = state
			}
			s.group.Members = append(s.group.Members, m)
		}
		s.next()
		require.GreaterOrEqual(t, len(s.names(active)), s.group.Target, "fewer active members than wanted")
		require.LessOrEqual(t, len(s.names(active)), s.group.Target+surge)
		before := s.group.Clone()
		s.next()
		require.Equal(t, before, s.group, "a second call changes nothing")
		s.settle(t)
	})
}

func TestRecordFile(t *testing.T) {
	path := t.TempDir()
	d := group.At(path)
	names, err := group.At(path + "/none").Names()
	require.NoError(t, err)
	require.Empty(t, names)
	refused := errors.New("refused")
	change := func(do func(*group.Group) (*group.Group, error)) error { return d.Change(t.Context(), "a_b", do) }
	require.NoError(t, change(func(g *group.Group) (*group.Group, error) {
		require.Nil(t, g)
		return nil, nil
	}))
	left, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, left, 1, "the lock file stays, because others may wait for it")

	want := &group.Group{ID: "b-1", Target: 2, Spec: v1, Boot: []byte("boot"), Members: []group.Member{{Name: "m1", Spec: v1, DrainRequested: true}}}
	require.NoError(t, change(func(*group.Group) (*group.Group, error) { return want, nil }))
	require.ErrorIs(t, change(func(g *group.Group) (*group.Group, error) { return nil, refused }), refused)
	got, err := d.Read("a_b")
	require.NoError(t, err)
	require.Equal(t, want, got)
	names, err = d.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"a_b"}, names)

	require.NoError(t, os.WriteFile(path+"/a_b.group", []byte("{"), 0o600))
	_, err = d.Read("a_b")
	require.ErrorContains(t, err, path+"/a_b.group")
	require.Error(t, change(func(*group.Group) (*group.Group, error) { return want, nil }))
	require.NoError(t, os.Remove(path+"/a_b.group"))
	require.NoError(t, change(func(*group.Group) (*group.Group, error) { return want, nil }))
	require.NoError(t, change(func(*group.Group) (*group.Group, error) { return nil, nil }))
	left, err = os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, left, 1, "only the lock file")
}

// TestClone: a copy shares nothing with its group.
func TestClone(t *testing.T) {
	g := &group.Group{Boot: []byte("a"), Members: []group.Member{{Name: "m"}}, Rolling: &machinepool.RollingUpdate{}}
	c := g.Clone()
	c.Boot[0], c.Members[0].Terminating, c.Rolling.MaxSurge.Value = 'b', true, 1
	require.Zero(t, g.Rolling.MaxSurge)
	require.Equal(t, "a", string(g.Boot))
	require.False(t, g.Members[0].Terminating)
}

// TestConcurrentChanges: several changes at the same time all take effect.
func TestConcurrentChanges(t *testing.T) {
	d := group.At(t.TempDir())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := d.Change(context.Background(), "a_b", func(g *group.Group) (*group.Group, error) {
				if g == nil {
					g = &group.Group{}
				}
				g.Target++
				return g, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	g, err := d.Read("a_b")
	require.NoError(t, err)
	require.Equal(t, 20, g.Target)
}
