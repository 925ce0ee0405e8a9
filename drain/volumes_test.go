package drain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
)

// twoDatabases returns a drain in which db-1 is terminating and db-2 waits for its turn.
func twoDatabases(t *testing.T) (s *shell, first, second *pod) {
	s = newShell(t)
	s.now = epoch.Truncate(time.Second)
	s.detachAfterPodEnd, s.reattachAfterDetach = 10*time.Second, -1
	first, second = s.add("db-1", s.volume("vol-1")), s.add("db-2", s.volume("vol-2"))
	s.onePass()
	require.Equal(t, first.UID, s.node.Drain.Turn.UID)
	return s, first, second
}

// TestVolumesArriveOnAnotherNode: a volume has arrived when it is attached to another node. An attachment that is
// only requested does not count, nor does one to this node.
func TestVolumesArriveOnAnotherNode(t *testing.T) {
	for what, a := range map[string]struct {
		attachment drain.Attachment
		arrived    bool
	}{
		"elsewhere":         {drain.Attachment{Volume: "vol-1", Node: there, Attached: true}, true},
		"wanted elsewhere":  {drain.Attachment{Volume: "vol-1", Node: there}, false},
		"back here":         {drain.Attachment{Volume: "vol-1", Node: here, Attached: true}, false},
		"another elsewhere": {drain.Attachment{Volume: "vol-3", Node: there, Attached: true}, false},
	} {
		s, _, second := twoDatabases(t)
		s.run(s.now.Add(45 * time.Second))
		require.False(t, s.node.Drain.Turn.Detached.IsZero(), what)
		s.attachments = append(s.attachments, &a.attachment)
		s.onePass()
		assert.Equal(t, a.arrived, !second.ends.IsZero(), what)
	}
}

// TestTurnOfAPodThatStays: if an eviction had no effect, the pod's turn ends, and the pod is evicted again.
func TestTurnOfAPodThatStays(t *testing.T) {
	s, first, _ := twoDatabases(t)
	first.GraceEnds, first.ends, s.events = time.Time{}, time.Time{}, nil
	s.advance(s.now.Add(59 * time.Second))
	s.onePass()
	assert.True(t, first.ends.IsZero())
	s.advance(s.now.Add(time.Second))
	s.onePass()
	assert.False(t, first.ends.IsZero(), "the pod is evicted again when its grace and 30s have passed")
}

// TestTurnsDoNotReplaceEachOtherForEver: another program evicts pods, and they stay longer than their turns. Each
// turn is recorded once, even if the pods were evicted in the same second.
func TestTurnsDoNotReplaceEachOtherForEver(t *testing.T) {
	for _, apart := range []time.Duration{0, 3 * time.Second} {
		s := newShell(t)
		s.policy.DetachTimeout = time.Second
		for _, name := range []string{"c", "b", "a"} {
			p := s.add(name, s.volume("vol-"+name), func(p *pod) { p.stuck = true })
			s.terminate(p, p.Grace)
			s.advance(s.now.Add(apart))
		}
		s.advance(s.now.Add(40 * time.Second))
		s.onePass() // fails if the pass does not end
		assert.LessOrEqual(t, s.writes, 1+3)
		writes := s.writes
		s.advance(s.now.Add(time.Second))
		s.onePass()
		assert.Equal(t, writes, s.writes)
	}
}

// TestPodsWithAnotherGrace: a pod that another program evicted has its turn for the whole grace. The next pod waits.
func TestPodsWithAnotherGrace(t *testing.T) {
	s := newShell(t)
	first, second := s.add("db-1", s.volume("vol-1")), s.add("db-2", s.volume("vol-2"))
	first.lasts = 10 * time.Minute
	first.Grace = 10 * time.Minute
	s.terminate(first, first.Grace)
	s.onePass()
	assert.Equal(t, first.UID, s.node.Drain.Turn.UID)
	s.run(s.now.Add(599 * time.Second))
	assert.True(t, second.ends.IsZero(), "pods with volumes are evicted one at a time")
	s.run(s.now.Add(time.Minute))
	assert.False(t, second.ends.IsZero())
}

