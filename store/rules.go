package store

import (
	"reflect"
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
)

// These are the rules of Collection, as functions of the stored object and the caller's. They
// return new objects, never change their arguments, and leave Version to the store.

// created returns what Create stores for o, except for its UID. Its status is a copy of zero's.
func created[T object.Object[T]](o, zero T, at time.Time) T {
	next := o.Clone()
	next.CopyStatus(zero)
	meta := next.ObjectMeta()
	meta.UID, meta.Generation = "", 1
	meta.CreatedAt, meta.DeletedAt = wholeSeconds(at), time.Time{}
	return next
}

// matches reports whether o was made from stored, so that an update by it is no conflict.
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

// terminating returns what Delete makes of stored if it has finalizers. It shares all but the
// status with stored, as statusUpdated does.
func terminating[T object.Object[T]](stored T, at time.Time) T {
	next := copyOf(stored)
	next.CopyStatus(stored)
	meta := next.ObjectMeta()
	meta.DeletedAt = wholeSeconds(at)
	meta.Generation++
	return next
}

// finished reports whether a deleted object has no finalizer left.
func finished(m *object.Meta) bool { return m.Deleted() && len(m.Finalizers) == 0 }

// wholeSeconds truncates t to the second, in UTC: equal instants are equal values and print the same
// on any machine.
func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// verb names a writing call, as errors do.
type verb string

const (
	verbCreate       verb = "create"
	verbUpdate       verb = "update"
	verbUpdateStatus verb = "update status of"
	verbDelete       verb = "delete"
)

// write is a writing call that was not executed yet.
type write[T object.Object[T]] struct {
	verb   verb
	key    object.Key
	object T         // the caller's; nil for a deletion
	uid    string    // of a deletion; empty matches any
	at     time.Time // the time of a creation or a deletion
}

// outcome is what a write leaves under its key: object, or nothing if gone. If object is the stored
// one, nothing changed.
type outcome[T object.Object[T]] struct {
	object T // what the call returns
	gone   bool
}

// writeOf returns a write of o, which may be nil.
func writeOf[T object.Object[T]](v verb, o T) write[T] {
	var none T
	w := write[T]{verb: v, object: o}
	if o != none {
		w.key = o.ObjectMeta().Key
	}
	return w
}

// check finds errors that do not depend on what is stored.
func (w *write[T]) check() error {
	var none T
	switch {
	case w.verb != verbDelete && w.object == none:
		return w.wrap(errNoObject)
	case w.key.Name == "":
		return w.wrap(errNoName)
	case (w.verb == verbUpdate || w.verb == verbUpdateStatus) && w.object.ObjectMeta().Version == "":
		return w.wrap(errNoVersion)
	}
	return nil
}

// decide returns what becomes of stored, which is nil if there is none. The caller still has to set
// the UID of a new object, and the version of any object that it stores.
func (w *write[T]) decide(stored, zero T) (outcome[T], error) {
	var none T
	switch {
	case w.verb == verbCreate && stored != none:
		return outcome[T]{}, w.wrap(ErrAlreadyExists)
	case w.verb == verbCreate:
		return outcome[T]{object: created(w.object, zero, w.at)}, nil
	case stored == none:
		return outcome[T]{}, w.wrap(ErrNotFound)
	case w.verb == verbDelete:
		return w.deleted(stored)
	case !matches(stored.ObjectMeta(), w.object.ObjectMeta()):
		return outcome[T]{}, w.wrap(ErrConflict)
	case w.object == stored:
		return outcome[T]{}, w.wrap(errShared)
	case w.verb == verbUpdateStatus:
		return outcome[T]{object: statusUpdated(stored, w.object)}, nil
	}
	next, err := updated(stored, w.object)
	if err != nil {
		return outcome[T]{}, w.wrap(err)
	}
	return outcome[T]{object: next, gone: finished(next.ObjectMeta())}, nil
}

func (w *write[T]) deleted(stored T) (outcome[T], error) {
	meta := stored.ObjectMeta()
	switch {
	case w.uid != "" && w.uid != meta.UID:
		return outcome[T]{}, w.wrap(ErrConflict)
	case len(meta.Finalizers) == 0:
		return outcome[T]{gone: true}, nil
	case meta.Deleted():
		return outcome[T]{object: stored}, nil
	}
	return outcome[T]{object: terminating(stored, w.at)}, nil
}

func (w *write[T]) wrap(err error) error { return wrap(string(w.verb), w.key, err) }
