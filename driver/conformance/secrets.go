package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/machine"
)

// shortest is the minimum length of a value that is searched for. Shorter ones occur by chance.
const shortest = 4

// secrets are values that must not be seen.
type secrets struct{ values []secretValue }

type secretValue struct {
	key   string
	forms []string // in which it could be printed
}

// ForbidInAnswers forbids the values of a secret in all answers from now on, except those that the class shows to
// everyone, and those shorter than shortest.
func (r *Trial) ForbidInAnswers(secret *machine.Secret, class *machine.Class) {
	s := &r.secrets
	if secret == nil || class == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		value := secret.Data[key]
		if len(value) < shortest || bytes.Contains(class.ProviderSpec, value) {
			continue
		}
		s.values = append(s.values, secretValue{key: key, forms: []string{
			string(value),
			base64.StdEncoding.EncodeToString(value),
			base64.RawURLEncoding.EncodeToString(value),
			hex.EncodeToString(value),
			strings.Trim(fmt.Sprint(value), "[]"),
			strings.Trim(fmt.Sprintf("%q", value), `"`),
		}})
	}
}

// search fails the test if a value, in one of its forms, occurs in any of the things. The failure names
// the value's key only.
func (s *secrets) search(r *Trial, where string, things ...any) {
	r.Helper()
	for _, thing := range things {
		text := fmt.Sprintf("%+v", thing)
		for _, v := range s.values {
			if slices.ContainsFunc(v.forms, func(form string) bool { return strings.Contains(text, form) }) {
				r.breach(where+" shows "+v.key, "%s shows the value of %q from the secret", where, v.key)
			}
		}
	}
}
