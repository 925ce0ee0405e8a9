package sim

import (
	"context"
	"strconv"

	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// trackedStore keeps all objects of one kind, and tells of every change. Tests and the world's own
// actors use it directly; nothing fails there.
type trackedStore[T object.Object[T]] struct {
	store.Collection[T]
	g       *ground
	kind    manager.Kind
	indexes map[store.Index]func(T) []string
	notify  func(object.Key, T) // delivers a change to the process that lives; nil: there is none
}

func newTrackedStore[T object.Object[T]](g *ground, kind manager.Kind, indexes map[store.Index]func(T) []string) *trackedStore[T] {
	return &trackedStore[T]{Collection: store.NewMemory(g.Now, indexes), g: g, kind: kind, indexes: indexes}
}

// These tell of changes.
type (
	// deleting: an object with that UID was deleted, or marked as deleted.
	deleting struct{ uid string }
	// stored: an object was made, changed or deleted. now is the zero T if it is gone.
	stored[T object.Object[T]] struct {
		key object.Key
		now T
	}
)

// Create implements store.Collection.
func (s *trackedStore[T]) Create(ctx context.Context, o T) (T, error) {
	stored, err := s.Collection.Create(ctx, o)
	if err == nil {
		s.tell(stored.ObjectMeta().Key)
	}
	return stored, err
}

// Update implements store.Collection.
func (s *trackedStore[T]) Update(ctx context.Context, o T) (T, error) {
	stored, err := s.Collection.Update(ctx, o)
	if err == nil {
		s.tell(stored.ObjectMeta().Key)
	}
	return stored, err
}

// UpdateStatus implements store.Collection.
func (s *trackedStore[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	stored, err := s.Collection.UpdateStatus(ctx, o)
	if err == nil {
		s.tell(stored.ObjectMeta().Key)
	}
	return stored, err
}

// Delete implements store.Collection.
func (s *trackedStore[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	before, _ := s.Collection.Get(ctx, k)
	err := s.Collection.Delete(ctx, k, uid)
	if err == nil {
		s.g.emit(deleting{before.ObjectMeta().UID})
		s.tell(k)
	}
	return err
}

// tell tells of an object, as it is now.
func (s *trackedStore[T]) tell(k object.Key) {
	now, err := s.Collection.Get(context.Background(), k)
	if err != nil {
		var none T
		now = none
	}
	s.g.changed()
	s.g.emit(stored[T]{k, now})
	if s.notify != nil {
		s.notify(k, now)
	}
}

// load fills a store that is new with objects that there were before the world began.
func (s *trackedStore[T]) load(objects []T) {
	memory, _ := s.Collection.(*store.Memory[T]) // newTrackedStore made it
	for i, o := range objects {
		o.ObjectMeta().Version = strconv.Itoa(i + 1)
	}
	memory.Load(objects, uint64(len(objects)))
}

func (s *trackedStore[T]) all() []T {
	objects, _ := s.Collection.List(context.Background(), store.Query{}) // a store in memory answers
	return objects
}

// nthOf returns the nth object of what is stored, modulo their number. It returns the zero T if
// there is none.
func nthOf[T object.Object[T]](s *trackedStore[T], n int) (o T, found bool) {
	all, _ := s.List(context.Background(), store.Query{}) // a store in memory answers
	if len(all) == 0 {
		return o, false
	}
	return all[((n%len(all))+len(all))%len(all)], true
}
