package manager

import (
	"context"

	"github.com/millwright-go/millwright/object"
)

// both reads the two sides of a change; the zero T stands for nothing.
func both[T any](old, new any) (T, T) {
	a, _ := old.(T)
	b, _ := new.(T)
	return a, b
}

// self wakes the object that changed.
func self[T object.Object[T]](_ context.Context, old, new any) []object.Key {
	var none T
	a, b := both[T](old, new)
	if b != none {
		return []object.Key{b.ObjectMeta().Key}
	}
	if a != none {
		return []object.Key{a.ObjectMeta().Key}
	}
	return nil
}

func keysOf[T object.Object[T]](list []T, err error) []object.Key {
	if err != nil {
		return nil // the cache is in memory: it fails only when all is ending
	}
	keys := make([]object.Key, len(list))
	for i := range list {
		keys[i] = list[i].ObjectMeta().Key
	}
	return keys
}

// compact drops repeated keys from a short list.
func compact(keys []object.Key) []object.Key {
	out := keys[:0]
	for i, k := range keys {
		if i == 0 || k != keys[i-1] {
			out = append(out, k)
		}
	}
	return out
}
