package manager_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// blind is a store whose cache has not seen what was written lately: Get
// answers what it was before, and List nothing.
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

// TestKeepersDoNotTrustCaches: a cache that shows no user releases nothing, and
// an old picture of a class is read again.
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

	// now the finalizers are there, and the caches show no object that needs them
	o.Store.Classes, o.Store.Secrets = w.classes, w.secrets
	o.Store.Deployments, o.Store.Sets, o.Store.Machines = blind[*deployment.Deployment]{w.deployments, nil}, w.sets, w.machines
	_, err = reconciler(t, o, manager.KindClass).Reconcile(ctx, smallKey)
	require.NoError(t, err)
	o.Store.Classes = blind[*machine.Class]{w.classes, nil}
	_, err = reconciler(t, o, manager.KindSecret).Reconcile(ctx, bootKey)
	require.NoError(t, err)
	require.True(t, w.held())
}

// TestAllUsersAreNamed: who uses a class that is to be deleted is counted in full.
func TestAllUsersAreNamed(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.keeping()
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.settled(3)() && w.held() }, unexpected(t))
	require.NoError(t, w.classes.Delete(ctx, smallKey, ""))
	w.round(p)
	require.Contains(t, strings.Join(w.story, "\n"), "as long as it is used by 1 deployment, 1 set, 3 machines")
}

// meet reconciles the class of a world while others do something: just before
// the older class is read.
func (w *world) meet(t *testing.T, a *attic, o *manager.Options, meanwhile func()) error {
	a.marks = 0
	o.Classes.Foreign = door{a, &testkit.Fuse{Before: func(call int) {
		if call == 1 {
			meanwhile()
		}
	}}}
	_, err := reconciler(t, *o, manager.KindClass).Reconcile(ctx, smallKey)
	return err
}

// TestMigrationMeetsOthers: a class that somebody else creates or deletes while
// it is migrated is read again; a reference that changes meanwhile is left to
// its owner.
func TestMigrationMeetsOthers(t *testing.T) {
	for _, half := range []bool{false, true} {
		w, a := older(t, half)
		o := w.options()
		w.classed(&o, &testkit.Fuse{})
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
	w.classed(&o, &testkit.Fuse{})
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

// TestMigrationFails: waits grow, what a driver has left in its copy is never
// seen, and a shutdown is no failure.
func TestMigrationFails(t *testing.T) {
	w, a := older(t, true)
	o := w.options()
	w.classed(&o, &testkit.Fuse{})
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
	o.Classes.Foreign = door{a, &testkit.Fuse{Before: func(int) { stop() }}}
	w.story = nil
	_, err = reconciler(t, o, manager.KindClass).Reconcile(stopping, smallKey)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, strings.Join(w.story, "\n"), "MigrationFailed")

	a.blank = true
	o.Classes.Foreign = door{a, &testkit.Fuse{}}
	_, err = reconciler(t, o, manager.KindClass).Reconcile(ctx, smallKey)
	require.NoError(t, err)
	require.Contains(t, strings.Join(w.story, "\n"), "OldClassMissing")
}

// meddling is a store that puts something of its own into each class.
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

// TestMigrationIntoOddStores: one that changes what it gets is written once;
// one that refuses to move a reference makes the pass an error.
func TestMigrationIntoOddStores(t *testing.T) {
	w, a := older(t, false)
	o := w.options()
	w.classed(&o, &testkit.Fuse{})
	writes := 0
	o.Store.Classes = meddling{w.classes, &writes}
	o.Classes.Foreign = door{a, &testkit.Fuse{}}
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
