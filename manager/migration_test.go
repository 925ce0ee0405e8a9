package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// olderClass holds one class of an older kind, which the provider in memory can read.
type olderClass struct {
	class    manager.ForeignClass
	gone     bool
	blank    bool // Get answers neither a class nor an error
	marks    int
	seenWith machine.ClassRef
}

// olderClassPort is the olderClass as one process sees it.
type olderClassPort struct {
	*olderClass
	fuse *testkit.Fuse
}

var olderKind = machine.ClassRef{APIGroup: "memory.example", Kind: "MemoryClass", Name: "small"}

func (d olderClassPort) Get(_ context.Context, kind machine.ClassRef, key object.Key) (out *manager.ForeignClass, err error) {
	err = d.fuse.Do(func() error {
		d.seenWith = kind
		if d.blank {
			return nil
		}
		if d.gone || kind != olderKind || key != smallKey {
			return fmt.Errorf("class %s: %w", key, store.ErrNotFound)
		}
		class := d.class
		out = &class
		return nil
	})
	return out, err
}

func (d olderClassPort) MarkMigrated(_ context.Context, _ machine.ClassRef, key object.Key, version string) error {
	return d.fuse.Do(func() error {
		if version != d.class.Version {
			return fmt.Errorf("class %s: %w", key, store.ErrConflict)
		}
		d.class.Migrated = true
		d.marks++
		return nil
	})
}

// older makes a world in which the fleet's class is of an older kind. The class of our kind does not exist, or is
// half filled.
func older(t tb, half bool) (*world, *olderClass) {
	w := newWorld(t, drivertest.MemoryOptions{})
	a := &olderClass{class: manager.ForeignClass{Object: drivertest.MemorySpec{Cluster: "blue", Size: "s"}, Version: "1"}}
	w.setOptions = func(o *manager.Options, f *testkit.Fuse) {
		o.Classes.Keep, o.Classes.Foreign, o.Cluster = true, olderClassPort{a, f}, nil
	}
	class, err := w.classes.Get(ctx, smallKey)
	require.NoError(t, err)
	require.NoError(t, w.classes.Delete(ctx, smallKey, ""))
	if half {
		class = class.Clone()
		class.ProviderSpec = nil
		_, err = w.classes.Create(ctx, class)
		require.NoError(t, err)
	}
	w.fleet()
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Spec.Class = olderKind })
	return w, a
}

// migrated returns whether a fleet of three uses our class, and nothing refers to the older one.
func (w *world) migrated(a *olderClass) func() bool {
	moved := olderKind
	moved.Kind = machine.ClassKind
	return func() bool {
		class, err := w.classes.Get(ctx, smallKey)
		if err != nil || class.Provider != drivertest.MemoryProvider || !a.class.Migrated {
			return false
		}
		d, err := w.deployments.Get(ctx, fleetKey)
		require.NoError(w.t, err)
		ready := int(d.Status.Available) == 3 && d.Spec.Template.Spec.Class == moved && w.provider.Count() == 3
		for _, key := range keysOf(w.sets) {
			s, err := w.sets.Get(ctx, key)
			require.NoError(w.t, err)
			ready = ready && s.Spec.Template.Spec.Class == moved
		}
		for _, key := range keysOf(w.machines) {
			m, err := w.machines.Get(ctx, key)
			require.NoError(w.t, err)
			ready = ready && m.Spec.Class == moved
		}
		return ready
	}
}

// TestMigration: a fleet whose class is of an older kind waits for the class of our kind, and is then made from
// it: one set, no machine replaced, and no VM too early.
// Invariants: P4
func TestMigration(t *testing.T) {
	for _, half := range []bool{false, true} {
		w, a := older(t, half)
		w.until(w.start(&testkit.Fuse{}, false), w.migrated(a), neverDies(t))
		require.Len(t, keysOf(w.sets), 1)
		require.Len(t, w.made, 3)
		require.Equal(t, 1, a.marks)
		require.Equal(t, 1, count(w, codes.GenerateMachineClassForMigration))
		class, err := w.classes.Get(ctx, smallKey)
		require.NoError(t, err)
		require.Equal(t, "MemoryClass.memory.example", class.Annotations[machineclass.MigratedFrom])
		require.True(t, class.HasFinalizer(machine.Finalizer))
		require.Equal(t, half, class.SecretRef != nil, "the content of the class stays")
	}
}

