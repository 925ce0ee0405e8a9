package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/store"
)

var watchRules = []rule{
	{"begins with what exists", watchBegins},
	{"follows each kind of change", watchFollows},
	{"tells two objects of one name apart", watchRecreated},
	{"keeps watches apart", watchApart},
	{"lets a slow consumer delay nobody", watchSlow},
	{"never leaves out the last state", watchLast},
	{"can be called from within", watchWithin},
	{"ends with its context", watchEnds},
	{"ends with its consumer", watchStops},
	{"begins again when ranged over again", watchAgain},
	{"is enough to wait for a state, and for an end", watchAwaited},
}

func watchBegins(r *trial) {
	a := r.changeStatus(r.create(sample("a")), func(s *Status) { *s = sampleStatus() })
	o := sample("b")
	o.Finalizers = []string{holdOne}
	r.create(o)
	r.remove("b")
	b := r.live("b")
	r.create(sample("c"))
	r.remove("c")
	v := r.watch()
	v.shows(a)
	v.shows(b)
	v.lacks(key("c"))
	require.Equal(r, canonical(a), canonical(v.objects[a.Key]))
	require.Equal(r, canonical(b), canonical(v.objects[b.Key]))
}

func watchFollows(r *trial) {
	v := r.watch()
	o := sample("a")
	o.Finalizers = []string{holdOne, holdTwo}
	o = r.create(o)
	taken := v.shows(o)
	require.Nil(r, taken[0].Old)
	follow := func(o *Object) *Object {
		r.Helper()
		require.NotEmpty(r, v.shows(o), "the watch did not show the change")
		require.Equal(r, canonical(o), canonical(v.objects[o.Key]))
		return o
	}
	o = follow(r.changeStatus(o, func(s *Status) { *s = sampleStatus() }))
	follow(r.change(o, func(o *Object) { o.Spec.Replicas++ }))
	r.remove("a")
	o = follow(r.live("a"))
	o = follow(r.change(o, func(o *Object) { o.RemoveFinalizer(holdOne) }))
	r.change(o, func(o *Object) { o.RemoveFinalizer(holdTwo) })
	taken = v.lacks(o.Key)
	last := taken[len(taken)-1]
	require.Nil(r, last.New)
	require.Equal(r, canonical(o), canonical(last.Old))

	b := follow(r.create(sample("b")))
	r.remove("b")
	v.lacks(b.Key)
}

// watchRecreated: the watch must deliver the end of an object before another object of its name.
// view checks that with each change.
func watchRecreated(r *trial) {
	v := r.watch()
	first := r.create(sample("a"))
	v.shows(first)
	r.remove("a")
	second := r.create(sample("a"))
	taken := v.shows(second)
	require.GreaterOrEqual(r, len(taken), 2)

	// The object is replaced several times between two deliveries, and the last one is updated.
	for range 3 {
		r.remove("a")
		r.create(sample("a"))
	}
	third := r.changeStatus(r.live("a"), func(s *Status) { s.Ready = 3 })
	v.shows(third)

	// The object has a finalizer, and is gone when that is removed.
	fourth := r.change(third, func(o *Object) { o.Finalizers = []string{holdOne} })
	v.shows(fourth)
	r.remove("a")
	r.change(r.live("a"), func(o *Object) { o.Finalizers = nil })
	fifth := r.create(sample("a"))
	v.shows(fifth)

	// In the end there is no object of that name.
	r.remove("a")
	r.create(sample("a"))
	r.remove("a")
	last := r.create(sample("b"))
	v.until("b alone to be left", func() bool { return v.objects.equals([]*Object{last}) })
}

func watchApart(r *trial) {
	early := r.watch()
	first := r.create(sample("a"))
	early.shows(first)
	second := r.change(first, func(o *Object) { o.Spec.Replicas++ })
	late := r.watch()
	taken := late.shows(second)
	require.Nil(r, taken[0].Old, "this watch has not seen the object before")
	taken = early.shows(second)
	require.Equal(r, canonical(first), canonical(taken[0].Old))

	// One ends, the other goes on.
	late.end()
	third := r.change(second, func(o *Object) { o.Spec.Replicas++ })
	early.shows(third)
	r.remove("a")
	early.lacks(third.Key)
}

func watchSlow(r *trial) {
	slow, fast := r.watch(), r.watch()
	o := r.create(sample("a"))
	slow.shows(o)
	fast.shows(o)
	r.within("writing while a consumer is slow", func() (err error) {
		o, err = r.churn(o)
		return err
	})
	fast.shows(o)
	slow.shows(o)
	r.converges(fast)
	r.converges(slow)
}

