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

// lacks says how many replicas an object lacks, and does something after each answer.
func lacks(n int64, then func(told string)) func(*storetest.Object) string {
	return func(o *storetest.Object) (told string) {
		if o.Spec.Replicas < n {
			told = fmt.Sprintf("%d of %d", o.Spec.Replicas, n)
		}
		then(told)
		return told
	}
}

// TestAwait: each change of the object is told, others are not, and the last one ends the wait.
func TestAwait(t *testing.T) {
	c := newObjects(t, 1)
	other := object.Key{Namespace: "fleet", Name: "b"}
	_, err := c.Create(t.Context(), &storetest.Object{Meta: object.Meta{Key: other}})
	require.NoError(t, err)
	var told []string
	o, err := store.Await(t.Context(), c, editKey, lacks(3, func(s string) {
		told = append(told, s)
		require.NoError(t, c.Delete(t.Context(), other, ""))
		_, err := c.Create(t.Context(), &storetest.Object{Meta: object.Meta{Key: other}})
		require.NoError(t, err)
		_, err = store.Edit(t.Context(), c, editKey, increment)
		require.NoError(t, err)
	}))
	require.NoError(t, err)
	require.EqualValues(t, 3, o.Spec.Replicas)
	require.Equal(t, []string{"1 of 3", "2 of 3", ""}, told)
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

// broken is a collection whose watch breaks.
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

// TestAwaitOfABrokenWatch: the wait does not go on without a watch, and is no success.
func TestAwaitOfABrokenWatch(t *testing.T) {
	nothing := func(*storetest.Object) string { return "" }
	cut := errors.New("cut")
	_, err := store.Await(t.Context(), broken{newObjects(t, 1), cut}, editKey, nothing)
	require.ErrorIs(t, err, cut)
	require.ErrorContains(t, err, "still missing: the object")
	_, err = store.Await(t.Context(), broken{newObjects(t, 1), nil}, editKey, nothing)
	require.ErrorContains(t, err, "the watch ended by itself")
}

// TestAwaitOfNothing: an object that does not exist, or no longer, is an error at once.
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

// TestAwaitGone: the end of an object is no error, whether it comes or has come.
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

// before is a collection in which something happens just before a watch begins.
type before struct {
	objects
	happens func()
}

func (b before) Watch(ctx context.Context) iter.Seq2[store.Change[*storetest.Object], error] {
	b.happens()
	return b.objects.Watch(ctx)
}

// TestAwaitOfWhatGoesUnseen: an object goes before the watch could show it, so no change tells of
// its end.
func TestAwaitOfWhatGoesUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newObjects(t, 1)
		b := before{c, func() { require.NoError(t, c.Delete(t.Context(), editKey, "")) }}
		_, err := store.Await(t.Context(), b, editKey, lacks(1, func(string) {}))
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// TestAwaitOfWhatIsMadeAgain: the object of that name that there is now is waited for.
func TestAwaitOfWhatIsMadeAgain(t *testing.T) {
	c := newObjects(t, 1)
	b := before{c, func() {
		require.NoError(t, c.Delete(t.Context(), editKey, ""))
		_, err := c.Create(t.Context(), newObject(3))
		require.NoError(t, err)
	}}
	o, err := store.Await(t.Context(), b, editKey, lacks(3, func(string) {}))
	require.NoError(t, err)
	require.EqualValues(t, 3, o.Spec.Replicas)
}

// behind is a collection whose watch first shows what was stored long ago.
type behind struct {
	objects
	changes []store.Change[*storetest.Object]
}

func (b behind) Watch(ctx context.Context) iter.Seq2[store.Change[*storetest.Object], error] {
	return func(yield func(store.Change[*storetest.Object], error) bool) {
		for _, c := range b.changes {
			if !yield(c, nil) {
				return
			}
		}
		b.objects.Watch(ctx)(yield)
	}
}

// TestAwaitOnAnOldCache: what was stored before the wait began, another object of that name and its
// end too, is not what is waited for.
func TestAwaitOnAnOldCache(t *testing.T) {
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
	old := behind{c, []store.Change[*storetest.Object]{{New: first}, {Old: first}, {New: second}}}
	var told []string
	o, err := store.Await(t.Context(), old, editKey, func(o *storetest.Object) string {
		told = append(told, fmt.Sprint(o.Spec.Replicas))
		return ""
	})
	require.NoError(t, err)
	require.EqualValues(t, 10, o.Spec.Replicas)
	require.Equal(t, []string{"10"}, told)
}
