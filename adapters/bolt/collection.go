package bolt

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/record"
)

// Collection has the objects of one kind. It is a store.Collection whose cache is never behind. A write
// also fails with store.ErrInvalid if the object's name is not UTF-8 or is longer than 32 KiB, or if the
// object can't be written as JSON, such as a time after the year 9999. In other text that is not UTF-8,
// invalid bytes are replaced by U+FFFD.
//
// Reads come from memory. A write becomes visible once it is on the disk. Concurrent writes share
// commits. A UID is the kind and 128 random bits, so that it is unique, even after a backup was restored.
type Collection[T object.Object[T]] struct {
	db     *DB
	bucket []byte
	codec  codec[T]
	memory *store.Memory[T]

	mu           sync.RWMutex
	damagedByKey map[object.Key]*DamagedError // guarded by mu
	damagedKeys  []*DamagedError              // with DamageKey, so they have no key; guarded by mu

	// These belong to the committer during a transaction.
	batch   *store.Batch[T] // nil while nothing is staged
	records *bbolt.Bucket
	summary kindSummary // including staged writes
}

// collection opens the collection of a kind. Call it once for each kind.
func collection[T object.Object[T]](db *DB, kind string, indexes map[store.Index]func(T) []string, seal record.Sealer) (*Collection[T], error) {
	c := &Collection[T]{
		db:           db,
		bucket:       []byte(kind),
		codec:        newCodec[T](kind, seal),
		memory:       store.NewMemory(db.options.Now, indexes),
		damagedByKey: make(map[object.Key]*DamagedError),
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	db.kinds = append(db.kinds, c)
	return c, nil
}

// Get implements store.Reader.
func (c *Collection[T]) Get(ctx context.Context, k object.Key) (T, error) {
	var none T
	if err := c.readable(ctx); err != nil {
		return none, err
	}
	if d := c.damageAt(k); d != nil {
		return none, fmt.Errorf("get: %w", d)
	}
	return c.memory.Get(ctx, k)
}

// List implements store.Reader. While objects of the kind are damaged, it returns the others that match
// the query, and also an error: the *DamagedError of one of the damaged objects.
func (c *Collection[T]) List(ctx context.Context, q store.Query) ([]T, error) {
	if err := c.readable(ctx); err != nil {
		return nil, err
	}
	objects, err := c.memory.List(ctx, q)
	if err != nil {
		return objects, err
	}
	if damaged := c.damaged(); len(damaged) > 0 {
		return objects, fmt.Errorf("list: %d objects can't be read: %w", len(damaged), damaged[0])
	}
	return objects, nil
}

// Live returns a reader that returns the same as c. In addition it fails if the stored state is not
// known, such as after ErrUncertain.
func (c *Collection[T]) Live() store.Reader[T] { return live[T]{c} }

type live[T object.Object[T]] struct{ c *Collection[T] }

// Get implements store.Reader.
func (l live[T]) Get(ctx context.Context, k object.Key) (T, error) {
	if err := l.certain(ctx); err != nil {
		var none T
		return none, err
	}
	return l.c.Get(ctx, k)
}

// List implements store.Reader.
func (l live[T]) List(ctx context.Context, q store.Query) ([]T, error) {
	if err := l.certain(ctx); err != nil {
		return nil, err
	}
	return l.c.List(ctx, q)
}

// certain returns an error if the stored state is not known.
func (l live[T]) certain(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.c.db.usable()
}

// Create implements store.Collection.
func (c *Collection[T]) Create(ctx context.Context, o T) (T, error) {
	return c.write(ctx, "create", keyIn(o), func() (T, error) { return c.batch.Create(o) })
}

// Update implements store.Collection.
func (c *Collection[T]) Update(ctx context.Context, o T) (T, error) {
	return c.write(ctx, "update", keyIn(o), func() (T, error) { return c.batch.Update(o) })
}

// UpdateStatus implements store.Collection.
func (c *Collection[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	return c.write(ctx, "update status of", keyIn(o), func() (T, error) { return c.batch.UpdateStatus(o) })
}

// Delete implements store.Collection.
func (c *Collection[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	_, err := c.write(ctx, "delete", k, func() (none T, err error) { return none, c.batch.Delete(k, uid) })
	return err
}

// Watch implements store.Collection. It ends with ErrClosed when the DB is
// closed.
func (c *Collection[T]) Watch(ctx context.Context) iter.Seq2[store.Change[T], error] {
	return func(yield func(store.Change[T], error) bool) {
		open, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.db.life, cancel)()
		for change, err := range c.memory.Watch(open) {
			if !yield(change, err) {
				return
			}
		}
		if ctx.Err() == nil {
			yield(store.Change[T]{}, fmt.Errorf("watch: %w", ErrClosed))
		}
	}
}

// readable returns an error if ctx has ended or the DB is closed.
func (c *Collection[T]) readable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.db.life.Err() != nil {
		return ErrClosed
	}
	return nil
}

// write lets the committer call the function stage in a transaction, and returns the result once it is
// committed. verb is for errors.
func (c *Collection[T]) write(ctx context.Context, verb string, k object.Key, stage func() (T, error)) (T, error) {
	var result, none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	err := c.db.submit(ctx, func(tx *bbolt.Tx) (err error) {
		if d := c.damageAt(k); d != nil {
			return fmt.Errorf("%s: %w", verb, d)
		}
		c.enlist(tx)
		result, err = stage()
		return err
	})
	if err != nil {
		return none, err
	}
	return result, nil
}

// enlist makes the collection part of the current transaction.
func (c *Collection[T]) enlist(tx *bbolt.Tx) {
	if c.batch == nil {
		c.records = tx.Bucket(c.bucket)
		c.batch = c.memory.Begin(journal[T]{c})
		c.summary = c.db.file.kinds[c.name()]
		c.db.commits.enlisted = append(c.db.commits.enlisted, c)
	}
}

// journal implements store.Journal: it writes the records of staged writes to the transaction.
type journal[T object.Object[T]] struct{ c *Collection[T] }

// UID implements store.Journal.
func (j journal[T]) UID() string { return j.c.codec.kind + "-" + strings.ToLower(rand.Text()) }

// Put implements store.Journal.
func (j journal[T]) Put(o T) (T, error) {
	key, stored, same, err := j.c.codec.encode(o)
	if err != nil {
		return same, err
	}
	j.c.subtract(key)
	j.c.summary.add(stored)
	return same, j.c.db.commits.noteWrite(j.c.records.Put(key, stored))
}

// Drop implements store.Journal.
func (j journal[T]) Drop(k object.Key) error {
	key, err := rawKey(k)
	if err != nil {
		return err
	}
	return j.c.drop(key)
}

// drop deletes the record with a raw key.
func (c *Collection[T]) drop(key []byte) error {
	c.subtract(key)
	return c.db.commits.noteWrite(c.records.Delete(key))
}

// subtract removes the stored record of a key, if there is one, from the summary.
func (c *Collection[T]) subtract(key []byte) {
	if stored := c.records.Get(key); stored != nil {
		c.summary.remove(stored)
	}
}

// writeLastVersion stores the last version that was assigned.
func (c *Collection[T]) writeLastVersion() error {
	c.summary.Version = c.batch.Versions()
	return c.records.SetSequence(c.summary.Version)
}

func (c *Collection[T]) stagedSummary() kindSummary { return c.summary }

func (c *Collection[T]) finish(committed bool) {
	if committed {
		c.batch.Publish()
	}
	c.batch, c.records = nil, nil
}

func (c *Collection[T]) name() string { return c.codec.kind }

func (c *Collection[T]) bucketName() []byte { return c.bucket }

func (c *Collection[T]) damageAt(k object.Key) *DamagedError {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.damagedByKey[k]
}

// damaged returns the damaged objects: first those with a key, in the order of their keys.
func (c *Collection[T]) damaged() []*DamagedError {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := slices.SortedFunc(maps.Values(c.damagedByKey), func(a, b *DamagedError) int { return slices.Compare(a.raw, b.raw) })
	return append(all, c.damagedKeys...)
}

// discard deletes the record of a damaged object.
func (c *Collection[T]) discard(ctx context.Context, d *DamagedError) error {
	err := c.db.submit(ctx, func(tx *bbolt.Tx) error {
		if !slices.Contains(c.damaged(), d) {
			return fmt.Errorf("discard %s %s: %w", d.Kind, d.Key, store.ErrNotFound)
		}
		c.enlist(tx)
		return c.drop(d.raw)
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.damagedByKey, d.Key)
	c.damagedKeys = slices.DeleteFunc(c.damagedKeys, func(e *DamagedError) bool { return e == d })
	return nil
}

// keyIn returns the key of an object that may be nil.
func keyIn[T object.Object[T]](o T) object.Key {
	var none T
	if o == none {
		return object.Key{}
	}
	return o.ObjectMeta().Key
}
