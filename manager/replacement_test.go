package manager_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
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

// illFleet is a world whose machines all become unhealthy at once. It records the most that were in replacement at a
// time.
type illFleet struct {
	*world
	worst int
}

func newIllFleet(t tb, policy *safety.Policy) *illFleet {
	w := &illFleet{world: newWorld(t, drivertest.MemoryOptions{})}
	w.safety, w.bounded = policy, true
	return w
}

// healed returns whether none of the first machines is left and the fleet has settled. It also counts the machines
// in replacement.
func (w *illFleet) healed(settled func() bool) func() bool {
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

// strike makes the nodes of all machines unhealthy for good.
func (w *illFleet) strike() {
	w.sick = map[string]bool{}
	for _, key := range keysOf(w.machines) {
		w.sick[key.Name] = true
	}
	w.join()
}

func (w *illFleet) run(p *process, died func() *process) {
	w.fleet()
	p = w.until(p, w.settled(3), died)
	w.strike()
	w.until(p, w.healed(w.settled(3)), died)
}

// TestReplacementsStayWithinTheBudget: without a budget all machines are marked failed together; with one, one by
// one, or two by two.
func TestReplacementsStayWithinTheBudget(t *testing.T) {
	for want, policy := range map[int]*safety.Policy{3: nil, 1: safety.DefaultPolicy(), 2: safety.DefaultPolicy()} {
		if policy != nil {
			policy.Replacements = rollout.IntOrPercent{Value: int32(want)}
		}
		w := newIllFleet(t, policy)
		w.run(w.start(&testkit.Fuse{}, false), neverDies(t))
		require.Equal(t, want, w.worst, w.events)
		require.Len(t, w.made, 6)
	}
}

// TestP24BudgetKilledAnywhere: the process is killed at any call, and a new one follows. No more machines are in
// replacement than without the kill, and all are replaced in the end.
// Invariants: P24
func TestP24BudgetKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	policy := safety.DefaultPolicy()
	policy.CheckPeriod, policy.OrphanPeriod = time.Hour, time.Hour // another test's subject
	undisturbed := newIllFleet(t, policy)
	undisturbed.run(undisturbed.start(total, false), neverDies(t))
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total.Calls, 7) {
			w := newIllFleet(t, policy)
			w.run(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: after}, false), func() *process { return w.start(&testkit.Fuse{}, false) })
			require.LessOrEqual(t, w.worst, 1, "call %d, after %t", n, after)
		}
	}
}

// TestBudgetOfALoneSetAndOfAZone: a set without a deployment has its own budget. In a zone in which most machines
// are Unknown, none is replaced. A refusal is reported.
func TestBudgetOfALoneSetAndOfAZone(t *testing.T) {
	policy := safety.DefaultPolicy()
	policy.ZoneRule = true
	w := newIllFleet(t, policy)
	labels := map[string]string{"app": "web"}
	s := &machineset.Set{Meta: object.Meta{Key: fleetKey}}
	s.Spec = machineset.Spec{Replicas: 3, Selector: object.Selector{Labels: labels}}
	s.Spec.Template = machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	_, err := w.sets.Create(ctx, s)
	require.NoError(t, err)
	running := func() bool {
		return w.provider.Count() == 3 && len(w.made) >= 3 && w.phases()[machine.PhaseRunning] == 3
	}
	p := w.until(w.start(&testkit.Fuse{}, false), running, neverDies(t))

	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	require.NoError(t, err)
	class = class.Clone()
	class.NodeTemplate = &machine.NodeShape{Zone: "zone-1"}
	_, err = w.classes.Update(ctx, class)
	require.NoError(t, err)
	w.strike()
	begun := w.at
	w.until(p, func() bool { return w.at.Sub(begun) > time.Hour }, neverDies(t))
	require.Equal(t, 3, w.phases()[machine.PhaseUnknown], "the zone fails")
	require.Contains(t, fmt.Sprint(w.events), "3 of 3 machines in zone zone-1 are Unknown")

	policy.ZoneRule = false
	w.until(p, w.healed(running), neverDies(t))
	require.Equal(t, 1, w.worst)
	require.Len(t, w.made, 6)
}

