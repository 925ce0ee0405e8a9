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
)

// Options of Open. The zero Options have good defaults.
type Options struct {
	// Now is the clock. Nil means time.Now. Objects carry whole seconds of it.
	Now func() time.Time
	// LockTimeout is how long Open waits while the file is in use, such as by a process that was
	// just killed. Zero means DefaultLockTimeout. If it is negative, Open does not wait.
	LockTimeout time.Duration

	cancelled <-chan struct{} // closed when the caller does not wait any more
	waiting   func()          // for tests: called while Open waits
}

// DB is an open file with a collection for each kind. Open makes it. It is safe for concurrent use.
type DB struct {
	file    *file
	options Options

	kinds       []member // in the order of opening
	machines    *Collection[*machine.Machine]
	classes     *Collection[*machine.Class]
	secrets     *Collection[*machine.Secret]
	sets        *Collection[*machineset.Set]
	deployments *Collection[*deployment.Deployment]
	pools       *Collection[*machinepool.Pool]
	nodes       *Collection[*machine.Node]

	life   context.Context //nolint:containedctx // ended by Close; ends all watches
	end    context.CancelFunc
	broken atomic.Pointer[error] // ErrUncertain and why

	gate     sync.RWMutex // held for reading while a request is handed over
	closed   bool         // guarded by gate
	requests chan *request
	ended    chan struct{} // closed when the committer has ended
	commits  committer
	update   func(func(*bbolt.Tx) error) error // the file's Update, except in tests
	panicked bool                              // whether the committer panicked; read after it has ended
}

// Open opens the file at path, or makes it, readable for its owner alone, in an existing directory.
// It checks all pages and reads all objects into memory. It fails with ErrLocked if the file is
// still in use after Options.LockTimeout, with ErrForeign if it is not a file of this package, with
// a *LayoutError if a newer program wrote it, and with ErrDamaged if it can't be read as a whole or
// lacks records that were written to it; Export copies what can still be read. A single object that
// can't be read does not make Open fail: see DB.Damaged.
func Open(path string, options Options) (*DB, error) {
	return OpenContext(context.Background(), path, options)
}

// OpenContext is Open for a caller that may be cancelled: while the file is in use, it also stops
// waiting when ctx ends, with ErrLocked and the cause.
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
	err, panicked := catchPanic(db.collect)
	if err != nil {
		_ = f.close(panicked)
		return nil, err
	}
	go db.run()
	return db, nil
}

// Close waits for the writes that have begun, ends all watches, and closes the file. Every call
// after it returns ErrClosed, except a second Close.
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

// Backup writes a copy of the file, as it is at one instant, and returns its size in bytes. Writes
// go on meanwhile. A slow w makes the file grow, and holds up writes once the file outgrows 1 GiB,
// so write to a local file first if the destination is far. The copy opens like any other file, and
// holds all secrets.
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

// Damaged returns the objects that Open found unreadable and that were not discarded since. Each
// call that concerns such an object fails with its error, and so do lists of its kind. Watches leave
// it out.
func (db *DB) Damaged() []*DamagedError {
	var all []*DamagedError
	for _, k := range db.kinds {
		all = append(all, k.damaged()...)
	}
	return all
}

// Discard deletes the record of a damaged object permanently. The manager no longer reconciles what
// it stood for, such as a VM.
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
