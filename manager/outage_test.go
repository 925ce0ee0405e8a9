package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// lasts returns a goal that is reached after a while.
func (w *world) lasts(d time.Duration) func() bool {
	end := w.at.Add(d)
	return func() bool { return !w.at.Before(end) }
}

// fleetWithoutHealth returns a fleet of three whose nodes have all just become unhealthy, with a budget that would
// let all be marked failed.
func fleetWithoutHealth(t tb) (*world, *process) {
	w := guardedWorld(t)
	w.safety.Replacements.Value = 3
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.sick = map[string]bool{}
	for _, key := range keysOf(w.machines) {
		w.sick[key.Name] = true
	}
	w.join()
	return w, w.until(p, func() bool { return w.phases()[machine.PhaseUnknown] == 3 }, neverDies(t))
}

// heal makes all nodes healthy.
func (w *world) heal() {
	w.sick = nil
	for _, key := range keysOf(w.nodes) {
		node, err := w.nodes.Get(ctx, key)
		require.NoError(w.t, err)
		w.ready(node, object.True)
	}
}

// TestP25OutageOfTheTarget: while nodes can't be read no machine is marked failed, none is created, and deletions
// go on. Then every clock starts again.
// Invariants: P25
func TestP25OutageOfTheTarget(t *testing.T) {
	w, p := fleetWithoutHealth(t)
	w.targetDown = true
	p = w.until(p, w.lasts(2*time.Minute), neverDies(t)) // it is noticed
	require.Equal(t, 1, w.countEvents("Unreachable: frozen: the target cluster's API server has not answered"))
	first, lists := keysOf(w.machines)[0], count(w, codes.ListMachines)
	require.NoError(t, w.machines.Delete(ctx, first, ""))
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 5 })
	p = w.until(p, w.lasts(15*time.Minute), neverDies(t))
	require.Equal(t, map[machine.Phase]int{machine.PhaseUnknown: 2, machine.PhaseTerminating: 1}, w.phases())
	require.Equal(t, 3, count(w, codes.CreateMachine))
	require.Zero(t, w.lost)
	require.Equal(t, lists, count(w, codes.ListMachines), "no orphan is looked for")
	require.Equal(t, 1, w.countEvents("Unreachable: "), "reported once")
	sets, err := w.sets.List(ctx, store.Query{})
	require.NoError(t, err)
	require.NotNil(t, object.FindCondition(sets[0].Status.Conditions, "Frozen"))

	w.targetDown = false
	back := w.at
	p = w.until(p, w.lasts(30*time.Second), neverDies(t))
	require.Equal(t, 2, w.countEvents("ClockRestarted: "))
	p = w.until(p, w.lasts(9*time.Minute), neverDies(t))
	require.Equal(t, 1, w.countEvents("Reachable: both API servers answer"))
	require.Zero(t, w.lost, "the health timeout starts again")
	require.Len(t, keysOf(w.machines), 5)
	p = w.until(p, func() bool { return w.lost == 2 }, neverDies(t))
	require.GreaterOrEqual(t, w.at.Sub(back), 10*time.Minute)
	w.until(p, w.settled(5), neverDies(t))
}

// TestP25OutageOfARollout: a machine of a rollout can't join while nodes can't be read. The rollout does not fail
// for the time of the outage, and gets its whole deadline after it, even from a manager that has just started.
// Invariants: P25
func TestP25OutageOfARollout(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		w := guardedWorld(t)
		w.fleet()
		w.change(func(d *deployment.Deployment) { d.Spec.ProgressDeadline = 10 * time.Minute })
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		w.neverJoins = func(string) bool { return true }
		w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
		p = w.until(p, func() bool { return w.phases()[machine.PhasePending] > 0 }, neverDies(t))
		progressing := func() string {
			return w.condition(fleetKey.Name, deployment.ConditionProgressing).Reason
		}
		w.targetDown = true
		p = w.until(p, w.lasts(15*time.Minute), neverDies(t))
		require.NotEqual(t, deployment.ProgressDeadlineExceeded, progressing())
		w.targetDown = false
		p = w.until(p, w.lasts(time.Minute), neverDies(t))
		if restarted {
			p = w.start(&testkit.Fuse{}, false)
		}
		p = w.until(p, w.lasts(8*time.Minute), neverDies(t))
		require.NotEqual(t, deployment.ProgressDeadlineExceeded, progressing())
		w.until(p, func() bool { return progressing() == deployment.ProgressDeadlineExceeded }, neverDies(t))
	}
}

