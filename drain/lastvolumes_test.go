package drain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
)

// P51: a drain after which the VM goes ends with a volume attached only if a pod that is left alone
// holds it, or the volume has had the time of a detachment since its last user was gone: of pods with
// turns, of pods that share volumes, and volumes that no pod here ever used.
func TestP51VolumesAreWaitedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		for i := range rapid.IntRange(0, 2).Draw(t, "volumes of nobody") {
			name := fmt.Sprint("nobody-", i)
			s.attachments = append(s.attachments, &drain.Attachment{Name: name, Volume: name, Node: here, Attached: true})
			s.at(time.Duration(rapid.IntRange(0, 300).Draw(t, "detached after"))*time.Second, func() { s.move(name) })
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
			return // something blocks it until its time is over
		}
		for _, a := range s.attachments {
			if since, held := s.usedUntil(a, all, begun); a.Node == here && !held {
				// A turn counts from its own pod's grace, and another pod may share the volume.
				require.GreaterOrEqual(t, s.now.Sub(since), s.policy.DetachTimeout-s.policy.TerminationBuffer-2*time.Second,
					"%s is attached, was used %s ago, and the drain is over: %s", a.Volume, s.now.Sub(since), plan.Why)
			}
		}
	})
}

// usedUntil returns when the last pod ended, or its grace, that used a volume. held: one that is left alone does.
func (s *shell) usedUntil(a *drain.Attachment, all []*pod, begun time.Time) (last time.Time, held bool) {
	last = begun
	for _, p := range all {
		if !slices.Contains(p.Claims, "claim-"+a.Volume) || p.Finished && !p.ended {
			continue
		}
		end := p.GraceEnds // what it takes longer is not the volume's
		if !p.gone.IsZero() && p.gone.Before(end) {
			end = p.gone
		}
		held = held || untouchable(p) || p.stuck // the cluster detaches nothing that a pod still has
		if end.After(last) {
			last = end
		}
	}
	return last, held
}

// P51: whether two pods that share a volume go at the same time or one after the other, the drain
// waits for it, and the forecast says so.
func TestP51SharedVolumes(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Second, 20 * time.Second} {
		s := newShell(t)
		s.detach = 40 * time.Second
		s.add("a", s.volume("shared"))
		s.add("b", s.volume("shared"), func(p *pod) { p.lasts = 30*time.Second - apart })
		f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{Detach: s.detach}, s.now)
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
