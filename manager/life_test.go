package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
)

// TestLife: without a fault, a fleet of three machines that is rolled once makes six machines, and warns of
// nothing.
func TestLife(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.shape("small", func(c *machine.Class) {
		c.NodeTemplate = &machine.NodeShape{Capacity: map[string]string{"cpu": "2"}, InstanceType: "s", Region: "r", Zone: "a"}
	})
	w.life(w.start(&testkit.Fuse{}, false), neverDies(t))
	require.Len(t, w.made, 6)
	require.Equal(t, 6, count(w, codes.CreateMachine))
	require.Equal(t, 6, count(w, codes.DeleteMachine))
	require.Empty(t, w.warnings)
}

// TestKilledAnywhere kills the manager at every call to any port, once before and once after the call takes
// effect, and starts a new one each time. The fleet ends as without the kill, and no additional machine is made
// (P12, P13, P14, P16, P26).
// Invariants: P7 P12 P13 P14 P26
func TestKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	undisturbed := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	undisturbed.life(undisturbed.start(total, false), neverDies(t))
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total.Calls, 7) {
			t.Run(fmt.Sprintf("call %d, after %v", n, after), func(t *testing.T) {
				w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
				w.life(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: after}, false), func() *process {
					return w.start(&testkit.Fuse{}, false)
				})
				require.Len(t, w.made, 6, "machines made")
			})
		}
	}
}

// TestStaleAndKilled: caches lag by a random number of rounds, the provider fails and loses answers, and the
// manager is killed, all at random, until the faults stop (P5, P7, P12 to P14, P26).
// Invariants: P5 P12 P13 P26
func TestStaleAndKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: rapid.Bool().Draw(t, "needs initialization")})
		lives := rapid.IntRange(0, 4).Draw(t, "kills")
		begin := func() *process {
			f := &testkit.Fuse{}
			if lives > 0 {
				lives--
				f.BlowAt = rapid.IntRange(1, 300).Draw(t, "dies at call")
				f.BlowAfter = rapid.Bool().Draw(t, "after it took effect")
			}
			return w.startLagging(t, f)
		}
		for range rapid.IntRange(0, 6).Draw(t, "faults") {
			w.fault(t)
		}
		w.life(begin(), begin)
		if len(w.made) > 6+w.lost {
			t.Fatalf("P12: %d machines made, 6 wanted, %d lost\n%s", len(w.made), w.lost, w.dump())
		}
	})
}

// startLagging starts a process whose caches are updated only now and then.
func (w *world) startLagging(t *rapid.T, f *testkit.Fuse) *process {
	p := w.start(f, true)
	budget := 40
	p.look = func() bool {
		if budget > 0 && rapid.IntRange(0, 2).Draw(t, "lag") > 0 {
			budget--
			return false
		}
		p.sync()
		return true
	}
	return p
}

// fault makes the provider fail once, before or after a call takes effect.
func (w *world) fault(t *rapid.T) {
	call := rapid.SampledFrom([]codes.Call{
		codes.CreateMachine, codes.GetMachineStatus, codes.InitializeMachine, codes.DeleteMachine,
	}).Draw(t, "call")
	code := rapid.SampledFrom([]codes.Code{
		codes.Unknown, codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Canceled,
	}).Draw(t, "code")
	err := codes.New(code, "a fault")
	if rapid.Bool().Draw(t, "lost answer") {
		w.provider.FailAfter(call, err)
		return
	}
	w.provider.FailNext(call, err)
}

// The end of whole fleets: the deployment deletes its sets, each set its
// machines, and class and secret go last.

// ending reports whether everything is gone. It fails the test if something was deleted too early: a set before
// its machines, a deployment before its sets, or a class or secret before the last machine.
func (w *world) ending() bool {
	machines, sets := keysOf(w.machines), keysOf(w.sets)
	owners := map[string]bool{}
	for _, key := range sets {
		if s, err := w.sets.Get(ctx, key); err == nil {
			owners[s.UID] = true
		}
	}
	for _, key := range machines {
		if m := w.get(key); m.Owner != nil && !owners[m.Owner.UID] {
			w.t.Fatalf("set %s is gone before machine %s\n%s", m.Owner.Name, m.Name, w.dump())
		}
	}
	if len(sets) > 0 && len(keysOf(w.deployments)) == 0 {
		w.t.Fatalf("the deployment is gone before its sets\n%s", w.dump())
	}
	if len(machines) > 0 && (len(keysOf(w.classes)) == 0 || len(keysOf(w.secrets)) == 0) {
		w.t.Fatalf("class or secret is gone before the machines\n%s", w.dump())
	}
	return w.empty() && w.classless()
}

