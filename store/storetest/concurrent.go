package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/store"
)

var concurrentRules = []rule{
	{"loses no update", concurrentIncrements},
	{"lets one creator win", concurrentCreates},
	{"ends an object once", concurrentEnds},
	{"brings every watch to the last state", concurrentWatches},
}

// concurrently runs do in n goroutines, waits for all of them, and requires that none fails.
func (r *trial) concurrently(n int, do func(i int) error) {
	r.Helper()
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	r.within("concurrent calls", func() error {
		all.Wait()
		return errors.Join(errs...)
	})
}

func concurrentIncrements(r *trial) {
	writers, times := 8, r.times(25)
	o := sample("a")
	o.Spec.Replicas = 0
	o = r.create(o)
	increment := func(update func(context.Context, *Object) (*Object, error), edit func(*Object)) error {
		for {
			o, err := r.store.Live().Get(r.ctx, o.Key)
			if err != nil {
				return err
			}
			c := o.Clone()
			edit(c)
			if _, err = update(r.ctx, c); !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
	}
	r.concurrently(2*writers, func(i int) (err error) {
		for n := 0; n < times && err == nil; n++ {
			if i < writers {
				err = increment(r.store.Update, func(o *Object) { o.Spec.Replicas++ })
			} else {
				err = increment(r.store.UpdateStatus, func(o *Object) { o.Status.Ready++ })
			}
		}
		return err
	})
	got := r.live("a")
	require.EqualValues(r, writers*times, got.Spec.Replicas)
	require.EqualValues(r, writers*times, got.Status.Ready)
	require.EqualValues(r, writers*times+1, got.Generation)
}

func concurrentCreates(r *trial) {
	for round := range 10 {
		name := fmt.Sprintf("a%d", round)
		var won atomic.Pointer[Object]
		var wins atomic.Int64
		r.concurrently(6, func(i int) error {
			o := sample(name)
			o.Spec.Replicas = int64(i)
			got, err := r.store.Create(r.ctx, o)
			if err == nil {
				wins.Add(1)
				won.Store(got)
			}
			return except(err, store.ErrAlreadyExists)
		})
		require.EqualValues(r, 1, wins.Load())
		r.stored(won.Load())
	}
}

func concurrentEnds(r *trial) {
	for round := range r.times(30) {
		name := fmt.Sprintf("a%d", round)
		o := sample(name)
		o.Finalizers = []string{holdOne}
		r.create(o)
		r.concurrently(4, func(int) error { return r.store.Delete(r.ctx, key(name), "") })
		deleting := r.live(name)
		require.EqualValues(r, 2, deleting.Generation, "a repeated deletion changed something")
		var ends atomic.Int64
		r.concurrently(4, func(int) error {
			c := deleting.Clone()
			c.Finalizers = nil
			_, err := r.store.Update(r.ctx, c)
			if err == nil {
				ends.Add(1)
			}
			return except(err, store.ErrNotFound, store.ErrConflict)
		})
		if !r.suite.EndsTogether { // else several such updates may succeed
			require.EqualValues(r, 1, ends.Load())
		}
		require.Positive(r, ends.Load())
		r.absent(name)
	}
}

// except returns err unless it is one of those expected.
func except(err error, expected ...error) error {
	for _, e := range expected {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

// follower is a watch that is read as fast as it can be.
type follower struct {
	mu   sync.Mutex
	seen ledger
}

func (r *trial) newFollower(ctx context.Context) *follower {
	f := &follower{seen: ledger{}}
	wait := r.follow(ctx, func(c store.Change[*Object]) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.seen.enter(c)
	})
	r.Cleanup(func() { r.within("the watch to end", wait) })
	return f
}

func (f *follower) equals(objects []*Object) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen.equals(objects)
}

func concurrentWatches(r *trial) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	followers := []*follower{r.newFollower(ctx), r.newFollower(ctx), r.newFollower(ctx)}
	slow := r.watch()
	slow.shows(r.create(sample("first")))
	r.concurrently(4, func(i int) (err error) {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		for n := 0; n < r.times(200) && err == nil; n++ {
			err = r.disturb(random)
		}
		return err
	})
	objects, err := r.store.Live().List(r.ctx, store.Query{})
	require.NoError(r, err)
	for i, f := range followers {
		r.eventually(fmt.Sprintf("watch %d to show what is stored", i), func() bool { return f.equals(objects) })
	}
	r.converges(slow)
}

// disturb makes one random write to one of a few objects. It expects that others do the same.
func (r *trial) disturb(random *rand.Rand) error {
	name := fmt.Sprintf("a%d", random.IntN(6))
	o, err := r.store.Live().Get(r.ctx, key(name))
	switch {
	case errors.Is(err, store.ErrNotFound):
		o = sample(name)
		if random.IntN(2) == 0 {
			o.Finalizers = []string{holdOne}
		}
		_, err = r.store.Create(r.ctx, o)
	case err != nil:
	case random.IntN(3) == 0:
		err = r.store.Delete(r.ctx, o.Key, o.UID)
	case random.IntN(3) == 0:
		c := o.Clone()
		c.Status.Ready++
		_, err = r.store.UpdateStatus(r.ctx, c)
	default:
		c := o.Clone()
		c.Spec.Replicas++
		c.Finalizers = nil
		_, err = r.store.Update(r.ctx, c)
	}
	return except(err, store.ErrNotFound, store.ErrConflict, store.ErrAlreadyExists)
}
