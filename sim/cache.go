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
	places  map[store.Query]map[object.Key]bool
}

func newCache[T object.Object[T]](indexes map[store.Index]func(T) []string, objects []T) *cache[T] {
	c := &cache[T]{objects: map[object.Key]T{}, indexes: indexes, places: map[store.Query]map[object.Key]bool{}}
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
		c.place(before, func(at map[object.Key]bool) { delete(at, k) })
		delete(c.objects, k)
	}
	if o != none {
		c.objects[k] = o
		c.place(o, func(at map[object.Key]bool) { at[k] = true })
	}
	return before
}

// place calls visit for each place at which an object can be found.
func (c *cache[T]) place(o T, visit func(map[object.Key]bool)) {
	for index, values := range c.indexes {
		for _, value := range values(o) {
			q := store.Query{Index: index, Value: value}
			if c.places[q] == nil {
				c.places[q] = map[object.Key]bool{}
			}
			visit(c.places[q])
		}
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
	var out []T
	if q == (store.Query{}) {
		for _, o := range c.objects {
			out = append(out, o)
		}
	} else if _, known := c.indexes[q.Index]; !known {
		return nil, fmt.Errorf("list by %s: %w", q.Index, store.ErrInvalid)
	}
	for k := range c.places[q] {
		out = append(out, c.objects[k])
	}
	slices.SortFunc(out, func(a, b T) int { return compareKeys(a.ObjectMeta().Key, b.ObjectMeta().Key) })
	return out, nil
}

func compareKeys(a, b object.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
