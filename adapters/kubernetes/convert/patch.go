package convert

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// difference returns the smallest merge patch (RFC 7386) that turns one object into the other.
func difference(before, after any) (map[string]any, error) {
	b, err := document(before)
	if err != nil {
		return nil, err
	}
	a, err := document(after)
	if err != nil {
		return nil, err
	}
	if b["status"] != nil && a["status"] == nil {
		a["status"] = map[string]any{} // so that the patch is not null, which would remove unknown fields
	}
	return diff(b, a), nil
}

// document returns an object as generic JSON. Numbers keep their notation.
func document(o any) (map[string]any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	d := map[string]any{}
	err = decoder.Decode(&d)
	return d, err
}

// diff returns the merge patch between two JSON objects. A field that is null counts as absent, as in a
// merge patch.
func diff(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for key, is := range after {
		was := before[key]
		inner, both := is.(map[string]any)
		outer, alike := was.(map[string]any)
		switch {
		case both && alike:
			if p := diff(outer, inner); len(p) > 0 {
				patch[key] = p
			}
		case !reflect.DeepEqual(was, is):
			patch[key] = is
		}
	}
	for key, was := range before {
		if _, stays := after[key]; !stays && was != nil {
			patch[key] = nil
		}
	}
	return patch
}

// lock adds a version to a patch: a server refuses it if the object has another version.
func lock(patch map[string]any, version string) {
	if version == "" {
		return
	}
	meta, ok := patch["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		patch["metadata"] = meta
	}
	meta["resourceVersion"] = version
}

// holdsNull reports whether an object in a JSON value has a field that is null. A merge patch can't set
// a field to null.
func holdsNull(value any) bool {
	fields, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for _, v := range fields {
		if v == nil || holdsNull(v) {
			return true
		}
	}
	return false
}