// TestVolumesThatComeLate: a pod may be evicted before all its volumes are attached. The drain also waits for
// volumes that are attached while the pod is there, and not for one that never is (P22).
// Invariants: P22
func TestVolumesThatComeLate(t *testing.T) {
	s := newShell(t)
	s.detachAfterPodEnd = time.Hour
	pod := s.add("db-1", s.volume("vol-1", "vol-2", "vol-3"))
	late := s.attachments[1]
	s.attachments = s.attachments[:1]
	s.onePass()
	require.Equal(t, pod.UID, s.node.Drain.Turn.UID)
	require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
	s.attachments = append(s.attachments, late)
	s.onePass()
	require.Equal(t, []string{"vol-1", "vol-2"}, s.node.Drain.Turn.Volumes)
	writes := s.writes
	s.attachments = s.attachments[1:]
	plan := s.run(s.now.Add(time.Minute))
	require.False(t, plan.Done)
	require.Equal(t, drain.ReasonDetaching, plan.Why.Reason)
	require.Equal(t, "vol-2", plan.Why.Name)
	require.Equal(t, writes, s.writes)
}

// TestVolumesThatComeBeforeTheEndIsSeen: a volume may be attached, and the pod finish, between two passes. The
// kubelet keeps a finished pod's volumes until it has cleaned up, so the drain waits for that volume too (P22).
// Invariants: P22
func TestVolumesThatComeBeforeTheEndIsSeen(t *testing.T) {
	s := newShell(t)
	s.detachAfterPodEnd = time.Hour
	pod := s.add("db-1", s.volume("vol-1", "vol-2"), func(p *pod) { p.objectStays = time.Hour })
	late := s.attachments[1]
	s.attachments = s.attachments[:1]
	s.onePass()
	require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
	s.attachments = append(s.attachments, late)
	s.advance(s.now.Add(31 * time.Second))
	require.True(t, pod.Finished)
	s.onePass()
	require.Equal(t, []string{"vol-1", "vol-2"}, s.node.Drain.Turn.Volumes)
	s.attachments = s.attachments[1:]
	plan := s.run(s.now.Add(time.Minute))
	require.False(t, plan.Done)
	require.Equal(t, "vol-2", plan.Why.Name)
}

// TestTurnThatWasNeverStored: a process may die after it has evicted the last pod and before it records the turn.
// The next process waits for the volume that it finds, as long as in a turn, but not if a pod that stays uses
// it (P22).
func TestTurnThatWasNeverStored(t *testing.T) {
	orphaned := func(detach time.Duration) *shell {
		s := newShell(t)
		s.detachAfterPodEnd = detach
		s.add("db-1", s.volume("vol-1"))
		s.onePass()
		s.run(s.now.Add(31 * time.Second)) // the pod is gone, its volume is not
		s.node = s.node.Clone()
		s.node.Drain.Turn = machine.DrainTurn{}
		s.advance(s.now.Add(time.Second))
		return s
	}

	s := orphaned(time.Hour)
	s.restart()
	plan := s.run(s.now)
	require.False(t, plan.Done)
	require.Equal(t, decision.Why{Reason: drain.ReasonAttached, Name: "vol-1", For: plan.At.Sub(s.now)}, plan.Why)
	require.Equal(t, s.now.Truncate(time.Second).Add(s.policy.DetachTimeout), plan.At)
	require.True(t, s.run(plan.At).Done, "the time to detach has passed")

	s = orphaned(time.Minute)
	s.restart()
	require.False(t, s.run(s.now).Done)
	require.True(t, s.run(s.now.Add(time.Minute)).Done, "the volume is detached")

	s = orphaned(time.Hour)
	s.restart()
	s.add("logs", s.volume("vol-2"), func(p *pod) { p.Owner.Kind = drain.DaemonSet })
	s.attachments = s.attachments[1:]
	require.True(t, s.run(s.now).Done, "the pod that uses the volume stays")
}

