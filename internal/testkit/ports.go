package testkit

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var (
	// ErrDead is the answer to a call of a process that was killed.
	ErrDead = errors.New("the process is dead")
	// ErrOutage is the answer of a server that is down.
	ErrOutage = errors.New("the API server does not answer")
)

// Fuse simulates the death of a process. All calls of the process to its ports pass through it. At a
// chosen call the process is killed, and later calls fail with ErrDead.
type Fuse struct {
	Calls     int  // how many calls were made so far
	BlowAt    int  // the number of the call at which the process is killed; zero: never
	BlowAfter bool // it is killed after that call took effect, not before
	Dead      bool // it was killed
	// Before is what others do just before a call, After just after it took effect. Nil: nothing.
	Before, After func(call int)
}

// Do makes a call, unless the process is dead.
func (f *Fuse) Do(call func() error) error {
	if f.Dead {
		return ErrDead
	}
	f.Calls++
	n := f.Calls
	if f.Before != nil {
		f.Before(n)
	}
	if n != f.BlowAt {
		err := call()
		if f.After != nil {
			f.After(n)
		}
		return err
	}
	f.Dead = true
	if f.BlowAfter {
		_ = call()
	}
	return ErrDead
}

// Port is a store as one process sees it: calls pass through its fuse, and cached reads are answered by
// a cache that changes only when it is refreshed.
type Port[T object.Object[T]] struct {
	store.Collection[T]
	Fuse    *Fuse
	Written func()    // called before each write
	Cache   *Cache[T] // nil: cached reads are never stale
	Down    *bool     // true: live reads and writes fail with ErrOutage
	live    bool
}

// call makes a call, unless the process is dead. live says that the call needs the server, which may be
// down.
func (p *Port[T]) call(live bool, do func() error) error {
	return p.Fuse.Do(func() error {
		if live && *p.Down {
			return ErrOutage
		}
		return do()
	})
}

// Get implements store.Reader.
func (p *Port[T]) Get(ctx context.Context, k object.Key) (out T, err error) {
	err = p.call(p.live, func() (err error) {
		if p.Cache != nil {
			out, err = p.Cache.get(k)
			return err
		}
		out, err = p.Collection.Get(ctx, k)
		return err
	})
	return out, err
}

// List implements store.Reader.
func (p *Port[T]) List(ctx context.Context, q store.Query) (out []T, err error) {
	err = p.call(p.live, func() (err error) {
		if p.Cache != nil {
			out = p.Cache.list(q)
			return nil
		}
		out, err = p.Collection.List(ctx, q)
		return err
	})
	return out, err
}

// Live implements store.Collection.
func (p *Port[T]) Live() store.Reader[T] {
	return &Port[T]{Collection: p.Collection, Fuse: p.Fuse, Written: p.Written, Down: p.Down, live: true}
}

// Create implements store.Collection.
func (p *Port[T]) Create(ctx context.Context, in T) (out T, err error) {
	err = p.call(true, func() (err error) { p.Written(); out, err = p.Collection.Create(ctx, in); return err })
	return out, err
}

// Update implements store.Collection.
func (p *Port[T]) Update(ctx context.Context, in T) (out T, err error) {
	err = p.call(true, func() (err error) { p.Written(); out, err = p.Collection.Update(ctx, in); return err })
	return out, err
}

// UpdateStatus implements store.Collection.
func (p *Port[T]) UpdateStatus(ctx context.Context, in T) (out T, err error) {
	err = p.call(true, func() (err error) { p.Written(); out, err = p.Collection.UpdateStatus(ctx, in); return err })
	return out, err
}

// Delete implements store.Collection.
func (p *Port[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	return p.call(true, func() error { p.Written(); return p.Collection.Delete(ctx, k, uid) })
}

// Watch implements store.Collection.
func (p *Port[T]) Watch(ctx context.Context) iter.Seq2[store.Change[T], error] {
	return p.Collection.Watch(ctx)
}

// Cache holds the objects of a store as they were at its last refresh.
type Cache[T object.Object[T]] struct {
	of      store.Collection[T]
	indexes map[store.Index]func(T) []string
	objects []T
}

// NewCache returns an empty cache.
func NewCache[T object.Object[T]](of store.Collection[T], indexes map[store.Index]func(T) []string) *Cache[T] {
	return &Cache[T]{of: of, indexes: indexes}
}

// Refresh brings the cache up to date.
func (c *Cache[T]) Refresh() {
	all, err := c.of.Live().List(context.Background(), store.Query{})
	if err != nil {
		panic(err) // a store in memory answers
	}
	c.objects = all
}

func (c *Cache[T]) get(k object.Key) (T, error) {
	for _, o := range c.objects {
		if o.ObjectMeta().Key == k {
			return o, nil
		}
	}
	var none T
	return none, store.ErrNotFound
}

func (c *Cache[T]) list(q store.Query) []T {
	if q == (store.Query{}) {
		return slices.Clone(c.objects)
	}
	var out []T
	for _, o := range c.objects {
		if slices.Contains(c.indexes[q.Index](o), q.Value) {
			out = append(out, o)
		}
	}
	return out
}
