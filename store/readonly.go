package store

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/object"
)

// ErrReadOnly is the error of a write to a read-only store, see ReadOnly.
var ErrReadOnly = errors.New("read-only")

// BlockedWrite is a write to a read-only store.
type BlockedWrite struct {
	Verb Verb
	Key  object.Key
}

// String returns the verb and the object: "update fleet/a".
func (w BlockedWrite) String() string { return string(w.Verb) + " " + w.Key.String() }

// ReadOnly returns a read-only view of c. Reads and watches are c's; no write reaches c. Each write
// is checked against a live read:
//   - A write that breaks the rules of Collection (not found, conflict, invalid, ...) fails with the
//     same error. What only the store itself can refuse (too large, forbidden, ...) is not predicted.
//   - A deletion of an object that is already being deleted succeeds.
//   - Any other write is passed to blocked, which must be safe for concurrent use, and fails with
//     ErrReadOnly.
func ReadOnly[T object.Object[T]](c Collection[T], blocked func(context.Context, BlockedWrite)) Collection[T] {
	return &readOnly[T]{c, blocked}
}

type readOnly[T object.Object[T]] struct {
	Collection[T]
	blocked func(context.Context, BlockedWrite)
}

// Create implements Collection.
func (c *readOnly[T]) Create(ctx context.Context, o T) (T, error) {
	return c.block(ctx, WriteOf(VerbCreate, o, time.Time{}))
}

// Update implements Collection.
func (c *readOnly[T]) Update(ctx context.Context, o T) (T, error) {
	return c.block(ctx, WriteOf(VerbUpdate, o, time.Time{}))
}

// UpdateStatus implements Collection.
func (c *readOnly[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	return c.block(ctx, WriteOf(VerbUpdateStatus, o, time.Time{}))
}

// Delete implements Collection.
func (c *readOnly[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	_, err := c.block(ctx, Write[T]{Verb: VerbDelete, Key: k, UID: uid})
	return err
}

// block returns the error of w. The one write that succeeds is the deletion of an object that is
// being deleted already.
func (c *readOnly[T]) block(ctx context.Context, w Write[T]) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := w.Check(); err != nil {
		return none, err
	}
	stored, err := c.Live().Get(ctx, w.Key)
	switch {
	case errors.Is(err, ErrNotFound):
		stored = none
	case err != nil:
		return none, err
	}
	out, err := w.Apply(stored)
	if err != nil || out.Object == stored {
		return out.Object, err
	}
	c.blocked(ctx, BlockedWrite{w.Verb, w.Key})
	return none, w.Refuse(ErrReadOnly)
}
