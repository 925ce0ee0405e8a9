package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// TestReadOnly: a write that the store would refuse fails with the store's error. One that would
// change nothing succeeds. Any other is reported to the function that ReadOnly was given, and fails
// with ErrReadOnly. None changes anything.
// Invariants: P40
func TestReadOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(1_800_000_000, 0)
		inner := store.NewMemory(func() time.Time { return at }, storetest.Indexes())
		var blocked []string
		c := store.ReadOnly[*storetest.Object](inner, func(_ context.Context, w store.BlockedWrite) { blocked = append(blocked, w.String()) })
		past := []*storetest.Object{nil, {}}
		for range rapid.IntRange(1, 20).Draw(t, "writes") {
			w := drawWrite(t, past)
			before, reports := inventory(t, inner), len(blocked)
			_, got := w.on(c)
			require.Equal(t, before, inventory(t, inner), "%s changed something in a read-only store", w.name)
			after, err := w.on(inner)
			switch {
			case err != nil:
				require.Equal(t, err.Error(), got.Error())
				require.ErrorIs(t, got, errors.Unwrap(err))
				require.Len(t, blocked, reports, "a refused write was reported as blocked")
			case got == nil:
				require.Equal(t, before, inventory(t, inner), "%s succeeded, but would have changed something", w.name)
				require.Len(t, blocked, reports)
			default:
				require.ErrorIs(t, got, store.ErrReadOnly)
				require.Equal(t, w.name+" "+w.key.String(), blocked[reports])
				require.ErrorContains(t, got, blocked[reports])
				require.NotEqual(t, before, inventory(t, inner), "%s was blocked, but would have changed nothing", w.name)
			}
			if after != nil {
				past = append(past, after)
			}
		}
	})
}

// inventory returns all that is stored.
func inventory(t require.TestingT, c store.Collection[*storetest.Object]) []*storetest.Object {
	all, err := c.List(context.Background(), store.Query{})
	require.NoError(t, err)
	out := make([]*storetest.Object, len(all))
	for i, o := range all {
		out[i] = o.Clone()
	}
	return out
}

// anyWrite is one write of an object in a present or past state.
type anyWrite struct {
	name string
	key  object.Key
	on   func(store.Collection[*storetest.Object]) (*storetest.Object, error)
}

func drawWrite(t *rapid.T, past []*storetest.Object) anyWrite {
	ctx := context.Background()
	o := rapid.SampledFrom(past).Draw(t, "object")
	if o != nil {
		o = o.Clone()
		if o.Name == "" {
			o.Key = object.Key{Namespace: "fleet", Name: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")}
		}
		if rapid.Bool().Draw(t, "finalizer") {
			o.AddFinalizer("keep")
		} else {
			o.RemoveFinalizer("keep")
		}
	}
	w := anyWrite{name: rapid.SampledFrom([]string{"create", "update", "update status of", "delete"}).Draw(t, "verb")}
	if o != nil {
		w.key = o.Key
	}
	w.on = func(c store.Collection[*storetest.Object]) (*storetest.Object, error) {
		switch w.name {
		case "create":
			return c.Create(ctx, o)
		case "update":
			return c.Update(ctx, o)
		case "update status of":
			return c.UpdateStatus(ctx, o)
		}
		if o == nil {
			return nil, c.Delete(ctx, w.key, "")
		}
		return nil, c.Delete(ctx, w.key, o.UID)
	}
	return w
}

// TestReadOnlyReads: reads and watches are the store's. A write fails if its context has ended or
// its live read fails, and is not reported as blocked then.
func TestReadOnlyReads(t *testing.T) {
	ctx := t.Context()
	inner := store.NewMemory(nil, storetest.Indexes())
	o := &storetest.Object{Meta: object.Meta{Key: object.Key{Name: "a"}}}
	_, err := inner.Create(ctx, o)
	require.NoError(t, err)
	blocked := 0
	c := store.ReadOnly[*storetest.Object](inner, func(context.Context, store.BlockedWrite) { blocked++ })
	got, err := c.Get(ctx, o.Key)
	require.NoError(t, err)
	live, err := c.Live().Get(ctx, o.Key)
	require.NoError(t, err)
	require.Same(t, got, live)
	for change, err := range c.Watch(ctx) {
		require.NoError(t, err)
		require.Same(t, got, change.New)
		break
	}
	ended, end := context.WithCancel(ctx)
	end()
	require.ErrorIs(t, c.Delete(ended, o.Key, ""), context.Canceled)
	require.ErrorIs(t, c.Delete(ended, object.Key{}, ""), context.Canceled)

	broken := store.ReadOnly[*storetest.Object](failingReads{inner}, func(context.Context, store.BlockedWrite) { blocked++ })
	require.ErrorIs(t, broken.Delete(ctx, o.Key, ""), errMute)
	_, err = broken.Create(ctx, o)
	require.ErrorIs(t, err, errMute)
	require.Zero(t, blocked)
}

var errMute = errors.New("nobody answers")

// failingReads is a store whose live reads fail.
type failingReads struct {
	store.Collection[*storetest.Object]
}

func (m failingReads) Live() store.Reader[*storetest.Object] { return failingReader{m} }

type failingReader struct {
	store.Reader[*storetest.Object]
}

func (failingReader) Get(context.Context, object.Key) (*storetest.Object, error) { return nil, errMute }
