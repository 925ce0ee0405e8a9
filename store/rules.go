package store

import (
	"reflect"
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
)

// These are the rules of Collection, as functions of the stored object and the caller's. They
// return new objects, never change their arguments, and leave Version to the store.

// created returns what Create stores for o, except for its UID. Its status is a copy of blank's.
func created[T object.Object[T]](o, blank T, at time.Time) T {
	next := o.Clone()
	next.CopyStatus(blank)
	meta := next.ObjectMeta()
	meta.UID, meta.Generation = "", 1
	meta.CreatedAt, meta.DeletedAt = wholeSeconds(at), time.Time{}
	return next
}

// matches reports whether an update by o may follow stored.
func matches(stored, o *object.Meta) bool {
	return o.Version == stored.Version && (o.UID == "" || o.UID == stored.UID)
}

// updated returns what Update by o makes of stored.
func updated[T object.Object[T]](stored, o T) (T, error) {
	was := stored.ObjectMeta()
	if was.Deleted() && addsFinalizer(was.Finalizers, o.ObjectMeta().Finalizers) {
		var none T
		return none, errFinalizerAdded
	}
	next := o.Clone()
	next.CopyStatus(stored)
	meta := next.ObjectMeta()
	meta.UID, meta.Generation = was.UID, was.Generation
	meta.CreatedAt, meta.DeletedAt = was.CreatedAt, was.DeletedAt
	if !next.SpecEqual(stored) {
		meta.Generation++
	}
	return next, nil
}

func addsFinalizer(old, wanted []string) bool {
	for _, f := range wanted {
		if !slices.Contains(old, f) {
			return true
		}
	}
	return false
}

// statusUpdated returns what UpdateStatus by o makes of stored. It shares all but the status with
// stored: both are read-only from here on.
func statusUpdated[T object.Object[T]](stored, o T) T {
	next := copyOf(stored)
	next.CopyStatus(o)
	return next
}

// copyOf returns a copy of an object that shares what its fields point to.
func copyOf[T object.Object[T]](o T) T {
	was := reflect.ValueOf(o)
	copied := reflect.New(was.Type().Elem())
	copied.Elem().Set(was.Elem())
	c, _ := copied.Interface().(T) // it is a T: of the same type as o
	return c
}

// condemned returns what Delete makes of stored while finalizers hold it. It shares all but the
// status with stored, as statusUpdated does.
func condemned[T object.Object[T]](stored T, at time.Time) T {
	next := copyOf(stored)
	next.CopyStatus(stored)
	meta := next.ObjectMeta()
	meta.DeletedAt = wholeSeconds(at)
	meta.Generation++
	return next
}

// finished reports whether a deleted object has no finalizer left.
func finished(m *object.Meta) bool { return m.Deleted() && len(m.Finalizers) == 0 }

// wholeSeconds cuts t to the second, in UTC: equal instants are equal values and print alike
// wherever a test runs.
func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