// deleteAll asks for the deletion of everything at once.
func (w *world) deleteAll() {
	require.NoError(w.t, w.deployments.Delete(ctx, fleetKey, ""))
	require.NoError(w.t, w.classes.Delete(ctx, smallKey, ""))
	require.NoError(w.t, w.secrets.Delete(ctx, bootKey, ""))
}

// TestDeletedWhileItIsMade: a fleet, its class and its secret are deleted at any call of its creation or of a
// rollout. The process dies and reads old caches, and the provider fails and loses answers. Everything is deleted
// in order, and no VM is left (P12 to P14, P16, P26).
// Invariants: P13 P14 P26
func TestDeletedWhileItIsMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: rapid.Bool().Draw(t, "needs initialization")})
		w.keeping()
		for range rapid.IntRange(0, 4).Draw(t, "faults") {
			w.fault(t)
		}
		lives, deleted := rapid.IntRange(0, 3).Draw(t, "kills"), false
		begin := func() *process {
			f := &testkit.Fuse{}
			if lives > 0 {
				lives--
				f.BlowAt, f.BlowAfter = rapid.IntRange(1, 200).Draw(t, "dies at call"), rapid.Bool().Draw(t, "after it took effect")
			}
			return w.startLagging(t, f)
		}
		w.fleet()
		p := begin()
		if rapid.Bool().Draw(t, "in a rollout") {
			p = w.until(p, func() bool { return w.settled(3)() && w.held() }, begin)
			p.look = func() bool { p.sync(); return true }
			roll(w)
		} else {
			p = w.until(p, w.held, begin) // otherwise the class would be gone before it is used
		}
		at := p.fuse.Calls + rapid.IntRange(1, 150).Draw(t, "deleted at call")
		p.fuse.Before = func(call int) {
			if call >= at && !deleted {
				deleted = true
				w.deleteAll()
			}
		}
		w.until(p, func() bool {
			if !deleted && w.settled(3)() {
				deleted = true
				w.deleteAll()
			}
			return deleted && w.ending()
		}, func() *process {
			if !deleted {
				deleted = true
				w.deleteAll()
			}
			return begin()
		})
	})
}

func roll(w *world) {
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(w.t, err)
	d = d.Clone()
	d.Spec.Template.Annotations = map[string]string{"version": "2"}
	_, err = w.deployments.Update(ctx, d)
	require.NoError(w.t, err)
}

// TestDeletedWhileFrozen: a fleet that is frozen, because it has too many machines or its nodes can't be read, can
// still be deleted: at once, or when the nodes can be read again. Nothing is created meanwhile.
// Invariants: P14 P25
func TestDeletedWhileFrozen(t *testing.T) {
	w, p := crowded(t)
	require.NoError(t, p.pass(manager.KindDeployment, fleetKey))
	require.Equal(t, "True", w.set().Labels["freeze"])
	made := len(keysOf(w.machines))
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, w.empty, neverDies(t))
	require.Len(t, w.made, made)

	w, p = fleetWithoutHealth(t)
	w.targetDown = true
	p = w.until(p, w.lasts(2*time.Minute), neverDies(t))
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	p = w.until(p, w.lasts(10*time.Minute), neverDies(t))
	require.Equal(t, map[machine.Phase]int{machine.PhaseTerminating: 3}, w.phases(), "the creation has begun")
	w.targetDown = false
	w.until(p, w.empty, neverDies(t))
	require.Len(t, w.made, 3)
}

// TestForcedDeletionOfAFleet: a hook on each machine holds up the deletion of a fleet. Once the machines are
// labelled for a forced deletion, all are deleted at once, except a paused one.
func TestForcedDeletionOfAFleet(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	keys := keysOf(w.machines)
	for _, key := range keys {
		annotate(w, w.machines, key, "pre-drain.millwright-go/backup", "busy")
	}
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	p = w.until(p, w.lasts(time.Hour), neverDies(t))
	require.Equal(t, map[machine.Phase]int{machine.PhaseTerminating: 3}, w.phases())
	annotate(w, w.machines, keys[0], pausedKey, "true")
	for _, key := range keys {
		m := w.get(key).Clone()
		m.Labels["force-deletion"] = "true"
		_, err := w.machines.Update(ctx, m)
		require.NoError(t, err)
	}
	p = w.until(p, w.lasts(4*time.Hour), neverDies(t))
	require.Equal(t, keys[:1], keysOf(w.machines), "the paused machine stays")
	annotate(w, w.machines, keys[0], pausedKey, "")
	began := w.at
	w.until(p, w.empty, neverDies(t))
	require.Less(t, w.at.Sub(began), time.Minute)
}