// TestMigrationKilledAnywhere kills the manager at every call of a migration, once before and once after the call
// takes effect (P26, P12).
// Invariants: P12 P26
func TestMigrationKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	undisturbed, a := older(t, true)
	undisturbed.until(undisturbed.start(total, false), undisturbed.migrated(a), neverDies(t))
	want, err := undisturbed.classes.Get(ctx, smallKey)
	require.NoError(t, err)
	for n := range testkit.EveryCall(2*total.Calls, 7) {
		w, a := older(t, n%3 > 0)
		w.until(w.start(&testkit.Fuse{BlowAt: (n + 1) / 2, BlowAfter: n%2 == 0}, false), w.migrated(a),
			func() *process { return w.start(&testkit.Fuse{}, false) })
		require.Len(t, w.made, 3, "machines made; killed at call %d", n)
		require.Len(t, keysOf(w.sets), 1)
		require.LessOrEqual(t, a.marks, 1)
		got, err := w.classes.Get(ctx, smallKey)
		require.NoError(t, err)
		require.Equal(t, want.ProviderSpec, got.ProviderSpec)
		require.Equal(t, want.Annotations, got.Annotations)
		require.Equal(t, want.Finalizers, got.Finalizers)
	}
}

// TestMigrationStaleAndKilled: processes die, caches lag, the driver fails, and the older class changes meanwhile.
// Invariants: P12
func TestMigrationStaleAndKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, a := older(t, rapid.Bool().Draw(t, "half"))
		lives := 2
		begin := func() *process {
			f := &testkit.Fuse{}
			if lives > 0 {
				lives--
				f.BlowAt = rapid.IntRange(1, 150).Draw(t, "dies at call")
				changes := rapid.IntRange(1, 150).Draw(t, "changes at call")
				f.Before = func(call int) {
					if call == changes && !a.class.Migrated {
						a.class.Object = drivertest.MemorySpec{Cluster: "blue", Size: "m"}
						a.class.Version = "2"
					}
				}
			}
			return w.startLagging(t, f)
		}
		for range rapid.IntRange(0, 3).Draw(t, "faults") {
			w.provider.FailNext(codes.GenerateMachineClassForMigration, codes.New(codes.Internal, "a fault"))
		}
		w.until(begin(), w.migrated(a), begin)
		class, err := w.classes.Get(ctx, smallKey)
		require.NoError(t, err)
		want := w.provider.Class(smallKey, a.class.Object.(drivertest.MemorySpec))
		require.Equal(t, want.ProviderSpec, class.ProviderSpec, "the class is like the older class when that was marked")
		if len(w.made) > 3+w.lost {
			t.Fatalf("P12: %d machines made, 3 wanted, %d lost\n%s", len(w.made), w.lost, w.dump())
		}
	})
}

// TestMigrationUnsupported: if the driver can't migrate, the older class stays as it is. That is reported once,
// and the driver is not called again.
func TestMigrationUnsupported(t *testing.T) {
	w, a := older(t, false)
	a.class.Object = "of another driver"
	p := w.start(&testkit.Fuse{}, false)
	for range 8 {
		w.round(p)
		w.at = w.at.Add(10 * time.Minute)
	}
	require.Equal(t, 1, strings.Count(strings.Join(w.events, "\n"), "MigrationUnsupported: the driver does not migrate classes of kind MemoryClass.memory.example"))
	require.Equal(t, 1, count(w, codes.GenerateMachineClassForMigration))
	require.False(t, a.class.Migrated)
	require.Empty(t, keysOf(w.classes))
	require.Zero(t, w.provider.Count())
	m, err := w.machines.Get(ctx, keysOf(w.machines)[0])
	require.NoError(t, err)
	require.Equal(t, codes.NotFound, m.Status.LastOperation.Code)
	require.Contains(t, m.Status.LastOperation.Message, "no class small that replaces the one of kind MemoryClass.memory.example")

	a.class.Object, a.class.Version = drivertest.MemorySpec{Cluster: "blue", Size: "s"}, "2"
	w.until(p, w.migrated(a), neverDies(t))
}

