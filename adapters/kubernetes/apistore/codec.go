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

// Codec translates between the kind T and the server's R. Its methods may be called concurrently,
// and change none of their arguments.
type Codec[T any, R Raw] interface {
	// Read returns what raw says. It reads any object, and names what it could not read. The two
	// may share parts that are never changed.
	Read(raw R) (T, []*object.FieldError)
	// Create returns the new object that says what o does. An error means that the server could not
	// store o. The same applies to the other methods.
	Create(o T) (R, error)
	// Update returns the JSON merge patch (RFC 7386) that makes stored say what o does in all but
	// its status. The patch holds the version of stored. It is nil if stored says so already.
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
