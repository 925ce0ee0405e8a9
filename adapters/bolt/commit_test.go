package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

func thing(name string) *storetest.Object {
	return &storetest.Object{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}, Owner: &object.Owner{UID: "owner-1"}},
		Spec: storetest.Spec{Zones: []string{"north"}},
	}
}

// paused is a store whose commits wait until the test releases them, one at a time.
type paused struct {
	db      *bolt.DB
	things  *objects
	arrived chan struct{} // a commit waits
	goOn    chan struct{} // releases it
	commits int           // read only while no commit runs
}

func newPaused(t *testing.T) *paused {
	h := &paused{db: open(t, newPath(t)), arrived: make(chan struct{}), goOn: make(chan struct{})}
	h.things = kind(t, h.db)
	h.db.InterceptCommits(func(do func() error) error {
		h.arrived <- struct{}{}
		<-h.goOn
		h.commits++
		return do()
	})
	return h
}

// start calls do in a goroutine. wait waits for its result.
func start(do func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return func() error {
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Second):
			return errors.New("no result within 10 s")
		}
	}
}

func (p *paused) create(ctx context.Context, name string) (wait func() error) {
	return start(func() error { _, err := p.things.Create(ctx, thing(name)); return err })
}

// TestSeenOnceDurable: no reader sees a write before it is on the disk. When it is, every reader sees it.
func TestSeenOnceDurable(t *testing.T) {
	h := newPaused(t)
	ctx, cancel := context.WithCancel(noContext)
	defer cancel()
	yielded := make(chan struct{})
	go func() {
		for range h.things.Watch(ctx) {
			close(yielded)
			return
		}
	}()
	wait := h.create(noContext, "a")
	<-h.arrived
	_, err := h.things.Live().Get(noContext, thing("a").Key)
	require.ErrorIs(t, err, store.ErrNotFound)
	select {
	case <-yielded:
		t.Fatal("the watch has yielded an uncommitted write")
	default:
	}
	h.goOn <- struct{}{}
	require.NoError(t, wait())
	_, err = h.things.Live().Get(noContext, thing("a").Key)
	require.NoError(t, err)
	<-yielded
}

// TestWritesShareCommits: writes made while a commit waits for the disk share the next commit. If some of
// them fail, the others still succeed.
func TestWritesShareCommits(t *testing.T) {
	h := newPaused(t)
	first := h.create(noContext, "first")
	<-h.arrived
	var waits []func() error
	for i := range 20 {
		waits = append(waits, h.create(noContext, fmt.Sprint("a", i/2))) // each name twice
	}
	require.Eventually(t, func() bool { return h.db.Queued() == 20 }, 10*time.Second, time.Millisecond)
	h.goOn <- struct{}{}
	require.NoError(t, first())
	<-h.arrived
	h.goOn <- struct{}{}
	refused := 0
	for _, wait := range waits {
		if err := wait(); err != nil {
			require.ErrorIs(t, err, store.ErrAlreadyExists)
			refused++
		}
	}
	require.Equal(t, 10, refused)
	require.Equal(t, 2, h.commits)
	listed, err := h.things.Live().List(noContext, store.Query{Index: storetest.ByOwner, Value: "owner-1"})
	require.NoError(t, err)
	require.Len(t, listed, 11)
}

