package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/store/record"
)

// Options of Open. The zero Options have good defaults.
type Options struct {
	// Now is the clock. Nil means time.Now. Times in objects are rounded down to seconds.
	Now func() time.Time
	// LockTimeout is how long Open waits if the file is in use, for example by a process that was just
	// killed. Zero means DefaultLockTimeout. If it is negative, Open does not wait.
	LockTimeout time.Duration
	// Seal encrypts the records of secrets. Nil: they are stored as they are, and sealed ones can't be read.
	Seal record.Sealer

	cancelled <-chan struct{} // closed when Open must stop waiting
	waiting   func()          // for tests: called each time Open waits
}

// DB is an open file with a collection for each kind. Open makes it. It is safe for concurrent use.
type DB struct {
	file    *file
	options Options

	kinds       []anyCollection // in the order of opening
	machines    *Collection[*machine.Machine]
	classes     *Collection[*machine.Class]
	secrets     *Collection[*machine.Secret]
	sets        *Collection[*machineset.Set]
	deployments *Collection[*deployment.Deployment]
	pools       *Collection[*machinepool.Pool]
	nodes       *Collection[*machine.Node]

	life   context.Context //nolint:containedctx // ended by Close; ends all watches
	end    context.CancelFunc
	broken atomic.Pointer[error] // an ErrUncertain; nil: the stored state is known

	gate     sync.RWMutex // held for reading while a request is queued
	closed   bool         // guarded by gate
	requests chan *request
	ended    chan struct{} // closed when the committer has ended
	commits  committer
	update   func(func(*bbolt.Tx) error) error // file.Update, except in tests
	panicked bool                              // bbolt has panicked in the committer; valid after ended
}

// Open opens the file at path. If there is none, it creates the file, with mode 0600, in an existing
// directory. It checks all pages, and reads all objects into memory. It fails with ErrLocked if the file
// is still in use after Options.LockTimeout, with ErrForeign if it is not a file of this package, with a
// *LayoutError if it was written by a newer program, and with ErrDamaged if pages can't be read or
// records are missing; Salvage copies what can still be read. Single damaged objects don't make Open fail:
// see DB.Damaged.
func Open(path string, options Options) (*DB, error) {
	return OpenContext(context.Background(), path, options)
}

// OpenContext is Open, but it also stops waiting for a file in use when ctx ends. The error is then
// ErrLocked and the cause of ctx.
func OpenContext(ctx context.Context, path string, options Options) (*DB, error) {
	options.cancelled = ctx.Done()
	db, err := open(path, options, bbolt.Options{})
	if errors.Is(err, ErrLocked) && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// open is Open with options for bbolt.
func open(path string, options Options, raw bbolt.Options) (*DB, error) {
	f, err := openFile(path, options, raw)
	if err != nil {
		return nil, err
	}
	db := &DB{
		file: f, options: options, update: f.Update,
		requests: make(chan *request, maxBatch), ended: make(chan struct{}),
	}
	db.life, db.end = context.WithCancel(context.Background())
	err, panicked := catchPanic(db.openCollections)
	if err != nil {
		_ = f.close(panicked)
		return nil, err
	}
	go db.run()
	return db, nil
}

// Close waits for queued writes, ends all watches, and closes the file. Later calls return ErrClosed; a
// second Close does nothing.
func (db *DB) Close() error {
	db.gate.Lock()
	if db.closed {
		db.gate.Unlock()
		return nil
	}
	db.closed = true
	close(db.requests)
	db.gate.Unlock()
	<-db.ended
	db.end()
	return db.file.close(db.panicked)
}

// Backup writes a copy of the file, as it is at one instant, and returns its size in bytes. Other writes
// are possible meanwhile. If w is slow, the file grows, and once it is larger than 1 GiB, writes must
// wait. So if the destination is slow, write to a local file first. The copy can be opened like any
// file, and has all secrets.
func (db *DB) Backup(w io.Writer) (int64, error) {
	db.gate.RLock()
	defer db.gate.RUnlock()
	if err := db.usable(); err != nil {
		return 0, fmt.Errorf("backup: %w", err)
	}
	var n int64
	err, _ := catchPanic(func() error {
		return db.file.View(func(tx *bbolt.Tx) (err error) {
			n, err = tx.WriteTo(w)
			return err
		})
	})
	if err != nil {
		return n, fmt.Errorf("backup: %w", err)
	}
	return n, nil
}

// Damaged returns the objects that Open could not read and that were not discarded since. Each call for
// such an object fails with its error, and so do lists of its kind. Watches leave it out.
func (db *DB) Damaged() []*DamagedError {
	var all []*DamagedError
	for _, k := range db.kinds {
		all = append(all, k.damaged()...)
	}
	return all
}

// Discard deletes the record of a damaged object permanently. So the manager forgets what the object
// stood for, such as a VM.
func (db *DB) Discard(ctx context.Context, d *DamagedError) error {
	for _, k := range db.kinds {
		if d != nil && k.name() == d.Kind {
			return k.discard(ctx, d)
		}
	}
	return errors.New("discard: no such kind")
}

// usable returns an error unless the file is open, in a known state, and at its path.
func (db *DB) usable() error {
	if db.life.Err() != nil {
		return ErrClosed
	}
	if err := db.broken.Load(); err != nil {
		return *err
	}
	return requireSame(db.file.path, db.file.info)
}
