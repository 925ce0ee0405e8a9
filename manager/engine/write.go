package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// States are the states that objects of one type have, and the ways between them. Package machine/fsm
// makes them of tables.
type States[T any] interface {
	// Fire verifies that the moves, in their order, lead from the states of before to those of after. It
	// changes neither. seen is what guards look at; a move that has a guard is refused without it. Zero
	// moves stand for none.
	Fire(ctx context.Context, before, after T, seen any, moves ...decision.Move) error
}

// Objects are the objects of one kind as passes see them. They are read, created and deleted as in their
// store. Write is the only way to change one.
type Objects[T object.Object[T]] struct {
	store.Reader[T]
	engine *Engine
	kind   string
	stored store.Collection[T]
	states States[T]
}

// NewObjects returns the objects that a store holds, by the name of their kind. Without a store it
// returns nil. Nil states: objects of the kind have none.
func NewObjects[T object.Object[T]](e *Engine, kind string, c store.Collection[T], states States[T]) *Objects[T] {
	if c == nil {
		return nil
	}
	return &Objects[T]{Reader: c, engine: e, kind: kind, stored: c, states: states}
}

// Live returns a reader of what is stored.
func (o *Objects[T]) Live() store.Reader[T] { return o.stored.Live() }

// Create stores a new object, whose states are those that its kind begins with.
func (o *Objects[T]) Create(ctx context.Context, object T) (T, error) {
	return o.stored.Create(ctx, object)
}

// Delete asks for the deletion of an object.
func (o *Objects[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	return o.stored.Delete(ctx, k, uid)
}

// Write is one change of an object.
type Write[T any] struct {
	Before T // as it was read
	After  T // as it is to be; another value than Before, with its key, UID and version
	// Status says that the status is stored, and nothing else. Otherwise everything else is.
	Status bool
	Moves  []decision.Move // from the states of Before to those of After, in order
	Why    decision.Why    // what Hooks.Transition tells with each move
	Seen   any             // what the guards of the moves look at; nil: nothing
}

// ErrUnexplained is the error of a write whose moves do not lead from the object as it was to the object
// as it is to be. Nothing was stored.
var ErrUnexplained = errors.New("the moves do not explain the change")

// Write fires the moves, and then stores the change if what is stored is still Before. A write whose moves
// are not on the tables, lead elsewhere or are refused by a guard is an [ErrUnexplained]. It wraps the
// error of [States], and nothing is stored. Other errors are the store's. Once the change is stored,
// Hooks.Transition is called with each move, in order. Write returns the object as it is stored.
func (o *Objects[T]) Write(ctx context.Context, w *Write[T]) (after T, err error) {
	if err := o.Check(ctx, w); err != nil {
		return after, err
	}
	if w.Status {
		after, err = o.stored.UpdateStatus(ctx, w.After)
	} else {
		after, err = o.stored.Update(ctx, w.After)
	}
	if err != nil || o.engine.Hooks.Transition == nil {
		return after, err
	}
	for _, move := range w.Moves {
		if move != (decision.Move{}) {
			o.engine.Hooks.Transition(o.kind, w.Before.ObjectMeta().Key, move, w.Why)
		}
	}
	return after, nil
}

// Check fires the moves and stores nothing: a dry run fails where the write would.
func (o *Objects[T]) Check(ctx context.Context, w *Write[T]) error {
	before, after := w.Before.ObjectMeta(), w.After.ObjectMeta()
	var err error
	switch {
	case before.Key != after.Key || before.UID != after.UID || before.Version != after.Version:
		err = fmt.Errorf("it is not what %s %s was before", o.kind, before.Key)
	case o.states != nil:
		err = o.states.Fire(ctx, w.Before, w.After, w.Seen, w.Moves...)
	default:
		for _, move := range w.Moves {
			if move != (decision.Move{}) {
				err = fmt.Errorf("%v: it has no states", move)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w: %w", o.kind, after.Key, ErrUnexplained, err)
	}
	return nil
}
