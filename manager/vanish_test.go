package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// vanish has a machine deleted so fast that no other pass looks meanwhile.
func (w *world) vanish(p *process, key object.Key) {
	m, err := w.machines.Get(ctx, key)
	require.NoError(w.t, err)
	require.NoError(w.t, w.machines.Delete(ctx, key, m.UID))
	for range 20 {
		if _, err = w.machines.Get(ctx, key); err != nil {
			break
		}
		require.NoError(w.t, p.pass(manager.KindMachine, key))
	}
	require.ErrorIs(w.t, err, store.ErrNotFound)
}

// TestNamesOfVanishedMachines: a machine that is gone at once is replaced under
// another name, though its set has not settled the names it gave out. So it is by
// the next process, if that has looked at the set before. Of a reservation that
// somebody has put back nothing is remembered.
func TestNamesOfVanishedMachines(t *testing.T) {
	for name, line := range map[string]struct {
		meanwhile func(*testing.T, *world, *process) *process
		fresh     int64 // the number of the new machine
	}{
		"the process lives": {func(_ *testing.T, _ *world, p *process) *process { return p }, 4},
		"another process has looked": {func(t *testing.T, w *world, _ *process) *process {
			p := w.start(&testkit.Fuse{}, false)
			require.NoError(t, p.pass(manager.KindSet, w.set().Key))
			require.EqualValues(t, 3, w.set().Instructions.Reservation.Settled, "who does not remember settles")
			return p
		}, 4},
		"the reservation is put back": {func(t *testing.T, w *world, p *process) *process {
			back := w.set().Clone()
			back.Instructions.Reservation = machineset.Reservation{}
			_, err := w.sets.Update(ctx, back)
			require.NoError(t, err)
			return p
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, drivertest.MemoryOptions{})
			w.classed = func(o *manager.Options, _ *testkit.Fuse) {
				o.Policies.Set = machineset.DefaultPolicy()
				o.Policies.Set.SettleWithin = o.Policies.Set.RequestTimeout
			}
			w.fleet()
			settled := w.settled(3)
			p := w.until(w.start(&testkit.Fuse{}, false), settled, unexpected(t))
			set := w.set()
			require.Equal(t, machineset.Reservation{Reserved: 3, At: set.Instructions.Reservation.At}, set.Instructions.Reservation, "open")
			p = line.meanwhile(t, w, p)
			w.vanish(p, object.Key{Namespace: set.Namespace, Name: set.MachineName(2)})
			w.until(p, settled, unexpected(t))
			var names []string
			for _, key := range keysOf(w.machines) {
				names = append(names, key.Name)
			}
			require.ElementsMatch(t, []string{set.MachineName(1), set.MachineName(3), set.MachineName(line.fresh)}, names)
			require.Less(t, w.now().Sub(set.Instructions.Reservation.At), time.Minute, "it is not the end of the wait that helped")
		})
	}
}
