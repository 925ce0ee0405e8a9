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
		a["status"] = map[string]any{} // null in the patch would remove unknown fields
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
		oldObject, wasObject := was.(map[string]any)
		newObject, isObject := is.(map[string]any)
		switch {
		case wasObject && isObject:
			if p := diff(oldObject, newObject); len(p) > 0 {
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

// holdsNull reports whether a JSON object, or one in its fields, has a field that is null. A merge patch
// can't set a field to null, except in lists, which it replaces as a whole.
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
