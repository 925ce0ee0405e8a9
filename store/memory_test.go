package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

type memory = store.Memory[*storetest.Object]

func TestMemory(t *testing.T) {
	storetest.Run(t, storetest.Suite{New: func(_ *testing.T, now func() time.Time) store.Collection[*storetest.Object] {
		return store.NewMemory(now, storetest.Indexes())
	}})
}

// now is the time of all tests.
func now() time.Time { return time.Date(2031, 5, 7, 11, 13, 17, 500, time.UTC) }

func newMemory() *memory { return store.NewMemory(now, storetest.Indexes()) }

func machine(name string) *storetest.Object {
	return &storetest.Object{
		Meta: object.Meta{
			Key:    object.Key{Namespace: "fleet", Name: name},
			Labels: map[string]string{"app": "mill"},
			Owner:  &object.Owner{Kind: "Set", Name: "mill", UID: "set-1"},
		},
		Spec: storetest.Spec{Replicas: 1, Class: "large"},
	}
}

func create(t require.TestingT, m *memory, o *storetest.Object) *storetest.Object {
	stored, err := m.Create(noContext, o)
	require.NoError(t, err)
	return stored
}

func update(t require.TestingT, m *memory, o *storetest.Object, edit func(*storetest.Object)) *storetest.Object {
	c := o.Clone()
	edit(c)
	stored, err := m.Update(noContext, c)
	require.NoError(t, err)
	return stored
}

func TestMemorySharesOnePointer(t *testing.T) {
	m := newMemory()
	check := func(want *storetest.Object) {
		t.Helper()
		got, err := m.Get(noContext, want.Key)
		require.NoError(t, err)
		require.Same(t, want, got)
		for _, q := range []store.Query{{}, {Index: storetest.ByOwner, Value: "set-1"}} {
			objects, err := m.Live().List(noContext, q)
			require.NoError(t, err)
			require.Len(t, objects, 1)
			require.Same(t, want, objects[0])
		}
		for change := range m.Watch(noContext) {
			require.Same(t, want, change.New)
			break
		}
	}
	o := create(t, m, machine("a"))
	check(o)
	o = update(t, m, o, func(o *storetest.Object) { o.Spec.Replicas = 2 })
	check(o)
	o, err := m.UpdateStatus(noContext, o.Clone())
	require.NoError(t, err)
	check(o)
}

// TestMemoryRefusesWhatReadersShare: an update fails if it gets the very object that a read returned.
// The caller may have changed it, for all readers.
func TestMemoryRefusesWhatReadersShare(t *testing.T) {
	m := newMemory()
	created := create(t, m, machine("a"))
	for _, update := range []func(context.Context, *storetest.Object) (*storetest.Object, error){m.Update, m.UpdateStatus} {
		read, err := m.Get(noContext, created.Key)
		require.NoError(t, err)
		_, err = update(noContext, read)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "change a Clone of it")
		_, err = update(noContext, read.Clone())
		require.NoError(t, err)
		_, err = update(noContext, read)
		require.ErrorIs(t, err, store.ErrConflict)
	}
}

// A write that changes nothing makes a new version, and watches deliver it.
func TestMemoryMakesAVersionPerWrite(t *testing.T) {
	m := newMemory()
	o := create(t, m, machine("a"))
	w := watch(t, m)
	require.Same(t, o, w.step().New)
	again := update(t, m, o, func(*storetest.Object) {})
	require.NotEqual(t, o.Version, again.Version)
	require.Equal(t, store.Change[*storetest.Object]{Old: o, New: again}, w.step())
	status, err := m.UpdateStatus(noContext, again.Clone())
	require.NoError(t, err)
	require.NotEqual(t, again.Version, status.Version)
	require.Same(t, status, w.step().New)
}

func TestMemoryIsRepeatable(t *testing.T) {
	run := func() (out []string) {
		m := newMemory()
		for i := range 50 {
			o := create(t, m, machine(fmt.Sprint("a", i%25)))
			if i%3 == 0 {
				o = update(t, m, o, func(o *storetest.Object) { o.Spec.Zones = []string{"north"} })
			}
			if i < 25 {
				require.NoError(t, m.Delete(noContext, o.Key, o.UID))
			}
			if i%7 == 5 && i > 25 {
				require.NoError(t, m.Delete(noContext, object.Key{Namespace: "fleet", Name: fmt.Sprint("a", i%25-1)}, ""))
			}
		}
		for _, q := range []store.Query{{}, {Index: storetest.ByZone, Value: "north"}} {
			objects, err := m.List(noContext, q)
			require.NoError(t, err)
			for _, o := range objects {
				out = append(out, o.Name+" "+o.UID+" "+o.Version)
			}
		}
		return out
	}
	first := run()
	require.Greater(t, len(first), 20)
	for range 5 {
		require.Equal(t, first, run())
	}
}

