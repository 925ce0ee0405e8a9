package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
)

// steps has a process look at everything every five seconds, until a time or for as
// long as wanted.
func (w *world) steps(p *process, until time.Time, wanted func() bool) {
	for w.at.Before(until) && wanted() {
		w.round(p)
		w.join()
		w.at = w.at.Add(5 * time.Second)
	}
}

func always() bool { return true }

// TestFreshManagerGivesTime: a manager that was away for longer than every timeout,
// with the cluster, marks no machine failed: one that comes within the grace is kept, and
// one that does not is replaced after it. Nothing is written meanwhile.
func TestFreshManagerGivesTime(t *testing.T) {
	for name, policy := range map[string]*safety.Policy{"guarded": safety.DefaultPolicy(), "without a safety policy": nil} {
		t.Run(name, func(t *testing.T) {
			w := guardedWorld(t)
			w.safety = policy
			w.fleet()
			w.mute = func(string) bool { return true }
			p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.provider.Count() == 3 && w.phases()[machine.PhasePending] == 3 }, unexpected(t))
			w.until(p, w.lasts(10*time.Second), unexpected(t))

			w.at = w.at.Add(40 * time.Minute)
			vms, writes, began := w.provider.VMs(), w.writes, w.at
			p = w.start(&testkit.Fuse{}, false)
			w.steps(p, began.Add(time.Minute), always)
			require.Equal(t, map[machine.Phase]int{machine.PhasePending: 3}, w.phases())
			require.Equal(t, writes, w.writes)
			w.mute = func(vm string) bool { return vm == vms[0].Name }
			w.join()
			w.steps(p, began.Add(time.Minute+10*time.Second), always)
			require.Equal(t, 1, w.lost)
			w.mute = nil
			w.until(p, w.settled(3), unexpected(t))
			require.Equal(t, 1, w.lost)
			require.Len(t, w.made, 4)
			require.False(t, w.there(vms[0].ID))
			require.True(t, w.there(vms[1].ID) && w.there(vms[2].ID))
		})
	}
}

// TestRestartedEveryQuarterOfAnHour: managers that live for 15 minutes each give a
// broken machine up within its timeout and one grace, whether its node never
// joined or fell ill.
func TestRestartedEveryQuarterOfAnHour(t *testing.T) {
	policy := machine.DefaultPolicy()
	for offset := time.Duration(0); offset < 15*time.Minute; offset += 50 * time.Second {
		for _, joins := range []bool{true, false} {
			w := guardedWorld(t)
			w.fleet()
			timeout := policy.HealthTimeout
			if !joins {
				timeout = policy.CreationTimeout
				w.mute = func(vm string) bool { return vm == w.provider.VMs()[0].Name }
			}
			p := w.start(&testkit.Fuse{}, false)
			next, began := w.at.Add(offset), w.at
			if joins {
				p = w.until(p, w.settled(3), unexpected(t))
				w.sick = map[string]bool{w.provider.VMs()[0].Name: true}
				w.join()
				next, began = w.at.Add(offset), w.at
			}
			for w.lost == 0 {
				w.steps(p, next, func() bool { return w.lost == 0 })
				p, next = w.start(&testkit.Fuse{}, false), w.at.Add(15*time.Minute)
			}
			require.LessOrEqual(t, w.at.Sub(began), timeout+policy.Grace+10*time.Second, "offset %s, joins %t", offset, joins)
		}
	}
}
