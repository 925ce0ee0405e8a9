package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var deleteRules = []rule{
	{"removes an object without finalizers", deleteRemoves},
	{"marks an object with finalizers once", deleteMarks},
	{"asks for the UID", deleteUID},
	{"reports what is absent or nameless", deleteAbsent},
}

func deleteRemoves(r *trial) {
	r.changeStatus(r.create(sample("a")), func(s *Status) { *s = sampleStatus() })
	b := r.create(sample("b"))
	r.remove("a")
	r.absent("a")
	r.lists(r.store.Live(), store.Query{}, "b")
	r.lists(r.store.Live(), store.Query{Index: ByOwner, Value: "owner-1"}, "b")
	r.lists(r.store.Live(), store.Query{Index: ByZone, Value: "north"}, "b")
	r.lists(r.store.Live(), store.Query{Index: ByNode, Value: "node-1"})
	r.stored(b)
}

func deleteMarks(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne, holdTwo}
	o = r.changeStatus(r.create(o), func(s *Status) { *s = sampleStatus() })
	r.clock.advance(90 * time.Second)
	r.remove("a")
	got := r.live("a")
	r.wholeSeconds(got.DeletedAt)

	want := o.Clone()
	want.DeletedAt, want.Version = got.DeletedAt, got.Version
	want.Generation = 2
	require.Equal(r, canonical(want), canonical(got))
	require.NotEqual(r, o.Version, got.Version)
	r.lists(r.store.Live(), store.Query{Index: ByNode, Value: "node-1"}, "a")

	r.clock.advance(time.Hour)
	r.remove("a")
	require.NoError(r, r.store.Delete(r.ctx, key("a"), o.UID))
	r.stored(got) // version and generation too

	_, err := r.store.Update(r.ctx, o)
	r.refused(store.ErrConflict, err, "a")
}

func deleteUID(r *trial) {
	first := r.create(sample("a"))
	r.refused(store.ErrConflict, r.store.Delete(r.ctx, key("a"), "stranger"), "a")
	r.stored(first)
	require.NoError(r, r.store.Delete(r.ctx, key("a"), first.UID))
	r.absent("a")

	o := sample("a")
	o.Finalizers = []string{holdOne}
	second := r.create(o)
	r.refused(store.ErrConflict, r.store.Delete(r.ctx, key("a"), first.UID), "a")
	r.stored(second)
	require.NoError(r, r.store.Delete(r.ctx, key("a"), second.UID))
	deleting := r.live("a")
	r.refused(store.ErrConflict, r.store.Delete(r.ctx, key("a"), first.UID), "a")
	r.stored(deleting)
}

func deleteAbsent(r *trial) {
	r.refused(store.ErrNotFound, r.store.Delete(r.ctx, key("a"), ""), "a")
	r.refused(store.ErrNotFound, r.store.Delete(r.ctx, key("a"), "uid"), "a")
	o := r.create(sample("a"))
	require.NoError(r, r.store.Delete(r.ctx, o.Key, o.UID))
	r.refused(store.ErrNotFound, r.store.Delete(r.ctx, o.Key, o.UID), "a")
	require.ErrorIs(r, r.store.Delete(r.ctx, object.Key{}, ""), store.ErrInvalid)
	require.ErrorIs(r, r.store.Delete(r.ctx, object.Key{Namespace: Namespaces[0]}, ""), store.ErrInvalid)
}
