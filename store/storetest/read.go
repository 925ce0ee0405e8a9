package storetest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var readRules = []rule{
	{"gets what is there", readGets},
	{"lists all", readListsAll},
	{"lists by index", readListsByIndex},
	{"follows an index as objects change", readFollowsIndex},
	{"lists each object once", readListsOnce},
	{"refuses unknown indexes", readUnknownIndex},
	{"catches up in the cache", readCache},
	{"is never behind a watch", readBehindWatch},
}

// lists requires that the query picks exactly these objects. Their names are as the method names
// returns them.
func (r *trial) lists(from store.Reader[*Object], q store.Query, names ...string) {
	r.Helper()
	require.Equal(r, names, r.names(from, q), "%+v", q)
}

// names returns the names of the listed objects, sorted, or nil if there are none. A name outside
// the first namespace has its namespace.
func (r *trial) names(from store.Reader[*Object], q store.Query) []string {
	r.Helper()
	objects, err := from.List(r.ctx, q)
	require.NoError(r, err)
	var names []string
	for _, o := range objects {
		require.NotNil(r, o)
		if o.Namespace == Namespaces[0] {
			names = append(names, o.Name)
		} else {
			names = append(names, o.Key.String())
		}
	}
	slices.Sort(names)
	return names
}

func readGets(r *trial) {
	_, err := r.store.Live().Get(r.ctx, key("a"))
	r.refused(store.ErrNotFound, err, "a")
	_, err = r.store.Get(r.ctx, key("a"))
	r.refused(store.ErrNotFound, err, "a")
	o := r.create(sample("a"))
	r.stored(o)
	for _, k := range []object.Key{{Name: "a"}, {Namespace: Namespaces[1], Name: "a"}, key("b")} {
		_, err = r.store.Live().Get(r.ctx, k)
		require.ErrorIs(r, err, store.ErrNotFound, "%v", k)
	}
	for _, from := range []store.Reader[*Object]{r.store, r.store.Live()} {
		_, err = from.Get(r.ctx, object.Key{Namespace: Namespaces[0]})
		require.ErrorIs(r, err, store.ErrInvalid)
	}
}

func readListsAll(r *trial) {
	r.lists(r.store.Live(), store.Query{})
	for _, name := range []string{"b", "a", "c"} {
		r.create(sample(name))
	}
	o := sample("a")
	o.Namespace = Namespaces[1]
	want := r.create(o)
	r.lists(r.store.Live(), store.Query{}, "a", "b", "c", want.Key.String())

	objects, err := r.store.Live().List(r.ctx, store.Query{})
	require.NoError(r, err)
	for _, got := range objects {
		if got.Namespace == want.Namespace {
			require.Equal(r, canonical(want), canonical(got))
		}
	}
	for _, name := range []string{"b", "c"} {
		r.remove(name)
	}
	r.lists(r.store.Live(), store.Query{}, "a", want.Key.String())
}

func readListsByIndex(r *trial) {
	a := r.create(sample("a"))
	b := sample("b")
	b.Owner, b.Spec.Zones = nil, []string{"south"}
	r.create(b)
	c := sample("c")
	c.Owner.UID, c.Spec.Zones = "owner-2", nil
	c.Namespace = Namespaces[1]
	c = r.create(c)
	r.changeStatus(a, func(s *Status) { s.Node = "node-1" })

	for _, row := range []struct {
		index store.Index
		value string
		want  []string
	}{
		{ByOwner, "owner-1", []string{"a"}},
		{ByOwner, "owner-2", []string{c.Key.String()}},
		{ByOwner, "owner", nil},
		{ByOwner, "", nil},
		{ByZone, "north", []string{"a"}},
		{ByZone, "south", []string{"a", "b"}},
		{ByZone, "owner-1", nil},
		{ByNode, "node-1", []string{"a"}},
		{ByNode, "", nil},
	} {
		r.lists(r.store.Live(), store.Query{Index: row.index, Value: row.value}, row.want...)
	}
}

