package manager

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// bulk carries out the orders of one parent on its children of type T.
type bulk[T object.Object[T]] struct {
	*parent
	children store.Collection[T]
	// until is the moment from which on no order is issued; zero: there is none.
	until time.Time
}

// errStale says that an order was not issued, since what it was decided on is too old by now.
var errStale = errors.New("the live read that it rests on is too old")

// outcome is what came of one order on one child.
type outcome[T any] struct {
	before T
	after  T     // the zero T: the child is gone, or err says why nothing came of it
	err    error // nil: the order was carried out
}

// order is what is done to one child.
type order[T any] func(context.Context, T) (T, error)

// all carries out do for every child, several at a time.
func (b *bulk[T]) all(ctx context.Context, name string, children []T, do order[T]) []outcome[T] {
	out := make([]outcome[T], len(children))
	b.Each(ctx, len(children), func(i int) {
		out[i].before = children[i]
		if !b.until.IsZero() && !b.Now().Before(b.until) {
			out[i].err = errStale
			return
		}
		out[i].err = b.timed(b.kind, b.key, name, func() (err error) {
			out[i].after, err = do(ctx, children[i])
			return err
		})
	})
	return out
}

// slowly is all in batches of 1, 2, 4, … in order; a batch with a failure is
// the last.
func (b *bulk[T]) slowly(ctx context.Context, name string, children []T, do order[T]) []outcome[T] {
	var out []outcome[T]
	for batch := 1; len(children) > 0 && !anyFailed(out); batch *= 2 {
		n := min(batch, len(children))
		out = append(out, b.all(ctx, name, children[:n], do)...)
		children = children[n:]
	}
	return out
}

// inOrder is all, one child after the other; a failure is the end.
func (b *bulk[T]) inOrder(ctx context.Context, name string, children []T, do order[T]) []outcome[T] {
	var out []outcome[T]
	for i := 0; i < len(children) && !anyFailed(out); i++ {
		out = append(out, b.all(ctx, name, children[i:i+1], do)...)
	}
	return out
}

func anyFailed[T any](out []outcome[T]) bool {
	for i := range out {
		if out[i].err != nil {
			return true
		}
	}
	return false
}

// errTooLate: the names of a reservation may no longer be used.
var errTooLate = codes.New(codes.DeadlineExceeded, "its reservation has run out")

// create creates a child before until; one that exists under its name is
// returned as it is.
func (b *bulk[T]) create(until time.Time) order[T] {
	return func(ctx context.Context, child T) (T, error) {
		if !b.Now().Before(until) {
			var none T
			return none, fmt.Errorf("create %s: %w", child.ObjectMeta().Key, errTooLate)
		}
		made, err := b.children.Create(ctx, child)
		if errors.Is(err, store.ErrAlreadyExists) {
			return b.children.Live().Get(ctx, child.ObjectMeta().Key)
		}
		return made, err
	}
}

// update writes a child; one that is gone needs nothing any more.
func (b *bulk[T]) update(ctx context.Context, child T) (T, error) {
	after, err := b.children.Update(ctx, child)
	if errors.Is(err, store.ErrNotFound) {
		var none T
		return none, nil
	}
	return after, err
}

// remove asks for a child's deletion. What is returned stands for it until the
// next read: the child, marked as being deleted.
func (b *bulk[T]) remove(ctx context.Context, child T) (T, error) {
	var none T
	meta := child.ObjectMeta()
	err := b.children.Delete(ctx, meta.Key, meta.UID)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
		return none, nil // that child is gone, whoever has its name now
	}
	if err != nil {
		return none, err
	}
	marked := copyOf(child)
	marked.ObjectMeta().DeletedAt = b.Now().Truncate(time.Second)
	return marked, nil
}

// copyOf is a copy of an object that shares what its fields lead to.
func copyOf[T object.Object[T]](o T) T {
	was := reflect.ValueOf(o)
	copied := reflect.New(was.Type().Elem())
	copied.Elem().Set(was.Elem())
	c, _ := copied.Interface().(T) // it is a T: of the same type as o
	return c
}

// refusal is what a decision should know of a batch: the first error that is
// not a matter of the shell. An order that was not issued is none. A conflict, a
// child that is gone and the end of the context end the pass.
func refusal[T any](ctx context.Context, out []outcome[T]) (*machine.Outcome, error) {
	for i := range out {
		err := out[i].err
		switch {
		case err == nil, errors.Is(err, errStale):
			continue
		case interrupted(ctx, err) != nil || errors.Is(err, store.ErrConflict):
			return nil, err
		case errors.Is(err, store.ErrNotFound):
			return nil, fmt.Errorf("%w: %w", store.ErrConflict, err)
		}
		code := codes.Of(err)
		switch {
		case errors.Is(err, store.ErrInvalid):
			code = codes.InvalidArgument
		case code == codes.Unknown:
			code = codes.Unavailable
		}
		return &machine.Outcome{Code: code, Message: err.Error()}, nil
	}
	return nil, nil //nolint:nilnil // nothing was refused
}

// divide sorts children, as observed and then changed by what came of orders,
// by who owns them: the parent with this UID, or nobody. Others' drop out.
func divide[T object.Object[T]](uid string, out []outcome[T], lists ...[]T) (owned, orphans []T) {
	var none T
	after := make(map[object.Key]T, len(out))
	for _, o := range out {
		if o.err == nil {
			after[o.before.ObjectMeta().Key] = o.after
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
