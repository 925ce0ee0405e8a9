package store

import (
	"context"
	"iter"

	"github.com/millwright-go/millwright/object"
)

// Index names one way of finding objects by a value that can be told from the
// object alone, such as its owner's UID. Which indexes exist is fixed when a
// store is built.
type Index string

// Query picks the objects to list: those for which Index yields Value. The zero
// Query picks all. A Value without an Index is invalid.
type Query struct {
	Index Index
	Value string
}

// Change is what happened to one object, as seen by one watch. A nil New means
// that the object is gone, a nil Old that this watch sees it for the first
// time; never both are nil. Where neither is, both have the same UID.
type Change[T any] struct {
	Old, New T
}

// Reader reads the objects of one kind. What it returns is shared and must not
// be changed, see [Collection].
type Reader[T object.Object[T]] interface {
	// Get returns the object of that key, or ErrNotFound.
	Get(ctx context.Context, k object.Key) (T, error)

	// List returns the objects that the query picks, each of them once, in no
	// particular order. None is not an error; an index that the store was not
	// built with is ErrInvalid. Listing through an index costs in proportion
	// to what is returned, not to what is stored. The slice, unlike the
	// objects in it, is the caller's.
	List(ctx context.Context, q Query) ([]T, error)
}

// Collection keeps all objects of one kind. These are the rules for every
// implementation; storetest.Run checks them.
//
// # Objects
//
// Stored objects are shared between all who read them and are read-only: Clone
// before changing anything. An object that a call returned stays as it is, also
// after later writes. A write stores a copy of what it is given and returns the
// stored object; the caller may go on using its own.
//
// A name is unique within its namespace; the empty namespace is one as well. A
// store keeps whole seconds: it may cut what lies below from the times within a
// spec or status. It may return an empty map or slice as nil, and a time in
// another location.
//
// # Versions
//
// Version is opaque: it can be compared for equality, nothing more. A write
// that changes an object gives it a version which no object of that name has
// had before, not even one deleted since. An update that would change nothing
// succeeds; whether it makes a new version, and whether watches are told, is up
// to the store.
//
// Update and UpdateStatus compare and swap. They fail, in this order, with
//   - ErrInvalid if the object has no name or no version;
//   - ErrNotFound if there is no object of that key;
//   - ErrConflict if the stored object has another UID or another version. An
//     empty UID stands for any.
//
// A call that failed has changed nothing.
//
// # Reads
//
// The methods Get and List of a collection may answer from a cache and lag
// behind what was written; those of Live never do. A cache goes forward only as
// a watch does: once a watch has delivered a change, cached reads show it too,
// or what came after it. A caller woken by a watch therefore never reads
// something older than what woke it.
//
// # Contexts and errors
//
// Each call returns ctx.Err() when its context has ended before, and then has
// had no effect. When the context ends during a call, or with any error that
// is not one of this package's, the effect is unknown. Errors of this package
// are wrapped and name the verb and the object: "update fleet/a: conflict".
//
// All methods may be called concurrently, also from within a watch.
type Collection[T object.Object[T]] interface {
	// Reader reads from a cache, or live where the store has none.
	Reader[T]

	// Live reads what is stored, nothing older than the call of Live itself: a
	// reader may answer a later list from what an earlier one has brought.
	Live() Reader[T]

	// Create stores a new object. It needs a name (ErrInvalid). If the name is
	// taken, also by an object that is being deleted but is not gone yet, it
	// fails with ErrAlreadyExists.
	//
	// UID, Version, Generation, CreatedAt and DeletedAt are the store's,
	// whatever the caller wrote there: a UID that never was and never will be
	// another object's, Generation 1, the time in whole seconds, and no
	// deletion. Status is dropped: the object begins with that of a zero
	// object, and UpdateStatus is the only way to set it. Everything else is
	// kept, finalizers and owner too, so that an object can be born with them.
	Create(ctx context.Context, o T) (T, error)

	// Update writes everything but the status, if version and UID are those of
	// the stored object (see Versions). UID, Generation, CreatedAt and
	// DeletedAt stay the store's: what the caller wrote there is ignored,
	// except that a foreign UID is a conflict. Generation rises by one when
	// the spec is not SpecEqual to the stored one.
	//
	// On an object that is being deleted no finalizer may be added
	// (ErrInvalid). When its last finalizer is taken away the object is gone:
	// Update returns its final state, the Version of which stands for nothing,
	// and watches report a nil New. Of several such updates at the same time
	// more than one may succeed, where a store says so.
	Update(ctx context.Context, o T) (T, error)

	// UpdateStatus writes the status and nothing else, under the same
	// conditions as Update. Generation stays.
	UpdateStatus(ctx context.Context, o T) (T, error)

	// Delete asks for the deletion of the object with that key and that UID;
	// an empty UID stands for any. Another UID is ErrConflict, no object is
	// ErrNotFound, no name is ErrInvalid.
	//
	// An object without finalizers is gone at once. One with finalizers gets
	// DeletedAt, in whole seconds, and a Generation higher by one; it goes
	// when an Update takes the last finalizer away. Deleting it a second time
	// succeeds and changes nothing.
	Delete(ctx context.Context, k object.Key, uid string) error

	// Watch delivers changes, beginning with every object that exists. It may
	// repeat what it has delivered, and may merge several changes of an object
	// into one; it never leaves out the last state. The order between objects
	// is unspecified. Old is what this watch delivered last for that object.
	//
	// Objects of different UIDs are different objects, even if they bear the
	// same name: that the first is gone is delivered before the second, and
	// never merged with it.
	//
	// The watch ends, without an error, when ctx ends or the consumer stops.
	// An error is the last thing it yields, with a zero Change; who needs to
	// know more begins anew. Ranging over the sequence a second time is a
	// second watch. A slow consumer delays nobody, and makes the store hold
	// memory in proportion to the number of objects, not of changes.
	Watch(ctx context.Context) iter.Seq2[Change[T], error]
}