// churn updates o many times, and creates and deletes as many other objects. It returns the last
// state of o.
func (r *trial) churn(o *Object) (*Object, error) {
	for i := range r.times(500) {
		c := o.Clone()
		c.Spec.Replicas = int64(i)
		var err error
		if o, err = r.store.Update(r.ctx, c); err != nil {
			return nil, err
		}
		name := fmt.Sprintf("b%d", i)
		if _, err = r.store.Create(r.ctx, sample(name)); err != nil {
			return nil, err
		}
		if err = r.store.Delete(r.ctx, key(name), ""); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// converges takes changes until the view shows what is stored.
func (r *trial) converges(v *view) {
	r.Helper()
	objects, err := r.store.Live().List(r.ctx, store.Query{})
	require.NoError(r, err)
	v.until("all that is stored", func() bool { return v.objects.equals(objects) })
}

func watchLast(r *trial) {
	v := r.watch()
	for round := range r.times(30) {
		for _, name := range []string{"a", "b", "c", "d"} {
			o := r.create(sample(name))
			for range round % 4 {
				o = r.change(o, func(o *Object) { o.Spec.Replicas++ })
			}
		}
		r.remove("b")
		if round%3 == 0 {
			v.step("anything") // leave the rest for later
		}
		r.changeStatus(r.live("a"), func(s *Status) { s.Ready++ })
		r.remove("c")
		if round%5 == 0 {
			r.converges(v)
		}
		r.remove("a")
		r.remove("d")
	}
	r.converges(v)
	require.Empty(r, v.objects)
}

func watchWithin(r *trial) {
	r.create(sample("a"))
	r.within("writing from within a watch", func() error {
		for change, err := range r.store.Watch(r.ctx) {
			if err != nil {
				return err
			}
			if change.New == nil {
				return errors.New("the object is gone")
			}
			if change.New.Spec.Replicas == 10 {
				return nil
			}
			o, err := r.store.Live().Get(r.ctx, change.New.Key)
			if err == nil && o.Spec.Replicas < 10 {
				c := o.Clone()
				c.Spec.Replicas++
				_, err = r.store.Update(r.ctx, c)
			}
			if err != nil {
				return err
			}
		}
		return errors.New("the watch ended")
	})
}

func watchEnds(r *trial) {
	o := r.create(sample("a"))
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	var once sync.Once
	reached := make(chan struct{})
	wait := r.follow(ctx, func(c store.Change[*Object]) error {
		if c.New != nil && c.New.Version == o.Version {
			once.Do(func() { close(reached) })
		}
		return nil
	})
	r.within("the watch to begin", func() error { <-reached; return nil })
	cancel()
	r.within("the watch to end while it waits", wait)

	// The same while more changes are to be delivered.
	for _, name := range []string{"b", "c", "d"} {
		r.create(sample(name))
	}
	ctx, cancel = context.WithCancel(r.ctx)
	count := 0
	wait = r.follow(ctx, func(store.Change[*Object]) error {
		count++
		cancel()
		return nil
	})
	r.within("the watch to end while it delivers", wait)
	require.Equal(r, 1, count)
}

func watchStops(r *trial) {
	for _, name := range []string{"a", "b", "c"} {
		r.create(sample(name))
	}
	count := 0
	r.within("the watch to end", r.follow(r.ctx, func(store.Change[*Object]) error {
		if count++; count == 2 {
			return errStop
		}
		return nil
	}))
	require.Equal(r, 2, count)
	// The end of a consumer affects no other.
	r.change(r.live("a"), func(o *Object) { o.Spec.Replicas++ })
	r.remove("b")
	v := r.watch()
	r.converges(v)
}

func watchAgain(r *trial) {
	r.create(sample("a"))
	b := r.create(sample("b"))
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	changes := r.store.Watch(ctx)
	r.create(sample("c")) // before the first range
	r.within("the first range", func() error { return reaches(changes, 3) })
	require.NoError(r, r.store.Delete(r.ctx, b.Key, b.UID))
	r.eventually("the cache to forget the object", func() bool {
		_, err := r.store.Get(r.ctx, b.Key)
		return err != nil
	})
	r.within("the second range", func() error { return reaches(changes, 2) })
}

// watchAwaited waits with store.Await and store.AwaitGone.
func watchAwaited(r *trial) {
	ctx, cancel := context.WithTimeout(r.ctx, r.suite.Patience)
	defer cancel()
	lacking := func(o *Object) string {
		if o.Spec.Replicas < 100 {
			return "replicas"
		}
		return ""
	}
	_, err := store.Await(ctx, r.store, key("a"), lacking)
	require.ErrorIs(r, err, store.ErrNotFound)
	o := sample("a")
	o.Finalizers = []string{holdOne}
	r.create(o)
	o, err = store.Edit(ctx, r.store, o.Key, func(o *Object) error {
		o.Spec.Replicas = 100
		return nil
	})
	require.NoError(r, err)
	seen, err := store.Await(ctx, r.store, o.Key, lacking)
	require.NoError(r, err)
	require.Equal(r, canonical(o), canonical(seen))
	r.remove("a")
	r.within("the object to go", func() error {
		ended := make(chan error, 1)
		go func() { ended <- store.AwaitGone(ctx, r.store, o.Key) }()
		_, err := store.Edit(ctx, r.store, o.Key, func(o *Object) error {
			o.Finalizers = nil
			return nil
		})
		return errors.Join(err, <-ended)
	})
	require.NoError(r, store.AwaitGone(ctx, r.store, o.Key))
}

// reaches ranges over changes until they leave that many objects.
func reaches(changes iter.Seq2[store.Change[*Object], error], objects int) error {
	seen := ledger{}
	for change, err := range changes {
		if err == nil {
			err = seen.enter(change)
		}
		if err != nil || len(seen) == objects {
			return err
		}
	}
	return errors.New("the watch ended")
}
