package sim

import (
	"context"
	"iter"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// port is a kind of objects as one process sees it.
type port[T object.Object[T]] struct {
	p            *process
	trackedStore *trackedStore[T]
	cache        *cache[T]
	ahead        int // changes that have not reached the cache yet
}

// read counts a read that may be answered with stale data.
func (s *port[T]) read() {
	if s.ahead > 0 {
		s.p.count(StaleRead)
	}
}

// Get implements store.Reader, from the cache.
func (s *port[T]) Get(_ context.Context, k object.Key) (T, error) {
	if s.p.dead {
		var none T
		return none, errDead
	}
	s.read()
	return s.cache.get(k)
}

// List implements store.Reader, from the cache.
func (s *port[T]) List(_ context.Context, q store.Query) ([]T, error) {
	if s.p.dead {
		return nil, errDead
	}
	s.read()
	return s.cache.list(q)
}

// Live implements store.Collection.
func (s *port[T]) Live() store.Reader[T] { return liveReader[T]{s.p, s.trackedStore} }

// Create implements store.Collection.
func (s *port[T]) Create(ctx context.Context, o T) (out T, err error) {
	err = s.p.write(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.Create(ctx, o); return err })
	return out, err
}

// Update implements store.Collection.
func (s *port[T]) Update(ctx context.Context, o T) (out T, err error) {
	err = s.p.write(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.Update(ctx, o); return err })
	return out, err
}

// UpdateStatus implements store.Collection.
func (s *port[T]) UpdateStatus(ctx context.Context, o T) (out T, err error) {
	err = s.p.write(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.UpdateStatus(ctx, o); return err })
	return out, err
}

// Delete implements store.Collection.
func (s *port[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	return s.p.write(apiOf(s.trackedStore.kind), func() error { return s.trackedStore.Delete(ctx, k, uid) })
}

// Watch implements store.Collection. Nothing watches in a simulation: the world wakes the
// reconcilers itself.
func (s *port[T]) Watch(context.Context) iter.Seq2[store.Change[T], error] {
	return func(func(store.Change[T], error) bool) {}
}

// liveReader reads a kind as it is stored.
type liveReader[T object.Object[T]] struct {
	p            *process
	trackedStore *trackedStore[T]
}

// Get implements store.Reader.
func (s liveReader[T]) Get(ctx context.Context, k object.Key) (out T, err error) {
	err = s.p.call(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.Get(ctx, k); return err })
	return out, err
}

// List implements store.Reader.
func (s liveReader[T]) List(ctx context.Context, q store.Query) (out []T, err error) {
	err = s.p.call(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.List(ctx, q); return err })
	return out, err
}
