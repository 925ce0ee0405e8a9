package manager_test

import (
	"fmt"
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
	"github.com/millwright-go/millwright/store"
)

// addOrphanVM adds a VM without a machine.
func (w *world) addOrphanVM(cluster, name string) string {
	id := w.provider.Add(drivertest.MemoryVM{Name: name, Cluster: cluster, Size: "s", Initialized: true})
	w.orphanVMs[id] = true
	return id
}

// vmExists reports whether a VM exists.
func (w *world) vmExists(id string) bool {
	for _, vm := range w.provider.VMs() {
		if vm.ID == id {
			return true
		}
	}
	return false
}

// guardedWorld returns a world whose manager has a safety policy.
func guardedWorld(t tb) *world {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.safety = safety.DefaultPolicy()
	return w
}

// watch runs only one reconciler of the whole fleet for a while, and returns the first error.
func (w *world) watch(p *process, kind manager.Kind, d time.Duration) error {
	for end := w.at.Add(d); !w.at.After(end); w.at = w.at.Add(5 * time.Second) {
		if err := p.lookAt(manager.KindReachability); err != nil {
			return err
		}
		if err := p.lookAt(kind); err != nil {
			return err
		}
	}
	return nil
}

// TestOrphansAreCollected: VMs of this cluster that belong to no machine are deleted when they are seen a second
// time, even a VM with the name of a machine that has another VM. VMs of machines and of other clusters stay.
func TestOrphansAreCollected(t *testing.T) {
	w := guardedWorld(t)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	orphanID, extra, foreign := w.addOrphanVM("blue", "web-lost"), w.addOrphanVM("blue", keysOf(w.machines)[0].Name), w.addOrphanVM("red", "web-other")
	lists, deletes := count(w, codes.ListMachines), count(w, codes.DeleteMachine)

	w.at = w.at.Add(15 * time.Minute)
	require.NoError(t, p.lookAt(manager.KindOrphans))
	require.Equal(t, lists+1, count(w, codes.ListMachines))
	require.NoError(t, p.lookAt(manager.KindOrphans), "too early to look again")
	w.at = w.at.Add(29 * time.Second)
	require.NoError(t, p.lookAt(manager.KindOrphans), "too early to look again")
	require.Equal(t, lists+1, count(w, codes.ListMachines))
	require.True(t, w.vmExists(orphanID) && w.vmExists(extra), "a VM that was seen once is not deleted")

	w.at = w.at.Add(time.Second)
	require.NoError(t, p.lookAt(manager.KindOrphans))
	require.Equal(t, deletes+2, count(w, codes.DeleteMachine))
	require.False(t, w.vmExists(orphanID) || w.vmExists(extra), "a VM that was seen twice is deleted")
	require.True(t, w.vmExists(foreign))
	require.Equal(t, 4, w.provider.Count())
	require.Equal(t, 1, w.countEvents("OrphanVM: VM "+orphanID+" was made for machine web-lost, which is gone"))
	require.Equal(t, 1, w.countEvents("ExtraVM: VM "+extra))

	require.NoError(t, w.watch(p, manager.KindOrphans, 14*time.Minute))
	require.Equal(t, lists+2, count(w, codes.ListMachines), "no new orphan was found, so no listing is due")
	require.NoError(t, w.watch(p, manager.KindOrphans, 46*time.Minute))
	require.Equal(t, deletes+2, count(w, codes.DeleteMachine))
	require.Equal(t, lists+2+4, count(w, codes.ListMachines), "classes are listed four times an hour")
}

// TestNoOrphanHasACreateInFlight: while a machine's record says that its create may be under way, no VM of its
// name is deleted (P15).
// Invariants: P15
func TestNoOrphanHasACreateInFlight(t *testing.T) {
	w := guardedWorld(t)
	w.safety.OrphansOfEmptyStore = true
	p := w.start(&testkit.Fuse{}, false)
	m, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "web-1"}, Finalizers: []string{machine.Finalizer}},
		Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	id := w.addOrphanVM("blue", "web-1")
	require.NoError(t, w.watch(p, manager.KindOrphans, 2*time.Hour))
	require.True(t, w.vmExists(id))
	require.NoError(t, w.machines.Delete(ctx, m.Key, ""))
	require.NoError(t, w.watch(p, manager.KindOrphans, 2*time.Hour))
	require.True(t, w.vmExists(id), "the machine deletes the VM itself")
	m, err = w.machines.Get(ctx, m.Key)
	require.NoError(t, err)
	m = m.Clone()
	m.Finalizers = nil
	_, err = w.machines.Update(ctx, m)
	require.NoError(t, err)
	require.NoError(t, w.watch(p, manager.KindOrphans, time.Hour))
	require.False(t, w.vmExists(id))
}

