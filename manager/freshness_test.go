package manager_test

import (
	"context"
	"fmt"
	"strings"
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
	"github.com/millwright-go/millwright/store"
)

// slowSets is a store of sets whose updates take time. It calls read at each live read.
type slowSets struct {
	store.Collection[*machineset.Set]
	update, read func()
}

func (c slowSets) Update(ctx context.Context, s *machineset.Set) (*machineset.Set, error) {
	after, err := c.Collection.Update(ctx, s)
	c.update()
	return after, err
}

func (c slowSets) Live() store.Reader[*machineset.Set] {
	c.read()
	return c.Collection.Live()
}

// TestSlowResizesReadLiveAgain: if the first resize of a deployment takes longer than a live read may be old, the
// deployment reads live again before the second.
// Invariants: P7
func TestSlowResizesReadLiveAgain(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.change(func(d *deployment.Deployment) {
		d.Spec.Template.Annotations = map[string]string{"version": "2"}
		d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 1, 1
	})
	updates, unread, reads := 0, 0, 0
	m, err := manager.New(manager.Options{
		Store: manager.Store{
			Deployments: w.deployments, Classes: w.classes, Secrets: w.secrets,
			Machines: w.machines,
			Sets: slowSets{w.sets, func() {
				w.at = w.at.Add(machineset.DeleteWithin + time.Second)
				if updates++; reads == 0 {
					unread++
				}
				reads = 0
			}, func() { reads++ }},
		}, Driver: w.provider, Runtime: manager.Runtime{Now: w.now},
		Policies: manager.Policies{Machine: machine.DefaultPolicy()},
	})
	require.NoError(t, err)
	for _, r := range m.Reconcilers() {
		if r.Kind() == manager.KindDeployment {
			_, err := r.Reconcile(ctx, fleetKey)
			require.NoError(t, err)
		}
	}
	require.Greater(t, updates, 1)
	require.Zero(t, unread, "of %d updates", updates)
}

// aged is a store that knows when it was last read live. Each deletion takes time, and fails the test if the last
// live read is too old.
type aged[T object.Object[T]] struct {
	store.Collection[T]
	w       *world
	takes   time.Duration // how long a deletion takes
	within  time.Duration // how old the last live read may be
	read    *time.Time    // when the last live read ended
	deleted *int
}

func (a aged[T]) Live() store.Reader[T] { return agedReader[T]{a.Collection.Live(), a} }

func (a aged[T]) Delete(ctx context.Context, key object.Key, uid string) error {
	require.Less(a.w.t, a.w.at.Sub(*a.read), a.within, "the deletion of %s rests on an old read", key)
	*a.deleted++
	a.w.at = a.w.at.Add(a.takes)
	return a.Collection.Delete(ctx, key, uid)
}

type agedReader[T object.Object[T]] struct {
	store.Reader[T]
	of aged[T]
}

func (r agedReader[T]) List(ctx context.Context, q store.Query) ([]T, error) {
	all, err := r.Reader.List(ctx, q)
	*r.of.read = r.of.w.at
	return all, err
}

// TestNoDeletionRestsOnAnOldRead: even if deletions are slow, a set deletes machines and a deployment deletes sets
// only after a live read that ended less than DeleteWithin ago. All of them are deleted in the end.
func TestNoDeletionRestsOnAnOldRead(t *testing.T) {
	const many = 25
	w := newWorld(t, drivertest.MemoryOptions{})
	var readMachines, readSets time.Time
	machines, sets := 0, 0
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		o.Store.Machines = aged[*machine.Machine]{o.Store.Machines, w, time.Second, machineset.DeleteWithin, &readMachines, &machines}
		o.Store.Sets = aged[*machineset.Set]{o.Store.Sets, w, 3 * time.Second, machineset.DeleteWithin, &readSets, &sets}
	}
	w.fleet()
	none := int32(0)
	w.change(func(d *deployment.Deployment) {
		d.Spec.Replicas, d.Spec.RevisionHistoryLimit = many, &none
	})
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(many), neverDies(t))
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 0 })
	p = w.until(p, w.settled(0), neverDies(t))
	require.Equal(t, many, machines)

	// Old sets without machines are history, and are deleted one after another.
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	all, err := w.sets.List(ctx, store.Query{})
	require.NoError(t, err)
	for i := range 10 {
		old := &machineset.Set{Meta: object.Meta{
			Key: object.Key{Namespace: namespace, Name: fmt.Sprint("old-", i)}, Labels: map[string]string{"app": "web"},
			Owner: &object.Owner{Kind: deployment.OwnerKind, Name: d.Name, UID: d.UID},
		}}
		old.Spec = all[0].Spec.Clone()
		old.Spec.Template.Labels = map[string]string{"app": "web", "old": fmt.Sprint(i)}
		_, err := w.sets.Create(ctx, old)
		require.NoError(t, err)
	}
	w.until(p, func() bool { return len(keysOf(w.sets)) == 1 }, neverDies(t))
	require.Equal(t, 10, sets)
}

