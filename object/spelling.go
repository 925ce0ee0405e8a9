package object

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Alike reports whether two identities may be two spellings of one: provider IDs, or names of VMs
// and nodes. They may, if they are equal except for case, for signs at their ends, for double slashes,
// for a scheme ("aws://"), or for a prefix of one of them that ends with a sign. A sign is neither a
// letter nor a digit. An identity without a letter or digit is alike to none.
//
// Providers and clusters do not agree on such spellings, so two identities that are alike may name one
// thing or two. Nothing may be deleted because they are alike, nor because their spelling differs.
func Alike(a, b string) bool {
	f, g := formOf(a), formOf(b)
	if f == "" || g == "" {
		return false
	}
	return f == g || isTail(f, g) || isTail(g, f)
}

// Spellings is a set of identities. It finds those that are Alike to a given one in a time that does not
// depend on the size of the set. The zero value is an empty set.
type Spellings struct {
	forms map[string][]string // identities by their form
	tails map[string][]string // identities by each tail of their form
}

// Add adds an identity.
func (s *Spellings) Add(identity string) {
	form := formOf(identity)
	if form == "" {
		return
	}
	if s.forms == nil {
		s.forms, s.tails = make(map[string][]string), make(map[string][]string)
	}
	s.forms[form] = append(s.forms[form], identity)
	for tail := range tailsOf(form) {
		s.tails[tail] = append(s.tails[tail], identity)
	}
}

// Alike returns the identities of the set that are Alike to the given one, equal ones included, each as
// often as it was added.
func (s *Spellings) Alike(identity string) []string {
	form := formOf(identity)
	if form == "" {
		return nil
	}
	var all []string
	all = append(append(all, s.forms[form]...), s.tails[form]...)
	for tail := range tailsOf(form) {
		all = append(all, s.forms[tail]...)
	}
	return all
}

// formOf returns the spelling that identities are compared by: in lower case, without scheme, without signs
// at its ends, and without double slashes.
func formOf(identity string) string {
	if _, rest, schemed := strings.Cut(identity, "://"); schemed {
		identity = rest
	}
	form := strings.ToLower(strings.TrimFunc(identity, isSign))
	for strings.Contains(form, "//") {
		form = strings.ReplaceAll(form, "//", "/")
	}
	return form
}

func isSign(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// tailsOf yields what remains of a form without each of its prefixes that end with a sign, the longest first.
func tailsOf(form string) iter.Seq[string] {
	return func(yield func(string) bool) {
		afterSign := false
		for i, r := range form {
			sign := isSign(r)
			if afterSign && !sign && !yield(form[i:]) {
				return
			}
			afterSign = sign
		}
	}
}

// isTail reports whether tail is form without a prefix that ends with a sign.
func isTail(tail, form string) bool {
	prefix, found := strings.CutSuffix(form, tail)
	last, _ := utf8.DecodeLastRuneInString(prefix)
	return found && prefix != "" && isSign(last)
}