// TestOrphanIsLookedAtJustBefore: a machine that is created between the last listing and the delete keeps its VM.
// Invariants: P15
func TestOrphanIsLookedAtJustBefore(t *testing.T) {
	for _, ns := range []string{namespace, "other", "without class"} {
		w := guardedWorld(t)
		w.safety.OrphansOfEmptyStore = true
		f := &testkit.Fuse{}
		p := w.start(f, false)
		id := w.addOrphanVM("blue", "web-1")
		switch ns {
		case "without class":
			_, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: ns, Name: "web-0"}}})
			require.NoError(t, err)
		case "other":
			_, err := w.classes.Create(ctx, w.provider.Class(object.Key{Namespace: ns, Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"}))
			require.NoError(t, err)
		}
		require.NoError(t, p.lookAt(manager.KindReachability))
		require.NoError(t, p.lookAt(manager.KindOrphans))
		w.at = w.at.Add(30 * time.Second)
		reads := w.effects["ReadMachines"]
		f.Before = func(int) {
			if w.effects["ReadMachines"] > reads { // the last live list of machines has ended
				f.Before = nil
				_, err := w.machines.Create(ctx, &machine.Machine{
					Meta: object.Meta{Key: object.Key{Namespace: ns, Name: "web-1"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
				})
				require.NoError(t, err)
			}
		}
		require.NoError(t, p.lookAt(manager.KindOrphans))
		_, err := w.machines.Get(ctx, object.Key{Namespace: ns, Name: "web-1"})
		require.NoError(t, err)
		require.True(t, w.vmExists(id), ns)
		require.Zero(t, count(w, codes.DeleteMachine))
	}
}

// TestOrphansKilledAnywhere: the process is killed at any call while it deletes orphans, and a new one follows.
// The orphan is deleted, and no other VM.
// Invariants: P15
func TestOrphansKilledAnywhere(t *testing.T) {
	collect := func(f *testkit.Fuse, died func(*world) func() *process) (w *world, calls int) {
		w = guardedWorld(t)
		w.bounded = true
		w.fleet()
		w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		own := w.provider.VMs()
		orphanID := w.addOrphanVM("blue", "web-lost")
		w.until(w.start(f, false), func() bool { return !w.vmExists(orphanID) }, died(w))
		require.NoError(t, w.nodes.Delete(ctx, object.Key{Name: "web-lost"}, ""))
		p := w.start(&testkit.Fuse{}, false)
		require.NoError(t, w.watch(p, manager.KindOrphans, time.Hour))
		require.Equal(t, own, w.provider.VMs())
		return w, f.Calls
	}
	_, total := collect(&testkit.Fuse{}, func(*world) func() *process { return neverDies(t) })
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total, 7) {
			collect(&testkit.Fuse{BlowAt: n, BlowAfter: after}, func(w *world) func() *process {
				return func() *process { return w.start(&testkit.Fuse{}, false) }
			})
		}
	}
}

// TestSeveralVMs: after OUT_OF_RANGE, the VMs of the class are listed at once. Those that no machine has recorded
// are deleted, here all of them. Then the machine gets a new VM.
func TestSeveralVMs(t *testing.T) {
	w := guardedWorld(t)
	p := w.start(&testkit.Fuse{}, false)
	w.round(p)
	w.at = w.at.Add(time.Minute)
	first, second := w.addOrphanVM("blue", "web-1"), w.addOrphanVM("blue", "web-1")
	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "web-1"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	begun := w.at
	w.until(p, func() bool { return !w.vmExists(first) && !w.vmExists(second) }, neverDies(t))
	require.LessOrEqual(t, w.at.Sub(begun), 2*time.Minute)
	require.NoError(t, w.nodes.Delete(ctx, object.Key{Name: "web-1"}, "")) // theirs
	w.until(p, func() bool { return w.phases()[machine.PhaseRunning] == 1 }, neverDies(t))
	require.Equal(t, 1, w.provider.Count())
	require.NoError(t, w.watch(p, manager.KindOrphans, time.Hour))
	require.Equal(t, 1, w.provider.Count())
}

