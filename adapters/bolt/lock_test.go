package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestOpenWaitsForTheLock: Open waits for a file in use, and opens it when it is released.
// Invariants: P43
func TestOpenWaitsForTheLock(t *testing.T) {
	for name, occupy := range map[string]func(*testing.T, string) (release func()){
		"closed by this process": func(t *testing.T, path string) func() {
			db, err := bolt.Open(path, bolt.Options{})
			require.NoError(t, err)
			return func() { require.NoError(t, db.Close()) }
		},
		"another process is killed": func(t *testing.T, path string) func() {
			c := startChild(t, "hold", path)
			require.True(t, c.lines.Scan())
			return func() { c.kill(t) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, waits := newPath(t), make(chan struct{}, 1)
			release := occupy(t, path)
			options := bolt.Options{LockTimeout: time.Hour}
			options.OnWaiting(func() {
				select {
				case waits <- struct{}{}:
				default:
				}
			})
			opened := start(func() error {
				db, err := bolt.Open(path, options)
				select {
				case waits <- struct{}{}: // so that the test fails instead of hanging if Open does not wait
				default:
				}
				return errors.Join(err, func() error {
					if db == nil {
						return nil
					}
					return db.Close()
				}())
			})
			<-waits
			release()
			require.NoError(t, opened())
		})
	}
}

// TestOpenWaitsByDefault: by default Open waits for 5 s. It waits no longer than its timeout.
func TestOpenWaitsByDefault(t *testing.T) {
	path, waited := newPath(t), 0
	open(t, path)
	options := bolt.Options{LockTimeout: time.Nanosecond}
	options.OnWaiting(func() { waited++ })
	_, err := bolt.Open(path, options)
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.LessOrEqual(t, waited, 1)
	require.Equal(t, 5*time.Second, bolt.DefaultLockTimeout)
	require.InDelta(t, bolt.DefaultLockTimeout, bolt.Options{}.Patience(), float64(time.Second))
}

// TestOpenEndsWithItsContext: OpenContext stops waiting when its context ends.
func TestOpenEndsWithItsContext(t *testing.T) {
	path := newPath(t)
	open(t, path)
	enough := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	options := bolt.Options{LockTimeout: time.Hour}
	options.OnWaiting(func() { end(enough) })
	_, err := bolt.OpenContext(ctx, path, options)
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.ErrorIs(t, err, enough)
}

// TestErrorNamesTheFile: if the file can't be created, the error names it, and not the temporary file.
func TestErrorNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "fleet.db")
	_, err := bolt.Open(path, bolt.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "open "+path+": create: no such file or directory")
}

// TestFileIsReplaced: after its file was removed or moved, a store refuses writes, live reads and backups.
// Invariants: P43
func TestFileIsReplaced(t *testing.T) {
	for name, replace := range map[string]func(*testing.T, string){
		"removed": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"moved":   func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".old")) },
		"opened again by another": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			c := startChild(t, "hold", path)
			t.Cleanup(func() { c.kill(t) })
			require.True(t, c.lines.Scan())
			require.Equal(t, "opened: <nil>", c.lines.Text())
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			db := open(t, path)
			kept, err := db.Machines().Create(noContext, newMachine("a"))
			require.NoError(t, err)
			replace(t, path)

			_, err = db.Machines().Create(noContext, newMachine("b"))
			require.ErrorIs(t, err, bolt.ErrReplaced)
			require.ErrorContains(t, err, path)
			_, err = db.Machines().Get(noContext, object.Key{Namespace: "fleet", Name: "b"})
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = db.Machines().Live().Get(noContext, kept.Key)
			require.ErrorIs(t, err, bolt.ErrReplaced)
			_, err = db.Backup(&bytes.Buffer{})
			require.ErrorIs(t, err, bolt.ErrReplaced)
		})
	}
}

// TestFileIsReplacedDuringACommit: if the file is removed during a commit, the writes are not acknowledged.
// Invariants: P43
func TestFileIsReplacedDuringACommit(t *testing.T) {
	path := newPath(t)
	db := open(t, path)
	db.InterceptCommits(func(do func() error) error { return errors.Join(os.Remove(path), do()) })
	_, err := db.Machines().Create(noContext, newMachine("a"))
	require.ErrorIs(t, err, bolt.ErrReplaced)
	require.ErrorIs(t, err, bolt.ErrUncertain)
	_, err = db.Machines().Live().List(noContext, store.Query{})
	require.ErrorIs(t, err, bolt.ErrUncertain)
}

// TestUnreadablePath: if the path can't be read after a commit, the commit counts. Writes fail until the
// path can be read again.
func TestUnreadablePath(t *testing.T) {
	dir := t.TempDir()
	home, link := filepath.Join(dir, "home"), filepath.Join(dir, "link")
	linkTo := func(target string) {
		require.NoError(t, os.RemoveAll(link))
		require.NoError(t, os.Symlink(target, link))
	}
	require.NoError(t, os.Mkdir(home, 0o700))
	linkTo(home)
	db := open(t, filepath.Join(link, "fleet.db"))
	db.InterceptCommits(func(do func() error) error {
		err := do()
		linkTo(link) // to itself: ELOOP
		return err
	})
	kept, err := db.Machines().Create(noContext, newMachine("a"))
	require.NoError(t, err)
	_, err = db.Machines().Create(noContext, newMachine("b"))
	require.ErrorIs(t, err, syscall.ELOOP)
	require.NotErrorIs(t, err, bolt.ErrUncertain)

	linkTo(home)
	db.InterceptCommits(func(do func() error) error { return do() })
	_, err = db.Machines().Live().Get(noContext, kept.Key)
	require.NoError(t, err)
	_, err = db.Machines().Create(noContext, newMachine("b"))
	require.NoError(t, err)
}
