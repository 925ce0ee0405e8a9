package drivertest

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

// shortest is the length below which a value of a secret could be found in a
// text by chance.
const shortest = 4

// secrets are values that must not be seen.
type secrets struct{ values []secretValue }

type secretValue struct {
	key   string
	forms []string // in which it could be printed
}

// add has the values of a secret looked for from now on, those excepted that
// the class shows to everyone.
func (s *secrets) add(secret *machine.Secret, class *machine.Class) {
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

// search fails the test if a value is to be seen in any of the things given,
// in a form in which it is likely to get there. It names the key alone.
func (s *secrets) search(r *trial, where string, things ...any) {
	r.Helper()
	for _, thing := range things {
		text := fmt.Sprintf("%+v", thing)
		for _, v := range s.values {
			if slices.ContainsFunc(v.forms, func(form string) bool { return strings.Contains(text, form) }) {
				r.Errorf("%s shows the value of %q from the secret", where, v.key)
			}
		}
	}
}

var secretChecks = []check{
	{"a missing secret ends no process", missingSecret},
	{"wrong credentials are not shown", wrongCredentials},
}

// missingSecret makes calls without a secret. Any code will do.
func missingSecret(r *trial) {
	r.setup.Secret = nil
	m := r.machine()
	r.anyAnswer(m)
}

// wrongCredentials replaces each value of the secret. A driver that does not
// look at it succeeds; one that does has something to say, and says too much
// if the values are in it.
func wrongCredentials(r *trial) {
	wrong := &machine.Secret{Data: map[string][]byte{"token": nil, "password": nil, machine.UserData: nil}}
	if r.setup.Secret != nil {
		wrong = r.setup.Secret.Clone()
	}
	for key := range wrong.Data {
		wrong.Data[key] = []byte("wrong-" + key + "-of-" + r.names)
	}
	r.secrets.add(wrong, r.setup.Class)
	right := r.setup.Secret
	r.setup.Secret = wrong
	r.anyAnswer(r.machine())
	r.setup.Secret = right
}

// anyAnswer makes each call that takes a secret, for the sake of what watch
// sees in the answers.
func (r *trial) anyAnswer(m *machine.Machine) {
	_, _ = r.create(r.ctx, m)
	_, _ = r.status(r.ctx, m)
	_, _ = r.initialize(r.ctx, m)
	_, _ = r.update(r.ctx, m, r.setup.Class.ProviderSpec, r.setup.Class.ProviderSpec)
	_, _ = r.list(r.ctx, r.setup.Class)
	_, _ = r.delete(r.ctx, m)
}
