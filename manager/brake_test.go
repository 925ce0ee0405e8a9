package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// TestWrongStore: a manager with a cluster's credentials and an empty store
// deletes none of its VMs, and says so once; with a store that knows one
// machine it deletes three, and a share of them in each later period.
func TestWrongStore(t *testing.T) {
	w := guardedWorld(t)
	p := w.start(&testkit.Fuse{}, false)
	for i := range 100 {
		w.stray("blue", fmt.Sprint("web-", i))
	}
	require.NoError(t, w.watch(p, manager.KindOrphans, 2*time.Hour))
	require.Equal(t, 100, w.provider.Count())
	require.Zero(t, count(w, codes.DeleteMachine))
	require.Equal(t, 1, w.heard("StoreIsEmpty: 100 VMs have no machine, but the store holds no machine"))
	require.LessOrEqual(t, count(w, codes.ListMachines), 9, "looked at no more often than every 15 min")

	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "web-0"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	p = w.start(&testkit.Fuse{}, false)
	require.NoError(t, w.watch(p, manager.KindOrphans, 14*time.Minute))
	require.Equal(t, 97, w.provider.Count())
	require.Equal(t, 1, w.heard("TooManyOrphans: 96 more VMs have no machine and are not deleted yet, since only 3 may be deleted in 15m0s"))
	require.NoError(t, w.watch(p, manager.KindOrphans, 15*time.Minute))
	require.Equal(t, 97-9, w.provider.Count(), "of 97")
	require.NoError(t, w.watch(p, manager.KindOrphans, 24*time.Hour))
	require.Equal(t, 1, w.provider.Count(), "real ones go in the end")
}

// TestSetsSayThatTheStoreIsRight: without machines a set, or a deployment, is
// enough for VMs to be collected.
func TestSetsSayThatTheStoreIsRight(t *testing.T) {
	for _, make := range []func(*world){func(w *world) { w.fleet() }, func(w *world) { w.loneSet(0) }} {
		w := guardedWorld(t)
		make(w)
		id := w.stray("blue", "web-lost")
		require.NoError(t, w.watch(w.start(&testkit.Fuse{}, false), manager.KindOrphans, 5*time.Minute))
		require.False(t, w.there(id))
	}
}

// TestEmptyStoreThatCannotBeRead: whichever read of a pass fails, nothing is
// deleted in it.
func TestEmptyStoreThatCannotBeRead(t *testing.T) {
	failures := 0
	for down := range 30 {
		w := guardedWorld(t)
		w.loneSet(0)
		id := w.stray("blue", "web-lost")
		p := w.start(&testkit.Fuse{}, false)
		require.NoError(t, p.lookAt(manager.KindReachability))
		require.NoError(t, p.lookAt(manager.KindOrphans))
		w.at = w.at.Add(30 * time.Second)
		begun := p.fuse.Calls
		p.fuse.Before = func(call int) { w.controlDown = call == begun+1+down }
		if err := p.lookAt(manager.KindOrphans); err != nil {
			require.ErrorIs(t, err, testkit.ErrOutage)
			require.True(t, w.there(id))
			failures++
			continue
		}
		require.False(t, w.there(id))
	}
	require.Equal(t, 4, failures, "machines, sets, deployments, and the machine of that name")
}
