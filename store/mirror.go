package store

import (
	"context"
	"iter"

	"github.com/millwright-go/millwright/object"
)

// Mirror is a cache of objects of one kind that another store keeps, such as an
// API server. Whoever follows that store brings the Mirror up to date; it then
// answers the reads of a Collection, and its watches keep that type's rules. It
// is made by NewMirror and safe for concurrent use.
//
// Objects are kept as they are given, with the UIDs and versions of the other
// store; nobody may change them from then on.
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

// Watch is that of a Collection. It never yields an error.
func (m *Mirror[T]) Watch(ctx context.Context) iter.Seq2[Change[T], error] {
	return m.memory.Watch(ctx)
}

// Put makes o the object of its key. One of another UID under that key is gone
// first; one of the same UID and version stays, and no watch is told.
func (m *Mirror[T]) Put(o T) {
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	m.put(o)
}

// Drop ends the object of k. There need not be one.
func (m *Mirror[T]) Drop(k object.Key) {
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	if m.memory.objects[k] != nil {
		m.memory.drop(k)
	}
}

// Replace makes these objects all there are, in one step.
func (m *Mirror[T]) Replace(objects []T) {
	stay := make(map[object.Key]bool, len(objects))
	for _, o := range objects {
		stay[o.ObjectMeta().Key] = true
	}
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	for k := range m.memory.objects {
		if !stay[k] {
			m.memory.drop(k)
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
			m.memory.drop(meta.Key)
		}
	}
	m.memory.put(meta.Key, o)
}
