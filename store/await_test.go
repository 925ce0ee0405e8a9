package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// lacks returns a function for Await that reports how many of n replicas an object has, or "" if it
// has all. It passes each report to then.
func lacks(n int64, then func(report string)) func(*storetest.Object) string {
	return func(o *storetest.Object) (report string) {
		if o.Spec.Replicas < n {
			report = fmt.Sprintf("%d of %d", o.Spec.Replicas, n)
		}
		then(report)
		return report
	}
}

// TestAwait: the function is asked after each change of the object, not after changes of others. The
// wait ends when it returns "".
func TestAwait(t *testing.T) {
	c := newObjects(t, 1)
	other := object.Key{Namespace: "fleet", Name: "b"}
	_, err := c.Create(t.Context(), &storetest.Object{Meta: object.Meta{Key: other}})
	require.NoError(t, err)
	var reports []string
	o, err := store.Await(t.Context(), c, editKey, lacks(3, func(report string) {
		reports = append(reports, report)
		require.NoError(t, c.Delete(t.Context(), other, ""))
		_, err := c.Create(t.Context(), &storetest.Object{Meta: object.Meta{Key: other}})
		require.NoError(t, err)
		_, err = store.Edit(t.Context(), c, editKey, increment)
		require.NoError(t, err)
	}))
	require.NoError(t, err)
	require.EqualValues(t, 3, o.Spec.Replicas)
	require.Equal(t, []string{"1 of 3", "2 of 3", ""}, reports)
}

// TestAwaitEnds: the error names what is missing, and why the wait ended.
func TestAwaitEnds(t *testing.T) {
	impatient := errors.New("impatient")
	for name, c := range map[string]struct {
		then func(c objects, end func(error))
		err  error
	}{
		"the context":     {func(_ objects, end func(error)) { end(impatient) }, impatient},
		"another context": {func(_ objects, end func(error)) { end(nil) }, context.Canceled},
		"gone":            {func(c objects, _ func(error)) { _ = c.Delete(context.Background(), editKey, "") }, store.ErrNotFound},
	} {
		objects := newObjects(t, 1)
		ctx, end := context.WithCancelCause(t.Context())
		_, err := store.Await(ctx, objects, editKey, lacks(3, func(string) { c.then(objects, end) }))
		end(nil)
		require.ErrorIs(t, err, c.err, name)
		require.ErrorContains(t, err, "waiting for fleet/a: still missing: 1 of 3: ", name)
	}
}

// broken is a collection whose watch ends at once: with err, or by itself.
type broken struct {
	objects
	err error
}

func (b broken) Watch(context.Context) iter.Seq2[store.Change[*storetest.Object], error] {
	return func(yield func(store.Change[*storetest.Object], error) bool) {
		if b.err != nil {
			yield(store.Change[*storetest.Object]{}, b.err)
		}
	}
}

// TestAwaitOfABrokenWatch: when the watch ends, the wait fails.
func TestAwaitOfABrokenWatch(t *testing.T) {
	nothing := func(*storetest.Object) string { return "" }
	cut := errors.New("cut")
	_, err := store.Await(t.Context(), broken{newObjects(t, 1), cut}, editKey, nothing)
	require.ErrorIs(t, err, cut)
	require.ErrorContains(t, err, "still missing: the object")
	_, err = store.Await(t.Context(), broken{newObjects(t, 1), nil}, editKey, nothing)
	require.ErrorContains(t, err, "the watch ended by itself")
}

// TestAwaitOfNothing: the wait for an object that does not exist fails at once. If the context has
// ended, the error is its cause.
func TestAwaitOfNothing(t *testing.T) {
	c := newObjects(t, 1)
	require.NoError(t, c.Delete(t.Context(), editKey, ""))
	_, err := store.Await(t.Context(), c, editKey, lacks(1, func(string) {}))
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "waiting for fleet/a: still missing: the object: ")
	ctx, end := context.WithCancelCause(t.Context())
	impatient := errors.New("impatient")
	end(impatient)
	_, err = store.Await(ctx, c, editKey, lacks(1, func(string) {}))
	require.ErrorIs(t, err, impatient)
}

