package machine

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-go/millwright/object"
)

// What Kubernetes takes as metadata of a node, by its public rules. A node with one entry that
// breaks them is refused as a whole, so no machine with that template would ever run.
const (
	maxName        = 63      // bytes of a name, and of a label's value
	maxPrefix      = 253     // bytes of a key's prefix
	maxAnnotations = 1 << 18 // bytes of all keys and values of annotations
)

// InvalidEntry returns the first entry that no API server accepts on a node, or nil; at is the path
// of the template, as in "spec.nodeTemplate". Creations wait until it is corrected. On nodes that
// exist, the other entries are kept up to date.
//
//   - The keys of labels, annotations and taints are qualified names: at most 63 letters, digits and
//     "-_." that begin and end with a letter or digit, perhaps after a DNS subdomain of at most 253
//     bytes and a slash.
//   - Values of labels and taints are empty, or like such a name without a prefix.
//   - Annotations have at most 256 KiB together.
//   - Taints have a known effect, and differ in their keys or effects.
func (t *NodeTemplate) InvalidEntry(at string) *object.FieldError {
	if t.valid() {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if problem := labelProblem(key, t.Labels[key]); problem != "" {
			return entryError(at+".labels", key, problem)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Annotations)) {
		if problem := annotationKeyProblem(key); problem != "" {
			return entryError(at+".annotations", key, problem)
		}
	}
	if size := annotationBytes(t.Annotations); size > maxAnnotations {
		return object.Invalid(at+".annotations", "must have at most "+strconv.Itoa(maxAnnotations)+" bytes together, and have "+strconv.Itoa(size))
	}
	for i := range t.Taints {
		if problem := taintProblem(t.Taints, i); problem != "" {
			return object.Invalid(at+".taints["+strconv.Itoa(i)+"]", problem)
		}
	}
	return nil
}

func entryError(field, key, problem string) *object.FieldError {
	return object.Invalid(field+"["+strconv.Quote(bounded(key))+"]", problem)
}

// bounded is a key for a message.
func bounded(key string) string {
	if len(key) > maxPrefix {
		return key[:maxPrefix]
	}
	return key
}

// valid reports whether all entries are valid. It allocates nothing: it runs in passes of settled machines.
func (t *NodeTemplate) valid() bool {
	for key, value := range t.Labels {
		if labelProblem(key, value) != "" {
			return false
		}
	}
	for key := range t.Annotations {
		if annotationKeyProblem(key) != "" {
			return false
		}
	}
	for i := range t.Taints {
		if taintProblem(t.Taints, i) != "" {
			return false
		}
	}
	return annotationBytes(t.Annotations) <= maxAnnotations
}

// usable is the template without entries that no API server accepts. Of annotations that are too
// large together, none is left.
func (t *NodeTemplate) usable() NodeTemplate {
	if t.valid() {
		return *t
	}
	u := t.Clone()
	maps.DeleteFunc(u.Labels, func(key, value string) bool { return labelProblem(key, value) != "" })
	maps.DeleteFunc(u.Annotations, func(key, _ string) bool { return annotationKeyProblem(key) != "" })
	if annotationBytes(u.Annotations) > maxAnnotations {
		u.Annotations = nil
	}
	u.Taints = nil
	for i := range t.Taints {
		if taintProblem(t.Taints, i) == "" {
			u.Taints = append(u.Taints, t.Taints[i])
		}
	}
	return u
}

func annotationBytes(m map[string]string) (n int) {
	for key, value := range m {
		n += len(key) + len(value)
	}
	return n
}

const (
	problemKey      = `must be a name of at most 63 letters, digits, "-", "_" and ".", perhaps after a DNS subdomain and "/"`
	problemValue    = `must have a value that is empty or has at most 63 letters, digits, "-", "_" and "."; it begins and ends with a letter or digit`
	problemEffect   = "must have effect NoSchedule, PreferNoSchedule or NoExecute"
	problemTwice    = "must not have the key and the effect of an earlier taint"
	problemQuantity = "must be a quantity that is not negative, such as 2 or 500Mi"
)

func labelProblem(key, value string) string {
	switch {
	case !qualified(key):
		return problemKey
	case value != "" && !named(value):
		return problemValue
	}
	return ""
}

// annotationKeyProblem is that of a key, whose prefix may have capital letters.
func annotationKeyProblem(key string) string {
	if prefix, name, found := strings.Cut(key, "/"); found {
		if named(name) && subdomain(prefix, true) {
			return ""
		}
		return problemKey
	}
	if !named(key) {
		return problemKey
	}
	return ""
}

// taintProblem is that of the ith taint.
func taintProblem(taints []object.Taint, i int) string {
	t := &taints[i]
	if problem := labelProblem(t.Key, t.Value); problem != "" {
		return problem
	}
	switch t.Effect {
	case object.NoSchedule, object.PreferNoSchedule, object.NoExecute:
	default:
		return problemEffect
	}
	if slices.ContainsFunc(taints[:i], t.Same) {
		return problemTwice
	}
	return ""
}

// qualified reports whether a key is a name, perhaps with a prefix.
func qualified(key string) bool {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		return named(key)
	}
	return named(name) && subdomain(prefix, false)
}

// named reports whether a text is the name of a key, or a value of a label that is not empty.
func named(s string) bool {
	if s == "" || len(s) > maxName || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// subdomain reports whether a text is a DNS subdomain (RFC 1123).
func subdomain(s string, capitals bool) bool {
	if s == "" || len(s) > maxPrefix {
		return false
	}
	begins := true
	for i := range len(s) {
		c, ends := s[i], i == len(s)-1 || s[i+1] == '.'
		switch {
		case c == '.' && !begins:
			if begins = true; i == len(s)-1 {
				return false
			}
			continue
		case alphanumeric(c) && (capitals || c < 'A' || c > 'Z'):
		case c == '-' && !begins && !ends:
		default:
			return false
		}
		begins = false
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// resourceProblem is that of an entry of a virtual capacity.
func resourceProblem(name, quantity string) string {
	switch {
	case !qualified(name):
		return problemKey
	case !isQuantity(quantity):
		return problemQuantity
	}
	return ""
}

// isQuantity reports whether a text is a quantity in Kubernetes' notation: decimal digits with a
// fraction or without, then a suffix or an exponent. Not negative.
func isQuantity(s string) bool {
	s = strings.TrimPrefix(s, "+")
	whole, rest := digits(s)
	fraction := ""
	if after, found := strings.CutPrefix(rest, "."); found {
		fraction, rest = digits(after)
	}
	if whole == "" && fraction == "" {
		return false
	}
	switch rest {
	case "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei":
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent := strings.TrimPrefix(rest[1:], "-")
	if exponent == rest[1:] {
		exponent = strings.TrimPrefix(exponent, "+")
	}
	number, end := digits(exponent)
	return number != "" && end == ""
}

// digits cuts the digits at the beginning of a text.
func digits(s string) (number, rest string) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}
