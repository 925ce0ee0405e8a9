package apistore_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// patience limits any wait, also on a slow and busy machine.
const patience = 5 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.True(t, lab.Await(patience, holds), "waited in vain for %s", what)
}

func sample(name string) *storetest.Object {
	return &storetest.Object{
		Meta: object.Meta{
			Key:         object.Key{Namespace: storetest.Namespaces[0], Name: name},
			Labels:      map[string]string{"app": "mill", "tier": "one"},
			Annotations: map[string]string{"note": "first"},
			Owner:       &object.Owner{Kind: "Set", Name: "mill", UID: "owner-1"},
		},
		Spec: storetest.Spec{Replicas: 3, Class: "large", Zones: []string{"north"}},
	}
}

func create(t *testing.T, c *collection, o *storetest.Object) *storetest.Object {
	t.Helper()
	made, err := c.Create(t.Context(), o)
	require.NoError(t, err)
	return made
}

func update(t *testing.T, c *collection, o *storetest.Object, edit func(*storetest.Object)) *storetest.Object {
	t.Helper()
	changed := o.Clone()
	edit(changed)
	out, err := c.Update(t.Context(), changed)
	require.NoError(t, err)
	return out
}

// nested returns a field of a stored object.
func nested(t *testing.T, o *unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	require.NoError(t, err)
	require.True(t, found, "%v is gone", path)
	return value
}