// TestAwaitGone: it succeeds when the object is removed, and if there is none.
func TestAwaitGone(t *testing.T) {
	c := newObjects(t, 1)
	o, err := store.Edit(t.Context(), c, editKey, func(o *storetest.Object) error {
		o.Finalizers = []string{"hold"}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, c.Delete(t.Context(), editKey, o.UID))
	ctx, end := context.WithCancel(t.Context())
	end()
	err = store.AwaitGone(ctx, c, editKey)
	require.ErrorIs(t, err, context.Canceled, "it is still there")
	gone := make(chan error)
	go func() { gone <- store.AwaitGone(t.Context(), c, editKey) }()
	_, err = store.Edit(t.Context(), c, editKey, func(o *storetest.Object) error {
		o.Finalizers = nil
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, <-gone)
	require.NoError(t, store.AwaitGone(t.Context(), c, editKey))
}

// beforeWatch is a collection in which something happens just before a watch begins.
type beforeWatch struct {
	objects
	happens func()
}

func (b beforeWatch) Watch(ctx context.Context) iter.Seq2[store.Change[*storetest.Object], error] {
	b.happens()
	return b.objects.Watch(ctx)
}

// TestAwaitDeletedBeforeWatch: the object is removed before the watch begins, so no change shows that
// it is gone.
func TestAwaitDeletedBeforeWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newObjects(t, 1)
		b := beforeWatch{c, func() { require.NoError(t, c.Delete(t.Context(), editKey, "")) }}
		_, err := store.Await(t.Context(), b, editKey, lacks(1, func(string) {}))
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// TestAwaitRecreated: if the object is deleted and created again, Await waits for the new one.
func TestAwaitRecreated(t *testing.T) {
	c := newObjects(t, 1)
	b := beforeWatch{c, func() {
		require.NoError(t, c.Delete(t.Context(), editKey, ""))
		_, err := c.Create(t.Context(), newObject(3))
		require.NoError(t, err)
	}}
	o, err := store.Await(t.Context(), b, editKey, lacks(3, func(string) {}))
	require.NoError(t, err)
	require.EqualValues(t, 3, o.Spec.Replicas)
}

// staleWatch is a collection whose watch begins with old changes.
type staleWatch struct {
	objects
	changes []store.Change[*storetest.Object]
}

func (b staleWatch) Watch(ctx context.Context) iter.Seq2[store.Change[*storetest.Object], error] {
	return func(yield func(store.Change[*storetest.Object], error) bool) {
		for _, c := range b.changes {
			if !yield(c, nil) {
				return
			}
		}
		b.objects.Watch(ctx)(yield)
	}
}

// TestAwaitOnAStaleCache: Await ignores changes that are older than its own start: those of a former
// object of that name, and earlier specs of this one.
func TestAwaitOnAStaleCache(t *testing.T) {
	c := newObjects(t, 9)
	first, err := c.Get(t.Context(), editKey)
	require.NoError(t, err)
	require.NoError(t, c.Delete(t.Context(), editKey, ""))
	second, err := c.Create(t.Context(), newObject(9))
	require.NoError(t, err)
	_, err = store.Edit(t.Context(), c, editKey, func(o *storetest.Object) error {
		o.Spec.Replicas = 10
		return nil
	})
	require.NoError(t, err)
	old := staleWatch{c, []store.Change[*storetest.Object]{{New: first}, {Old: first}, {New: second}}}
	var seen []string
	o, err := store.Await(t.Context(), old, editKey, func(o *storetest.Object) string {
		seen = append(seen, fmt.Sprint(o.Spec.Replicas))
		return ""
	})
	require.NoError(t, err)
	require.EqualValues(t, 10, o.Spec.Replicas)
	require.Equal(t, []string{"10"}, seen)
}
