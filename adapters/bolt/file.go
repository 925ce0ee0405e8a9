package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
// The first holds the number of the layout and the summary; its sequence counts
// commits. The others hold records; their sequence is the last version given out.
//
// To change the layout, raise its number, and rewrite a file with a lower number in one transaction
// before anything is read. A field that is added to a kind raises the number as well, without a
// rewrite, because an older program should refuse the file as a whole, not object by object.
const layout = 1

var (
	aboutBucket = []byte("millwright")
	layoutKey   = []byte("layout")
)

// initialMapSize is the room for the file in the address space. While the file is smaller, a backup under
// way never holds up a write.
const initialMapSize = 1 << (30 - 4*(1-^uint(0)>>63)) // 1 GiB, or 64 MiB if addresses have 32 bits

// file is an open bbolt file. Its pages were checked when it was opened. Damage since then, and
// failed reads of the map, make bbolt panic; catchPanic turns that into ErrDamaged.
type file struct {
	*bbolt.DB
	path   string      // absolute
	info   fs.FileInfo // of the file itself, wherever it is moved to
	handle *os.File    // for closing what bbolt has given up

	found  *content               // what was read when it was opened
	stored map[string]kindSummary // the summary in the file when it was opened
	kinds  map[string]kindSummary // as of the last commit; the committer's once all kinds are open
}

// catchPanic calls do and returns its panic as an error. After a panic, the state of bbolt's locks is
// unknown.
func catchPanic(do func() error) (err error, panicked bool) { //nolint:revive // the panic comes with an error
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err, panicked = fmt.Errorf("%w: %v", ErrDamaged, cause), true
		}
	}()
	return do(), false
}

// openFile opens the file at path, and makes it first if there is none.
func openFile(path string, options Options, raw bbolt.Options) (*file, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createFile(path); err != nil {
			return nil, fmt.Errorf("create: %w", withoutPath(err))
		}
	}
	handle, err := openLocked(path, &options)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, handle: handle}
	if err := f.inspect(options.LeaveOutDamaged); err != nil {
		return nil, errors.Join(err, handle.Close())
	}
	if err := f.open(raw); err != nil {
		return nil, err
	}
	err, panicked := catchPanic(func() error { return f.checkLayout(options.LeaveOutDamaged) })
	if err != nil {
		_ = f.close(panicked)
		return nil, err
	}
	return f, nil
}

// inspect walks over the pages, before bbolt sees them.
func (f *file) inspect(lenient bool) (err error) {
	if f.info, err = f.handle.Stat(); err != nil {
		return err
	}
	if f.info.Size() == 0 {
		return fmt.Errorf("%w: the file is empty; to begin with nothing, remove it", ErrDamaged)
	}
	f.found, err = inspect(f.handle, f.info.Size(), lenient)
	return err
}

// open gives the handle to bbolt, which closes it if that fails.
func (f *file) open(options bbolt.Options) error {
	options.Timeout = time.Nanosecond // the handle has the lock
	options.FreelistType = bbolt.FreelistMapType
	options.InitialMmapSize = initialMapSize
	options.NoFreelistSync = f.found != nil && !f.found.freelist // or bbolt commits while it opens
	options.OpenFile = func(string, int, os.FileMode) (*os.File, error) { return f.handle, nil }
	err, panicked := catchPanic(func() (err error) {
		f.DB, err = bbolt.Open(f.path, 0o600, &options)
		return err
	})
	switch {
	case err == nil:
		f.NoFreelistSync = false
	case panicked:
		_ = f.close(true)
	case errors.Is(err, berrors.ErrTimeout):
		return ErrLocked
	case !errors.As(err, new(syscall.Errno)): // not of the system: of the content, such as its size
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// createFile makes an empty store beside path and links it there when it is complete. So a process
// that dies half way leaves no file that can't be opened, and two processes that do this at once
// both open the same file.
func createFile(path string) error {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	f := &file{path: temp.Name(), handle: temp}
	if err := f.open(bbolt.Options{}); err != nil {
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

// withoutPath returns what the system said of a file whose name the user has not given.
func withoutPath(err error) error {
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		return of.Err
	}
	if of := (*os.LinkError)(nil); errors.As(err, &of) {
		return of.Err
	}
	return err
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
	return errors.Join(about.Put(layoutKey, []byte(strconv.Itoa(layout))), writeSummary(tx, nil))
}

// checkLayout checks that this program can use the file, and that the file holds what was last
// written to it.
func (f *file) checkLayout(lenient bool) error {
	f.kinds = maps.Clone(f.found.kinds)
	about := f.found.about
	switch layoutFound := string(about[string(layoutKey)]); {
	case about == nil && len(f.kinds) == 0 && f.found.others == 0:
		return fmt.Errorf("%w: it holds nothing", ErrDamaged)
	case about == nil:
		return fmt.Errorf("%w: it holds something else", ErrForeign)
	case layoutFound != strconv.Itoa(layout):
		return &LayoutError{Found: layoutFound, Known: layout}
	}
	if lenient {
		return nil
	}
	last, err := readSummary(about)
	if err != nil {
		return err
	}
	f.stored = last.Kinds
	return last.check(f.found)
}

// close closes the file. If bbolt has panicked, close bypasses bbolt, because the locks in bbolt's
// memory may be held permanently. bbolt's map stays and would keep the lock of the file, so close
// releases that lock itself.
func (f *file) close(panicked bool) error {
	if !panicked && f.DB != nil {
		return f.Close()
	}
	return errors.Join(syscall.Flock(int(f.handle.Fd()), syscall.LOCK_UN), f.handle.Close())
}
