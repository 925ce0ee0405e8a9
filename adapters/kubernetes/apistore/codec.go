package apistore

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/millwright-go/millwright/object"
)

// Raw is an object as the API server knows it: a pointer to a struct with JSON
// tags.
type Raw interface {
	runtime.Object
	metav1.Object
}

// Codec translates between the library's type T of a kind and the server's type R. Its methods may be
// called concurrently, and change none of their arguments.
type Codec[T any, R Raw] interface {
	// Read returns the library's form of raw, and an error for each part that it can't read. The two
	// objects may share memory that is never changed.
	Read(raw R) (T, []*object.FieldError)
	// Create returns the server's form of a new object. An error of this method or the following ones
	// means that the server can't store o.
	Create(o T) (R, error)
	// Update returns the JSON merge patch (RFC 7386) that changes stored to o, except for the status.
	// The patch has the version of stored. It is nil if there is nothing to change.
	Update(stored R, o T) ([]byte, error)
	// UpdateNotes is Update for the parts of the status that are in annotations, if there are any.
	// They are written in a separate request before the rest of the status. Read must be able to read
	// an object between the two requests.
	UpdateNotes(stored R, o T) ([]byte, error)
	// UpdateStatus is Update for the rest of the status. It returns nil for kinds without a status.
	UpdateStatus(stored R, o T) ([]byte, error)
}

func keyOf(raw metav1.Object) object.Key {
	return object.Key{Namespace: raw.GetNamespace(), Name: raw.GetName()}
}