// TestForecastOfAFinishedPodWithAVolume: a forecast ends although the object of the last pod with a volume is still
// there after the pod has finished.
// Invariants: P11
func TestForecastOfAFinishedPodWithAVolume(t *testing.T) {
	s := newShell(t)
	s.add("db-1", s.volume("vol-1"), func(p *pod) { p.objectStays = time.Hour })
	s.onePass()
	s.advance(s.now.Add(31 * time.Second))
	require.NotEmpty(t, s.node.Drain.Turn.UID)
	require.True(t, s.pods[0].Finished)
	f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
	require.NoError(t, err)
	require.True(t, f.Done)
	require.Empty(t, f.Left)
}

// withUnrecordedTurn returns a drain that has evicted its only pod. The pod's turn is not recorded, because the
// write met a conflict.
func withUnrecordedTurn(t *testing.T, change ...func(*pod)) (*shell, *pod) {
	s := newShell(t)
	s.now = epoch.Truncate(time.Second)
	s.detachAfterPodEnd = -1
	p := s.add("db-1", append(change, s.volume("vol-1"))...)
	s.conflict = func(plan *drain.Plan) bool { return plan.Why.Reason == drain.ReasonTurn }
	s.onePass()
	s.conflict = nil
	require.False(t, p.ends.IsZero())
	require.Empty(t, s.node.Drain.Turn.UID)
	return s, p
}

// requireWaitsFor requires that a drain waits for vol-1 until the given time and no longer, and ends at once when
// the volume is detached.
func requireWaitsFor(t *testing.T, s *shell, until time.Time) {
	plan, _ := s.pass()
	require.Equal(t, drain.ReasonDetaching, plan.Why.Reason, "%s", plan.Why)
	require.Equal(t, until, plan.At)
	require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
	attachments := s.attachments
	s.attachments = nil
	ended, _ := s.pass()
	require.True(t, ended.Done, "the volume is detached")
	s.attachments = attachments
	s.advance(until)
	ended, _ = s.pass()
	require.True(t, ended.Done, "the time to detach has passed")
}

// TestUnrecordedTurnOfAFinishedPod: the drain waits for the volume of a pod that finished before its turn was
// recorded, even in a new process, which did not evict the pod (P22).
// Invariants: P22
func TestUnrecordedTurnOfAFinishedPod(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s, p := withUnrecordedTurn(t, func(p *pod) { p.objectStays = 24 * time.Hour })
		s.advance(p.ends.Add(time.Second))
		require.True(t, p.Finished)
		if restart {
			s.restart()
		}
		evicted := epoch.Truncate(time.Second)
		if restart {
			evicted = s.now // as far as the new process knows
		}
		requireWaitsFor(t, s, evicted.Add(p.Grace+s.policy.DetachTimeout))
	}
}

// TestUnrecordedTurnOfAPodThatIsGone: the drain waits for the volume of a pod that was gone before its turn was
// recorded (P22). Force and the drain's deadline end that wait.
// Invariants: P22
func TestUnrecordedTurnOfAPodThatIsGone(t *testing.T) {
	s, p := withUnrecordedTurn(t)
	s.advance(p.ends.Add(time.Second))
	require.Empty(t, s.pods)
	requireWaitsFor(t, s, epoch.Truncate(time.Second).Add(p.Grace+s.policy.DetachTimeout))

	for _, forced := range []bool{false, true} {
		s, p = withUnrecordedTurn(t)
		s.advance(p.ends.Add(time.Second))
		if s.forced = forced; !forced {
			s.deadline = s.now
		}
		plan, _ := s.pass()
		require.True(t, plan.Done)
	}
}