// TestGivingUp: if ctx ends before the commit has begun, nothing is written.
func TestGivingUp(t *testing.T) {
	h := newPaused(t)
	first := h.create(noContext, "first")
	<-h.arrived
	ctx, cancel := context.WithCancel(noContext)
	second := h.create(ctx, "second")
	require.Eventually(t, func() bool { return h.db.Queued() == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, second(), context.Canceled)
	h.goOn <- struct{}{}
	require.NoError(t, first())
	third := h.create(noContext, "third")
	for range 2 { // perhaps there is a commit for the second, which writes nothing
		select {
		case <-h.arrived:
			h.goOn <- struct{}{}
		case <-time.After(50 * time.Millisecond):
		}
	}
	require.NoError(t, third())
	_, err := h.things.Live().Get(noContext, thing("second").Key)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// TestTooLateToGiveUp: if ctx ends after the commit has begun, the caller gets the result of the commit.
// The test is repeated, because the scheduler decides which of the two the caller sees first.
func TestTooLateToGiveUp(t *testing.T) {
	db := open(t, newPath(t))
	things := kind(t, db)
	arrived, goOn, errFull := make(chan struct{}), make(chan struct{}), errors.New("no space left")
	db.InterceptCommits(func(func() error) error {
		arrived <- struct{}{}
		<-goOn
		return errFull
	})
	for range 20 {
		ctx, cancel := context.WithCancel(noContext)
		wait := start(func() error { _, err := things.Create(ctx, thing("a")); return err })
		<-arrived
		cancel()
		for range 100 { // time for a caller that does not wait to return
			runtime.Gosched()
		}
		goOn <- struct{}{}
		require.ErrorIs(t, wait(), errFull)
	}
}

// TestFailedCommit: if a commit fails without effect, its writers get the error, and nothing has changed.
// Later writes work. They don't use the versions that the failed writes were assigned.
func TestFailedCommit(t *testing.T) {
	path := newPath(t)
	db := open(t, path)
	things := kind(t, db)
	a, err := things.Create(noContext, thing("a"))
	require.NoError(t, err)
	failing := true
	errFull := errors.New("no space left")
	db.InterceptCommits(func(do func() error) error {
		if failing {
			return errFull
		}
		return do()
	})
	edited := a.Clone()
	edited.Spec.Zones = []string{"south"}
	_, err = things.Update(noContext, edited)
	require.ErrorIs(t, err, errFull)
	require.NotErrorIs(t, err, bolt.ErrUncertain)
	require.ErrorIs(t, things.Delete(noContext, a.Key, ""), errFull)
	got, err := things.Live().Get(noContext, a.Key)
	require.NoError(t, err)
	require.Same(t, a, got)

	failing = false
	got, err = things.Update(noContext, edited)
	require.NoError(t, err)
	require.NotEqual(t, a.Version, got.Version)
}

// TestFullFile: if the file can't grow, writes fail and existing objects stay. Once objects are deleted,
// writes work again.
func TestFullFile(t *testing.T) {
	path := newPath(t)
	db, err := bolt.OpenRaw(path, bolt.Options{Now: now}, bbolt.Options{MaxSize: 1 << 20})
	require.NoError(t, err)
	things := kind(t, db)
	written := 0
	for {
		o := thing(fmt.Sprint("a", written))
		o.Spec.Class = string(make([]byte, 10_000))
		if _, err = things.Create(noContext, o); err != nil {
			break
		}
		written++
	}
	require.NotErrorIs(t, err, bolt.ErrUncertain)
	listed, err := things.Live().List(noContext, store.Query{})
	require.NoError(t, err)
	require.Len(t, listed, written)
	for _, o := range listed[:5] {
		require.NoError(t, things.Delete(noContext, o.Key, ""))
	}
	_, err = things.Create(noContext, thing("small"))
	require.NoError(t, err)
	require.NoError(t, db.Close())
	listed, err = kind(t, open(t, path)).List(noContext, store.Query{})
	require.NoError(t, err)
	require.Len(t, listed, written-4)
}

// TestUncertainCommit: if it is not known whether a commit has taken effect, writes and live reads fail
// until the file is opened again.
func TestUncertainCommit(t *testing.T) {
	for name, c := range map[string]struct {
		commit func(do func() error) error
		stored int // afterwards
	}{
		"error":        {func(do func() error) error { return errors.Join(do(), errors.New("fsync")) }, 2},
		"panic":        {func(do func() error) error { _ = do(); panic("bad page") }, 2},
		"panic before": {func(func() error) error { panic("bad page") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			db := open(t, path)
			things := kind(t, db)
			a, err := things.Create(noContext, thing("a"))
			require.NoError(t, err)
			db.InterceptCommits(c.commit)
			_, err = things.Create(noContext, thing("b"))
			require.ErrorIs(t, err, bolt.ErrUncertain)
			_, err = things.Create(noContext, thing("c"))
			require.ErrorIs(t, err, bolt.ErrUncertain)
			_, err = things.Live().Get(noContext, a.Key)
			require.ErrorIs(t, err, bolt.ErrUncertain)
			_, err = things.Live().List(noContext, store.Query{})
			require.ErrorIs(t, err, bolt.ErrUncertain)
			_, err = things.Get(noContext, a.Key)
			require.NoError(t, err, "reads from the cache must still work")
			require.NoError(t, db.Close())

			listed, err := kind(t, open(t, path)).Live().List(noContext, store.Query{})
			require.NoError(t, err)
			require.Len(t, listed, c.stored)
		})
	}
}

// TestClose: if the DB is closed while others write, exactly the acknowledged writes are in the file.
func TestClose(t *testing.T) {
	path := newPath(t)
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	require.True(t, db.Syncs())
	things := kind(t, db)
	ended := make(chan error, 1)
	go func() {
		for _, err := range things.Watch(noContext) {
			if err != nil {
				ended <- err
			}
		}
		close(ended)
	}()
	var all sync.WaitGroup
	var mu sync.Mutex
	want := map[string]bool{}
	for w := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprint("a", w, "-", i)
				_, err := things.Create(noContext, thing(name))
				if err != nil {
					if !errors.Is(err, bolt.ErrClosed) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				want[name] = true
				mu.Unlock()
			}
		})
	}
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(want) > 50 }, 10*time.Second, time.Millisecond)
	require.NoError(t, db.Close())
	all.Wait()
	require.ErrorIs(t, <-ended, bolt.ErrClosed)
	require.NoError(t, db.Close(), "a second time")
	_, err = things.Get(noContext, thing("a0-0").Key)
	require.ErrorIs(t, err, bolt.ErrClosed)
	_, err = things.Live().List(noContext, store.Query{})
	require.ErrorIs(t, err, bolt.ErrClosed)
	_, err = db.Backup(nil)
	require.ErrorIs(t, err, bolt.ErrClosed)

	listed, err := kind(t, open(t, path)).List(noContext, store.Query{})
	require.NoError(t, err)
	got := map[string]bool{}
	for _, o := range listed {
		got[o.Name] = true
	}
	require.Equal(t, want, got)
}

// TestCloseWaits: Close waits for the running commit and for queued writes.
func TestCloseWaits(t *testing.T) {
	h := newPaused(t)
	first := h.create(noContext, "first")
	<-h.arrived
	second := h.create(noContext, "second")
	require.Eventually(t, func() bool { return h.db.Queued() == 1 }, 10*time.Second, time.Millisecond)
	closed := start(h.db.Close)
	require.Eventually(t, h.db.Closing, 10*time.Second, time.Millisecond)
	_, err := h.things.Create(noContext, thing("late"))
	require.ErrorIs(t, err, bolt.ErrClosed)
	h.goOn <- struct{}{}
	<-h.arrived
	h.goOn <- struct{}{}
	require.NoError(t, first())
	require.NoError(t, second())
	require.NoError(t, closed())
}
