package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/store"
)

// holdOpen is a process that opens the file and waits to be killed.
func holdOpen(path string) {
	_, err := bolt.Open(path, bolt.Options{})
	say("opened: %v", err)
	select {}
}

// refused requires that opening the file fails, at once, and leaves the file as it was.
func refused(t *testing.T, path string, want error) error {
	t.Helper()
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	began := time.Now()
	db, err := bolt.Open(path, bolt.Options{LockTimeout: -1})
	require.Nil(t, db)
	require.ErrorIs(t, err, want)
	require.ErrorContains(t, err, path)
	require.Less(t, time.Since(began), 5*time.Second)
	after, err2 := os.ReadFile(path)
	require.NoError(t, err2)
	require.Equal(t, before, after, "the file was changed")
	return err
}

func TestLockedByThisProcess(t *testing.T) {
	path := newPath(t)
	db, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	refused(t, path, bolt.ErrLocked)
	require.NoError(t, db.Close())
	open(t, path)
}

func TestLockedByAnotherProcess(t *testing.T) {
	path := newPath(t)
	c := startChild(t, "hold", path)
	require.True(t, c.lines.Scan())
	require.Equal(t, "opened: <nil>", c.lines.Text())
	refused(t, path, bolt.ErrLocked)
	c.kill(t)
	open(t, path)
}

// Many open a file that does not exist yet. One of them gets it, the others get an error at once,
// and nothing but the file is left behind.
func TestCreatedOnce(t *testing.T) {
	for range 5 {
		path := newPath(t)
		var all sync.WaitGroup
		var mu sync.Mutex
		var opened []*bolt.DB
		for range 8 {
			all.Go(func() {
				db, err := bolt.Open(path, bolt.Options{LockTimeout: -1})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					opened = append(opened, db)
				} else if !errors.Is(err, bolt.ErrLocked) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Len(t, opened, 1)
		require.NoError(t, opened[0].Close())
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
}

func TestFileIsItsOwners(t *testing.T) {
	path := newPath(t)
	open(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}

func TestNoDirectory(t *testing.T) {
	_, err := bolt.Open(filepath.Join(t.TempDir(), "none", "fleet.db"), bolt.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// An empty file may be all that is left of a fleet, so no store begins in it.
func TestEmptyFile(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	refused(t, path, bolt.ErrDamaged)
}

func TestForeignFiles(t *testing.T) {
	text := newPath(t)
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("not a store\n", 4000)), 0o600))
	refused(t, text, bolt.ErrForeign)

	other := newPath(t)
	edit(t, other, func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("mine"))
		return err
	})
	refused(t, other, bolt.ErrForeign)
}

// edit changes a file without the store.
func edit(t testing.TB, path string, do func(*bbolt.Tx) error) {
	t.Helper()
	file, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	require.NoError(t, err)
	require.NoError(t, file.Update(func(tx *bbolt.Tx) error {
		return errors.Join(do(tx), bolt.UpdateSummary(tx))
	}))
	require.NoError(t, file.Close())
}

func TestLayoutOfAnotherProgram(t *testing.T) {
	for _, found := range []string{"3", "0", "", "one", "18446744073709551617"} {
		path := newPath(t)
		db, err := bolt.Open(path, bolt.Options{})
		require.NoError(t, err)
		require.NoError(t, db.Close())
		edit(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("millwright")).Put([]byte("layout"), []byte(found))
		})
		var layout *bolt.LayoutError
		db, err = bolt.Open(path, bolt.Options{})
		require.Nil(t, db)
		require.ErrorAs(t, err, &layout)
		require.Equal(t, &bolt.LayoutError{Found: found, Known: 1}, layout)
		refused(t, path, bolt.ErrLayout)
	}
}

// A file that was cut off at any page gives an error and does not kill the process: missing pages
// are read through the map, which is a fault there.
func TestCutOff(t *testing.T) {
	path := newPath(t)
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	for i := range 50 {
		_, err := db.Machines().Create(noContext, member(strings.Repeat("a", i+1)))
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	refused, opened, page := 0, 0, os.Getpagesize()
	for pages := 1; opened < 3; pages++ { // the rest of the file is room to grow
		require.NoError(t, os.WriteFile(path, sound[:pages*page], 0o600))
		db, err := bolt.Open(path, bolt.Options{Now: now})
		if err != nil {
			require.ErrorIs(t, err, bolt.ErrDamaged)
			refused++
			continue // otherwise what is missing was free
		}
		listed, err := db.Machines().List(noContext, store.Query{})
		require.NoError(t, err)
		require.Len(t, listed, 50)
		require.NoError(t, db.Close())
		opened++
	}
	require.Greater(t, refused, 2)
}

// After any change to a file, opening it returns a store or an error. A store has all that it does
// not report as damaged.
func TestAnyFile(t *testing.T) {
	path := newPath(t)
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		_, err := db.Machines().Create(noContext, member(name))
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	opened := 0
	rapid.Check(t, func(rt *rapid.T) {
		content := append([]byte(nil), sound...)
		for range rapid.IntRange(1, 4).Draw(rt, "edits") {
			at := rapid.IntRange(0, len(content)-1).Draw(rt, "at")
			edit := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(rt, "with")
			copy(content[at:], edit)
		}
		if rapid.IntRange(0, 3).Draw(rt, "cut") == 0 {
			content = content[:rapid.IntRange(0, len(content)).Draw(rt, "length")]
		}
		require.NoError(rt, os.WriteFile(path, content, 0o600))
		db, err := bolt.OpenRaw(path, bolt.Options{Now: now}, bbolt.Options{NoSync: true})
		if err != nil {
			return
		}
		opened++
		if _, err = db.Machines().List(noContext, store.Query{}); err != nil {
			require.ErrorIs(rt, err, bolt.ErrDamaged)
		}
		_, _ = db.Machines().Create(noContext, member("d"))
		_ = db.Close()
	})
	require.Positive(t, opened)
}
