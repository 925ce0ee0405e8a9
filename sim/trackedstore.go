package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// trackedStore keeps all objects of one kind and delivers every change to the processes. Tests and the
// world's own actors use it directly; nothing fails there.
type trackedStore[T object.Object[T]] struct {
	store.Collection[T]
	w       *World
	kind    manager.Kind
	indexes map[store.Index]func(T) []string
}

func newTrackedStore[T object.Object[T]](w *World, kind manager.Kind, indexes map[store.Index]func(T) []string) *trackedStore[T] {
	return &trackedStore[T]{store.NewMemory(func() time.Time { return w.clock.now }, indexes), w, kind, indexes}
}

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
		if !s.w.past.acting {
			s.w.past.excused[before.ObjectMeta().UID] = true
		}
		s.tell(k)
	}
	return err
}

// tell delivers an object to every process, sooner or later, as it is now.
func (s *trackedStore[T]) tell(k object.Key) {
	now, err := s.Collection.Get(context.Background(), k)
	if err != nil {
		var none T
		now = none
	}
	s.w.past.changed = true
	if err != nil && s.kind == manager.KindMachine {
		s.w.emit(machineGone{k.Name})
	}
	if n, ok := any(now).(*machine.Node); ok && s.w.apps != nil {
		s.w.apps.soon()
		if n != nil {
			s.w.agentLooks(n)
			s.w.emit(nodeStored{n})
		} else {
			s.w.apps.lost(k.Name) // as a cluster collects them
		}
	}
	switch o := any(now).(type) {
	case *machine.Machine:
		if o != nil {
			s.w.sawMachine(o)
		}
	case *machineset.Set:
		if o != nil {
			s.w.sawSet(o)
		}
	case *machinepool.Pool:
		if o != nil {
			s.w.emit(poolStored{o})
		} else {
			s.w.emit(poolGone{k})
			delete(s.w.bootstraps, k)
			s.w.remake(k)
		}
	}
	for _, r := range s.w.recorders {
		r.told(k, now)
	}
	for _, notify := range s.w.audience[s.kind] {
		notify(k, now)
	}
}

func (s *trackedStore[T]) all() []T {
	objects, _ := s.Collection.List(context.Background(), store.Query{}) // a store in memory answers
	return objects
}