// TestP25OutageOfTheControlPlane: nothing can be written during the outage, and later no machine is marked failed
// for it. Short outages are ignored.
// Invariants: P25
func TestP25OutageOfTheControlPlane(t *testing.T) {
	w, p := fleetWithoutHealth(t)
	w.controlDown = true
	p = w.until(p, w.lasts(20*time.Second), neverDies(t))
	w.controlDown = false
	p = w.until(p, w.lasts(2*time.Minute), neverDies(t))
	require.Zero(t, w.countEvents("Unreachable: "))

	w.controlDown = true
	p = w.until(p, w.lasts(15*time.Minute), neverDies(t))
	w.controlDown = false
	w.heal()
	p = w.until(p, w.lasts(5*time.Minute), neverDies(t))
	require.Equal(t, map[machine.Phase]int{machine.PhaseRunning: 3}, w.phases())
	require.Zero(t, w.lost)
	require.Equal(t, 3, w.countEvents("ClockRestarted: "))
	require.Equal(t, 1, w.countEvents("Unreachable: frozen: the control plane's API server has not answered"))

	w.controlDown = true
	p = w.until(p, w.lasts(15*time.Minute), neverDies(t))
	w.controlDown = false
	w.until(p, w.lasts(5*time.Minute), neverDies(t))
	require.Equal(t, 2, w.countEvents("Unreachable: "), "the next outage is reported again")
}

// TestP25ThawKilledAnywhere: wherever the process dies after an outage, no machine is marked failed for its time.
// Invariants: P25
func TestP25ThawKilledAnywhere(t *testing.T) {
	thaw := func(blowAt int, after bool) int {
		w, p := fleetWithoutHealth(t)
		w.targetDown = true
		p = w.until(p, w.lasts(5*time.Minute), neverDies(t))
		w.targetDown = false
		p.fuse.Calls, p.fuse.BlowAt, p.fuse.BlowAfter = 0, blowAt, after
		next := func() *process { return w.start(&testkit.Fuse{}, false) }
		p = w.until(p, w.lasts(time.Minute), next)
		calls := p.fuse.Calls
		w.until(p, w.lasts(7*time.Minute), next)
		// If it is killed before its first write, no process knows of the outage.
		if w.countEvents("ClockRestarted: ") > 0 {
			require.Zero(t, w.lost, "call %d, after %t: %s", blowAt, after, w.dump())
		}
		return calls
	}
	total := thaw(0, false)
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total, 7) {
			thaw(n, after)
		}
	}
}

// TestP25ThawWhileOthersWrite: clocks are restarted once, from one moment, even if that takes a while and others
// write the machines meanwhile.
func TestP25ThawWhileOthersWrite(t *testing.T) {
	w, p := fleetWithoutHealth(t)
	w.targetDown = true
	for range 10 {
		w.at = w.at.Add(time.Minute)
		require.NoError(t, p.lookAt(manager.KindReachability))
	}
	w.targetDown = false
	w.at = w.at.Add(time.Minute)
	began := w.at.Truncate(time.Second)
	before, reads := p.fuse.Calls, w.effects["ReadMachines"]
	p.fuse.Before = func(call int) {
		w.at = w.at.Add(700 * time.Millisecond)
		if call != before+5 { // the first clock follows two checks, the class and the machines
			return
		}
		m, err := w.machines.Get(ctx, keysOf(w.machines)[0])
		require.NoError(t, err)
		m = m.Clone()
		m.Labels["other"] = "label"
		_, err = w.machines.Update(ctx, m)
		require.NoError(t, err)
	}
	require.NoError(t, p.lookAt(manager.KindReachability))
	require.Equal(t, 3, w.countEvents("ClockRestarted: "))
	require.Equal(t, before+4+3+2, p.fuse.Calls, "one machine is read and written again")
	require.Equal(t, reads+1, w.effects["ReadMachines"], "not all machines are read again")
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(t, err)
	from := machines[0].Status.ClockFrom
	require.False(t, from.Before(began))
	for _, m := range machines {
		require.Equal(t, from, m.Status.ClockFrom)
	}
	require.Equal(t, "label", machines[0].Labels["other"])
}

// TestFreshManagerAsksFirst: no process creates anything before both API servers have answered once. Deletions go
// on.
// Invariants: P25
func TestFreshManagerAsksFirst(t *testing.T) {
	w := guardedWorld(t)
	w.bounded = true
	w.fleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	require.NoError(t, w.machines.Delete(ctx, keysOf(w.machines)[0], ""))
	p := w.start(&testkit.Fuse{}, false)
	for _, r := range p.Reconcilers() {
		if r.Kind() == manager.KindMachine || r.Kind() == manager.KindSet || r.Kind() == manager.KindOrphans || r.Kind() == manager.KindUnmanaged {
			calls := p.fuse.Calls
			result, err := r.Reconcile(ctx, keysOf(w.machines)[0])
			require.NoError(t, err)
			require.Equal(t, w.at.Add(time.Second), result.At)
			require.Equal(t, calls, p.fuse.Calls, "no call is made before the first check")
		}
	}
	w.targetDown = true
	require.NoError(t, p.lookAt(manager.KindReachability))
	for _, wait := range []time.Duration{6 * time.Second, time.Second} {
		result, err := p.Reconcilers()[0].Reconcile(ctx, keysOf(w.machines)[1])
		require.NoError(t, err)
		require.Equal(t, w.at.Add(wait), result.At, "the pass waits for the next check")
		w.at = w.at.Add(6 * time.Second)
	}
	w.until(p, w.lasts(15*time.Minute), neverDies(t))
	require.Equal(t, 3, count(w, codes.CreateMachine))
	require.Equal(t, 2, w.phases()[machine.PhaseRunning])
	w.targetDown = false
	w.until(p, w.settled(3), neverDies(t))
}

