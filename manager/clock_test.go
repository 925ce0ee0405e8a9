package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// jumping is a life of a fleet in which the clock jumps once, at a call; it
// tells how long the life took by a clock that does not.
func jumping(t *testing.T, at int, by time.Duration) (w *world, took time.Duration, calls int) {
	w = guardedWorld(t)
	f := &testkit.Fuse{}
	f.Before = func(call int) {
		if call == at {
			w.at = w.at.Add(by)
		}
	}
	begun := w.at
	w.life(w.start(f, false), unexpected(t))
	took = w.at.Sub(begun)
	if f.Calls >= at && at > 0 {
		took -= by
	}
	return w, took, f.Calls
}

// TestClockSetBack: set back an hour at any call of a fleet's life, the clock
// costs no machine and makes none twice, and all ends no more than the hour
// later.
func TestClockSetBack(t *testing.T) {
	plain, usual, calls := jumping(t, 0, 0)
	step := max(calls/60, 1)
	for at := 1; at <= calls; at += step {
		w, took, _ := jumping(t, at, -time.Hour)
		require.Equal(t, len(plain.made), len(w.made), "call %d", at)
		require.Equal(t, plain.lost, w.lost, "call %d", at)
		require.LessOrEqual(t, took, usual+time.Hour+5*time.Minute, "call %d", at)
	}
}

// TestClockSetForward: the same forward: what was being made is taken for late
// and replaced, and no more is lost than that.
func TestClockSetForward(t *testing.T) {
	plain, usual, calls := jumping(t, 0, 0)
	step := max(calls/60, 1)
	for at := 1; at <= calls; at += step {
		w, took, _ := jumping(t, at, time.Hour)
		require.LessOrEqual(t, w.lost, 3, "call %d", at)
		require.LessOrEqual(t, len(w.made), len(plain.made)+w.lost, "call %d", at)
		require.LessOrEqual(t, took, usual+10*time.Minute, "call %d", at)
	}
}

// TestClockSetBackWhileFrozen: an outage of the target cluster that ends after
// the clock was set back ends for the fleet too, no more than the hour later, and
// no machine was marked failed meanwhile.
func TestClockSetBackWhileFrozen(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		w := guardedWorld(t)
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
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
		w.until(p, w.settled(4), unexpected(t))
		require.LessOrEqual(t, w.at.Sub(begun), time.Hour+5*time.Minute)
		require.Equal(t, lost, w.lost)
	}
}

// TestClockSetBackAmidACollection: orphans and machines without their set go no
// later than the hour; what has its owner stays.
func TestClockSetBackAmidACollection(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		for after := time.Duration(0); after < 4*time.Minute; after += 20 * time.Second {
			w := guardedWorld(t)
			w.fleet()
			p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
			stray := w.stray("blue", "web-lost")
			w.late("late", machineset.OwnerKind)
			require.NoError(t, p.lookAt(manager.KindOrphans))
			require.NoError(t, p.lookAt(manager.KindOwnerless))
			w.at = w.at.Add(after)
			w.round(p)
			w.at = w.at.Add(by)
			begun := w.at
			w.until(p, func() bool { return !w.there(stray) && len(keysOf(w.machines)) == 3 && w.provider.Count() == 3 }, unexpected(t))
			require.LessOrEqual(t, w.at.Sub(begun), time.Hour+20*time.Minute)
			require.LessOrEqual(t, w.lost, 1, "the late one, where its time was up")
		}
	}
}

// TestRetriesWhenTheClockIsSetBack: a create that failed is tried again within
// its time from then on, not an hour later.
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
	w.until(p, func() bool { return w.provider.Count() == 1 }, unexpected(t))
	require.LessOrEqual(t, w.at.Sub(begun), 10*time.Minute)
}
