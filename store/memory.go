package store

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Memory is a Collection that lives as long as its process. No read is stale, through Live or
// not. NewMemory makes it. It is safe for concurrent use.
//
// Two stores that see the same calls in the same order hold the same objects with the same UIDs and
// versions, and list them in the same order. Each update makes a new version, even one that changes
// nothing. So a controller that writes without need wakes itself, and a test shows that.
type Memory[T object.Object[T]] struct {
	now  func() time.Time
	kind string // begins every UID

	mu       sync.RWMutex
	objects  map[object.Key]*entry[T]
	indexes  indexes[T]
	changes  changeLog[T]
	uids     uint64
	versions uint64
}

// entry is one object from its creation until it is gone and every watch has read that. An object
// that is created again under the same name has an entry of its own. The lock of Memory guards it.
type entry[T object.Object[T]] struct {
	object   T           // the zero T once it is gone
	slots    [][]slot[T] // slots[n] has a slot for each value of index n, in order
	position position[T]
}

// NewMemory returns an empty store for the kind T, which is a pointer to a struct. It takes
// CreatedAt and DeletedAt from now; nil means time.Now. indexes yield the values under which an
// object can be listed. There may be several values or none, and they must depend only on the
// object. The name "" and nil functions are ignored. Indexes and the methods of T run while the
// store is locked and must not call it.
//
// A UID is the name of T's struct and a number, such as "machine-17": unique in this store, and
// different from those of other kinds.
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
		return none, wrap("get", k, errNoName)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	e := m.objects[k]
	if e == nil {
		return none, wrap("get", k, ErrNotFound)
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
	return m.write(ctx, WriteOf(VerbCreate, o, time.Time{}))
}

// Update implements Collection.
func (m *Memory[T]) Update(ctx context.Context, o T) (T, error) {
	return m.write(ctx, WriteOf(VerbUpdate, o, time.Time{}))
}