// TestP28SettledIsSilentWhenWatched: a manager of a settled fleet, whether old or new, writes nothing and asks the
// provider only for lists of VMs.
// Invariants: P28
func TestP28SettledIsSilentWhenWatched(t *testing.T) {
	w := guardedWorld(t)
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.until(p, w.lasts(5*time.Second), neverDies(t))
	writes, calls := w.writes, w.calls
	for range 3 {
		w.until(w.start(&testkit.Fuse{}, false), w.lasts(time.Hour), neverDies(t))
	}
	require.Equal(t, writes, w.writes)
	calls[codes.ListMachines] = w.calls[codes.ListMachines]
	require.Equal(t, calls, w.calls)
}

// TestForcedDeletionDuringAnOutage: a machine whose node is in no cache waits for the API server of the nodes.
// Once its deletion is forced it waits no longer, and its VM is deleted.
func TestForcedDeletionDuringAnOutage(t *testing.T) {
	w := guardedWorld(t)
	w.neverJoins = func(string) bool { return true }
	w.fleet()
	pending := func() bool { return w.phases()[machine.PhasePending] == 3 && len(w.provider.VMs()) == 3 }
	p := w.until(w.start(&testkit.Fuse{}, false), pending, neverDies(t))
	w.targetDown = true
	p = w.until(p, w.lasts(2*time.Minute), neverDies(t)) // it is noticed, and the fleet is frozen
	first := keysOf(w.machines)[0]
	require.NoError(t, w.machines.Delete(ctx, first, ""))
	p = w.until(p, w.lasts(10*time.Minute), neverDies(t))
	require.Len(t, w.provider.VMs(), 3, "the VM stays, because its node may not be drained")

	m := w.get(first).Clone()
	m.Labels[machine.DefaultPolicy().Keys.ForceDeletion] = "True"
	_, err := w.machines.Update(ctx, m)
	require.NoError(t, err)
	p = w.until(p, w.lasts(5*time.Minute), neverDies(t))
	require.Len(t, w.provider.VMs(), 2)
	require.Equal(t, 1, w.countEvents("NodeNotRead: "))
	require.Equal(t, machine.PhaseTerminating, w.get(first).Status.Phase, "its node is deleted once it can be read")

	w.targetDown = false
	w.until(p, func() bool { _, err := w.machines.Get(ctx, first); return err != nil }, neverDies(t))
}

// TestReachabilityOfOneNamespace: a manager that may read only one namespace checks the API server there,
// and is not frozen because another namespace is forbidden. Without a namespace it uses that of a class, and
// without a class one that always exists.
func TestReachabilityOfOneNamespace(t *testing.T) {
	for _, c := range []struct {
		namespace string
		class     string
		asked     string
	}{
		{"mine", "", "mine"}, {"mine", "other", "mine"}, {"", "other", "other"}, {"", "", "default"},
	} {
		machines := &spied{Collection: store.NewMemory[*machine.Machine](nil, manager.MachineIndexes())}
		classes := store.NewMemory[*machine.Class](nil, manager.ClassIndexes())
		if c.class != "" {
			_, err := classes.Create(ctx, &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: c.class, Name: "c"}}})
			require.NoError(t, err)
		}
		m, err := manager.New(manager.Options{
			Store:    manager.Store{Namespace: c.namespace, Machines: machines, Classes: classes},
			Driver:   drivertest.NewMemory(drivertest.MemoryOptions{}),
			Policies: manager.Policies{Safety: safety.DefaultPolicy()},
		})
		require.NoError(t, err)
		for _, r := range m.Reconcilers() {
			if r.Kind() == manager.KindReachability {
				_, err := r.Reconcile(ctx, manager.Fleet)
				require.NoError(t, err)
			}
		}
		require.Contains(t, machines.asked, c.asked)
		require.Len(t, machines.asked, 1)
	}
}

// spied records the namespaces of live reads by name.
type spied struct {
	store.Collection[*machine.Machine]
	asked []string
}

// Live implements store.Collection.
func (s *spied) Live() store.Reader[*machine.Machine] { return spiedLive{s.Collection.Live(), s} }

type spiedLive struct {
	store.Reader[*machine.Machine]
	of *spied
}

// Get implements store.Reader.
func (l spiedLive) Get(ctx context.Context, k object.Key) (*machine.Machine, error) {
	l.of.asked = append(l.of.asked, k.Namespace)
	return l.Reader.Get(ctx, k)
}
