package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var sharingRules = []rule{
	{"stores a copy of what is created", sharesNotCreated},
	{"stores a copy of what is updated", sharesNotUpdated},
	{"never changes what it returned", sharingKeepsSnapshots},
	{"gives slices away", sharingGivesSlices},
}

// scribble changes o and all that it refers to.
func scribble(o *Object) {
	o.Labels["app"], o.Labels["new"] = "scribbled", "label"
	o.Annotations["note"] = "scribbled"
	for i := range o.Finalizers {
		o.Finalizers[i] = "storetest.example/scribbled"
	}
	if o.Owner != nil {
		o.Owner.UID = "scribbled"
	}
	for i := range o.Spec.Zones {
		o.Spec.Zones[i] = "scribbled"
	}
	for i := range o.Status.Conditions {
		o.Status.Conditions[i].Message = "scribbled"
	}
	o.Key = object.Key{Name: "scribbled"}
	o.UID, o.Version = "scribbled", "scribbled"
	o.Spec.Class, o.Status.Node = "scribbled", "scribbled"
}

func sharesNotCreated(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne}
	before := o.Clone()
	got := r.create(o)
	require.Equal(r, canonical(before), canonical(o), "Create changed the caller's object")
	want := got.Clone()
	scribble(o)
	require.Equal(r, canonical(want), canonical(got))
	r.stored(want)
	r.lists(r.store.Live(), store.Query{Index: ByZone, Value: "north"}, "a")
}

func sharesNotUpdated(r *trial) {
	o := sample("a")
	o.Finalizers = []string{holdOne}
	first := r.create(o)

	edited := first.Clone()
	edited.Labels["app"] = "saw"
	before := edited.Clone()
	second, err := r.store.Update(r.ctx, edited)
	require.NoError(r, err)
	require.Equal(r, canonical(before), canonical(edited), "Update changed the caller's object")
	want := second.Clone()
	scribble(edited)
	require.Equal(r, canonical(want), canonical(second))
	r.stored(want)

	edited = second.Clone()
	edited.Status = sampleStatus()
	before = edited.Clone()
	third, err := r.store.UpdateStatus(r.ctx, edited)
	require.NoError(r, err)
	require.Equal(r, canonical(before), canonical(edited), "UpdateStatus changed the caller's object")
	want = third.Clone()
	scribble(edited)
	require.Equal(r, canonical(want), canonical(third))
	r.stored(want)
}

func sharingKeepsSnapshots(r *trial) {
	type snapshot struct{ got, want *Object }
	var kept []snapshot
	keep := func(o *Object) *Object {
		kept = append(kept, snapshot{got: o, want: o.Clone()})
		return o
	}
	v := r.watch()
	watched := func(o *Object) *Object {
		v.shows(o)
		keep(v.objects[o.Key])
		keep(r.live("a"))
		objects, err := r.store.Live().List(r.ctx, store.Query{})
		require.NoError(r, err)
		keep(objects[0])
		return keep(o)
	}
	o := sample("a")
	o.Finalizers = []string{holdOne, holdTwo}
	o = watched(r.create(o))
	o = watched(r.changeStatus(o, func(s *Status) { *s = sampleStatus() }))
	o = watched(r.change(o, func(o *Object) {
		o.Labels["app"] = "saw"
		o.Spec.Zones[0] = "east"
	}))
	watched(r.changeStatus(o, func(s *Status) { s.Conditions[0].Message = "changed" }))
	r.remove("a")
	o = watched(r.live("a"))
	o = watched(r.change(o, func(o *Object) { o.RemoveFinalizer(holdOne) }))
	keep(r.change(o, func(o *Object) { o.Finalizers = nil }))
	for _, s := range kept {
		require.Equal(r, s.want, s.got, "an object was changed after it had been returned")
	}
}

func sharingGivesSlices(r *trial) {
	a, b := r.create(sample("a")), r.create(sample("b"))
	r.eventually("the cache to have both", func() bool { return len(r.names(r.store, store.Query{})) == 2 })
	for _, q := range []store.Query{{}, {Index: ByZone, Value: "north"}} {
		for _, from := range []store.Reader[*Object]{r.store, r.store.Live()} {
			objects, err := from.List(r.ctx, q)
			require.NoError(r, err)
			require.Len(r, objects, 2)
			again, err := from.List(r.ctx, q)
			require.NoError(r, err)
			clear(objects)
			_ = append(objects[:1], a, a, a)
			require.NotContains(r, again, (*Object)(nil), "two lists share their memory")
			r.lists(from, q, "a", "b")
			require.Nil(r, objects[1], "a list was written to after it had been returned")
		}
	}
	r.stored(a)
	r.stored(b)
}