// A write that does not change an object's index values does not change its place in lists.
func TestMemoryTouchesNoIndexWithoutNeed(t *testing.T) {
	m := newMemory()
	objects := []*storetest.Object{create(t, m, machine("a")), create(t, m, machine("b")), create(t, m, machine("c"))}
	objects[0] = update(t, m, objects[0], func(o *storetest.Object) { o.Spec.Replicas = 7 })
	objects[0] = status(t, m, objects[0], "node-1")
	for _, q := range []store.Query{{}, {Index: storetest.ByOwner, Value: "set-1"}} {
		got, err := m.List(noContext, q)
		require.NoError(t, err)
		require.Equal(t, objects, got)
	}
}

func TestMemoryUID(t *testing.T) {
	m := newMemory()
	require.Equal(t, "object-1", create(t, m, machine("a")).UID)
	require.Equal(t, "object-2", create(t, m, machine("b")).UID)
}

func TestMemoryWithoutClock(t *testing.T) {
	m := store.NewMemory[*storetest.Object](nil, nil)
	before := time.Now().Truncate(time.Second)
	o := create(t, m, machine("a"))
	require.False(t, o.CreatedAt.Before(before))
	require.False(t, o.CreatedAt.After(time.Now()))
}

func TestMemoryLeavesOutUnusableIndexes(t *testing.T) {
	m := store.NewMemory(now, map[store.Index]func(*storetest.Object) []string{
		"nil": nil,
		"":    func(*storetest.Object) []string { return []string{"x"} },
	})
	o := create(t, m, machine("a"))
	objects, err := m.List(noContext, store.Query{})
	require.NoError(t, err)
	require.Equal(t, []*storetest.Object{o}, objects)
	for _, q := range []store.Query{{Index: "nil"}, {Value: "x"}} {
		_, err = m.List(noContext, q)
		require.ErrorIs(t, err, store.ErrInvalid)
	}
}

func TestMemoryErrorsReadWell(t *testing.T) {
	m := newMemory()
	o := create(t, m, machine("a"))
	update(t, m, o, func(*storetest.Object) {})
	_, conflict := m.Update(noContext, o)
	_, status := m.UpdateStatus(noContext, o.Clone())
	_, taken := m.Create(noContext, o)
	_, nothing := m.Create(noContext, nil)
	_, nameless := m.Create(noContext, &storetest.Object{})
	_, unversioned := m.Update(noContext, machine("a"))
	_, absent := m.Get(noContext, object.Key{Name: "b"})
	_, unknown := m.List(noContext, store.Query{Index: "colour", Value: "red"})
	_, indexless := m.List(noContext, store.Query{Value: "red"})
	for want, err := range map[string]error{
		"update fleet/a: conflict":                    conflict,
		"update status of fleet/a: conflict":          status,
		"create fleet/a: already exists":              taken,
		"create: invalid: no object given":            nothing,
		"create: invalid: it has no name":             nameless,
		"update fleet/a: invalid: it has no version":  unversioned,
		"get b: not found":                            absent,
		`list: invalid: unknown index "colour"`:       unknown,
		`list "red": invalid: a value needs an index`: indexless,
		"delete fleet/b: not found":                   m.Delete(noContext, object.Key{Namespace: "fleet", Name: "b"}, ""),
	} {
		require.EqualError(t, err, want)
	}
}

// A deleted object leaves nothing behind in the indexes.
func TestMemoryForgetsIndexValues(t *testing.T) {
	m := newMemory()
	empty := m.Buckets()
	for i := range 20 {
		o := machine(fmt.Sprint("a", i))
		o.Owner.UID = fmt.Sprint("set-", i)
		o.Spec.Zones = []string{"north", fmt.Sprint("zone-", i), "north"}
		o = create(t, m, o)
		update(t, m, o, func(o *storetest.Object) { o.Spec.Zones[1] = "south" })
	}
	require.Equal(t, 1+20+2, m.Buckets())
	for i := range 20 {
		require.NoError(t, m.Delete(noContext, machine(fmt.Sprint("a", i)).Key, ""))
	}
	require.Equal(t, empty, m.Buckets())
}
