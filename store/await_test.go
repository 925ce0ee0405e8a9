package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

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

// TestAwaitOfWhatIsToCome: an object that is created later is waited for.
func TestAwaitOfWhatIsToCome(t *testing.T) {
	c := newObjects(t, 1)
	b := object.Key{Namespace: "fleet", Name: "b"}
	created := make(chan error, 1)
	go func() {
		_, err := store.Await(t.Context(), c, editKey, lacks(1, func(string) {}))
		if err == nil {
			_, err = c.Create(t.Context(), &storetest.Object{Meta: object.Meta{Key: b}, Spec: storetest.Spec{Replicas: 1}})
		}
		created <- err
	}()
	o, err := store.Await(t.Context(), c, b, lacks(1, func(string) {}))
	require.NoError(t, err)
	require.Equal(t, "b", o.Name)
	require.NoError(t, <-created)
}