// TestWhatWakesTheOrphans: after a machine disappears, its class is listed within 10 s, but no earlier than 30 s
// after a listing for another such machine. A new class is listed at once. Other changes cause no listing.
func TestWhatWakesTheOrphans(t *testing.T) {
	w := guardedWorld(t)
	p := w.start(&testkit.Fuse{}, false)
	wake := func(from manager.Kind, old, new any) (keys []object.Key) {
		for _, wake := range p.Wakes() {
			if wake.From == from && wake.To == manager.KindOrphans {
				keys = append(keys, wake.Keys(ctx, old, new)...)
			}
		}
		return keys
	}
	all := []object.Key{manager.Fleet}
	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	require.NoError(t, err)
	require.Equal(t, all, wake(manager.KindClass, nil, class))
	require.Empty(t, wake(manager.KindClass, class, class))
	require.Empty(t, wake(manager.KindClass, class, nil))
	m := &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	odd := m.Clone()
	odd.Status.LastOperation.Code = codes.OutOfRange
	require.Empty(t, wake(manager.KindMachine, nil, m))
	require.Empty(t, wake(manager.KindMachine, m, m))
	require.Equal(t, all, wake(manager.KindMachine, m, odd))
	require.Empty(t, wake(manager.KindMachine, odd, odd))
	require.Empty(t, wake(manager.KindMachine, nil, nil))

	require.NoError(t, w.watch(p, manager.KindOrphans, time.Minute))
	lists := count(w, codes.ListMachines)
	require.Equal(t, all, wake(manager.KindMachine, m, nil))
	begun := w.at
	for count(w, codes.ListMachines) == lists {
		w.at = w.at.Add(time.Second)
		require.Equal(t, all, wake(manager.KindMachine, m, nil), "another wake-up must not postpone the listing")
		require.NoError(t, p.lookAt(manager.KindOrphans))
	}
	require.Equal(t, 10*time.Second, w.at.Sub(begun))
	require.Equal(t, lists+1, count(w, codes.ListMachines))
	begun = w.at
	for count(w, codes.ListMachines) == lists+1 {
		w.at = w.at.Add(time.Second)
		require.Equal(t, all, wake(manager.KindMachine, m, nil))
		require.NoError(t, p.lookAt(manager.KindOrphans))
	}
	require.Equal(t, 30*time.Second, w.at.Sub(begun), "the next listing is not made at once")
	w.at = w.at.Add(time.Second)
	require.NoError(t, w.watch(p, manager.KindOrphans, 14*time.Minute))
	require.Equal(t, lists+2, count(w, codes.ListMachines), "no other listing is due")
}

