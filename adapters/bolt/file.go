package bolt

import (
	"bytes"
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

	"github.com/millwright-go/millwright/adapters/bolt/internal/pagecheck"
)

// layout is the number of the file's layout: a bucket for the file itself, and a bucket for each kind.
// The first has the number of the layout and the summary; its sequence counts commits. The others have
// records; their sequence is the last version that was assigned.
//
// To change the layout, raise the number. In one transaction, before anything else is read, rewrite
// files with a lower number. Raise it also when a field is added to a kind; no rewrite is needed then.
// Otherwise an older program would open the file and report every object with the field as damaged.
const layout = 1

// These are names in the file.
var (
	aboutBucket = []byte("millwright")
	layoutKey   = []byte("layout")
)

// initialMapSize is how much address space is reserved for the file. While the file is smaller, no write
// has to wait for a backup.
const initialMapSize = 1 << (30 - 4*(1-^uint(0)>>63)) // 1 GiB, or 64 MiB if addresses have 32 bits

// file is an open bbolt file. Its pages were checked when it was opened. Later damage, or a failed read
// of the memory map, makes bbolt panic. catchPanic turns the panic into ErrDamaged.
type file struct {
	*bbolt.DB
	path   string      // absolute
	info   fs.FileInfo // identifies the file, even if it is moved
	handle *os.File    // to close the file if bbolt can't

	found  content                // what the file held when it was opened
	stored map[string]kindSummary // the summary in the file when it was opened
	kinds  map[string]kindSummary // as of the last commit; once the file is open, only the committer uses it
}

// catchPanic calls the function do, and returns a panic as an ErrDamaged. After a panic, bbolt may
// never release its locks.
func catchPanic(do func() error) (err error, panicked bool) { //nolint:revive // the panic comes with an error
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err, panicked = fmt.Errorf("%w: %v", ErrDamaged, cause), true
		}
	}()
	return do(), false
}

// openFile opens the file at path. If there is none, it creates it first.
func openFile(path string, options Options, raw bbolt.Options) (*file, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		// If two processes create it at the same time, both continue with the first one's file.
		if err := createFile(path, initialize); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("create: %w", withoutPath(err))
		}
	}
	handle, err := openLocked(path, &options)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, handle: handle}
	if err := f.readContent(); err != nil {
		return nil, errors.Join(err, handle.Close())
	}
	if err := f.open(raw); err != nil {
		return nil, err
	}
	err, panicked := catchPanic(func() error { return f.checkLayout() })
	if err != nil {
		_ = f.close(panicked)
		return nil, err
	}
	return f, nil
}

// content is what the pages of a file hold.
type content struct {
	pagecheck.Info
	about map[string][]byte      // the entries of aboutBucket; nil if there is no such bucket
	kinds map[string]kindSummary // of the other buckets, by name
}

// readContent checks all pages, before bbolt maps them, and summarizes their content in f.found.
func (f *file) readContent() (err error) {
	if f.info, err = f.handle.Stat(); err != nil {
		return err
	}
	if f.info.Size() == 0 {
		return fmt.Errorf("%w: the file is empty; to begin with nothing, remove it", ErrDamaged)
	}
	f.found.kinds = map[string]kindSummary{}
	f.found.Info, err = pagecheck.Check(f.handle, f.info.Size(), pagecheck.Visitor{
		Bucket: func(name []byte, sequence uint64) {
			if bytes.Equal(name, aboutBucket) {
				f.found.about = map[string][]byte{}
				return
			}
			f.found.kinds[string(name)] = kindSummary{Version: sequence}
		},
		Record: func(bucket string, key, record []byte) {
			if bucket == string(aboutBucket) {
				f.found.about[string(key)] = bytes.Clone(record)
				return
			}
			k := f.found.kinds[bucket]
			k.add(record)
			f.found.kinds[bucket] = k
		},
	})
	return pageError(err)
}

// pageError makes an error of package pagecheck match ErrForeign if the file is not one of bbolt.
func pageError(err error) error {
	if errors.Is(err, pagecheck.ErrNoMeta) {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return err
}

// open opens the file in bbolt, with f.handle. If that fails, the handle is closed.
func (f *file) open(options bbolt.Options) error {
	options.Timeout = time.Nanosecond // no wait is needed: the handle has the lock already
	options.FreelistType = bbolt.FreelistMapType
	options.InitialMmapSize = initialMapSize
	options.NoFreelistSync = f.info != nil && !f.found.Freelist // without it, bbolt.Open would write a freelist
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
	case !errors.As(err, new(syscall.Errno)): // about the content, such as its size
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// createFile creates a file beside path, lets fill write to it, and then links it to path. So a process
// that dies meanwhile leaves nothing at path. If there is a file at path, the error is fs.ErrExist.
func createFile(path string, fill func(*bbolt.Tx) error) error {
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
	if err := errors.Join(f.Update(fill), f.close(false)); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// withoutPath removes the path of the temporary file from an error, because users don't know that file.
func withoutPath(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	if link := (*os.LinkError)(nil); errors.As(err, &link) {
		return link.Err
	}
	return err
}

// syncDir waits until the names in a directory are on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the caller's path
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// initialize writes the current layout into an empty file.
func initialize(tx *bbolt.Tx) error {
	about, err := tx.CreateBucket(aboutBucket)
	if err != nil {
		return err
	}
	return errors.Join(about.Put(layoutKey, []byte(strconv.Itoa(layout))), writeSummary(tx, nil))
}

// checkLayout checks that this program can read the file, and that the file has the records of its last
// commit.
func (f *file) checkLayout() error {
	f.kinds = maps.Clone(f.found.kinds)
	about := f.found.about
	switch layoutFound := string(about[string(layoutKey)]); {
	case about == nil && len(f.kinds) == 0:
		return fmt.Errorf("%w: it holds nothing", ErrDamaged)
	case about == nil:
		return fmt.Errorf("%w: it holds something else", ErrForeign)
	case layoutFound != strconv.Itoa(layout):
		return &LayoutError{Found: layoutFound, Known: layout}
	case f.found.Nested:
		return fmt.Errorf("%w: a bucket is within another", ErrDamaged)
	}
	last, err := readSummary(about)
	if err != nil {
		return err
	}
	f.stored = last.Kinds
	return last.check(f.found)
}

// close closes the file. If bbolt has panicked, its own Close could wait for ever for a lock. Then close
// releases the file's lock and closes the handle itself.
func (f *file) close(panicked bool) error {
	if !panicked && f.DB != nil {
		return f.Close()
	}
	return errors.Join(syscall.Flock(int(f.handle.Fd()), syscall.LOCK_UN), f.handle.Close())
}
