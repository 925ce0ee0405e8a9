// Package index names the indexes that the kinds of a fleet list by, and the values in them.
package index

import (
	"errors"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// The indexes. Package manager says what each holds.
const (
	Owner     store.Index = "owner"
	Namespace store.Index = "namespace"
	Class     store.Index = "class"
	Node      store.Index = "node"
	VM        store.Index = "vm"
	Secret    store.Index = "secret"
	Machine   store.Index = "machine"
)

// OwnedBy returns the objects of an owner.
func OwnedBy(uid string) store.Query { return store.Query{Index: Owner, Value: uid} }

// Orphans returns the objects of a namespace that have no owner.
func Orphans(namespace string) store.Query {
	return store.Query{Index: Owner, Value: orphansOf(namespace)}
}

// orphansOf returns the value under which Owner holds all objects of a namespace without an owner.
func orphansOf(namespace string) string { return "orphans of " + namespace }

// OwnerOf returns the value under which Owner holds an object.
func OwnerOf(m *object.Meta) string {
	if m.Owner == nil {
		return orphansOf(m.Namespace)
	}
	return m.Owner.UID
}

// ClassKey returns the key of a machine's class, which is in the machine's namespace.
func ClassKey(m *machine.Machine) object.Key {
	return object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}
}

// SecretKey returns the key of a secret that a class refers to, by default in the class's namespace.
func SecretKey(c *machine.Class, ref *object.Key) object.Key {
	if ref.Namespace == "" {
		return object.Key{Namespace: c.Namespace, Name: ref.Name}
	}
	return *ref
}

// ClassValues returns the values under which Class holds an object that refers to a class: the class's key
// and, if the class is of a foreign kind, a second value made from the key.
func ClassValues(namespace string, ref *machine.ClassRef) []string {
	key := object.Key{Namespace: namespace, Name: ref.Name}.String()
	if ref.Foreign() {
		return []string{key, foreignOf(key)}
	}
	return []string{key}
}

func foreignOf(key string) string { return "of another kind: " + key }

// OfClass returns what refers to a class by its name.
func OfClass(key object.Key) store.Query { return store.Query{Index: Class, Value: key.String()} }

// OfForeignClass returns what refers to a class of another kind by this name.
func OfForeignClass(key object.Key) store.Query {
	return store.Query{Index: Class, Value: foreignOf(key.String())}
}

// IgnoreNotFound returns nil for an object that is gone.
func IgnoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// MetaOf returns the metadata of an object that was read. Nil: there is no such object.
func MetaOf[T object.Object[T]](o T, err error) (*object.Meta, error) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil //nolint:nilnil // it is gone
	case err != nil:
		return nil, err
	}
	return o.ObjectMeta(), nil
}

// SameOwner reports whether two objects have the same owner, or none.
func SameOwner(a, b *object.Owner) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