// UpdateStatus implements Collection.
func (m *Memory[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	return m.write(ctx, WriteOf(VerbUpdateStatus, o, time.Time{}))
}

// Delete implements Collection.
func (m *Memory[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	_, err := m.write(ctx, Write[T]{Verb: VerbDelete, Key: k, UID: uid})
	return err
}

// Watch implements Collection. It never yields an error. A consumer receives in batches what
// changed since its last read, each object once.
func (m *Memory[T]) Watch(ctx context.Context) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		w := m.startWatch()
		defer m.stopWatch(w)
		for {
			batch, more := m.nextBatch(w)
			for _, s := range batch {
				change, ok := w.record(s)
				if !ok {
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

func (m *Memory[T]) write(ctx context.Context, w Write[T]) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := w.Check(); err != nil {
		return none, err
	}
	w.At = m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	stored := m.stored(w.Key)
	out, err := w.Apply(stored)
	switch {
	case err != nil:
		return none, err
	case out.Gone:
		m.remove(w.Key)
	case out.Object != stored:
		if stored == none {
			m.uids++
			out.Object.ObjectMeta().UID = m.kind + "-" + strconv.FormatUint(m.uids, 10)
		}
		m.setVersion(out.Object)
		m.put(w.Key, out.Object)
	}
	return out.Object, nil
}

// stored returns the object of that key, or nil.
func (m *Memory[T]) stored(k object.Key) T {
	if e := m.objects[k]; e != nil {
		return e.object
	}
	var none T
	return none
}

// setVersion gives o a new version. No reader has o yet.
func (m *Memory[T]) setVersion(o T) {
	m.versions++
	o.ObjectMeta().Version = strconv.FormatUint(m.versions, 10)
}

// put makes o the object of k.
func (m *Memory[T]) put(k object.Key, o T) {
	e := m.objects[k]
	if e != nil {
		e.object = o
		m.indexes.refresh(e)
		m.changes.changed(e)
		return
	}
	e = &entry[T]{object: o, slots: m.indexes.newSlots()}
	m.indexes.refresh(e)
	m.objects[k] = e
	m.changes.added(e)
}

// remove removes the object of k, which exists.
func (m *Memory[T]) remove(k object.Key) {
	e := m.objects[k]
	delete(m.objects, k)
	m.indexes.remove(e)
	var none T
	e.object = none
	m.changes.removed(e)
}

// indexes find entries by value. Adding to a bucket and removing from it takes constant time, so a
// write costs the same in a large fleet as in a small one. The lock of Memory guards them.
type indexes[T object.Object[T]] struct {
	numbers map[Index]int
	values  []func(T) []string      // by number
	buckets []map[string]*bucket[T] // by number
}

// bucket holds the entries for which one index yields one value. Only the order of the writes
// determines the order of its members.
type bucket[T object.Object[T]] struct {
	members []member[T]
}

type member[T object.Object[T]] struct {
	entry *entry[T]
	nth   int // its slot among the entry's slots of this index
}

// slot is the position of an entry within a bucket. It holds a copy of the value, so that a write
// which changes no value does not touch the bucket.
type slot[T object.Object[T]] struct {
	value  string
	bucket *bucket[T]
	at     int
}

// matchAll is the value under which the index of the zero Query has all objects.
var matchAll = []string{""}

func newIndexes[T object.Object[T]](given map[Index]func(T) []string) indexes[T] {
	x := indexes[T]{numbers: make(map[Index]int, len(given)+1)}
	x.add("", func(T) []string { return matchAll })
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if values := given[name]; name != "" && values != nil {
			x.add(name, values)
		}
	}
	return x
}

func (x *indexes[T]) add(name Index, values func(T) []string) {
	x.numbers[name] = len(x.values)
	x.values = append(x.values, values)
	x.buckets = append(x.buckets, make(map[string]*bucket[T]))
}

// newSlots returns empty slots with room for one value in each index: most objects have no more. It
// makes only two allocations.
func (x *indexes[T]) newSlots() [][]slot[T] {
	slots, room := make([][]slot[T], len(x.values)), make([]slot[T], len(x.values))
	for i := range slots {
		slots[i] = room[i : i : i+1]
	}
	return slots
}

// refresh moves e to the buckets that its object belongs to now. It touches no bucket if the values
// are unchanged.
func (x *indexes[T]) refresh(e *entry[T]) {
	for i, values := range x.values {
		now := values(e.object)
		if sameValues(e.slots[i], now) {
			continue
		}
		x.leave(e, i)
		for _, value := range now {
			x.join(e, i, value)
		}
	}
}

// remove removes e from all buckets.
func (x *indexes[T]) remove(e *entry[T]) {
	for i := range x.values {
		x.leave(e, i)
	}
	e.slots = nil
}

func sameValues[T object.Object[T]](slots []slot[T], values []string) bool {
	if len(slots) != len(values) {
		return false
	}
	for i := range slots {
		if slots[i].value != values[i] {
			return false
		}
	}
	return true
}

func (x *indexes[T]) join(e *entry[T], index int, value string) {
	b := x.buckets[index][value]
	if b == nil {
		b = &bucket[T]{}
		x.buckets[index][value] = b
	}
	at := len(b.members)
	if at > 0 && b.members[at-1].entry == e {
		return // the index yields this value twice
	}
	b.members = append(b.members, member[T]{entry: e, nth: len(e.slots[index])})
	e.slots[index] = append(e.slots[index], slot[T]{value: value, bucket: b, at: at})
}

func (x *indexes[T]) leave(e *entry[T], index int) {
	for _, s := range e.slots[index] {
		members := s.bucket.members
		last := len(members) - 1
		moved := members[last]
		members[s.at] = moved
		moved.entry.slots[index][moved.nth].at = s.at
		members[last] = member[T]{}
		s.bucket.members = members[:last]
		if last == 0 {
			delete(x.buckets[index], s.value)
		}
	}
	clear(e.slots[index])
	e.slots[index] = e.slots[index][:0]
}

// list returns the objects of one bucket, or false if there is no such index.
func (x *indexes[T]) list(q Query) ([]T, bool) {
	index, ok := x.numbers[q.Index]
	if !ok {
		return nil, false
	}
	b := x.buckets[index][q.Value]
	if b == nil {
		return nil, true
	}
	objects := make([]T, len(b.members))
	for i := range b.members {
		objects[i] = b.members[i].entry.object
	}
	return objects, true
}
