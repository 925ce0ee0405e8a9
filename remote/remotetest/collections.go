package remotetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// Collections returns a suite for the collections of an engine, with New, Peer and Terms set. newDatabase is Suite.New.
func Collections(newDatabase func(t *testing.T) (open func() remote.Engine)) storetest.Suite {
	open := func(t *testing.T, engine remote.Engine, now func() time.Time) (*remote.DB, *remote.Collection[*storetest.Object]) {
		t.Helper()
		db, c, err := remote.OpenKind(t.Context(), engine, remote.Options{Now: now}, "object", storetest.Indexes())
		require.NoError(t, err)
		t.Cleanup(db.Close)
		return db, c
	}
	return storetest.Suite{
		New: func(t *testing.T, now func() time.Time) store.Collection[*storetest.Object] {
			_, c := open(t, newDatabase(t)(), now)
			return c
		},
		Peer: func(t *testing.T, now func() time.Time) (a, b store.Collection[*storetest.Object]) {
			another := newDatabase(t)
			_, first := open(t, another(), now)
			_, second := open(t, another(), now)
			return first, second
		},
		Terms: func(t *testing.T, now func() time.Time) (store.Collection[*storetest.Object], func() store.Collection[*storetest.Object]) {
			another := newDatabase(t)
			engine := another()
			db, c := open(t, engine, now)
			term := begin(t, db, "old")
			return c.Under(term), func() store.Collection[*storetest.Object] {
				require.NoError(t, engine.Lease().Release(t.Context(), term.Token()))
				next, c := open(t, another(), now)
				return c.Under(begin(t, next, "next"))
			}
		},
	}
}

// begin waits for a term of a DB, which lasts until the test ends, or it is lost.
func begin(t *testing.T, db *remote.DB, id string) *lead.Held {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	terms, ended := make(chan *lead.Held, 1), make(chan error, 1)
	go func() {
		ended <- db.Lead(ctx, lead.Options{ID: id}, func(term *lead.Held) error {
			terms <- term
			<-term.Context().Done()
			cancel() // it is no candidate any more
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	select {
	case term := <-terms:
		return term
	case <-time.After(time.Minute):
		require.FailNow(t, "no term")
		return nil
	}
}