func TestUnknownFieldsSurvive(t *testing.T) {
	c := newCollection(t, server.Config, nil)
	o := create(t, c, sample("a"))
	in := raw(t).Namespace(o.Namespace)
	_, err := in.Patch(t.Context(), o.Name, "application/merge-patch+json", []byte(`{
		"metadata":{"ownerReferences":[
			{"apiVersion":"v1","kind":"Set","name":"mill","uid":"owner-1","controller":true},
			{"apiVersion":"v1","kind":"Other","name":"o","uid":"other-1"}]},
		"spec":{"newer":{"deep":[1,2]},"class":"large"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = in.Patch(t.Context(), o.Name, "application/merge-patch+json", []byte(`{"status":{"newer":"kept"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)

	o, err = c.Live().Get(t.Context(), o.Key)
	require.NoError(t, err)
	o = update(t, c, o, func(o *storetest.Object) {
		o.Spec.Class, o.Spec.Zones = "small", nil
		o.Owner = &object.Owner{Kind: "Set", Name: "next", UID: "owner-2"}
	})
	o.Status.Ready = 5 // of a copy that this test owns
	o, err = c.UpdateStatus(t.Context(), o)
	require.NoError(t, err)
	update(t, c, o, func(o *storetest.Object) { o.Owner = nil })

	got, err := in.Get(t.Context(), o.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []any{int64(1), int64(2)}, nested(t, got, "spec", "newer", "deep"))
	require.Equal(t, "kept", nested(t, got, "status", "newer"))
	require.Equal(t, int64(5), nested(t, got, "status", "ready"))
	require.Equal(t, "small", nested(t, got, "spec", "class"))
	refs := got.GetOwnerReferences()
	require.Len(t, refs, 1)
	require.EqualValues(t, "other-1", refs[0].UID)
}

// TestWritesSayWhatChanged: a patch has what was changed and the version, each write is one request,
// and the next write needs no read.
func TestWritesSayWhatChanged(t *testing.T) {
	config, w := wired(t)
	c := newCollection(t, config, nil)
	eventually(t, "the cache to be filled", c.Synced)
	w.blockWatches() // the cache learns of own writes from their answers only
	w.taken()
	o := create(t, c, sample("a"))
	require.Equal(t, []string{"POST"}, w.taken())

	one := o.Version
	o = update(t, c, o, func(o *storetest.Object) {
		o.Labels["tier"] = "two"
		delete(o.Labels, "app")
		o.Status.Ready = 9 // Update must not write the status
	})
	require.Equal(t, []string{`PATCH {"metadata":{"labels":{"app":null,"tier":"two"},"resourceVersion":"` + one + `"}}`}, w.taken())
	require.Zero(t, o.Status.Ready)

	two := o.Version
	changed := o.Clone()
	changed.Status.Node, changed.Spec.Class = "node-1", "not to be written by UpdateStatus"
	o, err := c.UpdateStatus(t.Context(), changed)
	require.NoError(t, err)
	require.Equal(t, []string{`PATCH status {"metadata":{"resourceVersion":"` + two + `"},"status":{"node":"node-1"}}`}, w.taken())
	require.Equal(t, "large", o.Spec.Class)

	// For a write based on a version that is not in the cache, the object is read first. If it has
	// another version, no patch is sent.
	stale := o.Clone()
	stale.Version = one
	_, err = c.Update(t.Context(), stale)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, []string{"GET"}, w.taken())
	cold, err := apistore.New(options(t, config))
	require.NoError(t, err)
	require.False(t, cold.Synced())
	update(t, cold, o, func(o *storetest.Object) { o.Spec.Replicas = 7 })
	require.Equal(t, []string{"GET", `PATCH {"metadata":{"resourceVersion":"` + o.Version + `"},"spec":{"replicas":7}}`}, w.taken())
}

// TestBrokenWatches: after any fault of the connection, a watch reaches the last state, and delivers
// the end of an object before the next object with its name.
func TestBrokenWatches(t *testing.T) {
	for name, broken := range map[string]func(w *wire, change func()){
		"cut":     func(w *wire, change func()) { w.cut(0, false); change() },
		"expired": func(w *wire, change func()) { w.cut(3, false); change() },
		"outage": func(w *wire, change func()) {
			w.cut(0, true)
			change()
			w.cut(2, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, w := wired(t)
			c := newCollection(t, config, nil)
			other := newCollection(t, server.Config, nil) // not through the broken wire
			seen := follow(t, c)
			stays := create(t, other, sample("stays"))
			create(t, other, sample("goes"))
			first := create(t, other, sample("again"))
			eventually(t, "three objects", func() bool { return seen.size() == 3 })
			var second, last *storetest.Object
			broken(w, func() {
				require.NoError(t, other.Delete(t.Context(), object.Key{Namespace: stays.Namespace, Name: "goes"}, ""))
				require.NoError(t, other.Delete(t.Context(), first.Key, first.UID))
				second = create(t, other, sample("again"))
				last = update(t, other, stays, func(o *storetest.Object) { o.Spec.Replicas = 42 })
			})
			eventually(t, "the last state", func() bool {
				return seen.size() == 2 && seen.version(last.Key) == last.Version && seen.version(second.Key) == second.Version
			})
			require.NoError(t, seen.violation())
			got, err := c.Get(t.Context(), last.Key)
			require.NoError(t, err)
			require.EqualValues(t, 42, got.Spec.Replicas)
			w.restore()
		})
	}
}

// TestReadsWaitForTheFirstFill: cached reads and watches wait until all objects were read once.
// Otherwise objects would seem to be missing.
func TestReadsWaitForTheFirstFill(t *testing.T) {
	config, w := wired(t)
	w.cut(0, true)
	reports := make(chan error, 1000)
	c := newCollection(t, config, func(o *apistore.Options[*storetest.Object, *thing]) {
		o.Report = func(err error) { reports <- err }
	})
	require.ErrorIs(t, <-reports, syscall.ECONNREFUSED)
	other := newCollection(t, server.Config, nil)
	o := create(t, other, sample("a"))

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Get(short, o.Key)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = c.List(short, store.Query{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for range c.Watch(short) {
		t.Fatal("a watch has begun")
	}
	require.False(t, c.Synced())
	_, err = c.Live().Get(t.Context(), o.Key)
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrNotFound)

	w.restore()
	got, err := c.Get(t.Context(), o.Key) // without any polling
	require.NoError(t, err)
	require.Equal(t, o.UID, got.UID)
	require.True(t, c.Synced())
	have, found := c.Raw(o.Key)
	require.True(t, found)
	require.Equal(t, o.Version, have.ResourceVersion)
}

// TestOddObjects: what a codec can't read of an object is reported once for each version, and the
// rest is read.
func TestOddObjects(t *testing.T) {
	config, w := wired(t)
	reports := make(chan string, 1000)
	c := newCollection(t, config, func(o *apistore.Options[*storetest.Object, *thing]) {
		o.Report = func(err error) { reports <- err.Error() }
	})
	a := create(t, c, sample("a"))
	in := raw(t).Namespace(a.Namespace)
	_, err := in.Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"spec":{"odd":true,"replicas":9}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, "things fleet-a/a: spec.odd is odd", <-reports)
	eventually(t, "the rest to be read", func() bool {
		got, err := c.Get(t.Context(), a.Key)
		return err == nil && got.Spec.Replicas == 9
	})
	w.cut(1, false) // all objects are listed again
	require.Equal(t, "watch things: too old resource version", <-reports)
	for len(reports) > 0 {
		require.NotContains(t, <-reports, "odd", "reported again")
	}
	_, err = in.Create(t.Context(), bare("b"), metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, "the other object", func() bool {
		_, err := c.Get(t.Context(), object.Key{Namespace: a.Namespace, Name: "b"})
		return err == nil
	})
	got, err := c.Live().Get(t.Context(), a.Key)
	require.NoError(t, err)
	update(t, c, got, func(o *storetest.Object) { o.Spec.Replicas = 8 })
	_, err = in.Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, "things fleet-a/a: spec.odd is odd", <-reports)
	stored, err := in.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, true, nested(t, stored, "spec", "odd"))
}

