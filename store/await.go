package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/object"
)

// AwaitError says what a call of Await was still waiting for when it ended.
type AwaitError struct {
	Key     object.Key
	Missing string // what the object lacked when it was last seen
	Err     error  // the cause of the end of the context, the error of the watch, or ErrNotFound
}

// Error implements error.
func (e *AwaitError) Error() string {
	return fmt.Sprintf("waiting for %s: still missing: %s: %v", e.Key, e.Missing, e.Err)
}

// Unwrap returns Err.
func (e *AwaitError) Unwrap() error { return e.Err }

// Await watches one object until missing returns "" for it, and returns the object. It calls missing
// with the object as it is, and again with each change, one call at a time; so missing can also
// report the progress. An object that does not exist yet is waited for.
//
// An error is always an *AwaitError. The wait ends with one when ctx ends, when the object is gone
// that missing has seen, and when the watch breaks.
func Await[T object.Object[T]](ctx context.Context, c Collection[T], k object.Key, missing func(T) string) (T, error) {
	var none T
	failed := &AwaitError{Key: k, Missing: "the object"}
	for change, err := range c.Watch(ctx) {
		o := change.New
		switch {
		case err != nil:
			failed.Err = err
			return none, failed
		case o == none && change.Old != none && change.Old.ObjectMeta().Key == k:
			failed.Err = ErrNotFound
			return none, failed
		case o == none || o.ObjectMeta().Key != k:
			continue
		}
		if failed.Missing = missing(o); failed.Missing == "" {
			return o, nil
		}
	}
	if failed.Err = context.Cause(ctx); failed.Err == nil {
		failed.Err = errWatchEnded
	}
	return none, failed
}

var errWatchEnded = errors.New("the watch ended by itself")