// TestUnrecordedTurnOfALostAnswer: the cluster may answer an eviction with "not found", or with an error. In both
// cases the drain waits for the pod's volume.
func TestUnrecordedTurnOfALostAnswer(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := newShell(t)
		s.now = epoch.Truncate(time.Second)
		s.detachAfterPodEnd = -1
		p := s.add("db-1", s.volume("vol-1"))
		begun := false
		s.observed = func(o *drain.Observation, plan *drain.Plan) { // the pod is removed before the call
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
		requireWaitsFor(t, s, s.now.Add(p.Grace+s.policy.DetachTimeout))
	}
}

// TestUnrecordedTurnIsNotReplaced: pods that share a volume are evicted without a turn, and the last of them gets
// one later. That later turn does not replace the turn of db-1, which was evicted in the same second and whose
// record met a conflict: not while db-1 is there, and not if an old cache shows db-1 as it was before.
func TestUnrecordedTurnIsNotReplaced(t *testing.T) {
	for _, old := range []bool{false, true} {
		s := newShell(t)
		s.now = epoch.Truncate(time.Second)
		s.detachAfterPodEnd = -1
		p := s.add("db-1", s.volume("vol-1"), func(p *pod) { p.Grace = 10 * time.Second })
		s.add("web-1", s.volume("vol-2"), func(p *pod) { p.Grace = 0 })
		s.add("web-2", s.volume("vol-2"), func(p *pod) { p.Grace, p.Priority, p.stuck = time.Minute, 1, true })
		before := s.snapshot()
		s.conflict = func(plan *drain.Plan) bool { return plan.Why.Reason == drain.ReasonTurn }
		s.onePass()
		s.conflict = nil
		require.False(t, p.ends.IsZero())
		require.Equal(t, p.UID, s.memory.Turn.UID)
		s.advance(s.now.Add(time.Second)) // web-1 is gone then
		require.Len(t, s.pods, 2)
		if old {
			s.cache = s.snapshot()
			s.cache[slices.IndexFunc(s.cache, func(c *drain.Pod) bool { return c.UID == p.UID })] = before[0]
			delete(s.memory.Answers, p.UID)
		}
		s.observed = func(_ *drain.Observation, plan *drain.Plan) { require.Empty(t, plan.Evict, "a turn is not over") }
		s.onePass()
		if old {
			require.Equal(t, []string{"vol-2"}, s.node.Drain.Turn.Volumes)
		} else {
			require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
		}
		s.cache = nil
		s.advance(p.ends.Add(time.Second)) // db-1 is gone then
		s.attachments = slices.DeleteFunc(s.attachments, func(a *drain.Attachment) bool { return a.Volume == "vol-2" })
		plan, _ := s.pass()
		require.Equal(t, drain.ReasonDetaching, plan.Blocked[0].Why.Reason)
		require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
	}
}

// TestUnrecordedTurnsNeedALiveRead: a node that an old cache shows is read live before a turn is recorded a second
// time.
func TestUnrecordedTurnsNeedALiveRead(t *testing.T) {
	s, first, _ := twoDatabases(t)
	s.detachAfterPodEnd = -1
	s.advance(first.ends.Add(time.Second))
	require.True(t, decide(t, s, s.staleObservation()).Look)
	live := s.observe()
	require.Equal(t, drain.ReasonDetaching, decide(t, s, live).Blocked[0].Why.Reason)
	live.Node = live.Node.Clone()
	live.Node.Drain.Turn = machine.DrainTurn{UID: "later", Since: s.now}
	require.Nil(t, decide(t, s, live).Write, "the turn is not recorded again after a later turn")
}

