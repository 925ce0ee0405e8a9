package store

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// verb names a writing call, as errors do.
type verb string

const (
	creating  verb = "create"
	updating  verb = "update"
	reporting verb = "update status of"
	deleting  verb = "delete"
)

// write is one writing call that has not been carried out yet.
type write[T object.Object[T]] struct {
	verb   verb
	key    object.Key
	object T         // the caller's; nil for a deletion
	uid    string    // of a deletion; empty matches any
	at     time.Time // the time of a creation or a deletion
}

// outcome is what a write leaves under its key: object, unless that is gone. If object is the
// stored one, nothing changed.
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
	case w.verb != deleting && w.object == none:
		return w.refuse(errNoObject)
	case w.key.Name == "":
		return w.refuse(errNoName)
	case (w.verb == updating || w.verb == reporting) && w.object.ObjectMeta().Version == "":
		return w.refuse(errNoVersion)
	}
	return nil
}

// decide returns what becomes of stored, which is nil if there is none. A new object has no UID
// yet, and no object has its version yet.
func (w *write[T]) decide(stored, blank T) (outcome[T], error) {
	var none T
	switch {
	case w.verb == creating && stored != none:
		return outcome[T]{}, w.refuse(ErrAlreadyExists)
	case w.verb == creating:
		return outcome[T]{object: created(w.object, blank, w.at)}, nil
	case stored == none:
		return outcome[T]{}, w.refuse(ErrNotFound)
	case w.verb == deleting:
		return w.deleted(stored)
	case !matches(stored.ObjectMeta(), w.object.ObjectMeta()):
		return outcome[T]{}, w.refuse(ErrConflict)
	case w.object == stored:
		return outcome[T]{}, w.refuse(errShared)
	case w.verb == reporting:
		return outcome[T]{object: statusUpdated(stored, w.object)}, nil
	}
	next, err := updated(stored, w.object)
	if err != nil {
		return outcome[T]{}, w.refuse(err)
	}
	return outcome[T]{object: next, gone: finished(next.ObjectMeta())}, nil
}

func (w *write[T]) deleted(stored T) (outcome[T], error) {
	meta := stored.ObjectMeta()
	switch {
	case w.uid != "" && w.uid != meta.UID:
		return outcome[T]{}, w.refuse(ErrConflict)
	case len(meta.Finalizers) == 0:
		return outcome[T]{gone: true}, nil
	case meta.Deleted():
		return outcome[T]{object: stored}, nil
	}
	return outcome[T]{object: condemned(stored, w.at)}, nil
}

func (w *write[T]) refuse(err error) error { return refuse(string(w.verb), w.key, err) }
