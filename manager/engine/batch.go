package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Batch carries out the orders of a pass on objects of one type. It names and times each, and stops
// where an order must not be given any more.
type Batch[T object.Object[T]] struct {
	*Pass
	Objects *Objects[T]
	// Until is the moment from which on no order is issued. Zero: there is none.
	Until time.Time
}

// errStale says that an order was not issued, since what it was decided on has become too old.
var errStale = errors.New("the live read that it rests on is too old")

// Outcome is what came of one order on one object.
type Outcome[T any] struct {
	Before T
	After  T     // the zero T: the object is gone, or Err says why nothing came of it
	Err    error // nil: the order was carried out
}

// Order is what is done to one object. It returns the object as it is then; the zero T says that it is
// gone.
type Order[T any] func(context.Context, T) (T, error)

// All carries out the order do for every object, several at a time.
func (b *Batch[T]) All(ctx context.Context, name string, objects []T, do Order[T]) []Outcome[T] {
	out := make([]Outcome[T], len(objects))
	b.Each(ctx, len(objects), func(i int) {
		out[i].Before = objects[i]
		if !b.Until.IsZero() && !b.Now().Before(b.Until) {
			out[i].Err = errStale
			return
		}
		out[i].Err = b.Timed(name, func() (err error) {
			out[i].After, err = do(ctx, objects[i])
			return err
		})
	})
	return out
}

// Slowly is All in batches of 1, 2, 4, … in order. A batch with a failure is the last.
func (b *Batch[T]) Slowly(ctx context.Context, name string, objects []T, do Order[T]) []Outcome[T] {
	var out []Outcome[T]
	for batch := 1; len(objects) > 0 && !anyFailed(out); batch *= 2 {
		n := min(batch, len(objects))
		out = append(out, b.All(ctx, name, objects[:n], do)...)
		objects = objects[n:]
	}
	return out
}

// InOrder is All, one object after the other. A failure is the end.
func (b *Batch[T]) InOrder(ctx context.Context, name string, objects []T, do Order[T]) []Outcome[T] {
	var out []Outcome[T]
	for i := 0; i < len(objects) && !anyFailed(out); i++ {
		out = append(out, b.All(ctx, name, objects[i:i+1], do)...)
	}
	return out
}

func anyFailed[T any](out []Outcome[T]) bool {
	for i := range out {
		if out[i].Err != nil {
			return true
		}
	}
	return false
}

// errTooLate says that the time is over until which the names of new objects are reserved.
var errTooLate = codes.New(codes.DeadlineExceeded, "its reservation has run out")

// Create returns the order to create an object before until. If one exists under its name, the outcome
// is that one as it is.
func (b *Batch[T]) Create(until time.Time) Order[T] {
	return func(ctx context.Context, child T) (T, error) {
		if !b.Now().Before(until) {
			var none T
			return none, fmt.Errorf("create %s: %w", child.ObjectMeta().Key, errTooLate)
		}
		made, err := b.Objects.Create(ctx, child)
		if errors.Is(err, store.ErrAlreadyExists) {
			return b.Objects.Live().Get(ctx, child.ObjectMeta().Key)
		}
		return made, err
	}
}

// Change returns the order to change objects of these lists. What it is given is one of them, changed; its
// states stay as they are.
func (b *Batch[T]) Change(lists ...[]T) Order[T] {
	observed := make(map[object.Key]T)
	for _, list := range lists {
		for _, o := range list {
			observed[o.ObjectMeta().Key] = o
		}
	}
	return func(ctx context.Context, child T) (T, error) {
		before, known := observed[child.ObjectMeta().Key]
		if !known {
			var none T
			return none, fmt.Errorf("update %s: %w", child.ObjectMeta().Key, errUnobserved)
		}
		return b.Objects.Write(ctx, &Write[T]{Before: before, After: child})
	}
}

// errUnobserved says that an order is about an object that the pass has not read.
var errUnobserved = fmt.Errorf("it was not read: %w", ErrUnexplained)

// Update is Change, except that an object that is gone is no error.
func (b *Batch[T]) Update(lists ...[]T) Order[T] {
	change := b.Change(lists...)
	return func(ctx context.Context, child T) (T, error) {
		after, err := change(ctx, child)
		if errors.Is(err, store.ErrNotFound) {
			var none T
			return none, nil
		}
		return after, err
	}
}

// Delete asks for an object's deletion. What it returns stands for the object until the next read: a
// copy, marked as being deleted.
func (b *Batch[T]) Delete(ctx context.Context, child T) (T, error) {
	var none T
	meta := child.ObjectMeta()
	err := b.Objects.Delete(ctx, meta.Key, meta.UID)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
		return none, nil // that child is gone, even if another has its name now
	}
	if err != nil {
		return none, err
	}
	marked := copyOf(child)
	marked.ObjectMeta().DeletedAt = b.Now().Truncate(time.Second)
	return marked, nil
}

// copyOf returns a copy of an object that shares what its fields point to.
func copyOf[T object.Object[T]](o T) T {
	was := reflect.ValueOf(o)
	copied := reflect.New(was.Type().Elem())
	copied.Elem().Set(was.Elem())
	c, _ := copied.Interface().(T) // it is a T: of the same type as o
	return c
}

// Refusal is the answer to an order that was refused.
type Refusal struct {
	Code    codes.Code
	Message string
}

// Refused returns what a decision should know of a batch: the first error that is not a matter of the
// engine. That an order was not issued is no error. A conflict, an object that is gone, a change that its
// moves do not explain and the end of the context are returned as errors: they end the pass.
func Refused[T any](ctx context.Context, out []Outcome[T]) (*Refusal, error) {
	for i := range out {
		err := out[i].Err
		switch {
		case err == nil, errors.Is(err, errStale):
			continue
		case Interrupted(ctx, err) != nil || errors.Is(err, store.ErrConflict) || errors.Is(err, ErrUnexplained):
			return nil, err
		case errors.Is(err, store.ErrNotFound):
			return nil, fmt.Errorf("%w: %w", store.ErrConflict, err)
		}
		return &Refusal{Code: CodeOf(err), Message: err.Error()}, nil
	}
	return nil, nil //nolint:nilnil // nothing was refused
}

// Divide returns the objects of lists as they are after the orders: those that the object with this UID
// owns, and those without an owner. Objects of other owners are left out.
func Divide[T object.Object[T]](uid string, out []Outcome[T], lists ...[]T) (owned, orphans []T) {
	var none T
	after := make(map[object.Key]T, len(out))
	for _, o := range out {
		if o.Err == nil {
			after[o.Before.ObjectMeta().Key] = o.After
		}
	}
	for _, list := range lists {
		for _, child := range list {
			if changed, ok := after[child.ObjectMeta().Key]; ok {
				child = changed
			}
			switch {
			case child == none:
			case child.ObjectMeta().OwnedBy(uid):
				owned = append(owned, child)
			case child.ObjectMeta().Owner == nil:
				orphans = append(orphans, child)
			}
		}
	}
	return owned, orphans
}
