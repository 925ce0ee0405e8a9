package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// bulk carries out the orders of one parent on its children of type T.
type bulk[T object.Object[T]] struct {
	*shell
	kind     Kind // of the parent
	key      object.Key
	children store.Collection[T]
}

// results are children after an order was carried out; the zero T: it is gone.
type results[T any] map[object.Key]T

// all carries out do for every child and returns what came of it, with the
// error of each child for which nothing came of it.
func (b *bulk[T]) all(ctx context.Context, name string, children []T, do func(context.Context, T) (T, error)) (results[T], []error) {
	after := make([]T, len(children))
	errs := make([]error, len(children))
	b.Each(ctx, len(children), func(i int) {
		errs[i] = b.timed(b.kind, b.key, name, func() (err error) {
			after[i], err = do(ctx, children[i])
			return err
		})
	})
	out := make(results[T], len(children))
	for i, child := range children {
		if errs[i] == nil {
			out[child.ObjectMeta().Key] = after[i]
		}
	}
	return out, errs
}

// slowly is all in batches of 1, 2, 4, … in order; a batch with a failure is
// the last.
func (b *bulk[T]) slowly(ctx context.Context, name string, children []T, do func(context.Context, T) (T, error)) (results[T], []error) {
	out := make(results[T], len(children))
	for batch := 1; len(children) > 0; batch *= 2 {
		n := min(batch, len(children))
		made, errs := b.all(ctx, name, children[:n], do)
		maps.Copy(out, made)
		if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
			return out, errs
		}
		children = children[n:]
	}
	return out, nil
}

// inOrder is all, one child after the other; a failure is the end.
func (b *bulk[T]) inOrder(ctx context.Context, name string, children []T, do func(context.Context, T) (T, error)) (results[T], []error) {
	out := make(results[T], len(children))
	for i := range children {
		made, errs := b.all(ctx, name, children[i:i+1], do)
		maps.Copy(out, made)
		if errs[0] != nil {
			return out, errs
		}
	}
	return out, nil
}

// create creates a child before until; one that exists under its name is
// returned as it is.
func (b *bulk[T]) create(until time.Time) func(context.Context, T) (T, error) {
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

// errTooLate: the names of a reservation may no longer be used.
var errTooLate = codes.New(codes.DeadlineExceeded, "its reservation has run out")

// update writes a child; one that is gone needs nothing any more.
func (b *bulk[T]) update(ctx context.Context, child T) (T, error) {
	after, err := b.children.Update(ctx, child)
	if errors.Is(err, store.ErrNotFound) {
		var none T
		return none, nil
	}
	return after, err
}

// remove asks for a child's deletion and returns what is left of it.
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
	marked := child.Clone()
	marked.ObjectMeta().DeletedAt = b.Now().Truncate(time.Second)
	return marked, nil
}

// refusal is what a decision should know of a batch: the first error that is
// not a matter of the shell. A conflict, a child that is gone and the end of the
// context end the pass.
func refusal(ctx context.Context, errs []error) (*machine.Outcome, error) {
	for _, err := range errs {
		if err == nil {
			continue
		}
		if ctx.Err() != nil || errors.Is(err, store.ErrConflict) {
			return nil, err
		}
		if errors.Is(err, store.ErrNotFound) {
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

// divide sorts children, as observed and then changed by results, by who owns
// them: the parent with this UID, or nobody. Others' children drop out.
func divide[T object.Object[T]](uid string, after results[T], lists ...[]T) (owned, orphans []T) {
	var none T
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
