package store_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// mirrored is a store whose cached reads a Mirror answers. The Mirror follows a watch. After every
// seventh change it is filled from a list instead, as by a program that has lost its watch.
type mirrored struct {
	*memory
	mirror *store.Mirror[*storetest.Object]
}

func TestMirrorServesAStore(t *testing.T) {
	storetest.Run(t, storetest.Suite{New: func(t *testing.T, now func() time.Time) store.Collection[*storetest.Object] {
		t.Helper()
		m := &mirrored{memory: store.NewMemory(now, storetest.Indexes()), mirror: store.NewMirror(storetest.Indexes())}
		ctx, cancel := context.WithCancel(context.Background())
		var following sync.WaitGroup
		following.Go(func() { m.follow(ctx) })
		t.Cleanup(func() { cancel(); following.Wait() })
		return m
	}})
}

func (m *mirrored) follow(ctx context.Context) {
	changes, listed := 0, map[object.Key]*storetest.Object{} // listed is the state after these changes
	for c := range m.memory.Watch(ctx) {
		changes++
		if c.New == nil {
			delete(listed, c.Old.Key)
		} else {
			listed[c.New.Key] = c.New
		}
		switch {
		case changes%7 == 0:
			m.mirror.Replace(slices.Collect(maps.Values(listed)))
		case c.New == nil:
			m.mirror.Drop(c.Old.Key)
		default:
			m.mirror.Put(c.New)
		}
	}
}

func (m *mirrored) Live() store.Reader[*storetest.Object] { return m.memory }

func (m *mirrored) Get(ctx context.Context, k object.Key) (*storetest.Object, error) {
	return m.mirror.Get(ctx, k)
}

func (m *mirrored) List(ctx context.Context, q store.Query) ([]*storetest.Object, error) {
	return m.mirror.List(ctx, q)
}

func (m *mirrored) Watch(ctx context.Context) iter.Seq2[store.Change[*storetest.Object], error] {
	return m.mirror.Watch(ctx)
}

func mirrorOf(objects ...*storetest.Object) *store.Mirror[*storetest.Object] {
	m := store.NewMirror(storetest.Indexes())
	m.Replace(objects)
	return m
}

func version(name, uid, version string) *storetest.Object {
	o := machine(name)
	o.UID, o.Version = uid, version
	return o
}

func TestMirrorKeepsWhatItIsGiven(t *testing.T) {
	o := version("a", "u1", "7")
	m := mirrorOf(o)
	got, err := m.Get(noContext, o.Key)
	require.NoError(t, err)
	require.Same(t, o, got)

	m.Put(version("a", "u1", "7")) // once more
	got, err = m.Get(noContext, o.Key)
	require.NoError(t, err)
	require.Same(t, o, got, "an object of the same version was replaced, which wakes watches")

	next := version("a", "u1", "3") // versions have no order here
	m.Put(next)
	got, err = m.Get(noContext, o.Key)
	require.NoError(t, err)
	require.Same(t, next, got)
	m.Drop(object.Key{Name: "absent"})
	m.Drop(o.Key)
	_, err = m.Get(noContext, o.Key)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestMirrorTellsUIDsApart(t *testing.T) {
	for name, change := range map[string]func(*store.Mirror[*storetest.Object], *storetest.Object){
		"put":     func(m *store.Mirror[*storetest.Object], o *storetest.Object) { m.Put(o) },
		"replace": func(m *store.Mirror[*storetest.Object], o *storetest.Object) { m.Replace([]*storetest.Object{o}) },
	} {
		t.Run(name, func(t *testing.T) {
			first, second := version("a", "u1", "7"), version("a", "u2", "7")
			m := mirrorOf(first)
			next, stop := iter.Pull2(m.Watch(noContext))
			defer stop()
			c, _, _ := next()
			require.Equal(t, store.Change[*storetest.Object]{New: first}, c)
			change(m, second)
			c, _, _ = next()
			require.Equal(t, store.Change[*storetest.Object]{Old: first}, c)
			c, _, _ = next()
			require.Equal(t, store.Change[*storetest.Object]{New: second}, c)
		})
	}
}

func TestMirrorReplaceEndsTheRest(t *testing.T) {
	a, b, c := version("a", "u1", "1"), version("b", "u2", "2"), version("c", "u3", "3")
	m := mirrorOf(a, b)
	m.Replace([]*storetest.Object{b, c})
	all, err := m.List(noContext, store.Query{Index: storetest.ByOwner, Value: "set-1"})
	require.NoError(t, err)
	require.ElementsMatch(t, []*storetest.Object{b, c}, all)
}
