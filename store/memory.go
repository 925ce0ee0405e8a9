package store

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Memory is a Collection that lives as long as its process. Reads are never
// stale, cached or live. It is made by NewMemory and safe for concurrent use.
//
// Two stores that see the same calls in the same order hold the same objects
// with the same UIDs and versions, and list them in the same order. Each write
// makes a new version, also one that changes nothing: a controller that writes
// without need wakes itself, and should be seen to do so in a test.
type Memory[T object.Object[T]] struct {
	now   func() time.Time
	blank T      // a zero object: the status that new objects begin with
	kind  string // begins every UID

	mu       sync.RWMutex
	objects  map[object.Key]*entry[T]
	indexes  indexes[T]
	timeline timeline[T]
	uids     uint64
	versions uint64
}

// entry is one object from its creation until it is gone and no watch has to be
// told so any more. An object that is created again under the name of another
// has an entry of its own. Guarded by the lock of Memory.
type entry[T object.Object[T]] struct {
	object T           // the zero T once it is gone
	slots  [][]slot[T] // by number of the index, in the order of its values
	place  place[T]
}

// NewMemory returns an empty store for the kind T, which is a pointer to a
// struct. It takes CreatedAt and DeletedAt from now; nil stands for time.Now.
// indexes yield the values under which an object can be listed, which may be
// several or none, and must depend on nothing but the object. The name "" and
// nil functions are left out. Indexes and the methods of T run while the store
// is locked and must not call it.
//
// A UID is the name of T's struct and a number, such as "machine-17": unique in
// this store, and apart from those of other kinds.
func NewMemory[T object.Object[T]](now func() time.Time, indexes map[Index]func(T) []string) *Memory[T] {
	if now == nil {
		now = time.Now
	}
	m := &Memory[T]{
		now:     now,
		kind:    "object",
		objects: make(map[object.Key]*entry[T]),
		indexes: newIndexes(indexes),
	}
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Pointer {
		m.blank, _ = reflect.New(t.Elem()).Interface().(T)
		if name := t.Elem().Name(); name != "" {
			m.kind = strings.ToLower(name)
		}
	}
	return m
}

// Live returns m itself, which never answers from a cache.
func (m *Memory[T]) Live() Reader[T] { return m }

// Get implements Reader.
func (m *Memory[T]) Get(ctx context.Context, k object.Key) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if k.Name == "" {
		return none, refuse("get", k, errNoName)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	e := m.objects[k]
	if e == nil {
		return none, refuse("get", k, ErrNotFound)
	}
	return e.object, nil
}

// List implements Reader.
func (m *Memory[T]) List(ctx context.Context, q Query) ([]T, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.Index == "" && q.Value != "" {
		return nil, fmt.Errorf("list %q: %w", q.Value, errNoIndex)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	objects, ok := m.indexes.list(q)
	if !ok {
		return nil, fmt.Errorf("list: %w: unknown index %q", ErrInvalid, q.Index)
	}
	return objects, nil
}

// Create implements Collection.
func (m *Memory[T]) Create(ctx context.Context, o T) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := nameless(o); err != nil {
		return none, refuse("create", keyOf(o), err)
	}
	k, at := o.ObjectMeta().Key, m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects[k] != nil {
		return none, refuse("create", k, ErrAlreadyExists)
	}
	m.uids++
	e := &entry[T]{slots: m.indexes.newSlots()}
	next := created(o, m.blank, m.kind+"-"+strconv.FormatUint(m.uids, 10), at)
	m.put(e, next)
	m.objects[k] = e
	m.timeline.born(e)
	return next, nil
}

// Update implements Collection.
func (m *Memory[T]) Update(ctx context.Context, o T) (T, error) {
	return m.swap(ctx, "update", o, updated)
}

// UpdateStatus implements Collection.
func (m *Memory[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	return m.swap(ctx, "update status of", o, func(stored, o T) (T, error) {
		return statusUpdated(stored, o), nil
	})
}

// Delete implements Collection.
func (m *Memory[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if k.Name == "" {
		return refuse("delete", k, errNoName)
	}
	at := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.objects[k]
	if e == nil {
		return refuse("delete", k, ErrNotFound)
	}
	meta := e.object.ObjectMeta()
	switch {
	case uid != "" && uid != meta.UID:
		return refuse("delete", k, ErrConflict)
	case len(meta.Finalizers) == 0:
		m.drop(e, k)
	case !meta.Deleted():
		m.put(e, condemned(e.object, at))
		m.timeline.changed(e)
	}
	return nil
}

// Watch implements Collection. It never yields an error. A consumer receives
// what changed since it last came to ask, each object once, in batches.
func (m *Memory[T]) Watch(ctx context.Context) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		w := m.join()
		defer m.leave(w)
		for {
			batch, more := m.take(w)
			for _, s := range batch {
				change, news := w.see(s)
				if !news {
					continue
				}
				if ctx.Err() != nil || !yield(change, nil) {
					return
				}
			}
			if more {
				continue
			}
			select {
			case <-w.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// swap replaces the stored object by what next makes of it and of o, if o was
// read from it.
func (m *Memory[T]) swap(ctx context.Context, verb string, o T, next func(stored, o T) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := unversioned(o); err != nil {
		return none, refuse(verb, keyOf(o), err)
	}
	meta := o.ObjectMeta()
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.objects[meta.Key]
	if e == nil {
		return none, refuse(verb, meta.Key, ErrNotFound)
	}
	if !matches(e.object.ObjectMeta(), meta) {
		return none, refuse(verb, meta.Key, ErrConflict)
	}
	made, err := next(e.object, o)
	if err != nil {
		return none, refuse(verb, meta.Key, err)
	}
	if finished(made.ObjectMeta()) {
		m.drop(e, meta.Key)
		return made, nil
	}
	m.put(e, made)
	m.timeline.changed(e)
	return made, nil
}

// put makes o the object of e. Nobody else knows o yet.
func (m *Memory[T]) put(e *entry[T], o T) {
	m.versions++
	o.ObjectMeta().Version = strconv.FormatUint(m.versions, 10)
	e.object = o
	m.indexes.refresh(e)
}

func (m *Memory[T]) drop(e *entry[T], k object.Key) {
	delete(m.objects, k)
	m.indexes.remove(e)
	var none T
	e.object = none
	m.timeline.gone(e)
}

func nameless[T object.Object[T]](o T) error {
	var none T
	switch {
	case o == none:
		return errNoObject
	case o.ObjectMeta().Name == "":
		return errNoName
	}
	return nil
}

func unversioned[T object.Object[T]](o T) error {
	if err := nameless(o); err != nil {
		return err
	}
	if o.ObjectMeta().Version == "" {
		return errNoVersion
	}
	return nil
}

// keyOf is the key of an object that may be nil.
func keyOf[T object.Object[T]](o T) object.Key {
	var none T
	if o == none {
		return object.Key{}
	}
	return o.ObjectMeta().Key
}
