package drain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// told returns the order in which pods with volumes were told to go.
func toldInTurn(s *shell, all map[string]*pod) (order []string) {
	seen := map[string]bool{}
	for _, c := range s.calls {
		if p := all[c.uid]; c.result == drain.Accepted && len(p.Claims) > 0 && !seen[c.uid] {
			seen[c.uid] = true
			order = append(order, c.name)
		}
	}
	return order
}

// P26: a process is killed at any call, whether the call takes effect or not, and a new one without
// memory continues. It tells the pods in the same order, and starts no wait again. The drain takes
// longer by what the new process does not know, which is two slots of attempts at most, and by the
// fractions of seconds that stored times lose.
// Invariants: P26
func TestP26KilledAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.IntRange(1, 5).Draw(t, "pods")
		priorities := rapid.SliceOfN(rapid.Int32Range(0, 2), pods, pods).Draw(t, "priorities")
		graces := rapid.SliceOfN(rapid.IntRange(0, 60), pods, pods).Draw(t, "graces")
		volumes := rapid.SliceOfN(rapid.IntRange(0, 2), pods, pods).Draw(t, "volumes")
		// Not near the timeouts: there a fraction of a second decides which wait comes next.
		seconds := rapid.SampledFrom([]int{1, 10, 60, 105, 150, 200})
		detach, reattach := seconds.Draw(t, "detach"), seconds.Draw(t, "reattach")
		world := func() (*shell, map[string]*pod) {
			s := newShell(t)
			s.detach, s.reattach = time.Duration(detach)*time.Second, time.Duration(reattach)*time.Second
			all := map[string]*pod{}
			for i := range pods {
				p := s.add(fmt.Sprintf("p-%d", i), func(p *pod) {
					p.Priority, p.Grace = priorities[i], time.Duration(graces[i])*time.Second
				})
				for v := range volumes[i] {
					s.volume(fmt.Sprintf("vol-%d-%d", i, v))(p)
				}
				all[p.UID] = p
			}
			return s, all
		}
		calm, all := world()
		plan := calm.run(calm.now.Add(3 * time.Hour))
		require.True(t, plan.Done)
		want, took := toldInTurn(calm, all), calm.now.Sub(epoch)
		for n := 1; n <= calm.writes+len(calm.calls); n++ {
			s, all := world()
			s.lost = rapid.Bool().Draw(t, "lost")
			left := n
			s.killed = func() bool { left--; return left == 0 }
			plan := s.run(s.now.Add(3 * time.Hour))
			require.True(t, plan.Done)
			require.Equal(t, want, toldInTurn(s, all), "killed at call %d", n)
			require.LessOrEqual(t, s.now.Sub(epoch)-took, 2*drain.Slot+time.Duration(1+2*pods)*time.Second, "killed at call %d", n)
			distances(t, s.calls)
		}
	})
}

// There is a new process every few seconds. It costs only time: no wait for pods or volumes starts
// again, however often that happens.
// Invariants: P26
func TestP26KilledAgainAndAgain(t *testing.T) {
	s := newShell(t)
	s.detach = -1
	s.add("db", s.volume("vol-1"))
	s.look()
	begun := s.now
	for {
		s.advance(s.now.Add(7 * time.Second))
		s.restart()
		plan, _ := s.pass()
		if plan.Done {
			break
		}
		require.Less(t, s.now.Sub(begun), 3*time.Minute, "%s", plan.Why)
	}
	require.GreaterOrEqual(t, s.now.Sub(begun), 2*time.Minute+29*time.Second)
}

// P23: Undo reverses what the drain did, and nothing else.
// Invariants: P23
func TestP23OnlyOursIsUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		s.policy.OutOfService = true
		s.forced = rapid.Bool().Draw(t, "forced")
		s.node.Unschedulable = rapid.Bool().Draw(t, "cordoned")
		if rapid.Bool().Draw(t, "silent") {
			s.node.Conditions[0].Status = object.Unknown
		}
		if rapid.Bool().Draw(t, "tainted") {
			s.node.Taints = []object.Taint{{Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: object.NoExecute}, {Key: "mine"}}
		}
		s.advance(s.now.Add(10 * time.Minute))
		before := s.node.Clone()
		require.True(t, s.run(s.now.Add(time.Hour)).Done)
		require.True(t, s.node.Unschedulable)
		require.NotNil(t, s.node.Drain)
		plan, err := drain.Undo(&drain.Observation{Node: s.node}, s.policy, s.now)
		require.NoError(t, err)
		require.True(t, plan.Write.SpecEqual(before), "%+v is not %+v", plan.Write, before)
	})
}