// TestMigrationOfLoneObjects: sets and machines without an owner are moved, too. An object that is deleted
// meanwhile holds up no other.
func TestMigrationOfLoneObjects(t *testing.T) {
	w, a := older(t, false)
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	set := &machineset.Set{Meta: object.Meta{Key: fleetKey}}
	set.Spec.Template.Spec.Class = olderKind
	_, err := w.sets.Create(ctx, set)
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}}, Spec: machine.Spec{Class: olderKind}}
		_, err = w.machines.Create(ctx, m)
		require.NoError(t, err)
	}
	o := w.options()
	w.setOptions(&o, &testkit.Fuse{})
	// a is deleted after it was listed, before its reference is moved
	o.Classes.Foreign = olderClassPort{a, &testkit.Fuse{Before: func(call int) {
		if call == 1 {
			require.NoError(t, w.machines.Delete(ctx, object.Key{Namespace: namespace, Name: "a"}, ""))
		}
	}}}
	_, err = reconciler(t, o, manager.KindClass).Reconcile(ctx, smallKey)
	require.NoError(t, err)
	s, err := w.sets.Get(ctx, fleetKey)
	require.NoError(t, err)
	m, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: "b"})
	require.NoError(t, err)
	require.Equal(t, machine.ClassRef{APIGroup: "memory.example", Kind: "MachineClass", Name: "small"}, s.Spec.Template.Spec.Class)
	require.Equal(t, s.Spec.Template.Spec.Class, m.Spec.Class)
	require.Equal(t, olderKind, a.seenWith)
}

// TestMigrationKeepsToItself: without Classes.Foreign the kind of a class does not matter. With it, a class of
// ours is not used in place of an older one.
func TestMigrationKeepsToItself(t *testing.T) {
	for _, migrates := range []bool{false, true} {
		w, a := older(t, false)
		a.gone = true
		_, err := w.classes.Create(ctx, w.provider.Class(smallKey, drivertest.MemorySpec{Cluster: "blue", Size: "s"}))
		require.NoError(t, err)
		if !migrates {
			w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Cluster = nil }
		}
		p := w.start(&testkit.Fuse{}, false)
		for range 8 {
			w.round(p)
			w.at = w.at.Add(time.Minute)
		}
		if migrates {
			require.Zero(t, w.provider.Count())
			require.Contains(t, strings.Join(w.events, "\n"), "OldClassMissing: ")
			continue
		}
		require.Equal(t, 3, w.provider.Count())
	}
}

// TestForeignClassesFail: if Classes.Foreign fails, the pass returns an error that names the class, and changes
// nothing.
func TestForeignClassesFail(t *testing.T) {
	w, a := older(t, false)
	f := &testkit.Fuse{BlowAt: 1}
	o := w.options()
	w.setOptions(&o, f)
	r := reconciler(t, o, manager.KindClass)
	_, err := r.Reconcile(ctx, smallKey)
	require.ErrorIs(t, err, testkit.ErrDead)
	require.ErrorContains(t, err, "class fleet/small of kind MemoryClass.memory.example")
	require.Empty(t, keysOf(w.classes))

	f.Dead, f.Calls, f.BlowAt = false, 0, 2
	_, err = r.Reconcile(ctx, smallKey)
	require.ErrorIs(t, err, testkit.ErrDead)
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.True(t, d.Spec.Template.Spec.Class.Foreign(), "nothing moves before the mark")
	require.False(t, a.class.Migrated)
}

