package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
)

// twoDatabases is a drain in which db-1 was told to go and db-2 waits.
func twoDatabases(t *testing.T) (s *shell, first, second *pod) {
	s = newShell(t)
	s.now = epoch.Truncate(time.Second)
	s.detach, s.reattach = 10*time.Second, -1
	first, second = s.add("db-1", s.volume("vol-1")), s.add("db-2", s.volume("vol-2"))
	s.look()
	require.Equal(t, first.UID, s.node.Drain.Turn.UID)
	return s, first, second
}

// A volume has arrived when it is attached to another node. It has not if that is only wanted, or
// if it has come back here.
func TestWhereVolumesArrive(t *testing.T) {
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
		s.look()
		assert.Equal(t, a.arrived, !second.ends.IsZero(), what)
	}
}

// A turn ends if its eviction had no effect, and the pod is tried again.
func TestTurnOfAPodThatStays(t *testing.T) {
	s, first, _ := twoDatabases(t)
	first.GraceEnds, first.ends, s.events = time.Time{}, time.Time{}, nil
	s.advance(s.now.Add(59 * time.Second))
	s.look()
	assert.True(t, first.ends.IsZero())
	s.advance(s.now.Add(time.Second))
	s.look()
	assert.False(t, first.ends.IsZero(), "grace and 30s are over: evicted again")
}

// Another program tells pods to go, and they outlast their turns. Each of their turns is recorded
// once, also if they were told in the same second.
func TestTurnsDoNotReplaceEachOtherForEver(t *testing.T) {
	for _, apart := range []time.Duration{0, 3 * time.Second} {
		s := newShell(t)
		s.policy.DetachTimeout = time.Second
		for _, name := range []string{"c", "b", "a"} {
			p := s.add(name, s.volume("vol-"+name), func(p *pod) { p.stuck = true })
			s.tell(p, p.Grace)
			s.advance(s.now.Add(apart))
		}
		s.advance(s.now.Add(40 * time.Second))
		s.look() // which fails if it does not end
		assert.LessOrEqual(t, s.writes, 1+3)
		writes := s.writes
		s.advance(s.now.Add(time.Second))
		s.look()
		assert.Equal(t, writes, s.writes)
	}
}

// A pod that somebody gave another grace has its turn for that long. The next pod waits.
func TestPodsWithAnotherGrace(t *testing.T) {
	s := newShell(t)
	first, second := s.add("db-1", s.volume("vol-1")), s.add("db-2", s.volume("vol-2"))
	first.lasts = 10 * time.Minute
	first.Grace = 10 * time.Minute
	s.tell(first, first.Grace)
	s.look()
	assert.Equal(t, first.UID, s.node.Drain.Turn.UID)
	s.run(s.now.Add(599 * time.Second))
	assert.True(t, second.ends.IsZero(), "one at a time")
	s.run(s.now.Add(time.Minute))
	assert.False(t, second.ends.IsZero())
}

// A pod may be told to go before all its volumes are attached. The drain also waits for those that
// come while the pod is there, and not for one that never comes (P22).
func TestVolumesThatComeLate(t *testing.T) {
	s := newShell(t)
	s.detach = time.Hour
	pod := s.add("db-1", s.volume("vol-1", "vol-2", "vol-3"))
	late := s.attachments[1]
	s.attachments = s.attachments[:1]
	s.look()
	require.Equal(t, pod.UID, s.node.Drain.Turn.UID)
	require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
	s.attachments = append(s.attachments, late)
	s.look()
	require.Equal(t, []string{"vol-1", "vol-2"}, s.node.Drain.Turn.Volumes)
	writes := s.writes
	s.attachments = s.attachments[1:]
	plan := s.run(s.now.Add(time.Minute))
	require.False(t, plan.Done)
	require.Equal(t, drain.ReasonDetaching, plan.Why.Reason)
	require.Equal(t, "vol-2", plan.Why.Name)
	require.Equal(t, writes, s.writes)
}

// A volume may come, and the pod finish, between two looks. The kubelet keeps a finished pod's
// volumes until it has cleaned up, so the drain waits for that volume too (P22).
func TestVolumesThatComeBeforeTheEndIsSeen(t *testing.T) {
	s := newShell(t)
	s.detach = time.Hour
	pod := s.add("db-1", s.volume("vol-1", "vol-2"), func(p *pod) { p.stays = time.Hour })
	late := s.attachments[1]
	s.attachments = s.attachments[:1]
	s.look()
	require.Equal(t, []string{"vol-1"}, s.node.Drain.Turn.Volumes)
	s.attachments = append(s.attachments, late)
	s.advance(s.now.Add(31 * time.Second))
	require.True(t, pod.Finished)
	s.look()
	require.Equal(t, []string{"vol-1", "vol-2"}, s.node.Drain.Turn.Volumes)
	s.attachments = s.attachments[1:]
	plan := s.run(s.now.Add(time.Minute))
	require.False(t, plan.Done)
	require.Equal(t, "vol-2", plan.Why.Name)
}

// A process may die after it has told the last pod to go, and before it stores its record. The next
// process waits for the volume that it finds, as long as a turn would, and for no volume whose user
// stays (P22).
func TestTurnThatWasNeverStored(t *testing.T) {
	orphaned := func(detach time.Duration) *shell {
		s := newShell(t)
		s.detach = detach
		s.add("db-1", s.volume("vol-1"))
		s.look()
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
	require.True(t, s.run(plan.At).Done, "it had its time")

	s = orphaned(time.Minute)
	s.restart()
	require.False(t, s.run(s.now).Done)
	require.True(t, s.run(s.now.Add(time.Minute)).Done, "it is gone")

	s = orphaned(time.Hour)
	s.restart()
	s.add("logs", s.volume("vol-2"), func(p *pod) { p.Owner.Kind = drain.DaemonSet })
	s.attachments = s.attachments[1:]
	require.True(t, s.run(s.now).Done, "its user stays")
}

// In a forecast, as in a drain, the last pod with a volume may have finished and still be there.
func TestForecastOfAFinishedPodWithAVolume(t *testing.T) {
	s := newShell(t)
	s.add("db-1", s.volume("vol-1"), func(p *pod) { p.stays = time.Hour })
	s.look()
	s.advance(s.now.Add(31 * time.Second))
	require.NotEmpty(t, s.node.Drain.Turn.UID)
	require.True(t, s.pods[0].Finished)
	f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
	require.NoError(t, err)
	require.True(t, f.Done)
	require.Empty(t, f.Left)
}
