package object

import "strings"

// Sentence fills the {words} of a template: pairs are words and what stands
// for them. A word that is not among the pairs stays as it is. Values are not
// looked into, so braces in them do no harm.
func Sentence(template string, pairs ...string) string {
	var out strings.Builder
	out.Grow(2 * len(template))
	for {
		before, rest, found := strings.Cut(template, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		word, after, closed := strings.Cut(rest, "}")
		value, known := lookUp(word, pairs)
		if !closed || !known {
			out.WriteByte('{')
			template = rest
			continue
		}
		out.WriteString(value)
		template = after
	}
}

func lookUp(word string, pairs []string) (string, bool) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == word {
			return pairs[i+1], true
		}
	}
	return "", false
}
