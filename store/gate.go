package store

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Gate returns a view of c whose writes ask may first. If may returns an error, the write fails with it, and does
// not reach c. Reads and watches are c's. A write that may has let through is not stopped any more.
func Gate[T object.Object[T]](c Collection[T], may func() error) Collection[T] {
	return &gated[T]{c, may}
}

type gated[T object.Object[T]] struct {
	Collection[T]
	may func() error
}

// ask returns why w may not be made.
func (c *gated[T]) ask(ctx context.Context, w Write[T]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.may(); err != nil {
		return w.Refuse(err)
	}
	return nil
}

// Create implements Collection.
func (c *gated[T]) Create(ctx context.Context, o T) (T, error) {
	if err := c.ask(ctx, WriteOf(VerbCreate, o, time.Time{})); err != nil {
		var none T
		return none, err
	}
	return c.Collection.Create(ctx, o)
}

// Update implements Collection.
func (c *gated[T]) Update(ctx context.Context, o T) (T, error) {
	if err := c.ask(ctx, WriteOf(VerbUpdate, o, time.Time{})); err != nil {
		var none T
		return none, err
	}
	return c.Collection.Update(ctx, o)
}

// UpdateStatus implements Collection.
func (c *gated[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	if err := c.ask(ctx, WriteOf(VerbUpdateStatus, o, time.Time{})); err != nil {
		var none T
		return none, err
	}
	return c.Collection.UpdateStatus(ctx, o)
}

// Delete implements Collection.
func (c *gated[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	if err := c.ask(ctx, Write[T]{Verb: VerbDelete, Key: k, UID: uid}); err != nil {
		return err
	}
	return c.Collection.Delete(ctx, k, uid)
}
