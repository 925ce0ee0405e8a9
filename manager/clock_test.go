package manager_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// withClockJump makes and deletes a fleet while the clock jumps once, at a call. It returns how long that took by a
// clock that does not jump.
func withClockJump(t *testing.T, at int, by time.Duration) (w *world, took time.Duration, calls int) {
	w = guardedWorld(t)
	f := &testkit.Fuse{}
	f.Before = func(call int) {
		if call == at {
			w.at = w.at.Add(by)
		}
	}
	begun := w.at
	w.life(w.start(f, false), neverDies(t))
	took = w.at.Sub(begun)
	if f.Calls >= at && at > 0 {
		took -= by
	}
	return w, took, f.Calls
}

// TestClockSetBack: the clock is set back an hour at any call. No machine is lost and none is made twice, and
// everything ends no more than an hour later.
// Invariants: P13
func TestClockSetBack(t *testing.T) {
	plain, usual, calls := withClockJump(t, 0, 0)
	step := max(calls/60, 1)
	for at := 1; at <= calls; at += step {
		w, took, _ := withClockJump(t, at, -time.Hour)
		require.Equal(t, len(plain.made), len(w.made), "call %d", at)
		require.Equal(t, plain.lost, w.lost, "call %d", at)
		require.LessOrEqual(t, took, usual+time.Hour+5*time.Minute, "call %d", at)
	}
}

// TestClockSetForward: the clock is set forward an hour at any call. The machines that were being made count as
// late and are replaced, and no others.
func TestClockSetForward(t *testing.T) {
	plain, usual, calls := withClockJump(t, 0, 0)
	step := max(calls/60, 1)
	for at := 1; at <= calls; at += step {
		w, took, _ := withClockJump(t, at, time.Hour)
		require.LessOrEqual(t, w.lost, 3, "call %d", at)
		require.LessOrEqual(t, len(w.made), len(plain.made)+w.lost, "call %d", at)
		require.LessOrEqual(t, took, usual+10*time.Minute, "call %d", at)
	}
}

// TestClockSetBackWhileFrozen: the clock is set back during an outage of the target cluster. The fleet thaws no
// more than an hour later, and no machine was marked failed meanwhile.
func TestClockSetBackWhileFrozen(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		w := guardedWorld(t)
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		lost := w.lost
		w.targetDown = true
		pass := func(d time.Duration) {
			for end := w.at.Add(d); w.at.Before(end); w.at = w.at.Add(10 * time.Second) {
				w.round(p)
			}
		}
		pass(5 * time.Minute)
		w.at = w.at.Add(by)
		pass(5 * time.Minute)
		w.targetDown = false
		begun := w.at
		w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 4 })
		w.until(p, w.settled(4), neverDies(t))
		require.LessOrEqual(t, w.at.Sub(begun), time.Hour+5*time.Minute)
		require.Equal(t, lost, w.lost)
	}
}

// TestClockSetBackAmidACollection: orphans and machines without their set are deleted no more than an hour later.
// VMs and machines with an owner stay.
func TestClockSetBackAmidACollection(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		for after := time.Duration(0); after < 4*time.Minute; after += 20 * time.Second {
			w := guardedWorld(t)
			w.fleet()
			p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
			orphanID := w.addOrphanVM("blue", "web-lost")
			w.late("late", machineset.OwnerKind)
			require.NoError(t, p.lookAt(manager.KindOrphans))
			require.NoError(t, p.lookAt(manager.KindOwnerless))
			w.at = w.at.Add(after)
			w.round(p)
			w.at = w.at.Add(by)
			begun := w.at
			w.until(p, func() bool { return !w.vmExists(orphanID) && len(keysOf(w.machines)) == 3 && w.provider.Count() == 3 }, neverDies(t))
			require.LessOrEqual(t, w.at.Sub(begun), time.Hour+20*time.Minute)
			require.LessOrEqual(t, w.lost, 1, "only the late machine may be replaced")
		}
	}
}

// TestRetriesWhenTheClockIsSetBack: a failed create is tried again after its usual wait, not an hour later.
func TestRetriesWhenTheClockIsSetBack(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.safety = safety.DefaultPolicy()
	w.provider.FailNext(codes.CreateMachine, codes.New(codes.ResourceExhausted, "no cores are left"))
	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "web-1"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	p := w.start(&testkit.Fuse{}, false)
	w.round(p)
	w.round(p)
	require.Zero(t, w.provider.Count())
	w.at = w.at.Add(-time.Hour)
	begun := w.at
	w.until(p, func() bool { return w.provider.Count() == 1 }, neverDies(t))
	require.LessOrEqual(t, w.at.Sub(begun), 10*time.Minute)
}

// steps makes a process look at everything every five seconds, until a time, or while wanted returns true.
func (w *world) steps(p *process, until time.Time, wanted func() bool) {
	for w.at.Before(until) && wanted() {
		w.round(p)
		w.join()
		w.at = w.at.Add(5 * time.Second)
	}
}

func always() bool { return true }

