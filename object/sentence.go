package object

import "strings"

// Sentence fills the {words} of a template: pairs are words and what stands
// for them. A word that is not among the pairs stays as it is. Values are not
// looked into, so braces in them do no harm.
func Sentence(template string, pairs ...string) string {
	replace := make([]string, len(pairs))
	for i := 0; i+1 < len(pairs); i += 2 {
		replace[i] = "{" + pairs[i] + "}"
		replace[i+1] = pairs[i+1]
	}
	return strings.NewReplacer(replace[:len(pairs)/2*2]...).Replace(template)
}
