package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// cache is what one process has seen of a kind: the changes delivered so far.
type cache[T object.Object[T]] struct {
	objects map[object.Key]T
	indexes map[store.Index]func(T) []string
	places  map[store.Query][]T // sorted by key
}

func newCache[T object.Object[T]](indexes map[store.Index]func(T) []string, objects []T) *cache[T] {
	c := &cache[T]{objects: map[object.Key]T{}, indexes: indexes, places: map[store.Query][]T{}}
	for _, o := range objects {
		c.put(o.ObjectMeta().Key, o)
	}
	return c
}

// put stores a change and returns the object from before. The zero T stands for an object that is
// gone.
func (c *cache[T]) put(k object.Key, o T) (before T) {
	var none T
	before = c.objects[k]
	if before != none {
		c.place(before, func(at []T, i int) []T { return slices.Delete(at, i, i+1) })
		delete(c.objects, k)
	}
	if o != none {
		c.objects[k] = o
		c.place(o, func(at []T, i int) []T { return slices.Insert(at, i, o) })
	}
	return before
}

// place changes each list in which an object can be found. The object is at position i, or belongs
// there.
func (c *cache[T]) place(o T, change func(list []T, i int) []T) {
	places := map[store.Query]bool{{}: true} // a set: an index may yield a value twice
	for index, values := range c.indexes {
		for _, value := range values(o) {
			places[store.Query{Index: index, Value: value}] = true
		}
	}
	for q := range places {
		i, _ := slices.BinarySearchFunc(c.places[q], o.ObjectMeta().Key, func(other T, k object.Key) int {
			return compareKeys(other.ObjectMeta().Key, k)
		})
		c.places[q] = change(c.places[q], i)
	}
}

func (c *cache[T]) get(k object.Key) (T, error) {
	o, ok := c.objects[k]
	if !ok {
		return o, fmt.Errorf("get %s: %w", k, store.ErrNotFound)
	}
	return o, nil
}

func (c *cache[T]) list(q store.Query) ([]T, error) {
	if _, known := c.indexes[q.Index]; !known && q != (store.Query{}) {
		return nil, fmt.Errorf("list by %s: %w", q.Index, store.ErrInvalid)
	}
	return slices.Clone(c.places[q]), nil
}

func compareKeys(a, b object.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
