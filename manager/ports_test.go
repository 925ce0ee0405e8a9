package manager_test

import (
	"context"
	"errors"
	"iter"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var (
	errDead   = errors.New("the process is dead")
	errOutage = errors.New("the API server does not answer")
)

// fuse is the life of one process: every call to a port passes through it, and
// from a chosen one on nothing gets through any more. The call at which it
// blows takes effect or not, by choice.
type fuse struct {
	calls  int
	blowAt int // zero: never
	after  bool
	dead   bool
	// meanwhile is what others do just before a call, afterwards just after it took
	// effect; nil: nothing.
	meanwhile, afterwards func(call int)
}

func (f *fuse) pass(call func() error) error {
	if f.dead {
		return errDead
	}
	f.calls++
	if f.meanwhile != nil {
		f.meanwhile(f.calls)
	}
	if f.calls != f.blowAt {
		n := f.calls
		err := call()
		if f.afterwards != nil {
			f.afterwards(n)
		}
		return err
	}
	f.dead = true
	if f.after {
		_ = call()
	}
	return errDead
}

// port is a store as one process sees it: through its fuse, and with cached
// reads from a snapshot that is only as new as the last look.
type port[T object.Object[T]] struct {
	store.Collection[T]
	fuse   *fuse
	writes func()       // counts one
	seen   *snapshot[T] // nil: the cache is never stale
	down   *bool        // the server does not answer: live reads and writes fail
	live   bool
}

// call makes a call to the server, or, when not live, to the cache.
func (p *port[T]) call(live bool, do func() error) error {
	return p.fuse.pass(func() error {
		if live && *p.down {
			return errOutage
		}
		return do()
	})
}

func (p *port[T]) Get(ctx context.Context, k object.Key) (out T, err error) {
	err = p.call(p.live, func() (err error) {
		if p.seen != nil {
			out, err = p.seen.get(k)
			return err
		}
		out, err = p.Collection.Get(ctx, k)
		return err
	})
	return out, err
}

func (p *port[T]) List(ctx context.Context, q store.Query) (out []T, err error) {
	err = p.call(p.live, func() (err error) {
		if p.seen != nil {
			out = p.seen.list(q)
			return nil
		}
		out, err = p.Collection.List(ctx, q)
		return err
	})
	return out, err
}

func (p *port[T]) Live() store.Reader[T] {
	return &port[T]{Collection: p.Collection, fuse: p.fuse, writes: p.writes, down: p.down, live: true}
}

func (p *port[T]) Create(ctx context.Context, in T) (out T, err error) {
	err = p.call(true, func() (err error) { p.writes(); out, err = p.Collection.Create(ctx, in); return err })
	return out, err
}

func (p *port[T]) Update(ctx context.Context, in T) (out T, err error) {
	err = p.call(true, func() (err error) { p.writes(); out, err = p.Collection.Update(ctx, in); return err })
	return out, err
}

func (p *port[T]) UpdateStatus(ctx context.Context, in T) (out T, err error) {
	err = p.call(true, func() (err error) { p.writes(); out, err = p.Collection.UpdateStatus(ctx, in); return err })
	return out, err
}

func (p *port[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	return p.call(true, func() error { p.writes(); return p.Collection.Delete(ctx, k, uid) })
}

func (p *port[T]) Watch(ctx context.Context) iter.Seq2[store.Change[T], error] {
	return p.Collection.Watch(ctx)
}

// snapshot is what a cache last saw of a store.
type snapshot[T object.Object[T]] struct {
	of      store.Collection[T]
	indexes map[store.Index]func(T) []string
	objects []T
}

func (s *snapshot[T]) look() {
	all, err := s.of.Live().List(context.Background(), store.Query{})
	if err != nil {
		panic(err) // a store in memory answers
	}
	s.objects = all
}

func (s *snapshot[T]) get(k object.Key) (T, error) {
	for _, o := range s.objects {
		if o.ObjectMeta().Key == k {
			return o, nil
		}
	}
	var none T
	return none, store.ErrNotFound
}

func (s *snapshot[T]) list(q store.Query) []T {
	if q == (store.Query{}) {
		return append([]T(nil), s.objects...)
	}
	var out []T
	for _, o := range s.objects {
		for _, value := range s.indexes[q.Index](o) {
			if value == q.Value {
				out = append(out, o)
				break
			}
		}
	}
	return out
}
