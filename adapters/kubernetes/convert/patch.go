package convert

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// difference is the smallest merge patch (RFC 7386) that turns one object into the other.
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
		a["status"] = map[string]any{} // unknown fields stay in a status that has no others
	}
	return diff(b, a), nil
}

// document is an object as generic JSON, numbers as they are written.
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

// diff takes null for absent, as a merge patch does.
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

// lock makes a patch fail unless the object still has this version.
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

// holdsNull reports whether an object in a JSON value has a field that is null, which a merge patch
// can't say.
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
