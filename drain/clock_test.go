package drain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
)

// anySkew returns how far a process's clock is ahead of the cluster's.
func anySkew(t *rapid.T) time.Duration {
	seconds := rapid.OneOf(rapid.SampledFrom([]int{0, -3600, -95, 31, 85, 95, 300, 3600}), rapid.IntRange(-3600, 3600))
	return time.Duration(seconds.Draw(t, "skew")) * time.Second
}

// P50: no pod loses its grace because the clock of the process and that of the cluster differ, by up
// to an hour. That holds if this drain told the pod to go or another program did, and if the next
// process has another clock.
func TestP50GraceByAnyClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		s.policy.Timeout = 6 * time.Hour // by the clock of the process that began the drain
		s.skew = anySkew(t)
		s.restart()
		for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
			p := s.add(fmt.Sprintf("p-%d", i), func(p *pod) {
				p.Grace = time.Duration(rapid.IntRange(0, 600).Draw(t, "grace")) * time.Second
				p.lasts = time.Duration(rapid.IntRange(0, int(p.Grace/time.Second)).Draw(t, "lasts")) * time.Second
				p.stuck = rapid.IntRange(0, 4).Draw(t, "stuck") == 0
			})
			switch rapid.IntRange(0, 3).Draw(t, "told by others") {
			case 0:
				s.tell(p, p.Grace)
			case 1:
				s.at(time.Duration(rapid.IntRange(1, 60).Draw(t, "after"))*time.Second, func() {
					if p.ends.IsZero() {
						s.tell(p, p.Grace)
					}
				})
			}
		}
		restarts := rapid.IntRange(0, 3).Draw(t, "restarts")
		begun := s.now
		plan, _ := s.pass()
		for !plan.Done {
			until := s.now.Add(2 * time.Hour)
			if restarts > 0 {
				until = s.now.Add(time.Duration(rapid.IntRange(1, 700).Draw(t, "lives")) * time.Second)
			}
			if plan = s.run(until); !plan.Done && restarts > 0 {
				restarts--
				s.skew = anySkew(t)
				s.restart()
			}
			require.Less(t, s.now.Sub(begun), 4*time.Hour, "the drain takes no end: %s", plan.Why)
		}
		for _, p := range s.pods {
			require.False(t, s.now.Before(p.ends), "%s is there, has %s of its grace left, and the drain is over: %s",
				p.Name, p.ends.Sub(s.now), plan.Why)
		}
	})
}

// A pod that never goes is waited for once more by each process that finds it past its grace, and
// by no clock for longer than an hour more.
func TestP50StuckPodsEndByAnyClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, -time.Minute, 0, time.Minute, time.Hour} {
		s := newShell(t)
		s.skew = skew
		s.restart()
		s.add("stuck", func(p *pod) { p.stuck = true })
		begun := s.now
		plan := s.run(s.now.Add(2 * time.Hour))
		require.True(t, plan.Done)
		require.Equal(t, drain.ReasonOverdue, plan.Blocked[0].Why.Reason)
		require.InDelta(t, (time.Minute + max(-skew, 0)).Seconds(), s.now.Sub(begun).Seconds(), 2, "clock %s ahead", skew)
	}
}