// TestOwnWritesAreReadAtOnce: cached reads show own writes at once, even while no watch reaches the
// server. When watches work again, the cache shows what others did meanwhile, and keeps the own
// writes.
func TestOwnWritesAreReadAtOnce(t *testing.T) {
	config, w := wired(t)
	c := newCollection(t, config, nil)
	kept, others := create(t, c, sample("kept")), create(t, c, sample("others"))
	in := raw(t).Namespace(kept.Namespace)
	eventually(t, "the watch to show the objects", func() bool {
		raw, found := c.Raw(others.Key)
		return found && raw.GetResourceVersion() == others.Version
	})
	l := follow(t, c)
	w.blockWatches()
	own := create(t, c, sample("own"))
	mine := create(t, c, sample("mine"))
	kept = update(t, c, kept, func(o *storetest.Object) { o.Spec.Replicas = 77 })
	for _, o := range []*storetest.Object{own, mine, kept} {
		got, err := c.Get(t.Context(), o.Key)
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	eventually(t, "watches of the collection to show own writes", func() bool { return l.version(kept.Key) == kept.Version && l.version(mine.Key) == mine.Version })
	require.NoError(t, in.Delete(t.Context(), "others", metav1.DeleteOptions{}))
	require.NoError(t, in.Delete(t.Context(), "mine", metav1.DeleteOptions{}))
	_, err := in.Patch(t.Context(), "own", "application/merge-patch+json", []byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = c.Get(t.Context(), mine.Key)
	require.NoError(t, err, "the cache can't know of the deletion yet")
	w.restore()
	eventually(t, "the deletions", func() bool { return l.size() == 2 })
	got, err := c.Get(t.Context(), kept.Key)
	require.NoError(t, err)
	require.Equal(t, kept, got)
	eventually(t, "the other program's write", func() bool {
		got, err := c.Get(t.Context(), own.Key)
		return err == nil && got.Spec.Replicas == 9
	})
	_, err = c.Get(t.Context(), mine.Key)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestRefusals(t *testing.T) {
	c := newCollection(t, server.Config, nil)
	o := sample("Not A Name")
	_, err := c.Create(t.Context(), o)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "metadata.name")
	o = sample("a")
	o.Spec.Class = "can't be stored"
	_, err = c.Create(t.Context(), o)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "create fleet-a/a: invalid: spec.class")
	o = sample("a")
	o.Namespace = ""
	_, err = c.Create(t.Context(), o)
	require.ErrorIs(t, err, store.ErrInvalid)
	o.Namespace = "absent"
	_, err = c.Create(t.Context(), o)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, `namespaces "absent" not found`)

	a := create(t, c, sample("a"))
	bad := a.Clone()
	bad.Labels = map[string]string{"no label": "x"}
	_, err = c.Update(t.Context(), bad)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "update fleet-a/a: invalid: ")
	require.ErrorContains(t, err, "metadata.labels")
	bad.Labels, bad.Spec.Class = nil, "can't be stored"
	_, err = c.Update(t.Context(), bad)
	require.ErrorIs(t, err, store.ErrInvalid)

	// No object has a key that can't be part of a path.
	for _, k := range []object.Key{{Namespace: "fleet-a", Name: "a/b"}, {Namespace: "fleet-a", Name: ".."}, {Namespace: "x/y", Name: "a"}, {Name: "a"}} {
		_, err = c.Live().Get(t.Context(), k)
		require.ErrorIs(t, err, store.ErrNotFound, "%v", k)
		require.ErrorIs(t, c.Delete(t.Context(), k, ""), store.ErrNotFound, "%v", k)
	}
	outsider := rest.CopyConfig(server.Config)
	outsider.BearerToken = "unknown"
	denied := newCollection(t, outsider, nil)
	_, err = denied.Live().Get(t.Context(), a.Key)
	require.Error(t, err)
	for _, kind := range []error{store.ErrNotFound, store.ErrConflict, store.ErrInvalid, store.ErrAlreadyExists} {
		require.NotErrorIs(t, err, kind)
	}
}

