package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Await watches one object until missing returns "" for it, and returns the object. It calls
// missing with the object as it is, and again with each change, one call at a time; so missing can
// also report the progress. It never calls missing with a spec older than the one that was stored
// when Await began, even if the collection answers from a cache. So it is safe right after an
// Edit of the spec.
//
// The wait ends with an error
//   - when there is no object of that key, or it is gone later: ErrNotFound;
//   - when ctx ends: its cause;
//   - when a read fails or the watch breaks: its error.
//
// The error says what was still missing. AwaitGone waits for the end of an object.
func Await[T object.Object[T]](ctx context.Context, c Collection[T], k object.Key, missing func(T) string) (T, error) {
	var none T
	unmet := "the object"
	failed := func(err error) (T, error) {
		return none, fmt.Errorf("waiting for %s: still missing: %s: %w", k, unmet, err)
	}
	w := waiter[T]{Collection: c, key: k}
	if err := w.readLive(ctx); err != nil {
		return failed(cmp.Or(context.Cause(ctx), err))
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	unseen, seen := context.WithCancel(ctx)
	defer seen()
	go cancelIfGone(unseen, c, k, end)
	for change, err := range c.Watch(ctx) {
		if err != nil {
			return failed(err)
		}
		o, err := w.current(ctx, change)
		if err != nil {
			return failed(cmp.Or(context.Cause(ctx), err))
		}
		if o == none {
			continue
		}
		seen()
		if unmet = missing(o); unmet == "" {
			return o, nil
		}
	}
	return failed(cmp.Or(context.Cause(ctx), errWatchEnded))
}

// AwaitGone waits until the object of that key is gone, or returns at once if there is none. A
// deployment is gone once all its machines are. The other errors are those of Await.
func AwaitGone[T object.Object[T]](ctx context.Context, c Collection[T], k object.Key) error {
	_, err := Await(ctx, c, k, func(T) string { return "its end" })
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

var errWatchEnded = errors.New("the watch ended by itself")

// waiter knows which object Await waits for, and how old a state of it may be.
type waiter[T object.Object[T]] struct {
	Collection[T]
	key        object.Key
	uid        string
	generation int64
}

// readLive remembers which object is stored now, and its generation.
func (w *waiter[T]) readLive(ctx context.Context) error {
	o, err := w.Live().Get(ctx, w.key)
	if err == nil {
		w.uid, w.generation = o.ObjectMeta().UID, o.ObjectMeta().Generation
	}
	return err
}

// current returns the object of a change, or nil if the change is about another object or is older
// than what was read live. If the object is gone, it returns ErrNotFound.
func (w *waiter[T]) current(ctx context.Context, change Change[T]) (T, error) {
	var none T
	o, gone := change.New, change.New == none
	if gone {
		o = change.Old
	}
	if o == none || o.ObjectMeta().Key != w.key {
		return none, nil
	}
	switch meta := o.ObjectMeta(); {
	case gone && meta.UID == w.uid:
		return none, ErrNotFound
	case gone:
		return none, nil // an earlier object of that name
	case meta.UID != w.uid: // an earlier or a later object of that name
		if err := w.readLive(ctx); err != nil {
			return none, err
		}
	}
	if meta := o.ObjectMeta(); meta.UID != w.uid || meta.Generation < w.generation {
		return none, nil
	}
	return o, nil
}

// cancelIfGone ends the wait if the object is deleted between the first read and the start of the
// watch, which then never reports it. It polls once a second until unseen ends, which it does when the
// watch has delivered the object.
func cancelIfGone[T object.Object[T]](unseen context.Context, c Collection[T], k object.Key, end context.CancelCauseFunc) {
	for unseen.Err() == nil {
		pause, over := context.WithTimeout(unseen, time.Second)
		<-pause.Done()
		over()
		if _, err := c.Live().Get(unseen, k); errors.Is(err, ErrNotFound) {
			end(ErrNotFound)
			return
		}
	}
}
