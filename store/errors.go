package store

import (
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/object"
)

// These are the errors with which a store refuses a call. They come wrapped with the verb and the
// object; use errors.Is. A call that the store did not answer has none of them.
var (
	// ErrConflict: the stored object is not the one that the caller has read. Read again, and
	// decide again.
	ErrConflict = errors.New("conflict")
	// ErrNotFound: there is no object of that key.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists: the name is taken, maybe by an object that is still being deleted.
	ErrAlreadyExists = errors.New("already exists")
	// ErrInvalid: the call can't succeed at any time, such as an update without a version or a list
	// through an unknown index.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge: the object is larger than the store takes. It is an ErrInvalid, too.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrInvalid)
	// ErrForbidden: the caller may not do this, or a rule of the store's operator refuses it. It is
	// refused until somebody changes that.
	ErrForbidden = errors.New("forbidden")
	// ErrUnauthenticated: the store does not know who calls.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrThrottled: the store takes no more calls for now. A later one may succeed.
	ErrThrottled = errors.New("throttled")
)

var (
	errNoObject       = fmt.Errorf("%w: no object given", ErrInvalid)
	errNoName         = fmt.Errorf("%w: it has no name", ErrInvalid)
	errNoVersion      = fmt.Errorf("%w: it has no version", ErrInvalid)
	errNoIndex        = fmt.Errorf("%w: a value needs an index", ErrInvalid)
	errShared         = fmt.Errorf("%w: it is the very object that a read returned, which all readers share: change a Clone of it", ErrInvalid)
	errFinalizerAdded = fmt.Errorf("%w: it is being deleted, no finalizer may be added", ErrInvalid)
)

// refuse adds the verb and the object to an error.
func refuse(verb string, k object.Key, err error) error {
	if k.Name == "" && k.Namespace == "" {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s %s: %w", verb, k, err)
}
