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

// TestReadOnly: a blocked write answers as the store would if the store would refuse it. Otherwise
// it is passed to tell and changes nothing.
// Invariants: P40
func TestReadOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(1_800_000_000, 0)
		inner := store.NewMemory(func() time.Time { return at }, storetest.Indexes())
		var told []string
		c := store.ReadOnly[*storetest.Object](inner, func(_ context.Context, w store.BlockedWrite) { told = append(told, w.String()) })
		past := []*storetest.Object{nil, {}}
		for range rapid.IntRange(1, 20).Draw(t, "writes") {
			act := drawWrite(t, past)
			before, told0 := inventory(t, inner), len(told)
			_, held := act.on(c)
			require.Equal(t, before, inventory(t, inner), "%s changed something", act.name)
			after, err := act.on(inner)
			switch {
			case err != nil:
				require.Equal(t, err.Error(), held.Error())
				require.ErrorIs(t, held, errors.Unwrap(err))
				require.Len(t, told, told0, "what is refused is not told")
			case held == nil:
				require.Equal(t, before, inventory(t, inner), "%s was to change something", act.name)
				require.Len(t, told, told0)
			default:
				require.ErrorIs(t, held, store.ErrReadOnly)
				require.Equal(t, act.name+" "+act.key.String(), told[told0])
				require.ErrorContains(t, held, told[told0])
				require.NotEqual(t, before, inventory(t, inner), "%s was to change nothing", act.name)
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

// anyWrite returns one write of an object as it was at some time.
type anyWrite struct {
	name string
	key  object.Key
	on   func(store.Collection[*storetest.Object]) (*storetest.Object, error)
}

func drawWrite(t *rapid.T, past []*storetest.Object) anyWrite {
	ctx := context.Background()
	o := rapid.SampledFrom(past).Draw(t, "as it was")
	if o != nil {
		o = o.Clone()
		if o.Name == "" {
			o.Key = object.Key{Namespace: "fleet", Name: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")}
		}
		if rapid.Bool().Draw(t, "kept") {
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

// TestReadOnlyReads: reads and watches are the store's. A read that fails, or the end of its
// context, is the answer to a write.
func TestReadOnlyReads(t *testing.T) {
	ctx := t.Context()
	inner := store.NewMemory(nil, storetest.Indexes())
	o := &storetest.Object{Meta: object.Meta{Key: object.Key{Name: "a"}}}
	_, err := inner.Create(ctx, o)
	require.NoError(t, err)
	told := 0
	c := store.ReadOnly[*storetest.Object](inner, func(context.Context, store.BlockedWrite) { told++ })
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

	broken := store.ReadOnly[*storetest.Object](mute{inner}, func(context.Context, store.BlockedWrite) { told++ })
	require.ErrorIs(t, broken.Delete(ctx, o.Key, ""), errMute)
	_, err = broken.Create(ctx, o)
	require.ErrorIs(t, err, errMute)
	require.Zero(t, told)
}

var errMute = errors.New("nobody answers")

// mute is a store that answers from its cache alone.
type mute struct {
	store.Collection[*storetest.Object]
}

func (m mute) Live() store.Reader[*storetest.Object] { return silent{m} }

type silent struct {
	store.Reader[*storetest.Object]
}

func (silent) Get(context.Context, object.Key) (*storetest.Object, error) { return nil, errMute }
