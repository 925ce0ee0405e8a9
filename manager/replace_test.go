package manager_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// replaced reports whether n machines run, none of them of these names, and no
// set has leave to differ from its size any more.
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

// TestReplace: two machines of three are replaced on request by two others,
// within the bounds, wherever the manager dies.
func TestReplace(t *testing.T) {
	for n := 0; n < 400; n += 3 {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.bounded = true
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
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

// TestReplaceWaitsForTheRollout: during one, and while paused, nothing is made
// for a request; without a surge, a machine goes first.
func TestReplaceWaitsForTheRollout(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	w.change(func(d *deployment.Deployment) {
		d.Spec.Paused = true
		d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 0, 1
	})
	w.change(func(d *deployment.Deployment) { d.Spec.Paused = false })
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	w.change(func(d *deployment.Deployment) { d.Spec.Paused = true })
	key := keysOf(w.machines)[0]
	require.NoError(t, p.Replace(ctx, key))
	for range 10 {
		w.round(p)
		w.join()
	}
	require.Len(t, w.made, 3, "paused")
	w.change(func(d *deployment.Deployment) { d.Spec.Paused = false })
	w.until(p, w.replaced(3, key), unexpected(t))
	require.Len(t, w.made, 4)
}

// TestReplaceRefuses what no set would carry out.
func TestReplaceRefuses(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	require.ErrorIs(t, p.Replace(ctx, object.Key{Name: "nobody"}), store.ErrNotFound)
	lone := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "lone"}, Finalizers: []string{"x"}}}
	lone.Spec.Class.Name = "small"
	_, err := w.machines.Create(ctx, lone)
	require.NoError(t, err)
	require.ErrorIs(t, p.Replace(ctx, lone.Key), manager.ErrNoOwner)
	require.NoError(t, w.machines.Delete(ctx, lone.Key, ""))
	require.ErrorIs(t, p.Replace(ctx, lone.Key), manager.ErrGoing)
}
