package apistore_test

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/object"
)

// merging is the codec of these tests. Its patches are the differences between the whole object
// before and after.
type merging[T any, R apistore.Raw] struct {
	Blank  func() R // an empty object
	Decode func(raw R) (T, []*object.FieldError)
	// Encode writes all but the status of o into raw, which is a copy of the stored object, or a
	// new one. A part of o that equals what Decode reads from raw is left as it is, so that what a
	// T can't express stays.
	Encode func(o T, raw R) error
	// EncodeStatus is Encode for the status.
	EncodeStatus func(o T, raw R) error
}

// Read implements Codec.
func (m merging[T, R]) Read(raw R) (T, []*object.FieldError) { return m.Decode(raw) }

// Create implements Codec.
func (m merging[T, R]) Create(o T) (R, error) {
	raw := m.Blank()
	return raw, m.Encode(o, raw)
}

// Update implements Codec.
func (m merging[T, R]) Update(stored R, o T) ([]byte, error) {
	return m.patch(stored, o, false, m.Encode)
}

// UpdateNotes implements Codec.
func (m merging[T, R]) UpdateNotes(R, T) ([]byte, error) { return nil, nil }

// UpdateStatus implements Codec.
func (m merging[T, R]) UpdateStatus(stored R, o T) ([]byte, error) {
	return m.patch(stored, o, true, m.EncodeStatus)
}

func (m merging[T, R]) patch(stored R, o T, status bool, encode func(T, R) error) ([]byte, error) {
	after, ok := stored.DeepCopyObject().(R)
	if !ok {
		return nil, fmt.Errorf("a copy of a %T has another type", stored)
	}
	if err := encode(o, after); err != nil {
		return nil, err
	}
	return mergePatch(stored, after, status)
}

// mergePatch returns the JSON merge patch (RFC 7386) that turns before into after, restricted to
// the status or to all else, and that only applies to the version of before.
func mergePatch(before, after apistore.Raw, status bool) ([]byte, error) {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, err
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	for name := range union(was, is) {
		if name == "apiVersion" || name == "kind" || (name == "status") != status {
			continue
		}
		if change, differs := difference(was[name], is[name]); differs {
			patch[name] = change
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = before.GetResourceVersion()
	patch["metadata"] = metadata
	return json.Marshal(patch)
}

// difference returns what a merge patch says to turn was into is, or false if that is nothing.
// Lists are replaced as a whole.
func difference(was, is any) (any, bool) {
	if reflect.DeepEqual(was, is) {
		return nil, false
	}
	a, ok := was.(map[string]any)
	if !ok {
		a = map[string]any{} // what was no map is replaced by one
	}
	b, ok := is.(map[string]any)
	if !ok {
		return is, true
	}
	patch := map[string]any{}
	for name := range union(a, b) {
		if change, differs := difference(a[name], b[name]); differs {
			patch[name] = change
		}
	}
	return patch, true
}

// union returns the names that are in a or b.
func union(a, b map[string]any) map[string]bool {
	names := make(map[string]bool, len(a)+len(b))
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	return names
}