// TestOrphansRestOnLiveReads: caches lag in all ways, and do not show a machine, set or deployment yet, or still
// show it. Only the store counts.
func TestOrphansRestOnLiveReads(t *testing.T) {
	owns := func(w *world, name, id string) {
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}}}
		m.Spec.Class.Name, m.Spec.ProviderID = "small", id
		_, err := w.machines.Create(ctx, m)
		require.NoError(t, err)
	}
	other := object.Key{Namespace: namespace, Name: "other"}
	for name, change := range map[string]func(w *world, id string, sync func()){
		"a machine of its name that is not shown yet":     func(w *world, _ string, _ func()) { owns(w, "web-1", "") },
		"a machine that has its ID, and is not shown yet": func(w *world, id string, _ func()) { owns(w, "web-2", id) },
		"a set that is gone": func(w *world, _ string, sync func()) {
			_, err := w.sets.Create(ctx, &machineset.Set{Meta: object.Meta{Key: other}})
			require.NoError(t, err)
			sync()
			require.NoError(t, w.sets.Delete(ctx, other, ""))
		},
		"a deployment that is gone": func(w *world, _ string, sync func()) {
			_, err := w.deployments.Create(ctx, &deployment.Deployment{Meta: object.Meta{Key: other}})
			require.NoError(t, err)
			sync()
			require.NoError(t, w.deployments.Delete(ctx, other, ""))
		},
	} {
		w := guardedWorld(t)
		w.safety.OrphansOfEmptyStore = strings.HasPrefix(name, "a machine")
		id := w.addOrphanVM("blue", "web-1")
		p := w.start(&testkit.Fuse{}, true)
		change(w, id, p.sync)
		require.NoError(t, w.watch(p, manager.KindOrphans, 2*time.Hour))
		require.True(t, w.vmExists(id), name)
		require.Zero(t, count(w, codes.DeleteMachine), name)
	}

	// Objects that no cache shows count, too: the store is not empty.
	for name, change := range map[string]func(w *world){
		"a set": func(w *world) {
			_, err := w.sets.Create(ctx, &machineset.Set{Meta: object.Meta{Key: other}})
			require.NoError(t, err)
		},
		"a deployment": func(w *world) {
			_, err := w.deployments.Create(ctx, &deployment.Deployment{Meta: object.Meta{Key: other}})
			require.NoError(t, err)
		},
	} {
		w := guardedWorld(t)
		id := w.addOrphanVM("blue", "web-1")
		p := w.start(&testkit.Fuse{}, true)
		change(w)
		require.NoError(t, w.watch(p, manager.KindOrphans, 2*time.Hour))
		require.False(t, w.vmExists(id), name)
	}
}

// TestTurnsOfADeploymentThatIsGone: a cache shows another deployment, or another set, under the name of a
// machine's owner. Its pause does not hold up the update of the VM, and its sets share no limit with the machine.
func TestTurnsOfADeploymentThatIsGone(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	gone := d.Clone()
	gone.Finalizers = nil
	gone, err = w.deployments.Update(ctx, gone)
	require.NoError(t, err)
	require.NoError(t, w.deployments.Delete(ctx, gone.Key, gone.UID))
	again := &deployment.Deployment{Meta: object.Meta{Key: fleetKey}, Spec: gone.Clone().Spec}
	again.Spec.Paused = true
	again, err = w.deployments.Create(ctx, again)
	require.NoError(t, err)
	require.NotEqual(t, gone.UID, again.UID)

	w.tag("small", "s", tags{"team": "b"})
	for range 20 {
		for _, r := range p.Reconcilers() {
			for _, key := range keysOf(w.machines) {
				if r.Kind() == manager.KindMachine {
					_, err := r.Reconcile(ctx, key)
					require.NoError(t, err)
				}
			}
		}
		w.at = w.at.Add(time.Minute)
	}
	for _, vm := range w.provider.VMs() {
		require.Equal(t, "b", vm.Tags["team"])
	}
}

// vanish deletes a machine before any other pass sees that it is being deleted.
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

// TestNamesOfVanishedMachines: a machine that vanishes is replaced under another name, although its set has not
// settled its reservation. The next process does the same, if it has seen the set before. Nothing is remembered
// about a reservation that somebody has restored.
func TestNamesOfVanishedMachines(t *testing.T) {
	for name, line := range map[string]struct {
		meanwhile func(*testing.T, *world, *process) *process
		fresh     int64 // the number of the new machine
	}{
		"the process lives": {func(_ *testing.T, _ *world, p *process) *process { return p }, 4},
		"another process has looked": {func(t *testing.T, w *world, _ *process) *process {
			p := w.start(&testkit.Fuse{}, false)
			require.NoError(t, p.pass(manager.KindSet, w.set().Key))
			require.EqualValues(t, 3, w.set().Instructions.Reservation.Settled, "a process that does not remember settles the reservation")
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
			w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
				o.Policies.Set = machineset.DefaultPolicy()
				o.Policies.Set.SettleWithin = o.Policies.Set.RequestTimeout
			}
			w.fleet()
			settled := w.settled(3)
			p := w.until(w.start(&testkit.Fuse{}, false), settled, neverDies(t))
			set := w.set()
			require.Equal(t, machineset.Reservation{Reserved: 3, At: set.Instructions.Reservation.At}, set.Instructions.Reservation, "open")
			p = line.meanwhile(t, w, p)
			w.vanish(p, object.Key{Namespace: set.Namespace, Name: set.MachineName(2)})
			w.until(p, settled, neverDies(t))
			var names []string
			for _, key := range keysOf(w.machines) {
				names = append(names, key.Name)
			}
			require.ElementsMatch(t, []string{set.MachineName(1), set.MachineName(3), set.MachineName(line.fresh)}, names)
			require.Less(t, w.now().Sub(set.Instructions.Reservation.At), time.Minute, "the replacement waited for creates under way")
		})
	}
}
