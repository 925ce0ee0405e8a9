package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var updateRules = []rule{
	{"writes all but the status", updateWrites},
	{"raises the generation with the spec only", updateGeneration},
	{"ignores what is the store's to set", updateIgnores},
	{"succeeds when nothing changes", updateNothing},
	{"checks before it writes", func(r *trial) { r.comparesAndSwaps(r.store.Update) }},
	{"adds no finalizer to a deleted object", updateAddsNoFinalizer},
	{"keeps a deleted object while a finalizer is left", updateKeeps},
	{"ends a deleted object with its last finalizer", updateEnds},
}

func updateWrites(r *trial) {
	first := r.changeStatus(r.create(sample("a")), func(s *Status) { *s = sampleStatus() })
	at := time.Date(2032, 2, 2, 2, 2, 2, 0, time.UTC)
	edited := first.Clone()
	edited.Labels = map[string]string{"app": "saw", "tier": "front"}
	edited.Annotations = nil
	edited.Finalizers = []string{holdOne}
	edited.Owner = &object.Owner{Kind: "Deployment", Name: "saw", UID: "owner-2"}
	edited.Spec = Spec{Replicas: 9, Class: "small", Zones: []string{"east"}, NotBefore: at}
	edited.Status = Status{Ready: 99, Node: "elsewhere"}
	got, err := r.store.Update(r.ctx, edited)
	require.NoError(r, err)
	r.stored(got)

	want := edited.Clone()
	want.Status = first.Status
	want.Generation = 2
	want.Version = got.Version
	require.Equal(r, canonical(want), canonical(got))
	require.NotEqual(r, first.Version, got.Version)

	emptied := r.change(got, func(o *Object) { o.Finalizers, o.Owner, o.Spec = nil, nil, Spec{} })
	require.Nil(r, emptied.Owner)
	require.Empty(r, emptied.Finalizers)
	require.True(r, emptied.SpecEqual(&Object{}), "%+v", emptied.Spec)
	r.stored(emptied)
}

func updateGeneration(r *trial) {
	o := r.create(sample("a"))
	for _, step := range []struct {
		edit func(*Object)
		want int64
	}{
		{func(o *Object) { o.Labels["app"] = "saw" }, 1},
		{func(o *Object) { o.Annotations["note"] = "second" }, 1},
		{func(o *Object) { o.AddFinalizer(holdOne) }, 1},
		{func(o *Object) { o.Owner = nil }, 1},
		{func(o *Object) { o.Status.Ready = 5 }, 1},
		{func(o *Object) { o.Spec.Replicas = 4 }, 2},
		{func(o *Object) { o.Spec.Zones = append(o.Spec.Zones, "east") }, 3},
		{func(o *Object) { o.Spec.Replicas = 3; o.Labels = nil }, 4},
		{func(o *Object) { o.RemoveFinalizer(holdOne) }, 4},
	} {
		o = r.change(o, step.edit)
		require.Equal(r, step.want, o.Generation)
		r.stored(o)
	}
}

func updateIgnores(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne}
	o = r.create(o)
	past := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	r.clock.advance(time.Hour)
	got := r.change(o, func(o *Object) {
		o.UID, o.Generation, o.CreatedAt, o.DeletedAt = "", 77, past, past
		o.Finalizers = nil
	})
	require.Equal(r, o.UID, got.UID)
	require.EqualValues(r, 1, got.Generation)
	require.True(r, got.CreatedAt.Equal(o.CreatedAt))
	require.True(r, got.DeletedAt.IsZero())
	r.stored(got)

	r.change(got, func(o *Object) { o.Finalizers = []string{holdOne} })
	r.remove("a")
	deleting := r.live("a")
	got = r.change(deleting, func(o *Object) { o.Generation, o.DeletedAt = 77, time.Time{} })
	require.True(r, got.DeletedAt.Equal(deleting.DeletedAt), "an update took DeletedAt away")
	require.Equal(r, deleting.Generation, got.Generation)
	r.stored(got)
}

func updateNothing(r *trial) {
	o := r.create(sample("a"))
	got := r.change(o, func(*Object) {})
	want := o.Clone()
	want.Version = got.Version
	require.Equal(r, canonical(want), canonical(got))
	r.stored(got)
	// The next update can use the returned version.
	r.change(got, func(o *Object) { o.Spec.Replicas++ })
}

func updateAddsNoFinalizer(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne}
	r.create(o)
	r.remove("a")
	deleting := r.live("a")
	for _, finalizers := range [][]string{{holdOne, holdTwo}, {holdTwo}} {
		c := deleting.Clone()
		c.Finalizers = finalizers
		_, err := r.store.Update(r.ctx, c)
		r.refused(store.ErrInvalid, err, "a")
		r.stored(deleting)
	}
}

func updateKeeps(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne, holdTwo}
	r.create(o)
	r.remove("a")
	deleting := r.live("a")
	got := r.change(deleting, func(o *Object) {
		o.RemoveFinalizer(holdOne)
		o.Spec.Replicas++ // the spec can still change
	})
	require.Equal(r, []string{holdTwo}, got.Finalizers)
	require.Equal(r, deleting.Generation+1, got.Generation)
	r.stored(got)
	got = r.changeStatus(got, func(s *Status) { s.Ready = 8 })
	require.True(r, got.Deleted())
	r.stored(got)
}

func updateEnds(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne}
	r.create(o)
	r.remove("a")
	deleting := r.live("a")
	last := r.change(deleting, func(o *Object) {
		o.Finalizers = nil
		o.Annotations["note"] = "last words"
	})
	require.Equal(r, deleting.UID, last.UID)
	require.True(r, last.DeletedAt.Equal(deleting.DeletedAt))
	require.Empty(r, last.Finalizers)
	require.Equal(r, "last words", last.Annotations["note"])
	r.absent("a")
	r.lists(r.store.Live(), store.Query{})
	r.lists(r.store.Live(), store.Query{Index: ByOwner, Value: "owner-1"})
	_, err := r.store.Update(r.ctx, last)
	r.refused(store.ErrNotFound, err, "a")
	r.refused(store.ErrNotFound, r.store.Delete(r.ctx, key("a"), ""), "a")

	// Without a deletion, the last finalizer ends nothing.
	o = sample("b")
	o.Finalizers = []string{holdOne}
	r.stored(r.change(r.create(o), func(o *Object) { o.Finalizers = nil }))
}