// TestOrphansInTrouble: a provider that refuses is asked again, a class that can't be listed delays no other, and
// a listing that was not judged, because the store failed, does not count. Each is reported once.
func TestOrphansInTrouble(t *testing.T) {
	w := guardedWorld(t)
	w.safety.OrphansOfEmptyStore = true
	p := w.start(&testkit.Fuse{}, false)
	orphanID := w.addOrphanVM("blue", "web-lost")
	require.NoError(t, p.lookAt(manager.KindReachability))
	w.provider.FailNext(codes.ListMachines, codes.New(codes.Unavailable, "later"))
	for range 4 {
		w.provider.FailNext(codes.DeleteMachine, codes.New(codes.Unavailable, "not now"))
	}
	require.NoError(t, p.lookAt(manager.KindOrphans))
	require.Equal(t, 1, w.countEvents("ListVMsFailed"))

	w.at = w.at.Add(time.Minute)
	w.controlDown = true // for so short a time that nothing is frozen yet
	require.ErrorIs(t, p.lookAt(manager.KindOrphans), testkit.ErrOutage)
	lists := count(w, codes.ListMachines)
	require.ErrorIs(t, func() error { w.at = w.at.Add(31 * time.Second); return p.lookAt(manager.KindOrphans) }(), testkit.ErrOutage)
	require.Equal(t, lists+1, count(w, codes.ListMachines), "the listing was not judged, so it is repeated")
	w.controlDown = false

	begun, last := w.at, time.Time{}
	var waits []time.Duration
	for w.vmExists(orphanID) {
		w.at = w.at.Add(time.Second)
		before := count(w, codes.DeleteMachine)
		require.NoError(t, p.lookAt(manager.KindOrphans))
		require.LessOrEqual(t, w.at.Sub(begun), 2*time.Hour)
		if count(w, codes.DeleteMachine) > before {
			waits, last = append(waits, w.at.Sub(last)), w.at
		}
	}
	require.Len(t, waits, 5)
	require.Greater(t, waits[4], waits[1], "waits get longer")
	require.Equal(t, 1, w.countEvents("OrphanDeleteFailed: orphan VM "+orphanID+" could not be deleted: UNAVAILABLE: not now"))
	require.Equal(t, 1, w.countEvents("ListVMsFailed"))

	require.NoError(t, w.watch(p, manager.KindOrphans, 20*time.Minute))
	w.provider.FailNext(codes.ListMachines, codes.New(codes.Unavailable, "later"))
	require.NoError(t, w.watch(p, manager.KindOrphans, 20*time.Minute))
	require.Equal(t, 2, w.countEvents("ListVMsFailed"), "a later failure is reported again")
	w.provider.FailNext(codes.ListMachines, codes.New(codes.Unavailable, "later"))
	require.NoError(t, w.watch(p, manager.KindOrphans, 20*time.Minute))
	require.Equal(t, 3, w.countEvents("ListVMsFailed"), "each later failure is reported again")
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Empty(t, machines)
}

// TestOrphansOfSeveralClasses: each class is listed with its own secret, and a VM is deleted through the class
// that listed it.
func TestOrphansOfSeveralClasses(t *testing.T) {
	w := guardedWorld(t)
	w.safety.OrphansOfEmptyStore = true
	for _, cluster := range []string{"red", "green"} {
		class := w.provider.Class(object.Key{Namespace: cluster, Name: "small"}, drivertest.MemorySpec{Cluster: cluster, Size: "s"})
		_, err := w.classes.Create(ctx, class)
		require.NoError(t, err)
	}
	orphanIDs := []string{w.addOrphanVM("red", "a"), w.addOrphanVM("green", "b"), w.addOrphanVM("blue", "c"), w.addOrphanVM("grey", "d")}
	p := w.start(&testkit.Fuse{}, false)
	require.NoError(t, w.watch(p, manager.KindOrphans, 5*time.Minute))
	require.False(t, w.vmExists(orphanIDs[0]) || w.vmExists(orphanIDs[1]) || w.vmExists(orphanIDs[2]), fmt.Sprint(w.events))
	require.True(t, w.vmExists(orphanIDs[3]))
	require.Equal(t, 3, count(w, codes.DeleteMachine))
}

// TestWrongStore: a manager with a cluster's credentials and an empty store deletes none of its VMs, and says so
// once. With a store that knows one machine it deletes three, and a share of the rest in each later period.
// Invariants: P15
func TestWrongStore(t *testing.T) {
	w := guardedWorld(t)
	p := w.start(&testkit.Fuse{}, false)
	for i := range 100 {
		w.addOrphanVM("blue", fmt.Sprint("web-", i))
	}
	require.NoError(t, w.watch(p, manager.KindOrphans, 2*time.Hour))
	require.Equal(t, 100, w.provider.Count())
	require.Zero(t, count(w, codes.DeleteMachine))
	require.Equal(t, 1, w.countEvents("StoreIsEmpty: 100 VMs have no machine, but the store holds no machine"))
	require.LessOrEqual(t, count(w, codes.ListMachines), 9, "looked at no more often than every 15 min")

	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "web-0"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	p = w.start(&testkit.Fuse{}, false)
	require.NoError(t, w.watch(p, manager.KindOrphans, 14*time.Minute))
	require.Equal(t, 97, w.provider.Count())
	require.Equal(t, 1, w.countEvents("TooManyOrphans: 96 more VMs have no machine and are not deleted yet, since only 3 may be deleted in 15m0s"))
	require.NoError(t, w.watch(p, manager.KindOrphans, 15*time.Minute))
	require.Equal(t, 97-9, w.provider.Count(), "of 97")
	require.NoError(t, w.watch(p, manager.KindOrphans, 24*time.Hour))
	require.Equal(t, 1, w.provider.Count(), "the orphans are deleted in the end")
}

