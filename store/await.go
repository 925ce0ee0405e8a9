package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/object"
)

// Await watches one object until missing returns "" for it, and returns the object. It calls missing
// with the object as it is, and again with each change, one call at a time; so missing can also
// report the progress. An object that does not exist is waited for, also one that is gone already.
//
// The wait ends with an error when ctx ends (its cause), when the object is gone that missing has seen
// (ErrNotFound), and when the watch breaks (its error). The error says what was still missing.
func Await[T object.Object[T]](ctx context.Context, c Collection[T], k object.Key, missing func(T) string) (T, error) {
	var none T
	lacks := "the object"
	failed := func(err error) (T, error) {
		return none, fmt.Errorf("waiting for %s: still missing: %s: %w", k, lacks, err)
	}
	for change, err := range c.Watch(ctx) {
		o := change.New
		switch {
		case err != nil:
			return failed(err)
		case o == none && change.Old != none && change.Old.ObjectMeta().Key == k:
			return failed(ErrNotFound)
		case o == none || o.ObjectMeta().Key != k:
			continue
		}
		if lacks = missing(o); lacks == "" {
			return o, nil
		}
	}
	return failed(cmp.Or(context.Cause(ctx), errWatchEnded))
}

var errWatchEnded = errors.New("the watch ended by itself")