// TestP22NoVolumeIsForgotten: although writes meet conflicts and pods end in any way, no drain ends while a volume of
// an evicted pod is attached and its time to detach has not passed (P22). The number of writes is limited.
// Invariants: P22
func TestP22NoVolumeIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		type turn struct {
			volumes []string
			limit   time.Time
		}
		var turns []turn
		s.onPlan = func(plan drain.Plan, answers []drain.Answer) {
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

// TestP51VolumesAreWaitedFor: a drain before the deletion of a VM ends with a volume attached only in two cases. A
// pod that is left alone holds the volume, or the time to detach has passed since the last pod that used it was
// gone. That holds with turns, with shared volumes, and for volumes that no pod here ever used.
// Invariants: P51
func TestP51VolumesAreWaitedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		for i := range rapid.IntRange(0, 2).Draw(t, "unused volumes") {
			name := fmt.Sprint("nobody-", i)
			s.attachments = append(s.attachments, &drain.Attachment{Name: name, Volume: name, Node: here, Attached: true})
			s.at(time.Duration(rapid.IntRange(0, 300).Draw(t, "detached after"))*time.Second, func() { s.moveVolume(name) })
		}
		all := slices.Clone(s.pods)
		begun, restarts := s.now, rapid.IntRange(0, 3).Draw(t, "restarts")
		plan := drain.Plan{}
		for !plan.Done && s.now.Sub(begun) < 2*time.Hour-time.Second {
			lives := 2*time.Hour - time.Second - s.now.Sub(begun)
			if restarts > 0 {
				lives = min(lives, time.Duration(rapid.IntRange(1, 300).Draw(t, "lives"))*time.Second)
			}
			if plan = s.run(s.now.Add(lives)); !plan.Done && restarts > 0 {
				restarts--
				s.restart()
			}
		}
		if !plan.Done {
			return // something blocks the drain until its deadline
		}
		for _, a := range s.attachments {
			if since, held := s.usedUntil(a, all, begun); a.Node == here && !held {
				// A turn's time counts from the grace of its own pod, also if another pod shares the volume.
				require.GreaterOrEqual(t, s.now.Sub(since), s.policy.DetachTimeout-s.policy.TerminationBuffer-2*time.Second,
					"%s is attached, was used %s ago, and the drain is over: %s", a.Volume, s.now.Sub(since), plan.Why)
			}
		}
	})
}

// usedUntil returns when the last pod that used a volume was gone, at most the end of its grace. held reports that
// a pod which the drain leaves alone uses the volume.
func (s *shell) usedUntil(a *drain.Attachment, all []*pod, begun time.Time) (last time.Time, held bool) {
	last = begun
	for _, p := range all {
		if !slices.Contains(p.Claims, "claim-"+a.Volume) || p.Finished && !p.ended {
			continue
		}
		end := p.GraceEnds // the time to detach counts from here, also if the pod takes longer
		if !p.gone.IsZero() && p.gone.Before(end) {
			end = p.gone
		}
		held = held || untouchable(p) || p.stuck // the cluster does not detach a volume that a pod still uses
		if end.After(last) {
			last = end
		}
	}
	return last, held
}

// TestP51SharedVolumes: whether two pods that share a volume end at the same time or one after the other, the drain
// waits for the volume, and the forecast says so.
// Invariants: P51
func TestP51SharedVolumes(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Second, 20 * time.Second} {
		s := newShell(t)
		s.detachAfterPodEnd = 40 * time.Second
		s.add("a", s.volume("shared"))
		s.add("b", s.volume("shared"), func(p *pod) { p.lasts = 30*time.Second - apart })
		f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{Detach: s.detachAfterPodEnd}, s.now)
		require.NoError(t, err)
		plan := s.run(s.now.Add(time.Hour))
		require.True(t, plan.Done)
		assert.Empty(t, s.attachmentsHere())
		assert.InDelta(t, 70, s.now.Sub(epoch).Seconds(), 2, "%s apart", apart)
		assert.InDelta(t, 70, f.Took.Seconds(), 2, "%s apart", apart)
	}
}

func (c *cluster) attachmentsHere() (out []string) {
	for _, a := range c.attachments {
		if a.Node == here {
			out = append(out, a.Volume)
		}
	}
	return out
}