// TestSetsSayThatTheStoreIsRight: even without machines, orphans are deleted if there is a set or a deployment.
func TestSetsSayThatTheStoreIsRight(t *testing.T) {
	for _, make := range []func(*world){func(w *world) { w.fleet() }, func(w *world) { w.loneSet(0) }} {
		w := guardedWorld(t)
		make(w)
		id := w.addOrphanVM("blue", "web-lost")
		require.NoError(t, w.watch(w.start(&testkit.Fuse{}, false), manager.KindOrphans, 5*time.Minute))
		require.False(t, w.vmExists(id))
	}
}

// TestEmptyStoreThatCannotBeRead: if any read of a pass fails, the pass deletes nothing.
func TestEmptyStoreThatCannotBeRead(t *testing.T) {
	failures := 0
	for down := range 30 {
		w := guardedWorld(t)
		w.loneSet(0)
		id := w.addOrphanVM("blue", "web-lost")
		p := w.start(&testkit.Fuse{}, false)
		require.NoError(t, p.lookAt(manager.KindReachability))
		require.NoError(t, p.lookAt(manager.KindOrphans))
		w.at = w.at.Add(30 * time.Second)
		begun := p.fuse.Calls
		p.fuse.Before = func(call int) { w.controlDown = call == begun+1+down }
		if err := p.lookAt(manager.KindOrphans); err != nil {
			require.ErrorIs(t, err, testkit.ErrOutage)
			require.True(t, w.vmExists(id))
			failures++
			continue
		}
		require.False(t, w.vmExists(id))
	}
	require.Equal(t, 4, failures, "machines, sets, deployments, and the machine of that name")
}

// late stores a machine as a late create does, after its set is gone.
func (w *world) late(name, kind string) *machine.Machine {
	m := &machine.Machine{Meta: object.Meta{
		Key: object.Key{Namespace: namespace, Name: name}, Owner: &object.Owner{Kind: kind, Name: "web-0", UID: "gone"},
	}}
	m.Spec.Class.Name = "small"
	m, err := w.machines.Create(ctx, m)
	require.NoError(w.t, err)
	return m
}

// TestMachineOfASetThatIsGone: such a machine and its VM are deleted a few minutes after it was created. Machines
// whose set exists, that have no owner, or that have another owner, stay.
// Invariants: P29
func TestMachineOfASetThatIsGone(t *testing.T) {
	w := guardedWorld(t)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.late("late", machineset.OwnerKind)
	foreign := w.late("foreign", "Other")
	free, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "free"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	begun := w.at
	gone := func() bool {
		_, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: "late"})
		return err != nil
	}
	w.until(p, gone, neverDies(t))
	require.LessOrEqual(t, w.at.Sub(begun), 18*time.Minute)
	require.GreaterOrEqual(t, w.at.Sub(begun), 2*time.Minute)
	require.Equal(t, 1, w.countEvents("SetGone: machine late belongs to set web-0, which is gone"))
	end := w.at.Add(time.Hour)
	w.until(p, func() bool { return w.at.After(end) }, neverDies(t))
	for _, m := range []*machine.Machine{foreign, free} {
		_, err := w.machines.Get(ctx, m.Key)
		require.NoError(t, err)
	}
	require.Equal(t, 5, w.provider.Count())
}

