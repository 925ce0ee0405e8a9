// Package remote keeps the objects of a fleet in a database that several processes reach, so that the fleet
// outlives a machine: one process manages it (package lead), others wait to take over, and all of them read.
//
// Engine is what it needs of a database: compare and swap, watch, a lease, and writes that are fenced by the lease.
// adapters/etcd and adapters/postgres are engines. The rest is here, once: the rules of store.Collection, a cache
// of all objects that serves reads, live lists from the cache once that is known to be fresh, elections, export
// and import.
//
//	err := db.Lead(ctx, lead.Options{ID: host}, func(term *lead.Held) error {
//		options := db.ManagerOptions(term)
//		options.Driver = …
//		m, err := manager.New(options)
//		if err != nil {
//			return err
//		}
//		return m.Run(ctx)
//	})
package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/object"
)

// Key is the key of a record: the kind of its object, such as "machine", and the object's key.
type Key struct {
	Kind string
	object.Key
}

// String returns the kind and the key of the object.
func (k Key) String() string { return k.Kind + " " + k.Key.String() }

// Record is what a database has under a key.
type Record struct {
	Key Key
	// Content is JSON. Nil: there is no record.
	Content []byte
	// Version is another one for each content that the key ever has, also across restores of the database.
	Version string
	// Order rises with each write to the key. It may start again when the database has lost writes, see Sink.
	Order uint64
}

// Swap is a conditional write.
type Swap struct {
	Key     Key
	Version string // of the record that is there; empty: there is none
	Content []byte // JSON; nil: the record is removed
	// Token is that of the term the write belongs to. Zero: the write belongs to none.
	Token lead.Token
}

// Engine is a database. Its methods are called concurrently. A call whose effect is not known returns an error
// that is none of package store.
type Engine interface {
	// Get returns the record of a key, never older than the call. Where there is none, Content is nil.
	Get(ctx context.Context, k Key) (Record, error)
	// List returns all records of a kind, never older than the call; of all kinds, if kind is empty. They are as
	// they were at one time.
	List(ctx context.Context, kind string) ([]Record, error)
	// Swap makes the write and returns the record as it is then, with its Content. The errors are
	// store.ErrFenced if the lease is not held under the token; store.ErrConflict if the record is
	// another one, or there is none, or there is one although Version is empty; store.ErrTooLarge. Nothing
	// was written then.
	Swap(ctx context.Context, s Swap) (Record, error)
	// Follow shows all records, and then all changes, until ctx ends or it breaks.
	Follow(ctx context.Context, sink Sink) error
	// Fresh returns nil once Follow has shown everything that was stored before the call. It returns
	// ErrBehind if that takes too long.
	Fresh(ctx context.Context) error
	// Lease is the lease that fences writes.
	Lease() lead.Lease
}

// Sink is what Engine.Follow shows records to. Its methods are called one at a time.
type Sink interface {
	// Replace takes all records there are. Keys that are missing had no record at the order at; zero says that
	// the database does not tell.
	Replace(all []Record, at uint64)
	// Show takes a change, in the order of the changes of its key. Without Content it is the end of a record.
	Show(r Record)
	// Forget is called before Replace if the database may have lost writes that it had answered, because an
	// older copy was restored or took over.
	Forget(why error)
	// Alive says that the database answers, although nothing has changed.
	Alive()
	// Space says that the database has little space left; nil: it has enough.
	Space(err error)
}

// These are errors of this package. Errors come wrapped; use errors.Is.
var (
	// ErrBehind: the cache lags behind the database.
	ErrBehind = errors.New("the cache lags behind the database")
	// ErrNoAnswer: the database did not answer in time. The effect of a write is not known.
	ErrNoAnswer = errors.New("the database did not answer in time")
	// ErrUnreadable is what every *UnreadableError is.
	ErrUnreadable = errors.New("a record can't be read")
	// ErrLayout is what every *LayoutError is.
	ErrLayout = errors.New("layout of another program")
	// ErrImporting: an import into the database has not ended, or was broken off. Remove what is there, and
	// import again.
	ErrImporting = errors.New("an import has not ended")
	// ErrNotEmpty: the database has objects, so nothing is imported into it.
	ErrNotEmpty = errors.New("the database has objects already")
	// ErrLostWrites: the database has lost writes that it had answered. What is there now counts.
	ErrLostWrites = errors.New("the database has lost writes: an older copy of it was restored, or took over")
	// ErrFull: the database has no space left. It comes from writes.
	ErrFull = errors.New("the database has no space left")
	// ErrClosed: the DB was closed.
	ErrClosed = errors.New("the store is closed")
)

// UnreadableError is about a record that this program can't read, for example because a newer one has written
// it. It does not contain the record's content.
type UnreadableError struct {
	Key   Key
	Cause error
}

// Error names the object.
func (e *UnreadableError) Error() string { return fmt.Sprintf("%v %v", e.Key, e.Cause) }

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, ErrUnreadable) true.
func (e *UnreadableError) Is(target error) bool { return target == ErrUnreadable }

// LayoutError says that a program with another layout has written to the database, and that this program must
// not.
type LayoutError struct {
	Found int // the layout of the database
	Known int // the layout of this program
}

// Error names both layouts.
func (e *LayoutError) Error() string {
	return fmt.Sprintf("the database has layout %d, this program knows %d", e.Found, e.Known)
}

// Is makes errors.Is(err, ErrLayout) true.
func (e *LayoutError) Is(target error) bool { return target == ErrLayout }
