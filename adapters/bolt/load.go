package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/object"
)

var errNoBucket = errors.New("the kind has no bucket yet")

// loadChunk is how many records a goroutine decodes at a time.
const loadChunk = 256

// loaded is the result of reading a record.
type loaded[T object.Object[T]] struct {
	key, record []byte // in the memory map: valid only during the transaction
	object      T
	damaged     *DamagedError
}

// load reads all records of the kind into memory.
func (c *Collection[T]) load() error {
	err := c.db.file.View(func(tx *bbolt.Tx) error {
		records := tx.Bucket(c.bucket)
		if records == nil {
			return errNoBucket
		}
		var all []loaded[T]
		err := records.ForEach(func(key, record []byte) error {
			all = append(all, loaded[T]{key: key, record: record})
			return nil
		})
		if err != nil {
			return err
		}
		if err := c.decodeAll(all); err != nil {
			return err
		}
		c.fill(all, records.Sequence())
		return nil
	})
	switch {
	case errors.Is(err, errNoBucket):
		return c.createBucket()
	case err != nil:
		return err
	}
	return c.checkRecordSum()
}

// createBucket creates the bucket of the kind.
func (c *Collection[T]) createBucket() error {
	kinds := c.db.file.kinds
	kinds[c.name()] = kindSummary{}
	return c.db.file.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket(c.bucket); err != nil {
			return err
		}
		return writeSummary(tx, kinds)
	})
}

// checkRecordSum returns ErrDamaged if the records, although none of them is damaged, are not those of
// the last commit. It returns nil if a record is damaged, because the sum differs then anyway.
func (c *Collection[T]) checkRecordSum() error {
	stored, known := c.db.file.stored[c.name()]
	if !known || stored.Sum == c.db.file.kinds[c.name()].Sum || len(c.damaged()) > 0 {
		return nil
	}
	return fmt.Errorf("%w: the records of kind %q are not those that were stored last", ErrDamaged, c.name())
}

// decodeAll decodes the records, on all processors.
func (c *Collection[T]) decodeAll(all []loaded[T]) error {
	var decoders sync.WaitGroup
	parts := make(chan []loaded[T])
	failures := make(chan error, runtime.GOMAXPROCS(0))
	for range cap(failures) {
		decoders.Go(func() {
			for part := range parts {
				err, _ := catchPanic(func() error { c.decodePart(part); return nil })
				if err != nil {
					select {
					case failures <- err:
					default:
					}
				}
			}
		})
	}
	for len(all) > 0 {
		n := min(loadChunk, len(all))
		parts <- all[:n]
		all = all[n:]
	}
	close(parts)
	decoders.Wait()
	close(failures)
	return <-failures
}

func (c *Collection[T]) decodePart(part []loaded[T]) {
	for i := range part {
		l := &part[i]
		l.object, l.damaged = c.codec.decode(l.key, l.record)
	}
}

// fill loads the objects into the memory. versions is the last version that was assigned. If another
// program has written the file, an object may have a higher version, so that one counts.
func (c *Collection[T]) fill(all []loaded[T], versions uint64) {
	objects := make([]T, 0, len(all))
	for i := range all {
		switch l := &all[i]; {
		case l.damaged == nil:
			objects = append(objects, l.object)
			if v, err := strconv.ParseUint(l.object.ObjectMeta().Version, 10, 64); err == nil {
				versions = max(versions, v)
			}
		case l.damaged.Damage == DamageKey:
			c.damagedKeys = append(c.damagedKeys, l.damaged)
		default:
			c.damagedByKey[l.damaged.Key] = l.damaged
		}
	}
	c.memory.Load(objects, versions)
}
