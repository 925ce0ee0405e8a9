package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// The layout of the file: a bucket for the file itself, and one for each kind.
// The first holds the number of the layout; its sequence counts commits. The
// others hold records; their sequence is the last version given out.
//
// To change the layout, raise it and, when a file with a lower one is opened,
// rewrite that in one transaction before anything is read. A field that is
// added to a kind raises it as well, with nothing to rewrite: an older program
// should refuse the file as a whole, not object by object.
const layout = 1

var (
	aboutBucket = []byte("millwright")
	layoutKey   = []byte("layout")
)

// mapped is the room for the file in the address space. While the file is
// smaller, a backup that is being taken never holds up a write.
const mapped = 1 << (30 - 4*(1-^uint(0)>>63)) // 1 GiB, or 64 MiB where addresses have 32 bits

// file is an open bbolt file. Damaged pages and failed reads of the map make
// bbolt panic; guarded turns that into ErrDamaged.
type file struct {
	*bbolt.DB
	handle *os.File // for closing what bbolt has given up
}

// guarded calls do and returns what it panics with as an error. After that
// bbolt's locks are in no known state.
func guarded(do func() error) (err error, panicked bool) { //nolint:revive // the panic comes with an error
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err, panicked = fmt.Errorf("%w: %v", ErrDamaged, cause), true
		}
	}()
	return do(), false
}

// openFile opens the file at path, which it makes first where there is none.
func openFile(path string, options bbolt.Options) (*file, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createFile(path); err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
	}
	f, err := lockFile(path, options)
	if err != nil {
		return nil, err
	}
	err, panicked := guarded(func() error { return f.checkLayout() })
	if err != nil {
		_ = f.close(panicked)
		return nil, err
	}
	return f, nil
}

// lockFile opens the file with bbolt, which locks it.
func lockFile(path string, options bbolt.Options) (*file, error) {
	f := &file{}
	options.Timeout = time.Nanosecond // one attempt
	options.FreelistType = bbolt.FreelistMapType
	options.InitialMmapSize = mapped
	options.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		var err error
		f.handle, err = os.OpenFile(name, flag, mode) //nolint:gosec // the caller's path
		return f.handle, err
	}
	err, panicked := guarded(func() (err error) {
		f.DB, err = bbolt.Open(path, 0o600, &options)
		return err
	})
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	case errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrInvalidMapping):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	case panicked:
		_ = f.close(true)
	case !errors.As(err, new(syscall.Errno)): // not of the system: of the content, such as its size
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil, err
}

// createFile makes an empty store beside path and links it there when it is
// complete: a process that dies half way leaves no file that can't be opened,
// and of two that do this at once both open the same file.
func createFile(path string) error {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	if err := temp.Close(); err != nil {
		return err
	}
	f, err := lockFile(temp.Name(), bbolt.Options{})
	if err != nil {
		return err
	}
	if err := errors.Join(f.Update(begin), f.close(false)); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the caller's path
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// begin writes the present layout into an empty file.
func begin(tx *bbolt.Tx) error {
	about, err := tx.CreateBucket(aboutBucket)
	if err != nil {
		return err
	}
	return about.Put(layoutKey, []byte(strconv.Itoa(layout)))
}

// checkLayout finds out whether the file is one that this program can use. One
// without any content becomes one.
func (f *file) checkLayout() error {
	empty := false
	err := f.View(func(tx *bbolt.Tx) error {
		about := tx.Bucket(aboutBucket)
		if about == nil {
			first, _ := tx.Cursor().First()
			if empty = first == nil; empty {
				return nil
			}
			return fmt.Errorf("%w: it holds something else", ErrForeign)
		}
		if found := string(about.Get(layoutKey)); found != strconv.Itoa(layout) {
			return &LayoutError{Found: found, Known: layout}
		}
		return nil
	})
	if err != nil || !empty {
		return err
	}
	return f.Update(begin)
}

// close gives the file up. A file that bbolt has panicked over is closed
// behind its back, as the locks in its memory may be held for ever. Its map
// stays, and would keep the lock of the file, so that is undone by hand.
func (f *file) close(panicked bool) error {
	if !panicked && f.DB != nil {
		return f.Close()
	}
	return errors.Join(syscall.Flock(int(f.handle.Fd()), syscall.LOCK_UN), f.handle.Close())
}
