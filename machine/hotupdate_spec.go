package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// VMSpec is a provider spec as far as it matters for a VM that exists: split
// into what a driver can change on it, and the rest. It is what machines keep
// of the spec that they were made from, in some hundred bytes, as long as the
// values that can be changed are no more. Values are comparable. The zero
// VMSpec: nothing is known.
type VMSpec struct {
	// Declared are the fields that the driver could change when this was
	// noted, sorted, with commas between them.
	Declared string
	// Fixed is a digest of all else in the spec, and of the provider's name.
	// Empty: nothing is known.
	Fixed string
	// Updatable holds the values of the declared fields, as JSON. Empty if the
	// spec is no JSON object: none of it can be changed then.
	Updatable string
	// Begun are the values that an update asked for whose success is not known:
	// the VM may have them, or some of them. Empty: there is none.
	Begun string
}

// fixedLength is how many bytes of a digest are kept: two specs that differ
// have the same with a chance of one in 2^64 tries.
const fixedLength = 16

// SplitSpec splits the provider spec of a class by the fields that a driver
// declares: names joined by dots from the top of the spec, where a name stands
// for all that is below it and leads through the elements of a list. Names that
// contain a dot or a comma can't be declared, and empty ones declare nothing.
//
// Two specs differ only in declared fields if and only if their Fixed is the
// same, and in nothing if Updatable is too. A spec that is not one JSON object,
// with UTF-8 text and no key twice, has nothing that can be changed.
func SplitSpec(c *Class, fields []string) VMSpec {
	declared := declare(fields)
	out := VMSpec{Declared: declared.String()}
	spec, ok := decodeObject(c.ProviderSpec)
	if !ok {
		out.Fixed = digest(c.Provider, "opaque", c.ProviderSpec)
		return out
	}
	taken, _ := declared.take(spec).(map[string]any)
	if taken == nil {
		taken = map[string]any{}
	}
	out.Updatable = string(encode(taken))
	out.Fixed = digest(c.Provider, "object", encode(spec))
	return out
}

// RestoreSpec returns the provider spec of which have is the split, given a
// class whose spec differs from it only in fields that were declared then. What
// have says of lists of another length counts for nothing. The text need not be
// the same byte for byte; what it says is.
func RestoreSpec(c *Class, have VMSpec) []byte {
	spec, ok := decodeObject(c.ProviderSpec)
	if !ok {
		return bytes.Clone(c.ProviderSpec)
	}
	values, _ := decodeObject([]byte(have.Updatable))
	declared := declare(strings.Split(have.Declared, ","))
	declared.take(spec)
	return encode(declared.put(spec, values))
}

// digest is a short name of a spec's text and kind.
func digest(provider, kind string, text []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, provider+"\x00"+kind+"\x00") // never fails
	_, _ = h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:fixedLength])
}

// encode writes what decodeObject has read. Keys are sorted, and numbers are
// spelled as they were.
func encode(value any) []byte {
	text, _ := json.Marshal(value) // can't fail: maps, lists, strings and numbers that were read
	return text
}

// maxDepth is how deep a spec may be nested and still be looked into.
const maxDepth = 100

// decodeObject reads one JSON object. A key that is there twice is refused:
// drivers may differ in which of the values counts.
func decodeObject(text []byte) (map[string]any, bool) {
	if !utf8.Valid(text) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	value, ok := decodeValue(d, maxDepth)
	object, is := value.(map[string]any)
	if _, err := d.Token(); !ok || !is || err != io.EOF { //nolint:errorlint // Token returns it bare
		return nil, false
	}
	return object, true
}

func decodeValue(d *json.Decoder, depth int) (any, bool) {
	token, err := d.Token()
	if err != nil || depth == 0 {
		return nil, false
	}
	switch token {
	case json.Delim('{'):
		return decodeEntries(d, depth-1)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, ok := decodeValue(d, depth-1)
			if !ok {
				return nil, false
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err == nil
	}
	return token, true
}

func decodeEntries(d *json.Decoder, depth int) (any, bool) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		key, is := token.(string)
		if err != nil || !is {
			return nil, false
		}
		value, ok := decodeValue(d, depth)
		if _, twice := object[key]; twice || !ok {
			return nil, false
		}
		object[key] = value
	}
	_, err := d.Token()
	return object, err == nil
}

// declaration is a tree of declared fields. A name without names below it is
// declared with all that it holds.
type declaration map[string]declaration

// declare makes a tree of fields; those that can't be declared are left out.
func declare(fields []string) declaration {
	root := declaration{}
	for _, field := range fields {
		names := strings.Split(field, ".")
		if strings.Contains(field, ",") || slices.Contains(names, "") {
			continue
		}
		at, covered := root, false
		for _, name := range names[:len(names)-1] {
			below, known := at[name]
			if covered = known && len(below) == 0; covered {
				break // a shorter name stands for this one
			}
			if !known {
				below = declaration{}
				at[name] = below
			}
			at = below
		}
		if !covered {
			at[names[len(names)-1]] = declaration{}
		}
	}
	return root
}

// String spells the fields that are declared, sorted.
func (t declaration) String() string {
	var fields []string
	t.list("", &fields)
	slices.Sort(fields)
	return strings.Join(fields, ",")
}

func (t declaration) list(prefix string, fields *[]string) {
	for name, below := range t {
		if len(below) == 0 {
			*fields = append(*fields, prefix+name)
			continue
		}
		below.list(prefix+name+".", fields)
	}
}

// take removes the declared fields from a value and returns them, in objects
// and lists like those that they were in; nil: there are none.
func (t declaration) take(value any) any {
	switch value := value.(type) {
	case map[string]any:
		var taken map[string]any
		for name, below := range t {
			part, there := value[name]
			if !there {
				continue
			}
			if len(below) == 0 {
				delete(value, name)
			} else if part = below.take(part); part == nil {
				continue
			}
			if taken == nil {
				taken = map[string]any{}
			}
			taken[name] = part
		}
		if taken == nil {
			return nil
		}
		return taken
	case []any:
		taken, found := make([]any, len(value)), false
		for i := range value {
			taken[i] = t.take(value[i])
			found = found || taken[i] != nil
		}
		if found {
			return taken
		}
	}
	return nil
}

// put is the reverse of take: it puts fields back into a value from which they
// were taken, and returns it.
func (t declaration) put(value, taken any) any {
	switch value := value.(type) {
	case map[string]any:
		parts, _ := taken.(map[string]any)
		for name, below := range t {
			part, there := parts[name]
			switch {
			case !there:
			case len(below) == 0:
				value[name] = part
			default:
				below.put(value[name], part)
			}
		}
	case []any:
		parts, _ := taken.([]any)
		if len(parts) != len(value) {
			return value
		}
		for i := range value {
			t.put(value[i], parts[i])
		}
	}
	return value
}

// unite holds what either of two records of updatable values says: all names of
// both, with the values of the second where both have one.
func unite(first, second string) string {
	a, ok := decodeObject([]byte(first))
	b, both := decodeObject([]byte(second))
	switch {
	case !both:
		return first
	case !ok:
		return second
	}
	return string(encode(uniteValues(a, b)))
}

func uniteValues(a, b any) any {
	switch b := b.(type) {
	case map[string]any:
		a, _ := a.(map[string]any)
		for name, value := range a {
			if other, both := b[name]; both {
				b[name] = uniteValues(value, other)
			} else {
				b[name] = value
			}
		}
	case []any:
		if a, _ := a.([]any); len(a) == len(b) {
			for i := range b {
				b[i] = uniteValues(a[i], b[i])
			}
		}
	}
	return b
}
