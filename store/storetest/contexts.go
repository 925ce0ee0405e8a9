package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/store"
)

var contextRules = []rule{
	{"does nothing after a cancellation", func(r *trial) {
		ctx, cancel := context.WithCancel(r.ctx)
		cancel()
		r.checkEnded(ctx, context.Canceled)
	}},
	{"does nothing after a deadline", func(r *trial) {
		ctx, cancel := context.WithDeadline(r.ctx, time.Unix(0, 0))
		defer cancel()
		r.checkEnded(ctx, context.DeadlineExceeded)
	}},
}

// checkEnded checks that all calls fail with want, and have no effect, if their context is ctx, which
// has ended.
func (r *trial) checkEnded(ctx context.Context, want error) {
	held := sample("held")
	held.Finalizers = []string{holdOne}
	held = r.create(held)
	free := r.create(sample("free"))
	edited := free.Clone()
	edited.Spec.Replicas++
	edited.Status.Ready++

	_, err := r.store.Create(ctx, sample("new"))
	require.ErrorIs(r, err, want)
	_, err = r.store.Update(ctx, edited)
	require.ErrorIs(r, err, want)
	_, err = r.store.UpdateStatus(ctx, edited)
	require.ErrorIs(r, err, want)
	require.ErrorIs(r, r.store.Delete(ctx, free.Key, free.UID), want)
	require.ErrorIs(r, r.store.Delete(ctx, held.Key, ""), want)
	for _, from := range []store.Reader[*Object]{r.store, r.store.Live()} {
		_, err = from.Get(ctx, free.Key)
		require.ErrorIs(r, err, want)
		objects, err := from.List(ctx, store.Query{})
		require.ErrorIs(r, err, want)
		require.Empty(r, objects)
	}
	// An ended context comes before all other reasons to refuse.
	_, err = r.store.Create(ctx, nil)
	require.ErrorIs(r, err, want)

	r.lists(r.store.Live(), store.Query{}, "free", "held")
	r.stored(free)
	r.stored(held)

	r.within("a watch whose context has ended", func() error {
		for change, err := range r.store.Watch(ctx) {
			return errors.Join(fmt.Errorf("it yields %+v", change), err)
		}
		return nil
	})
}
