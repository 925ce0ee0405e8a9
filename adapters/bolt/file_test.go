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

// holdOpen is the main function of a process that opens the file and waits to be killed.
func holdOpen(path string) {
	_, err := bolt.Open(path, bolt.Options{})
	say("opened: %v", err)
	select {}
}

// requireRefused requires that Open fails with want, at once, and does not change the file.
func requireRefused(t *testing.T, path string, want error) error {
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
	requireRefused(t, path, bolt.ErrLocked)
	require.NoError(t, db.Close())
	open(t, path)
}

func TestLockedByAnotherProcess(t *testing.T) {
	path := newPath(t)
	c := startChild(t, "hold", path)
	require.True(t, c.lines.Scan())
	require.Equal(t, "opened: <nil>", c.lines.Text())
	requireRefused(t, path, bolt.ErrLocked)
	c.kill(t)
	open(t, path)
}

// TestCreatedOnce: if many open a file that does not exist yet, one succeeds, and the others get an error
// at once. No other file is left.
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

// TestFileMode: only the owner can read the file.
func TestFileMode(t *testing.T) {
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

// TestEmptyFile: an empty file is refused, because it may be all that is left of a fleet.
func TestEmptyFile(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	requireRefused(t, path, bolt.ErrDamaged)
}

func TestForeignFiles(t *testing.T) {
	text := newPath(t)
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("not a store\n", 4000)), 0o600))
	requireRefused(t, text, bolt.ErrForeign)

	other := newPath(t)
	edit(t, other, func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("mine"))
		return err
	})
	requireRefused(t, other, bolt.ErrForeign)
}

// edit changes a file without the store, and updates its summary.
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
		requireRefused(t, path, bolt.ErrLayout)
	}
}

// TestCutOff: a file that was cut off at any page gives an error. If bbolt read a missing page through
// the memory map, the process would crash.
func TestCutOff(t *testing.T) {
	path := newPath(t)
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	for i := range 50 {
		_, err := db.Machines().Create(noContext, newMachine(strings.Repeat("a", i+1)))
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	refused, opened, page := 0, 0, os.Getpagesize()
	for pages := 1; opened < 3; pages++ { // the end of the file has no pages in use
		require.NoError(t, os.WriteFile(path, sound[:pages*page], 0o600))
		db, err := bolt.Open(path, bolt.Options{Now: now})
		if err != nil {
			require.ErrorIs(t, err, bolt.ErrDamaged)
			refused++
			continue
		}
		listed, err := db.Machines().List(noContext, store.Query{})
		require.NoError(t, err)
		require.Len(t, listed, 50)
		require.NoError(t, db.Close())
		opened++
	}
	require.Greater(t, refused, 2)
}

// TestAnyFile: after any change of the file, Open returns a store or an error, and does not crash.
func TestAnyFile(t *testing.T) {
	path := newPath(t)
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		_, err := db.Machines().Create(noContext, newMachine(name))
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
		_, _ = db.Machines().Create(noContext, newMachine("d"))
		_ = db.Close()
	})
	require.Positive(t, opened)
}
