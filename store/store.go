package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millwright-go/millwright/object"
)

// Index names one way of finding objects by a value of the object alone, such as its owner's UID. A
// store's indexes are fixed when it is built.
type Index string

// Query picks the objects to list: those for which Index yields Value. The zero
// Query picks all. A Value without an Index is invalid.
type Query struct {
	Index Index
	Value string
}

// Change is what happened to one object, as seen by one watch. A nil New means that the object is
// gone. A nil Old means that this watch sees it for the first time. At most one is nil. If neither
// is, both have the same UID.
type Change[T any] struct {
	Old, New T
}

// Reader reads the objects of one kind. Its results are shared and must not be changed, see
// [Collection].
type Reader[T object.Object[T]] interface {
	// Get returns the object of that key, or ErrNotFound.
	Get(ctx context.Context, k object.Key) (T, error)

	// List returns the objects that the query picks, each of them once, in no particular order. An
	// empty result is no error. An index that the store was not built with is ErrInvalid. Listing
	// through an index costs in proportion to what is returned, not to what is stored. The slice is
	// the caller's; the objects in it are not.
	List(ctx context.Context, q Query) ([]T, error)
}

// Collection keeps all objects of one kind. These are the rules for every
// implementation; storetest.Run checks them.
//
// # Objects
//
// All readers share stored objects, which are read-only: Clone before changing anything. An object
// that a call returned stays as it is, even after later writes. A write stores a copy of what it is
// given and returns the stored object; the caller may go on using its own.
//
// A name is unique within its namespace; the empty namespace is one as well. A store keeps whole
// seconds: it may cut fractions of a second from times within a spec or status. It may return an
// empty map or slice as nil, and a time in another location.
//
// # Versions
//
// Version is opaque: it can be compared for equality, nothing more. A write that changes an object
// gives it a version that no object of that name has had before, not even one deleted since. An
// update that would change nothing succeeds. The store decides whether it makes a new version, and
// whether watches report it.
//
// Update and UpdateStatus compare and swap. They fail, in this order, with
//   - ErrInvalid if the object has no name or no version;
//   - ErrNotFound if there is no object of that key;
//   - ErrConflict if the stored object has another UID or another version. An
//     empty UID stands for any;
//   - ErrInvalid, where the store can tell, if the object is the very one that a
//     read returned: a change in it has reached all readers already.
//
// A failed call changes nothing.
//
// # Reads
//
// The methods Get and List of a collection may answer from a cache and lag behind what was written.
// Those of Live never do. A cache advances with its watches: once a watch has delivered a change,
// cached reads show that change or a later one. So a caller woken by a watch never reads anything
// older than the change that woke it.
//
// # Contexts and errors
//
// If its context has ended before the call, a call returns ctx.Err() and has no effect. If the
// context ends during a call, or the error is not one of this package's, the effect is unknown.
// Errors of this package are wrapped and name the verb and the object: "update fleet/a: conflict".
//
// All methods may be called concurrently, and from within a watch.
type Collection[T object.Object[T]] interface {
	// Reader reads from a cache, or live if the store has none.
	Reader[T]

	// Live returns a reader of what is stored, never older than the call of Live itself. The reader
	// may answer a later list from what an earlier one has read.
	Live() Reader[T]

	// Create stores a new object. It needs a name (ErrInvalid). If the name is taken, even by an
	// object that is being deleted but not gone yet, it fails with ErrAlreadyExists.
	//
	// The store sets UID, Version, Generation, CreatedAt and DeletedAt, and ignores what the caller
	// wrote there: a UID that never was and never will be another object's, Generation 1, the time
	// in whole seconds, and no deletion. Create drops the status: the object begins with that of a
	// zero object, and only UpdateStatus sets it. Everything else is kept, including finalizers and
	// owner, so that a new object can have them from the start.
	Create(ctx context.Context, o T) (T, error)

	// Update writes everything but the status, if version and UID are those of the stored object
	// (see Versions). UID, Generation, CreatedAt and DeletedAt stay the store's: it ignores what
	// the caller wrote there, except that a foreign UID is a conflict. Generation rises by one when
	// the spec is not SpecEqual to the stored one.
	//
	// No finalizer may be added to an object that is being deleted (ErrInvalid). The object is gone
	// when its last finalizer is removed. Update then returns its final state, whose Version has no
	// meaning, and watches report a nil New. If several such updates run at the same time, more
	// than one may succeed on a store that says so.
	Update(ctx context.Context, o T) (T, error)

	// UpdateStatus writes only the status, under the same conditions as Update. Generation stays.
	UpdateStatus(ctx context.Context, o T) (T, error)

	// Delete requests the deletion of the object with that key and that UID; an empty UID matches
	// any. Another UID is ErrConflict, no object is ErrNotFound, no name is ErrInvalid.
	//
	// An object without finalizers is gone at once. One with finalizers gets DeletedAt, in whole
	// seconds, and a Generation higher by one. It is gone when an Update removes the last
	// finalizer. A second deletion succeeds and changes nothing.
	Delete(ctx context.Context, k object.Key, uid string) error

	// Watch delivers changes, beginning with every object that exists. It may repeat what it has
	// delivered, and may merge several changes of an object into one. It never omits the last
	// state. The order between objects is unspecified. Old is what this watch delivered last for
	// that object.
	//
	// Objects of different UIDs are different objects, even if they have the same name. Watch
	// delivers the end of the first before the second, and never merges the two.
	//
	// The watch ends, without an error, when ctx ends or the consumer stops. If the iterator yields
	// an error, that is its last value, with a zero Change. Call Watch again to continue. Ranging
	// over the sequence a second time is a second watch. A slow consumer delays no one else. The
	// memory that the store holds for it grows with the number of objects, not of changes.
	Watch(ctx context.Context) iter.Seq2[Change[T], error]
}

// These are the errors with which a store refuses a call. They come wrapped with the verb and the
// object; use errors.Is. The error of a call that the store did not answer is none of them.
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
	// ErrFenced: the call was made in a term of leadership that is over, see package lead. Nothing was
	// written, and no call of that term succeeds from now on.
	ErrFenced = errors.New("fenced: the term of this leader is over")
)

var (
	errNoObject       = fmt.Errorf("%w: no object given", ErrInvalid)
	errNoName         = fmt.Errorf("%w: it has no name", ErrInvalid)
	errNoVersion      = fmt.Errorf("%w: it has no version", ErrInvalid)
	errNoIndex        = fmt.Errorf("%w: a value needs an index", ErrInvalid)
	errShared         = fmt.Errorf("%w: it is the very object that a read returned, which all readers share: change a Clone of it", ErrInvalid)
	errFinalizerAdded = fmt.Errorf("%w: it is being deleted, no finalizer may be added", ErrInvalid)
)

// wrap adds the verb and the object to an error.
func wrap(verb string, k object.Key, err error) error {
	if k.Name == "" && k.Namespace == "" {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s %s: %w", verb, k, err)
}
