package drain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
)

// unrecorded is a drain whose only pod was told to go, and whose record does not say so, because
// the write of the turn met a conflict.
func unrecorded(t *testing.T, change ...func(*pod)) (*shell, *pod) {
	s := newShell(t)
	s.now = epoch.Truncate(time.Second)
	s.detach = -1
	p := s.add("db-1", append(change, s.volume("vol-1"))...)
	s.conflict = func(plan *drain.Plan) bool { return plan.Why.Reason == drain.ReasonTurn }
	s.look()
	s.conflict = nil
	require.False(t, p.ends.IsZero())
	require.Empty(t, s.node.Drain.Turn.UID)
	return s, p
}

// awaits requires that a drain waits for vol-1 until a time and no longer, and ends when the volume
// is detached.
func awaits(t *testing.T, s *shell, until time.Time) {
	plan, _ := s.pass()
	require.Equal(t, drain.ReasonDetaching, plan.Why.Reason, "%s", plan.Why)
	require.Equal(t, until, plan.At)
	require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
	attachments := s.attachments
	s.attachments = nil
	ended, _ := s.pass()
	require.True(t, ended.Done, "it is detached")
	s.attachments = attachments
	s.advance(until)
	ended, _ = s.pass()
	require.True(t, ended.Done, "it had its time")
}

// The drain waits for the volume of a pod that finished before its turn was recorded, even in a
// process that did not tell the pod (P22).
func TestUnrecordedTurnOfAFinishedPod(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s, p := unrecorded(t, func(p *pod) { p.stays = 24 * time.Hour })
		s.advance(p.ends.Add(time.Second))
		require.True(t, p.Finished)
		if restart {
			s.restart()
		}
		told := epoch.Truncate(time.Second)
		if restart {
			told = s.now // as far as the new process knows
		}
		awaits(t, s, told.Add(p.Grace+s.policy.DetachTimeout))
	}
}

// The drain waits for the volume of a pod that was gone before its turn was recorded (P22). Force
// and the end of the drain's time end that wait.
func TestUnrecordedTurnOfAPodThatIsGone(t *testing.T) {
	s, p := unrecorded(t)
	s.advance(p.ends.Add(time.Second))
	require.Empty(t, s.pods)
	awaits(t, s, epoch.Truncate(time.Second).Add(p.Grace+s.policy.DetachTimeout))

	for _, forced := range []bool{false, true} {
		s, p = unrecorded(t)
		s.advance(p.ends.Add(time.Second))
		if s.forced = forced; !forced {
			s.deadline = s.now
		}
		plan, _ := s.pass()
		require.True(t, plan.Done)
	}
}

// The cluster may answer that the pod is gone already, or not at all. The drain waits for its
// volume.
func TestUnrecordedTurnOfALostAnswer(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := newShell(t)
		s.now = epoch.Truncate(time.Second)
		s.detach = -1
		p := s.add("db-1", s.volume("vol-1"))
		begun := false
		s.observed = func(o *drain.Observation, plan *drain.Plan) { // the pod goes before the call
			if begun = begun || len(plan.Evict) > 0; len(plan.Evict) > 0 {
				s.remove(p)
				s.cache = o.Pods
			}
		}
		s.fails = func(drain.Kind, string) bool { return lost }
		plan, _ := s.pass()
		require.True(t, begun)
		require.False(t, plan.Done, "%s", plan.Why)
		s.cache = nil
		awaits(t, s, s.now.Add(p.Grace+s.policy.DetachTimeout))
	}
}

