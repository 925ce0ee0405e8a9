package storetest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var statusRules = []rule{
	{"writes the status only", statusWrites},
	{"succeeds when nothing changes", statusNothing},
	{"checks before it writes", func(r *trial) { r.comparesAndSwaps(r.store.UpdateStatus) }},
	{"does not end a deleted object", statusOfDeleted},
}

func statusWrites(r *trial) {
	first := r.create(sample("a"))
	edited := first.Clone()
	edited.Status = sampleStatus()
	edited.Labels = map[string]string{"app": "saw"}
	edited.Annotations = nil
	edited.Finalizers = []string{holdOne}
	edited.Owner = nil
	edited.Spec = Spec{Replicas: 9}
	edited.Generation = 77
	edited.CreatedAt = edited.CreatedAt.AddDate(1, 0, 0)
	edited.DeletedAt = edited.CreatedAt
	got, err := r.store.UpdateStatus(r.ctx, edited)
	require.NoError(r, err)
	r.stored(got)

	want := first.Clone()
	want.Status = sampleStatus()
	want.Version = got.Version
	require.Equal(r, canonical(want), canonical(got))
	require.NotEqual(r, first.Version, got.Version)

	emptied := r.changeStatus(got, func(s *Status) { *s = Status{} })
	require.Empty(r, emptied.Status.Conditions)
	require.True(r, emptied.Status.Checked.IsZero())
	require.Empty(r, emptied.Status.Node)
	r.stored(emptied)
}

func statusNothing(r *trial) {
	o := r.changeStatus(r.create(sample("a")), func(s *Status) { *s = sampleStatus() })
	got := r.changeStatus(o, func(*Status) {})
	want := o.Clone()
	want.Version = got.Version
	require.Equal(r, canonical(want), canonical(got))
	r.stored(got)
	r.changeStatus(got, func(s *Status) { s.Ready++ })
}

func statusOfDeleted(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne}
	r.create(o)
	r.remove("a")
	deleting := r.live("a")
	got := r.changeStatus(deleting, func(s *Status) { s.Ready = 1 })
	r.stored(got)

	// A status update removes no finalizers.
	c := got.Clone()
	c.Finalizers = nil
	c.Status.Ready = 2
	got, err := r.store.UpdateStatus(r.ctx, c)
	require.NoError(r, err)
	require.Equal(r, []string{holdOne}, got.Finalizers)
	require.Equal(r, deleting.Generation, got.Generation)
	r.stored(got)
}

// comparesAndSwaps checks the conditions that Update and UpdateStatus share.
func (r *trial) comparesAndSwaps(update func(context.Context, *Object) (*Object, error)) {
	edited := func(o *Object) *Object {
		c := o.Clone()
		c.Spec.Replicas += 10
		c.Status.Ready += 10
		return c
	}
	first := r.create(sample("a"))
	second, err := update(r.ctx, edited(first))
	require.NoError(r, err)
	third := r.changeStatus(r.change(second, func(o *Object) { o.Spec.Replicas++ }), func(s *Status) { s.Ready++ })
	for _, stale := range []*Object{first, second} {
		_, err = update(r.ctx, edited(stale))
		r.refused(store.ErrConflict, err, "a")
		r.stored(third)
	}
	r.refusesIncomplete(update, edited(third))

	stranger := edited(third)
	stranger.UID = "stranger"
	_, err = update(r.ctx, stranger)
	r.refused(store.ErrConflict, err, "a")
	r.stored(third)

	anonymous := edited(third)
	anonymous.UID = ""
	fourth, err := update(r.ctx, anonymous)
	require.NoError(r, err)
	require.Equal(r, third.UID, fourth.UID)
	r.stored(fourth)

	r.remove("a")
	_, err = update(r.ctx, edited(fourth))
	r.refused(store.ErrNotFound, err, "a")
	r.absent("a")

	again := r.create(sample("a"))
	for _, old := range []*Object{first, fourth} {
		_, err = update(r.ctx, edited(old))
		r.refused(store.ErrConflict, err, "a")
		anonymous = edited(old)
		anonymous.UID = ""
		_, err = update(r.ctx, anonymous)
		r.refused(store.ErrConflict, err, "a")
	}
	r.stored(again)
}

// refusesIncomplete checks that an update needs an object, a name and a version.
func (r *trial) refusesIncomplete(update func(context.Context, *Object) (*Object, error), o *Object) {
	before := r.live(o.Name)
	c := o.Clone()
	c.Version = ""
	_, err := update(r.ctx, c)
	r.refused(store.ErrInvalid, err, o.Name)

	c = o.Clone()
	c.Key = object.Key{Namespace: c.Namespace}
	_, err = update(r.ctx, c)
	require.ErrorIs(r, err, store.ErrInvalid)

	_, err = update(r.ctx, nil)
	require.ErrorIs(r, err, store.ErrInvalid)

	// Invalid comes before absent.
	c = o.Clone()
	c.Name, c.Version = "absent", ""
	_, err = update(r.ctx, c)
	r.refused(store.ErrInvalid, err, "absent")
	r.stored(before)
}
