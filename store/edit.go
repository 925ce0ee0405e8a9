package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/millwright-go/millwright/object"
)

// editAttempts bounds how often an edit is tried if other writers cause conflicts.
const editAttempts = 10

// Edit changes everything but the status of one object. It reads the object live, lets change alter
// a copy, and updates it. On a conflict it retries with a new read, up to 10 attempts in all. So
// change may be called more than once, and must depend on its argument alone.
//
// Edit returns what is stored. It writes nothing if change leaves the copy as it was. Await right
// after a change of the spec sees that change or a later one, on every store. The errors are
//   - that of change, as it is; nothing is written then;
//   - ErrNotFound if there is no object of that key;
//   - ErrConflict if the last attempt met a conflict, too;
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
		return none, wrap(string(VerbCreate), object.Key{}, errNoObject)
	}
	if change == nil {
		change = func(T) error { return nil }
	}
	return edit(ctx, c, o.ObjectMeta().Key, o, change, c.Update)
}

// edit is Edit, with update as the call that writes. If there is no object and initial is not nil,
// edit creates a copy of initial that change has altered.
func edit[T object.Object[T]](
	ctx context.Context, c Collection[T], k object.Key, initial T, change func(T) error, update func(context.Context, T) (T, error),
) (T, error) {
	var none T
	var lost error
	for range editAttempts {
		stored, err := c.Live().Get(ctx, k)
		write := update
		if errors.Is(err, ErrNotFound) && initial != none {
			stored, err, write = initial, nil, c.Create
		}
		if err != nil {
			return none, err
		}
		changed := stored.Clone()
		if err := change(changed); err != nil {
			return none, err
		}
		if stored != initial && reflect.DeepEqual(changed, stored) {
			return stored, nil
		}
		written, err := write(ctx, changed)
		absent := initial != none && errors.Is(err, ErrNotFound) // deleted after the read
		if absent || errors.Is(err, ErrConflict) || errors.Is(err, ErrAlreadyExists) {
			lost = err
			continue
		}
		return written, err
	}
	if !errors.Is(lost, ErrConflict) {
		lost = fmt.Errorf("%w: %w", ErrConflict, lost)
	}
	return none, fmt.Errorf("edited by others too, %d times: %w", editAttempts, lost)
}
