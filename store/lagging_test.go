package store_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// lagging is a store with a cache, which catches up after every fifth read, and before a watch
// delivers. It stands for the cache of an API server's client: the suite must accept such a cache.
type lagging struct {
	*memory
	mu      sync.Mutex
	reads   int
	objects []*storetest.Object
}

func TestSuiteAllowsForCaches(t *testing.T) {
	storetest.Run(t, storetest.Suite{
		New: func(_ *testing.T, now func() time.Time) store.Collection[*storetest.Object] {
			later := func() time.Time { return now().Add(time.Hour) }
			return &lagging{memory: store.NewMemory(later, storetest.Indexes())}
		},
		OwnClock: true,
	})
}

func (l *lagging) Live() store.Reader[*storetest.Object] { return l.memory }

// cached returns the cache, and updates it after each fifth read.
func (l *lagging) cached() []*storetest.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := l.objects
	if l.reads++; l.reads%5 == 0 {
		l.catchUp()
	}
	return objects
}

func (l *lagging) catchUp() {
	l.objects, _ = l.memory.List(context.Background(), store.Query{})
}

func (l *lagging) Get(ctx context.Context, k object.Key) (*storetest.Object, error) {
	_, err := l.memory.Get(ctx, k)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for _, o := range l.cached() {
		if o.Key == k {
			return o, nil
		}
	}
	return nil, notFound{k}
}

type notFound struct{ object.Key }

func (e notFound) Error() string        { return "get " + e.Key.String() + ": not found" }
func (e notFound) Is(target error) bool { return target == store.ErrNotFound }

func (l *lagging) List(ctx context.Context, q store.Query) ([]*storetest.Object, error) {
	if _, err := l.memory.List(ctx, q); err != nil {
		return nil, err
	}
	var objects []*storetest.Object
	for _, o := range l.cached() {
		if q.Index == "" || slices.Contains(storetest.Indexes()[q.Index](o), q.Value) {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func (l *lagging) Watch(ctx context.Context) iter.Seq2[change, error] {
	return func(yield func(change, error) bool) {
		for c, err := range l.memory.Watch(ctx) {
			l.mu.Lock()
			l.catchUp()
			l.mu.Unlock()
			if !yield(c, err) {
				return
			}
		}
	}
}