func readFollowsIndex(r *trial) {
	live := r.store.Live // a reader may answer twice from one read
	a, b := r.create(sample("a")), r.create(sample("b"))
	a = r.change(a, func(o *Object) { o.Spec.Zones = []string{"east", "south"} })
	r.lists(live(), store.Query{Index: ByZone, Value: "north"}, "b")
	r.lists(live(), store.Query{Index: ByZone, Value: "south"}, "a", "b")
	r.lists(live(), store.Query{Index: ByZone, Value: "east"}, "a")
	a = r.change(a, func(o *Object) { o.Spec.Zones, o.Owner = nil, nil })
	r.lists(live(), store.Query{Index: ByZone, Value: "east"})
	r.lists(live(), store.Query{Index: ByZone, Value: "south"}, "b")
	r.lists(live(), store.Query{Index: ByOwner, Value: "owner-1"}, "b")

	a = r.changeStatus(a, func(s *Status) { s.Node = "node-1" })
	r.changeStatus(b, func(s *Status) { s.Node = "node-1" })
	r.lists(live(), store.Query{Index: ByNode, Value: "node-1"}, "a", "b")
	a = r.changeStatus(a, func(s *Status) { s.Node = "node-2" })
	r.lists(live(), store.Query{Index: ByNode, Value: "node-1"}, "b")
	r.lists(live(), store.Query{Index: ByNode, Value: "node-2"}, "a")

	// The list has the latest state, even if no value changed.
	a = r.change(a, func(o *Object) { o.Spec.Replicas = 42 })
	objects, err := live().List(r.ctx, store.Query{Index: ByNode, Value: "node-2"})
	require.NoError(r, err)
	require.Len(r, objects, 1)
	require.Equal(r, canonical(a), canonical(objects[0]))
}

func readListsOnce(r *trial) {
	o := sample("a")
	o.Spec.Zones = []string{"north", "south", "north", "north"}
	o = r.create(o)
	north, south := store.Query{Index: ByZone, Value: "north"}, store.Query{Index: ByZone, Value: "south"}
	r.lists(r.store.Live(), north, "a")
	b := r.create(sample("b"))
	o = r.change(o, func(o *Object) { o.Spec.Zones = []string{"south", "south", "north"} })
	r.lists(r.store.Live(), north, "a", "b")
	r.change(o, func(o *Object) { o.Spec.Zones = []string{"south", "south"} })
	r.lists(r.store.Live(), north, "b")
	r.lists(r.store.Live(), south, "a", "b")
	r.change(b, func(o *Object) { o.Spec.Zones = []string{"north", "north"} })
	r.remove("a")
	r.lists(r.store.Live(), north, "b")
	r.lists(r.store.Live(), south)
}

func readUnknownIndex(r *trial) {
	r.create(sample("a"))
	for _, from := range []store.Reader[*Object]{r.store, r.store.Live()} {
		for _, q := range []store.Query{{Index: "colour", Value: "red"}, {Index: "colour"}, {Value: "owner-1"}} {
			objects, err := from.List(r.ctx, q)
			require.ErrorIs(r, err, store.ErrInvalid, "%+v", q)
			require.Empty(r, objects)
		}
	}
}

func readCache(r *trial) {
	cached := func(want *Object) func() bool {
		return func() bool {
			got, err := r.store.Get(r.ctx, want.Key)
			return err == nil && got.UID == want.UID && got.Version == want.Version
		}
	}
	o := r.create(sample("a"))
	r.eventually("the cache to have the object", cached(o))
	r.lists(r.store, store.Query{}, "a")
	o = r.changeStatus(o, func(s *Status) { s.Node = "node-1" })
	r.eventually("the cache to have the status", cached(o))
	r.lists(r.store, store.Query{Index: ByNode, Value: "node-1"}, "a")
	o = r.change(o, func(o *Object) { o.Spec.Zones = []string{"east"} })
	r.eventually("the cache to have the update", cached(o))
	r.lists(r.store, store.Query{Index: ByZone, Value: "east"}, "a")
	r.lists(r.store, store.Query{Index: ByZone, Value: "north"})
	got, err := r.store.Get(r.ctx, o.Key)
	require.NoError(r, err)
	require.Equal(r, canonical(o), canonical(got))
	r.remove("a")
	r.eventually("the cache to forget the object", func() bool { return r.names(r.store, store.Query{}) == nil })
	_, err = r.store.Get(r.ctx, o.Key)
	r.refused(store.ErrNotFound, err, "a")
}

func readBehindWatch(r *trial) {
	v := r.watch()
	o := r.create(sample("a"))
	for range 20 {
		v.shows(o)
		got, err := r.store.Get(r.ctx, o.Key)
		require.NoError(r, err)
		require.Equal(r, o.Version, got.Version, "the cache is behind what a watch has delivered")
		o = r.change(o, func(o *Object) { o.Spec.Replicas++ })
	}
	r.remove("a")
	v.lacks(o.Key)
	_, err := r.store.Get(r.ctx, o.Key)
	r.refused(store.ErrNotFound, err, "a")
}
