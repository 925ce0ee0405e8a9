package manager_test

import (
	"context"
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

// TestP20ScaleDownTakesWhatWasChosen: through the manager, at the cost of two
// writes of the deployment's spec and one of the set for size and name.
func TestP20ScaleDownTakesWhatWasChosen(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	for _, to := range []int32{2, 1} {
		keys := keysOf(w.machines)
		chosen := keys[len(keys)-1].Name
		require.NoError(t, p.ScaleDown(ctx, fleetKey, []string{chosen}, to))
		require.NoError(t, p.ScaleDown(ctx, fleetKey, []string{chosen}, to), "asked again")
		require.ErrorIs(t, p.ScaleDown(ctx, fleetKey, []string{chosen}, to-1), deployment.ErrLeaving)
		p = w.until(p, w.settled(int(to)), unexpected(t))
		_, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: chosen})
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	require.Len(t, w.made, 3, "none was replaced")
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.NotContains(t, d.Annotations, deployment.DefaultPolicy().Keys.DeletionCandidates, "no name was left")
	require.ErrorIs(t, p.ScaleDown(ctx, fleetKey, []string{"nobody"}, 0), deployment.ErrNotMember)
	require.ErrorIs(t, p.ScaleDown(ctx, object.Key{Name: "nobody"}, nil, 0), store.ErrNotFound)
}

// TestScaleDownBeginsAnew when somebody else writes the deployment meanwhile,
// and gives up at last.
func TestScaleDownBeginsAnew(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	busy := &contested{Collection: w.deployments, conflicts: 3}
	o := manager.Options{
		Store:  manager.Store{Machines: w.machines, Sets: w.sets, Deployments: busy, Classes: w.classes},
		Driver: w.provider, Runtime: manager.Runtime{Now: w.now},
	}
	m, err := manager.New(o)
	require.NoError(t, err)
	require.NoError(t, m.ScaleDown(ctx, fleetKey, nil, 1))
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.EqualValues(t, 1, d.Spec.Replicas)
	busy.conflicts = 1000
	require.ErrorIs(t, m.ScaleDown(ctx, fleetKey, nil, 0), store.ErrConflict)
	o.Store.Deployments = nil
	m, err = manager.New(o)
	require.NoError(t, err)
	require.ErrorIs(t, m.ScaleDown(ctx, fleetKey, nil, 0), manager.ErrNoDeployments)
}

// contested is a collection that others keep writing.
type contested struct {
	store.Collection[*deployment.Deployment]
	conflicts int
}

func (c *contested) Update(ctx context.Context, d *deployment.Deployment) (*deployment.Deployment, error) {
	if c.conflicts--; c.conflicts >= 0 {
		return nil, store.ErrConflict
	}
	return c.Collection.Update(ctx, d)
}

// TestP20KilledAmidAScaleDown: wherever the manager dies between the command
// and its end, the machine chosen goes, and no other.
func TestP20KilledAmidAScaleDown(t *testing.T) {
	for n := 1; n < 200; n++ {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
		chosen := keysOf(w.machines)[1]
		require.NoError(t, p.ScaleDown(ctx, fleetKey, []string{chosen.Name}, 2))
		died := false
		p = w.until(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, false), w.settled(2), func() *process {
			died = true
			return w.start(&testkit.Fuse{}, false)
		})
		_, err := w.machines.Get(ctx, chosen)
		require.ErrorIs(t, err, store.ErrNotFound, "killed at call %d\n%s", n, w.dump())
		require.Len(t, w.made, 3, "killed at call %d", n)
		for range 3 {
			w.round(p)
		}
		for _, key := range keysOf(w.sets) {
			set, err := w.sets.Get(ctx, key)
			require.NoError(t, err)
			require.Empty(t, alive(w, set), "killed at call %d", n)
		}
		if !died {
			return
		}
	}
	t.Fatal("a scale-down takes no end")
}

// alive are the deletion candidates of a set that are still there.
func alive(w *world, set *machineset.Set) (out []*machine.Machine) {
	for _, v := range set.Instructions.DeletionCandidates {
		if m, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: v.Name}); err == nil {
			out = append(out, m)
		}
	}
	return out
}
