package store

import (
	"maps"
	"slices"

	"github.com/millwright-go/millwright/object"
)

// indexes find entries by value. Joining and leaving a bucket takes constant time, so a write costs
// as much in a large fleet as in a small one. The lock of Memory guards it.
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

// slot is the place of an entry within a bucket. It holds its own value, so that a write which
// moves nothing need not look at the bucket.
type slot[T object.Object[T]] struct {
	value  string
	bucket *bucket[T]
	at     int
}

// everything is the value under which the index of the zero Query has all
// objects.
var everything = []string{""}

func newIndexes[T object.Object[T]](given map[Index]func(T) []string) indexes[T] {
	x := indexes[T]{numbers: make(map[Index]int, len(given)+1)}
	x.add("", func(T) []string { return everything })
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

// newSlots returns room for one value in each index, which is what most objects
// have, in two allocations.
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
		if inPlace(e.slots[i], now) {
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

func inPlace[T object.Object[T]](slots []slot[T], values []string) bool {
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
