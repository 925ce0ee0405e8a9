package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/millwright-go/millwright/object"
)

// editAttempts bounds how often an edit begins again because another writer was faster.
const editAttempts = 10

// Edit changes everything but the status of one object. It reads the object live, lets change alter
// a copy, and updates it. If another writer was faster, it begins again with what is stored then, up
// to 10 times in all. So change may be called more than once, and must depend on its argument alone.
//
// Edit returns what is stored. It writes nothing if change leaves the copy as it was. Await right
// after Edit sees that change or a later one, on every store. The errors are
//   - that of change, as it is; nothing is written then;
//   - ErrNotFound if there is no object of that key;
//   - ErrConflict if the last attempt was too late as well;
//   - those of Update.
func Edit[T object.Object[T]](ctx context.Context, c Collection[T], k object.Key, change func(T) error) (T, error) {
	var none T
	return edit(ctx, c, k, none, change, c.Update)
}

// EditStatus changes the status of one object, in the same way as Edit.
func EditStatus[T object.Object[T]](ctx context.Context, c Collection[T], k object.Key, change func(T) error) (T, error) {
	var none T
	return edit(ctx, c, k, none, change, c.UpdateStatus)
}

// CreateOrEdit is Edit for an object that may be absent: it then creates a copy of o that change has
// altered. A nil change alters nothing, so that an object that is there stays as it is. An object
// that is being deleted is edited like any other.
func CreateOrEdit[T object.Object[T]](ctx context.Context, c Collection[T], o T, change func(T) error) (T, error) {
	var none T
	if o == none {
		return none, refuse(string(creating), object.Key{}, errNoObject)
	}
	if change == nil {
		change = func(T) error { return nil }
	}
	return edit(ctx, c, o.ObjectMeta().Key, o, change, c.Update)
}

// edit is Edit with the writing call. A blank that is not nil is what to create if there is no object.
func edit[T object.Object[T]](
	ctx context.Context, c Collection[T], k object.Key, blank T, change func(T) error, update func(context.Context, T) (T, error),
) (T, error) {
	var none T
	var late error
	for range editAttempts {
		stored, err := c.Live().Get(ctx, k)
		write := update
		if errors.Is(err, ErrNotFound) && blank != none {
			stored, err, write = blank, nil, c.Create
		}
		if err != nil {
			return none, err
		}
		changed := stored.Clone()
		if err := change(changed); err != nil {
			return none, err
		}
		if stored != blank && reflect.DeepEqual(changed, stored) {
			return stored, nil
		}
		written, err := write(ctx, changed)
		absent := blank != none && errors.Is(err, ErrNotFound) // it went after the read
		if absent || errors.Is(err, ErrConflict) || errors.Is(err, ErrAlreadyExists) {
			late = err
			continue
		}
		return written, err
	}
	if !errors.Is(late, ErrConflict) {
		late = fmt.Errorf("%w: %w", ErrConflict, late)
	}
	return none, fmt.Errorf("edited by others too, %d times: %w", editAttempts, late)
}