// TestSetOfADeploymentThatIsGone: such a set is deleted with its machines.
// Invariants: P29
func TestSetOfADeploymentThatIsGone(t *testing.T) {
	w := guardedWorld(t)
	s := &machineset.Set{Meta: object.Meta{
		Key: fleetKey, Owner: &object.Owner{Kind: deployment.OwnerKind, Name: "web", UID: "gone"},
	}}
	s.Spec.Replicas, s.Spec.Selector.Labels = 2, map[string]string{"app": "web"}
	s.Spec.Template = machineset.Template{Labels: s.Spec.Selector.Labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	_, err := w.sets.Create(ctx, s)
	require.NoError(t, err)
	w.until(w.start(&testkit.Fuse{}, false), w.empty, neverDies(t))
	require.Equal(t, 1, w.countEvents("DeploymentGone: set web belongs to deployment web, which is gone"))
}

// TestOwnersThatCannotBeRead: if any read fails, the pass deletes nothing.
// Invariants: P29
func TestOwnersThatCannotBeRead(t *testing.T) {
	failures := 0
	for down := range 20 {
		w := guardedWorld(t)
		m := w.late("late", machineset.OwnerKind)
		p := w.start(&testkit.Fuse{}, false)
		require.NoError(t, p.lookAt(manager.KindReachability))
		require.NoError(t, p.lookAt(manager.KindOwnerless))
		w.at = w.at.Add(2 * time.Minute)
		begun := p.fuse.Calls
		p.fuse.Before = func(call int) { w.controlDown = call == begun+1+down }
		err := p.lookAt(manager.KindOwnerless)
		p.fuse.Before, w.controlDown = nil, false
		if err == nil {
			require.Empty(t, keysOf(w.machines), "call %d", down)
			continue
		}
		failures++
		require.ErrorIs(t, err, testkit.ErrOutage)
		m, err = w.machines.Get(ctx, m.Key)
		require.NoError(t, err)
		require.False(t, m.Deleted())
	}
	require.Equal(t, 6, failures, "machines, sets, deployments; the machine, its set; the delete")
}

// TestOwnerThatAppearsJustBefore: child and owner are read once more just before the deletion. So a machine that was
// taken over meanwhile stays, and so does one whose set the caches do not show.
// Invariants: P29
func TestOwnerThatAppearsJustBefore(t *testing.T) {
	w := guardedWorld(t)
	m := w.late("late", machineset.OwnerKind)
	p := w.start(&testkit.Fuse{}, false)
	require.NoError(t, p.lookAt(manager.KindReachability))
	require.NoError(t, p.lookAt(manager.KindOwnerless))
	w.at = w.at.Add(2 * time.Minute)
	reads := w.effects["ReadAll"]
	p.fuse.Before = func(int) {
		if w.effects["ReadAll"] > reads {
			p.fuse.Before = nil
			moved := m.Clone()
			moved.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: "web-1", UID: "other"}
			_, err := w.machines.Update(ctx, moved)
			require.NoError(t, err)
		}
	}
	require.NoError(t, p.lookAt(manager.KindOwnerless))
	require.Len(t, keysOf(w.machines), 1)

	w = guardedWorld(t)
	p = w.start(&testkit.Fuse{}, true)
	w.loneSet(1)
	s, err := w.sets.Get(ctx, fleetKey)
	require.NoError(t, err)
	own := w.late("own", machineset.OwnerKind).Clone()
	own.Owner.Name, own.Owner.UID = s.Name, s.UID
	_, err = w.machines.Update(ctx, own)
	require.NoError(t, err)
	require.NoError(t, w.watch(p, manager.KindOwnerless, time.Hour), "the caches show neither the machine nor its set")
	require.Len(t, keysOf(w.machines), 1)
}

// TestWhatWakesTheOwnerless: only new objects whose owner is not known wake the reconciler.
func TestWhatWakesTheOwnerless(t *testing.T) {
	w := guardedWorld(t)
	p := w.start(&testkit.Fuse{}, false)
	wake := func(from manager.Kind, old, new any) (n int) {
		for _, wake := range p.Wakes() {
			if wake.From == from && wake.To == manager.KindOwnerless {
				n += len(wake.Keys(ctx, old, new))
			}
		}
		return n
	}
	late := w.late("late", machineset.OwnerKind)
	require.Equal(t, 1, wake(manager.KindMachine, nil, late))
	require.Zero(t, wake(manager.KindMachine, late, late)+wake(manager.KindMachine, late, nil)+wake(manager.KindMachine, nil, nil))
	require.Zero(t, wake(manager.KindMachine, nil, w.late("foreign", "Other")))
	w.loneSet(0)
	s, err := w.sets.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Zero(t, wake(manager.KindSet, nil, s))
	own := late.Clone()
	own.Owner.Name = s.Name
	require.Equal(t, 1, wake(manager.KindMachine, nil, own), "a machine of another set of that name")
	own.Owner.UID = s.UID
	require.Zero(t, wake(manager.KindMachine, nil, own))
	s = s.Clone()
	s.Owner = &object.Owner{Kind: deployment.OwnerKind, Name: "web", UID: "gone"}
	require.Equal(t, 1, wake(manager.KindSet, nil, s))
}
