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

// now is the clock of tests that have no other clock.
func now() time.Time { return time.Date(2031, 5, 7, 11, 13, 17, 500, time.UTC) }

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "fleet.db") }

// open opens the file, and closes it when the test ends.
func open(t testing.TB, path string) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// kind opens the collection of the test objects.
func kind(t testing.TB, db *bolt.DB) *objects {
	t.Helper()
	c, err := bolt.OpenKind(db, "object", storetest.Indexes())
	require.NoError(t, err)
	return c
}

// TestCollection runs the test suite of stores. It makes tens of thousands of commits, so it does not wait
// for the disk. Only a crash would show the difference.
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
