package store

import (
	"context"
	"iter"

	"github.com/millwright-go/millwright/object"
)

// Mirror is a cache of objects of one kind that another store keeps, such as an API server. The
// program that follows that store updates the Mirror. The Mirror answers the reads of a Collection,
// and its watches keep the rules of Collection. NewMirror makes it. It is safe for concurrent use.
//
// Objects are kept as they are given, with the UIDs and versions of the other store. They must not
// be changed from then on.
type Mirror[T object.Object[T]] struct{ memory *Memory[T] }

// NewMirror returns an empty Mirror for the kind T. The rules for indexes are
// those of NewMemory.
func NewMirror[T object.Object[T]](indexes map[Index]func(T) []string) *Mirror[T] {
	return &Mirror[T]{memory: NewMemory(nil, indexes)}
}

// Get implements Reader.
func (m *Mirror[T]) Get(ctx context.Context, k object.Key) (T, error) { return m.memory.Get(ctx, k) }

// List implements Reader.
func (m *Mirror[T]) List(ctx context.Context, q Query) ([]T, error) { return m.memory.List(ctx, q) }

// Watch implements Collection's Watch. It never yields an error.
func (m *Mirror[T]) Watch(ctx context.Context) iter.Seq2[Change[T], error] {
	return m.memory.Watch(ctx)
}

// Put makes o the object of its key. If the key has an object of another UID, that object is gone
// first. If it has one of the same UID and version, Put does nothing.
func (m *Mirror[T]) Put(o T) {
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	m.put(o)
}

// Drop removes the object of k, if there is one.
func (m *Mirror[T]) Drop(k object.Key) {
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	if m.memory.objects[k] != nil {
		m.memory.remove(k)
	}
}

// Replace replaces all objects by these, in one step.
func (m *Mirror[T]) Replace(objects []T) {
	stay := make(map[object.Key]bool, len(objects))
	for _, o := range objects {
		stay[o.ObjectMeta().Key] = true
	}
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	for k := range m.memory.objects {
		if !stay[k] {
			m.memory.remove(k)
		}
	}
	for _, o := range objects {
		m.put(o)
	}
}

func (m *Mirror[T]) put(o T) {
	meta := o.ObjectMeta()
	if e := m.memory.objects[meta.Key]; e != nil {
		was := e.object.ObjectMeta()
		if was.UID == meta.UID && was.Version == meta.Version {
			return
		}
		if was.UID != meta.UID {
			m.memory.remove(meta.Key)
		}
	}
	m.memory.put(meta.Key, o)
}
