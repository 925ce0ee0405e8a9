package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// maxBatch bounds how many writes one commit carries.
const maxBatch = 1024

// request is a write that waits for its commit.
type request struct {
	state atomic.Int32 // waiting, taken or dropped
	// stage checks the write and puts it into the transaction. An error fails only this request.
	stage func(*bbolt.Tx) error
	err   error // valid after done is closed
	done  chan struct{}
}

// These are the states of a request.
const (
	waiting int32 = iota
	taken
	dropped
)

// committer is the state of the goroutine that commits. While one commit waits for the disk, more writes
// queue up. They share the next commit.
type committer struct {
	enlisted []anyCollection // the collections with staged writes in the current transaction
	changed  bool            // something was written to the transaction
	failure  error           // of bbolt: the transaction can't be committed
}

// noteWrite records that the transaction was changed, and a failure of bbolt.
func (c *committer) noteWrite(err error) error {
	c.changed = true
	if err != nil {
		c.failure = err
	}
	return err
}

// errNothingWritten rolls back a transaction in which nothing was written.
var errNothingWritten = errors.New("nothing to commit")

// submit runs stage in a transaction, and returns once the transaction is on disk or has failed. If ctx
// ends before the transaction has begun, nothing is written.
func (db *DB) submit(ctx context.Context, stage func(*bbolt.Tx) error) error {
	r := &request{stage: stage, done: make(chan struct{})}
	if err := db.enqueue(ctx, r); err != nil {
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, dropped) {
			return ctx.Err()
		}
		<-r.done // the commit still uses the caller's object
	}
	return r.err
}

// enqueue queues a request for the committer.
func (db *DB) enqueue(ctx context.Context, r *request) error {
	db.gate.RLock()
	defer db.gate.RUnlock()
	if db.closed {
		return ErrClosed
	}
	select {
	case db.requests <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run commits requests until the queue is closed.
func (db *DB) run() {
	defer close(db.ended)
	var batch []*request
	for r := range db.requests {
		batch = append(batch[:0], r)
		for more := true; more && len(batch) < maxBatch; {
			select {
			case next, open := <-db.requests:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		db.commit(batch)
		clear(batch)
	}
}

// commit writes a batch to the file, makes it visible to readers, and lets its callers return.
func (db *DB) commit(batch []*request) {
	batch = slices.DeleteFunc(batch, func(r *request) bool { return !r.state.CompareAndSwap(waiting, taken) })
	err := db.usable()
	if err == nil {
		err = db.write(batch)
	}
	for _, c := range db.commits.enlisted {
		if err == nil {
			db.file.kinds[c.name()] = c.stagedSummary()
		}
		c.finish(err == nil)
	}
	db.commits = committer{enlisted: db.commits.enlisted[:0]}
	for _, r := range batch {
		if err != nil {
			r.err = err
		}
		close(r.done)
	}
}

// write puts a batch into one transaction. A request that fails does not fail the others, unless bbolt
// fails.
func (db *DB) write(batch []*request) error {
	var commitNumber uint64 // counts commits, for maybeCommitted; 0: the commit failed before it got one
	err, panicked := catchPanic(func() error {
		return db.update(func(tx *bbolt.Tx) (err error) {
			for _, r := range batch {
				if r.err = r.stage(tx); db.commits.failure != nil {
					return db.commits.failure
				}
			}
			if !db.commits.changed {
				return errNothingWritten
			}
			if commitNumber, err = tx.Bucket(aboutBucket).NextSequence(); err != nil {
				return err
			}
			for _, c := range db.commits.enlisted {
				if err := c.writeLastVersion(); err != nil {
					return err
				}
			}
			return writeSummary(tx, db.stagedSummaries())
		})
	})
	db.panicked = panicked
	if err == nil { // if the file is no longer at the path, the write may be lost
		err = db.checkPath()
	}
	switch {
	case err == nil || errors.Is(err, errNothingWritten):
		return nil
	case errors.Is(err, ErrUncertain):
	case panicked || db.maybeCommitted(commitNumber):
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
		db.broken.Store(&err)
	}
	return err
}

// checkPath returns ErrUncertain if the file was replaced during a commit: the new file may not have the
// commit. If the path can't be read for another reason, the commit counts: it is in our file, and the
// next one checks the path again before it begins.
func (db *DB) checkPath() error {
	err := requireSame(db.file.path, db.file.info)
	if !errors.Is(err, ErrReplaced) {
		return nil
	}
	err = fmt.Errorf("%w: %w", ErrUncertain, err)
	db.broken.Store(&err)
	return err
}

// maybeCommitted reports whether a failed commit may be in the file after all. It is certainly not there only
// if the file can be read, and either its commit counter is lower than number, or number is 0: the commit
// failed before it got a number.
func (db *DB) maybeCommitted(number uint64) bool {
	var last uint64
	err, _ := catchPanic(func() error {
		return db.file.View(func(tx *bbolt.Tx) error {
			last = tx.Bucket(aboutBucket).Sequence()
			return nil
		})
	})
	return err != nil || number != 0 && last >= number
}
