package bolt_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// twins are this store and a store in memory, which get the same calls.
type twins struct {
	path   string
	db     *bolt.DB
	things *objects
	memory *store.Memory[*storetest.Object]

	versions map[string]bool // all that were assigned
	uids     map[string]bool
}

// open opens the file.
func (w *twins) open(t *rapid.T) {
	var err error
	w.db, err = bolt.OpenRaw(w.path, bolt.Options{Now: now}, bbolt.Options{NoSync: true})
	require.NoError(t, err)
	w.things, err = bolt.OpenKind(w.db, "object", storetest.Indexes())
	require.NoError(t, err)
}

// draw sets the fields that a writer may set to random values.
func (w *twins) draw(t *rapid.T, o *storetest.Object) {
	o.Spec.Replicas = rapid.Int64Range(0, 2).Draw(t, "replicas")
	o.Spec.Zones = rapid.SliceOfN(rapid.SampledFrom([]string{"north", "south"}), 0, 2).Draw(t, "zones")
	o.Status.Node = rapid.SampledFrom([]string{"", "node-1"}).Draw(t, "node")
	o.Finalizers = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"f", "g"}), 0, 2, rapid.ID[string]).Draw(t, "finalizers")
	o.Labels = rapid.SampledFrom([]map[string]string{nil, {}, {"a": "b"}, {"a": "\xff"}}).Draw(t, "labels")
}

// same requires that a call had the same result in both stores.
func (w *twins) same(t *rapid.T, ours, theirs *storetest.Object, err, want error) {
	if want != nil {
		require.EqualError(t, err, want.Error())
		return
	}
	require.NoError(t, err)
	if ours == nil {
		return
	}
	if !(ours.Deleted() && len(ours.Finalizers) == 0) {
		require.False(t, w.versions[ours.Version], "version %s comes twice", ours.Version)
		w.versions[ours.Version] = true
	}
	require.Equal(t, anonymous(theirs), anonymous(ours))
}

// anonymous returns an object without what may differ between the stores.
func anonymous(o *storetest.Object) *storetest.Object {
	c := o.Clone()
	c.UID, c.Version = "", ""
	if _, wrong := c.Labels["a"]; wrong && c.Labels["a"] != "b" {
		c.Labels["a"] = "not UTF-8"
	}
	return c
}

// request returns the same random write for both stores, each based on the object in that store.
func (w *twins) request(t *rapid.T) (ours, theirs *storetest.Object) {
	k := object.Key{Namespace: "fleet", Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
	values := &storetest.Object{}
	w.draw(t, values)
	apply := func(c store.Collection[*storetest.Object]) *storetest.Object {
		o := &storetest.Object{Meta: object.Meta{Key: k, Version: "none"}}
		if stored, err := c.Get(noContext, k); err == nil {
			o = stored.Clone()
		}
		o.Spec, o.Status, o.Finalizers, o.Labels = values.Spec, values.Status, values.Finalizers, values.Labels
		return o
	}
	return apply(w.things), apply(w.memory)
}

func (w *twins) create(t *rapid.T) {
	a, b := w.request(t)
	ours, err := w.things.Create(noContext, a)
	theirs, want := w.memory.Create(noContext, b)
	w.same(t, ours, theirs, err, want)
	if err == nil {
		require.False(t, w.uids[ours.UID], "UID %s comes twice", ours.UID)
		w.uids[ours.UID] = true
	}
}

func (w *twins) update(t *rapid.T) {
	a, b := w.request(t)
	ours, err := w.things.Update(noContext, a)
	theirs, want := w.memory.Update(noContext, b)
	w.same(t, ours, theirs, err, want)
}

func (w *twins) updateStatus(t *rapid.T) {
	a, b := w.request(t)
	ours, err := w.things.UpdateStatus(noContext, a)
	theirs, want := w.memory.UpdateStatus(noContext, b)
	w.same(t, ours, theirs, err, want)
}

func (w *twins) delete(t *rapid.T) {
	a, b := w.request(t)
	err := w.things.Delete(noContext, a.Key, a.UID)
	w.same(t, nil, nil, err, w.memory.Delete(noContext, b.Key, b.UID))
}

// reopen closes and opens the file, and requires that objects and indexes are exactly as before.
func (w *twins) reopen(t *rapid.T) {
	queries := []store.Query{
		{},
		{Index: storetest.ByZone, Value: "north"},
		{Index: storetest.ByZone, Value: "south"},
		{Index: storetest.ByNode, Value: "node-1"},
	}
	var before [][]*storetest.Object
	for _, q := range queries {
		listed, err := w.things.List(noContext, q)
		require.NoError(t, err)
		before = append(before, listed)
	}
	require.NoError(t, w.db.Close())
	w.open(t)
	require.Empty(t, w.db.Damaged())
	for i, q := range queries {
		listed, err := w.things.Live().List(noContext, q)
		require.NoError(t, err)
		require.ElementsMatch(t, before[i], listed)
	}
}

// TestReopened: this store gives the same results as the one in memory, also if it is closed and opened
// between the calls.
func TestReopened(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &twins{
			path:     newPath(t),
			memory:   store.NewMemory(now, storetest.Indexes()),
			versions: map[string]bool{}, uids: map[string]bool{},
		}
		w.open(rt)
		defer func() { _ = w.db.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"create": w.create, "update": w.update, "update status": w.updateStatus,
			"delete": w.delete, "reopen": w.reopen,
		})
		w.reopen(rt)
	})
}
