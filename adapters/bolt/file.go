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

// file is an open bbolt file. Its pages were checked when it was opened. Later damage and failed
// reads of the map make bbolt panic. catchPanic turns that into ErrDamaged.
type file struct {
	*bbolt.DB
	path   string      // absolute
	info   fs.FileInfo // of the file itself, wherever it is moved to
	handle *os.File    // for closing what bbolt has given up

	found  content                // what it held when it was opened
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
		// If two processes do this at once, both go on with the file of the first one.
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
	about map[string][]byte      // the entries of aboutBucket, nil if there is no such bucket
	kinds map[string]kindSummary // the other buckets
}

// readContent checks the pages before bbolt maps them.
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

// pageError returns an error of package pagecheck as one of this package.
func pageError(err error) error {
	if errors.Is(err, pagecheck.ErrNoMeta) {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return err
}

// open gives the handle to bbolt, which closes it if that fails.
func (f *file) open(options bbolt.Options) error {
	options.Timeout = time.Nanosecond // the handle has the lock
	options.FreelistType = bbolt.FreelistMapType
	options.InitialMmapSize = initialMapSize
	options.NoFreelistSync = f.info != nil && !f.found.Freelist // or bbolt commits while it opens
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

// createFile makes a store beside path, lets fill write to it, and links it to path when it is
// complete. So a process that dies meanwhile leaves nothing at path. If there is a file by then,
// createFile returns fs.ErrExist.
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

// withoutPath drops the path of a temporary file, which the user has not given, from an error.
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

// initialize writes the current layout into an empty file.
func initialize(tx *bbolt.Tx) error {
	about, err := tx.CreateBucket(aboutBucket)
	if err != nil {
		return err
	}
	return errors.Join(about.Put(layoutKey, []byte(strconv.Itoa(layout))), writeSummary(tx, nil))
}

// checkLayout checks that this program can use the file, and that the file holds what was last
// written to it.
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

// close closes the file. If bbolt has panicked, close bypasses bbolt, because the locks in bbolt's
// memory may be held permanently. bbolt's map stays and would keep the lock of the file, so close
// releases that lock itself.
func (f *file) close(panicked bool) error {
	if !panicked && f.DB != nil {
		return f.Close()
	}
	return errors.Join(syscall.Flock(int(f.handle.Fd()), syscall.LOCK_UN), f.handle.Close())
}