// TestP24TwoAskAtTheSameTime: at any point of one machine's pass, another process makes the pass of another
// machine. Only one of the two machines is marked failed.
// Invariants: P24
func TestP24TwoAskAtTheSameTime(t *testing.T) {
	disturbed := true
	for at := 1; disturbed; at++ {
		w := newIllFleet(t, nil)
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		w.strike()
		w.until(p, func() bool { return w.phases()[machine.PhaseUnknown] == 3 }, neverDies(t))
		w.at = w.at.Add(time.Hour)
		w.safety = safety.DefaultPolicy()
		keys := keysOf(w.machines)
		first, second := &testkit.Fuse{}, w.start(&testkit.Fuse{}, false)
		p = w.start(first, false)
		require.NoError(t, second.lookAt(manager.KindReachability))
		require.NoError(t, p.lookAt(manager.KindReachability))
		for _, one := range []*process{p, second} { // both begin to watch
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

// replaced returns whether n machines run, none of them of these names, and no set may differ from its size any
// more.
func (w *world) replaced(n int, gone ...object.Key) func() bool {
	return func() bool {
		for _, key := range gone {
			if _, err := w.machines.Get(ctx, key); err == nil {
				return false
			}
		}
		for _, key := range keysOf(w.sets) {
			if set, err := w.sets.Get(ctx, key); err != nil || set.Instructions.SurgeAllowance != (machineset.SurgeAllowance{}) {
				return false
			}
		}
		return w.settled(n)()
	}
}

// TestReplace: two machines of three are replaced on request, within the bounds, wherever the manager dies.
func TestReplace(t *testing.T) {
	for n := 0; n < 400; n += 3 {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.bounded = true
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		keys := keysOf(w.machines)[1:]
		for _, key := range keys {
			require.NoError(t, p.Replace(ctx, key))
			before := w.written[reflect.TypeFor[*machine.Machine]()]
			require.NoError(t, p.Replace(ctx, key), "asked again")
			require.Equal(t, before, w.written[reflect.TypeFor[*machine.Machine]()])
		}
		died := n == 0
		w.until(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, false), w.replaced(3, keys...), func() *process {
			died = true
			return w.start(&testkit.Fuse{}, false)
		})
		require.Len(t, w.made, 5, "killed at call %d\n%s", n, w.dump())
		if !died {
			return
		}
	}
	t.Fatal("a replacement takes no end")
}

// TestReplaceWaitsForTheRollout: during a rollout, or while paused, no machine is made for a request. Without a
// surge, a machine is deleted first.
func TestReplaceWaitsForTheRollout(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	w.change(func(d *deployment.Deployment) {
		d.Spec.Paused = true
		d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 0, 1
	})
	w.change(func(d *deployment.Deployment) { d.Spec.Paused = false })
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.change(func(d *deployment.Deployment) { d.Spec.Paused = true })
	key := keysOf(w.machines)[0]
	require.NoError(t, p.Replace(ctx, key))
	for range 10 {
		w.round(p)
		w.join()
	}
	require.Len(t, w.made, 3, "paused")
	w.change(func(d *deployment.Deployment) { d.Spec.Paused = false })
	w.until(p, w.replaced(3, key), neverDies(t))
	require.Len(t, w.made, 4)
}

// TestReplaceRefuses: a request that no set would carry out is refused.
func TestReplaceRefuses(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	require.ErrorIs(t, p.Replace(ctx, object.Key{Name: "nobody"}), store.ErrNotFound)
	lone := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "lone"}, Finalizers: []string{"x"}}}
	lone.Spec.Class.Name = "small"
	_, err := w.machines.Create(ctx, lone)
	require.NoError(t, err)
	require.ErrorIs(t, p.Replace(ctx, lone.Key), manager.ErrNoOwner)
	require.NoError(t, w.machines.Delete(ctx, lone.Key, ""))
	require.ErrorIs(t, p.Replace(ctx, lone.Key), manager.ErrDeleting)
}