// blind is a store whose cache has not seen recent writes: Get returns the object as it was before them, and List
// returns nothing.
type blind[T object.Object[T]] struct {
	store.Collection[T]
	before T
}

func (b blind[T]) Get(ctx context.Context, k object.Key) (T, error) {
	var none T
	if b.before == none {
		return b.Collection.Get(ctx, k)
	}
	return b.before, nil
}

func (b blind[T]) List(context.Context, store.Query) ([]T, error) { return nil, nil }

// TestKeepersDoNotTrustCaches: no finalizer is removed because a cache shows no user, and an outdated class is
// read again.
func TestKeepersDoNotTrustCaches(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	old, err := w.classes.Get(ctx, smallKey)
	require.NoError(t, err)
	o := w.options()
	o.Classes.Keep = true
	relabelled := old.Clone()
	relabelled.Labels = map[string]string{"a": "b"}
	_, err = w.classes.Update(ctx, relabelled)
	require.NoError(t, err)
	o.Store.Classes = blind[*machine.Class]{w.classes, old}
	secret, err := w.secrets.Get(ctx, bootKey)
	require.NoError(t, err)
	_, err = w.secrets.Update(ctx, secret.Clone()) // the same data, another version
	require.NoError(t, err)
	o.Store.Secrets = blind[*machine.Secret]{w.secrets, secret}
	for _, kind := range []manager.Kind{manager.KindClass, manager.KindSecret} {
		seeing := o
		if kind == manager.KindSecret {
			seeing.Store.Classes = w.classes
		}
		_, err = reconciler(t, seeing, kind).Reconcile(ctx, map[manager.Kind]object.Key{manager.KindClass: smallKey, manager.KindSecret: bootKey}[kind])
		require.NoError(t, err)
	}
	require.True(t, w.held())

	// now the finalizers are set, and the caches show no object that needs them
	o.Store.Classes, o.Store.Secrets = w.classes, w.secrets
	o.Store.Deployments, o.Store.Sets, o.Store.Machines = blind[*deployment.Deployment]{w.deployments, nil}, w.sets, w.machines
	_, err = reconciler(t, o, manager.KindClass).Reconcile(ctx, smallKey)
	require.NoError(t, err)
	o.Store.Classes = blind[*machine.Class]{w.classes, nil}
	_, err = reconciler(t, o, manager.KindSecret).Reconcile(ctx, bootKey)
	require.NoError(t, err)
	require.True(t, w.held())
}

// TestAllUsersAreNamed: if a class is being deleted, all of its users are counted.
func TestAllUsersAreNamed(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.keeping()
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.settled(3)() && w.held() }, neverDies(t))
	require.NoError(t, w.classes.Delete(ctx, smallKey, ""))
	w.round(p)
	require.Contains(t, strings.Join(w.events, "\n"), "while it is used by 1 deployment, 1 set, 3 machines")
}

// meet reconciles the class of a world, and runs meanwhile just before the older class is read.
func (w *world) meet(t *testing.T, a *olderClass, o *manager.Options, meanwhile func()) error {
	a.marks = 0
	o.Classes.Foreign = olderClassPort{a, &testkit.Fuse{Before: func(call int) {
		if call == 1 {
			meanwhile()
		}
	}}}
	_, err := reconciler(t, *o, manager.KindClass).Reconcile(ctx, smallKey)
	return err
}

