package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
)

// patience is a deletion whose waits are watched: hooks and pods that stay until they are forced.
type patience struct {
	*world
	preDrain, preTerminate string
	vmGone                 time.Time // when the VM went
	forced                 time.Time // when the drain was first told to use force
	polite                 time.Time // when it was first told not to
}

func newPatience(t require.TestingT) *patience {
	p := &patience{world: newWorld(t)}
	p.running()
	p.drains(0, 0, 1)
	p.preDrain, p.preTerminate = p.policy.Keys.PreDrainHook+"backup", p.policy.Keys.PreTerminateHook+"wipe"
	return p
}

// hook puts a hook on, or takes it off, as another program does.
func (p *patience) hook(name string, on bool) {
	m := p.store.live()
	if m == nil {
		return
	}
	if _, there := m.Annotations[name]; there == on {
		return
	}
	p.edit(func(m *machine.Machine) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[name] = ""
		if !on {
			delete(m.Annotations, name)
		}
	})
}

// pass makes one pass, by a fresh process if it is killed in it, and notes what has happened.
func (p *patience) passOnce(s *shell) (next time.Time) {
	plan, _, err := s.reconcile()
	if !errors.Is(err, errConflict) && !errors.Is(err, errKilled) {
		require.NoError(p.t, err)
	}
	for _, order := range p.cluster.drain.asked {
		if order.Forced && p.forced.IsZero() {
			p.forced = p.now
		}
		if !order.Forced && p.polite.IsZero() {
			p.polite = p.now
		}
	}
	if len(p.provider.vms) == 0 && p.vmGone.IsZero() {
		p.vmGone = p.now
	}
	if errors.Is(err, errKilled) {
		*s = shell{w: p.world}
		return p.now
	}
	return plan.At
}

// until makes passes until a time, or until the machine is gone.
func (p *patience) passUntil(s *shell, end time.Time) {
	for range 1000 {
		next := p.passOnce(s)
		if p.store.live() == nil {
			return
		}
		if next.IsZero() || next.After(end) {
			p.now = end
			return
		}
		p.now = next
	}
	require.Fail(p.t, "no end")
}

// A hook before the drain leaves the drain its whole time, however long it held.
// Invariants: P21 P66
func TestP21HookLeavesTheDrainItsTime(t *testing.T) {
	for _, held := range []time.Duration{time.Minute, 110 * time.Minute, 119*time.Minute + 59*time.Second, 3 * time.Hour} {
		p := newPatience(t)
		p.hook(p.preDrain, true)
		p.store.remove()
		begun, s := p.now, &shell{w: p.world}
		p.passUntil(s, begun.Add(held))
		p.hook(p.preDrain, false)
		p.passUntil(s, begun.Add(100*time.Hour))
		drain := begun.Add(min(held, p.policy.HookTimeout))
		assert.WithinDuration(t, drain, p.polite, 2*time.Second, "held for %s", held)
		assert.WithinDuration(t, drain.Add(p.policy.DrainTimeout), p.forced, 3*time.Second, "held for %s", held)
	}
}

// A drain that was forced leaves the hook before the VM's deletion its whole time.
// Invariants: P21
func TestP21ForcedDrainLeavesTheHookItsTime(t *testing.T) {
	p := newPatience(t)
	p.hook(p.preTerminate, true)
	p.store.remove()
	begun := p.now
	p.passUntil(&shell{w: p.world}, begun.Add(100*time.Hour))
	assert.WithinDuration(t, begun.Add(p.policy.DrainTimeout), p.forced, 2*time.Second)
	assert.WithinDuration(t, p.forced.Add(p.policy.HookTimeout), p.vmGone, 2*time.Second)
}

// P21: each wait of a deletion counts from its own beginning, which is stored, through kills and
// hooks that come and go; and all of them together are bounded.
// Invariants: P21
func TestP21EachWaitHasItsOwnTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPatience(t)
		minutes := func(most int, what string) time.Duration {
			return time.Duration(rapid.IntRange(1, most).Draw(t, what)) * time.Minute
		}
		hooks, drains := minutes(180, "hook timeout"), minutes(180, "drain timeout")
		p.policy.HookTimeout, p.policy.DrainTimeout = hooks, drains
		p.hook(p.preTerminate, rapid.Bool().Draw(t, "hooked before the VM goes"))
		p.store.remove()
		begun, s := p.now, &shell{w: p.world}
		first, free, on := time.Time{}, p.now, false // since when hooks hold, when they hold no more, whether one is on
		for range 8 {
			if rapid.Bool().Draw(t, "hook") {
				if on = !on; on && first.IsZero() {
					first = p.now
				}
				p.hook(p.preDrain, on)
				switch end := first.Add(hooks); {
				case on && p.now.Before(end):
					free = end
				case !on && p.now.Before(end):
					free = p.now
				}
			}
			if rapid.Bool().Draw(t, "killed") {
				p.killAt, p.after = p.calls+rapid.IntRange(1, 12).Draw(t, "at"), rapid.Bool().Draw(t, "after it")
			}
			p.passUntil(s, p.now.Add(minutes(120, "later")))
			if p.store.live() == nil || !p.forced.IsZero() {
				break
			}
		}
		bound := 2*hooks + 2*drains + p.policy.DetachTimeout + 2*time.Minute
		p.passUntil(s, begun.Add(bound))
		require.Nil(t, p.store.live(), "after %s", bound)
		require.GreaterOrEqual(t, p.forced.Sub(free), drains, "the drain's time after the hooks")
		if _, hooked := p.store.cached(1).Annotations[p.preTerminate]; hooked {
			require.GreaterOrEqual(t, p.vmGone.Sub(p.forced), hooks, "the time of the hook before the VM goes")
		}
	})
}