// TestFreshManagerGivesTime: a manager was away, with the cluster, for longer than every timeout. It marks no
// machine failed at once: a machine that comes back within the grace stays, and others are replaced after it.
// Nothing is written meanwhile.
// Invariants: P25 P28
func TestFreshManagerGivesTime(t *testing.T) {
	for name, policy := range map[string]*safety.Policy{"guarded": safety.DefaultPolicy(), "without a safety policy": nil} {
		t.Run(name, func(t *testing.T) {
			w := guardedWorld(t)
			w.safety = policy
			w.fleet()
			w.neverJoins = func(string) bool { return true }
			p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.provider.Count() == 3 && w.phases()[machine.PhasePending] == 3 }, neverDies(t))
			w.until(p, w.lasts(10*time.Second), neverDies(t))

			w.at = w.at.Add(40 * time.Minute)
			vms, writes, began := w.provider.VMs(), w.writes, w.at
			p = w.start(&testkit.Fuse{}, false)
			w.steps(p, began.Add(time.Minute), always)
			require.Equal(t, map[machine.Phase]int{machine.PhasePending: 3}, w.phases())
			require.Equal(t, writes, w.writes)
			w.neverJoins = func(vm string) bool { return vm == vms[0].Name }
			w.join()
			w.steps(p, began.Add(time.Minute+10*time.Second), always)
			require.Equal(t, 1, w.lost)
			w.neverJoins = nil
			w.until(p, w.settled(3), neverDies(t))
			require.Equal(t, 1, w.lost)
			require.Len(t, w.made, 4)
			require.False(t, w.vmExists(vms[0].ID))
			require.True(t, w.vmExists(vms[1].ID) && w.vmExists(vms[2].ID))
		})
	}
}

// TestRestartedEveryQuarterOfAnHour: managers run for 15 minutes each. They mark a broken machine failed within
// its timeout and one grace, whether its node never joined or became unhealthy.
// Invariants: P3
func TestRestartedEveryQuarterOfAnHour(t *testing.T) {
	policy := machine.DefaultPolicy()
	for offset := time.Duration(0); offset < 15*time.Minute; offset += 50 * time.Second {
		for _, joins := range []bool{true, false} {
			w := guardedWorld(t)
			w.fleet()
			timeout := policy.HealthTimeout
			if !joins {
				timeout = policy.CreationTimeout
				w.neverJoins = func(vm string) bool { return vm == w.provider.VMs()[0].Name }
			}
			p := w.start(&testkit.Fuse{}, false)
			next, began := w.at.Add(offset), w.at
			if joins {
				p = w.until(p, w.settled(3), neverDies(t))
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

// TestStoppedProcessGivesTime: a process is stopped with its cluster, for longer than a health timeout that was
// running, and continues. No machine is marked failed: the nodes have a grace to come back. Hours without work do
// not count as a stop: machines that become unhealthy then are marked failed at the end of the timeout.
// Invariants: P25
func TestStoppedProcessGivesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped atomic.Int64 // for how long altogether
		now := func() time.Time { return time.Now().Add(time.Duration(stopped.Load())) }
		o := manager.InMemory(now)
		nodesOf := store.NewMemory(now, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))
		w := newWorld(t, drivertest.MemoryOptions{})
		w.deployments, w.machines = o.Store.Deployments.(*store.Memory[*deployment.Deployment]), o.Store.Machines.(*store.Memory[*machine.Machine])
		w.sets = o.Store.Sets.(*store.Memory[*machineset.Set])
		class, err := w.classes.Get(ctx, smallKey)
		require.NoError(t, err)
		_, err = o.Store.Classes.Create(ctx, &machine.Class{Meta: object.Meta{Key: smallKey}, SecretRef: class.SecretRef})
		require.NoError(t, err)
		_, err = o.Store.Secrets.Create(ctx, &machine.Secret{Meta: object.Meta{Key: bootKey}, Data: map[string][]byte{"userData": []byte("join")}})
		require.NoError(t, err)
		w.fleet()
		o.Cluster, o.Driver = nodes{nodesOf}, &instant{nodes: nodesOf}
		o.Runtime.Jitter = testkit.NoJitter
		var lost atomic.Int32
		o.Hooks.Transition = func(_ object.Key, move machine.Move, _ decision.Why) {
			if move.To == string(machine.PhaseFailed) {
				lost.Add(1)
			}
		}
		m, err := manager.New(o)
		require.NoError(t, err)
		run, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(run) }()
		ready := func(status object.ConditionStatus) {
			list, err := nodesOf.List(ctx, store.Query{})
			require.NoError(t, err)
			for _, node := range list {
				node = node.Clone()
				node.Conditions = []object.Condition{{Type: machine.NodeReady, Status: status}}
				_, err := nodesOf.UpdateStatus(ctx, node)
				require.NoError(t, err)
			}
		}
		<-time.After(3 * time.Hour) // of the bubble's clock
		require.True(t, w.serves(fleetKey), w.dump())

		ready(object.Unknown)
		<-time.After(time.Minute)
		stopped.Add(int64(40 * time.Minute))
		ready(object.False) // this wakes the machines
		<-time.After(30 * time.Second)
		require.Zero(t, lost.Load(), "a machine was marked failed for a time that nobody watched")
		ready(object.True)
		<-time.After(3 * time.Hour)
		require.True(t, w.serves(fleetKey))
		require.Zero(t, lost.Load())

		ready(object.Unknown)
		<-time.After(machine.DefaultPolicy().HealthTimeout - time.Second)
		require.Zero(t, lost.Load())
		<-time.After(30 * time.Second)
		require.Positive(t, lost.Load(), "an idle process is watching")
		cancel()
		require.NoError(t, <-ended)
	})
}
