package store

import (
	"context"
	"errors"

	"github.com/millwright-go/millwright/object"
)

// ErrWithheld is the error of a write that was kept from its store, see Withhold.
var ErrWithheld = errors.New("withheld")

// Withheld is a write that was kept from its store.
type Withheld struct {
	Verb string // as errors name it: create, update, "update status of" or delete
	Key  object.Key
}

// String returns the verb and the object: "update fleet/a".
func (w Withheld) String() string { return w.Verb + " " + w.Key.String() }

// Withhold returns a read-only c: reads and watches are c's, and no write reaches it. Each write is
// checked by a live read of what is stored at that time. A write that c would refuse is refused in
// the same way. A deletion of an object that is being deleted succeeds. Any other write is passed
// to tell, which must be safe for concurrent use, and fails with ErrWithheld.
func Withhold[T object.Object[T]](c Collection[T], tell func(context.Context, Withheld)) Collection[T] {
	return &withholding[T]{c, tell}
}

type withholding[T object.Object[T]] struct {
	Collection[T]
	tell func(context.Context, Withheld)
}

// Create implements Collection.
func (c *withholding[T]) Create(ctx context.Context, o T) (T, error) {
	return c.hold(ctx, writeOf(creating, o))
}

// Update implements Collection.
func (c *withholding[T]) Update(ctx context.Context, o T) (T, error) {
	return c.hold(ctx, writeOf(updating, o))
}

// UpdateStatus implements Collection.
func (c *withholding[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	return c.hold(ctx, writeOf(reporting, o))
}

// Delete implements Collection.
func (c *withholding[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	_, err := c.hold(ctx, write[T]{verb: deleting, key: k, uid: uid})
	return err
}

// hold answers a write without making it.
func (c *withholding[T]) hold(ctx context.Context, w write[T]) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := w.check(); err != nil {
		return none, err
	}
	stored, err := c.Live().Get(ctx, w.key)
	switch {
	case errors.Is(err, ErrNotFound):
		stored = none
	case err != nil:
		return none, err
	}
	if w.verb != creating || stored != none {
		out, err := w.decide(stored, none)
		if err != nil || out.object == stored {
			return out.object, err
		}
	}
	c.tell(ctx, Withheld{string(w.verb), w.key})
	return none, w.refuse(ErrWithheld)
}