// TestMigrationMeetsOthers: a class that somebody else creates or deletes during its migration is read again. A
// reference that somebody changes meanwhile is not moved.
func TestMigrationMeetsOthers(t *testing.T) {
	for _, half := range []bool{false, true} {
		w, a := older(t, half)
		o := w.options()
		w.setOptions(&o, &testkit.Fuse{})
		class := w.provider.Class(smallKey, drivertest.MemorySpec{Cluster: "blue", Size: "m"})
		require.NoError(t, w.meet(t, a, &o, func() {
			var err error
			if half {
				err = w.classes.Delete(ctx, smallKey, "")
			} else {
				_, err = w.classes.Create(ctx, class)
			}
			require.NoError(t, err)
		}))
		require.Equal(t, 1, a.marks)
		got, err := w.classes.Get(ctx, smallKey)
		require.NoError(t, err)
		require.NotEqual(t, class.ProviderSpec, got.ProviderSpec)
	}

	w, a := older(t, false)
	o := w.options()
	w.setOptions(&o, &testkit.Fuse{})
	m, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: olderKind}})
	require.NoError(t, err)
	other := machine.ClassRef{Kind: "OtherClass", Name: "small"}
	require.NoError(t, w.meet(t, a, &o, func() {
		changed := m.Clone()
		changed.Spec.Class = other
		_, err := w.machines.Update(ctx, changed)
		require.NoError(t, err)
	}))
	m, err = w.machines.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Equal(t, other, m.Spec.Class)
}

// TestMigrationFails: waits grow, changes that a failed driver made to its copy are not stored, and a shutdown is
// no failure.
func TestMigrationFails(t *testing.T) {
	w, a := older(t, true)
	o := w.options()
	w.setOptions(&o, &testkit.Fuse{})
	r := reconciler(t, o, manager.KindClass)
	before, err := w.classes.Get(ctx, smallKey)
	require.NoError(t, err)
	for _, wait := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
		w.provider.FailAfter(codes.GenerateMachineClassForMigration, codes.New(codes.Internal, "a fault"))
		result, err := r.Reconcile(ctx, smallKey)
		require.NoError(t, err)
		require.Equal(t, wait, result.At.Sub(w.at))
		w.at = result.At
	}
	after, err := w.classes.Get(ctx, smallKey)
	require.NoError(t, err)
	require.True(t, after.SpecEqual(before))
	require.Empty(t, before.ProviderSpec)

	stopping, stop := context.WithCancel(ctx)
	o.Classes.Foreign = olderClassPort{a, &testkit.Fuse{Before: func(int) { stop() }}}
	w.events = nil
	_, err = reconciler(t, o, manager.KindClass).Reconcile(stopping, smallKey)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, strings.Join(w.events, "\n"), "MigrationFailed")

	a.blank = true
	o.Classes.Foreign = olderClassPort{a, &testkit.Fuse{}}
	_, err = reconciler(t, o, manager.KindClass).Reconcile(ctx, smallKey)
	require.NoError(t, err)
	require.Contains(t, strings.Join(w.events, "\n"), "OldClassMissing")
}

// meddling is a store that adds something to each class that it writes.
type meddling struct {
	store.Collection[*machine.Class]
	writes *int
}

func (m meddling) Create(ctx context.Context, c *machine.Class) (*machine.Class, error) {
	*m.writes++
	c = c.Clone()
	c.NodeTemplate = &machine.NodeShape{Region: "default"}
	return m.Collection.Create(ctx, c)
}

func (m meddling) Update(ctx context.Context, c *machine.Class) (*machine.Class, error) {
	*m.writes++
	return m.Collection.Update(ctx, c)
}

// TestMigrationIntoOddStores: a store that changes what it gets is written to once. If a store refuses to move a
// reference, the pass returns an error.
func TestMigrationIntoOddStores(t *testing.T) {
	w, a := older(t, false)
	o := w.options()
	w.setOptions(&o, &testkit.Fuse{})
	writes := 0
	o.Store.Classes = meddling{w.classes, &writes}
	o.Classes.Foreign = olderClassPort{a, &testkit.Fuse{}}
	no := errNo
	o.Store.Deployments = &refusing[*deployment.Deployment]{Collection: w.deployments, updates: func() error { return no }}
	r := reconciler(t, o, manager.KindClass)
	_, err := r.Reconcile(ctx, smallKey)
	require.ErrorIs(t, err, errNo)
	require.Equal(t, 1, writes)
	require.True(t, a.class.Migrated)
	no = nil
	_, err = r.Reconcile(ctx, smallKey)
	require.NoError(t, err)
	require.Equal(t, 1, writes)
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.False(t, d.Spec.Template.Spec.Class.Foreign())
}
