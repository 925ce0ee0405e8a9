package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var createRules = []rule{
	{"stores all but the status", createStores},
	{"ignores what is the store's to set", createIgnores},
	{"stamps whole seconds", createStamps},
	{"refuses a taken name", createTaken},
	{"refuses the name of an object that is being deleted", createTakenByDeleted},
	{"keeps namespaces apart", createNamespaces},
	{"needs a name", createNameless},
	{"never repeats a UID or a version", createUnique},
}

func createStores(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne, holdTwo}
	o.Status = sampleStatus()
	got := r.create(o)
	r.stored(got)

	want := o.Clone()
	want.Status = Status{}
	want.UID, want.Version, want.CreatedAt = got.UID, got.Version, got.CreatedAt
	want.Generation = 1
	require.Equal(r, canonical(want), canonical(got))
	require.NotEmpty(r, got.UID)
	require.NotEmpty(r, got.Version)

	bare := r.create(&Object{Meta: object.Meta{Key: key("b")}})
	require.Nil(r, bare.Owner)
	require.Equal(r, Spec{}, Spec{Replicas: bare.Spec.Replicas, Class: bare.Spec.Class, NotBefore: bare.Spec.NotBefore})
	require.Empty(r, bare.Spec.Zones)
	r.stored(bare)
}

func createIgnores(r *trial) {
	o := sample("a")
	o.UID, o.Version, o.Generation = "mine", "mine", 77
	o.CreatedAt = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	o.DeletedAt = o.CreatedAt
	got := r.create(o)
	require.NotEqual(r, "mine", got.UID)
	require.NotEqual(r, "mine", got.Version)
	require.EqualValues(r, 1, got.Generation)
	require.False(r, got.CreatedAt.Equal(o.CreatedAt), "CreatedAt is the caller's")
	require.True(r, got.DeletedAt.IsZero())
	r.stored(got)
}

func createStamps(r *trial) {
	for _, name := range []string{"a", "b"} {
		o := r.create(sample(name))
		r.wholeSeconds(o.CreatedAt)
		r.clock.advance(1700 * time.Millisecond)
	}
}

// wholeSeconds requires that t is the present time, cut to the second.
func (r *trial) wholeSeconds(t time.Time) {
	r.Helper()
	require.False(r, t.IsZero())
	require.Zero(r, t.Nanosecond(), "%v has a fraction", t)
	if !r.suite.OwnClock {
		require.True(r, t.Equal(r.clock.seconds()), "%v, want %v", t, r.clock.seconds())
	}
}

func createTaken(r *trial) {
	first := r.create(sample("a"))
	other := sample("a")
	other.Spec.Class = "small"
	_, err := r.store.Create(r.ctx, other)
	r.refused(store.ErrAlreadyExists, err, "a")
	_, err = r.store.Create(r.ctx, first) // even what the store itself returned
	r.refused(store.ErrAlreadyExists, err, "a")
	r.stored(first)
}

func createTakenByDeleted(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne}
	r.create(o)
	r.remove("a")
	deleting := r.live("a")
	_, err := r.store.Create(r.ctx, sample("a"))
	r.refused(store.ErrAlreadyExists, err, "a")
	r.stored(deleting)

	r.change(deleting, func(o *Object) { o.Finalizers = nil })
	again := r.create(sample("a"))
	require.NotEqual(r, deleting.UID, again.UID)
	r.stored(again)
}

func createNamespaces(r *trial) {
	one := r.create(sample("a"))
	o := sample("a")
	o.Namespace = Namespaces[1]
	o.Spec.Class = "small"
	two := r.create(o)
	require.NotEqual(r, one.UID, two.UID)
	r.stored(one)

	require.NoError(r, r.store.Delete(r.ctx, one.Key, one.UID))
	r.absent("a")
	got, err := r.store.Live().Get(r.ctx, two.Key)
	require.NoError(r, err)
	require.Equal(r, canonical(two), canonical(got))
}

func createNameless(r *trial) {
	_, err := r.store.Create(r.ctx, &Object{Meta: object.Meta{Key: object.Key{Namespace: Namespaces[0]}}})
	require.ErrorIs(r, err, store.ErrInvalid)
	_, err = r.store.Create(r.ctx, nil)
	require.ErrorIs(r, err, store.ErrInvalid)
	r.lists(r.store.Live(), store.Query{})
}

func createUnique(r *trial) {
	uids, versions := map[string]bool{}, map[string]bool{}
	fresh := func(seen map[string]bool, s string) {
		r.Helper()
		require.False(r, seen[s], "%q comes twice", s)
		seen[s] = true
	}
	for range 5 {
		o := r.create(sample("a"))
		fresh(uids, o.UID)
		fresh(versions, o.Version)
		o = r.change(o, func(o *Object) { o.Spec.Replicas++ })
		fresh(versions, o.Version)
		o = r.changeStatus(o, func(s *Status) { s.Ready++ })
		fresh(versions, o.Version)
		fresh(uids, r.create(sample("b")).UID)
		r.remove("a")
		r.remove("b")
	}
}
