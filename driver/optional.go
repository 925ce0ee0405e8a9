package driver

import (
	"iter"

	"github.com/millwright-go/millwright/codes"
)

// FieldUpdater is implemented by a driver that can change VMs in place.
type FieldUpdater interface {
	// UpdatableFields names the fields of the provider spec that UpdateMachine can change: names
	// joined by dots from the top of the spec, "tags" or "networkInterfaces.tags". A name stands
	// for everything below it, and leads through the elements of a list. The answer never changes.
	UpdatableFields() []string
}

// IDMatcher is implemented by a driver that promises something about its provider IDs.
type IDMatcher interface {
	// ProviderIDsMatch reports whether nodes always spell their provider ID as the driver does, so
	// that a node with another ID is certainly another VM's. The answer never changes.
	ProviderIDsMatch() bool
}

// FaultHook is what a driver offers to tests: answers that get lost. Package drivertest uses it.
type FaultHook interface {
	// FailAfter makes the next successful call of that kind take effect and still answer err.
	// Several calls make several such calls fail.
	FailAfter(call codes.Call, err error)
}

// maxLayers is how many layers Layers yields. No real stack comes near it. A decorator that unwraps
// to itself would never end.
const maxLayers = 1 << 10

// Layers yields d and what is below its decorators, from the outside in: what a
// method Unwrap() D leads to. D is Driver, or the interface of other drivers.
//
// A decorator without Unwrap hides what is below it.
func Layers[D any](d D) iter.Seq[D] {
	return func(yield func(D) bool) {
		for range maxLayers {
			if !yield(d) {
				return
			}
			layer, ok := any(d).(interface{ Unwrap() D })
			if !ok {
				return
			}
			d = layer.Unwrap()
		}
	}
}

// As returns the outermost of the Layers of d that is a T. T is usually one of the optional
// interfaces of this package, or the type of the driver itself.
func As[T any](d Driver) (T, bool) {
	for layer := range Layers(d) {
		if found, ok := any(layer).(T); ok {
			return found, true
		}
	}
	var none T
	return none, false
}

// UpdatableFields returns what d declares as FieldUpdater. Nil: nothing.
func UpdatableFields(d Driver) []string {
	if u, ok := As[FieldUpdater](d); ok {
		return u.UpdatableFields()
	}
	return nil
}

// ProviderIDsMatch returns what d declares as IDMatcher. It is false, too, if d declares nothing.
func ProviderIDsMatch(d Driver) bool {
	m, ok := As[IDMatcher](d)
	return ok && m.ProviderIDsMatch()
}
