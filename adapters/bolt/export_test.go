package bolt

import (
	"bytes"
	"time"

	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// OpenKind opens a collection of a kind that DB has no method for, such as a test's own.
func OpenKind[T object.Object[T]](db *DB, kind string, indexes map[store.Index]func(T) []string) (*Collection[T], error) {
	return collection(db, kind, indexes, nil)
}

// OpenRaw is Open with options for bbolt.
func OpenRaw(path string, options Options, raw bbolt.Options) (*DB, error) {
	return open(path, options, raw)
}

// InterceptCommits makes later commits call hook. It may call commit, which makes the commit.
func (db *DB) InterceptCommits(hook func(commit func() error) error) {
	db.update = func(write func(*bbolt.Tx) error) error {
		return hook(func() error { return db.file.Update(write) })
	}
}

// Record returns the raw key and the record of o, and o as it would be read again.
func Record[T object.Object[T]](o T) (key, record []byte, same T, err error) {
	c := newCodec[T]("thing", nil)
	return c.encode(o)
}

// FromRecord returns the object of a record.
func FromRecord[T object.Object[T]](key, record []byte) (T, *DamagedError) {
	c := newCodec[T]("thing", nil)
	return c.decode(key, record)
}

// NewRecord returns a record with this content and the right checksum.
func NewRecord(key, content []byte) []byte { return newRecord(key, content) }

// UpdateSummary makes the stored summary of all records match the file, for tests that change the file without
// the store. Otherwise Open would report the change as damage. Call it at the end of tx.
func UpdateSummary(tx *bbolt.Tx) error {
	if tx.Bucket(aboutBucket) == nil {
		return nil
	}
	kinds := map[string]kindSummary{}
	err := tx.ForEach(func(name []byte, records *bbolt.Bucket) error {
		if bytes.Equal(name, aboutBucket) {
			return nil
		}
		t := kindSummary{Version: records.Sequence()}
		err := records.ForEach(func(_, record []byte) error { t.add(record); return nil })
		kinds[string(name)] = t
		return err
	})
	if err != nil {
		return err
	}
	return writeSummary(tx, kinds)
}

// OnWaiting calls do each time that Open finds the file locked and waits.
func (o *Options) OnWaiting(do func()) { o.waiting = do }

// Kinds returns the names of all kinds.
func (db *DB) Kinds() (names []string) {
	for _, k := range db.kinds {
		names = append(names, k.name())
	}
	return names
}

// Syncs reports whether commits wait for the disk.
func (db *DB) Syncs() bool { return !db.file.NoSync && !db.file.NoGrowSync }

// Queued returns how many writes wait for the commit after the present one.
func (db *DB) Queued() int { return len(db.requests) }

// Closing reports whether Close has begun.
func (db *DB) Closing() bool {
	db.gate.RLock()
	defer db.gate.RUnlock()
	return db.closed
}

// Patience returns how long Open would wait for the file.
func (o Options) Patience() time.Duration { return time.Until(o.deadline()) }
