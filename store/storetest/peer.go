package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/store"
)

// peers are two processes with one store. The trial is that of the first.
type peers struct {
	*trial
	peer *trial
}

func newPeers(t *testing.T, s Suite) *peers {
	c := newClock()
	a, b := s.Peer(t, c.now)
	return &peers{
		&trial{T: t, suite: s, store: a, clock: c, ctx: t.Context()}, &trial{T: t, suite: s, store: b, clock: c, ctx: t.Context()},
	}
}

var peerRules = []struct {
	name  string
	check func(*peers)
}{
	{"what one stores is stored for the other", peerReads},
	{"a version that the other has replaced is a conflict", peerConflicts},
	{"watches show what the other does", peerWatch},
	{"a name that the other has used again is another object", peerUsesNameAgain},
	{"a live list shows what the other's writes have stored", peerLiveLists},
	{"both change one object and no change is lost", peerCounts},
}

func peerReads(p *peers) {
	made := p.create(sample("a"))
	p.peer.stored(made)
	_, err := p.peer.store.Create(p.ctx, sample("a"))
	p.peer.refused(store.ErrAlreadyExists, err, "a")
	p.peer.remove("a")
	p.absent("a")
	p.create(sample("a"))
}

func peerConflicts(p *peers) {
	made := p.create(sample("a"))
	theirs := p.peer.changeStatus(p.peer.live("a"), func(s *Status) { s.Ready = 7 })
	_, err := p.store.Update(p.ctx, made.Clone())
	p.refused(store.ErrConflict, err, "a")
	_, err = p.store.UpdateStatus(p.ctx, made.Clone())
	p.refused(store.ErrConflict, err, "a")
	p.stored(theirs)
	ours := p.change(theirs, func(o *Object) { o.Spec.Class = "small" })
	p.peer.stored(ours)
	require.EqualValues(p, 7, ours.Status.Ready)
	p.peer.remove("a")
	_, err = p.store.Update(p.ctx, ours.Clone())
	p.refused(store.ErrNotFound, err, "a")
	p.refused(store.ErrNotFound, p.store.Delete(p.ctx, key("a"), ""), "a")
}

func peerWatch(p *peers) {
	p.create(sample("before"))
	v := p.peer.watch()
	v.shows(p.live("before"))
	made := p.create(sample("a"))
	v.shows(made)
	changed := p.change(made, func(o *Object) { o.Spec.Replicas++ })
	v.shows(changed)
	got, err := p.peer.store.Get(p.ctx, key("a"))
	require.NoError(p, err)
	require.Equal(p, changed.Version, got.Version, "a cached read after the watch")
	p.remove("a")
	v.lacks(key("a"))
}

func peerUsesNameAgain(p *peers) {
	first := p.create(sample("a"))
	v := p.watch()
	v.shows(first)
	p.peer.remove("a")
	second := p.peer.create(sample("a"))
	require.NotEqual(p, first.UID, second.UID)
	v.shows(second)
	p.refused(store.ErrConflict, p.store.Delete(p.ctx, key("a"), first.UID), "a")
	_, err := p.store.Update(p.ctx, first.Clone())
	p.refused(store.ErrConflict, err, "a")
	p.peer.stored(second)
}

func peerLiveLists(p *peers) {
	busy, stop := context.WithCancel(p.ctx)
	var all sync.WaitGroup
	other := p.create(sample("busy"))
	all.Go(func() { // others write all the while
		for o := other; busy.Err() == nil; {
			next := o.Clone()
			next.Status.Ready++
			if next, err := p.store.UpdateStatus(busy, next); err == nil {
				o = next
			}
		}
	})
	defer all.Wait()
	defer stop()
	for i := range p.times(50) {
		name := fmt.Sprint("n", i)
		made := p.create(sample(name))
		listed, err := p.peer.store.Live().List(p.ctx, store.Query{})
		require.NoError(p, err)
		found := false
		for _, o := range listed {
			found = found || o.UID == made.UID
		}
		require.True(p, found, name)
		if i%2 == 0 {
			p.remove(name)
			listed, err := p.peer.store.Live().List(p.ctx, store.Query{})
			require.NoError(p, err)
			for _, o := range listed {
				require.NotEqual(p, made.UID, o.UID)
			}
		}
	}
}

func peerCounts(p *peers) {
	p.create(sample("counter"))
	var all sync.WaitGroup
	each := p.times(40)
	for _, t := range []*trial{p.trial, p.peer} {
		for range 4 {
			all.Go(func() {
				for done := 0; done < each; {
					_, err := store.EditStatus(p.ctx, t.store, key("counter"), func(o *Object) error {
						o.Status.Ready++
						return nil
					})
					switch {
					case err == nil:
						done++
					case !errors.Is(err, store.ErrConflict):
						p.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	require.EqualValues(p, 8*each, p.live("counter").Status.Ready)
}

// checkTerms: nothing of an old term is stored after the next one has begun, and its writes say so.
func checkTerms(t *testing.T, s Suite) {
	c := newClock()
	old, takeOver := s.Terms(t, c.now)
	r := &trial{T: t, suite: s, store: old, clock: c, ctx: t.Context()}
	made := r.create(sample("a"))
	const writers = 8
	for w := range writers {
		r.create(sample(fmt.Sprint("w", w)))
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for {
				_, err := store.EditStatus(r.ctx, r.store, key(fmt.Sprint("w", w)), func(o *Object) error {
					o.Status.Node = "old"
					o.Status.Ready++
					return nil
				})
				if err != nil {
					if !errors.Is(err, store.ErrFenced) {
						r.Error(err)
					}
					return
				}
			}
		})
	}
	next := &trial{T: t, suite: s, store: takeOver(), clock: c, ctx: t.Context()}
	for w := range writers {
		next.changeStatus(next.live(fmt.Sprint("w", w)), func(s *Status) { s.Node = "next" })
	}
	all.Wait()
	for w := range writers {
		require.Equal(r, "next", r.live(fmt.Sprint("w", w)).Status.Node)
	}
	_, err := r.store.Create(r.ctx, sample("new"))
	r.refused(store.ErrFenced, err, "new")
	changed := made.Clone()
	changed.Spec.Replicas++
	_, err = r.store.Update(r.ctx, changed)
	r.refused(store.ErrFenced, err, "a")
	_, err = r.store.UpdateStatus(r.ctx, changed)
	r.refused(store.ErrFenced, err, "a")
	r.refused(store.ErrFenced, r.store.Delete(r.ctx, key("a"), ""), "a")
	r.stored(made)
	r.absent("new")
}
