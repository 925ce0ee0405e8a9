package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// plague is a world whose machines all fall ill at once; it remembers the most
// that were ever in replacement.
type plague struct {
	*world
	worst int
}

func newPlague(t tb, policy *safety.Policy) *plague {
	w := &plague{world: newWorld(t, drivertest.MemoryOptions{})}
	w.safety, w.bounded = policy, true
	return w
}

// healed looks at the fleet: how many machines are in replacement, and whether
// none of the first ones is left.
func (w *plague) healed(settled func() bool) func() bool {
	return func() bool {
		machines, err := w.machines.List(ctx, store.Query{})
		require.NoError(w.t, err)
		serving := 0
		for _, m := range machines {
			if !m.Deleted() && (m.Status.Phase == machine.PhaseRunning || m.Status.Phase == machine.PhaseUnknown) {
				serving++
			}
		}
		w.worst = max(w.worst, 3-serving)
		for _, m := range machines {
			if w.sick[m.Name] {
				return false
			}
		}
		return settled()
	}
}

// strike makes the nodes of all machines ill for good.
func (w *plague) strike() {
	w.sick = map[string]bool{}
	for _, key := range keysOf(w.machines) {
		w.sick[key.Name] = true
	}
	w.join()
}

func (w *plague) run(p *process, died func() *process) {
	w.fleet()
	p = w.until(p, w.settled(3), died)
	w.strike()
	w.until(p, w.healed(w.settled(3)), died)
}

// Without a budget all machines are marked failed together; with one, one
// by one, or two by two.
func TestReplacementsStayWithinTheBudget(t *testing.T) {
	for want, policy := range map[int]*safety.Policy{3: nil, 1: safety.DefaultPolicy(), 2: safety.DefaultPolicy()} {
		if policy != nil {
			policy.Replacements = rollout.IntOrPercent{Value: int32(want)}
		}
		w := newPlague(t, policy)
		w.run(w.start(&testkit.Fuse{}, false), unexpected(t))
		require.Equal(t, want, w.worst, w.story)
		require.Len(t, w.made, 6)
	}
}

// P24: killed at any call, and followed by a fresh process, no more are in
// replacement, and all are healed in the end.
func TestP24BudgetKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	policy := safety.DefaultPolicy()
	policy.CheckPeriod, policy.OrphanPeriod = time.Hour, time.Hour // another test's subject
	undisturbed := newPlague(t, policy)
	undisturbed.run(undisturbed.start(total, false), unexpected(t))
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total.Calls, 7) {
			w := newPlague(t, policy)
			w.run(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: after}, false), func() *process { return w.start(&testkit.Fuse{}, false) })
			require.LessOrEqual(t, w.worst, 1, "call %d, after %t", n, after)
		}
	}
}

// A set without a deployment keeps its own budget; in a zone of which most
// machines are Unknown, none is replaced; and a refusal is told.
func TestBudgetOfALoneSetAndOfAZone(t *testing.T) {
	policy := safety.DefaultPolicy()
	policy.ZoneRule = true
	w := newPlague(t, policy)
	labels := map[string]string{"app": "web"}
	s := &machineset.Set{Meta: object.Meta{Key: fleetKey}}
	s.Spec = machineset.Spec{Replicas: 3, Selector: object.Selector{Labels: labels}}
	s.Spec.Template = machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	_, err := w.sets.Create(ctx, s)
	require.NoError(t, err)
	running := func() bool {
		return w.provider.Count() == 3 && len(w.made) >= 3 && w.phases()[machine.PhaseRunning] == 3
	}
	p := w.until(w.start(&testkit.Fuse{}, false), running, unexpected(t))

	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	require.NoError(t, err)
	class = class.Clone()
	class.NodeTemplate = &machine.NodeShape{Zone: "zone-1"}
	_, err = w.classes.Update(ctx, class)
	require.NoError(t, err)
	w.strike()
	begun := w.at
	w.until(p, func() bool { return w.at.Sub(begun) > time.Hour }, unexpected(t))
	require.Equal(t, 3, w.phases()[machine.PhaseUnknown], "the zone fails")
	require.Contains(t, fmt.Sprint(w.story), "3 of 3 machines in zone zone-1 are Unknown")

	policy.ZoneRule = false
	w.until(p, w.healed(running), unexpected(t))
	require.Equal(t, 1, w.worst)
	require.Len(t, w.made, 6)
}

// P24: whenever in one machine's pass another's is made, by another process,
// one of the two is marked failed, and the other is not.
func TestP24TwoAskAtTheSameTime(t *testing.T) {
	disturbed := true
	for at := 1; disturbed; at++ {
		w := newPlague(t, nil)
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
		w.strike()
		w.until(p, func() bool { return w.phases()[machine.PhaseUnknown] == 3 }, unexpected(t))
		w.at = w.at.Add(time.Hour)
		w.safety = safety.DefaultPolicy()
		keys := keysOf(w.machines)
		first, second := &testkit.Fuse{}, w.start(&testkit.Fuse{}, false)
		p = w.start(first, false)
		require.NoError(t, second.lookAt(manager.KindReachability))
		require.NoError(t, p.lookAt(manager.KindReachability))
		for _, one := range []*process{p, second} { // begins to watch
			_, err := one.Reconcilers()[0].Reconcile(ctx, keys[2])
			require.NoError(t, err)
		}
		w.at = w.at.Add(machine.DefaultPolicy().Grace)
		first.Calls, disturbed = 0, false
		first.Before = func(call int) {
			if call == at {
				disturbed = true
				_, err := second.Reconcilers()[0].Reconcile(ctx, keys[1])
				require.NoError(t, err)
			}
		}
		_, err := p.Reconcilers()[0].Reconcile(ctx, keys[0])
		require.NoError(t, err)
		require.Equal(t, 1, w.phases()[machine.PhaseFailed], "at call %d", at)
	}
}

func (w *world) phases() map[machine.Phase]int {
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(w.t, err)
	out := map[machine.Phase]int{}
	for _, m := range machines {
		out[m.Status.Phase]++
	}
	return out
}
