package bolt_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

var noContext = context.Background()

type objects = bolt.Collection[*storetest.Object]

// now is the time of all tests without a clock of their own.
func now() time.Time { return time.Date(2031, 5, 7, 11, 13, 17, 500, time.UTC) }

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "fleet.db") }

// open opens the file until the test ends.
func open(t testing.TB, path string) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// kind opens the suite's kind.
func kind(t testing.TB, db *bolt.DB) *objects {
	t.Helper()
	c, err := bolt.OpenKind(db, "object", storetest.Indexes())
	require.NoError(t, err)
	return c
}

// The suite makes tens of thousands of commits, so it runs without waiting for the disk. Only a
// kill, and no answer of a call, shows what the waiting is for.
func TestCollection(t *testing.T) {
	storetest.Run(t, storetest.Suite{
		New: func(t *testing.T, now func() time.Time) store.Collection[*storetest.Object] {
			db, err := bolt.OpenRaw(newPath(t), bolt.Options{Now: now}, bbolt.Options{NoSync: true})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			return kind(t, db)
		},
	})
}
