package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// TestP8StrictQuotaStory: a failed machine's replacement waits until the failed
// one is gone.
func TestP8StrictQuotaStory(t *testing.T) {
	story(t, "strict-quota", 3, func(s *stage) {
		s.p.policy.StrictQuota = true
		s.settled()
		s.say("the second fails")
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.pass()
		s.after(time.Minute)
		s.say("it is gone")
		s.w.finish()
		s.after(time.Minute)
	})
}

// TestP8StrictQuota: for anything that happens to machines and to the set's size, no
// machine is made while there are as many as there should be, those being
// deleted among them; and the set comes to its size all the same.
func TestP8StrictQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(newSet(rapid.Int32Range(0, 6).Draw(t, "replicas")))
		p := newProcess(w, machineset.DefaultPolicy())
		p.policy.StrictQuota = true
		p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "cache") }
		most := w.set.Spec.Replicas // since a create may be on its way
		w.created = func(*machine.Machine) {
			require.LessOrEqual(t, len(w.machines), int(most), "P8: machines, with those being deleted")
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			names := names2(w.all())
			switch action := rapid.IntRange(0, 9).Draw(t, "action"); {
			case action < 6 || len(names) == 0:
				p.step()
			case action == 6:
				w.phase(rapid.SampledFrom(names).Draw(t, "failing"), machine.PhaseFailed)
			case action == 7:
				w.finish()
			case action == 8:
				w.phase(rapid.SampledFrom(names).Draw(t, "running"), machine.PhaseRunning)
			default:
				size := rapid.Int32Range(0, 6).Draw(t, "size")
				most = max(most, size)
				w.edit(func(s *machineset.Set) { s.Spec.Replicas = size })
			}
		}
		p.cached = nil
		p.die()
		for range 20 {
			require.True(t, p.run())
			w.finish()
			w.advance(10 * time.Minute)
		}
		require.Len(t, w.all(), int(w.set.Spec.Replicas))
	})
}