// TestDeletionsReachTheCache: an object is removed from the cache even if it is deleted before the
// watch has shown its last update.
func TestDeletionsReachTheCache(t *testing.T) {
	c := newCollection(t, server.Config, nil)
	o := create(t, c, sample("a"))
	for range 5 {
		o = update(t, c, o, func(o *storetest.Object) { o.Spec.Replicas++ })
	}
	require.NoError(t, c.Delete(t.Context(), o.Key, o.UID))
	eventually(t, "the cache to forget it", func() bool {
		_, err := c.Get(t.Context(), o.Key)
		_, known := c.Raw(o.Key)
		return err != nil && !known
	})
	again := create(t, c, sample("a"))
	_, err := c.Update(t.Context(), o)
	require.ErrorIs(t, err, store.ErrConflict)
	update(t, c, again, func(o *storetest.Object) { o.Spec.Replicas = 9 })
}

// TestOwnEndIsReadAtOnce: an object that an own write ends is gone from the cache at once, even while
// no watch reaches the server. It does not come back with older changes that the watch shows later.
func TestOwnEndIsReadAtOnce(t *testing.T) {
	config, w := wired(t)
	c := newCollection(t, config, nil)
	held := func(o *storetest.Object) { o.Finalizers = []string{"example.com/f"} }
	late := sample("late")
	held(late)
	late = create(t, c, late)
	again := sample("again")
	held(again)
	again = create(t, c, again)
	for _, o := range []*storetest.Object{late, again} {
		require.NoError(t, c.Delete(t.Context(), o.Key, o.UID))
		eventually(t, "the watch to show the deletion", func() bool {
			got, err := c.Get(t.Context(), o.Key)
			return err == nil && got.Deleted()
		})
	}
	l := follow(t, c)
	eventually(t, "two objects", func() bool { return l.size() == 2 })
	w.blockWatches()
	for _, o := range []*storetest.Object{late, again} {
		o, err := c.Get(t.Context(), o.Key)
		require.NoError(t, err)
		o = update(t, c, o, func(o *storetest.Object) { o.Spec.Replicas = 77 })
		update(t, c, o, func(o *storetest.Object) { o.Finalizers = nil })
		_, err = c.Get(t.Context(), o.Key)
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	again = create(t, c, sample("again"))
	eventually(t, "watches of the collection to show own writes", func() bool { return l.size() == 1 && l.version(again.Key) == again.Version })
	w.restore()
	_, err := raw(t).Namespace(again.Namespace).Create(t.Context(), bare("last"), metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, "the server's watch to show the other program's object", func() bool { return l.size() == 2 })
	got, err := c.Get(t.Context(), again.Key)
	require.NoError(t, err)
	require.Equal(t, again, got)
	require.Equal(t, 1, l.ends(late.Key), "the object came back")
}

func TestNarrowedLists(t *testing.T) {
	config, w := wired(t)
	narrowed := 0
	c := newCollection(t, config, func(o *apistore.Options[*storetest.Object, *thing]) {
		o.Narrow = map[store.Index]func(string) (metav1.ListOptions, bool){
			storetest.ByZone: func(zone string) (metav1.ListOptions, bool) {
				narrowed++
				return metav1.ListOptions{LabelSelector: "tier=one"}, zone != "everywhere"
			},
		}
	})
	create(t, c, sample("a"))
	other := sample("b")
	other.Labels["tier"], other.Spec.Zones = "two", []string{"north", "everywhere"}
	create(t, c, other)
	w.taken()
	names := func(index store.Index, value string) (names []string) {
		t.Helper()
		objects, err := c.Live().List(t.Context(), store.Query{Index: index, Value: value})
		require.NoError(t, err)
		for _, o := range objects {
			names = append(names, o.Name)
		}
		return names
	}
	require.Equal(t, []string{"a"}, names(storetest.ByZone, "north"), "the server selects by label")
	require.Empty(t, names(storetest.ByZone, "south"), "the index filters what the server selects")
	require.Equal(t, []string{"b"}, names(storetest.ByZone, "everywhere"))
	require.Equal(t, []string{"a", "b"}, names(storetest.ByOwner, "owner-1"))
	require.Equal(t, 3, narrowed)
}

func TestOneNamespace(t *testing.T) {
	all := newCollection(t, server.Config, nil)
	c := newCollection(t, server.Config, func(o *apistore.Options[*storetest.Object, *thing]) { o.Namespace = "fleet-b" })
	a, b := sample("a"), sample("b")
	b.Namespace = "fleet-b"
	create(t, all, a)
	create(t, all, b)
	for _, from := range []store.Reader[*storetest.Object]{c, c.Live()} {
		eventually(t, "one object", func() bool {
			objects, err := from.List(t.Context(), store.Query{})
			return err == nil && len(objects) == 1 && objects[0].Key == b.Key
		})
	}
}

func TestWithoutStatus(t *testing.T) {
	c := newCollection(t, server.Config, func(o *apistore.Options[*storetest.Object, *thing]) { o.NoStatus = true })
	o := create(t, c, sample("a"))
	changed := o.Clone()
	changed.Status.Ready, changed.Spec.Class = 3, "small"
	got, err := c.UpdateStatus(t.Context(), changed)
	require.NoError(t, err)
	require.Equal(t, o.Version, got.Version)
	require.Equal(t, "large", got.Spec.Class)
	changed.Version = "1"
	_, err = c.UpdateStatus(t.Context(), changed)
	require.ErrorIs(t, err, store.ErrConflict)
}

func untracked(o *apistore.Options[*storetest.Object, *thing]) { o.Untracked = true }

// TestUntrackedFields: an update removes the server's record of fields, and the server keeps none from then on, even if
// others write the object. While somebody applies the object, the record stays.
func TestUntrackedFields(t *testing.T) {
	objects := raw(t).Namespace(storetest.Namespaces[0])
	managers := func() (names []string) {
		stored, err := objects.Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		for _, f := range stored.GetManagedFields() {
			names = append(names, f.Manager+" "+string(f.Operation))
		}
		return names
	}
	c, others := newCollection(t, server.Config, untracked), newCollection(t, server.Config, nil)
	o := create(t, c, sample("a"))
	o.Status.Ready++
	o, err := c.UpdateStatus(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, managers(), 2)
	o = update(t, c, o, func(o *storetest.Object) { o.Spec.Replicas++ })
	require.Empty(t, managers())
	o = update(t, others, o, func(o *storetest.Object) { o.Spec.Class = "of others" })
	require.Empty(t, managers())

	applied := bare("a")
	applied.SetLabels(map[string]string{"by": "gitops"})
	_, err = objects.Apply(t.Context(), "a", applied, metav1.ApplyOptions{FieldManager: "gitops", Force: true})
	require.NoError(t, err)
	o, err = c.Live().Get(t.Context(), o.Key)
	require.NoError(t, err)
	update(t, c, o, func(o *storetest.Object) { o.Spec.Replicas++ })
	require.Contains(t, managers(), "gitops Apply")
}

func TestOptions(t *testing.T) {
	for name, edit := range map[string]func(*apistore.Options[*storetest.Object, *thing]){
		"no Client":             func(o *apistore.Options[*storetest.Object, *thing]) { o.Client = nil },
		"no Resource":           func(o *apistore.Options[*storetest.Object, *thing]) { o.Resource = "" },
		"no Codec":              func(o *apistore.Options[*storetest.Object, *thing]) { o.Codec = nil },
		"no Blank or BlankList": func(o *apistore.Options[*storetest.Object, *thing]) { o.Blank = nil },
		"a Namespace, but the kind has none": func(o *apistore.Options[*storetest.Object, *thing]) {
			o.Namespaced, o.Namespace = false, "fleet-a"
		},
	} {
		o := options(t, server.Config)
		edit(&o)
		_, err := apistore.New(o)
		require.EqualError(t, err, name)
	}
	o := options(t, server.Config)
	o.BlankList = nil
	_, err := apistore.New(o)
	require.EqualError(t, err, "no Blank or BlankList")
	o = options(t, server.Config)
	o.Report, o.BlankList = nil, func() runtime.Object { return &thingList{} }
	_, err = apistore.New(o)
	require.NoError(t, err)
}

// bare returns a thing as another program creates it.
func bare(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(), "kind": "Thing",
		"metadata": map[string]any{"name": name, "namespace": storetest.Namespaces[0]},
		"spec":     map[string]any{"replicas": int64(1)},
	}}
}