// A pod that shares its volume goes without a turn. It is followed once it is the last here to use
// the volume. Its turn, told of in the same second, does not take the place of one that could not be
// recorded: neither while that one's pod is there, nor if an old cache shows that pod as it was.
func TestUnrecordedTurnBeforeOneThatNobodyGave(t *testing.T) {
	for _, old := range []bool{false, true} {
		s := newShell(t)
		s.now = epoch.Truncate(time.Second)
		s.detach = -1
		p := s.add("db-1", s.volume("vol-1"), func(p *pod) { p.Grace = 10 * time.Second })
		s.add("web-1", s.volume("vol-2"), func(p *pod) { p.Grace = 0 })
		s.add("web-2", s.volume("vol-2"), func(p *pod) { p.Grace, p.Priority, p.stuck = time.Minute, 1, true })
		before := s.snapshot()
		s.conflict = func(plan *drain.Plan) bool { return plan.Why.Reason == drain.ReasonTurn }
		s.look()
		s.conflict = nil
		require.False(t, p.ends.IsZero())
		require.Equal(t, p.UID, s.memory.Turn.UID)
		s.advance(s.now.Add(time.Second)) // web-1 goes
		require.Len(t, s.pods, 2)
		if old {
			s.cache = s.snapshot()
			s.cache[slices.IndexFunc(s.cache, func(c *drain.Pod) bool { return c.UID == p.UID })] = before[0]
			delete(s.memory.Answers, p.UID)
		}
		s.observed = func(_ *drain.Observation, plan *drain.Plan) { require.Empty(t, plan.Evict, "its turn is not over") }
		s.look()
		if old {
			require.Equal(t, []string{"vol-2"}, s.node.Drain.Turn.Volumes)
		} else {
			require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
		}
		s.cache = nil
		s.advance(p.ends.Add(time.Second)) // db-1 goes
		s.attachments = slices.DeleteFunc(s.attachments, func(a *drain.Attachment) bool { return a.Volume == "vol-2" })
		plan, _ := s.pass()
		require.Equal(t, drain.ReasonDetaching, plan.Blocked[0].Why.Reason)
		require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
	}
}

// If an old cache shows the node, it is read live before a turn is recorded a second time.
func TestUnrecordedTurnsAreBelievedLive(t *testing.T) {
	s, first, _ := twoDatabases(t)
	s.detach = -1
	s.advance(first.ends.Add(time.Second))
	require.True(t, decide(t, s, s.behind()).Look)
	live := s.observe()
	require.Equal(t, drain.ReasonDetaching, decide(t, s, live).Blocked[0].Why.Reason)
	live.Node = live.Node.Clone()
	live.Node.Drain.Turn = machine.DrainTurn{UID: "later", Since: s.now}
	require.Nil(t, decide(t, s, live).Write, "it had its turn, and another followed")
}

// Any write may meet a conflict, and pods end in any way. No drain ends within the time that a
// pod's volumes have, while one that it waits for is attached (P22). The number of writes is
// limited.
func TestP22NoVolumeIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		type turn struct {
			volumes []string
			limit   time.Time
		}
		var turns []turn
		s.told = func(plan drain.Plan, answers []drain.Answer) {
			for i, o := range slices.Concat(plan.Evict, plan.Delete) {
				if o.Turn != nil && answers[i].Result == drain.Accepted {
					require.NotEmpty(t, o.Turn.Volumes)
					turns = append(turns, turn{o.Turn.Volumes, o.Turn.Since.Add(o.Turn.Grace + s.policy.DetachTimeout)})
				}
			}
		}
		s.conflict = func(*drain.Plan) bool { return rapid.IntRange(0, 2).Draw(t, "conflict") == 0 }
		end := s.now.Add(110 * time.Minute)
		for {
			if plan, _ := s.pass(); plan.Done || !s.now.Before(end) {
				break
			}
			s.advance(s.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "pause")) * time.Second))
		}
		for _, turn := range turns {
			for _, id := range turn.volumes {
				here := slices.ContainsFunc(s.attachments, func(a *drain.Attachment) bool { return a.Volume == id && a.Node == here })
				require.False(t, here && s.now.Before(turn.limit) && s.now.Before(end), "%s is forgotten", id)
			}
		}
		require.LessOrEqual(t, s.writes, 1+2*len(s.volumes)+2*len(s.calls))
	})
}
