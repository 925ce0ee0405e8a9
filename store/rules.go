package store

import (
	"reflect"
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
)

// These are the rules of Collection, as functions of the stored object and the caller's. They
// return new objects, never change their arguments, and leave Version to the store.

// created returns what Create stores for o, except for its UID. Its status is that of a zero object.
func created[T object.Object[T]](o T, at time.Time) T {
	next := o.Clone()
	zero, _ := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) // it is a T: a pointer to a struct
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

// Verb names a writing call, as errors do.
type Verb string

// The writing calls of a Collection.
const (
	VerbCreate       Verb = "create"
	VerbUpdate       Verb = "update"
	VerbUpdateStatus Verb = "update status of"
	VerbDelete       Verb = "delete"
)

// Write is a writing call of a Collection that was not executed yet. A store that compares and swaps asks
// Check, reads what is stored, asks Apply what becomes of that, and swaps.
type Write[T object.Object[T]] struct {
	Verb   Verb
	Key    object.Key
	Object T         // the caller's, under Key; nil for a deletion
	UID    string    // of a deletion; empty matches any
	At     time.Time // the store's time, for CreatedAt and DeletedAt
}

// Outcome is what a Write makes of a stored object.
type Outcome[T object.Object[T]] struct {
	// Object is what the call returns. The store sets its Version, and the UID of a created one. Nothing is
	// to be stored if it is the stored object itself, or if Gone.
	Object T
	// Gone says that nothing is left under the key.
	Gone bool
}

// WriteOf returns a Write of o, which may be nil: then Check fails. It is not for deletions.
func WriteOf[T object.Object[T]](v Verb, o T, at time.Time) Write[T] {
	var none T
	w := Write[T]{Verb: v, Object: o, At: at}
	if o != none {
		w.Key = o.ObjectMeta().Key
	}
	return w
}

// Check returns the error of a call that fails whatever is stored: ErrInvalid.
func (w *Write[T]) Check() error {
	var none T
	switch {
	case w.Verb != VerbDelete && w.Object == none:
		return w.Refuse(errNoObject)
	case w.Key.Name == "":
		return w.Refuse(errNoName)
	case (w.Verb == VerbUpdate || w.Verb == VerbUpdateStatus) && w.Object.ObjectMeta().Version == "":
		return w.Refuse(errNoVersion)
	}
	return nil
}

// Apply returns what becomes of stored, which is nil if there is none, by the rules of Collection. It changes
// neither stored nor the caller's object. The outcome may share all but the status with stored.
func (w *Write[T]) Apply(stored T) (Outcome[T], error) {
	var none T
	switch {
	case w.Verb == VerbCreate && stored != none:
		return Outcome[T]{}, w.Refuse(ErrAlreadyExists)
	case w.Verb == VerbCreate:
		return Outcome[T]{Object: created(w.Object, w.At)}, nil
	case stored == none:
		return Outcome[T]{}, w.Refuse(ErrNotFound)
	case w.Verb == VerbDelete:
		return w.deleted(stored)
	case !matches(stored.ObjectMeta(), w.Object.ObjectMeta()):
		return Outcome[T]{}, w.Refuse(ErrConflict)
	case w.Object == stored:
		return Outcome[T]{}, w.Refuse(errShared)
	case w.Verb == VerbUpdateStatus:
		return Outcome[T]{Object: statusUpdated(stored, w.Object)}, nil
	}
	next, err := updated(stored, w.Object)
	if err != nil {
		return Outcome[T]{}, w.Refuse(err)
	}
	return Outcome[T]{Object: next, Gone: finished(next.ObjectMeta())}, nil
}

func (w *Write[T]) deleted(stored T) (Outcome[T], error) {
	meta := stored.ObjectMeta()
	switch {
	case w.UID != "" && w.UID != meta.UID:
		return Outcome[T]{}, w.Refuse(ErrConflict)
	case len(meta.Finalizers) == 0:
		return Outcome[T]{Gone: true}, nil
	case meta.Deleted():
		return Outcome[T]{Object: stored}, nil
	}
	return Outcome[T]{Object: terminating(stored, w.At)}, nil
}

// Refuse returns an error of this call: err with the verb and the object.
func (w *Write[T]) Refuse(err error) error { return wrap(string(w.Verb), w.Key, err) }
